"""Runs of one schedule that exclude each other: `skip`, `queue_one`, `replace`, and the slot that they share."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from sweephand.domain.job import Pause
from sweephand.domain.run import Kind, Outcome, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.actions.call import Call
from sweephand.server.flow.jobs import creation
from sweephand.server.flow.jobs.change import ScheduleRequest
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.runs import results
from sweephand.server.store.runs import run_rows
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before, refused
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, exact, fixed

EACH_MINUTE = {"cron": "* * * * *"}
ASYNC = {"outcome": {"on202": "wait", "callbackTimeoutSeconds": 600}}
READS = {"dynamodb.Query", "dynamodb.GetItem", "dynamodb.BatchGetItem"}
TRANSACTION = "dynamodb.TransactWriteItems"
POLICIES = ("skip", "queue_one", "replace")
every_policy = pytest.mark.parametrize("policy", POLICIES)


def create(stage: Stage, policy: str, *, timing: dict[str, Any] | None = None, **members: Any) -> Planned:
    """Creates a job whose target answers 202 and reports later, unless the test says otherwise."""
    members.setdefault("action", stage.action(**ASYNC))
    return stage.create(timing or EACH_MINUTE, policies={"overlap": policy}, **members)


def held(stage: Stage, policy: str, **members: Any) -> tuple[Planned, Run]:
    """Makes the target accept the occurrence of 12:01 without a report."""
    stage.endpoint.answer = ACCEPTED
    planned = create(stage, policy, **members)
    stage.run(65)
    holder = stage.only_run(planned)
    assert (holder.state, holder.slotted) == (State.ACK_RECVD, True)
    assert slot(stage) == (holder.uuid, None)
    return planned, holder


def slot(stage: Stage) -> tuple[str | None, str | None] | None:
    """Returns (active, queued) of the one slot, or None where there is none."""
    found = [item for item in stage.items() if item["sk"]["S"].startswith("SLOT#")]
    assert len(found) <= 1
    return tuple(found[0].get(name, {}).get("S") for name in ("active", "queued")) if found else None


def report(stage: Stage, run: Run, *, success: bool = True) -> None:
    assert run.schedule_id is not None
    results.record(stage.world, TENANT, run.schedule_id, run.uuid, success=success, message=None)


def lose_messages_of(stage: Stage, run: Run) -> None:
    messages = stage.sqs._queues[stage.world.settings.queue_urls[Lane.FAST]].messages
    messages[:] = [message for message in messages if run.uuid not in message.body]


def cancel(stage: Stage, run: Run) -> None:
    assert run.schedule_id is not None
    results.cancel(stage.world, TENANT, run.schedule_id, run.uuid)


def start(stage: Stage, planned: Planned) -> str:
    return manual.run_now(stage.world, TENANT, planned.job.id, planned.schedules[0].id, None).run_id


def stands(stage: Stage, planned: Planned) -> list[tuple[State, Reason | None]]:
    return [(run.state, run.reason) for run in stage.runs(planned)]


def set_policy(stage: Stage, planned: Planned, policy: str) -> None:
    stage.change(planned, action=stage.action(**ASYNC), policies={"overlap": policy})


def finish(stage: Stage, planned: Planned) -> None:
    """Switches the job off, reports all that waits, and lets everything come to rest."""
    stage.set_state(planned, active=False)
    stage.endpoint.answer = OK
    for _ in range(5):
        for run in stage.runs(planned):
            if run.state is State.ACK_RECVD:
                report(stage, run)
        stage.run(60)
    stage.run(1_000)
    at_rest(stage, planned)


def at_rest(stage: Stage, planned: Planned) -> None:
    assert all(run.finished and run.reason and run.wake_at is None for run in stage.runs(planned))
    assert slot(stage) is None
    exact(stage, planned)


SKIPPED = (State.SKIPPED, Reason.OVERLAP)
REPLACED = (State.CANCELLED, Reason.REPLACED)
ON_TIME = (State.SUCCESS, Reason.ON_TIME)
WAITS = (State.ACK_RECVD, None)
QUEUED = (State.QUEUED, None)


# Policies


def test_allow_lets_runs_overlap_and_writes_no_slot(stage: Stage) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = create(stage, "allow")
    stage.run(305)
    stage.endpoint.answer = OK
    stage.taps.passed.clear()

    stage.run(60)

    assert stands(stage, planned) == [*[WAITS] * 5, ON_TIME]
    assert slot(stage) is None
    writes = Counter(name for name in stage.taps.names() if name.startswith("dynamodb.") and name not in READS)
    assert writes == {"dynamodb.BatchExecuteStatement": 1, "dynamodb.PutItem": 1, "dynamodb.UpdateItem": 1}
    assert not any("SLOT#" in str(passing.request) for passing in stage.taps.passed)


@every_policy
def test_runs_that_do_not_overlap_take_turns_and_leave_no_slot(stage: Stage, policy: str) -> None:
    planned = create(stage, policy)

    stage.run(190)

    assert stands(stage, planned) == [ON_TIME] * 3
    assert slot(stage) is None


def test_skip_omits_occurrences_due_while_a_run_is_active(stage: Stage) -> None:
    planned, holder = held(stage, "skip")

    stage.run(120)

    assert stands(stage, planned) == [WAITS, SKIPPED, SKIPPED]
    assert stage.runs(planned)[1].message == f"the run {holder.id} was active"
    assert len(stage.endpoint.received) == 1
    report(stage, holder)
    stage.run(60)
    assert stands(stage, planned)[3] == WAITS
    finish(stage, planned)
    assert stage.totals(planned).skipped == 2


def test_a_run_waiting_for_its_retry_is_active(stage: Stage) -> None:
    stage.endpoint.script = [BUSY]
    planned = create(stage, "skip", action=stage.action(retry=fixed(90)))

    stage.run(240)

    assert stands(stage, planned) == [(State.SUCCESS, Reason.ON_TIME), SKIPPED, (State.SUCCESS, Reason.ON_TIME)] + [
        (State.SUCCESS, Reason.ON_TIME)
    ] * (len(stage.runs(planned)) - 3)


def test_queue_one_holds_one_run_and_starts_it_when_the_slot_is_free(stage: Stage) -> None:
    planned, holder = held(stage, "queue_one")

    stage.run(120)

    assert stands(stage, planned) == [WAITS, QUEUED, SKIPPED]
    queued = stage.runs(planned)[1]
    assert slot(stage) == (holder.uuid, queued.uuid)
    assert queued.wake_at is not None
    assert queued.started_at is None
    reported_at = stage.clock.now()
    report(stage, holder)
    stage.run(5)
    began = stage.runs(planned)[1]
    assert began.state is State.ACK_RECVD
    assert began.started_at is not None
    assert began.started_at - reported_at < 2 * SECOND
    assert slot(stage) == (queued.uuid, None)
    finish(stage, planned)


def test_replace_ends_the_active_run_and_takes_its_turn(stage: Stage) -> None:
    planned, holder = held(stage, "replace")

    stage.run(60)

    assert stands(stage, planned) == [REPLACED, WAITS]
    old, new = stage.runs(planned)
    assert old.message == f"replaced by the run {new.id}"
    assert old.wake_at is None
    assert slot(stage) == (new.uuid, None)
    assert stage.totals(planned).skipped == 1
    with pytest.raises(Exception, match="has ended as CANCELLED"):
        report(stage, holder)
    finish(stage, planned)


def test_a_late_answer_of_a_replaced_call_becomes_a_note(stage: Stage) -> None:
    """The call itself cannot be recalled."""
    planned = create(stage, "replace")

    def replaced_meanwhile(_call: object) -> Outcome:
        stage.endpoint.answer = OK
        stage.clock.advance(10)
        start(stage, planned)
        stage.deliver()
        return OK

    stage.endpoint.answer = replaced_meanwhile
    stage.run(70)

    old, new = stage.runs(planned)
    assert (old.state, old.reason) == REPLACED
    assert old.notes == ("the call ended later: SUCCESS 200",)
    assert (new.kind, new.state) == (Kind.MANUAL, State.SUCCESS)
    finish(stage, planned)


def test_an_occurrence_that_comes_late_does_not_replace_a_later_one(stage: Stage) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = create(stage, "replace")
    stage.run(30)
    messages = stage.sqs._queues[stage.world.settings.queue_urls[Lane.FAST]].messages
    early = [message for message in messages if message.visible_at < NOON + 2 * MINUTE]
    messages[:] = [message for message in messages if message not in early]
    stage.run(95)
    messages += early

    stage.run(1)

    assert stands(stage, planned) == [SKIPPED, WAITS]
    finish(stage, planned)


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_the_schedules_policy_overrides_the_jobs(stage: Stage, policy: str) -> None:
    stage.endpoint.answer = ACCEPTED
    draft = stage.draft(action=stage.action(**ASYNC), policies={"overlap": policy})
    own = stage.schedule(EACH_MINUTE, policies={"overlap": "allow"})
    planned = creation.create_job(stage.world, TENANT, replace(draft, schedules=(own,)))

    stage.run(125)

    assert stands(stage, planned) == [WAITS, WAITS]
    assert slot(stage) is None


def test_schedules_of_one_job_do_not_exclude_each_other(stage: Stage) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = stage.create(EACH_MINUTE, EACH_MINUTE, action=stage.action(**ASYNC), policies={"overlap": "skip"})

    stage.run(65)

    assert [stage.only_run(schedule).state for schedule in planned.schedules] == [State.ACK_RECVD] * 2


# Manual runs and error actions


def test_a_manual_run_of_the_schedule_is_skipped_while_another_is_active(stage: Stage) -> None:
    planned, _ = held(stage, "skip")

    start(stage, planned)
    stage.run(2)

    by_hand = stage.runs(planned, Kind.MANUAL)[0]
    assert (by_hand.state, by_hand.reason, by_hand.wake_at) == (*SKIPPED, None)
    assert stage.totals(planned).skipped == 0
    finish(stage, planned)


def test_a_manual_run_holds_the_slot_against_occurrences(stage: Stage) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = create(stage, "skip")
    start(stage, planned)

    stage.run(65)

    assert sorted(stands(stage, planned)) == sorted([WAITS, SKIPPED])
    finish(stage, planned)


def test_a_manual_run_can_be_the_queued_one(stage: Stage) -> None:
    planned, holder = held(stage, "queue_one")
    start(stage, planned)
    stage.run(58)
    by_hand = stage.runs(planned, Kind.MANUAL)[0]
    assert by_hand.state is State.QUEUED
    assert slot(stage) == (holder.uuid, by_hand.uuid)

    report(stage, holder)
    stage.run(1)

    assert stage.runs(planned, Kind.MANUAL)[0].state is State.ACK_RECVD
    assert SKIPPED in stands(stage, planned)
    finish(stage, planned)


@pytest.mark.parametrize("fault", ["another copy", "answer lost"])
def test_a_concurrently_queued_manual_run_waits_and_is_not_skipped(stage: Stage, fault: str) -> None:
    """Its row was read before it was queued: by another copy of its message, or by this one, and nobody heard."""
    planned, holder = held(stage, "queue_one", timing={**EACH_MINUTE, "count": 1})
    start(stage, planned)
    if fault == "another copy":
        stage.sqs.duplicate(stage.world.settings.queue_urls[Lane.FAST])

    def other_copy_first(_passing: Passing, act: Act) -> Any:
        stage.taps.fault = None
        stage.deliver(most=1)
        return act()

    met = {"another copy": ("dynamodb.GetItem", other_copy_first), "answer lost": (TRANSACTION, answer_lost)}
    with stage.taps.once(*met[fault]):
        stage.deliver(most=1)

    (run,) = stage.runs(planned, Kind.MANUAL)
    assert (run.state, slot(stage)) == (State.QUEUED, (holder.uuid, run.uuid))
    stage.endpoint.answer = OK
    report(stage, holder)
    stage.run(10)
    assert stands(stage, planned) == [ON_TIME, ON_TIME]
    at_rest(stage, planned)


def test_a_run_of_the_job_itself_excludes_nothing(stage: Stage) -> None:
    planned, _ = held(stage, "skip")

    manual.run_now(stage.world, TENANT, planned.job.id, None, None)
    stage.run(2)

    assert stage.only_run(planned.job.id).state is State.ACK_RECVD


def test_an_error_action_neither_waits_for_the_slot_nor_holds_it(stage: Stage) -> None:
    alarm = "https://example.org/alarm"
    planned = create(stage, "skip", error_action=stage.action(url=alarm))
    stage.endpoint.answer = lambda call: OK if "error" in call.run_id else WRONG
    stage.run(65)
    assert [received.params["url"] for received in stage.endpoint.received][-1] == alarm
    assert slot(stage) is None

    assert not any(run.slotted for run in stage.runs(planned, Kind.ERROR_ACTION))


def test_a_schedule_continues_while_its_error_action_runs(stage: Stage) -> None:
    retry = fixed(300)
    planned = create(stage, "skip", error_action=stage.action(url="https://example.org/alarm", retry=retry))
    stage.endpoint.script = [WRONG, BUSY]

    stage.run(125)

    assert [run.state for run in stage.runs(planned, Kind.ERROR_ACTION)] == [State.RETRY_WAIT]
    assert [run.state for run in stage.runs(planned, Kind.SCHEDULED)] == [State.REQUEST_ERROR, State.SUCCESS]


# Whoever ends the holder


def test_a_cancelled_holder_leaves_its_turn_to_the_queued_run(stage: Stage) -> None:
    planned, holder = held(stage, "queue_one")
    stage.run(60)

    cancel(stage, holder)
    stage.run(2)

    assert [state for state, _ in stands(stage, planned)] == [State.CANCELLED, State.ACK_RECVD]
    finish(stage, planned)


def test_a_cancelled_queued_run_leaves_its_place(stage: Stage) -> None:
    planned, holder = held(stage, "queue_one")
    stage.run(60)
    queued = stage.runs(planned)[1]

    cancel(stage, queued)
    stage.run(2)
    assert slot(stage) == (holder.uuid, None)

    stage.run(60)
    assert stage.runs(planned)[2].state is State.QUEUED
    finish(stage, planned)


def test_a_holder_without_its_result_ends_at_its_deadline_and_frees_the_slot(stage: Stage) -> None:
    planned, _ = held(stage, "skip")

    stage.run(720)

    states = stands(stage, planned)
    assert states[0] == (State.UNKNOWN, Reason.DEADLINE)
    assert states[1] == SKIPPED
    assert WAITS in states[2:]
    finish(stage, planned)


@every_policy
def test_a_holder_whose_executors_all_die_is_ended_and_the_series_continues(stage: Stage, policy: str) -> None:
    planned = create(stage, policy)
    stage.run(30)
    first = stage.clock.now().replace(second=0, microsecond=0) + MINUTE

    def dies(call: Call) -> Outcome:
        if call.planned_at == first:
            raise Crash
        return OK

    stage.endpoint.answer = dies
    for _ in range(100):
        with suppress(Crash):
            stage.deliver_all(most=1)
        stage.pass_time(5)

    stage.run(240)

    assert stands(stage, planned)[0] in [(State.UNKNOWN, Reason.EXECUTOR_LOST), REPLACED]
    assert stands(stage, planned)[-1][0] is State.SUCCESS
    finish(stage, planned)


def test_a_frozen_holder_keeps_the_slot_and_its_pointer_is_sent_again(stage: Stage) -> None:
    """Its message is lost besides: without the contender's help nobody would look at it."""
    planned = create(stage, "skip")
    stage.run(30)
    stage.pass_time(31)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver(most=1)
    holder = stage.only_run(planned)
    assert holder.state is State.TRIGGERED
    lose_messages_of(stage, holder)

    stage.run(65)

    first, second = stage.runs(planned)[:2]
    assert (first.uuid, first.state, first.lost) == (holder.uuid, State.SUCCESS, 1)
    assert (second.state, second.reason) == SKIPPED
    finish(stage, planned)


