"""Histories of the Azure facade: its routes are asked as by a client, which repeats what was not answered."""

from __future__ import annotations

import json
from typing import Any

from sweephand.base.errors import Unavailable
from sweephand.domain.instants import text
from sweephand.domain.run import Kind, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.server.facades.azure.routes import AzureApi
from sweephand.server.security.caller import Door
from sweephand.server.security.tokens import derive_keys
from sweephand.server.store.dynamo.table import ScheduleItem
from sweephand.server.store.jobs.jobs import schedule_of
from tests.contract.azure.api import COLLECTION, EVERY_HOUR, HTTP, JOB, VERSION
from tests.contract.calls import basic, event
from tests.contract.native.api import GUARD, STACK_SECRET
from tests.faults.play import NOON, TENANT, TICK, Play, Scenario, minutes
from tests.support.endpoint import BUSY, OK, WRONG

HEADERS = {
    "authorization": basic("provider.admin", STACK_SECRET),
    "sweephand-tenant": TENANT,
    "content-type": "application/json",
    "x-ms-client-request-id": "8f6a-1",
}


def asked(at: Play, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Asks until the answer is no 5xx; returns status and body."""
    door = Door(derive_keys("test", STACK_SECRET, None), STACK_SECRET, lambda _tenant, _name: None)

    def request() -> tuple[int, Any]:
        api = AzureApi(at.scene.world, GUARD, lambda: door)
        sent = None if body is None else json.dumps(body)
        answer = api.handle(event(method, path, f"api-version={VERSION}", HEADERS, sent), "request")
        if answer["statusCode"] >= 500:
            raise Unavailable(answer["body"])
        return answer["statusCode"], json.loads(answer["body"] or "null")

    return at.ask(request)


def made(at: Play, path: str = JOB, **properties: Any) -> Schedule:
    """Creates a collection and a job in it; returns the job's schedule."""
    assert asked(at, "PUT", COLLECTION, {"location": "West US"})[0] in {200, 201}
    status, shown = asked(at, "PUT", path, {"properties": {"action": HTTP, **properties}})
    assert status in {200, 201}, shown
    return schedules(at)[-1]


def schedules(at: Play) -> list[Schedule]:
    """Returns all schedules by their creation."""
    rows = [item for item in at.scene.items() if "#JOB#" in item["pk"]["S"] and item["sk"]["S"].startswith("SCH#")]
    found = [schedule_of(ScheduleItem.from_raw_data(row)) for row in rows]
    return sorted(found, key=lambda each: each.id)


class AzureOneTime(Scenario):
    """A one-time job is created, fails once, and is Completed at the end of its second attempt."""

    name = "azure-one-time"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = lambda call: BUSY if call.attempt == 1 else OK
        at.expect(made(at, startTime=text(NOON + TICK)), minutes(1))
        at.go_to(3)

    def check(self, at: Play) -> None:
        shown = asked(at, "GET", JOB)[1]["properties"]
        assert (shown["state"], shown["status"]["executionCount"], shown["status"]["faultedCount"]) == (
            "Completed",
            1,
            0,
        )


class AzureFaulted(Scenario):
    """A one-time job fails for good: it is Faulted, and its error action runs."""

    name = "azure-faulted"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = WRONG
        action = {**HTTP, "retryPolicy": {"retryType": "None"}}
        schedule = made(at, startTime=text(NOON + TICK), action={**action, "errorAction": action})
        at.expect(schedule, dict.fromkeys(minutes(1), State.REQUEST_ERROR), state=ScheduleState.FAULTED)
        at.go_to(3)

    def check(self, at: Play) -> None:
        assert asked(at, "GET", JOB)[1]["properties"]["state"] == "Faulted"
        assert len(at.runs(Kind.ERROR_ACTION)) == 1


class AzureRun(Scenario):
    """A disabled job is run by hand: however often the client repeats the request, once."""

    name = "azure-run"

    def history(self, at: Play) -> None:
        made(at, state="Disabled", recurrence=EVERY_HOUR)
        assert asked(at, "PUT", f"{COLLECTION}2", {"location": "West US"})[0] in {200, 201}
        assert asked(at, "POST", f"{JOB}/run")[0] == 200
        at.go_to(2)

    def check(self, at: Play) -> None:
        assert len(at.runs(Kind.MANUAL)) == 1
        assert asked(at, "GET", JOB)[1]["properties"]["status"]["executionCount"] == 1


class AzureDelete(Scenario):
    """A collection is deleted while a retry waits, and made again: the new one is empty, and nothing starts."""

    name = "azure-delete"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = BUSY
        action = {**HTTP, "retryPolicy": {"retryType": "Fixed", "retryInterval": "PT1M"}}
        schedule = made(at, startTime=text(NOON + TICK), recurrence=EVERY_HOUR, action=action)
        at.expect(schedule, dict.fromkeys(minutes(1), frozenset(State)), state=None)
        at.go_to(1.5)
        assert asked(at, "DELETE", COLLECTION)[0] in {200, 404}
        called = len(at.scene.endpoint.received)
        assert asked(at, "PUT", COLLECTION, {"location": "West US"})[0] in {200, 201}
        at.go_to(5)
        assert len(at.scene.endpoint.received) == called

    def check(self, at: Play) -> None:
        assert asked(at, "GET", f"{COLLECTION}/jobs")[1]["value"] == []
        assert schedules(at) == []
        addresses = [item for item in at.scene.items() if item["sk"]["S"].startswith("ADDRESS#")]
        collections = [item for item in at.scene.items() if item["sk"]["S"].startswith("COL#azure") and "state" in item]
        assert (len(addresses), len(collections)) == (1, 1)
