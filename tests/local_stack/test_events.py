"""Real events through the embedded AWS's own bus, by a rule, to a queue: as the example hears them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from sweephand.domain.instants import text
from sweephand.local.settings import CHECKOUT
from tests.local_stack.waiting import CLOCK, WITHIN_S
from tests.support.bus import validator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.local_stack.conftest import LocalStack

pytestmark = [pytest.mark.emulator, pytest.mark.usefixtures("collection")]

PATTERN = {"source": ["sweephand"], "detail": {"collection": ["heard"]}}


@pytest.fixture
def listening(stack: LocalStack) -> Iterator[subprocess.Popen[str]]:
    """examples/listen at work."""
    command = [sys.executable, str(CHECKOUT / "examples" / "listen" / "listen.py"), "--json"]
    command += ["--pattern", json.dumps(PATTERN), "--stack", str(stack.folder.stack_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ, text=True) as process:
        assert process.stdout is not None
        deaf = threading.Timer(WITHIN_S, process.kill)
        deaf.start()
        assert process.stdout.readline() == f"listening on the bus {stack.file.event_bus_name}\n"
        try:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(WITHIN_S) == 0
        finally:
            deaf.cancel()
            process.kill()


@pytest.fixture
def collection(stack: LocalStack) -> Iterator[None]:
    client = stack.client()
    client.post("/v1/collections", json={"name": "heard", "events": "all"}).raise_for_status()
    yield
    client.delete("/v1/collections/heard").raise_for_status()


def test_a_user_is_notified_of_a_job_and_its_failure(stack: LocalStack, listening: subprocess.Popen[str]) -> None:
    client = stack.client()
    body = {
        "name": "unheard-of",
        "collection": "heard",
        "action": {"type": "http", "url": "http://127.0.0.1:9/"},
        "schedules": [{"at": text(CLOCK.now())}],
    }
    job = client.post("/v1/jobs", json=body).raise_for_status().json()

    told = _until(listening, "job.created", "run.failed")  # in any order: a warm executor may be the first to tell

    for event in told.values():
        assert [error.message for error in validator(event["detail-type"]).iter_errors(event)] == []
        assert (event["detail"]["tenant"], event["detail"]["jobId"]) == ("acme", job["id"])
    failed = told["run.failed"]["detail"]
    run = client.get(f"/v1/runs/{failed['runId']}").raise_for_status().json()
    assert (run["state"], run["reason"], run["notes"]) == (failed["state"], "CONNECT", [])
    client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
    assert "run.failed" not in _until(listening, "job.deleted"), "each fact is shown once, however often it is told"


def _until(listening: subprocess.Popen[str], *kinds: str) -> dict[str, Any]:
    """Collects events by detail-type: all that is heard until each of these kinds was."""
    assert listening.stdout is not None
    told: dict[str, Any] = {}
    while not told.keys() >= set(kinds):
        line = listening.stdout.readline()
        assert line, f"heard only {sorted(told)} within {WITHIN_S} s"
        event = json.loads(line)
        told[event["detail-type"]] = event
    return told