def test_a_success_after_the_lease_frees_the_slot_too(stage: Stage) -> None:
    planned = create(stage, "skip")
    stage.endpoint.takes_s = 40

    stage.run(70)

    stage.endpoint.takes_s = 0
    assert stands(stage, planned)[0][0] is State.SUCCESS
    finish(stage, planned)


def test_a_run_that_comes_back_from_the_dead_letters_frees_the_slot(stage: Stage) -> None:
    planned = create(stage, "skip")
    stage.run(30)
    stage.pass_time(31)
    with stage.taps.once("endpoint.http", crash_before), pytest.raises(Crash):
        stage.deliver(most=1)

    def no_gate(passing: Passing, act: Act) -> Any:
        return refused(passing, act) if passing.name == "dynamodb.BatchGetItem" else act()

    with stage.taps.faulty(no_gate):
        for _ in range(12):
            stage.pass_time(900)
            stage.deliver()
    stage.run(120)

    assert stands(stage, planned)[0] == (State.SUCCESS, Reason.ON_TIME)
    finish(stage, planned)


# Two at once, duplicates


@every_policy
def test_ten_concurrent_runs_have_one_turn_at_a_time(stage: Stage, policy: str) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = create(stage, policy)
    for _ in range(10):
        start(stage, planned)

    stage.deliver(most=10)

    states = [state for state, _ in stands(stage, planned)]
    assert states.count(State.ACK_RECVD) == 1
    stage.run(40)
    states = [state for state, _ in stands(stage, planned)]
    assert states.count(State.ACK_RECVD) == 1
    assert states.count(State.QUEUED) == (policy == "queue_one")
    finish(stage, planned)


