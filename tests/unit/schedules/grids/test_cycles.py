"""Steps that meet the times of a clock, against a walk over all of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sweephand.schedules.grids.clock import DAY_S, Clock
from sweephand.schedules.grids.cycles import SteppedClock
from sweephand.schedules.grids.sets import Also
from sweephand.schedules.rule import Never, Steps

_hours = st.sets(st.integers(0, 23), min_size=1).map(lambda hours: sum(1 << hour for hour in hours))
_steps = st.one_of(st.integers(1, 200_000), st.integers(DAY_S - 90, DAY_S + 90))


@given(_steps, st.integers(0, 10**6), _hours, st.sampled_from([(1 << 60) - 1, 1 << 7, 0b1011]), st.integers(0, 10**9))
def test_steps_meet_a_clock_as_a_walk_does(step_s: int, anchor: int, hours: int, minutes: int, at: int) -> None:
    clock = Clock(hours, minutes, (1 << 60) - 1)
    series = SteppedClock(Steps(anchor, step_s), clock)

    walked = range(at - (at - anchor) % step_s, at + 3_000 * step_s, step_s)
    met = [second for second in walked if clock.until(second % DAY_S) == second % DAY_S]

    later = [second for second in met if second > at]
    found = series.after(at)
    assert found == later[0] if later else found is None or found > walked[-1]
    assert series.count(at, walked[-1], 10**9) == len(later)
    assert series.count(at, walked[-1], 5) == min(5, len(later))
    found = series.until(walked[-1])
    assert found == met[-1] if met else found is None or found < walked[0]


def test_dates_added_to_a_series_are_counted_once() -> None:
    series = Also(Steps(0, 60), (120, 150, 240))

    assert series.count(0, 300, 10**9) == len(list(series.seconds(0, 300))) == 6
    assert series.count(0, 300, 4) == 4
    assert series.count(300, 0, 4) == 0
    assert Also(Never(), (5,)).count(0, 10, 9) == 1
