"""The smallest and the largest gap: as a walk through all occurrences finds them, and by shape where they are many."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.schedules.explain.gaps import MOST_MEASURED, measure, walk
from sweephand.schedules.rule import Series
from sweephand.schedules.timing import Timing, parse
from tests.support.examples import examples
from tests.unit.schedules import given as some
from tests.unit.schedules.test_shared_properties import parsed, timings_and_instants

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BEGIN = 1_767_225_600
YEAR_S = 366 * 86_400


def walked(series: Series, after: int, until: int) -> tuple[int, int, int | None, int | None] | None:
    """Walks in the obvious way: all of them, and the distances between neighbours."""
    found = list(series.seconds(after, until))
    gaps = [later - earlier for earlier, later in pairwise(found)]
    return (found[0], found[-1], min(gaps, default=None), max(gaps, default=None)) if found else None


@examples(150)
@given(timings_and_instants(), st.integers(0, 5 * 10**6))
def test_a_walk_finds_the_same_gaps(case: tuple[Timing, datetime], span_s: int) -> None:
    timing, instant = case
    after = int(instant.timestamp())
    if timing.rule.count(after, after + span_s, MOST_MEASURED + 1) > MOST_MEASURED:
        span_s = MOST_MEASURED - 1
    found = measure(timing.rule, after, after + span_s)

    assert (found and found[:4]) == walked(timing.rule, after, after + span_s)


@examples(150)
@given(
    st.sampled_from(
        [
            "30 2 * * *",
            "0 0 31 * *",
            "0 9 13 * 5",
            "*/20 1-3 * * *",
            "15,45 1,2,23 * * *",
            "0 */2 * * *",
            "30 1 * 4,11 *",
        ]
    ),
    some.zones,
    some.gaps,
    some.overlaps,
    st.data(),
)
def test_a_walk_over_months_and_changes_of_the_clock_finds_the_same_gaps(
    text: str, name: str, gap: str, overlap: str, data: st.DataObject
) -> None:
    timing = parsed({"cron": text, "timezone": name, "dstGap": gap, "dstOverlap": overlap})
    assert timing is not None
    after = data.draw(some.seconds(name))
    until = after + data.draw(st.integers(0, 2 * 10**7))

    found = measure(timing.rule, after, until)

    assert (found and found[:4]) == walked(timing.rule, after, until)


@pytest.mark.parametrize(
    ("fields", "smallest", "largest"),
    [
        ({"every": "PT1S"}, 1, 1),
        ({"cron": "* * * * *", "timezone": "America/New_York"}, 60, 60),
        ({"cron": "* 9-17 * * 1-5", "timezone": "America/New_York"}, 60, 63 * 3600 + 3600 + 60),
        ({"cron": "30 2 * * *", "timezone": "America/New_York"}, 84_600, 90_000),
        ({"cron": "0 0 31 * *"}, 31 * 86_400, 61 * 86_400),
    ],
)
def test_a_dense_year_is_measured_by_its_shape(fields: dict[str, object], smallest: int, largest: int) -> None:
    """Far fewer questions than occurrences."""
    rule = parse(fields, now=NOW).rule
    found = measure(rule, BEGIN, BEGIN + YEAR_S)

    assert found is not None
    assert (found.smallest_s, found.largest_s, found.until) == (smallest, largest, BEGIN + YEAR_S)


MINUTES_OF_JANUARY = {"rrule": "FREQ=MINUTELY;INTERVAL=11;BYMONTH=1", "startTime": "2027-01-01T00:00:00Z"}
MINUTES_OF_THREE_HOURS = {
    "recurrence": {"frequency": "minute", "interval": 1, "schedule": {"hours": [1, 2, 3]}},
    "startTime": "2027-01-01T00:00:00Z",
}


@pytest.mark.parametrize(
    ("fields", "smallest", "largest"),
    [
        (MINUTES_OF_JANUARY, 660, 28_857_840),
        ({**MINUTES_OF_THREE_HOURS, "timezone": "Europe/Berlin"}, 60, 75_660),
        ({**MINUTES_OF_THREE_HOURS, "timezone": "Africa/Cairo"}, 60, 79_260),
        ({"rrule": "FREQ=SECONDLY;INTERVAL=7;BYHOUR=1,2,3;BYMONTH=2,3"}, 7, 75_607),
        ({"rrule": "FREQ=HOURLY;INTERVAL=7;BYMINUTE=0,15,40;BYDAY=MO"}, 900, 552_000),
    ],
)
def test_a_year_of_steps_is_measured_to_its_end(fields: dict[str, object], smallest: int, largest: int) -> None:
    """However many occurrences it has; a walk through all of them finds the same."""
    begin = 1_798_761_600
    rule = parse(fields, now=datetime(2027, 1, 1, tzinfo=UTC)).rule
    found = measure(rule, begin, begin + YEAR_S)

    assert found is not None
    assert found[:4] == walked(rule, begin, begin + YEAR_S)
    assert (found.smallest_s, found.largest_s, found.until) == (smallest, largest, begin + YEAR_S)


@examples(60)
@given(
    st.sampled_from(["rrule", "recurrence", "seconds", "hours"]),
    st.sampled_from([7, 11, 45]),
    st.lists(st.integers(0, 23), max_size=4, unique=True),
    st.lists(st.integers(1, 12), max_size=3, unique=True),
    some.zones,
    some.gaps,
    some.overlaps,
    st.data(),
)
def test_a_walk_over_months_finds_the_same_gaps_of_steps(
    kind: str, every: int, hours: list[int], months: list[int], name: str, gap: str, overlap: str, data: st.DataObject
) -> None:
    if kind == "recurrence":
        made: dict[str, object] = {"frequency": "minute", "interval": every}
        fields: dict[str, object] = {"recurrence": {**made, "schedule": {"hours": hours}} if hours else made}
    else:
        frequency = {"rrule": "MINUTELY", "seconds": "SECONDLY", "hours": "HOURLY"}[kind]
        parts = [f"FREQ={frequency};INTERVAL={every}"]
        parts += [f"BYHOUR={','.join(map(str, hours))}"] if hours else []
        parts += [f"BYMONTH={','.join(map(str, months))}"] if months else []
        parts += ["BYMINUTE=0,1,2,17,59"] if kind != "rrule" and data.draw(st.booleans()) else []
        fields = {"rrule": ";".join(parts)}
    timing = parsed({**fields, "timezone": name, "dstGap": gap, "dstOverlap": overlap})
    if timing is None:
        return
    after = data.draw(some.seconds(name, first=BEGIN))
    until = after + data.draw(st.integers(0, 10**6 if kind == "seconds" else 2 * 10**7))

    found = measure(timing.rule, after, until)

    assert (found and found[:4]) == walked(timing.rule, after, min(until, found.until) if found else until)
    assert found is None or found.until == until or kind == "seconds"


def test_steps_of_seconds_at_scattered_times_state_how_far_they_were_measured() -> None:
    odd = ",".join(map(str, range(1, 60, 2)))
    rule = parse({"rrule": f"FREQ=SECONDLY;INTERVAL=7;BYSECOND={odd};BYHOUR=1,2,3"}, now=NOW).rule
    found = measure(rule, BEGIN, BEGIN + YEAR_S)

    assert found is not None
    assert found.until == found.last < BEGIN + YEAR_S
    assert found[:4] == walked(rule, BEGIN, found.until)


def test_a_walk_made_too_long_by_jitter_states_how_far_it_got() -> None:
    rule = parse({"every": "PT1M", "jitterSeconds": 30}, now=NOW, salt="a").rule
    found = measure(rule, BEGIN, BEGIN + YEAR_S)

    assert found is not None
    assert found.until == found.last < BEGIN + YEAR_S
    assert rule.count(BEGIN, found.until, MOST_MEASURED * 2) == MOST_MEASURED


def test_the_first_occurrences_alone_can_be_walked() -> None:
    rule = parse({"cron": "0 9 30,31 * *"}, now=NOW).rule
    found = walk(rule, BEGIN, BEGIN + YEAR_S, 2)

    assert found is not None
    assert (found.smallest_s, found.largest_s) == (86_400, 86_400)
    assert walk(rule, BEGIN, BEGIN + 60, 2) is None


@pytest.mark.parametrize("zone", ["America/New_York", "UTC", "Australia/Lord_Howe"])
@pytest.mark.parametrize("text", ["cron(0 9 L * ? *)", "cron(0 9 1 1 ? *)"])
def test_a_last_piece_of_the_year_without_an_occurrence_is_measured_too(text: str, zone: str) -> None:
    """The clock changes on 7 November 2027 in New York, and nothing comes between that and the end of what is asked."""
    rule = parse({"eventBridge": text, "timezone": zone}, now=NOW).rule
    begin = 1_795_248_000  # 2026-11-21T08:00:00Z

    found = measure(rule, begin, begin + YEAR_S)

    assert found is not None
    assert found.until == begin + YEAR_S


@pytest.mark.parametrize(
    ("step", "zone", "smallest", "largest"),
    [
        ("PT30S", "UTC", 30, 30),
        ("PT30S", "Europe/Berlin", 30, 30),
        ("PT1H", "Australia/Lord_Howe", 3600, 5400),
        ("PT2H", "Europe/Berlin", 3600, 10_800),
    ],
)
def test_a_year_by_the_clock_is_measured_to_its_end(step: str, zone: str, smallest: int, largest: int) -> None:
    timing = parse({"every": step, "align": "clock", "timezone": zone}, now=NOW)

    found = measure(timing.rule, BEGIN, BEGIN + YEAR_S)

    assert found is not None
    assert found[2:] == (smallest, largest, BEGIN + YEAR_S)


@given(st.sampled_from(["PT15M", "PT1H", "PT2H", "PT6H"]), some.zones, st.data())
def test_a_walk_by_the_clock_finds_the_same_gaps(step: str, name: str, data: st.DataObject) -> None:
    timing = parse({"every": step, "align": "clock", "timezone": name}, now=NOW)
    after = data.draw(some.seconds(name))
    until = after + data.draw(st.integers(0, 10**7))

    found = measure(timing.rule, after, until)

    assert (found and found[:4]) == walked(timing.rule, after, until)
