"""The smallest and the largest gap: as a walk through all occurrences finds them, and by shape where they are many."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.schedules.gaps import MOST_LOOKS, measure, walk
from sweephand.schedules.rule import Series
from sweephand.schedules.timing import Timing, parse
from tests.support.examples import examples
from tests.unit.schedules import given as some
from tests.unit.schedules.test_shared_properties import parsed, timings_and_instants

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BEGIN = 1_767_225_600
YEAR_S = 366 * 86_400


def walked(series: Series, after: int, until: int) -> tuple[int, int, int | None, int | None] | None:
    """Obvious: all of them, and the distances between neighbours."""
    found = list(series.seconds(after, until))
    gaps = [later - earlier for earlier, later in pairwise(found)]
    return (found[0], found[-1], min(gaps, default=None), max(gaps, default=None)) if found else None


@examples(150)
@given(timings_and_instants(), st.integers(0, 5 * 10**6))
def test_a_walk_finds_the_same_gaps(case: tuple[Timing, datetime], span_s: int) -> None:
    timing, instant = case
    after = int(instant.timestamp())
    if timing.rule.count(after, after + span_s, MOST_LOOKS + 1) > MOST_LOOKS:
        span_s = MOST_LOOKS - 1
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


def test_what_jitter_makes_too_long_says_how_far_it_was_walked() -> None:
    rule = parse({"every": "PT1M", "jitterSeconds": 30}, now=NOW, salt="a").rule
    found = measure(rule, BEGIN, BEGIN + YEAR_S)

    assert found is not None
    assert found.until == found.last < BEGIN + YEAR_S
    assert rule.count(BEGIN, found.until, MOST_LOOKS * 2) == MOST_LOOKS


def test_the_first_occurrences_alone_can_be_walked() -> None:
    rule = parse({"cron": "0 9 30,31 * *"}, now=NOW).rule
    found = walk(rule, BEGIN, BEGIN + YEAR_S, 2)

    assert found is not None
    assert (found.smallest_s, found.largest_s) == (86_400, 86_400)
    assert walk(rule, BEGIN, BEGIN + 60, 2) is None