@every_policy
def test_copies_of_messages_change_nothing(stage: Stage, policy: str) -> None:
    planned, _ = held(stage, policy)
    for _ in range(8):
        stage.sqs.duplicate(stage.world.settings.queue_urls[Lane.FAST])
        stage.run(20)
    report_open(stage, planned)

    assert len(stage.endpoint.received) == len({received.run_id for received in stage.endpoint.received})
    finish(stage, planned)


def report_open(stage: Stage, planned: Planned) -> None:
    for run in stage.runs(planned):
        if run.state is State.ACK_RECVD:
            report(stage, run)


# Crashes, lost answers


def contended(stage: Stage, policy: str) -> tuple[Planned, Run]:
    """Makes a holder that waits for its report, with the message of the next occurrence visible."""
    planned, holder = held(stage, policy)
    stage.run(30)
    stage.pass_time(31)
    return planned, holder


FAULTS = {
    "crash before": crash_before,
    "crash after": crash_after,
    "answer lost": answer_lost,
    "conflict": conflict,
    "throttled": refused,
}


@every_policy
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("free", [True, False], ids=["free", "taken"])
def test_a_fault_in_the_transaction_of_a_turn_is_repaired(stage: Stage, policy: str, fault: str, free: bool) -> None:
    planned, holder = contended(stage, policy)
    if free:
        report(stage, holder)
        stage.deliver(most=1)  # whichever comes first: the effects of the holder, or the occurrence
    try:
        with stage.taps.once(TRANSACTION, FAULTS[fault]):
            while stage.deliver(most=1):
                pass
    except Crash:
        pass
    except AssertionError:
        assert free, "no transaction"

    stage.run(50)

    second = stage.runs(planned)[1]
    taken = {"skip": SKIPPED, "queue_one": QUEUED, "replace": WAITS}
    assert (second.state, second.reason) == (WAITS if free else taken[policy])
    finish(stage, planned)


