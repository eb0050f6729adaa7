"""Root's page as a program: a real process that schedules, receives its events from its queue, dies and comes back."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from sweephand.local.settings import CHECKOUT
from sweephand.sdk import Sweephand
from tests.local_stack.test_worker import end, environment
from tests.local_stack.waiting import WITHIN_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

PROGRAM = CHECKOUT / "examples" / "root" / "raids.py"
READ = re.compile(r"^(missed: )?read the feed (\S+), (\d\d:\d\d:\d\d)$", re.MULTILINE)
STEP = timedelta(seconds=5)


@contextmanager
def bot(stack: LocalStack, rows: Path, printed: Path) -> Iterator[subprocess.Popen[str]]:
    with printed.open("w") as out:
        command = [sys.executable, str(PROGRAM), str(rows)]
        process = subprocess.Popen(command, env=environment(stack), stdin=subprocess.PIPE, stdout=out, text=True)
    try:
        yield process
    finally:
        end(process)
        process.stdin.close()


def says(printed: Path, *lines: str) -> None:
    until(printed.read_text, lambda text: all(line in text for line in lines))


def tell(process: subprocess.Popen[str], line: str) -> None:
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def times(feed: str, *outputs: Path) -> list[datetime]:
    read = (READ.findall(each.read_text()) for each in outputs)
    return [datetime.strptime(at, "%H:%M:%S") for found in read for _, name, at in found if name == feed]  # noqa: DTZ007


def is_whole(times: list[datetime]) -> bool:
    return {*times} == {min(times) + n * STEP for n in range((max(times) - min(times)) // STEP + 1)}


def test_the_root_page_runs_as_a_program_that_crashes_and_restarts(stack: LocalStack, tmp_path: Path) -> None:
    rows, first, second, third = (tmp_path / name for name in ("rows.json", "first", "second", "third"))
    rows.write_text(json.dumps({"news": "PT5S"}))
    with Sweephand.local(stack.folder.root / "stack.json", tenant="acme") as sh:
        try:
            with bot(stack, rows, first) as process:
                says(first, "feeds: 1 created, 0 unchanged", "\nread the feed news")
                for line in ("remind dragon 3", "remind hydra 3600", "list", "call off hydra", "remind giant 8"):
                    tell(process, line)
                says(first, "raids: dragon, hydra", "1 called off", "remind the raiders of dragon, ", "of giant")
                process.kill()

            rows.write_text(json.dumps({"news": "PT5S", "weather": "PT5S"}))  # the crash came before its job
            until(lambda: sh.consumers.get("raids").held or 0, lambda held: held >= 2)
            with bot(stack, rows, second) as process:
                says(second, "feeds: 1 created, 1 unchanged", "missed: read the feed news", "\nread the feed weather")
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=WITHIN_S) == 0

            with bot(stack, rows, third) as process:
                says(third, "feeds: 0 created, 2 unchanged", "\nread the feed news", "\nread the feed weather")
                until(lambda: times("news", first, second, third), is_whole)  # one event was in the dead process's hand
                tell(process, "quit")
                assert process.wait(timeout=WITHIN_S) == 0
        finally:
            sh.job_sets.delete("feeds", allow_deletes=2)

    assert "hydra" not in second.read_text() + third.read_text()
    for output in (second, third):
        late = [at for missed, name, at in READ.findall(output.read_text()) if missed and name == "news"]
        assert len(late) == len({*late})
