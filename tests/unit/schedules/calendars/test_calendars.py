"""Calendars against an oracle that knows no search: it looks at each second of a day through zoneinfo."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sweephand.base.errors import Unavailable
from sweephand.schedules.calendars import calendar_content, calendars
from sweephand.schedules.calendars.calendars import (
    MOST_ROLLED_DAYS,
    Filtered,
    Mode,
    Roll,
    Rolled,
    Use,
    applied,
    left_out,
)
from sweephand.schedules.grids.coverage import MONDAY, WEEK_S, On, Spans, Stretches, Together, Weekly, spans
from sweephand.schedules.grids.cycles import Cycle
from sweephand.schedules.grids.wallclock import OnWallClock
from sweephand.schedules.grids.weeks import rolled_gap_s
from sweephand.schedules.rule import MOST, Never, Once, Series, Steps, Undecided, Window, limited
from sweephand.schedules.timing import parse
from sweephand.schedules.zones.localtime import LAST_SECOND, Gap, Overlap, to_instant, zone
from tests.support.examples import examples
from tests.unit.schedules.given import ZONES, seconds
from tests.unit.schedules.oracle import zone_info

DAY_S = 86_400
BEGIN = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
_numbers = count()


def named(facts: dict[str, Any]) -> str:
    """Returns the reference of a calendar with this content."""
    reference = f"test{next(_numbers):012d}"
    calendars.keep(reference, facts)
    return reference


def day(text: str) -> int:
    return date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal()


def second(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def build(series: Series, *uses: tuple[dict[str, Any], str, str], by: str = "UTC") -> Series:
    packed = [str(Use(named(facts), Mode(mode), Roll(roll))) for facts, mode, roll in uses]
    return applied(series, packed, zone(by))


def texts(series: Series, after: str, number: int) -> list[str]:
    found, at = [], second(after)
    for _ in range(number):
        upcoming = series.after(at)
        if upcoming is None:
            break
        found.append(to_instant(upcoming).strftime("%m-%d %H:%M"))
        at = upcoming
    return found


# The oracle


def covers(facts: dict[str, Any], at: int, by: str) -> bool:
    """Tells whether the content holds a second, as the words of its members say it."""
    wall = to_instant(at).astimezone(zone_info(facts.get("zone") or by)).replace(tzinfo=UTC)
    on = wall.date().toordinal() - date(1970, 1, 1).toordinal()
    reads = int(wall.timestamp())
    in_week = (wall.weekday() * DAY_S) + wall.hour * 3600 + wall.minute * 60 + wall.second
    return (
        any(first <= on <= last for first, last in facts.get("days", ()))
        or any((wall.month, wall.day) == (month, number) for month, number in facts.get("yearly", ()))
        or any(begin <= reads < end for begin, end in facts.get("walls", ()))
        or any(begin <= at < end for begin, end in facts.get("fixed", ()))
        or any(begin <= in_week < end for begin, end in facts.get("week", ()))
    )


def free(uses: list[tuple[dict[str, Any], str, str]], at: int, by: str) -> bool:
    return all(covers(facts, at, by) is (mode == "include") for facts, mode, _ in uses)


def comes(uses: list[tuple[dict[str, Any], str, str]], at: int, by: str, written: datetime | None = None) -> int | None:
    """Returns the instant to which an occurrence of the rule comes: itself, the first day that is free at its time, or
    nowhere.

    written: the wall time that the rule says, where the clock jumps over it.
    """
    if free(uses, at, by):
        return at
    stopping = [roll for facts, mode, roll in uses if covers(facts, at, by) is not (mode == "include")]
    if "none" in stopping:
        return None
    step = 1 if stopping[0] == "next" else -1
    info = zone_info(by)
    wall = written or to_instant(at).astimezone(info).replace(tzinfo=None)
    for days in range(1, MOST_ROLLED_DAYS + 1):
        there = (wall + timedelta(days=step * days)).replace(tzinfo=info)
        back = there.astimezone(UTC).astimezone(info)
        if back.replace(tzinfo=None) != there.replace(tzinfo=None):  # in a gap: its end
            there = end_of_gap(there.replace(tzinfo=None), by)
        found = int(there.timestamp())
        if free(uses, found, by):
            return found
    return None


def end_of_gap(wall: datetime, by: str) -> datetime:
    info = zone_info(by)
    at = (wall.replace(tzinfo=UTC) - timedelta(days=2)).replace(second=0)
    while at.astimezone(info).replace(tzinfo=None) <= wall:
        at += timedelta(minutes=1)
    return at


# Content and uses at random

_days = st.integers(day("2026-02-20"), day("2026-04-10"))
_times = st.sampled_from([0, 1, 3600, 2 * 3600 + 1800, 9 * 3600, 17 * 3600 + 59, DAY_S])


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if draw(st.booleans()):
        facts["zone"] = draw(st.sampled_from(ZONES))
    if draw(st.booleans()):
        facts["days"] = [(first, first + draw(st.integers(0, 9))) for first in draw(st.lists(_days, max_size=4))]
    if draw(st.booleans()):
        facts["yearly"] = draw(st.lists(st.sampled_from([(2, 28), (2, 29), (3, 1), (3, 29), (12, 31)]), max_size=3))
    if draw(st.booleans()):
        facts["walls"] = [
            (first * DAY_S + draw(_times), first * DAY_S + DAY_S + draw(_times))
            for first in draw(st.lists(_days, max_size=3))
        ]
    if draw(st.booleans()):
        facts["fixed"] = [
            (first * DAY_S + draw(_times), first * DAY_S + DAY_S + draw(_times))
            for first in draw(st.lists(_days, max_size=3))
        ]
    if draw(st.booleans()):
        days = draw(st.sets(st.integers(0, 6), max_size=7))
        begin, end = draw(st.sampled_from([(0, DAY_S), (3600, 7200), (2 * 3600, 3 * 3600), (9 * 3600, 17 * 3600)]))
        facts["week"] = [(each * DAY_S + begin, each * DAY_S + end) for each in sorted(days)]
    return facts


@st.composite
def rules(draw: st.DrawFn, least: int = 1) -> Series:
    step = draw(st.sampled_from([step for step in (1_801, 3600, 7 * 3600, DAY_S, 3 * DAY_S, WEEK_S) if step >= least]))
    return Steps(BEGIN + draw(st.integers(0, DAY_S)), step)


modes = st.sampled_from(["exclude", "exclude", "include"])


@given(rules(), st.lists(st.tuples(contents(), modes, st.just("none")), min_size=1, max_size=3), st.sampled_from(ZONES))
def test_several_calendars_admit_only_what_each_of_them_admits(
    rule: Series, uses: list[tuple[dict[str, Any], str, str]], by: str
) -> None:
    begin, end = BEGIN + 10 * DAY_S, BEGIN + 35 * DAY_S

    series = build(rule, *uses, by=by)

    wanted = [at for at in rule.seconds(begin, end) if free(uses, at, by)]
    assert list(series.seconds(begin, end)) == wanted
    assert series.count(begin, end, 10**9) == len(wanted)
    assert series.count(begin, end, 3) == min(3, len(wanted))
    back, at = [], series.until(end)
    while at is not None and at > begin:
        back.append(at)
        at = series.until(at - 1)
    assert back[::-1] == wanted
    stopped = [at for at in rule.seconds(begin, end) if not free(uses, at, by)]
    assert [at for at, _ in left_out(series, begin, end)] == stopped
    for at, place in left_out(series, begin, end):
        facts, mode, _ = uses[place]
        assert covers(facts, at, by) is not (mode == "include")


@given(
    rules(least=7 * 3600),
    st.lists(st.tuples(contents(), modes, st.booleans()), min_size=1, max_size=2),
    st.sampled_from(["next", "previous"]),
    st.sampled_from(ZONES),
)
def test_a_stopped_occurrence_rolls_to_the_nearest_day_that_is_free_at_its_time(
    rule: Series, drawn: list[tuple[dict[str, Any], str, bool]], roll: str, by: str
) -> None:
    uses = [(facts, mode, roll if rolls or n == 0 else "none") for n, (facts, mode, rolls) in enumerate(drawn)]
    begin, end = BEGIN + 12 * DAY_S, BEGIN + 19 * DAY_S
    around = (MOST_ROLLED_DAYS + 2) * DAY_S

    series = build(rule, *uses, by=by)

    moved = {at: comes(uses, at, by) for at in rule.seconds(begin - around, end + around)}
    wanted = sorted({at for at in moved.values() if at is not None and begin < at <= end})
    assert list(series.seconds(begin, end)) == wanted
    back, at = [], series.until(end)
    while at is not None and at > begin:
        back.append(at)
        at = series.until(at - 1)
    assert back[::-1] == wanted
    sources = {at: {source for source, to in moved.items() if to == at} for at in wanted}
    for at in wanted:
        note = series.moved_by(at)
        if at in sources[at]:
            assert note is None
        else:
            assert note is not None, at
            local = {
                to_instant(source).astimezone(zone_info(by)).strftime("%Y-%m-%dT%H:%M:%S") for source in sources[at]
            }
            assert note.rule == "calendar"
            assert note.local_time in local
    assert [at for at, _ in left_out(series, begin, end)] == [
        at for at in rule.seconds(begin, end) if moved[at] is None
    ]


@given(
    st.integers(1, 400),
    st.integers(0, DAY_S),
    st.lists(st.tuples(contents(), modes, st.booleans()), max_size=1),
    st.sampled_from([(range(5), "include"), (range(5, 7), "exclude"), ((0, 3), "include")]),
    st.sampled_from(["next", "previous"]),
    st.sampled_from(ZONES),
)
@examples(60)
def test_rare_occurrences_roll_like_all_others(
    step_days: int,
    offset_s: int,
    drawn: list[tuple[dict[str, Any], str, bool]],
    week: tuple[Iterable[int], str],
    roll: str,
    by: str,
) -> None:
    """Where occurrences are few, it is computed where the next ones come: over years, and each of them."""
    weekdays = {"week": [(on * DAY_S, (on + 1) * DAY_S) for on in week[0]]}
    uses = [(weekdays, week[1], roll), *((facts, mode, roll if rolls else "none") for facts, mode, rolls in drawn)]
    rule = Steps(BEGIN + offset_s, step_days * DAY_S)
    begin, end = BEGIN + 100 * DAY_S, BEGIN + (100 + min(3_000, 40 * step_days)) * DAY_S
    around = (MOST_ROLLED_DAYS + 2) * DAY_S

    series = build(rule, *uses, by=by)

    places = {comes(uses, at, by) for at in rule.seconds(begin - around, end + around)}
    wanted = sorted(at for at in places if at is not None and begin < at <= end)
    assert list(series.seconds(begin, end)) == wanted
    back, at = [], series.until(end)
    while at is not None and at > begin:
        back.append(at)
        at = series.until(at - 1)
    assert back[::-1] == wanted


def test_the_tenth_of_a_quarter_rolls_back_and_none_is_skipped() -> None:
    content = {"weekly": [{"days": ["MON", "TUE", "WED", "THU", "FRI"]}]}
    calendars.keep("quarterly", calendar_content.read(content))
    fields = {"cron": "0 9 10 */3 *", "calendars": [{"name": "banking", "mode": "include", "roll": "previous"}]}
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)

    timing = parse(fields, now=now, book={"banking": "quarterly"})

    days, at = [], now
    for _ in range(8):
        at = timing.rule.next_after(at)
        assert at is not None
        days.append(at.date().isoformat())
    assert days == [
        *("2027-01-08", "2027-04-09", "2027-07-09", "2027-10-08"),
        *("2028-01-10", "2028-04-10", "2028-07-10", "2028-10-10"),
    ]


def as_ruled(wall: datetime, by: str, gap: str, overlap: str) -> list[tuple[int, datetime | None]]:
    """Returns (an instant of a wall time, the time itself if no clock reads it) by zoneinfo and by the words of the
    rules.
    """
    copies = [wall.replace(tzinfo=zone_info(by), fold=fold) for fold in (0, 1)]
    instants = sorted({copy.timestamp() for copy in copies})
    there = [at for at in instants if to_instant(int(at)).astimezone(zone_info(by)).replace(tzinfo=None) == wall]
    if there:
        chosen = there if overlap == "both" else there[-1:] if overlap == "second" else there[:1]
        return [(int(at), None) for at in chosen]
    if gap == "skip":
        return []
    if gap == "shift":
        return [(int(copies[0].timestamp()), wall)]  # by the offset before the jump
    return [(int(end_of_gap(wall, by).timestamp()), wall)]


@given(
    st.sampled_from(
        [
            ("America/New_York", "2027-03-14"),
            ("Europe/Berlin", "2027-03-28"),
            ("Australia/Lord_Howe", "2027-10-03"),
            ("America/Santiago", "2027-09-05"),
            ("Africa/Cairo", "2027-04-30"),
            ("Pacific/Apia", "2011-12-31"),
            ("Europe/Berlin", "2027-10-31"),
        ]
    ),
    st.sampled_from([(gap, overlap) for gap in Gap for overlap in Overlap]),
    st.lists(st.sampled_from([0, 10, 30, 90, 120, 135, 150, 165, 180, 195, 210, 600]), min_size=1, unique=True),
    st.sets(st.integers(-4, 4), min_size=1),
    st.sampled_from([(0, DAY_S), (0, 2 * 3600 + 1800), (2 * 3600 + 1800, DAY_S), (3 * 3600, 3 * 3600 + 900)]),
    st.sampled_from(["next", "previous"]),
)
def test_an_occurrence_moved_by_a_gap_rolls_at_the_time_of_the_rule(
    where: tuple[str, str], rules: tuple[Gap, Overlap], minutes: list[int], days: set[int], part: Any, roll: str
) -> None:
    (by, on), (gap, overlap) = where, rules
    change = day(on)
    uses = [
        ({"walls": [((change + n) * DAY_S + part[0], (change + n) * DAY_S + part[1]) for n in days]}, "exclude", roll)
    ]
    pattern = Cycle(DAY_S, tuple(minute * 60 for minute in sorted(minutes)))
    begin, end = (change - 9) * DAY_S, (change + 9) * DAY_S

    rule = OnWallClock(pattern, zone(by), gap, overlap)
    series = build(rule, *uses, by=by)

    midnight = datetime.fromisoformat(on)
    walls = [midnight + timedelta(days=n, minutes=minute) for n in range(-20, 20) for minute in minutes]
    planned = [entry for wall in walls for entry in as_ruled(wall, by, gap, overlap)]
    moved = {(at, wall): comes(uses, at, by, wall) for at, wall in planned}
    wanted = sorted({at for at in moved.values() if at is not None and begin < at <= end})
    assert list(series.seconds(begin, end)) == wanted
    least_s = rolled_gap_s(rule, zone(by))
    assert all(later - at >= least_s for at, later in pairwise(wanted))
    back, at = [], series.until(end)
    while at is not None and at > begin:
        back.append(at)
        at = series.until(at - 1)
    assert back[::-1] == wanted
    for at in wanted:
        note = series.moved_by(at)
        sources = {
            wall or to_instant(source).astimezone(zone_info(by)).replace(tzinfo=None)
            for (source, wall), to in moved.items()
            if to == at and source != at
        }
        if note is not None and note.rule == "calendar":
            assert datetime.fromisoformat(note.local_time) in sources


@given(contents(), st.booleans(), st.sampled_from([1, -1]), st.data())
def test_rolling_to_the_nearest_is_exact_to_the_second(
    facts: dict[str, Any], covered: bool, step: int, data: st.DataObject
) -> None:
    by = data.draw(st.sampled_from(ZONES))
    at = data.draw(seconds(by, BEGIN - 20 * DAY_S, BEGIN + 60 * DAY_S))

    times = calendars.calendar("x", facts).covered(zone(by))
    found = times.find(at, covered, step)

    assume(found is None or abs(found - at) < 40 * DAY_S)
    assert found is None or (found - at) * step >= 0
    assert found is None or covers(facts, found, by) is covered
    looked = range(at, at + step * 40 * DAY_S if found is None else found, step * 3_001)
    assert all(covers(facts, each, by) is not covered for each in looked)
    if found not in (None, at):
        assert covers(facts, found - step, by) is not covered


# Examples

WEEKENDS = {"week": [(5 * DAY_S, WEEK_S)]}
EASTER = {"days": [(day("2026-04-03"), day("2026-04-06"))]}


def test_a_holiday_is_excluded() -> None:
    daily = Steps(second("2026-04-01T09:00Z"), DAY_S)

    assert texts(build(daily, (EASTER, "exclude", "none")), "2026-04-02T00:00Z", 3) == [
        "04-02 09:00",
        "04-07 09:00",
        "04-08 09:00",
    ]


def test_only_business_hours_run() -> None:
    hours = {"week": [(n * DAY_S + 8 * 3600, n * DAY_S + 10 * 3600) for n in range(5)]}
    hourly = Steps(0, 3600)

    found = texts(build(hourly, (hours, "include", "none"), by="Europe/Berlin"), "2026-04-10T00:00Z", 4)

    assert found == ["04-10 06:00", "04-10 07:00", "04-13 06:00", "04-13 07:00"]


def test_the_end_of_a_period_is_excluded() -> None:
    hours = {"walls": [(second("2026-04-10T08:00Z"), second("2026-04-10T10:00Z"))]}

    found = texts(build(Steps(0, 3600), (hours, "include", "none")), "2026-04-01T00:00Z", 9)

    assert found == ["04-10 08:00", "04-10 09:00"]


def test_a_sunday_rolls_to_monday_and_merges_with_its_occurrence() -> None:
    daily = Steps(second("2026-04-01T09:00Z"), DAY_S)
    calendar = (WEEKENDS, "exclude", "next")

    assert texts(build(daily, calendar), "2026-04-09T12:00Z", 3) == ["04-10 09:00", "04-13 09:00", "04-14 09:00"]
    assert texts(build(Once(second("2026-04-12T09:00Z")), calendar), "2026-01-01T00:00Z", 9) == ["04-13 09:00"]
    assert build(daily, calendar).count(second("2026-04-10T00:00Z"), second("2026-04-17T00:00Z"), 99) == 5


def test_a_time_in_a_gap_rolls_to_a_day_and_merges_with_its_occurrence() -> None:
    daily = OnWallClock(Cycle(DAY_S, (9_000,)), zone("America/New_York"), Gap.NEXT_VALID, Overlap.FIRST)

    series = build(daily, (WEEKENDS, "exclude", "next"), by="America/New_York")

    assert texts(series, "2027-03-12T12:00:00+00:00", 2) == ["03-15 06:30", "03-16 06:30"]


@pytest.mark.parametrize(
    ("fields", "by", "gap_s"),
    [
        ({"cron": "0 9 1 * *"}, "UTC", DAY_S),
        ({"cron": "0 9 * * *"}, "Europe/Berlin", DAY_S - 3600),
        ({"cron": "0 9 * * *", "dstOverlap": "second"}, "Europe/Berlin", 3600),
        ({"cron": "0 9,15 1 * *"}, "Europe/Berlin", 5 * 3600),
        ({"cron": "30 2 * * *", "dstGap": "shift"}, "Europe/Berlin", 60),
        ({"rrule": "FREQ=MONTHLY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"}, "Europe/Berlin", DAY_S - 3600),
        ({"every": "P2D", "startTime": "2027-01-01T09:00:00Z"}, "UTC", DAY_S),
        ({"every": "P2D", "startTime": "2027-01-01T09:00:00Z"}, "Europe/Berlin", 60),
        ({"every": "PT86401S"}, "UTC", 1),
    ],
)
def test_a_rolled_occurrence_comes_as_close_as_its_times_of_the_day(
    fields: dict[str, object], by: str, gap_s: int
) -> None:
    rolling = {**fields, "timezone": by, "calendars": [{"name": "weekends", "roll": "next"}]}

    timing = parse(rolling, now=to_instant(BEGIN), book={"weekends": named(WEEKENDS)})

    assert timing.interval_s == gap_s


def test_a_first_of_the_month_rolls_back_over_holidays_and_weekend() -> None:
    once = Once(second("2026-04-06T09:00Z"))
    uses = [(WEEKENDS, "exclude", "previous"), (EASTER, "exclude", "previous")]

    series = build(once, *uses)

    assert texts(series, "2026-01-01T00:00Z", 2) == ["04-02 09:00"]
    moved = series.moved_by(second("2026-04-02T09:00Z"))
    assert moved is not None
    assert (moved.rule, moved.local_time) == ("calendar", "2026-04-06T09:00:00")
    assert series.until(second("2026-04-05T00:00Z")) == second("2026-04-02T09:00Z")


def test_a_calendar_that_skips_overrides_one_that_rolls() -> None:
    once = Once(second("2026-04-05T09:00Z"))

    series = build(once, (WEEKENDS, "exclude", "next"), (EASTER, "exclude", "none"))

    assert series.after(0) is None
    assert list(left_out(series, 0, LAST_SECOND)) == [(second("2026-04-05T09:00Z"), 0)]


@pytest.mark.parametrize(
    ("on", "step_s", "roll"),
    [
        ("2029-06-01", 3600, "next"),
        ("2029-06-01", 2 * 3600, "previous"),
        ("2199-12-31", DAY_S, "next"),
        ("2199-12-31", 3600, "previous"),
    ],
)
def test_a_day_far_away_is_reached_however_many_occurrences_lie_before_it(on: str, step_s: int, roll: str) -> None:
    only = {"days": [(day(on), day(on))]}
    series = build(Window(Steps(0, step_s), 0, LAST_SECOND), (only, "include", roll))
    begin = second("2027-03-01T00:00Z")

    found = list(series.seconds(begin, LAST_SECOND))

    assert found == list(range(day(on) * DAY_S, (day(on) + 1) * DAY_S, step_s))
    assert series.until(LAST_SECOND) == found[-1]
    assert series.until(found[0] - 1) is None


def test_occurrences_without_a_free_day_are_skipped() -> None:
    """At two in the morning no day is free, so the one at noon comes, and comes alone."""
    hours = {"week": [(n * DAY_S, n * DAY_S + 9 * 3600) for n in range(7)]}
    twice = Window(
        Steps(second("2026-04-11T02:00Z"), 10 * 3600), second("2026-04-11T02:00Z"), second("2026-04-11T12:00Z")
    )

    series = build(twice, (WEEKENDS, "exclude", "next"), (hours, "exclude", "next"))

    assert texts(series, "2026-04-01T00:00Z", 9) == ["04-13 12:00"]


def test_rolling_ends_after_two_months() -> None:
    def stopped(days: int) -> dict[str, Any]:
        return {"days": [(day("2026-04-01"), day("2026-04-01") + days - 1)]}

    once = Once(second("2026-04-01T09:00Z"))

    assert texts(build(once, (stopped(62), "exclude", "next")), "2026-01-01T00:00Z", 2) == ["06-02 09:00"]
    assert build(once, (stopped(63), "exclude", "next")).after(0) is None


def test_nothing_rolls_into_the_window_from_outside() -> None:
    daily = Steps(second("2026-04-11T09:00Z"), WEEK_S)
    packed = [str(Use(named(WEEKENDS), Mode.EXCLUDE, Roll.NEXT))]
    first = second("2026-04-12T00:00Z")

    series = Window(applied(Window(daily, first, LAST_SECOND), packed, zone("UTC")), first, LAST_SECOND)

    assert texts(series, "2026-01-01T00:00Z", 1) == ["04-20 09:00"]


@pytest.mark.parametrize("roll", list(Roll))
def test_a_schedule_with_everything_excluded_never_runs(roll: Roll) -> None:
    whole_week = {"week": [(0, WEEK_S)]}
    series = build(Steps(0, DAY_S), (whole_week, "exclude", roll.value))

    assert series.after(0) is None
    assert series.until(LAST_SECOND) is None
    assert series.count(0, LAST_SECOND, 5) == 0


def test_a_schedule_with_nothing_included_never_runs() -> None:
    assert build(Steps(0, 1), ({}, "include", "none")).after(0) is None
    assert build(Steps(0, 1), ({}, "exclude", "none")).after(0) == 1
    assert build(Never(), (WEEKENDS, "exclude", "next")).after(0) is None


class Counted(Series):
    """Mondays at nine, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.series = Steps(MONDAY + 9 * 3600, WEEK_S)

    def after(self, second: int) -> int | None:
        self.asked += 1
        return self.series.after(second)

    def until(self, second: int) -> int | None:
        self.asked += 1
        return self.series.until(second)


