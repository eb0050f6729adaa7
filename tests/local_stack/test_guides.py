"""What the README and the guides show is run here, block by block, and the examples with it."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sweephand.local.settings import CHECKOUT
from tests.local_stack.waiting import CLOCK, WITHIN_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

BLOCK = re.compile(r"^```sh( refused)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = [page for folder in ("guide", "migrate") for page in (CHECKOUT / "docs" / folder).glob("*.md")]
GUIDES = sorted(page for page in PAGES if BLOCK.search(page.read_text()))
FIRST = CHECKOUT / "docs" / "guide" / "first-steps.md"


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture
def folder(tmp_path: Path, stack: LocalStack) -> Path:
    """A folder that looks like the checkout beside this running stack."""
    (tmp_path / ".local").symlink_to(stack.folder.root)
    (tmp_path / "examples").symlink_to(CHECKOUT / "examples")
    (tmp_path / "layers").symlink_to(CHECKOUT / "layers")
    return tmp_path


def _environment() -> dict[str, str]:
    here = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{here}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}


def _blocks(page: Path) -> list[tuple[bool, str]]:
    return [(bool(refused), text) for refused, text in BLOCK.findall(page.read_text())]


def _here(text: str, stack: LocalStack, port: int, closed_port: int) -> str:
    """The block with the addresses of this test. port: of its endpoint; closed_port: where nobody listens."""
    return (
        text.replace("http://127.0.0.1:8080", stack.base_url)
        .replace("127.0.0.1:9000", f"127.0.0.1:{port}")
        .replace('"127.0.0.1", 9000', f'"127.0.0.1", {port}')
        .replace("127.0.0.1:9001", f"127.0.0.1:{closed_port}")
        .replace("127.0.0.1:9004", f"127.0.0.1:{port}")
        .replace("endpoint.py --port 9000", f"endpoint.py --port {port}")
        .replace("endpoint.py &", f"endpoint.py --port {port} &")
        .replace("receiver.py 9004 &", f"receiver.py {port} &")
    )


@contextmanager
def _bash(script: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("guide", GUIDES, ids=lambda page: page.name)
def test_the_blocks_of_a_guide_run_as_they_stand(guide: Path, folder: Path, stack: LocalStack):
    blocks = _blocks(guide)
    if guide != FIRST:
        blocks = [_blocks(FIRST)[0], *blocks]
    parts = [f"if (\n{text}\n); then echo 'this was to be refused'; exit 97; fi" if no else text for no, text in blocks]
    script = _here("\necho '# next block'\n".join(parts), stack, _free_port(), _free_port())

    with _bash(script, folder) as shell:
        said, _ = shell.communicate(timeout=WITHIN_S)

    assert shell.returncode == 0, said[-3_000:]
    assert said.count("# next block") == len(blocks) - 1
    assert '"code"' in said or not any(no for no, _ in blocks), said[-3_000:]


def test_the_own_job_of_the_readme_calls_the_own_endpoint(folder: Path, stack: LocalStack):
    port, closed = _free_port(), _free_port()
    (_, endpoint), (_, job) = _blocks(CHECKOUT / "README.md")

    with _bash(_here(endpoint, stack, port, closed), folder) as listening:
        made = subprocess.run(
            ["bash", "-e", "-c", _here(job, stack, port, closed)],
            cwd=folder,
            env=_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        line = _line(listening)

    assert '"name":"mine"' in made.stdout
    assert re.fullmatch(r"planned \d\d:\d\d:\d\d  \d+ ms late  attempt 1  \{'hello': 'me'\}\n", line)
    _delete(stack, "mine")


def _line(process: subprocess.Popen[str]) -> str:
    """The first line that speaks of a planned instant; the server's own log stands between."""
    end = CLOCK.monotonic() + WITHIN_S
    while CLOCK.monotonic() < end:
        ready, _, _ = select.select([process.stdout], [], [], 1.0)
        if ready and (line := process.stdout.readline()).startswith("planned"):
            return line
    raise AssertionError("the endpoint was not called")


def _delete(stack: LocalStack, name: str) -> None:
    client = stack.client()
    for job in client.get("/v1/jobs", params={"name": name}).json()["items"]:
        client.delete(f"/v1/jobs/{job['id']}").raise_for_status()


def test_the_example_shows_the_line_of_its_first_run(folder: Path, stack: LocalStack):
    port = _free_port()
    with _bash(f"exec python3 examples/own_endpoint/endpoint.py --port {port}", folder) as endpoint:
        assert endpoint.stdout.readline() == f"listening on http://127.0.0.1:{port}/\n"
        done = subprocess.run(
            [
                *(sys.executable, "examples/own_endpoint/job.py"),
                *("--url", f"http://127.0.0.1:{port}/", "--stack", str(stack.folder.stack_file)),
            ],
            cwd=folder,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        called = endpoint.stdout.readline()

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Z  SUCCESS (ON_TIME|LATE)  HTTP 200  attempt 1  \d+ ms late  \{\"done\": true\}\n$", done.stdout)
    assert re.fullmatch(r"planned \d\d:\d\d:\d\d  \d+ ms late  attempt 1  \{'hello': 'from Sweephand'\}\n", called)


def test_the_example_says_why_where_nobody_listens(folder: Path, stack: LocalStack):
    done = subprocess.run(
        [
            *(sys.executable, "examples/own_endpoint/job.py"),
            *("--url", f"http://127.0.0.1:{_free_port()}/", "--stack", str(stack.folder.stack_file)),
        ],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "REQUEST_ERROR CONNECT" in done.stdout
