"""Every member that a caller may send is read back, and no change of anything else harms it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.contract.native import filled
from tests.contract.native.api import Api
from tests.contract.native.filled import NOTATIONS, TURNS, VALUES, Filling, differences, places, settable

WITHOUT_DEFAULT = {"name", "type", "url", "tenant", *NOTATIONS}
"""Members that every job or schedule of these tests sends."""
Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def there(api: Api) -> Api:
    furnish(api)
    return api


def furnish(api: Api) -> None:
    """Makes what members name: a collection, a calendar and a flow key."""
    every_day = [{"days": ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]}]
    for path, body in {
        "/v1/collections": {"name": "spare"},
        "/v1/calendars": {"name": "spare", "weekly": every_day},
        "/v1/flow-keys": {"name": "spare", "parallelism": 3},
    }.items():
        assert api("POST", path, body).status == 201


def filling(api: Api, turn: int) -> Filling:
    """Makes one whose values differ from what a job shows by default."""
    least = api.create(
        {
            "action": {"type": "http", "url": "https://example.org/"},
            "schedules": [{"name": notation, notation: VALUES[notation]} for notation in NOTATIONS],
        }
    )
    known = {**filled.certificates(), "jobId": api.create(name="another")["id"]}
    return Filling(turn, known, paths(read(api, least["id"])))


def read(api: Api, job: str) -> dict[str, Any]:
    reply = api.get(f"/v1/jobs/{job}", query="include=schedules")
    assert reply.status == 200, reply.text
    return reply.json


def paths(body: Any, path: str = "") -> dict[str, Any]:
    """Yields each value by its path; schedules by name."""
    found = {path: body}
    for name, value in body.items() if isinstance(body, Mapping) else ():
        if name == "schedules" and isinstance(value, list):
            for each in value:
                found |= paths(each, f"schedules[{each['name']}]")
        else:
            found |= paths(value, f"{path}.{name}".lstrip("."))
    return found


def verbs(place: str, shown: Mapping[str, Any]) -> list[tuple[str, str, Any, Change]]:
    """Yields every change of a job that does not name most of its members: (method, path, body, what it changes)."""
    one = shown["schedules"][0]
    where = f"{place}/schedules/{one['id']}"
    without = {name: value for name, value in shown.items() if name != "schedules"}

    def job(name: str, value: Any) -> Change:
        return lambda body: body.update({name: value})

    def schedule(name: str, value: Any) -> Change:
        return lambda body: body["schedules"][one["name"]].update({name: value})

    def nothing(_: dict[str, Any]) -> None:
        return

    return [
        ("PATCH", place, {}, nothing),
        ("PATCH", place, {"description": "patched"}, job("description", "patched")),
        ("PUT", place, {**shown, "description": "put"}, job("description", "put")),
        ("PUT", place, {**without, "description": "again"}, job("description", "again")),
        ("POST", f"{place}/activate", None, job("active", True)),
        ("POST", f"{place}/pause", {"note": "x"}, nothing),
        ("POST", f"{place}/resume", None, nothing),
        ("POST", f"{place}/deactivate", None, job("active", False)),
        ("PATCH", where, {}, nothing),
        ("PATCH", where, {"jitterSeconds": 9}, schedule("jitterSeconds", 9)),
        ("PUT", where, {**one, "jitterSeconds": 8}, schedule("jitterSeconds", 8)),
        ("POST", f"{where}/activate", None, schedule("active", True)),
        ("POST", f"{where}/deactivate", None, schedule("active", False)),
    ]


def check_no_default(sent: Mapping[str, Any], fill: Filling) -> None:
    for path, value in paths(sent).items():
        names = {*path.split(".")} if "." in path else {path}
        if path in fill.usual and not isinstance(value, Mapping) and not names & WITHOUT_DEFAULT:
            assert value != fill.usual[path], f"{path}: {value!r} is its default, which proves nothing"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("turn", range(TURNS))
def test_every_member_is_read_back_and_survives_every_verb(there: Api, turn: int) -> None:
    fill = filling(there, turn)
    sent = fill.job()
    check_no_default(sent, fill)
    for version in ({"version": filled.FREE}, {}):
        application = there("PUT", f"/v1/applications/{filled.FREE}", version)
        assert application.status == 200, "what actions of the kinds `queue` and `event` name"

    made = there.create(sent)
    shown = read(there, made["id"])

    assert not [*differences(sent, shown)]
    before = settable(shown)
    for method, path, body, change in verbs(f"/v1/jobs/{made['id']}", shown):
        reply = there(method, path, body)
        assert reply.status == 200, (method, path, reply.text)
        change(before)
        assert settable(read(there, made["id"])) == before, (method, path)


def test_the_test_jobs_together_set_every_member() -> None:
    used: set[str] = set()
    known = {**filled.certificates(), "jobId": "x"}
    for turn in range(TURNS):
        one = Filling(turn, known)
        one.job()
        used |= one.used

    assert not places("JobDraft") - used


OTHERS: Mapping[str, tuple[str, str, str]] = {
    "Collection": ("/v1/collections", "acme", "flowKey"),
    "FlowKey": ("/v1/flow-keys", "acme", "description"),
    "Calendar": ("/v1/calendars", "acme", "description"),
    "Tenant": ("/v1/tenants", "provider", "description"),
}
"""For each noun: where it is made, by whom, and a member that a change may take away."""


@pytest.mark.parametrize("noun", OTHERS)
def test_resources_that_a_job_names_are_read_back_completely(there: Api, noun: str) -> None:
    path, caller, away = OTHERS[noun]
    usual = there("POST", path, {"name": "usual"}, caller=caller).json
    fill = Filling(0, {"name": "unusual", "tenant": "unusual"}, paths(usual))
    sent = fill.of(f"{noun}Draft")
    check_no_default(sent, fill)

    assert there("POST", path, sent, caller=caller).status == 201
    where = f"{path}/unusual"
    shown = there.get(where, caller=caller).json

    assert not [*differences(sent, shown)]
    left = {place for place in places(f"{noun}Draft") - fill.used if not place.startswith(("Retry.", "Policies."))}
    assert left <= {"TenantDraft.name"}
    changes: list[tuple[str, Any]] = []
    if noun != "Calendar":
        changes += [("PATCH", {}), ("PATCH", {away: None})]
    if noun != "Tenant":
        changes += [("PUT", {name: value for name, value in shown.items() if name != away})]
    for method, body in changes:
        reply = there(method, where, body, caller=caller)
        assert reply.status == 200, reply.text
        left = {name: value for name, value in sent.items() if name != away or body == {}}
        assert not [*differences(left, there.get(where, caller=caller).json)], (method, body)
