"""The answers of other schedulers for one day of daylight saving, golden: each answer can be had by choosing rules.

New York, 2026: on 8 March the clock jumps from 02:00 to 03:00, on 1 November it reads 01:00 to 02:00 twice. The answers
were seen by driving the engines themselves; two of them are installed here and asked again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import pytest
from croniter import croniter
from cronsim import CronSim

from sweephand.schedules.rule import between
from sweephand.schedules.timing import parse
from tests.unit.schedules.given import parse_acting
from tests.unit.schedules.oracle import zone_info

ZONE = "America/New_York"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
GAP, OVERLAP = datetime(2026, 3, 8, 7, tzinfo=UTC), datetime(2026, 11, 1, 6, tzinfo=UTC)
DAY = timedelta(days=1)
FIRST_VALID, SHIFTED, NOT_RUN = ["03:00-0400"], ["03:30-0400"], []
FIRST, SECOND, TWICE = ["01:30-0400"], ["01:30-0500"], ["01:30-0400", "01:30-0500"]


class Row(NamedTuple):
    engine: str
    rules: dict[str, str]
    in_the_gap: list[str]
    in_the_overlap: list[str]


TABLE = [
    Row("croniter", {"dstGap": "next_valid", "dstOverlap": "both"}, FIRST_VALID, TWICE),
    Row("cronsim", {"dstGap": "next_valid", "dstOverlap": "first"}, FIRST_VALID, FIRST),
    Row("croner", {"dstGap": "next_valid", "dstOverlap": "first"}, FIRST_VALID, FIRST),
    Row("cron-parser", {"dstGap": "shift", "dstOverlap": "first"}, SHIFTED, FIRST),
    Row("APScheduler", {"dstGap": "shift", "dstOverlap": "both"}, SHIFTED, TWICE),
    Row("Celery", {"dstGap": "shift", "dstOverlap": "first"}, SHIFTED, FIRST),
    Row("Quartz", {"dstGap": "skip", "dstOverlap": "second"}, NOT_RUN, SECOND),
    Row("EventBridge Scheduler", {"dstGap": "skip", "dstOverlap": "first"}, NOT_RUN, FIRST),
]
ROWS = pytest.mark.parametrize("row", TABLE, ids=[row.engine for row in TABLE])


def of_the_day(fields: dict[str, object], change: datetime) -> list[str]:
    """Returns the occurrences of the local day, as local time and offset."""
    midnight = change.astimezone(zone_info(ZONE)).replace(hour=0)
    rule = parse({**fields, "timezone": ZONE}, now=NOW).rule
    found = between(rule, midnight.astimezone(UTC) - timedelta(seconds=1), change + DAY - timedelta(hours=3), 100)
    return [f"{instant.astimezone(zone_info(ZONE)):%H:%M%z}" for instant in found]


@ROWS
def test_daily_at_half_past_two_in_the_gap_agrees_with_that_engine(row: Row) -> None:
    assert of_the_day({"cron": "30 2 * * *", **row.rules}, GAP) == row.in_the_gap


@ROWS
def test_daily_at_half_past_one_in_the_overlap_agrees_with_that_engine(row: Row) -> None:
    assert of_the_day({"cron": "30 1 * * *", **row.rules}, OVERLAP) == row.in_the_overlap


@pytest.mark.parametrize("change", [GAP, OVERLAP], ids=["gap", "overlap"])
@pytest.mark.parametrize(("text", "step"), [("0 * * * *", 60), ("*/30 * * * *", 30)])
@ROWS
def test_hourly_and_half_hourly_run_through_both_changes_exactly_once(
    row: Row, text: str, step: int, change: datetime
) -> None:
    """Rules other than the default are refused here. Celery and Quartz lose an hour and a half."""
    rule = parse_acting({"cron": text, "timezone": ZONE, **row.rules}, NOW).rule

    found = between(rule, change - DAY, change + DAY, 1_000)

    assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=step)}
    assert len(found) == 2 * 24 * 60 // step


def test_the_eventbridge_notation_follows_the_rules_of_eventbridge_by_default() -> None:
    row = next(each for each in TABLE if each.engine == "EventBridge Scheduler")

    assert of_the_day({"eventBridge": "cron(30 2 * * ? *)"}, GAP) == row.in_the_gap
    assert of_the_day({"eventBridge": "cron(30 1 * * ? *)"}, OVERLAP) == row.in_the_overlap
    rate = parse({"eventBridge": "rate(1 day)", "timezone": ZONE}, now=NOW).rule
    assert {later - one for one, later in pairwise(between(rate, GAP - 3 * DAY, GAP + 3 * DAY, 10))} == {DAY}


@pytest.mark.parametrize("engine", ["croniter", "cronsim"])
def test_the_installed_engines_still_give_these_answers(engine: str) -> None:
    row = next(each for each in TABLE if each.engine == engine)

    assert theirs(engine, "30 2 * * *", GAP) == row.in_the_gap
    assert theirs(engine, "30 1 * * *", OVERLAP) == row.in_the_overlap


def theirs(engine: str, text: str, change: datetime) -> list[str]:
    """Returns what the engine answers for the local day, midnight included."""
    midnight = change.astimezone(zone_info(ZONE)).replace(hour=0, minute=0) - timedelta(minutes=1)
    series = CronSim(text, midnight) if engine == "cronsim" else iter(croniter(text, midnight, ret_type=datetime))
    found: list[datetime] = []
    while not found or found[-1].date() == change.astimezone(zone_info(ZONE)).date():
        found.append(next(series))
    return [f"{instant:%H:%M%z}" for instant in found[:-1]]
