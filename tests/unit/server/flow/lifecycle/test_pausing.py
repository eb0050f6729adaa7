"""A pause with an end: on the second, with nothing left out, and harmless once something else came first."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from sweephand.domain.job import Pause
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.views import resources as views
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before, refused
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, exact, minutes, once

EACH_MINUTE = {"cron": "* * * * *"}
UNTIL = NOON + 10 * MINUTE


def paused(stage: Stage, planned: Planned, until: datetime | None = UNTIL) -> Planned:
    return stage.set_state(planned, pause=Pause(stage.clock.now(), until=until))


def at(stage: Stage, moment: datetime) -> None:
    stage.run((moment - stage.clock.now()).total_seconds())


def rows(stage: Stage, planned: Planned) -> list[str]:
    """Returns the job's own rows in the index."""
    return sorted(sk.partition("#")[0] for pk, sk in stage.waiting() if pk.endswith(planned.job.id))


@pytest.mark.parametrize("length", [10 * MINUTE, 3 * MINUTE, 2 * MINUTE - 10 * SECOND])
def test_an_occurrence_due_at_the_end_of_a_pause_runs_on_its_second(stage: Stage, length: timedelta) -> None:
    """Also where the end is nearer than the next tick, and where an occurrence is due right then."""
    planned = stage.create(EACH_MINUTE)
    stage.run(90)
    until = NOON + 90 * SECOND + length
    until -= timedelta(seconds=until.second)
    paused(stage, planned, until)

    at(stage, until + 90 * SECOND)

    assert stage.endpoint.planned == [*minutes(1), until, until + MINUTE]
    assert all(received.at - received.call.planned_at < SECOND for received in stage.endpoint.received)
    assert stage.job(planned).pause is None
    assert stage.stored(planned).state is ScheduleState.ACTIVE
    stage.set_state(planned, active=False)
    stage.run(200)
    exact(stage, planned)


def test_one_line_covers_a_pause_to_its_last_second(stage: Stage) -> None:
    planned = stage.create({"every": "PT10S", "startTime": "2027-03-01T12:00:00Z"})
    stage.run(60)
    paused(stage, planned)

    at(stage, UNTIL + MINUTE + SECOND)

    (line,) = [run for run in stage.runs(planned) if run.range_count is not None]
    assert (line.state, line.reason) == (State.SKIPPED, Reason.PAUSED)
    assert line.range_until == UNTIL - 10 * SECOND
    assert UNTIL in stage.endpoint.planned
    instants = {NOON + n * 10 * SECOND for n in range(67)} - {NOON}
    ran = {run.planned_at for run in stage.runs(planned) if run.range_count is None}
    left_out = {each for each in instants if line.planned_at <= each <= line.range_until}
    assert ran | left_out >= instants
    assert not ran & left_out
    assert line.range_count == len(left_out)


