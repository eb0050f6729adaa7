"""The gap that quotas measure: on the clock of a zone each day has 24 hours, whatever the notation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sweephand.schedules.calendars import calendar_content, calendars
from sweephand.schedules.timing import parse

NOW = datetime(2027, 1, 1, tzinfo=UTC)
DAY = 86_400
RULES: list[tuple[dict[str, Any], int]] = [
    ({"cron": "0 9 * * *"}, DAY),
    ({"cron": "30 2 * * *"}, DAY),
    ({"cron": "30 2 * * *", "dstGap": "shift"}, DAY),
    ({"cron": "0 9 * * 1"}, 7 * DAY),
    ({"cron": "0 9 1 * *"}, 28 * DAY),
    ({"cron": "0 9 31 * *", "monthOverflow": "clamp"}, 28 * DAY),
    ({"cron": "0 * * * *"}, 3_600),
    ({"cron": "0 2,3 * * *"}, 3_600),
    ({"repeatAt": "09:00"}, DAY),
    ({"every": "P1D", "align": "clock"}, DAY),
    ({"every": "PT24H"}, DAY),
    ({"every": "P1W"}, 7 * DAY),
    ({"every": "P1M"}, 28 * DAY),
    ({"eventBridge": "cron(0 9 ? * MON *)"}, 7 * DAY),
    ({"eventBridge": "rate(1 day)"}, DAY),
    ({"sapCron": "* * * * 9 0 0"}, DAY),
    ({"sapCron": "* * * mon 9 0 0"}, 7 * DAY),
    ({"rrule": "FREQ=DAILY;BYHOUR=9"}, DAY),
    ({"rrule": "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9"}, 7 * DAY),
    ({"recurrence": {"frequency": "day"}}, DAY),
    ({"recurrence": {"frequency": "month"}}, 28 * DAY),
]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
@pytest.mark.parametrize(("rule", "gap_s"), RULES, ids=lambda each: str(each)[:60])
def test_a_rule_has_the_same_gap_in_every_zone(rule: dict[str, Any], gap_s: int, zone: str) -> None:
    assert parse({**rule, "timezone": zone}, now=NOW).clock_interval_s == gap_s


def test_a_time_that_runs_both_times_counts_as_two() -> None:
    timing = parse({"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dstOverlap": "both"}, now=NOW)

    assert timing.clock_interval_s == 3_600


@pytest.mark.parametrize(("cron", "gap_s"), [("30 2 * * *", DAY), ("0 9,17 * * *", 8 * 3_600), ("0 9 * * 1", DAY)])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_occurrences_that_roll_are_as_far_apart_as_their_times_of_the_day(cron: str, gap_s: int, zone: str) -> None:
    reference = "clock-interval"
    calendars.keep(reference, calendar_content.read({"weekly": [{"days": ["SAT", "SUN"]}]}))
    rule = {"cron": cron, "timezone": zone, "calendars": [{"name": "weekend", "roll": "next"}]}

    timing = parse(rule, now=NOW, book={"weekend": reference})

    assert timing.clock_interval_s == gap_s


def test_an_added_instant_counts_by_elapsed_time() -> None:
    rule = "DTSTART;TZID=Europe/Berlin:20270101T090000\nRRULE:FREQ=DAILY\nRDATE;TZID=Europe/Berlin:20270701T100000"

    assert parse({"rrule": rule}, now=NOW).clock_interval_s == 3_600
