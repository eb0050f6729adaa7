"""Flow keys through the real functions and queues: one call at a time, a pause, the live view, a circuit."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.local_stack.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

NOBODY = "http://127.0.0.1:1/nobody-is-there"


@pytest.fixture
def client(stack: LocalStack) -> Iterator[httpx.Client]:
    client = stack.client()
    made: list[str] = []
    client.event_hooks["response"].append(
        lambda answer: made.append(answer.headers["location"]) if answer.status_code == 201 else None
    )
    yield client
    for place in reversed(made):
        until(lambda place=place: client.delete(place).status_code, lambda status: status in {204, 404})


def get(client: httpx.Client, path: str) -> Any:
    return client.get(path).raise_for_status().json()


def jobs(client: httpx.Client, key: str, url: str, count: int) -> list[str]:
    action = {"type": "http", "url": url}
    wanted = {"action": action, "policies": {"flowKey": key}}
    return [client.post("/v1/jobs", json=wanted).raise_for_status().json()["id"] for _ in range(count)]


def started(client: httpx.Client, made: list[str]) -> None:
    for job in made:
        client.post(f"/v1/jobs/{job}/run", json={}).raise_for_status()


def runs(client: httpx.Client, made: list[str]) -> list[dict[str, Any]]:
    return [run for job in made for run in get(client, f"/v1/runs?jobId={job}")["items"]]


def test_two_jobs_share_one_slot_wait_during_a_pause_and_run_one_after_the_other(
    client: httpx.Client, stack: LocalStack
) -> None:
    client.post("/v1/flow-keys", json={"name": "one-place", "parallelism": 1}).raise_for_status()
    made = jobs(client, "one-place", NOBODY, 2)
    client.post("/v1/flow-keys/one-place/pause", json={"note": "lunch"}).raise_for_status()
    for _ in range(2):
        started(client, made)

    live = until(lambda: get(client, "/v1/flow-keys/one-place"), lambda there: there["live"]["waiting"] == 4)
    assert (live["state"], live["live"]["running"]) == ("PAUSED", 0)
    assert {run["state"] for run in runs(client, made)} == {"QUEUED"}

    client.post("/v1/flow-keys/one-place/resume").raise_for_status()
    ended = until(lambda: runs(client, made), lambda found: all(run["status"] == "COMPLETED" for run in found))
    stamps = sorted((run["startedAt"], run["finishedAt"]) for run in ended)
    assert all(datetime.fromisoformat(a[1]) <= datetime.fromisoformat(b[0]) for a, b in pairwise(stamps)), stamps
    live = until(lambda: get(client, "/v1/flow-keys/one-place")["live"], lambda there: there["running"] == 0)
    assert live["waiting"] == 0


def test_a_target_that_fails_twice_opens_its_circuit_and_is_tried_one_call_at_a_time(client: httpx.Client) -> None:
    circuit = {"failures": 2, "probeSeconds": 2}
    client.post("/v1/flow-keys", json={"name": "breaks", "circuit": circuit}).raise_for_status()
    made = jobs(client, "breaks", NOBODY, 2)
    started(client, made)

    (found,) = until(
        lambda: get(client, "/v1/flow-keys/breaks")["live"]["circuits"],
        lambda there: bool(there) and there[0]["state"] == "OPEN",
    )
    assert (found["failures"], found["lastFailure"]) == (2, "CONNECT")
    opened_at = datetime.fromisoformat(found["since"])

    started(client, made)
    ended = until(lambda: runs(client, made), lambda there: all(run["status"] == "COMPLETED" for run in there))
    # An executor goes by what it knows for up to five seconds: what begins later tries an open circuit. Whether it may,
    # it asks between its start and its end, which are moments apart, or seconds on a busy machine.
    tries = sorted([datetime.fromisoformat(run[of]) for of in ("startedAt", "finishedAt")] for run in ended)
    late = [each for each in tries if (each[0] - opened_at).total_seconds() > 7]
    assert len(ended) == 4
    assert all((later[1] - before[0]).total_seconds() >= 2 for before, later in pairwise(late)), tries
