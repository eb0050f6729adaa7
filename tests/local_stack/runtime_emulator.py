"""The Lambda runtime without Docker: AWS's interface emulator out of the SAM CLI, and AWS's own runtime client."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx

from sweephand.base.sources import SystemClock

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "layers" / "sweephand" / "python"
MACHINES = {"x86_64": "x86_64", "aarch64": "arm64"}
READY_WITHIN_S = 120.0


def binary(folder):
    """Returns a copy of the emulator that this machine can run. Fails with what to do where it is not installed."""
    name = f"aws-lambda-rie-{MACHINES[platform.machine()]}"
    found = list(ROOT.glob(f".venv-sam/lib/python*/site-packages/samcli/local/rapid/{name}"))
    assert found, "the SAM CLI is not installed: make setup-sam"
    copy = Path(shutil.copy(found[0], folder / "aws-lambda-rie"))
    copy.chmod(0o700)
    return copy


class Runtime:
    """One function in AWS's runtime client; `invoke` gives what Lambda's caller would get."""

    def __init__(self, address):
        self._url = f"http://{address}/2015-03-31/functions/function/invocations"

    def invoke(self, event):
        answer = httpx.post(self._url, content=json.dumps(event), timeout=180, trust_env=False)
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def running(emulator, folder, handler, variables, log):
    """Runs the emulator. folder: of the function. variables: its environment, on top of nothing but PATH. log: file for
    what it prints.
    """
    address, internal = (f"127.0.0.1:{free_port()}" for _ in range(2))
    command = [
        *(str(emulator), "--log-level", "error"),
        *("--runtime-interface-emulator-address", address, "--runtime-api-address", internal),
        *(sys.executable, "-m", "awslambdaric", handler),
    ]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{folder}:{PACKAGE}",
    } | variables
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
        try:
            _await_port(process, address, log)
            yield Runtime(address)
        finally:
            process.terminate()
            process.wait(timeout=60)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _await_port(process, address, log):
    host, port = address.split(":")
    clock = SystemClock()
    end = clock.monotonic() + READY_WITHIN_S
    while clock.monotonic() < end:
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        clock.sleep(0.02)
    raise AssertionError(f"no answer at {address}: {log.read_text()}")
