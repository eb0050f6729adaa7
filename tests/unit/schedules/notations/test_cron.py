"""Five-field cron against a minute-by-minute walk, against two other programs, and example by example."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import assume, given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.grids.days import OfMonths
from sweephand.schedules.notations.cron import parse as parse_text
from sweephand.schedules.rule import between
from sweephand.schedules.timing import Timing, parse
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant, zone
from tests.support.examples import examples
from tests.unit.schedules import given as some
from tests.unit.schedules.oracle import walk, zone_info

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
END = to_instant(LAST_SECOND)


def cron(text: str, **members: object) -> Timing:
    return parse({"cron": text, **members}, now=some.NOW)


def first(text: str, count: int, after: datetime = some.NOW, **members: object) -> list[str]:
    return [f"{at:%Y-%m-%d %H:%M}" for at in between(cron(text, **members).rule, after, END, count)]


@examples(250)
@given(text=some.crons, name=some.zones, gap=some.gaps, overlap=some.overlaps, data=st.data())
def test_a_walk_over_every_minute_finds_the_same_instants(
    text: str, name: str, gap: str, overlap: str, data: st.DataObject
) -> None:
    begin = to_instant(data.draw(some.seconds(name, 10**8, LAST_SECOND - 10**6)) // 60 * 60)
    end = begin + DAY * 2
    assume(parse_text(text).days.ever())
    rule = some.parse_acting({"cron": text, "timezone": name, "dstGap": gap, "dstOverlap": overlap}).rule

    expected = walk(text, name, gap, overlap, begin, end)

    assert between(rule, begin - timedelta(seconds=1), end, 10_000) == expected
    assert rule.last_until(end) in (expected[-1:] or [rule.last_until(begin - timedelta(seconds=1))])


@examples(250)
@given(text=some.crons, name=some.zones, data=st.data())
def test_cronsim_and_croniter_agree_where_they_agree_and_no_clock_changes(
    text: str, name: str, data: st.DataObject
) -> None:
    assume(not re.search(r"\b([0-9]+)-\1/", text))  # decision 0010: they read 5-5/10 as 5/10,
    assume(not re.search(r"(^|,)[a-z0-9]+/", text.split()[4].lower()))  # and differ on whether 1/2 ends on Saturday
    begin = to_instant(data.draw(some.seconds(name, 10**9, 4 * 10**9)))
    local = begin.astimezone(zone_info(name))
    try:
        rule = cron(text, timezone=name).rule
        theirs = next(CronSim(text, local)).astimezone(UTC)
        other = croniter(text, local).get_next(datetime).astimezone(UTC)
    except Exception:  # noqa: BLE001 - never fires, or a dialect that one of the three does not speak
        assume(False)
    assume(theirs == other)
    known = zone(name)
    close = range(int(theirs.timestamp()) - 90_000, int(theirs.timestamp()) + 90_001, 90_000)
    assume(len({known.piece(second) for second in close}) == 1)
    assume(known.piece(int(begin.timestamp()) - 90_000) == known.piece(int(begin.timestamp()) + 90_000))

    assert rule.next_after(begin) == theirs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", ["2026-03-07 12:01", "2026-03-07 12:02"]),
        ("*/20 * * * *", ["2026-03-07 12:20", "2026-03-07 12:40", "2026-03-07 13:00"]),
        ("7/20 * * * *", ["2026-03-07 12:07", "2026-03-07 12:27", "2026-03-07 12:47", "2026-03-07 13:07"]),
        ("30 2 * * 1-5", ["2026-03-09 02:30", "2026-03-10 02:30"]),
        ("0 0 13 * 5", ["2026-03-13 00:00", "2026-03-20 00:00", "2026-03-27 00:00", "2026-04-03 00:00"]),
        ("0 0 */2 * 1", ["2026-03-09 00:00", "2026-03-23 00:00", "2026-04-13 00:00"]),
        ("0 0 13 * */5", ["2026-03-13 00:00", "2026-09-13 00:00", "2026-11-13 00:00", "2026-12-13 00:00"]),
        ("0 0 1,15 * *", ["2026-03-15 00:00", "2026-04-01 00:00"]),
        ("0 0 31 * *", ["2026-03-31 00:00", "2026-05-31 00:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 0 29 2 */7", ["2032-02-29 00:00", "2060-02-29 00:00"]),
        ("0 12 * * 0", ["2026-03-08 12:00", "2026-03-15 12:00"]),
        ("0 12 * * 7", ["2026-03-08 12:00", "2026-03-15 12:00"]),
        ("0 12 * * 5-7", ["2026-03-08 12:00", "2026-03-13 12:00", "2026-03-14 12:00"]),
        ("0 12 * JAN-mar Mon,WED", ["2026-03-09 12:00", "2026-03-11 12:00"]),
        ("  5   4\t* * * ", ["2026-03-08 04:05"]),
        ("05 04 08 * *", ["2026-03-08 04:05"]),
        ("0 */25 * * *", ["2026-03-08 00:00"]),
        ("0 0 * * 5/1", ["2026-03-13 00:00", "2026-03-14 00:00", "2026-03-20 00:00"]),
        ("0 0 * * 7/1", ["2026-03-08 00:00", "2026-03-15 00:00"]),
        ("5-5/10 0 * * *", ["2026-03-08 00:05", "2026-03-09 00:05"]),
        ("@yearly", ["2027-01-01 00:00"]),
        ("@annually", ["2027-01-01 00:00"]),
        ("@monthly", ["2026-04-01 00:00"]),
        ("@weekly", ["2026-03-08 00:00"]),
        ("@daily", ["2026-03-08 00:00"]),
        ("@midnight", ["2026-03-08 00:00"]),
        ("@Hourly", ["2026-03-07 13:00"]),
    ],
)
def test_an_expression_fires_when_it_says(text: str, expected: list[str]) -> None:
    assert first(text, len(expected)) == expected


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("0 0 32 * *", 4, 'day of the month must be 1 to 31, not "32"'),
        ("60 * * * *", 0, 'minute must be 0 to 59, not "60"'),
        ("0 24 * * *", 2, 'hour must be 0 to 23, not "24"'),
        ("0 0 * 13 *", 6, 'month must be 1 to 12, not "13"'),
        ("0 0 * * 8", 8, 'weekday must be 0 to 7, not "8"'),
        ("0 0 0 * *", 4, 'day of the month must be 1 to 31, not "0"'),
        ("0 0 * * 1,2,foo", 12, "weekday must be *, a number from 0 to 7 or sun, mon, tue, wed,"),
        ("0 0 * * mon-sun", 8, "runs backwards"),
        ("0 9-5 * * *", 2, 'hour: the range "9-5" runs backwards; write 9-23,0-5 for both'),
        ("0" * 900 + "5-3 * * * *", 0, "minute: the range"),
        ("0 0 1-40 * *", 6, 'day of the month must be 1 to 31, not "40"'),
        ("*/0 * * * *", 2, 'the step of minute must be 1 or more, not "0"'),
        ("*/ * * * *", 2, 'the step of minute must be 1 or more, not ""'),
        ("*/x * * * *", 2, 'the step of minute must be 1 or more, not "x"'),
        ("1/2/3 * * * *", 2, 'the step of minute must be 1 or more, not "2/3"'),
        ("*-5 * * * *", 1, "* cannot begin a range"),
        ("1, * * * *", 2, 'minute must be *, a number from 0 to 59, not ""'),
        (",1 * * * *", 0, 'minute must be *, a number from 0 to 59, not ""'),
        ("1-2-3 * * * *", 2, 'minute must be *, a number from 0 to 59, not "2-3"'),
        ("1- * * * *", 2, 'minute must be *, a number from 0 to 59, not "1-"'),
        ("-1 * * * *", 0, 'minute must be *, a number from 0 to 59, not "-1"'),
        ("0 0 15W * *", 4, "only in eventBridge"),
        ("0 9 * * mon-sun", 8, "runs backwards; write mon,tue,wed,thu,fri,sat,sun"),
        ("0 9 * * 5-1", 8, "runs backwards; write 5-6,0-1 for both parts of it"),
        ("0 0 ? * *", 4, "day of the month must be *, a number from 1 to 31, L (the last"),
        ("0 0 * * *,", 10, "weekday must be *, a number from 0 to 7 or sun, mon, tue, wed,"),
        ("mon 0 * * *", 0, 'minute must be *, a number from 0 to 59, not "mon"'),
        ("0 0 * *", 7, "must have 5 fields (minute, hour, day of the month, month,"),
        ("0 0 * * * 2027", 10, "must have 5 fields (minute, hour, day of the month, month,"),
        ("0 0 0 * * * *", 10, "must have 5 fields (minute, hour, day of the month, month,"),
        ("@reboot", 0, "names an event, not a time"),
        ("@every 5m", 0, "must be one of @yearly, @annually, @monthly, @weekly, @daily,"),
        ("R R R R R", 0, 'minute must be *, a number from 0 to 59, not "R"'),
        ("0 0 * * \u0661", 8, 'must be five fields such as "30 2 * * 1-5": U+0661 is not a'),
        ("\uff10 0 * * *", 0, 'must be five fields such as "30 2 * * 1-5": U+FF10 is not a'),
        ("0 0 * *\x00*", 7, 'must be five fields such as "30 2 * * 1-5": U+0000 is not a'),
        ("0 0 * *\n*", 7, 'must be five fields such as "30 2 * * 1-5": U+000A is not a'),
        ("0 0 * * \u00b2", 8, "U+00B2"),
        ("1_0 * * * *", 0, 'minute must be *, a number from 0 to 59, not "1_0"'),
        ("+1 * * * *", 0, 'minute must be *, a number from 0 to 59, not "+1"'),
        ("99999999999999999999 * * * *", 0, 'minute must be 0 to 59, not "99999999999999999999"'),
        ("", 0, 'must be five fields such as "30 2 * * 1-5", not ""'),
        ("   ", 0, 'must be five fields such as "30 2 * * 1-5", not "   "'),
    ],
)
def test_an_invalid_cron_expression_is_refused_at_its_position(text: str, position: int, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        cron(text)

    assert says in refused.value.reason
    assert (refused.value.field, refused.value.code, refused.value.position) == ("cron", "INVALID_FIELD", position)


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 feb */2", "0 0 30-31 2 *"])
def test_an_expression_that_can_never_fire_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        cron(text)

    assert (refused.value.field, refused.value.code) == ("cron", "NEVER_FIRES")


def test_thirty_february_or_a_monday_of_february_fires() -> None:
    assert first("0 0 30 2 1", 2) == ["2027-02-01 00:00", "2027-02-08 00:00"]


def test_a_window_without_an_occurrence_is_refused() -> None:
    with pytest.raises(InvalidRequest) as refused:
        cron("0 0 29 2 *", startTime="2029-01-01T00:00:00Z", endTime="2031-12-31T00:00:00Z")

    assert refused.value.code == "NEVER_FIRES"
    assert "from 2029-01-01T00:00:00Z to 2031-12-31T00:00:00Z" in refused.value.reason


@pytest.mark.parametrize(
    ("text", "stepped"),
    [
        ("*", False),
        ("*/2", True),
        ("0-23/3", True),
        ("0/6", True),
        ("*/24", False),
        ("0", False),
        ("1/2", False),
        ("0,12", False),
        ("*/13", True),
        ("0-22/2", True),
        ("0-12/12", True),
    ],
)
def test_which_hours_are_a_step_over_the_day(text: str, stepped: bool) -> None:
    assert parse_text(f"0 {text} * * *").stepped_hours is stepped


@pytest.mark.parametrize(
    ("text", "name", "months"),
    [
        ("0 0 29 2 *", "UTC", 10),
        ("0 0 29 2 */7", "Europe/Berlin", 90),
        ("0 0 29 2 */7", "UTC", 45),
        ("0 0 31 12 *", "America/New_York", 10),
        ("0 0 1 1 *", "Australia/Lord_Howe", 10),
        ("* * * * *", "Europe/Berlin", 4),
    ],
)
def test_a_search_looks_at_few_months(text: str, name: str, months: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = cron(text, timezone=name).rule
    looked: list[tuple[int, int]] = []
    original = OfMonths.mask
    monkeypatch.setattr(OfMonths, "mask", lambda self, *month: (looked.append(month), original(self, *month))[1])

    for second in range(10**9, 2 * 10**9, 10**8):
        looked.clear()
        assert rule.next_after(to_instant(second)) is not None
        assert len(looked) <= months
        looked.clear()
        assert rule.last_until(to_instant(second)) is not None
        assert len(looked) <= months


def test_an_expression_that_never_fires_is_refused_within_the_months_of_the_horizon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    original = OfMonths.mask
    monkeypatch.setattr(OfMonths, "mask", lambda self, *month: (looked.append(1), original(self, *month))[1])

    for text in ("0 0 30 2 *", "0 0 31 2,4,6,9,11 *"):
        with pytest.raises(InvalidRequest):
            cron(text)

    assert looked == []


def test_the_cost_does_not_grow_with_the_age_of_the_window() -> None:
    old = cron("*/5 * * * *", startTime="1970-01-01T00:00:00Z")
    late = datetime(2199, 12, 31, 23, 54, tzinfo=UTC)

    assert old.rule.next_after(late) == late + timedelta(minutes=1)
    assert old.rule.next_after(late + timedelta(minutes=1)) is None
    assert old.rule.last_until(datetime(2600, 1, 1, tzinfo=UTC)) == late + timedelta(minutes=1)
    assert old.rule.last_until(datetime(1969, 12, 31, tzinfo=UTC)) is None


def test_a_naive_instant_raises_an_error() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        cron("* * * * *").rule.next_after(datetime(2026, 1, 1))  # noqa: DTZ001 - on purpose


@pytest.mark.parametrize(
    ("text", "gap_s"),
    [
        ("* * * * *", 60),
        ("*/5 * * * *", 300),
        ("0,50 * * * *", 600),
        ("0,50 */2 * * *", 3000),
        ("0 */2 * * *", 7200),
        ("0 0,23 * * *", 3600),
        ("59 0 * * *", 86_400),
        ("0 0 1 1 *", 365 * 86_400),
        ("0 9 * * 1", 7 * 86_400),
        ("0 9 1 * *", 28 * 86_400),
        ("0 9 1 * 1", 86_400),
    ],
)
def test_the_certain_gap_without_clock_changes(text: str, gap_s: int) -> None:
    assert cron(text).interval_s == gap_s


def test_the_certain_gap_with_clock_changes() -> None:
    assert cron("30 2 * * *", timezone="Europe/Berlin").interval_s == 82_800
    assert cron("30 2 * * *", timezone="Europe/Berlin", dstOverlap="both").interval_s == 3600
    assert cron("0 2,3 * * *", timezone="Europe/Berlin").interval_s == 60
    assert cron("*/15 * * * *", timezone="Europe/Berlin").interval_s == 900
    assert cron("0 * * * *", timezone="Australia/Lord_Howe").interval_s == 1800
