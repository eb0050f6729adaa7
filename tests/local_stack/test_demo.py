"""The demo and its report on the real template and functions, as `make run` and `make demo-report` start them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from sweephand.local import stack_file
from sweephand.local.api import Api
from sweephand.local.demo import jobs
from sweephand.local.folder import StateFolder, held
from sweephand.local.settings import CHECKOUT, PACKAGE_ROOT
from tests.local_stack.waiting import WITHIN_S, until

pytestmark = pytest.mark.emulator


def start(folder, *arguments, out=subprocess.PIPE, err=subprocess.PIPE):
    return subprocess.Popen(
        [sys.executable, "-m", "sweephand.local.demo", *arguments],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("SWEEPHAND_")},
            "PYTHONPATH": f"{PACKAGE_ROOT}:{CHECKOUT}",
            "SWEEPHAND_STATE": str(folder.root),
            "SWEEPHAND_PORT": "0",
            "SWEEPHAND_AWS_PORT": "0",
            "COLUMNS": "80",
        },
        stdout=out,
        stderr=err,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=WITHIN_S)
    return process.returncode, out, err


@pytest.fixture
def own_endpoint():
    """An endpoint of the user's own; yields (url, what arrived)."""
    arrived = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            arrived.append(self.headers["Sweephand-Run-Id"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", arrived
    server.shutdown()
    server.server_close()


def test_a_run_shows_the_demo_and_the_users_own_job_and_a_parallel_report_judges_them(tmp_path, own_endpoint):
    url, arrived = own_endpoint
    folder = StateFolder(tmp_path / "state")
    shown, errors = tmp_path / "shown", tmp_path / "errors"
    wanted = {"globex/mine PT2S 204 1": 10, "demo-beat 10s 200 1": 3, "demo-flaky 20s 200 3": 1}
    with shown.open("w") as out, errors.open("w") as err:
        run = start(folder, "run", out=out, err=err)
    try:
        stack = until(lambda: stack_file.read(folder) or run.poll() is not None)
        assert run.poll() is None, errors.read_text()
        api = Api(stack.base_url, stack.tenants["globex"])
        action = {"type": "http", "method": "GET", "url": url}
        api.call("POST", "/v1/jobs", {"name": "mine", "schedules": [{"every": "PT2S"}], "action": action})
        api.close()

        judged, verdict, _ = finish(start(folder, "report", "--seconds", "35"))
        until(shown.read_text, lambda text: run.poll() is not None or enough(text, wanted))
        assert run.poll() is None, errors.read_text() + verdict
        run.send_signal(signal.SIGINT)
        status = run.wait(WITHIN_S)
    finally:
        run.kill()

    text = shown.read_text()
    assert text.startswith("Starting the emulator ...\n")
    assert (status, errors.read_text()) == (0, "")
    assert str(folder.stack_file) in text
    assert "curl -u acme." in text
    header = ["PLANNED", "JOB", "SCHEDULE", "STATE", "REASON", "HTTP", "ATTEMPT", "LATE", "ms"]
    assert header in [line.split() for line in text.splitlines()]
    assert len(set(arrived)) == len(arrived) >= 10
    assert judged == 0, verdict
    assert len(verdict.splitlines()) == 4
    assert "early 0   lost 0" in verdict
    as_long_as_they_are = ("curl", "-d '", str(folder.root))
    assert max(len(line) for line in text.splitlines() if not any(part in line for part in as_long_as_they_are)) <= 100
    assert not held(folder)


def enough(shown, wanted):
    there = successes(shown)
    return all(there[row] >= least for row, least in wanted.items())


def successes(shown):
    """Counts the lines of each kind: job, schedule, HTTP status and attempt. A busy machine may be late with any."""
    cells = (line.split() for line in shown.splitlines())
    good = [each for each in cells if len(each) == 8 and each[3] == "SUCCESS" and each[4] in {"ON_TIME", "LATE"}]
    return Counter(" ".join((*each[1:3], *each[5:7])) for each in good)


def test_repeated_loading_creates_the_demo_once(stack):
    api = Api(stack.base_url, stack.file.tenants["globex"])
    try:
        first = jobs.ensure(api, jobs.jobs("http://127.0.0.1:1", "http://127.0.0.1:2"))
        again = jobs.ensure(api, jobs.jobs("http://127.0.0.1:3", "http://127.0.0.1:2"))
        addresses = {job["name"]: job["action"]["url"] for job in api.items("/v1/jobs")}
        jobs.suspend_orphans(api)
        active = {job["name"]: job["active"] for job in api.items("/v1/jobs")}
    finally:
        for job_id in first.values():
            api.call("DELETE", f"/v1/jobs/{job_id}")
        api.close()

    assert first == again
    assert addresses["demo-beat"] == "http://127.0.0.1:3/sync"
    assert set(active) >= set(first)
    assert not any(active[name] for name in first)


@pytest.mark.minute_rule
def test_the_minute_rule_itself_continues_a_series(stack, own_endpoint):
    # The API sends the first occurrence of a new schedule; the second one only a tick can send, and nobody calls it.
    url, arrived = own_endpoint
    action = {"type": "http", "method": "GET", "url": url}
    client = stack.client()
    job = client.post("/v1/jobs", json={"action": action, "schedules": [{"every": "PT10S"}]}).json()

    three = until(lambda: arrived[:3], lambda there: len(there) == 3)

    assert len(set(three)) == 3
    client.delete(f"/v1/jobs/{job['id']}").raise_for_status()


def test_a_report_and_a_run_can_load_the_demo_at_the_same_time(stack):
    class Early(Api):
        """Its first list comes from before the other process has created the jobs."""

        looks = 0

        def items(self, path, *, query=None):
            self.looks += 1
            return iter(()) if self.looks == 1 else super().items(path, query=query)

    wanted = jobs.jobs("http://127.0.0.1:1", "http://127.0.0.1:2")
    api, early = (kind(stack.base_url, stack.file.tenants["globex"]) for kind in (Api, Early))
    first = jobs.ensure(api, wanted)
    try:
        assert jobs.ensure(early, wanted) == first
    finally:
        for job_id in first.values():
            api.call("DELETE", f"/v1/jobs/{job_id}")
        api.close()
        early.close()
