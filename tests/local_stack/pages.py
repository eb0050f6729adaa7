"""Pages whose blocks for a shell are run as they stand, at the addresses of a test."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sweephand.local.settings import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.local_stack.conftest import LocalStack

BLOCK = re.compile(r"^```sh( refused)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TAB = re.compile(r"^::::\{tab-item\} ([^\n]+)\n(.*?)^::::$", re.DOTALL | re.MULTILINE)
PROGRAM = re.compile(r"^```(\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FIRST = CHECKOUT / "docs" / "guide" / "first-steps.md"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def environment() -> dict[str, str]:
    here = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{here}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}


def blocks_of(page: Path, tab: str = "curl") -> list[tuple[bool, str]]:
    """Returns the blocks of a page, each with whether it is to be refused. tab: the one that its reader has chosen."""
    text = TAB.sub(lambda found: found[2] if found[1] == tab else "", page.read_text())
    return [(bool(refused), block) for refused, block in BLOCK.findall(text)]


def program_of(page: Path, tab: str = "Python", language: str = "python") -> str:
    """Returns the program that the tabs of a page in one language make together."""
    text = "".join(text for name, text in TAB.findall(page.read_text()) if name == tab)
    return "".join(block for written_in, block in PROGRAM.findall(text) if written_in == language)


def script_of(blocks: Iterable[tuple[bool, str]]) -> str:
    """Returns a script that runs the blocks one after the other, and fails where one is not refused that should be."""
    parts = [f"if (\n{text}\n); then echo 'this was to be refused'; exit 97; fi" if no else text for no, text in blocks]
    return "\necho '# next block'\n".join(parts)


def moved(text: str, stack: LocalStack, port: int, closed_port: int) -> str:
    """Returns a script with the addresses of this test. port: of its endpoint; closed_port: where nobody listens."""
    return (
        text.replace("http://127.0.0.1:8080", stack.base_url)
        .replace("127.0.0.1:9000", f"127.0.0.1:{port}")
        .replace('"127.0.0.1", 9000', f'"127.0.0.1", {port}')
        .replace("127.0.0.1:9001", f"127.0.0.1:{closed_port}")
        .replace("127.0.0.1:9004", f"127.0.0.1:{port}")
        .replace("--port 9000", f"--port {port}")
        .replace("--port 9004", f"--port {port}")
        .replace("endpoint.py &", f"endpoint.py --port {port} &")
    )


@contextmanager
def bash(script: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Runs a script in a folder. All that it has started ends with the context."""
    process = subprocess.Popen(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=environment(),
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
