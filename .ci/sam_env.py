"""`make sam-env`: env.json for `sam local`, with the variables of the functions on the running local stack."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3

ROOT = Path(__file__).resolve().parent.parent
STACK_FILE = Path(os.environ.get("SWEEPHAND_STATE") or ROOT / ".local") / "stack.json"

# How a container reaches this machine. Docker Desktop knows the name; elsewhere samconfig.toml gives it (add_host).
HOST = "host.docker.internal"
# What that name stands for: the bridge of an engine on Linux, the gateway of Docker Desktop.
HOST_NETWORKS = "172.16.0.0/12,192.168.65.0/24"
# The bridge of an engine on Linux, unless it was told otherwise.
USUAL_BRIDGE = "172.17.0.1"
LOGICAL_IDS = {
    "api": "ApiFunction",
    "sweeper": "SweeperFunction",
    "executor": "ExecutorFunction",
    "executorSlow": "ExecutorSlowFunction",
    "auditor": "AuditorFunction",
}


def in_container(declared: dict[str, str], endpoint_url: str) -> dict[str, str]:
    """A function's variables as they are right in a container. declared: those of the function on the local stack.

    sam local passes on only what the template declares, and AWS_ENDPOINT_URL only if parameter EndpointUrl is set.
    """
    changed = {"AWS_ENDPOINT_URL": f"http://{HOST}:{urlsplit(endpoint_url).port}"}
    if "ALLOWED_PRIVATE_TARGETS" in declared:
        # This machine, where the user's endpoint is, has another address from inside.
        changed["ALLOWED_PRIVATE_TARGETS"] = ",".join(filter(None, (declared["ALLOWED_PRIVATE_TARGETS"], HOST_NETWORKS)))
    return declared | changed


def variables(aws: Any, functions: dict[str, str], endpoint_url: str) -> dict[str, dict[str, str]]:
    """Logical id -> variables. aws: a Lambda client. functions: physical name by role."""
    return {
        LOGICAL_IDS[role]: in_container(
            aws.get_function_configuration(FunctionName=name)["Environment"]["Variables"], endpoint_url
        )
        for role, name in functions.items()
    }


def hint(endpoint_url: str) -> str:
    """What the user has to know about reaching the stack from a container."""
    if not sys.platform.startswith("linux"):
        return ""
    port = urlsplit(endpoint_url).port
    with socket.socket() as probe:
        probe.settimeout(1.0)
        if probe.connect_ex((USUAL_BRIDGE, port)) == 0:
            return ""
    return (
        f"Nothing answers at {USUAL_BRIDGE}:{port}. With an engine of Linux (not Docker Desktop), containers reach the\n"
        "stack only at its bridge:\n"
        f"  make stack-stop; SWEEPHAND_AWS_ALSO_ON={USUAL_BRIDGE} make stack sam-env\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "env.json", help="the file to write; default: env.json")
    given = parser.parse_args()
    if not STACK_FILE.exists():
        sys.stderr.write("No local stack runs. Start one: make stack\n")
        return 1
    stack = json.loads(STACK_FILE.read_text())
    endpoint_url = stack["awsEndpointUrl"]
    aws = boto3.client(
        "lambda",
        endpoint_url=endpoint_url,
        region_name=stack["region"],
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - the emulator checks none
    )
    given.to.write_text(json.dumps(variables(aws, stack["functions"], endpoint_url), indent=2) + "\n")
    sys.stdout.write(
        f"{given.to.name} written. For example, after `make sam-build`:\n"
        "  .venv-sam/bin/sam local invoke SweeperFunction -e events/sweeper/tick.json\n"
        f"{hint(endpoint_url)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
