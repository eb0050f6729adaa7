"""`make sam-deploy-local`: runs the real `sam deploy` to the emulator of the local stack, after `sam build`.

The result is a separate stack next to the launcher's, so neither changes the other. Afterwards it adds what the
emulator leaves out, as the launcher does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from sweephand.local.aws.deploy import Aws, read_stack, repair
from sweephand.local.aws.template import load

ROOT = Path(__file__).resolve().parents[2]
STACK_FILE = ROOT / ".local" / "stack.json"
STACK_NAME = "sweephand-sam"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--endpoint", help="address of an emulator; default: the local stack's, which is started if need be"
    )
    parser.add_argument("--build-dir", type=Path, default=ROOT / ".aws-sam" / "build")
    given = parser.parse_args()
    aws = Aws(given.endpoint or _endpoint(), "us-east-1")
    _sam_deploy(aws, given.build_dir / "template.yaml")
    stack = read_stack(aws, STACK_NAME)
    repair(aws, stack, load(ROOT / "template.yaml"))
    base_url = f"{aws.endpoint_url}/_aws/execute-api/{stack.physical['Api']}/$default"
    with urllib.request.urlopen(f"{base_url}/v1/health", timeout=30) as answer:  # noqa: S310 - http on loopback
        health = json.load(answer)
    sys.stdout.write(f"The stack {STACK_NAME} answers at {base_url}/v1/health: {json.dumps(health)}\n")
    return 0


def _endpoint() -> str:
    """Starts the local stack, or attaches to the one that is running."""
    subprocess.run([sys.executable, "-m", "sweephand", "dev", "--detach"], cwd=ROOT, check=True)
    return str(json.loads(STACK_FILE.read_text())["awsEndpointUrl"])


def _sam_deploy(aws: Aws, template: Path) -> None:
    subprocess.run(  # noqa: S603 - the SAM CLI of the lock
        [
            str(ROOT / ".venv-sam" / "bin" / "sam"),
            "deploy",
            *("--template-file", str(template)),
            *("--config-file", str(ROOT / "samconfig.toml")),
            *("--stack-name", STACK_NAME),
            *("--region", aws.region),
            "--no-confirm-changeset",
            "--no-progressbar",
        ],
        cwd=ROOT,
        env=os.environ
        | {
            "AWS_ENDPOINT_URL": aws.endpoint_url,
            "AWS_ACCESS_KEY_ID": aws.access_key_id,
            "AWS_SECRET_ACCESS_KEY": aws.secret_access_key,
            "SAM_CLI_TELEMETRY": "0",
        },
        stdin=subprocess.DEVNULL,
        check=True,
    )


if __name__ == "__main__":
    sys.exit(main())
