"""The same as test_canary, for the kinds of actions other than HTTP that receive secrets: each says it back.

`sqs` and the others by a role have no secret of the job's; what STS gives for the role is of no concern to the target.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sweephand.domain.collection import Events
from sweephand.server import actions
from tests.contract.calls import CANARY
from tests.contract.native.api import Api
from tests.contract.native.api import api as made
from tests.support.azure import azure
from tests.support.ecs import ACTION, TASKS, VirtualEcs, refusal

SECRET = f"{CANARY}-of-a-target"
BUS_KEY = {"type": "sharedAccessKey", "sasKeyName": "QPolicy", "sasKey": SECRET}
KINDS: dict[str, dict[str, Any]] = {
    "ecs": {**ACTION, "environment": {"PASSWORD": SECRET}},
    "azure_storage_queue": {"storageAccount": "acme", "queueName": "orders", "sasToken": f"sv=1&sig={SECRET}"},
    "azure_service_bus_queue": {"namespace": "acmebus", "queueName": "orders", "authentication": BUS_KEY},
    "azure_service_bus_topic": {"namespace": "acmebus", "topicPath": "news", "authentication": BUS_KEY},
}
PATCHED = {"outcome": {"answerTimeoutSeconds": 14}}


class Telling(VirtualEcs):
    """Quotes what it refuses; what it begins it tells with all that it was told."""

    refuses = False

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        if not self.refuses:
            return super()._run(request)
        error = refusal("InvalidParameterException")
        (container,) = request["overrides"]["containerOverrides"]
        quoted = " ".join(each["value"] for each in container["environment"][::-1])
        # The last of it is cut in two where the message ends.
        error.response["Error"]["Message"] = f"cannot take {quoted} {'.' * (440 - len(quoted))} {SECRET}"
        raise error


@pytest.fixture
def there() -> Iterator[tuple[Api, Telling]]:
    with azure() as server, made(guarded=replace(server.guard, tasks=TASKS)) as api:
        server.answers = 500
        ecs = Telling(api.stage.taps, api.stage.sqs)
        outbound = replace(server.outbound, settings=replace(server.guard, tasks=TASKS), ecs=ecs)
        world = replace(api.stage.world, perform=actions.perform, outbound=outbound)
        api.stage.world = api.facade.world = world
        yield api, ecs


def everywhere(api: Api, answers: list[str], job: str) -> dict[str, str]:
    place = f"/v1/jobs/{job}"
    answers += [api.get(place).text, api.get(f"{place}/changes", query={"include": "before"}).text]
    for run in api.get("/v1/runs", query={"jobId": job}).json["items"]:
        answers.append(api.get(f"/v1/runs/{run['id']}").text)
    answers.append(api.get("/v1/runs:export", query={"jobId": job}).text)
    return {
        "answers": "\n".join(answers),
        "log": str(api.stage.journal.lines),
        "metrics": str(api.stage.journal.measures),
        "events": str(api.stage.bus.told),
        "rows and messages": "\n".join(api.picture()),
    }


def made_and_changed(api: Api, kind: str) -> tuple[str, list[str]]:
    """Returns the job, which keeps its secret through a change, and the answers so far."""
    api.stage.tell(Events.ALL)
    action = {"type": kind, **KINDS[kind], "retry": {"type": "fixed", "maxRetries": 1, "delaySeconds": 1}}
    job = api.create(
        action=action,
        errorAction=action,
        policies={"callbackToken": True, "keepAnswer": "all"},
        schedules=[{"at": "2027-03-01T12:00:10Z"}],
    )
    changed = api("PATCH", f"/v1/jobs/{job['id']}", {"action": PATCHED, "errorAction": PATCHED})
    assert changed.status == 200, changed.text
    return job["id"], [json.dumps(job), changed.text]


def nowhere(found: dict[str, str], *more: str) -> None:
    assert "***" in found["answers"]
    for where, text in found.items():
        assert SECRET not in text, where
        assert not [word for word in more if word in text], where


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ecs"])
def test_secrets_for_an_azure_queue_appear_nowhere_else(there: tuple[Api, Telling], kind: str) -> None:
    api, _ = there
    job, answers = made_and_changed(api, kind)

    api.stage.run(60)

    found = everywhere(api, answers, job)
    assert found["answers"].count("HTTP_STATUS") >= 2
    nowhere(found, "sig=")


@pytest.mark.parametrize("refuses", [True, False], ids=["refused", "begun"])
def test_secrets_for_a_task_appear_nowhere_else(there: tuple[Api, Telling], refuses: bool) -> None:
    api, ecs = there
    ecs.refuses = refuses
    job, answers = made_and_changed(api, "ecs")

    api.stage.run(60)
    for task in list(ecs.begun):
        assert SECRET in str(ecs.event(task, "RUNNING")), "whoever sees the events of ECS sees it"
        ecs.tells("RUNNING", task)
        ecs.ends(1, task)
    waiting = "\n".join(api.picture())
    api.stage.run(30)

    found = everywhere(api, answers, job)
    assert found["answers"].count("HTTP_STATUS" if refuses else "TARGET_ERROR") >= 1
    assert SECRET in str(ecs.asked), "the task itself is told"
    token = _callback_token(ecs.asked[0])
    nowhere({**found, "messages on their way": waiting}, token)


def _callback_token(asked: dict[str, Any]) -> str:
    """Returns the token by which the task may report its result."""
    (container,) = asked["overrides"]["containerOverrides"]
    return next(str(each["value"]) for each in container["environment"] if each["name"] == "SWEEPHAND_CALLBACK_TOKEN")
