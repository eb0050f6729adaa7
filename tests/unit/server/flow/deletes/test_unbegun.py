"""A deleted job or schedule leaves a row for each occurrence that was due and had not begun."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.domain.collection import CollectionState, Events
from sweephand.domain.event import EventType
from sweephand.domain.job import DEFAULT_COLLECTION, Pause
from sweephand.domain.message import Pointer, occurrence
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.flow.deletes import clean_up
from sweephand.server.flow.job_parts import clean_up_rows
from sweephand.server.flow.jobs import deletion, lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.flow.runs import run_lists
from sweephand.server.flow.runs.run_lists import Wanted
from sweephand.server.flow.tenants import tenancy
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo import keys
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before
from tests.unit.server.flow.common import HOUR, NOON, SECOND, exact

EACH_SECOND = {"every": "PT1S", "align": "clock"}
GONE = (State.CANCELLED, Reason.OWNER_GONE)


def backlog(stage: Stage, seconds: float, *timings: dict[str, Any], **members: Any) -> Planned:
    """Makes a job whose occurrences of this long were sent while no executor was there."""
    planned = stage.create(*(timings or (EACH_SECOND,)), **members)
    stage.tick()
    stage.clock.advance(seconds)
    return planned


def delete_schedule(stage: Stage, planned: Planned) -> None:
    gone = planned.schedules[0].id
    stage.change_schedules(
        planned, lambda there: [ScheduleRequest(lookup.find_schedule(there, gone), None, delete=True)]
    )


def told(runs: list[Run]) -> list[tuple[datetime, State, Reason | None]]:
    return [(run.planned_at, run.state, run.reason) for run in runs]


def cancelled(first: int, last: int) -> list[tuple[datetime, State, Reason | None]]:
    """Returns an occurrence for each second, in seconds after noon."""
    return [(NOON + n * SECOND, *GONE) for n in range(first, last + 1)]


@pytest.mark.parametrize("seconds", [1, 10, 30, 100])
@pytest.mark.parametrize("delete", [Stage.delete, delete_schedule])
def test_each_due_occurrence_that_has_not_begun_gets_a_cancelled_row(
    stage: Stage, seconds: int, delete: Callable[[Stage, Planned], None]
) -> None:
    planned = backlog(stage, seconds)

    delete(stage, planned)
    stage.run(300)

    assert told(stage.runs(planned)) == cancelled(1, seconds)
    assert stage.endpoint.received == []


def test_an_occurrence_withdrawn_before_it_is_due_leaves_no_row(stage: Stage) -> None:
    planned = backlog(stage, 10)

    stage.delete(planned)
    stage.run(300)

    assert max(run.planned_at for run in stage.runs(planned)) == NOON + 10 * SECOND


def test_a_run_called_before_the_delete_keeps_its_own_row(stage: Stage) -> None:
    planned = stage.create(EACH_SECOND)
    stage.run(20)
    stage.clock.advance(10)

    stage.delete(planned)
    stage.run(300)

    states = [run.state for run in stage.runs(planned)]
    assert states == [State.SUCCESS] * 20 + [State.CANCELLED] * 10
    assert len(stage.endpoint.received) == 20


def test_a_long_backlog_is_one_line_with_its_count(stage: Stage) -> None:
    planned = backlog(stage, 140)

    stage.delete(planned)
    stage.run(300)

    line = stage.only_run(planned)
    assert (line.state, line.reason) == GONE
    assert (line.planned_at, line.range_until, line.range_count) == (NOON + SECOND, NOON + 140 * SECOND, 140)


@pytest.mark.parametrize("seconds", [101, 140, 1_500])
@pytest.mark.parametrize("delete", [Stage.delete, delete_schedule])
def test_a_long_backlog_is_published_once_and_fails_nothing(
    stage: Stage, seconds: int, delete: Callable[[Stage, Planned], None]
) -> None:
    stage.tell(Events.ALL)
    planned = backlog(stage, seconds)

    delete(stage, planned)
    stage.run(120)

    lines = [run for run in stage.runs(planned) if run.range_count is not None]
    published = stage.bus.of(EventType.OCCURRENCES_CANCELLED)
    assert [detail["range"]["count"] for detail in published] == [run.range_count for run in lines]
    assert sum(run.range_count or 1 for run in stage.runs(planned)) == seconds
    assert stage.journal.at("error") == []


def test_an_occurrence_that_no_tick_sent_has_a_row_too(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"})
    stage.tick()
    stage.clock.advance(600)

    stage.delete(planned)
    stage.run(120)

    assert told(stage.runs(planned)) == [(NOON + n * 60 * SECOND, *GONE) for n in range(1, 11)]


@pytest.mark.parametrize("count", [3, 12, 40])
def test_a_count_limits_the_due_occurrences(stage: Stage, count: int) -> None:
    planned = backlog(stage, 20, {**EACH_SECOND, "count": count})

    stage.delete(planned)
    stage.run(120)

    assert len(stage.runs(planned)) == min(count, 20)


def test_a_count_limits_the_occurrences_that_no_tick_sent(stage: Stage) -> None:
    planned = stage.create({"every": "PT1M", "count": 5})
    stage.tick()
    stage.clock.advance(1_200)

    stage.delete(planned)
    stage.run(120)

    assert len(stage.runs(planned)) == 5


def test_a_run_that_began_before_any_tick_uses_up_the_count(stage: Stage) -> None:
    planned = stage.create({"every": "PT4S", "align": "clock", "count": 2})
    stage.clock.advance(5)
    stage.deliver_all()
    stage.clock.advance(30)

    stage.delete(planned)
    stage.run(120)

    rows = stage.runs(planned)
    assert [(run.planned_at, run.state) for run in rows] == [
        (NOON + 4 * SECOND, State.SUCCESS),
        (NOON + 8 * SECOND, State.CANCELLED),
    ]


def test_both_plans_of_a_change_have_rows_for_their_due_occurrences(stage: Stage) -> None:
    planned = backlog(stage, 10)
    stage.change(planned, timings=[{"every": "PT5S", "align": "clock"}])
    stage.tick()
    stage.clock.advance(20)

    stage.delete(planned)
    stage.run(300)

    rows = stage.runs(planned)
    assert {run.generation for run in rows} == {1, 2}
    assert all((run.state, run.reason) == GONE for run in rows)
    assert [run.planned_at for run in rows][:10] == [NOON + n * SECOND for n in range(1, 11)]
    assert rows[-1].planned_at == NOON + 30 * SECOND


@pytest.mark.parametrize(
    ("members", "reason"),
    [({"pause": Pause(NOON, None, None)}, Reason.PAUSED), ({"active": False}, Reason.DISABLED)],
    ids=["paused", "off"],
)
def test_occurrences_due_while_the_job_was_off_are_one_skipped_line(
    stage: Stage, members: dict[str, Any], reason: Reason
) -> None:
    planned = stage.create({"cron": "* * * * *"})
    stage.set_state(planned, **members)
    stage.run(1_810)

    stage.delete(planned)
    stage.run(120)

    line = stage.only_run(planned)
    assert (line.state, line.reason, line.range_count) == (State.SKIPPED, reason, 30)


def test_occurrences_due_in_a_disabled_collection_are_one_skipped_line(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"})
    tenancy.change_collection(
        stage.world, TENANT, DEFAULT_COLLECTION, lambda there: replace(there, state=CollectionState.DISABLED), None
    )
    stage.run(1_810)

    stage.delete(planned)
    stage.run(120)

    rows = stage.runs(planned)
    assert {(run.state, run.reason) for run in rows} == {(State.SKIPPED, Reason.DISABLED)}
    assert sum(run.range_count or 1 for run in rows) == 30


def test_occurrences_of_a_collection_disabled_for_longer_than_rows_are_kept_are_one_line(stage: Stage) -> None:
    planned = stage.create({"every": "P7D"})
    tenancy.change_collection(
        stage.world, TENANT, DEFAULT_COLLECTION, lambda there: replace(there, state=CollectionState.DISABLED), None
    )
    for _ in range(36 * 24):
        stage.pass_time(3_600)
        stage.tick()

    stage.delete(planned)
    stage.run(300)

    line = stage.only_run(planned)
    assert (line.state, line.reason, line.range_count) == (State.SKIPPED, Reason.DISABLED, 5)


def test_a_one_time_schedule_that_was_due_has_its_row(stage: Stage) -> None:
    planned = backlog(stage, 61, {"at": "2027-03-01T12:01:00Z"})

    stage.delete(planned)
    stage.run(120)

    assert told(stage.runs(planned)) == [(NOON + 60 * SECOND, *GONE)]


def test_a_series_that_follows_its_starts_has_rows_for_the_sent_occurrences(stage: Stage) -> None:
    planned = stage.create({"every": "PT10S", "align": "actual_start"})
    stage.run(25)
    begun = [run.planned_at for run in stage.runs(planned)]
    stage.clock.advance(30)

    stage.delete(planned)
    stage.run(120)

    due = [begun[-1] + n * 10 * SECOND for n in range(1, 4)]
    assert told(stage.runs(planned))[len(begun) :] == [(at, *GONE) for at in due if at <= NOON + 55 * SECOND]


def test_a_series_that_follows_its_starts_and_never_began_has_rows_too(stage: Stage) -> None:
    planned = backlog(stage, 45, {"every": "PT10S", "align": "actual_start"})

    stage.delete(planned)
    stage.run(120)

    assert [run.planned_at for run in stage.runs(planned)] == [NOON + n * SECOND for n in (1, 11, 21, 31, 41)]


def test_a_job_with_more_schedules_than_one_transaction_leaves_rows_of_all(stage: Stage) -> None:
    timings = [{"cron": "* * * * *"}] * 40
    planned = stage.create(*timings)
    for _ in range(2):
        more = [ScheduleRequest(None, stage.schedule({"cron": "* * * * *"})) for _ in range(20)]
        planned = stage.change_schedules(planned, lambda _, more=more: more)  # type: ignore[misc]
    stage.tick()
    stage.clock.advance(130)
    assert len(planned.schedules) == 80

    stage.delete(planned)
    stage.run(300)

    assert {len(stage.runs(schedule)) for schedule in planned.schedules} == {2}
    assert stage.endpoint.received == []
    assert stage.waiting() == {}


@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost])
@pytest.mark.parametrize("call", ["dynamodb.PutItem", "dynamodb.UpdateItem", "dynamodb.DeleteItem"])
def test_a_cleanup_that_dies_while_writing_rows_continues(stage: Stage, call: str, fault: Any) -> None:
    planned = backlog(stage, 10)
    stage.delete(planned)
    stage.tick()
    stage.clock.advance(31)

    try:
        with stage.taps.once(call, fault):
            stage.deliver_all(most=1)
    except Crash:
        pass
    stage.run(1_200)

    assert told(stage.runs(planned)) == cancelled(1, 10)
    assert stage.waiting() == {}


def test_an_earlier_claim_wins_over_the_row_of_the_cleanup(stage: Stage) -> None:
    """Gate, delete, clean-up, claim: an executor that was frozen in between meets the row, and calls nobody."""
    planned = backlog(stage, 10)

    def deleted_first(_passing: Passing, act: Act) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.delete(planned)
        stage.tick()
        stage.clock.advance(31)
        stage.deliver_all()
        stage.taps.fault = fault
        return act()

    with stage.taps.once("dynamodb.PutItem", deleted_first):
        stage.deliver(most=1)
    stage.run(300)

    assert stage.endpoint.received == []
    assert told(stage.runs(planned)) == cancelled(1, 10)


def test_a_message_that_arrives_after_the_cleanup_finds_the_row_and_makes_no_call(stage: Stage) -> None:
    planned = backlog(stage, 10)
    schedule = planned.schedules[0]
    stage.delete(planned)
    stage.run(120)
    for n in range(1, 11):
        late = occurrence(TENANT, planned.job.id, schedule.id, NOON + n * SECOND, schedule.generation)
        stage.world.queue.send_one(Delivery(late, stage.clock.now(), Lane.FAST))
    stage.run(60)

    assert stage.endpoint.received == []
    assert told(stage.runs(planned)) == cancelled(1, 10)


def test_a_purged_queue_loses_no_row(stage: Stage) -> None:
    planned = backlog(stage, 10)
    for lane in Lane:
        stage.sqs.purge(stage.world.settings.queue_urls[lane])

    stage.delete(planned)
    stage.run(120)

    assert told(stage.runs(planned)) == cancelled(1, 10)


def test_the_rows_are_in_the_lists_of_their_tenant(stage: Stage) -> None:
    planned = backlog(stage, 10)

    stage.delete(planned)
    stage.run(300)

    now = stage.clock.now()
    everything = list(run_lists.listed(stage.world, TENANT, Wanted(), None, 100, now))
    its_own = list(run_lists.listed(stage.world, TENANT, Wanted(schedule_id=planned.schedules[0].id), None, 100, now))
    assert len([each for each in everything if isinstance(each, Run)]) == len(its_own) == 10


def test_a_collection_with_all_events_publishes_each_cancelled_run(stage: Stage) -> None:
    stage.tell(Events.ALL)
    planned = backlog(stage, 5)

    stage.delete(planned)
    stage.run(300)

    ended = [each.detail for each in stage.bus.told if each.detail.get("reason") == "OWNER_GONE"]
    assert len({each["runId"] for each in ended}) == 5


def test_the_rows_expire_as_runs_of_their_collection_do(stage: Stage) -> None:
    planned = backlog(stage, 5)

    stage.delete(planned)
    stage.run(300)

    assert all(run.expires_at and run.expires_at - run.planned_at > 14 * 24 * HOUR for run in stage.runs(planned))


def test_a_purged_tenant_leaves_no_rows(stage: Stage) -> None:
    planned = backlog(stage, 10)

    deletion.delete_job(stage.world, TENANT, planned.job.id, None, deletion.Cause.PURGE)
    stage.run(300)

    assert stage.runs(planned) == []


def test_the_second_in_which_the_delete_is_written_counts(stage: Stage) -> None:
    """An occurrence that falls due before the delete stands belongs to the time before it."""
    planned = backlog(stage, 10)

    def slowly(_passing: Passing, act: Act) -> Any:
        stage.clock.advance(1.2)
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", slowly):
        stage.delete(planned)
    stage.run(300)

    assert told(stage.runs(planned)) == cancelled(1, 11)


def test_a_backlog_too_large_for_one_pass_is_completed_by_later_passes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean_up, "ROWS_AT_ONCE", 15)
    planned = backlog(stage, 10, *[EACH_SECOND] * 4)

    stage.delete(planned)
    stage.run(600)

    for schedule in planned.schedules:
        assert told(stage.runs(schedule)) == cancelled(1, 10)
    assert stage.waiting() == {}


def test_the_remaining_schedules_keep_exact_totals(stage: Stage) -> None:
    planned = backlog(stage, 20, EACH_SECOND, {"every": "PT2S"})
    other = planned.schedules[1]

    delete_schedule(stage, planned)
    stage.run(300)
    stage.set_state(planned, active=False)
    stage.run(60)

    exact(stage, other)
    assert timedelta(0) < stage.clock.now() - NOON


def test_a_late_note_of_the_delete_creates_no_row(stage: Stage) -> None:
    planned = backlog(stage, 10)
    where = clean_up_rows.Place.of(planned.job)

    clean_up_rows.note_delay(stage.world, where, NOON)

    assert not [item for item in stage.items() if item["sk"]["S"].startswith("CLEAN#")]


def test_a_pass_overtaken_by_another_does_not_restore_the_cleanup_row(stage: Stage) -> None:
    planned = backlog(stage, 10)
    stage.delete(planned)
    stage.clock.advance(31)
    pk, sk = keys.job(TENANT, planned.job.id), keys.clean_up(clean_up_rows.WHOLE_JOB)

    def gone_meanwhile(_passing: Passing, act: Act) -> Any:
        with stage.untapped():
            stage.world.table.delete(pk, sk)
        act()
        raise Crash  # what it brought back would stay

    with stage.taps.once("dynamodb.UpdateItem", gone_meanwhile), suppress(Crash):
        clean_up.clean(stage.world, Pointer(TENANT, planned.job.id, None, clean_up_rows.WHOLE_JOB, NOON))

    assert not [item for item in stage.items() if item["sk"]["S"] == sk]
