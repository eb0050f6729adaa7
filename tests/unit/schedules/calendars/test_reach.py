"""Where a rule and its calendars can meet at all: nothing that comes may lie outside of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.calendars import calendar_content, calendars
from sweephand.schedules.calendars.calendars import Filtered, Mode, Roll, Rolled, Use, applied
from sweephand.schedules.grids import day_masks
from sweephand.schedules.grids.coverage import DAY_S, MONDAY, WEEK_S, Spans, Together, spans
from sweephand.schedules.grids.days import EPOCH_DAY, FIRST_DAY
from sweephand.schedules.grids.weeks import ANY_TIME, gaps_of, meets, times_of_week
from sweephand.schedules.rule import Jittered, Series, Undecided, Window, limited
from sweephand.schedules.timing import Timing, load, parse
from sweephand.schedules.zones.localtime import FIRST_SECOND, LAST_SECOND, to_second, zone
from tests.support.examples import examples
from tests.unit.schedules.calendars.test_calendars import contents, named
from tests.unit.schedules.test_shared_properties import timings_and_instants

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY, BEGUN = timedelta(days=1), date(2027, 2, 1)
ALL = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
CONTENTS: dict[str, dict[str, Any]] = {
    "always": {"weekly": [{"days": ALL}]},
    "weekdays": {"weekly": [{"days": ALL[:5]}]},
    "weekends": {"weekly": [{"days": ALL[5:]}]},
    "nights": {"weekly": [{"days": ALL, "from": "17:00", "to": "09:00"}]},
    "office": {"weekly": [{"days": ALL[:5], "from": "09:00", "to": "17:00"}]},
    "tokyo": {"timezone": "Asia/Tokyo", "weekly": [{"days": ALL, "from": "09:00", "to": "10:00"}]},
    "sunday night": {"weekly": [{"days": ["SUN"], "from": "03:00", "to": "03:01"}]},
    "Christmas": {"dates": ["12-25"]},
    "Christmas in Tokyo": {"timezone": "Asia/Tokyo", "dates": ["12-25"]},
    "early": {"ranges": [{"from": "2026-01-01", "to": "2027-01-31"}]},
    "fridays": {"dates": ["2027-01-01", "2027-06-04"]},
    "two evenings": {
        "ranges": [
            {"from": "2027-01-02T18:00:00", "to": "2027-01-02T20:00:00"},
            {"from": "2027-01-09T18:00:00", "to": "2027-01-09T21:00:00"},
        ]
    },
    "an evening": {
        "weekly": [{"days": ALL[:5]}],
        "ranges": [{"from": "2027-01-02T18:00:00", "to": "2027-01-02T20:00:00"}],
    },
}


def without_jitter(timing: Timing) -> Series:
    return timing.rule.series if isinstance(timing.rule, Jittered) else timing.rule


@examples(150)
@given(timings_and_instants())
def test_every_occurrence_falls_on_a_known_day(case: tuple[Timing, datetime]) -> None:
    timing, instant = case
    series, where = without_jitter(timing), timing.zone
    for by in (where, zone("Asia/Kolkata"), zone("Pacific/Apia")):
        days = day_masks.of_series(series, by)
        for second in islice(series.seconds(to_second(instant), LAST_SECOND), 20):
            assert days >> by.wall(second) // DAY_S - FIRST_DAY & 1


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ({"cron": "0 9 31 * *"}, lambda on: on.day == 31),
        ({"cron": "0 9 29 2 1"}, lambda on: on.month == 2 and (on.day == 29 or on.weekday() == 0)),
        (
            {"sapCron": "2027:2030 */2 -1 * 9 0 0"},
            lambda on: on.year in range(2027, 2031) and on.month % 2 == 0 and (on + DAY).day == 1,
        ),
        ({"rrule": "FREQ=YEARLY;BYYEARDAY=-1"}, lambda on: (on.month, on.day) == (12, 31)),
        (
            {"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU"},
            lambda on: on.weekday() in (0, 6) and (on - BEGUN).days // 7 % 2 == 0,
        ),
        ({"rrule": "FREQ=DAILY;INTERVAL=11"}, lambda on: (on - BEGUN).days % 11 == 0),
        (
            {"recurrence": {"frequency": "month", "interval": 7}},
            lambda on: (on.year * 12 + on.month - 2027 * 12 - 2) % 7 == 0 and on.day == 1,
        ),
        ({"every": "P1Y"}, lambda on: (on.month, on.day) == (2, 1)),
    ],
)
def test_the_days_are_exactly_those_of_the_rule(rule: dict[str, Any], wanted: Any) -> None:
    """Each day of 170 years, looked at one by one; before it begins a rule may have any."""
    series = parse({**rule, "startTime": "2027-02-01T09:00:00Z"}, now=NOW).rule
    assert isinstance(series, Window)

    found = day_masks.of_series(series.series, zone("UTC"))

    begin, end = BEGUN.toordinal(), date(2197, 12, 31).toordinal()
    days = [date.fromordinal(n) for n in range(begin, end + 1)]
    assert [on for on in days if found >> on.toordinal() - EPOCH_DAY - FIRST_DAY & 1] == [
        on for on in days if wanted(on)
    ]


def test_sets_of_days_convert_to_periods_and_back() -> None:
    listed = spans([(0, 3 * DAY_S), (5 * DAY_S - 1, 6 * DAY_S + 1), (10 * DAY_S, 11 * DAY_S)])

    assert day_masks.touched(listed) == day_masks.of_days([(0, 2), (4, 6), (10, 10)])
    assert day_masks.whole(listed) == day_masks.of_days([(0, 2), (5, 5), (10, 10)])
    assert day_masks.spans_of(day_masks.whole(listed)) == spans(
        [(0, 3 * DAY_S), (5 * DAY_S, 6 * DAY_S), (10 * DAY_S, 11 * DAY_S)]
    )
    for n in (0, 1, 2, 3, 61, 64):
        assert day_masks.widened(day_masks.of_days([(200, 200)]), n, 2 * n) == day_masks.of_days(
            [(200 - n, 200 + 2 * n)]
        )
    assert day_masks.narrowed(day_masks.of_days([(0, 4), (6, 7), (9, 11)])) == day_masks.of_days([(1, 3), (10, 10)])


def of_week(second: int, name: str) -> int:
    return (zone(name).wall(second) - MONDAY) % WEEK_S


@examples(150)
@given(timings_and_instants(), st.integers(0, 2**32))
def test_every_occurrence_falls_on_a_known_time_of_the_week(case: tuple[Timing, datetime], since: int) -> None:
    timing, instant = case
    series, name = without_jitter(timing), timing.zone.name
    times = times_of_week(series, timing.zone, since=since)
    daily = times_of_week(series, timing.zone, any_day=True)

    for second in islice(series.seconds(to_second(instant), LAST_SECOND), 20):
        at = of_week(second, name)
        assert second < since or meets(times, at, at + 1)
        assert all(meets(daily, on + at % DAY_S, on + at % DAY_S + 1) for on in range(0, WEEK_S, DAY_S))


@examples(100)
@given(
    timings_and_instants(),
    st.lists(st.tuples(contents(), st.sampled_from(list(Mode)), st.booleans()), min_size=1, max_size=3),
    st.sampled_from(list(Roll)),
)
def test_the_proof_agrees_with_a_search(
    case: tuple[Timing, datetime], drawn: list[tuple[dict[str, Any], Mode, bool]], roll: Roll
) -> None:
    timing, instant = case
    series = without_jitter(timing)
    at = to_second(instant)
    assume(roll is Roll.NONE or series.count(at, at + WEEK_S, 200) <= 7 * 24)
    packed = [str(Use(named(facts), mode, roll if rolls else Roll.NONE)) for facts, mode, rolls in drawn]
    proven = applied(series, packed, timing.zone)
    assert isinstance(proven, Filtered | Rolled)
    searched = replace(proven, filter=replace(proven.filter, open=None, reach=None))

    for begin in (at, to_second(NOW) // 2, 1_772_323_200, 1_775_000_000):
        upcoming, latest = proven.after(begin), proven.until(begin)
        for found, search in ((upcoming, searched.after), (latest, searched.until)):
            try:
                with limited(2_000):  # a search that ends soon, so that it is soon over
                    searched_for = search(begin)
            except Undecided:
                searched_for = None
            # An instant that the search did not reach must be an occurrence all the same.
            assert found == searched_for or (searched_for is None and proven.filter.free(found or 0, 1) == found)


def fields_of(rule: dict[str, Any], names: list[str], zone_name: str = "UTC") -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the fields of a rule. names: "+office" includes, "-office" excludes, "-office>" rolls to the next day."""
    uses, book = [], {}
    for each in names:
        name = each[1:].rstrip("<>")
        calendars.keep(f"reach-{name}", calendar_content.read(CONTENTS[name]))
        book[name] = f"reach-{name}"
        roll = {">": "next", "<": "previous"}.get(each[-1], "none")
        uses.append({"name": name, "mode": "include" if each[0] == "+" else "exclude", "roll": roll})
    return {**rule, "calendars": uses, "timezone": zone_name}, book


