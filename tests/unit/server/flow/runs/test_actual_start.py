"""An interval from the actual start (SAP's repeatInterval): a late start moves what follows; nothing is lost."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from sweephand.domain.instants import text
from sweephand.domain.job import Pause
from sweephand.domain.occurrences.lateness import FRESH
from sweephand.domain.run import Reason, State
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import BUSY
from tests.support.stage import Stage
from tests.support.taps import answer_lost, refused
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, fixed

FIVE = {"every": "PT5M", "align": "actual_start"}


def late_start(stage: Stage, planned: Planned, by_s: int) -> datetime:
    """Starts the first run that late; its tick was in time. Returns when it started, in whole seconds."""
    first = planned.schedules[0].next_run_at
    assert first is not None
    stage.clock.move_to(first - 2 * MINUTE)
    stage.tick()
    stage.clock.move_to(first + by_s * SECOND)
    stage.deliver(most=1)
    return stage.endpoint.received[0].at.replace(microsecond=0)


def _moves(passing: Passing) -> bool:
    """Returns whether the call writes a range together with the schedule's next occurrence."""
    written = str(passing.request.get("TransactItems"))
    return passing.name == "dynamodb.TransactWriteItems" and "'SCH#" in written and "'STATS#" in written


def test_the_next_occurrence_is_one_interval_after_a_late_start(stage: Stage) -> None:
    planned = stage.create(FIVE)

    began = late_start(stage, planned, 100)

    assert stage.stored(planned).next_run_at == began + 5 * MINUTE
    (line,) = [run for run in stage.runs(planned) if run.range_count is not None]
    first = planned.schedules[0].next_run_at
    assert (line.planned_at, line.range_until, line.range_count) == (first + 5 * MINUTE, first + 5 * MINUTE, 1)
    assert (line.state, line.reason) == (State.MISSED, Reason.SERVICE_OUTAGE)
    stage.run(600)
    assert stage.endpoint.planned[1] == began + 5 * MINUTE
    totals, fold = stage.totals(planned), stage.fold(planned)
    assert totals.ended == fold.ended == totals.planned - totals.open


@pytest.mark.parametrize("ends", ["resumed", "deactivated"])
def test_a_pause_before_a_replaced_occurrence_does_not_record_it_again(stage: Stage, ends: str) -> None:
    planned = stage.create(FIVE)
    began = late_start(stage, planned, 100)
    first = planned.schedules[0].next_run_at
    assert first is not None
    stage.run(30)
    stage.set_state(planned, pause=Pause(stage.clock.now()))
    stage.run(1_800)

    stage.set_state(planned, **({"pause": None} if ends == "resumed" else {"active": False}))
    stage.run(1_200)

    lines = [run for run in stage.runs(planned) if run.range_count is not None]
    (replaced,) = (line for line in lines if line.state is State.MISSED)
    paused = [line for line in lines if line.reason is Reason.PAUSED]
    assert (replaced.planned_at, replaced.range_until) == (first + 5 * MINUTE, first + 5 * MINUTE)
    assert paused
    assert all(line.planned_at > began for line in paused)
    totals, fold = stage.totals(planned), stage.fold(planned)
    assert totals.ended == fold.ended == totals.planned - totals.open


@pytest.mark.parametrize("by_s", [0, 60])
def test_a_start_up_to_a_minute_late_moves_nothing(stage: Stage, by_s: int) -> None:
    planned = stage.create(FIVE)
    first = planned.schedules[0].next_run_at
    assert first is not None

    late_start(stage, planned, by_s)

    assert stage.stored(planned).next_run_at == first + 5 * MINUTE


def test_an_occurrence_that_a_tick_may_have_sent_is_not_moved(stage: Stage) -> None:
    """150 s of look-ahead: what lies within them is on its way under its id, and counted."""
    planned = stage.create(FIVE)
    first = planned.schedules[0].next_run_at
    assert first is not None

    late_start(stage, planned, 147)

    assert stage.stored(planned).next_run_at == first + 5 * MINUTE
    stage.run(900)
    totals, fold = stage.totals(planned), stage.fold(planned)
    assert totals.ended == fold.ended
    assert totals.planned - totals.open == fold.ended


