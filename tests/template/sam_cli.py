"""The real SAM CLI, and an emulator that it deploys to."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager

from sweephand.base.sources import SystemClock
from sweephand.local.aws.emulator import Emulator
from sweephand.local.folder import StateFolder
from tests.local_stack.runtime_emulator import free_port
from tests.template.cloudformation import ROOT

SAM = ROOT / ".venv-sam" / "bin" / "sam"


@contextmanager
def emulator(tmp_path_factory):
    made = Emulator(StateFolder(tmp_path_factory.mktemp("emulator")), SystemClock(), port=str(free_port()))
    made.start()
    made.release_queues()  # `Emulator.deploy` does it, and here the SAM CLI deploys
    try:
        yield made.credentials().endpoint_url
    finally:
        made.stop()


def run(command, answers="", **environment):
    assert SAM.exists(), "the SAM CLI is not installed: make setup-sam"
    inherited = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}
    return subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env=inherited
        | {
            "AWS_DEFAULT_REGION": "us-east-1",
            "PATH": f"{SAM.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "layers" / "sweephand" / "python"),
            "SAM_CLI_TELEMETRY": "0",
        }
        | environment,
        input=answers,
        capture_output=True,
        text=True,
        check=False,
    )
