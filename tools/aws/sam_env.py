"""`make sam-env`: writes env.json for `sam local`, with the variables of the functions on the running local stack."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3

ROOT = Path(__file__).resolve().parents[2]
STACK_FILE = Path(os.environ.get("SWEEPHAND_STATE") or ROOT / ".local") / "stack.json"

# The name of this machine in a container. Docker Desktop defines it; elsewhere samconfig.toml does (add_host).
HOST = "host.docker.internal"
# The addresses of that name: the bridge of an engine on Linux, or the gateway of Docker Desktop.
HOST_NETWORKS = "172.16.0.0/12,192.168.65.0/24"
LOGICAL_IDS = {
    "api": "ApiFunction",
    "sapApi": "SapApiFunction",
    "azureApi": "AzureApiFunction",
    "sweeper": "SweeperFunction",
    "executor": "ExecutorFunction",
    "executorSlow": "ExecutorSlowFunction",
    "auditor": "AuditorFunction",
    "operations": "OperationsFunction",
}


def in_container(declared: dict[str, str], endpoint_url: str) -> dict[str, str]:
    """Returns a function's variables for a container. declared: those of the function on the local stack.

    sam local passes on only variables in the template, and AWS_ENDPOINT_URL only if the parameter EndpointUrl is set.
    """
    changed = {"AWS_ENDPOINT_URL": f"http://{HOST}:{urlsplit(endpoint_url).port}"}
    allowed = declared.get("ALLOWED_PRIVATE_TARGETS")
    if allowed is not None:
        # This machine, where the user's endpoint is, has another address inside a container.
        changed["ALLOWED_PRIVATE_TARGETS"] = f"{allowed},{HOST_NETWORKS}".lstrip(",")
    return declared | changed


def variables(aws: Any, functions: dict[str, str], endpoint_url: str) -> dict[str, dict[str, str]]:
    """Returns the variables by logical id. aws: a Lambda client. functions: physical names by role."""
    return {
        LOGICAL_IDS[role]: in_container(
            aws.get_function_configuration(FunctionName=name)["Environment"]["Variables"], endpoint_url
        )
        for role, name in functions.items()
        if role in LOGICAL_IDS  # the console has no variables of the stack
    }


def hint(endpoint_url: str) -> str:
    """Returns what the user must do so that a container reaches the stack; empty if it already does."""
    bridge, port = _bridge(), urlsplit(endpoint_url).port
    if bridge is None or _answers(bridge, port):
        return ""
    return (
        f"But no container can reach the stack, which does not listen at {bridge}:{port}. Start it with:\n"
        f"  make stack-stop; SWEEPHAND_AWS_ALSO_ON={bridge} make stack sam-env\n"
    )


def _bridge() -> str | None:
    """Returns this machine's address on the network of the containers.

    None if they reach our loopback, as with Docker Desktop, or if there is no engine.
    """
    wanted = ["docker", "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}"]
    try:
        done = subprocess.run(wanted, capture_output=True, text=True, timeout=20, check=True)  # noqa: S603
        with socket.socket() as probe:
            probe.bind((done.stdout.strip(), 0))  # fails unless it is an address of this machine
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _answers(address: str, port: int | None) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2.0)
        return probe.connect_ex((address, port)) == 0


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
