"""At each moment of some hard histories, the list of occurrences and explanations agree about each instant."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.domain.instants import text
from tests.contract.native.api import Api
from tests.contract.native.api import api as made
from tests.unit.server.flow.common import MINUTE, NOON

CUSTOMER = "/v1/collections/customer"
HOLIDAYS = {"calendars": [{"name": "holidays"}]}
Steps = tuple[Callable[[Api], object], ...]


def does(verb: str, path: str, body: Any = None) -> Callable[[Api], object]:
    return lambda api: api(verb, path, body)


def passes(seconds: float) -> Callable[[Api], object]:
    return lambda api: api.stage.pass_time(seconds)


def runs(seconds: float) -> Callable[[Api], object]:
    return lambda api: api.stage.run(seconds)


def closed(begin: int, end: int) -> Callable[[Api], object]:
    times = {"from": text(NOON + begin * MINUTE), "to": text(NOON + end * MINUTE)}
    return does("PUT", "/v1/calendars/holidays", {"ranges": [times]})


def paused(api: Api) -> object:
    (job,) = api.get("/v1/jobs").json["items"]
    return api("POST", f"/v1/jobs/{job['id']}/pause", {"until": "2027-03-01T12:06:00Z"})


def stricter(api: Api) -> object:
    (job,) = api.get("/v1/jobs").json["items"]
    return api("PATCH", f"/v1/jobs/{job['id']}", {"policies": {"misfire": {"type": "skip"}}})


def activated(api: Api) -> object:
    (job,) = api.get("/v1/jobs").json["items"]
    (schedule,) = api.get(f"/v1/jobs/{job['id']}/schedules").json["items"]
    return api("POST", f"/v1/jobs/{job['id']}/schedules/{schedule['id']}/activate")


def changed(**members: Any) -> Callable[[Api], object]:
    def step(api: Api) -> object:
        (job,) = api.get("/v1/jobs").json["items"]
        (schedule,) = api.get(f"/v1/jobs/{job['id']}/schedules").json["items"]
        return api("PATCH", f"/v1/jobs/{job['id']}/schedules/{schedule['id']}", members)

    return step


DISABLE, ENABLE = does("POST", f"{CUSTOMER}/disable"), does("POST", f"{CUSTOMER}/enable")
SOON = "2027-03-01T12:03:00Z"
HISTORIES: dict[str, tuple[dict[str, Any], dict[str, Any], Steps]] = {
    "a one-time instant instead of steps that are held": (
        {"every": "PT50S", "align": "actual_start"},
        {"onEnable": "run_now"},
        (DISABLE, runs(60), changed(every=None, align=None, at="2027-03-01T12:05:00Z"), paused, runs(300)),
    ),
    "held past its end": ({"cron": "* * * * *", "endTime": SOON}, {}, (runs(70), DISABLE, passes(200), ENABLE)),
    "held past the end of its steps": (
        {"every": "PT40S", "align": "actual_start", "endTime": SOON},
        {},
        (runs(70), DISABLE, passes(200), ENABLE, passes(1)),
    ),
    "held steps past their end, as the sweep sees them": (
        {"every": "PT40S", "align": "actual_start", "endTime": SOON},
        {},
        (runs(70), DISABLE, runs(200), ENABLE, passes(1)),
    ),
    "one time, held and late": (
        {"at": SOON},
        {"onEnable": "run_now"},
        (runs(5), DISABLE, runs(100), runs(100), ENABLE, passes(1), passes(1)),
    ),
    "one time, held and late, and paused": (
        {"at": SOON},
        {"onEnable": "run_now"},
        (runs(5), DISABLE, runs(200), paused, passes(10), runs(300), ENABLE, passes(1)),
    ),
    "one time, held, and paused until before it": (
        {"at": "2027-03-01T12:10:00Z"},
        {"onEnable": "run_now"},
        (DISABLE, paused, runs(10), runs(600), ENABLE, passes(1)),
    ),
    "one time, held and late, and changed": (
        {"at": SOON},
        {"onEnable": "run_now"},
        (runs(5), DISABLE, runs(200), stricter, passes(10), runs(300), ENABLE, passes(1)),
    ),
    "one time, held": ({"at": SOON}, {}, (runs(5), DISABLE, runs(200), ENABLE, passes(1))),
    "one time, long ago": (
        {"at": "2027-03-01T11:00:00Z"},
        {"onPastStart": "run_now", "onEnable": "run_now"},
        (DISABLE, runs(10), ENABLE, passes(1)),
    ),
    "one time, long ago, made while it was held": (
        {"at": "2027-03-01T11:00:00Z"},
        {"onPastStart": "run_now"},
        (passes(1), DISABLE, passes(1), ENABLE, passes(1)),
    ),
    "run at once, and not yet begun": ({"cron": "0 * * * *"}, {"onCreate": "run_now"}, (passes(5), DISABLE, ENABLE)),
    "steps that begin late": (
        {"every": "PT1M", "align": "actual_start", "startTime": "2027-03-01T11:00:30Z", "active": False},
        {"onPastStart": "run_now"},
        (passes(20), activated, passes(3), passes(10), DISABLE, passes(10), ENABLE),
    ),
    "held past its end, and paused": (
        {"cron": "* * * * *", "endTime": SOON},
        {},
        (runs(30), DISABLE, runs(30), paused, passes(400), ENABLE, passes(1), runs(100)),
    ),
    "paused past its end, and held": (
        {"every": "PT20S", "endTime": SOON},
        {},
        (runs(30), paused, runs(30), DISABLE, passes(400), passes(1), ENABLE, passes(1), runs(100)),
    ),
    "a day of its calendar after it was due": (
        {"cron": "* * * * *", **HOLIDAYS},
        {},
        (runs(70), passes(200), closed(1, 7)),
    ),
    "a calendar that frees what was left out": (
        {"cron": "* * * * *", **HOLIDAYS},
        {},
        (closed(1, 7), runs(100), passes(100), closed(20, 22), runs(100)),
    ),
    "over, with times that its calendar leaves out": (
        {"cron": "* * * * *", "endTime": "2027-03-01T12:05:30Z", **HOLIDAYS},
        {},
        (closed(2, 4), runs(200), runs(200)),
    ),
    "a count that its calendar shortens": (
        {"cron": "* * * * *", "count": 3, **HOLIDAYS},
        {},
        (closed(2, 30), runs(70)),
    ),
    "paused, with times that its calendar leaves out": (
        {"cron": "* * * * *", **HOLIDAYS},
        {},
        (closed(2, 8), runs(70), paused),
    ),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_lists_and_explanations_agree_at_each_moment(history: str) -> None:
    timing, policies, steps = HISTORIES[history]
    with made() as api:
        api("POST", "/v1/collections", {"name": "customer"})
        api("POST", "/v1/calendars", {"name": "holidays", "dates": ["12-25"]})
        job = api.create(schedules=[timing], policies=policies, collection="customer")
        place = f"/v1/jobs/{job['id']}"
        schedule = f"{place}/schedules/{job['schedules'][0]['id']}"

        check(api, place, schedule)
        for step in steps:
            step(api)
            check(api, place, schedule)


def check(api: Api, place: str, schedule: str) -> None:
    begin, until = NOON - 61 * MINUTE, NOON + 24 * MINUTE
    query = {"from": text(begin), "until": text(until), "limit": 100}
    listed = {each["plannedAt"]: each for each in api.get(f"{place}/occurrences", query=query).json["items"]}
    for at in sorted({*listed, *map(text, some(begin, until))}):
        body = api.get(f"{schedule}/explain", query={"at": at}).json
        item = listed.get(at)
        expected = (None, None) if item is None else (item["state"], item["reason"])
        assert (body["state"], body["reason"]) == expected, (text(api.stage.clock.now()), item, body)
        assert item is not None or not body["occurs"], body


def some(begin: datetime, until: datetime) -> list[datetime]:
    """Returns each minute of an hour ago, and each 20 seconds around now."""
    near = [NOON + timedelta(seconds=n) for n in range(0, 400, 20)]
    return [begin + MINUTE, *near, *(NOON + n * MINUTE for n in range(24)), until]