def test_a_job_resumes_automatically_and_the_log_says_so(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    paused(stage, planned)
    assert rows(stage, planned) == ["PAUSE"]

    at(stage, UNTIL + SECOND)

    assert rows(stage, planned) == ["SCH"]
    entry = next(views.changes(stage.world.table, TENANT, planned.job.id, None, 1))
    assert (entry.revision, entry.operation, entry.actor) == (3, "resume", None)


def test_a_one_time_schedule_due_at_the_end_of_a_pause_runs(stage: Stage) -> None:
    planned = stage.create(once(10 * MINUTE), once(9 * MINUTE))
    paused(stage, planned)

    at(stage, UNTIL + MINUTE)

    assert stage.endpoint.planned == [UNTIL]
    assert stage.endpoint.received[0].at - UNTIL < SECOND


def test_a_large_job_resumes_automatically(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweephand.server.flow.jobs.change.IN_JOBS_TRANSACTION", 4)
    monkeypatch.setattr("sweephand.server.flow.jobs.large_changes.WRITES_IN_PART", 9)
    planned = stage.create(*[EACH_MINUTE] * 9)
    paused(stage, planned)

    at(stage, UNTIL + SECOND)

    assert stage.endpoint.planned == [UNTIL] * 9
    assert {stage.stored(each).state for each in planned.schedules} == {ScheduleState.ACTIVE}


# An outage at its end


def away(stage: Stage, minutes: int, *, executors_only: bool) -> None:
    """Takes the service out, or lets it tick while nothing takes its messages."""
    if not executors_only:
        stage.pass_time(60 * minutes)
        return
    for _ in range(minutes):
        stage.pass_time(60)
        stage.tick()


@pytest.mark.parametrize("executors_only", [False, True])
@pytest.mark.parametrize(("misfire", "left_out", "late_calls"), [("sap", 169, 1), ("latest", 169, 1), ("skip", 170, 0)])
def test_an_outage_at_the_end_of_a_pause_is_treated_as_any_other(
    stage: Stage, misfire: str, left_out: int, late_calls: int, *, executors_only: bool
) -> None:
    """One line for what the policy leaves out, the rest by the policy, and what is fresh waits for neither."""
    planned = stage.create(EACH_MINUTE, policies={"misfire": {"type": misfire}})
    paused(stage, planned)
    at(stage, UNTIL - 5 * MINUTE)
    back_at = UNTIL + 172 * MINUTE - 20 * SECOND

    away(stage, 176, executors_only=executors_only)
    stage.clock.move_to(back_at)
    stage.run(200, tick_in_s=1)

    pause, missed = [run for run in stage.runs(planned) if run.range_count is not None]
    assert (pause.state, pause.range_until) == (State.SKIPPED, UNTIL - MINUTE)
    assert (missed.state, missed.planned_at) == (State.MISSED, UNTIL)
    # Where nothing ticked, the pause itself is found with the first tick, and what was missed with the second.
    assert missed.range_count == left_out + (not executors_only)
    late = [received for received in stage.endpoint.received if received.at - received.call.planned_at > 2 * MINUTE]
    assert len(late) == late_calls
    fresh = [received for received in stage.endpoint.received if received.call.planned_at > back_at]
    assert [received.at - received.call.planned_at < SECOND for received in fresh] == [True] * 4
    stage.set_state(planned, active=False)
    stage.run(200)
    exact(stage, planned)


def test_occurrences_caught_up_after_an_outage_are_sent_at_a_limited_rate(stage: Stage) -> None:
    policy = {"type": "all", "ratePerMinute": 6, "maxLatenessSeconds": 7_200}
    planned = stage.create(EACH_MINUTE, policies={"misfire": policy})
    paused(stage, planned)
    at(stage, UNTIL - 5 * MINUTE)
    stage.pass_time(60 * 185)

    stage.run(240, tick_in_s=1)

    pause, expired = [run for run in stage.runs(planned) if run.range_count is not None]
    assert (pause.state, expired.state, expired.reason) == (State.SKIPPED, State.EXPIRED, Reason.MAX_LATENESS)
    late = [received.at for received in stage.endpoint.received if received.at - received.call.planned_at > 3 * MINUTE]
    assert len(late) == 12
    assert late[-1] - late[0] >= 110 * SECOND


@pytest.mark.parametrize(("count", "misfire", "calls"), [(3, "latest", 3), (3, "all", 3), (400, "all", 400)])
def test_an_outage_at_the_end_of_a_pause_does_not_exceed_a_count(
    stage: Stage, count: int, misfire: str, calls: int
) -> None:
    planned = stage.create(EACH_MINUTE | {"count": count}, policies={"misfire": {"type": misfire}})
    paused(stage, planned)
    at(stage, UNTIL - 5 * MINUTE)
    stage.pass_time(60 * 185)

    stage.run(400 * 60 if count == 400 else 600, tick_in_s=1)

    assert len(stage.endpoint.received) == calls
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert stage.totals(planned).planned == count


# Precedence


def test_an_early_resume_deletes_the_row_of_the_pause(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    paused(stage, planned)
    at(stage, NOON + 3 * MINUTE - 20 * SECOND)

    stage.set_state(planned, pause=None)

    assert rows(stage, planned) == ["SCH"]
    at(stage, NOON + 12 * MINUTE + SECOND)
    assert stage.endpoint.planned == minutes(*range(3, 13))
    assert stage.stored(planned).generation == 3


@pytest.mark.parametrize("other", [NOON + 20 * MINUTE, NOON + 5 * MINUTE, None])
def test_another_pause_replaces_the_first(stage: Stage, other: datetime | None) -> None:
    planned = stage.create(EACH_MINUTE)
    paused(stage, planned)
    stage.run(30)

    paused(stage, planned, other)
    at(stage, NOON + 21 * MINUTE + SECOND)

    first = None if other is None else int((other - NOON) / MINUTE)
    assert stage.endpoint.planned == ([] if first is None else minutes(*range(first, 22)))


def test_a_job_paused_again_while_the_old_end_is_in_the_queue_stays_paused(stage: Stage) -> None:
    """The pointer of the first pause is in the queue already."""
    planned = stage.create(EACH_MINUTE)
    paused(stage, planned, NOON + 3 * MINUTE)
    at(stage, NOON + 2 * MINUTE)

    paused(stage, planned, NOON + 30 * MINUTE)
    at(stage, NOON + 10 * MINUTE)

    assert stage.endpoint.planned == []
    assert stage.job(planned).pause is not None


def test_a_job_inactive_at_the_end_of_its_pause_stays_inactive(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    paused(stage, planned)
    stage.set_state(planned, active=False)

    at(stage, UNTIL + 2 * MINUTE)

    assert stage.endpoint.planned == []
    assert (stage.job(planned).active, stage.job(planned).pause) == (False, None)
    assert stage.stored(planned).state is ScheduleState.INACTIVE


def test_deleting_a_job_deletes_the_row_of_its_pause(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    paused(stage, planned)

    stage.delete(planned)
    at(stage, UNTIL + 2 * MINUTE)

    assert stage.waiting() == {}
    assert stage.endpoint.planned == []


def test_a_timing_changed_during_a_pause_applies_from_its_end(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    paused(stage, planned)
    stage.run(60)
    stage.change(planned, timings=[{"cron": "*/5 * * * *"}])

    at(stage, UNTIL + 6 * MINUTE)

    assert stage.endpoint.planned == minutes(10, 15)


@pytest.mark.parametrize("ahead_s", [14, 8, 3, 1])
@pytest.mark.parametrize("sent_ahead", [True, False])
def test_a_timing_changed_after_the_resume_is_written_applies_from_the_end(
    stage: Stage, ahead_s: int, sent_ahead: bool
) -> None:
    """The resume is written 15 s ahead: until its end nothing of the new timing is named, runs, or has a second row."""
    planned = stage.create({"every": "PT1S", "align": "epoch"} if sent_ahead else {"cron": "0 0 1 1 *"})
    stage.run(90)
    paused(stage, planned)
    at(stage, UNTIL - timedelta(seconds=ahead_s))
    assert stage.job(planned).pause is None

    stage.change(planned, timings=[{"every": "PT2S", "align": "epoch"}])

    assert stage.stored(planned).next_run_at == UNTIL
    at(stage, UNTIL + 9 * SECOND)
    received = [each for each in stage.endpoint.planned if each > NOON + 100 * SECOND]
    new = [UNTIL + n * 2 * SECOND for n in range(5)]
    # Within six seconds of the change, what the old timing had sent runs as well.
    assert [each for each in received if each not in new and each > UNTIL + (6 - ahead_s) * SECOND] == []
    assert received[0] == UNTIL
    assert set(new) <= set(received)
    recorded = [run for run in stage.runs(planned) if run.planned_at < UNTIL and run.range_count is not None]
    assert all(run.range_until < UNTIL for run in recorded)
    assert len(recorded) == sent_ahead


# Faults


FAULTS_OF_A_RESUME = [
    *product(
        ["dynamodb.TransactWriteItems", "dynamodb.GetItem", "sqs.SendMessageBatch"],
        [crash_before, crash_after, answer_lost, refused],
    ),
    ("dynamodb.TransactWriteItems", conflict),
]


@pytest.mark.parametrize(("name", "fault"), FAULTS_OF_A_RESUME)
def test_an_interrupted_resume_is_repeated_and_omits_nothing(stage: Stage, name: str, fault: Any) -> None:
    planned = stage.create(EACH_MINUTE)
    paused(stage, planned)
    at(stage, UNTIL - 16 * SECOND)

    stage.clock.advance(2)
    with suppress(Crash), stage.taps.once(name, fault):
        stage.deliver()
    at(stage, UNTIL + 2 * MINUTE + 50 * SECOND)

    assert stage.endpoint.planned == [UNTIL, UNTIL + MINUTE, UNTIL + 2 * MINUTE]
    stage.set_state(planned, active=False)
    stage.run(200)
    exact(stage, planned)


def test_a_late_resume_still_begins_at_the_end_of_the_pause(stage: Stage) -> None:
    """Executors were away: what was due from `until` on is late, not lost."""
    planned = stage.create(EACH_MINUTE)
    paused(stage, planned)
    at(stage, UNTIL - 20 * SECOND)
    stage.tick()
    stage.pass_time(20 + 90)

    stage.run(90)

    assert stage.endpoint.planned[:2] == [UNTIL, UNTIL + MINUTE]
    (line,) = [run for run in stage.runs(planned) if run.range_count is not None]
    assert line.range_until == UNTIL - MINUTE


def test_the_row_sends_a_lost_pointer_again(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    paused(stage, planned)
    at(stage, UNTIL - 20 * SECOND)
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])

    at(stage, UNTIL + 20 * MINUTE)

    assert stage.job(planned).pause is None
    assert stage.endpoint.planned
    stage.set_state(planned, active=False)
    stage.run(200)
    totals = stage.totals(planned)
    assert (totals.open, totals.planned) == (0, stage.fold(planned).rows)