@pytest.mark.parametrize("roll", ["none", "next"])
def test_a_search_that_finds_nothing_is_bounded(roll: str) -> None:
    mondays = {"week": [(0, DAY_S)]}
    asked = Counted()
    series = build(asked, (mondays, "exclude", "none"), ({"week": [(0, 1)]}, "exclude", roll))

    for question in (series.after, series.until):
        with pytest.raises(Undecided), limited():
            question(BEGIN)

    assert 0 < asked.asked < 2 * MOST


def test_a_long_period_is_not_searched_second_by_second() -> None:
    asked = Counted()
    asked.series = Steps(0, 1)

    series = build(asked, (EASTER, "exclude", "none"))

    assert series.after(second("2026-04-03T00:00Z") - 1) == second("2026-04-07T00:00Z")
    assert asked.asked <= 2
    assert series.count(second("2026-04-02T00:00Z"), second("2026-04-08T00:00Z"), 10**9) == 2 * DAY_S


def test_adjacent_periods_are_merged() -> None:
    assert spans([(5, 9), (1, 3), (3, 4), (7, 12), (20, 20)]) == Spans((1, 5), (4, 12))


def test_a_fully_covered_week_is_covered_forever() -> None:
    whole = Weekly(spans([(0, WEEK_S)]))

    assert whole.find(123, True, 1) == 123
    assert whole.find(123, False, 1) is None
    assert whole.find(123, False, -1) is None


