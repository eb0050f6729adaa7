from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.occurrences.series import MOST_AT_ONCE, due, first, following
from sweephand.schedules.timing import Timing, parse
from tests.unit.domain.nouns import DAY, HOUR, MINUTE, NOW, SECOND


def timing(now: datetime = NOW, **fields: Any) -> Timing:
    return parse(fields, now=now)


EACH_MINUTE = timing(cron="* * * * *")


def test_all_occurrences_up_to_and_including_the_end_of_the_window_are_due() -> None:
    stretch = due(EACH_MINUTE, NOW, NOW + 2 * MINUTE, 0, NOW)

    assert stretch.instants == (NOW, NOW + MINUTE, NOW + 2 * MINUTE)
    assert stretch.next_at == NOW + 3 * MINUTE
    assert not stretch.over


def test_nothing_is_due_before_the_next_instant() -> None:
    stretch = due(EACH_MINUTE, NOW + MINUTE, NOW + MINUTE - SECOND, 0, NOW)

    assert (stretch.instants, stretch.next_at) == ((), NOW + MINUTE)


def test_the_count_ends_the_series_at_its_last_occurrence() -> None:
    thrice = timing(cron="* * * * *", count=3)

    assert due(thrice, NOW, NOW + MINUTE, 0, NOW).next_at == NOW + 2 * MINUTE
    last = due(thrice, NOW, NOW + HOUR, 1, NOW)
    assert (len(last.instants), last.over) == (2, True)
    assert due(thrice, NOW, NOW + HOUR, 3, NOW).instants == ()
    assert due(thrice, NOW, NOW + HOUR, 3, NOW).over


def test_a_count_reached_exactly_by_the_window_needs_no_further_look() -> None:
    assert due(timing(cron="* * * * *", count=2), NOW, NOW + MINUTE, 0, NOW).over


def test_the_end_time_is_the_last_occurrence_itself() -> None:
    ended = timing(cron="* * * * *", endTime="2027-03-01T12:02:00Z")

    stretch = due(ended, NOW, NOW + HOUR, 0, NOW)

    assert stretch.instants[-1] == NOW + 2 * MINUTE
    assert stretch.over


def test_one_look_takes_a_limited_number_and_the_next_one_continues() -> None:
    each_second = timing(every="PT1S")
    begin = NOW + SECOND

    stretch = due(each_second, begin, NOW + DAY, 0, NOW)

    assert len(stretch.instants) == MOST_AT_ONCE
    assert stretch.next_at == stretch.instants[-1] + SECOND


def test_an_interval_from_the_actual_start_continues_from_a_late_sweep() -> None:
    hourly = timing(every="PT1H", align="actual_start")

    assert following(hourly, NOW, NOW - MINUTE) == NOW + HOUR
    assert following(hourly, NOW, NOW + timedelta(seconds=90, milliseconds=400)) == NOW + timedelta(hours=1, seconds=90)


def test_an_interval_from_the_actual_start_ends_with_its_window() -> None:
    hourly = timing(every="PT1H", align="actual_start", endTime="2027-03-01T13:00:00Z")

    assert following(hourly, NOW, NOW) == NOW + HOUR
    assert following(hourly, NOW, NOW + SECOND) is None


@pytest.mark.parametrize("milliseconds", [0, 1, 500, 999])
def test_a_series_begins_at_the_first_occurrence_that_is_not_past(milliseconds: int) -> None:
    now = NOW + timedelta(milliseconds=milliseconds)

    assert first(EACH_MINUTE, now) == (NOW if milliseconds == 0 else NOW + MINUTE)


@given(st.integers(0, 600), st.integers(0, 600), st.integers(0, 20), st.none() | st.integers(1, 30))
def test_windows_in_a_row_take_each_occurrence_once(width: int, gap: int, planned: int, count: int | None) -> None:
    """However the sweeps cut time, the pieces are the whole: nothing is left out, nothing comes twice."""
    fields: dict[str, Any] = {"every": "PT37S", **({} if count is None else {"count": count})}
    beat = timing(**fields)
    begin = first(beat, NOW)
    assert begin is not None
    end = NOW + HOUR

    whole = due(beat, begin, end, 0, NOW)
    pieces: list[datetime] = []
    upcoming: datetime | None = begin
    look = NOW
    while upcoming is not None and look < end:
        look = min(end, look + timedelta(seconds=width + gap + 1))
        stretch = due(beat, upcoming, look, len(pieces), NOW)
        pieces += stretch.instants
        upcoming = stretch.next_at

    assert tuple(pieces) == whole.instants
    assert upcoming == whole.next_at