@pytest.mark.parametrize("call", ["dynamodb.DeleteItem", "dynamodb.UpdateItem"])
@pytest.mark.parametrize("fault", ["crash before", "crash after", "answer lost", "throttled"])
def test_a_fault_while_the_slot_is_released_is_repaired(stage: Stage, call: str, fault: str) -> None:
    planned = create(stage, "skip")
    stage.run(30)
    stage.pass_time(31)
    try:
        with stage.taps.once(call, FAULTS[fault]):
            stage.deliver(most=1)
    except Crash:
        pass

    stage.run(100)

    assert [state for state, _ in stands(stage, planned)[:2]] == [State.SUCCESS] * 2
    finish(stage, planned)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_the_turn_is_passed_on_is_repaired(stage: Stage, fault: str) -> None:
    planned, holder = held(stage, "queue_one")
    stage.run(60)
    report(stage, holder)
    try:
        with stage.taps.once(TRANSACTION, FAULTS[fault]):
            stage.deliver(most=1)
    except Crash:
        pass

    stage.run(50)

    assert stands(stage, planned)[1] == WAITS
    assert stage.endpoint.run_ids.count(stage.runs(planned)[1].id) == 1
    finish(stage, planned)


@pytest.mark.parametrize("fault", ["crash before", "crash after", "throttled"])
def test_a_pointer_that_is_lost_when_the_turn_is_passed_on_is_sent_again(stage: Stage, fault: str) -> None:
    planned, holder = held(stage, "queue_one")
    stage.run(60)
    report(stage, holder)
    try:
        with stage.taps.once("sqs.SendMessageBatch", FAULTS[fault]):
            stage.deliver(most=1)
    except Crash:
        pass

    stage.run(50)

    assert stands(stage, planned)[1] == WAITS
    finish(stage, planned)