NEVER = [
    ({"cron": "0 9 * * 1"}, ["+fridays"]),
    ({"cron": "0 21 * * *"}, ["+two evenings"]),
    ({"cron": "0 9 * * *"}, ["-always"]),
    ({"cron": "0 9 * * *"}, ["-always>"]),
    ({"every": "PT1S"}, ["-weekdays", "-weekends"]),
    ({"cron": "30 2 * * 1-5"}, ["+office"]),
    ({"cron": "0 9 * * 6"}, ["+office"]),
    ({"cron": "0 9 * * 6"}, ["+weekdays", "+fridays"]),
    ({"every": "P1D", "startTime": "2027-01-01T18:00:00"}, ["+office"]),
    ({"every": "P1M", "startTime": "2027-01-31T18:00:00"}, ["+office>"]),
    ({"rrule": "FREQ=MONTHLY;BYDAY=1SA"}, ["+weekdays"]),
    ({"rrule": "FREQ=YEARLY;BYDAY=20SU"}, ["-weekends"]),
    ({"rrule": "FREQ=HOURLY;INTERVAL=7;BYDAY=SU"}, ["+weekdays"]),
    ({"sapCron": "* * * 2.sun * * *"}, ["+weekdays"]),
    ({"eventBridge": "cron(0 20 ? * MON-FRI *)"}, ["+nights", "+office"]),
    (
        {
            "recurrence": {"frequency": "hour", "interval": 24, "schedule": {"minutes": [30]}},
            "startTime": "2027-01-01T12:00:00",
        },
        ["+nights"],
    ),
    ({"recurrence": {"frequency": "week", "schedule": {"weekDays": ["sunday"]}}}, ["-weekends"]),
    ({"repeatAt": "18.40"}, ["+office"]),
    ({"cron": "0 12 * * *"}, ["+tokyo"]),
    ({"cron": "0 12 * * *"}, ["+fridays", "+nights"]),
    ({"cron": "0 9 * * 6"}, ["+an evening", "+office"]),
    ({"cron": "0 9 31 * *"}, ["+Christmas"]),
    ({"cron": "0 9 25 12 *"}, ["-Christmas"]),
    ({"cron": "0 9 * 3 *"}, ["+Christmas>"]),
    ({"cron": "0 9 * 3 *"}, ["+Christmas<", "+weekends<"]),
    ({"sapCron": "* * -2 * 9 0 0"}, ["+Christmas", "+fridays"]),
    ({"eventBridge": "cron(0 9 L * ? *)"}, ["+Christmas in Tokyo"]),
    ({"rrule": "FREQ=YEARLY;BYWEEKNO=20"}, ["+Christmas"]),
    ({"rrule": "FREQ=YEARLY;BYMONTH=1;BYDAY=MO,TU;BYSETPOS=-1"}, ["+Christmas>"]),
    ({"every": "P1Y", "startTime": "2027-01-31T09:00:00"}, ["+Christmas"]),
    ({"every": "P14D", "startTime": "2027-01-02T09:00:00"}, ["+fridays"]),
    ({"recurrence": {"frequency": "month", "schedule": {"monthDays": [26, -1]}}}, ["+Christmas"]),
    (
        {"cron": "0 9 * * *", "startTime": "2027-01-01T00:00:00", "endTime": "2027-12-24T00:00:00"},
        ["+Christmas", "-early"],
    ),
]


