"""A stored timing under newer zone data: each wall time that a caller wrote keeps its meaning, as each offset does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.timing import Timing, counted_from, load, parse
from sweephand.schedules.zones.localtime import ALWAYS
from tests.support.zone_data import Change, zone_data

ZONE = "Africa/Casablanca"
NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
JOB_START, JOB_END = NOW + timedelta(hours=30), NOW + timedelta(days=9)
EAST = 3_600
CHANGES = int(datetime(2027, 3, 1, 20, 30, tzinfo=UTC).timestamp())
NINE = int(datetime(2027, 3, 2, 9, tzinfo=UTC).timestamp())
"""The wall time 09:00 of 2 March, at which many of the members lie."""

DATA: dict[str, tuple[tuple[Change, ...], tuple[Change, ...]]] = {
    "earlier": (((ALWAYS, 0),), ((ALWAYS, 0), (CHANGES, EAST))),
    "later": (((ALWAYS, EAST),), ((ALWAYS, EAST), (CHANGES, 0))),
    "gap appears": (((ALWAYS, 0),), ((ALWAYS, 0), (NINE - 1_800, EAST))),
    "gap disappears": (((ALWAYS, 0), (NINE - 1_800, EAST)), ((ALWAYS, 0),)),
    "overlap appears": (((ALWAYS, EAST),), ((ALWAYS, EAST), (NINE - 1_800, 0))),
    "overlap disappears": (((ALWAYS, EAST), (NINE - 1_800, 0)), ((ALWAYS, EAST),)),
}
START, END = {"startTime": "2027-03-02T09:00:00"}, {"endTime": "2027-03-05T09:00:00"}
INSTANT = {"startTime": "2027-03-02T09:00:00Z", "endTime": "2027-03-05T09:00:00Z"}
MONTHLY = {"every": "P1M"}
WEEKLY_HOURS = {"recurrence": {"frequency": "week", "interval": 1, "schedule": {"hours": [9], "weekDays": ["Tuesday"]}}}
DAILY_RULE = "RRULE:FREQ=DAILY"
LINES = "DTSTART:20270302T090000\nRRULE:FREQ=DAILY"

CALLED: dict[str, Mapping[str, Any]] = {
    "cron, window": {"cron": "0 9 * * *", **START, **END},
    "cron, instants": {"cron": "0 9 * * *", **INSTANT},
    "cron, end alone": {"cron": "0 9 * * *", **END},
    "sapCron, window": {"sapCron": "* * * * 9 0 0", **START, **END},
    "repeatAt, window": {"repeatAt": "9:00", **START, **END},
    "eventBridge cron, window": {"eventBridge": "cron(0 9 * * ? *)", **START, **END},
    "eventBridge rate, start": {"eventBridge": "rate(5 hours)", **START},
    "eventBridge at": {"eventBridge": "at(2027-03-02T09:00:00)"},
    "at": {"at": "2027-03-02T09:00:00"},
    "at, window": {"at": "2027-03-02T09:00:00", **START},
    "time": {"time": "2027-03-02 09:00"},
    "every, start": {"every": "PT7H", **START, **END},
    "every, instants": {"every": "PT7H", **INSTANT},
    "every, actual start": {"every": "PT7H", "align": "actual_start", **START},
    "every, clock": {"every": "PT1H", "align": "clock", **START, **END},
    "every, creation": {"every": "PT7H"},
    "months, start": {**MONTHLY, **START},
    "months, instants": {**MONTHLY, "startTime": "2027-03-02T09:00:00Z"},
    "months, creation": MONTHLY,
    "repeating, beginning": {"every": "R5/2027-03-02T09:00/PT7H"},
    "repeating, instant": {"every": "R5/2027-03-02T09:00Z/PT7H"},
    "repeating, both": {"every": "R5/2027-03-01T09:00/2027-03-02T09:00"},
    "repeating, end": {"every": "R3/PT7H/2027-03-04T09:00"},
    "repeating, months": {"every": "R3/2027-03-02T09:00/P1M"},
    "repeating, months back": {"every": "R3/P1M/2027-06-02T09:00"},
    "recurrence, elapsed": {"recurrence": {"frequency": "hour", "interval": 7}, **START},
    "recurrence, days": {"recurrence": {"frequency": "day", "interval": 2}, **START, **END},
    "recurrence, instants": {"recurrence": {"frequency": "day", "interval": 1}, **INSTANT},
    "recurrence, weeks": {**WEEKLY_HOURS, **START},
    "recurrence, creation": {"recurrence": {"frequency": "day", "interval": 1}},
    "rrule, start": {"rrule": "FREQ=DAILY", **START, **END},
    "rrule, instants": {"rrule": "FREQ=DAILY", **INSTANT},
    "rrule, creation": {"rrule": "FREQ=DAILY;COUNT=4"},
    "rrule, DTSTART": {"rrule": LINES},
    "rrule, COUNT": {"rrule": f"{LINES};COUNT=3"},
    "rrule, COUNT of hours": {"rrule": "DTSTART:20270302T070000\nRRULE:FREQ=HOURLY;COUNT=30"},
    "rrule, UNTIL": {"rrule": f"{LINES};UNTIL=20270305T090000"},
    "rrule, UNTIL of a day": {"rrule": f"{LINES};UNTIL=20270305"},
    "rrule, EXDATE": {"rrule": f"{LINES};COUNT=3\nEXDATE:20270303T090000"},
    "rrule, first excluded": {"rrule": f"{LINES};COUNT=3\nEXDATE:20270302T090000"},
    "rrule, EXDATE of a day": {"rrule": f"{LINES};COUNT=3\nEXDATE;VALUE=DATE:20270303"},
    "rrule, RDATE": {"rrule": f"{LINES};COUNT=1\nRDATE:20270303T090000,20270304T103000Z"},
    "rrule, dates alone": {"rrule": "DTSTART:20270302T090000\nRDATE:20270303T090000"},
}
RULES = {"dstGap": "next_valid", "dstOverlap": "first"}
TAKES_NO_RULES = ("every, creation", "every, instants", "rrule, COUNT of hours")


def members(name: str, rules: Mapping[str, str]) -> dict[str, Any]:
    return {"timezone": ZONE, **CALLED[name], **({} if name in TAKES_NO_RULES else rules)}


def instants(timing: Timing) -> list[datetime]:
    def all_() -> Iterator[datetime]:
        at = timing.rule.next_after(NOW - timedelta(days=400))
        while at is not None:
            yield at
            at = timing.rule.next_after(at)

    return list(islice(all_(), 400))


def read(fields: Mapping[str, Any]) -> Timing:
    return parse(fields, now=NOW, job_start=None, job_end=JOB_END, may_be_empty=True)


@pytest.mark.parametrize("change", DATA)
@pytest.mark.parametrize("name", CALLED)
def test_a_stored_timing_has_the_instants_that_the_loaded_data_give_its_members(name: str, change: str) -> None:
    old, new = DATA[change]
    with zone_data(ZONE, *old):
        stored = read(members(name, RULES)).packed

    with zone_data(ZONE, *new):
        alone = read(members(name, RULES))
        loaded = load(stored)

        assert instants(loaded) == instants(alone)
        assert loaded.summary == alone.summary
        assert not name.endswith("creation") or counted_from(stored) == NOW

    with zone_data(ZONE, *old):
        assert instants(load(stored)) == instants(read(members(name, RULES)))


@pytest.mark.parametrize(
    ("change", "starts", "ends"),
    [("gap appears", "08:30:00", "08:30:00"), ("overlap appears", "08:00:00", "09:00:00")],
)
def test_a_limit_that_needs_a_rule_only_now_takes_the_next_instant_or_the_wider_window(
    change: str, starts: str, ends: str
) -> None:
    old, new = DATA[change]
    at = {"timezone": ZONE, "every": "PT30M", "align": "epoch"}
    with zone_data(ZONE, *old):
        started = parse({**at, "startTime": "2027-03-02T09:00:00"}, now=NOW).packed
        ended = parse({**at, "endTime": "2027-03-02T09:00:00"}, now=NOW).packed

    with zone_data(ZONE, *new):
        first = load(started).rule.next_after(NOW)
        assert first is not None
        assert first.isoformat() == f"2027-03-02T{starts}+00:00"
        assert load(ended).ends_at.isoformat() == f"2027-03-02T{ends}+00:00"


def test_what_newer_data_would_refuse_can_still_be_read() -> None:
    """UNTIL has an offset and lies before the beginning now. The row keeps its instant, so that it runs."""
    old, new = DATA["later"]
    with zone_data(ZONE, *old):
        text = "DTSTART:20270302T090000\nRRULE:FREQ=DAILY;UNTIL=20270302T083000Z"
        stored = parse({"timezone": ZONE, "rrule": text}, now=NOW)
        assert instants(stored) == [datetime(2027, 3, 2, 8, tzinfo=UTC)]

    with zone_data(ZONE, *new):
        assert instants(load(stored.packed)) == []
        with pytest.raises(InvalidRequest, match="UNTIL: lies before the beginning"):
            parse({"timezone": ZONE, "rrule": text}, now=NOW)


def test_the_start_of_a_job_limits_a_wall_time_of_its_schedule() -> None:
    old, new = DATA["earlier"]
    with zone_data(ZONE, *old):
        fields = {"timezone": ZONE, "cron": "0 9 * * *", **START, **END}
        stored = parse(fields, now=NOW, job_start=JOB_START, job_end=JOB_END)

    with zone_data(ZONE, *new):
        alone = parse(fields, now=NOW, job_start=JOB_START, job_end=JOB_END)
        assert instants(load(stored.packed)) == instants(alone)


def test_nothing_is_kept_of_a_schedule_that_reads_no_clock() -> None:
    for fields in (
        {"cron": "0 9 * * *", "timezone": ZONE},
        {"every": "PT7H", "timezone": ZONE, **INSTANT},
        {"cron": "0 9 * * *", **START, **END},
        {"rrule": LINES},
    ):
        assert "asked" not in parse(fields, now=NOW).packed