def test_the_wake_row_restores_a_passed_turn_whose_messages_are_lost(stage: Stage) -> None:
    planned, holder = held(stage, "queue_one", timing={"cron": "1,2 * * * *"})
    stage.run(60)
    report(stage, holder)
    stage.deliver(most=1)
    assert slot(stage) == (stage.runs(planned)[1].uuid, None)
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])

    stage.run(180)

    assert stands(stage, planned)[1] == WAITS
    finish(stage, planned)


def test_an_end_without_its_effects_does_not_delay_the_next_run(stage: Stage) -> None:
    """The callback's executor never comes: the next occurrence finds the holder ended."""
    planned, holder = held(stage, "skip")
    stage.run(30)
    report(stage, holder)
    lose_messages_of(stage, holder)
    stage.pass_time(31)

    stage.deliver(most=1)

    assert [state for state, _ in stands(stage, planned)] == [State.SUCCESS, State.ACK_RECVD]
    finish(stage, planned)


def test_a_holder_whose_row_has_expired_holds_nothing(stage: Stage) -> None:
    planned, holder = held(stage, "skip")
    stage.world.table.delete(*run_rows.key_of(holder))
    lose_messages_of(stage, holder)

    stage.run(60)

    assert stands(stage, planned) == [WAITS]
    assert slot(stage) == (stage.only_run(planned).uuid, None)