def test_a_period_over_the_end_of_the_week_is_one_period() -> None:
    nights = Weekly(spans([(6 * DAY_S + 80_000, WEEK_S), (0, 5_000)]))

    assert nights.find(MONDAY + 6 * DAY_S + 80_000, False, 1) == MONDAY + WEEK_S + 5_000
    assert nights.find(MONDAY + WEEK_S + 4_999, False, -1) == MONDAY + 6 * DAY_S + 79_999


def test_a_calendar_with_a_zone_of_its_own_keeps_it() -> None:
    facts = {"zone": "Pacific/Apia", "days": [(day("2026-06-01"), day("2026-06-01"))]}
    times = calendars.calendar("x", facts).covered(zone("UTC"))

    assert times.find(BEGIN, True, 1) == second("2026-05-31T11:00Z")
    assert isinstance(times, On)


def test_unread_calendars_are_requested_again_and_missing_ones_are_unreadable() -> None:
    with pytest.raises(Unavailable):
        applied(Never(), ["e-unknown"], zone("UTC"))
    calendars.keep("gone", None)
    with pytest.raises(ValueError, match="gone"):
        applied(Never(), ["e-gone"], zone("UTC"))
    with pytest.raises(ValueError, match="unknown use"):
        applied(Never(), ["x-gone"], zone("UTC"))