@pytest.mark.parametrize("name", ["UTC", "Europe/London", "America/New_York"])
@pytest.mark.parametrize(("rule", "names"), NEVER, ids=str)
def test_calendars_that_leave_no_occurrence_are_refused(rule: dict[str, Any], names: list[str], name: str) -> None:
    fields, book = fields_of(rule, names, name)

    with pytest.raises(InvalidRequest) as refused:
        parse(fields, now=NOW, book=book)

    assert (refused.value.code, refused.value.field) == ("NEVER_FIRES", "calendars")


@pytest.mark.parametrize(
    ("rule", "names", "name", "wanted"),
    [
        # Half past two is moved to three on one Sunday a year, and that is when the calendar lets it through.
        ({"cron": "30 2 * * *"}, ["+sunday night"], "America/New_York", "2027-03-14T07:00:00+00:00"),
        ({"cron": "30 2 * * *", "dstGap": "shift"}, ["+office", "-fridays"], "UTC", None),
        ({"cron": "0 1 * * *"}, ["+tokyo"], "Europe/London", "2027-03-29T00:00:00+00:00"),
        ({"cron": "0 19 * * 6"}, ["+an evening"], "UTC", "2027-01-02T19:00:00+00:00"),
        ({"cron": "0 9 * * 6"}, ["+weekdays>"], "UTC", "2026-11-23T09:00:00+00:00"),
        ({"cron": "0 0 * * *"}, ["+fridays", "-weekends"], "UTC", "2027-01-01T00:00:00+00:00"),
        ({"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO"}, ["+weekdays"], "UTC", "2044-02-29T12:00:00+00:00"),
    ],
    ids=str,
)
def test_the_first_remaining_occurrence_is_found(
    rule: dict[str, Any], names: list[str], name: str, wanted: str | None
) -> None:
    fields, book = fields_of(rule, names, name)

    if wanted is None:
        with pytest.raises(InvalidRequest):
            parse(fields, now=NOW, book=book)
    else:
        found = load(parse(fields, now=NOW, book=book).packed).rule.next_after(NOW)
        assert found is not None
        assert found.isoformat() == wanted