# Changes while a run is active


def test_runs_that_began_under_another_policy_do_not_count(stage: Stage) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = create(stage, "allow")
    stage.run(65)
    set_policy(stage, planned, "skip")

    stage.run(120)

    assert stands(stage, planned) == [WAITS, WAITS, SKIPPED]
    finish(stage, planned)


def test_under_allow_a_run_starts_next_to_the_holder_whose_end_frees_the_slot(stage: Stage) -> None:
    planned, holder = held(stage, "skip")
    set_policy(stage, planned, "allow")
    stage.run(60)
    assert stands(stage, planned) == [WAITS, WAITS]
    set_policy(stage, planned, "skip")

    stage.run(60)
    assert stands(stage, planned)[2] == SKIPPED
    report(stage, holder)
    stage.run(1)

    assert slot(stage) is None
    finish(stage, planned)


@pytest.mark.parametrize("later", ["allow", "skip"])
def test_a_queued_run_gets_its_turn_under_any_later_policy(stage: Stage, later: str) -> None:
    planned, holder = held(stage, "queue_one")
    stage.run(60)
    set_policy(stage, planned, later)
    assert stands(stage, planned)[1] == QUEUED

    report(stage, holder)
    stage.run(2)

    assert stands(stage, planned)[1] == WAITS
    finish(stage, planned)


def test_replace_takes_the_turn_of_the_queued_run_too(stage: Stage) -> None:
    planned, _ = held(stage, "queue_one")
    stage.run(60)
    set_policy(stage, planned, "replace")

    stage.run(60)

    assert stands(stage, planned) == [REPLACED, REPLACED, WAITS]
    assert stage.totals(planned).skipped == 2
    finish(stage, planned)


def test_a_pause_still_gives_the_queued_run_its_turn(stage: Stage) -> None:
    """A retry goes on in the same way: what has its row runs."""
    planned, holder = held(stage, "queue_one")
    stage.run(60)
    stage.set_state(planned, pause=Pause(stage.clock.now()))

    report(stage, holder)
    stage.run(2)

    assert stands(stage, planned)[1] == WAITS
    finish(stage, planned)


@pytest.mark.parametrize("whole", [True, False], ids=["job", "schedule"])
@pytest.mark.parametrize("policy", ["skip", "queue_one"])
def test_a_delete_ends_holder_and_queued_run_and_leaves_no_slot(stage: Stage, policy: str, whole: bool) -> None:
    planned, _ = held(stage, policy)
    stage.run(57)
    if whole:
        stage.delete(planned)
    else:
        stage.change_schedules(planned, lambda there: [ScheduleRequest(there.schedules[0], None, delete=True)])

    stage.run(2_000)

    runs = stage.runs(planned)
    assert {(run.state, run.reason) for run in runs if run.slotted} == {(State.CANCELLED, Reason.OWNER_GONE)}
    assert slot(stage) is None
    assert all(run.finished and run.wake_at is None for run in runs)


def test_the_last_occurrences_of_a_series_get_their_turns_before_it_completes(stage: Stage) -> None:
    planned, holder = held(stage, "queue_one", timing={"cron": "* * * * *", "count": 3})
    stage.run(130)
    report(stage, holder)
    stage.run(5)
    assert stage.stored(planned).state == "ENDING"

    report_open(stage, planned)
    stage.run(5)

    assert stage.stored(planned).state == "COMPLETED"
    assert [state for state, _ in stands(stage, planned)] == [State.SUCCESS, State.SUCCESS, State.SKIPPED]
    at_rest(stage, planned)


def test_the_slow_lane_keeps_slots_too(stage: Stage) -> None:
    slow = stage.action(outcome={"answerTimeoutSeconds": 60, "on202": "wait"})
    planned, holder = held(stage, "queue_one", action=slow)
    stage.run(60)
    assert planned.schedules[0].lane is Lane.SLOW

    report(stage, holder)
    stage.run(2)

    assert stands(stage, planned)[1] == WAITS