def test_uses_are_packed_in_two_letters() -> None:
    for mode in Mode:
        for roll in Roll:
            use = Use("AbCd-_0123456789", mode, roll)
            assert Use.read(str(use)) == use
            assert len(str(use)) == 18
    packed = '{"cron":"0 9 * * *","cal":["e-Ab","i<Cd"],"last":5}'
    assert calendars.references(packed) == ["Ab", "Cd"]
    assert calendars.references('{"cron":"0 9 * * *"}') == []


def test_the_number_of_cached_calendars_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calendars, "MOST_KEPT", 3)
    monkeypatch.setattr(calendars, "_kept", {})

    for n in range(5):
        calendars.keep(f"r{n}", {})

    assert [calendars.known(f"r{n}") for n in range(5)] == [False, False, True, True, True]


def test_series_with_calendars_are_values() -> None:
    packed = [str(Use(named(WEEKENDS), Mode.EXCLUDE, Roll.NEXT))]
    one, other = (applied(Once(2 * DAY_S), packed, zone("UTC")) for _ in range(2))

    assert one == other
    assert isinstance(one, Rolled)
    assert isinstance(build(Once(5), (WEEKENDS, "include", "none")), Filtered)


def test_stretches_have_one_question() -> None:
    parts: list[Stretches] = [Spans((), ()), Weekly(Spans((), ())), Together(())]

    assert [part.find(5, True, 1) for part in parts] == [None] * 3
    assert [part.find(5, False, -1) for part in parts] == [5] * 3