def test_a_moved_time_counts_only_if_the_rule_meets_the_gap() -> None:
    london = zone("Europe/London")
    at_two = times_of_week(parse({"cron": "30 1 * * *", "timezone": "Europe/London"}, now=NOW).rule, london)
    at_nine = times_of_week(parse({"cron": "30 9 * * *", "timezone": "Europe/London"}, now=NOW).rule, london)
    sunday_at_two = 6 * DAY_S + 2 * 3600

    assert meets(at_two, sunday_at_two, sunday_at_two + 1)
    assert not meets(at_nine, sunday_at_two, sunday_at_two + 1)
    assert (6 * DAY_S + 3600, 3600) in gaps_of(london, FIRST_SECOND)
    assert gaps_of(london, 2 * LAST_SECOND) == []


def test_an_unknown_series_can_occur_at_any_time() -> None:
    class Other(Series):
        pass

    assert times_of_week(Other(), zone("UTC")) == [ANY_TIME]


@given(
    st.sets(st.integers(0, 30)),
    st.sets(st.integers(0, 30)),
    st.integers(0, 31),
    st.booleans(),
    st.sampled_from([1, -1]),
)
def test_the_intersection_covers_what_every_part_covers(
    one: set[int], other: set[int], at: int, covered: bool, step: int
) -> None:
    def of(seconds: set[int]) -> Spans:
        return spans((second, second + 1) for second in seconds)

    found = Together((of(one), of(other)), where_all=True).find(at, covered, step)

    both = one & other
    wanted = next((second for second in range(at, 40 if step > 0 else -2, step) if (second in both) is covered), None)
    assert found == wanted
