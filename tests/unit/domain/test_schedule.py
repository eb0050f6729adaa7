from __future__ import annotations

import pytest

from sweephand.domain.job import Job, Pause
from sweephand.domain.jobs.job_state import wanted_state
from sweephand.domain.schedule import GENERATIONS_KEPT, ScheduleState, StateReason, ended_generations
from tests.unit.domain.nouns import NOW, job, schedule


def test_a_change_lists_the_generation_that_it_ends() -> None:
    assert ended_generations(schedule(generation=1), 100) == {1: 100}
    assert ended_generations(schedule(generation=2, ended_at={1: 100}), 200) == {1: 100, 2: 200}


def test_the_last_twenty_generations_are_kept() -> None:
    there = schedule(generation=1)
    for n in range(1, 31):
        there = schedule(generation=n + 1, ended_at=ended_generations(there, n * 10))

    assert list(there.ended_at) == list(range(11, 31))
    assert len(there.ended_at) == GENERATIONS_KEPT
    assert there.ended_at[30] == 300


@pytest.mark.parametrize(
    ("owner", "active", "state", "reason"),
    [
        (job(), True, ScheduleState.ACTIVE, None),
        (job(), False, ScheduleState.INACTIVE, StateReason.BY_USER),
        (job(active=False), True, ScheduleState.INACTIVE, StateReason.JOB_INACTIVE),
        (job(active=False), False, ScheduleState.INACTIVE, StateReason.BY_USER),
        (job(pause=Pause(NOW)), True, ScheduleState.PAUSED, StateReason.BY_USER),
        (job(pause=Pause(NOW)), False, ScheduleState.INACTIVE, StateReason.BY_USER),
        (job(active=False, pause=Pause(NOW)), True, ScheduleState.INACTIVE, StateReason.JOB_INACTIVE),
    ],
)
def test_the_windows_of_job_and_schedule_both_apply(
    owner: Job, active: bool, state: ScheduleState, reason: StateReason | None
) -> None:
    assert wanted_state(owner, active) == (state, reason)
    assert (state is ScheduleState.ACTIVE) is (active and owner.running)
