"""The demo and the report on the real template and functions, as `make run` and `make demo-report` start them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from sweephand.local import demo, stack_file
from sweephand.local.api import Api
from sweephand.local.folder import StateFolder, held
from sweephand.local.settings import PACKAGE_ROOT
from sweephand.sources import SystemClock

pytestmark = pytest.mark.emulator

CLOCK = SystemClock()


def start(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "sweephand.local", *arguments],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("SWEEPHAND_")},
            "PYTHONPATH": str(PACKAGE_ROOT),
            "SWEEPHAND_STATE": str(folder.root),
            "SWEEPHAND_PORT": "0",
            "SWEEPHAND_AWS_PORT": "0",
            "COLUMNS": "80",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate(timeout=60)
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


def test_a_run_shows_the_demo_and_the_users_own_job_and_a_report_beside_it_judges(tmp_path, own_endpoint):
    url, arrived = own_endpoint
    folder = StateFolder(tmp_path)
    run = start(folder, "run")
    first = run.stdout.readline()
    while (stack := stack_file.read(folder)) is None:
        assert run.poll() is None
        CLOCK.sleep(0.1)
    api = Api(stack.base_url, stack.tenants["globex"])
    body = {"name": "mine", "schedules": [{"every": "PT2S"}], "action": {"type": "http", "method": "GET", "url": url}}
    api.call("POST", "/v1/jobs", body)
    api.close()

    judged, verdict, _ = finish(start(folder, "report", "--seconds", "35"))
    run.send_signal(signal.SIGINT)
    status, shown, errors = finish(run)

    assert first == "Starting the emulator ...\n"
    assert (status, errors) == (0, "")
    assert str(folder.stack_file) in shown
    assert "curl -u acme." in shown
    lines = [text.split() for text in shown.splitlines()]
    assert ["PLANNED", "JOB", "SCHEDULE", "STATE", "REASON", "HTTP", "ATTEMPT", "LATE", "ms"] in lines
    mine = [cells for cells in lines if len(cells) > 5 and cells[2:6] == ["PT2S", "SUCCESS", "ON_TIME", "204"]]
    assert len(mine) >= 10
    assert len(set(arrived)) == len(arrived) >= 10
    beats = [cells for cells in lines if cells[1:5] == ["demo-beat", "10s", "SUCCESS", "ON_TIME"]]
    assert len(beats) >= 3
    assert ["demo-flaky", "20s", "SUCCESS", "ON_TIME", "200", "3"] in [cells[1:7] for cells in lines]
    assert judged == 0, verdict
    assert len(verdict.splitlines()) == 4
    assert "early 0   lost 0" in verdict
    assert max(len(text) for text in shown.splitlines() if "curl" not in text and "-d '" not in text) <= 100
    assert not held(folder)


def test_the_demo_loads_once_however_often_it_is_loaded(stack):
    api = Api(stack.base_url, stack.file.tenants["globex"])
    try:
        first = demo.ensure(api, demo.jobs("http://127.0.0.1:1", "http://127.0.0.1:2"))
        again = demo.ensure(api, demo.jobs("http://127.0.0.1:3", "http://127.0.0.1:2"))
        addresses = {job["name"]: job["action"]["url"] for job in api.items("/v1/jobs")}
        demo.suspend_orphans(api)
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
def test_the_minute_rule_itself_carries_a_series_on(stack, own_endpoint):
    # The API sends the first occurrence of a new schedule; the second one only a tick can send, and nobody calls it.
    url, arrived = own_endpoint
    action = {"type": "http", "method": "GET", "url": url}
    client = stack.client()
    job = client.post("/v1/jobs", json={"action": action, "schedules": [{"every": "PT10S"}]}).json()

    end = CLOCK.monotonic() + 90
    while len(arrived) < 3 and CLOCK.monotonic() < end:
        CLOCK.sleep(0.5)

    assert len(arrived) == len(set(arrived)) >= 3
    client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
