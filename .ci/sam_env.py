"""`make sam-env`: env.json for `sam local`, with the variables of the functions on the running local stack."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3

ROOT = Path(__file__).resolve().parent.parent
STACK_FILE = ROOT / ".local" / "stack.json"
ENV_FILE = ROOT / "env.json"

# How a container reaches this machine. Docker Desktop knows the name; elsewhere --add-host gives it.
HOST = "host.docker.internal"
LOGICAL_IDS = {
    "api": "ApiFunction",
    "sweeper": "SweeperFunction",
    "executor": "ExecutorFunction",
    "executorSlow": "ExecutorSlowFunction",
    "auditor": "AuditorFunction",
}


def endpoint_in_container(endpoint_url: str) -> str:
    return f"http://{HOST}:{urlsplit(endpoint_url).port}"


def variables(aws: Any, functions: dict[str, str], endpoint_url: str) -> dict[str, dict[str, str]]:
    """Logical id -> variables. aws: a Lambda client. functions: physical name by role.

    sam local passes on only what the template declares, and AWS_ENDPOINT_URL only if parameter EndpointUrl is set.
    """
    return {
        LOGICAL_IDS[role]: aws.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        | {"AWS_ENDPOINT_URL": endpoint_in_container(endpoint_url)}
        for role, name in functions.items()
    }


def main() -> int:
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
    ENV_FILE.write_text(json.dumps(variables(aws, stack["functions"], endpoint_url), indent=2) + "\n")
    sys.stdout.write(
        "env.json written. For example, after `make sam-build`:\n"
        "  export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test\n"
        f"  .venv-sam/bin/sam local invoke SweeperFunction -e events/sweeper/tick.json --env-vars env.json"
        f" --region {stack['region']} --add-host {HOST}:host-gateway"
        f" --parameter-overrides EndpointUrl={endpoint_in_container(endpoint_url)}\n"
        "A container reaches the stack only if its emulator listens on more than 127.0.0.1.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
