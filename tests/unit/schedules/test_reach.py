"""Where a rule and its calendars can meet at all: nothing that comes may lie outside of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sweephand.errors import InvalidRequest
from sweephand.schedules import calendar_content, calendars, coverage, rolling
from sweephand.schedules.calendars import Filtered, Mode, Roll, Rolled, Use, applied
from sweephand.schedules.coverage import DAY_S, MONDAY, WEEK_S, Spans, spans
from sweephand.schedules.localtime import FIRST_SECOND, LAST_SECOND, to_second, zone
from sweephand.schedules.reach import InAll
from sweephand.schedules.rule import Jittered, Series
from sweephand.schedules.timing import Timing, load, parse
from sweephand.schedules.weeks import ANY_TIME, gaps_of, meets, times_of_week
from tests.support.examples import examples
from tests.unit.schedules.test_calendars import contents, named
from tests.unit.schedules.test_shared_properties import timings_and_instants

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ALL = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
CONTENTS: dict[str, dict[str, Any]] = {
    "always": {"weekly": [{"days": ALL}]},
    "weekdays": {"weekly": [{"days": ALL[:5]}]},
    "weekends": {"weekly": [{"days": ALL[5:]}]},
    "nights": {"weekly": [{"days": ALL, "from": "17:00", "to": "09:00"}]},
    "office": {"weekly": [{"days": ALL[:5], "from": "09:00", "to": "17:00"}]},
    "tokyo": {"timezone": "Asia/Tokyo", "weekly": [{"days": ALL, "from": "09:00", "to": "10:00"}]},
    "sunday night": {"weekly": [{"days": ["SUN"], "from": "03:00", "to": "03:01"}]},
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


def of_week(second: int, name: str) -> int:
    return (zone(name).wall(second) - MONDAY) % WEEK_S


@examples(150)
@given(timings_and_instants(), st.integers(0, 2**32))
def test_every_occurrence_comes_at_a_time_of_the_week_that_is_known(case: tuple[Timing, datetime], since: int) -> None:
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
def test_what_is_proven_is_what_a_search_finds(
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
        with pytest.MonkeyPatch.context() as patch:  # a search that ends soon, so that it is soon over
            for module, looks in ((calendars, 150), (coverage, 300), (rolling, 150)):
                patch.setattr(module, "MOST_LOOKS", looks)
            wanted = searched.after(begin), searched.until(begin)
        for found, searched_for in zip((upcoming, latest), wanted, strict=True):
            # What the search did not reach must be an occurrence all the same.
            assert found == searched_for or (searched_for is None and proven.filter.free(found or 0, 1) == found)


def fields_of(rule: dict[str, Any], names: list[str], zone_name: str = "UTC") -> tuple[dict[str, Any], dict[str, str]]:
    """names: "+office" includes, "-office" excludes, "-office>" rolls to the next day."""
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
]


@pytest.mark.parametrize("name", ["UTC", "Europe/London", "America/New_York"])
@pytest.mark.parametrize(("rule", "names"), NEVER, ids=str)
def test_calendars_that_leave_nothing_are_refused(rule: dict[str, Any], names: list[str], name: str) -> None:
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
def test_the_first_one_that_is_left(rule: dict[str, Any], names: list[str], name: str, wanted: str | None) -> None:
    fields, book = fields_of(rule, names, name)

    if wanted is None:
        with pytest.raises(InvalidRequest):
            parse(fields, now=NOW, book=book)
    else:
        found = load(parse(fields, now=NOW, book=book).packed).rule.next_after(NOW)
        assert found is not None
        assert found.isoformat() == wanted


def test_a_moved_time_counts_only_where_the_rule_meets_the_gap() -> None:
    london = zone("Europe/London")
    at_two = times_of_week(parse({"cron": "30 1 * * *", "timezone": "Europe/London"}, now=NOW).rule, london)
    at_nine = times_of_week(parse({"cron": "30 9 * * *", "timezone": "Europe/London"}, now=NOW).rule, london)
    sunday_at_two = 6 * DAY_S + 2 * 3600

    assert meets(at_two, sunday_at_two, sunday_at_two + 1)
    assert not meets(at_nine, sunday_at_two, sunday_at_two + 1)
    assert (6 * DAY_S + 3600, 3600) in gaps_of(london, FIRST_SECOND)
    assert gaps_of(london, 2 * LAST_SECOND) == []


def test_a_series_that_is_not_known_may_come_at_any_time() -> None:
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
def test_in_all_parts_is_what_each_of_them_covers(
    one: set[int], other: set[int], at: int, covered: bool, step: int
) -> None:
    def of(seconds: set[int]) -> Spans:
        return spans((second, second + 1) for second in seconds)

    found = InAll((of(one), of(other))).find(at, covered, step)

    both = one & other
    wanted = next((second for second in range(at, 40 if step > 0 else -2, step) if (second in both) is covered), None)
    assert found == wanted
