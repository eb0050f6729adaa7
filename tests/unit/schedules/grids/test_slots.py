"""Grids of wall minutes and hours, cut to parts of the day, against a look at every minute."""

from __future__ import annotations

from itertools import pairwise
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.schedules.grids.cycles import Cycle, Slots

DAY_S = 86_400


@st.composite
def slots(draw: st.DrawFn) -> Slots:
    size_s = draw(st.sampled_from([60, 3600]))
    a_day = DAY_S // size_s
    chosen = sum(1 << slot for slot in draw(st.sets(st.integers(0, a_day - 1), min_size=1, max_size=40)))
    minutes = 1 if size_s == 60 else sum(1 << n for n in draw(st.sets(st.integers(0, 59), min_size=1, max_size=3)))
    every = draw(st.integers(1, 90) | st.integers(1, 1_000))
    return Slots(size_s, every, draw(st.integers(-(10**4), 10**7)), chosen, minutes)


def wanted(series: Slots, first: int, days: int) -> list[int]:
    """Returns the occurrences of so many days from day `first` on, by looking at each minute."""
    a_day = DAY_S // series.size_s
    found = []
    for second in range(first * DAY_S, (first + days) * DAY_S, 60):
        slot, within = divmod(second, series.size_s)
        in_turn = (slot - series.anchor) % series.every == 0
        if in_turn and series.chosen >> slot % a_day & 1 and series.minutes >> within // 60 & 1:
            found.append(second)
    return found


@given(slots(), st.integers(-300, 80_000), st.integers(0, DAY_S))
def test_a_grid_holds_what_a_look_at_each_minute_finds(series: Slots, first: int, time: int) -> None:
    listed = wanted(series, first, 3)
    begin, end = first * DAY_S, (first + 3) * DAY_S - 1
    at = begin + time

    assert list(series.seconds(begin - 1, end)) == listed
    later, earlier = [each for each in listed if each > at], [each for each in listed if each <= at]
    upcoming, latest = series.after(at), series.until(at)
    assert upcoming == later[0] if later else upcoming is None or upcoming > end
    assert latest == earlier[-1] if earlier else latest is None or latest < begin
    assert series.count(at, end, 10**6) == len(later)
    assert series.count(begin - 1, at, 5) == min(5, len(earlier))
    assert series.count(end, begin, 9) == 0


@given(slots())
def test_the_shortest_gap_is_that_of_a_whole_period(series: Slots) -> None:
    a_day = DAY_S // series.size_s
    period = lcm(series.every, a_day) // a_day
    if period > 40:
        return
    listed = wanted(series, 0, period)

    around = [*listed, listed[0] + period * DAY_S] if listed else []

    assert series.shortest_gap_s() == min((later - at for at, later in pairwise(around)), default=period * DAY_S)


@pytest.mark.parametrize(("size_s", "every", "chosen"), [(60, 997, 1 << 61), (3600, 997, 1 << 3), (60, 40, 1 << 1)])
def test_a_grid_is_one_list_with_at_most_the_slots_of_a_day(size_s: int, every: int, chosen: int) -> None:
    series = Slots(size_s, every, 0, chosen)

    assert len(series.times.residues if isinstance(series.times, Cycle) else ()) <= chosen.bit_count()
    for second in range(10**9, 2 * 10**9, 10**8):
        upcoming, latest = series.after(second), series.until(second)
        assert (upcoming is None) is (latest is None) is (every == 40)
        assert upcoming is None or upcoming - second <= every * DAY_S
