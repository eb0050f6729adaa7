"""Idempotency-Key on every request that makes something: a repetition makes nothing more."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from sweephand.server.facades.native.routes import ROUTES
from sweephand.server.flow import idempotency
from tests.contract.calls import Reply
from tests.contract.native.api import Api
from tests.contract.native.everything import UNKNOWN, title
from tests.support.endpoint import WRONG

ACTION = {"type": "http", "url": "https://example.com/"}
KEY = {"idempotency-key": "order-4711"}


def _job(api: Api) -> str:
    return f"/v1/jobs/{api.create({'action': ACTION})['id']}/schedules"


def _error(api: Api) -> str:
    job = api.create({"action": ACTION})
    api.stage.endpoint.answer = lambda _: WRONG
    api("POST", f"/v1/jobs/{job['id']}/run")
    api.stage.run(5)
    return f"/v1/errors/{api.get('/v1/errors').json['items'][0]['id']}/notes"


def _credential(api: Api) -> str:
    return f"/v1/credentials/{api('POST', '/v1/credentials', {}).json['clientId']}/rotate"


def _fixed(path: str) -> Callable[[Api], str]:
    return lambda _: path


@dataclass(frozen=True)
class Making:
    """A request that makes something. other: a body that another request with the key has. secret: in the answer."""

    path: Callable[[Api], str]
    body: dict[str, Any]
    other: dict[str, Any]
    caller: str = "acme"
    secret: bool = False
    status: int = 201
    hint: str = field(default="overlapSeconds 0")


MAKINGS = {
    "schedule": Making(_job, {"cron": "0 0 1 1 *"}, {"cron": "0 0 1 2 *"}),
    "note": Making(_error, {"text": "look"}, {"text": "look again"}),
    "collection": Making(_fixed("/v1/collections"), {"name": "c"}, {"name": "d"}),
    "calendar": Making(_fixed("/v1/calendars"), {"name": "c", "dates": ["2027-12-24"]}, {"name": "d"}),
    "flow key": Making(_fixed("/v1/flow-keys"), {"name": "c", "parallelism": 1}, {"name": "d", "parallelism": 1}),
    "tenant": Making(_fixed("/v1/tenants"), {"tenant": "c"}, {"tenant": "d"}, "provider"),
    "credential": Making(_fixed("/v1/credentials"), {"name": "c"}, {"name": "d"}, secret=True),
    "provider's credential": Making(_fixed("/v1/credentials"), {"name": "c"}, {"name": "d"}, "provider", secret=True),
    "rotation": Making(_credential, {"overlapSeconds": 60}, {"overlapSeconds": 61}, secret=True, status=200),
    "signing key": Making(
        *(_fixed("/v1/collections/default/signing-keys"), {}, {}), secret=True, hint="delete the key"
    ),
}
each = pytest.mark.parametrize("making", MAKINGS.values(), ids=MAKINGS)


def _repeated(making: Making, first: Reply, again: Reply) -> None:
    """Compares the answer to a repetition with the first one."""
    if making.secret:
        assert (again.status, again.code) == (409, "STATE_CONFLICT")
        assert making.hint in again.json["detail"]
        assert first.json["secret"] not in again.text
    else:
        assert (again.status, again.headers.get("location")) == (making.status, first.headers.get("location"))
        assert again.json == first.json


@each
def test_a_repetition_creates_nothing_and_returns_the_first_result(api: Api, making: Making) -> None:
    path = making.path(api)
    first = api("POST", path, making.body, headers=KEY, caller=making.caller)
    assert first.status == making.status
    api.stage.clock.advance(86_000)

    with api.unchanged():
        again = api("POST", path, making.body, headers=KEY, caller=making.caller)

    _repeated(making, first, again)


@each
def test_only_one_of_two_concurrent_requests_creates_the_job(
    api: Api, making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second has looked for the record before the first wrote it."""
    path = making.path(api)
    look = idempotency.earlier
    first: list[Reply] = []

    def looked(*arguments: Any) -> str | None:
        found = look(*arguments)
        if not first:
            monkeypatch.setattr(idempotency, "earlier", look)
            first.append(api("POST", path, making.body, headers=KEY, caller=making.caller))
        return found

    monkeypatch.setattr(idempotency, "earlier", looked)

    again = api("POST", path, making.body, headers=KEY, caller=making.caller)

    assert first[0].status == making.status
    _repeated(making, first[0], again)


@each
def test_another_body_under_the_same_key_is_refused(api: Api, making: Making) -> None:
    if making.other == making.body:
        return  # it takes none
    path = making.path(api)
    api("POST", path, making.body, headers=KEY, caller=making.caller)

    with api.unchanged():
        other = api("POST", path, making.other, headers=KEY, caller=making.caller)

    assert (other.status, other.code, other.fields) == (422, "KEY_REUSED", ["Idempotency-Key"])


@each
def test_a_second_request_without_a_key_is_separate(api: Api, making: Making) -> None:
    path = making.path(api)
    first = api("POST", path, making.body, caller=making.caller)
    api.stage.clock.advance(1)

    again = api("POST", path, making.body, caller=making.caller)

    assert again.status == 409 or again.json != first.json


@each
def test_another_key_creates_another_resource_or_is_refused(api: Api, making: Making) -> None:
    path = making.path(api)
    first = api("POST", path, making.body, headers=KEY, caller=making.caller)
    api.stage.clock.advance(1)

    again = api("POST", path, making.body, headers={"idempotency-key": "another"}, caller=making.caller)

    assert again.status == 409 or again.json != first.json
    assert "Idempotency-Key" not in again.text


def test_a_deleted_schedule_is_not_created_again_by_a_repetition(api: Api) -> None:
    path = _job(api)
    made = api("POST", path, {"every": "PT1H"}, headers=KEY)
    assert api("DELETE", f"{path}/{made.id}").status == 204

    with api.unchanged():
        assert api("POST", path, {"every": "PT1H"}, headers=KEY).status == 404


def test_a_repeated_schedule_is_accepted_although_the_job_has_a_new_revision(api: Api) -> None:
    path = _job(api)
    match = {**KEY, "if-match": '"1"'}
    made = api("POST", path, {"every": "PT1H"}, headers=match)

    again = api("POST", path, {"every": "PT1H"}, headers=match)

    assert (made.status, again.status, again.id) == (201, 201, made.id)
    assert len(api.get(path).json["items"]) == 1


def test_a_key_is_read_or_refused_but_never_ignored(api):
    """A job may still send any request here, because each of its calls has the id of its run as the key."""
    changing = [each for each in ROUTES.all if each.method not in {"GET", "HEAD"} and each.body != "form"]

    for route in changing:
        caller = "acme" if route.tenant else "provider"
        path = re.sub("{[^}]*}", UNKNOWN, route.path)
        reply = api(route.method, path, {}, caller=caller, headers={"Idempotency-Key": "k"})
        refused = reply.status == 400 and "Idempotency-Key: has no effect on this path" in reply.text
        assert refused is ("Idempotency-Key" not in route.headers), (title(route), reply.text)

    made = api.create()
    of_run = {"Idempotency-Key": "a_b", "Sweephand-Run-Id": "a_b"}
    assert api("POST", f"/v1/jobs/{made['id']}/pause", headers=of_run).status == 200