def test_a_series_that_ends_before_the_moved_occurrence_ends_as_planned(stage: Stage) -> None:
    planned = stage.create({**FIVE, "endTime": text(NOON + 10 * MINUTE + 30 * SECOND)})
    first = planned.schedules[0].next_run_at
    assert first is not None

    late_start(stage, planned, 100)

    assert stage.stored(planned).next_run_at == first + 5 * MINUTE


def test_a_retry_moves_nothing(stage: Stage) -> None:
    planned = stage.create(FIVE, action=stage.action(retry=fixed(90)))
    stage.endpoint.script = [BUSY]
    first = planned.schedules[0].next_run_at
    assert first is not None

    late_start(stage, planned, 0)
    stage.clock.advance(91)
    stage.deliver(most=1)

    assert len(stage.endpoint.received) == 2
    assert stage.stored(planned).next_run_at == first + 5 * MINUTE


def test_other_series_keep_their_grid(stage: Stage) -> None:
    planned = stage.create({"every": "PT5M"})
    first = planned.schedules[0].next_run_at
    assert first is not None

    late_start(stage, planned, 100)

    assert stage.stored(planned).next_run_at == first + 5 * MINUTE


@pytest.mark.parametrize("fault", [answer_lost, refused])
def test_a_move_that_meets_a_fault_harms_no_run(stage: Stage, fault: Any) -> None:
    planned = stage.create(FIVE)

    def at_the_schedule(passing: Passing, act: Act) -> Any:
        if _moves(passing):
            return fault(passing, act)
        return act()

    with stage.taps.faulty(at_the_schedule):
        late_start(stage, planned, 100)
    stage.run(900)

    assert stage.totals(planned).ended == stage.fold(planned).ended
    assert len(stage.endpoint.planned) >= 3


def test_a_tick_between_the_read_and_the_move_wins(stage: Stage) -> None:
    planned = stage.create(FIVE)

    def moved_first(passing: Passing, act: Act) -> Any:
        if _moves(passing):
            stage.taps.fault = None
            stage.edit_schedule(planned, next_run_at={"N": "1899999999"})
        return act()

    stage.taps.fault = moved_first
    late_start(stage, planned, 100)
    stage.taps.fault = None

    there = stage.stored(planned).next_run_at
    assert there is not None
    assert int(there.timestamp()) == 1_899_999_999


@pytest.mark.sampled(5)
@pytest.mark.repeats
@pytest.mark.parametrize("made_s", [1, 30, 59])
@pytest.mark.parametrize("out_s", [122, 130, 145, 170, 200, 260, 700])
@pytest.mark.parametrize("interval_s", [15, 20, 45, 60])
def test_after_an_outage_no_interval_is_too_short(stage: Stage, made_s: int, out_s: int, interval_s: int) -> None:
    """Whoever planned it had sent some minutes ahead when everything stopped, and no tick had seen it yet.

    Up to two minutes the rhythm stays, so what is made up at once may be followed by the next of the old rhythm sooner.
    """
    stage.clock.advance(made_s)
    planned = stage.create({"every": f"PT{interval_s}S", "align": "actual_start"})
    first = planned.schedules[0].next_run_at
    assert first is not None
    stage.pass_time(out_s)
    back_at = stage.clock.now()

    stage.run(600, tick_in_s=0)

    begun = [each.at for each in stage.endpoint.received]
    made_up = [at for at in begun if at < back_at + SECOND]
    on_time = [at for at in begun if at >= back_at + SECOND]
    assert made_up
    assert len(on_time) >= 500 // interval_s
    starts = [made_up[-1], *on_time] if back_at - first > FRESH else on_time
    assert min(later - earlier for earlier, later in pairwise(starts)) >= (interval_s - 1) * SECOND
    assert len(set(stage.endpoint.planned)) == len(begun)
