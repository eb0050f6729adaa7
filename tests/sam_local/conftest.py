"""The real SAM CLI on the real template, its functions in containers, the AWS they see on the embedded emulator.

Nothing happens unasked on this stack: the minute rule is off, and no queue is polled.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from sweephand.local import control
from sweephand.local.folder import StateFolder
from sweephand.local.settings import CHECKOUT, Settings
from tests.local_stack import pages, quiet
from tests.local_stack.conftest import CLOCK, LocalStack, start
from tests.local_stack.runtime_emulator import free_port
from tests.sam_local.endpoint import Endpoint
from tests.sam_local.engine import machine

if TYPE_CHECKING:
    from collections.abc import Iterator

READY = "SWEEPHAND_TEST_SAM_LOCAL"
"""Set by `make test-sam-local`, which has an engine and the image at hand."""
BRIDGE = "SWEEPHAND_TEST_BRIDGE"
"""Where containers reach this machine; empty if that is its loopback, as with Docker Desktop."""

SAM = ".venv-sam/bin/sam"
GUIDE = CHECKOUT / "docs" / "guide" / "sam-local.md"
COMES_UP_WITHIN_S = 300.0
ENDS_WITHIN_S = 120.0


@pytest.fixture(scope="session", autouse=True)
def _engine() -> None:
    if READY not in os.environ:
        pytest.skip("needs a container engine: make test-sam-local")


@pytest.fixture(scope="session")
def bridge(_engine: None) -> str | None:
    return os.environ[BRIDGE] or None


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, bridge: str | None) -> Iterator[LocalStack]:
    """Starts a stack as `SWEEPHAND_AWS_ALSO_ON=<bridge> make stack` does, on free ports; then makes it quiet."""
    folder = StateFolder(tmp_path_factory.mktemp("stack"))
    template = CHECKOUT / "template.yaml"
    place = Settings(folder=folder, template=template, port=0, aws_port="0", aws_also_on=bridge)
    running, local = start(place)
    quiet.hush(local.aws)
    yield local
    local.close()
    control.release(running, place, CLOCK)


@pytest.fixture(scope="session")
def environment_file(tmp_path_factory: pytest.TempPathFactory, stack: LocalStack) -> Path:
    """Writes the file as `make sam-env` does."""
    path = tmp_path_factory.mktemp("env") / "env.json"
    subprocess.run(
        [sys.executable, "-m", "tools.aws.sam_env", "--to", str(path)],
        cwd=CHECKOUT,
        env=os.environ | {"SWEEPHAND_STATE": str(stack.folder.root)},
        check=True,
        capture_output=True,
    )
    return path


@dataclass
class Sam:
    """The SAM CLI as the guide has it; what differs in a test is where the stack is."""

    environment_file: Path
    logs: Path

    def invoke(self, function: str, event: str) -> tuple[Any, str]:
        """Returns the answer of one call, and what the function and the SAM CLI logged. event: a file of events/."""
        command = self._command("invoke", function, "-e", f"events/{event}.json")
        done = subprocess.run(command, **_SURROUNDINGS, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    @contextmanager
    def running(self, what: str) -> Iterator[str]:
        """Runs `start-api` or `start-lambda` on a free port, and waits until it listens. Gives its URL. Its containers
        end with it.
        """
        port = free_port()
        log = self.logs / f"{what}.log"
        with log.open("wb") as output:
            command = [*self._command(what), "--port", str(port)]
            process = subprocess.Popen(command, **_SURROUNDINGS, stdout=output, stderr=output)
        try:
            url = f"http://127.0.0.1:{port}"
            _await(process, url, log)
            yield url
        finally:
            process.terminate()  # SIGINT would do nothing: a shell's background job ignores it, and so its children
            process.wait(ENDS_WITHIN_S)

    def _command(self, *arguments: str) -> list[str]:
        command = [SAM, "local", *arguments]
        assert shlex.join(command) in GUIDE.read_text(), f"the guide does not show: {shlex.join(command)}"
        return [*command, "--env-vars", str(self.environment_file), "--skip-pull-image", *_PROCESSOR]


def run_block(containing: str, replaced: dict[str, str]) -> str:
    """Runs the guide's block that contains a text, with the addresses of a test. Returns what it printed."""
    (block,) = (each for _, each in pages.PROGRAM.findall(GUIDE.read_text()) if containing in each)
    for shown, here in replaced.items():
        assert shown in block
        block = block.replace(shown, here)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        **_SURROUNDINGS,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# The guide says so too; elsewhere samconfig.toml has what is needed.
_PROCESSOR = (
    ()
    if machine() == "x86_64"
    else ("--parameter-overrides", f"Architecture={machine()} EndpointUrl=http://host.docker.internal:4570")
)
_SURROUNDINGS: dict[str, Any] = {
    "cwd": CHECKOUT,
    # No address of AWS for the SAM CLI itself, and never the user's own credentials.
    "env": {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "SAM_CLI_TELEMETRY": "0"},
    "stdin": subprocess.DEVNULL,
}


def _await(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = CLOCK.monotonic() + COMES_UP_WITHIN_S
    while CLOCK.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            httpx.get(url, trust_env=False)
        except httpx.TransportError:
            CLOCK.sleep(0.1)
        else:
            return
    raise AssertionError(f"nothing listens at {url}: {log.read_text()}")


@pytest.fixture(scope="session")
def sam(environment_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sam]:
    before = _containers()
    yield Sam(environment_file, tmp_path_factory.mktemp("sam"))
    assert _containers() <= before, "the SAM CLI left containers behind"


def _containers() -> set[str]:
    listed = subprocess.run(["docker", "ps", "--all", "--quiet"], capture_output=True, text=True, check=True)
    return set(listed.stdout.split())


@pytest.fixture(scope="session")
def endpoint(bridge: str | None) -> Iterator[Endpoint]:
    """A server that both this machine and a container reach."""
    server = Endpoint(bridge or "127.0.0.1")
    yield server
    server.close()


@pytest.fixture
def event() -> Any:
    """event("api/post_jobs"): one of events/, the same file as `sam local invoke -e` takes."""
    return lambda name: json.loads((CHECKOUT / "events" / f"{name}.json").read_text())
