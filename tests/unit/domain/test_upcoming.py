"""The future of a schedule: by its rule, or by its row where it follows its actual starts."""

from __future__ import annotations

from datetime import datetime

import pytest

from sweephand.domain.occurrences import upcoming
from sweephand.domain.schedule import Schedule
from sweephand.schedules.timing import load, parse
from tests.unit.domain.nouns import DAY, HOUR, MINUTE, NOW, SECOND, schedule

FOLLOWING = {"every": "PT1M", "align": "actual_start"}


def following(next_run_at: datetime, **timing: object) -> Schedule:
    packed = parse({**FOLLOWING, **timing}, now=NOW - DAY).packed
    return schedule(packed=packed, next_run_at=next_run_at)


def ahead(one: Schedule, after: datetime, limit: int = 3) -> list[datetime]:
    return upcoming.next_runs(one, load(one.packed), after, limit).instants


def test_a_rhythm_from_actual_starts_follows_the_row() -> None:
    one = following(NOW + 17 * SECOND)

    assert ahead(one, NOW) == [NOW + 17 * SECOND, NOW + 77 * SECOND, NOW + 137 * SECOND]


@pytest.mark.parametrize(("after_s", "first_s"), [(0, 17), (16, 17), (17, 77), (77, 137), (137, 197), (140, 197)])
def test_an_occurrence_sent_ahead_is_ahead_until_it_is_due(after_s: int, first_s: int) -> None:
    one = following(NOW + 137 * SECOND)

    assert ahead(one, NOW + after_s * SECOND, 1) == [NOW + first_s * SECOND]


def test_no_upcoming_occurrence_precedes_its_generation() -> None:
    one = following(NOW + 60 * SECOND)
    began = {one.generation - 1: int((NOW + 30 * SECOND).timestamp())}

    assert ahead(schedule(packed=one.packed, next_run_at=one.next_run_at, ended_at=began), NOW - HOUR, 1) == [
        NOW + MINUTE
    ]


def test_a_rhythm_from_actual_starts_ends_with_its_window() -> None:
    one = following(NOW + 17 * SECOND, endTime="2027-03-01T12:01:20Z")

    assert ahead(one, NOW) == [NOW + 17 * SECOND, NOW + 77 * SECOND]


def test_a_single_instant_that_runs_late_lies_ahead() -> None:
    packed = parse({"at": "2027-03-01T11:00:00Z"}, now=NOW - DAY).packed
    at = NOW + 6 * SECOND
    one = schedule(packed=packed, next_run_at=at, first_at=at)

    assert (ahead(one, NOW), ahead(one, at)) == ([at], [])
