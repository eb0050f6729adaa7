"""The blocks of the README and the guides are run here, one after the other, and the examples with them."""

from __future__ import annotations

import re
import select
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sweephand.local.settings import CHECKOUT
from tests.local_stack.pages import BLOCK, FIRST, bash, blocks_of, environment, free_port, moved, program_of, script_of
from tests.local_stack.waiting import CLOCK, WITHIN_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

PAGES = [page for folder in ("guide", "migrate", "reference") for page in (CHECKOUT / "docs" / folder).glob("*.md")]
GUIDES = sorted(page for page in PAGES if BLOCK.search(page.read_text()))


KEYS = "/v1/collections/default/signing-keys"


@pytest.fixture
def unsigned(stack: LocalStack) -> Iterator[None]:
    """Undoes what a page leaves in the collection that all share: deletes its keys, and publishes failures only."""
    yield
    client = stack.client()
    for key in client.get(KEYS).json()["items"]:
        client.delete(f"{KEYS}/{key['id']}").raise_for_status()
    client.patch("/v1/collections/default", json={"events": "failures"}).raise_for_status()


def test_a_rotation_leaves_the_new_key_and_its_displayed_secret(folder: Path, stack: LocalStack, unsigned: None):
    page = CHECKOUT / "docs" / "guide" / "signatures.md"
    show_both = 'echo "created $(echo "$NEW" | field "[\'id\']") $(echo "$SECOND" | field "[\'id\']")"'
    blocks = [blocks_of(FIRST)[0], *blocks_of(page)]

    with bash(moved(f"{script_of(blocks)}\n{show_both}", stack, free_port(), free_port()), folder) as shell:
        said, _ = shell.communicate(timeout=WITHIN_S)

    old, new = re.search(r"^created (\S+) (\S+)$", said, re.MULTILINE).groups()
    assert re.search(r"^whsec_\S+$", said, re.MULTILINE), said[-3_000:]
    assert [key["id"] for key in stack.client().get(KEYS).json()["items"]] == [new] != [old]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda page: page.name)
@pytest.mark.usefixtures("unsigned")
def test_the_code_blocks_of_a_guide_run_unchanged(guide: Path, folder: Path, stack: LocalStack):
    blocks = blocks_of(guide)
    if guide != FIRST:
        blocks = [blocks_of(FIRST)[0], *blocks]
    script = moved(script_of(blocks), stack, free_port(), free_port())

    with bash(script, folder) as shell:
        said, _ = shell.communicate(timeout=WITHIN_S)

    assert shell.returncode == 0, said[-3_000:]
    assert said.count("# next block") == len(blocks) - 1
    assert '"code"' in said or not any(no for no, _ in blocks), said[-3_000:]


def test_the_first_steps_with_the_command_line_run_unchanged(folder: Path, stack: LocalStack):
    curl, blocks = blocks_of(FIRST), blocks_of(FIRST, "Command line")
    script = moved(script_of(blocks), stack, free_port(), free_port())

    with bash(script, folder) as shell:
        said, _ = shell.communicate(timeout=WITHIN_S)

    assert len(blocks) == len(curl)
    assert sum("sweephand " in text for _, text in blocks[1:]) == 7
    assert shell.returncode == 0, said[-3_000:]
    assert "SUCCESS" in said
    assert "from the guide" in said


def test_the_first_steps_with_the_sdk_run_unchanged(folder: Path, stack: LocalStack):
    setup, endpoint = (text for _, text in blocks_of(FIRST)[:2])
    script = f"{setup}\n{endpoint}\nsleep 1\npython - <<'EOF'\n{program_of(FIRST)}EOF\nkill %1\n"

    with bash(moved(script, stack, free_port(), free_port()), folder) as shell:
        said, _ = shell.communicate(timeout=WITHIN_S)

    assert shell.returncode == 0, said[-3_000:]
    assert re.search(r" SUCCESS (ON_TIME|LATE) ", said), said[-3_000:]
    assert re.search(r"PAUSED\n.*ACTIVE\n.*resume\n", said, re.DOTALL), said[-3_000:]


def test_the_readers_own_job_of_the_readme_calls_their_endpoint(folder: Path, stack: LocalStack):
    port, closed = free_port(), free_port()
    (_, endpoint), (_, job) = blocks_of(CHECKOUT / "README.md")

    with bash(moved(endpoint, stack, port, closed), folder) as listening:
        made = subprocess.run(
            ["bash", "-e", "-c", moved(job, stack, port, closed)],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        line = _line(listening)

    assert '"name":"mine"' in made.stdout
    assert re.fullmatch(r"planned \d\d:\d\d:\d\d  \d+ ms late  attempt 1  \{'hello': 'me'\}\n", line)
    _delete(stack, "mine")


def _line(process: subprocess.Popen[str]) -> str:
    """Returns the first line that speaks of a planned instant; the server's own log is in between."""
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
    port = free_port()
    with bash(f"exec python3 examples/own_endpoint/endpoint.py --port {port}", folder) as endpoint:
        assert endpoint.stdout.readline() == f"listening on http://127.0.0.1:{port}/\n"
        done = subprocess.run(
            [
                *(sys.executable, "examples/own_endpoint/job.py"),
                *("--url", f"http://127.0.0.1:{port}/", "--stack", str(stack.folder.stack_file)),
            ],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        called = endpoint.stdout.readline()

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Z  SUCCESS (ON_TIME|LATE)  HTTP 200  attempt 1  \d+ ms late  \{\"done\": true\}\n$", done.stdout)
    assert re.fullmatch(r"planned \d\d:\d\d:\d\d  \d+ ms late  attempt 1  \{'hello': 'from Sweephand'\}\n", called)


def test_the_example_explains_a_missing_listener(folder: Path, stack: LocalStack):
    done = subprocess.run(
        [
            *(sys.executable, "examples/own_endpoint/job.py"),
            *("--url", f"http://127.0.0.1:{free_port()}/", "--stack", str(stack.folder.stack_file)),
        ],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "REQUEST_ERROR CONNECT" in done.stdout
