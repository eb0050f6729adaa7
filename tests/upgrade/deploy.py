"""python -m tests.upgrade.deploy SECONDS: deploys this version over the one before on a local stack under load.

Each job calls an endpoint here every second. The recorded version runs for a third of the time; then this one is
deployed over it, then once more with more shards. Nothing may be lost, doubled or early.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from sweephand import __version__
from sweephand.base.sources import SystemClock
from sweephand.local import stack_file
from sweephand.local.api import Api
from sweephand.local.folder import StateFolder
from tests.support.aws import ROOT
from tests.upgrade import recording

CLOCK = SystemClock()
JOBS, SHARDS = 5, 80
SETTLES_S, LATE_S = 30, 120
"""How long repeated calls may come after the last instant, and how long late ones on a busy machine."""
SECOND = timedelta(seconds=1)
START = ("sweephand", "dev", "--detach")
STARTS = {"0.1.0": ("sweephand.local", "stack")}
"""How recorded versions start in the background, if not with START."""


class Endpoint(ThreadingHTTPServer):
    """A target that records the calls of each job: planned instant -> instants of the calls."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Call)
        self.calls: dict[str, dict[datetime, list[datetime]]] = defaultdict(lambda: defaultdict(list))


class _Call(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        now = CLOCK.now()
        planned = datetime.fromisoformat(self.headers["Sweephand-Planned-At"])
        self.server.calls[self.headers["Sweephand-Job-Id"]][planned].append(now)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


def judged(calls: Mapping[datetime, list[datetime]], until: datetime) -> dict[str, list[datetime]]:
    """Returns the planned instants whose call is due, lost, doubled or early, from the first one on."""
    first = min(calls)
    due = [first + number * SECOND for number in range(int((until - first) / SECOND))]
    return {
        "due": due,
        "lost": [planned for planned in due if planned not in calls],
        "doubled": [planned for planned, each in calls.items() for _ in each[1:]],
        "early": [planned for planned, each in calls.items() for at in each if at < planned],
    }


def last_before(version: str) -> Path:
    """Returns the recording of the last version that is older than the given one."""
    recorded = {_numbers(path.stem): path for path in recording.FOLDER.glob("*.json")}
    return recorded[max(numbers for numbers in recorded if numbers < _numbers(version))]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def run(seconds: float) -> int:
    before = last_before(__version__)
    commit = json.loads(before.read_text())["commit"]
    with tempfile.TemporaryDirectory() as folder, _checked_out(commit, Path(folder) / "recorded") as old:
        state = Path(folder) / "state"
        environment = {**os.environ, "SWEEPHAND_STATE": str(state), "SWEEPHAND_PORT": "0"}
        endpoint = Endpoint()
        Thread(target=endpoint.serve_forever, daemon=True).start()
        try:
            _python(old, environment, *STARTS.get(before.stem, START))
            _create(state, f"http://127.0.0.1:{endpoint.server_port}/")
            CLOCK.sleep(seconds / 3)
            _say("this version is deployed over it")
            _python(ROOT, environment, "sweephand.local", "deploy")
            CLOCK.sleep(seconds / 3)
            shards = {**environment, "SWEEPHAND_PARAMETERS": f"Shards={SHARDS}"}
            _say("more shards are deployed")
            _python(ROOT, shards, "sweephand.local", "deploy")
            CLOCK.sleep(seconds / 3)
            until = CLOCK.now()
            _say("the last calls are due")
            CLOCK.sleep(SETTLES_S)
            _await_late(endpoint, until)
        finally:
            _python(ROOT, environment, "sweephand", "dev", "--stop")
            endpoint.shutdown()
    return _report(commit, [judged(calls, until) for calls in endpoint.calls.values()])


def _say(what: str) -> None:
    sys.stdout.write(f"{CLOCK.now():%H:%M:%S} {what}\n")
    sys.stdout.flush()


def _await_late(endpoint: Endpoint, until: datetime) -> None:
    end = CLOCK.monotonic() + LATE_S
    while CLOCK.monotonic() < end and any(judged(calls.copy(), until)["lost"] for calls in endpoint.calls.values()):
        CLOCK.sleep(1)


def _report(commit: str, found: list[dict[str, list[datetime]]]) -> int:
    all_of = {name: sorted(at for each in found for at in each[name]) for name in ("due", "lost", "doubled", "early")}
    sums = {name: len(instants) for name, instants in all_of.items()}
    sys.stdout.write(f"{commit[:12]}, then this version, then {SHARDS} shards: {json.dumps(sums)}\n")
    for name in ("lost", "doubled", "early"):
        sys.stdout.writelines(f"{name}: {at:%H:%M:%S}\n" for at in all_of[name])
    good = len(found) == JOBS and not sums["lost"] + sums["doubled"] + sums["early"]
    return 0 if good else 1


def _create(state: Path, url: str) -> None:
    stack = stack_file.read(StateFolder(state))
    assert stack is not None
    tenant = next(iter(stack.tenants))
    api = Api(stack.base_url, stack.tenants[tenant])
    for number in range(JOBS):
        job = {"name": f"load-{number}", "action": {"type": "http", "url": url}, "schedules": [{"every": "PT1S"}]}
        api.call("POST", "/v1/jobs", job)
    api.close()


@contextmanager
def _checked_out(commit: str, folder: Path) -> Iterator[Path]:
    """Makes a work tree of the commit, with the environment of this one."""
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(folder), commit], cwd=ROOT, check=True)
    try:
        (folder / ".venv").symlink_to(ROOT / ".venv")
        yield folder
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(folder)], cwd=ROOT, check=True)


def _python(root: Path, environment: Mapping[str, str], *module: str) -> None:
    """Runs a module with the code of this tree."""
    own = {**environment, "PYTHONPATH": str(root / "layers/sweephand/python")}
    subprocess.run([str(root / ".venv/bin/python"), "-m", *module], cwd=root, env=own, check=True)


if __name__ == "__main__":
    sys.exit(run(float(sys.argv[1])))
