"""Long work through the real function and its queue: what failed is run again as a group, and told as it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.local_stack.conftest import CLOCK

if TYPE_CHECKING:
    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

WITHIN_S = 60.0


def until(look: Callable[[], Any], wanted: Callable[[Any], bool]) -> Any:
    deadline = CLOCK.monotonic() + WITHIN_S
    while not wanted(there := look()):
        assert CLOCK.monotonic() < deadline, there
        CLOCK.sleep(0.2)
    return there


def test_what_failed_is_run_again_as_a_group(stack: LocalStack) -> None:
    client = stack.client()

    def get(path: str) -> Any:
        return client.get(path).raise_for_status().json()

    action = {"type": "http", "url": "http://127.0.0.1:1/nobody-is-there"}
    job = client.post("/v1/jobs", json={"action": action}).raise_for_status().json()["id"]
    for _ in range(2):
        client.post(f"/v1/jobs/{job}/run", json={}).raise_for_status()

    groups = f"/v1/errors?jobId={job}"
    (group,) = until(lambda: get(groups)["items"], lambda items: bool(items) and items[0]["count"] == 2)
    body = {"group": group["id"], "ratePerMinute": 6_000, "expectedCount": 2}
    begun = client.post("/v1/errors:redrive", json=body).raise_for_status()
    operation = until(lambda: get(begun.headers["location"]), lambda there: there["state"] == "DONE")

    assert operation["progress"] == {"done": 2, "total": 2, "failed": 0}
    runs = until(
        lambda: get(f"/v1/runs?jobId={job}")["items"],
        lambda found: len(found) == 4 and all(run["status"] == "COMPLETED" for run in found),
    )
    assert sum(run["rerunOf"] is not None for run in runs) == 2
    client.delete(f"/v1/jobs/{job}").raise_for_status()
