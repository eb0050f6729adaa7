"""Runs the lines of a crontab as tasks of a worker, on as many machines as run this program.

python examples/from_cron/crontab_worker.py NAME CRONTAB [--check]      --check prints the tasks and runs nothing

Reads the format of `crontab -l`: assignments, comments, five fields or a word such as @daily, and stdin after `%`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sweephand.sdk.worker import Worker

ASSIGNMENT = re.compile(r"(\w+)\s*=\s*(.*)")
LINE = re.compile(r"(@\w+|(?:\S+\s+){4}\S+)\s+(.+)")
ZONES = ("CRON_TZ", "TZ")
FIELD_OF_STDIN = re.compile(r"(?<!\\)%")


@dataclass(frozen=True)
class Line:
    """A line that runs a command. name: made from the command, so that the job stays the same when its time changes."""

    name: str
    expression: str
    command: str
    stdin: str
    variables: dict[str, str]

    def run(self) -> str:
        """Runs the command as cron does. Returns the end of its output; a status other than 0 fails the run."""
        shell = self.variables.get("SHELL", "/bin/sh")
        done = subprocess.run(
            [shell, "-c", self.command],
            input=self.stdin,
            env={"PATH": "/usr/bin:/bin", **self.variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"status {done.returncode}: {done.stdout[-1_000:]}")
        print(f"{self.name}: {done.stdout.strip()}", flush=True)
        return done.stdout[-1_000:]


def lines(text: str) -> Iterator[Line]:
    """Reads a crontab. Raises ValueError for a line that is neither an assignment nor a command with its schedule."""
    variables: dict[str, str] = {}
    seen: dict[str, int] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if given := ASSIGNMENT.fullmatch(line):
            variables[given[1]] = given[2].strip("\"'")
            continue
        found = LINE.fullmatch(line)
        if found is None or found[1] == "@reboot":
            raise ValueError(f"line {number} has no schedule that the service knows: {line}")
        command, *stdin = FIELD_OF_STDIN.split(found[2])
        command = command.replace(r"\%", "%").strip()
        seen[command] = seen.get(command, 0) + 1
        name = command[:100] + (f" ({seen[command]})" if seen[command] > 1 else "")
        yield Line(name, found[1], command, "\n".join(stdin), dict(variables))


def worker_of(name: str, text: str) -> Worker:
    """Returns a worker with a task for each line."""
    worker = Worker(f"cron-{name}", retry={"type": "none"})
    for line in lines(text):
        zone = next((line.variables[each] for each in ZONES if each in line.variables), "UTC")
        worker.cron(line.expression, name=line.name, zone=zone, overlap="allow")(line.run)
        print(f"{line.expression}  {zone}  {line.name}", flush=True)
    return worker


if __name__ == "__main__":
    found = worker_of(sys.argv[1], Path(sys.argv[2]).read_text())
    if "--check" not in sys.argv:
        found.run()
