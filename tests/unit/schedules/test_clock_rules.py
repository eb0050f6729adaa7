"""A stated dstGap or dstOverlap that does not act is refused; one that repeats the default, or acts, is not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.timing import load, parse

NOW = datetime(2027, 1, 1, tzinfo=UTC)
BERLIN = {"timezone": "Europe/Berlin"}
UNBENT: list[dict[str, Any]] = [
    {"cron": "0 */2 * * *"},
    {"cron": "0 0-23/3 * * *"},
    {"cron": "0 * * * *"},
    {"cron": "*/15 * * * 1-5"},
    {"sapCron": "* * * * */2 0 0"},
    {"sapCron": "* * * * * 0 0"},
    {"every": "PT1H"},
    {"every": "P1D"},
    {"every": "PT2H", "align": "clock"},
    {"every": "PT30M", "align": "clock"},
    {"eventBridge": "rate(5 minutes)"},
    {"rrule": "FREQ=HOURLY"},
    {"rrule": "FREQ=HOURLY;INTERVAL=5"},
    {"rrule": "FREQ=MINUTELY;INTERVAL=7"},
    {"recurrence": {"frequency": "minute", "interval": 5}},
    {"recurrence": {"frequency": "hour", "interval": 1, "schedule": {"minutes": [30]}}},
    {"recurrence": {"frequency": "hour", "interval": 5, "schedule": {"minutes": [30]}}},
]
BENT: list[dict[str, Any]] = [
    {"cron": "30 2 * * *"},
    {"cron": "0 0,2,4 * * *"},
    {"sapCron": "* * * * 2 30 0"},
    {"every": "P1M"},
    {"eventBridge": "cron(30 2 * * ? *)"},
    {"eventBridge": "cron(0 */2 * * ? *)"},
    {"eventBridge": "cron(0 * * * ? *)"},
    {"rrule": "FREQ=DAILY;BYHOUR=2;BYMINUTE=30"},
    {"repeatAt": "2.30am"},
    {"recurrence": {"frequency": "day", "schedule": {"hours": [2], "minutes": [30]}}},
    {"at": "2027-06-01T09:00:00"},
    {"time": "in 2 hours"},
    {"every": "PT1H", "startTime": "2027-03-28T02:30:00"},
    {"every": "R5/2027-03-28T02:30/PT1H"},
    {"rrule": "DTSTART:20270101T090000\nRRULE:FREQ=HOURLY\nRDATE:20270328T023000"},
]
RULES = [("dstGap", rule) for rule in ("skip", "next_valid", "shift")] + [
    ("dstOverlap", rule) for rule in ("first", "second", "both")
]


def default_of(fields: dict[str, Any], member: str) -> str:
    if member == "dstOverlap":
        return "first"
    return "shift" if "rrule" in fields else "skip" if "eventBridge" in fields else "next_valid"


@pytest.mark.parametrize(("member", "rule"), RULES)
@pytest.mark.parametrize("fields", UNBENT, ids=str)
def test_a_rule_without_effect_is_refused_by_name(fields: dict[str, Any], member: str, rule: str) -> None:
    if rule == default_of(fields, member):
        assert parse({**fields, **BERLIN, member: rule}, now=NOW).rule.next_after(NOW)
        return

    with pytest.raises(InvalidRequest) as refused:
        parse({**fields, **BERLIN, member: rule}, now=NOW)

    assert (refused.value.field, refused.value.code) == (member, "INVALID_FIELD")
    assert rule in refused.value.reason
    assert "leave it out" in refused.value.reason


@pytest.mark.parametrize(("member", "rule"), RULES)
@pytest.mark.parametrize("fields", BENT, ids=str)
def test_a_rule_with_an_effect_is_accepted(fields: dict[str, Any], member: str, rule: str) -> None:
    needed = {"dstGap": "next_valid"} if "28T02:30" in str(fields) and member == "dstOverlap" else {}
    if rule == "skip" and "R5/" in str(fields):
        return

    timing = parse({**fields, **BERLIN, **needed, member: rule}, now=NOW)

    assert timing.rule.next_after(NOW) is not None


def test_an_instant_with_an_offset_refuses_both_rules() -> None:
    for member, rule in (("dstGap", "skip"), ("dstOverlap", "first")):
        with pytest.raises(InvalidRequest) as refused:
            parse({"at": "2027-06-01T09:00:00Z", member: rule}, now=NOW)

        assert refused.value.field == member
        assert "a time with an offset" in refused.value.reason


def test_stored_schedules_with_such_a_rule_are_still_read() -> None:
    packed = parse({"cron": "0 */2 * * *", **BERLIN}, now=NOW).packed
    before = packed[:-1] + ',"gap":"skip"}'

    assert load(before).rule.next_after(NOW) == load(packed).rule.next_after(NOW)
