"""The events on the bus: which fact, once asked for, under which id, and what a crash or a deaf bus does to it.

The bus of the stage holds every event against its schema (tests/support/bus.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from sweephand.domain.collection import Collection, Events
from sweephand.domain.event import EventType, Finding
from sweephand.domain.instants import text_ms
from sweephand.domain.job import Pause
from sweephand.domain.message import decode, encode
from sweephand.domain.run import Kind, Reason, State
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.flow.delivery import dead_letters
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.jobs.change import ScheduleRequest
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.runs import results
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.dynamo import keys
from sweephand.testing.service import DEAD, URLS
from sweephand.testing.sources import START
from sweephand.testing.taps import Act, Fault, Passing
from tests.support.bus import first_entry_fails, refused_by_bus
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before, refused
from tests.unit.server.flow.common import DAY, MINUTE, NOON, fixed, once

PUT = "events.PutEvents"
ALL_BUT_RUNS = {"cron": "0 0 1 1 *"}
"""A schedule that stays out of the way."""


@pytest.fixture
def loud(stage: Stage) -> Stage:
    """A service whose collection has all told."""
    stage.tell(Events.ALL)
    stage.taps.passed.clear()
    return stage


def run_once(stage: Stage, **members: object) -> Planned:
    """Runs a job of one occurrence, far enough ahead that the sweep alone sends it: no message comes twice."""
    planned = stage.create(once(5 * MINUTE), **members)
    stage.run(330)
    return planned


def due_now(stage: Stage, **members: object) -> Planned:
    """Makes the same job, with its message just visible."""
    planned = stage.create(once(5 * MINUTE), **members)
    stage.pass_time(200)
    stage.tick()
    stage.pass_time(100)
    return planned


# The run


def test_a_success_is_not_published_by_default(stage: Stage) -> None:
    run_once(stage)

    assert stage.bus.told == []
    assert stage.taps.count(PUT) == 0


def test_a_success_is_published_in_a_collection_with_all_events(loud: Stage) -> None:
    planned = run_once(loud, resource_id="inv-1", tags=("a", "b"))

    told = loud.bus.only(EventType.RUN_SUCCEEDED)
    run = loud.only_run(planned)
    assert told["id"] == f"run.succeeded:{run.id}"
    assert (told["runId"], told["scheduleId"], told["jobId"]) == (run.id, run.schedule_id, run.job_id)
    assert (told["tenant"], told["collection"], told["jobName"]) == (TENANT, "default", planned.job.name)
    assert (told["resourceId"], told["tags"]) == ("inv-1", ["a", "b"])
    assert (told["state"], told["reason"], told["httpStatus"]) == ("SUCCESS", "ON_TIME", 200)
    assert told["plannedAt"] == text_ms(NOON + 5 * MINUTE)
    assert told["occurredAt"] == told["finishedAt"]
    assert told["latenessMs"] == run.lateness_ms


def test_a_failure_is_published_by_default_after_the_last_attempt(stage: Stage) -> None:
    stage.endpoint.answer = BUSY
    due_now(stage, action=stage.action(retry=fixed(10, retries=2)))
    stage.run(15)
    assert stage.bus.told == []

    stage.run(30)

    told = stage.bus.only(EventType.RUN_FAILED)
    assert (told["state"], told["reason"], told["httpStatus"]) == ("ERROR", "HTTP_STATUS", 503)
    assert (told["attempt"], told["maxAttempts"]) == (3, 3)


def test_a_failed_attempt_is_published_before_the_next_one_in_a_collection_with_all_events(loud: Stage) -> None:
    loud.endpoint.script = [BUSY, BUSY]
    planned = due_now(loud, action=loud.action(retry=fixed(10, retries=2)))
    loud.run(60)

    run = loud.only_run(planned)
    first, second = loud.bus.of(EventType.RUN_RETRYING)
    assert [each["id"] for each in (first, second)] == [f"run.retrying:{run.id}:{n}" for n in (1, 2)]
    assert (first["state"], first["reason"], first["httpStatus"]) == ("RETRY_WAIT", "HTTP_STATUS", 503)
    assert (first["attempt"], first["maxAttempts"], first["jobId"]) == (1, 3, planned.job.id)
    assert first["occurredAt"] == first["finishedAt"] < first["nextAttemptAt"] <= second["finishedAt"]
    assert loud.bus.only(EventType.RUN_SUCCEEDED)["attempt"] == 3


@pytest.mark.parametrize("delay_s", [10, 1_800])
@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_an_event_lost_after_an_attempt_by_a_dying_executor_is_published_later(
    loud: Stage, fault: Fault, delay_s: int
) -> None:
    """A retry within 15 minutes has a message, a later one is woken by its row."""
    loud.endpoint.script = [BUSY]
    due_now(loud, action=loud.action(retry=fixed(delay_s, retries=1)))
    with loud.taps.once(PUT, fault), pytest.raises(Crash):
        loud.deliver()

    loud.run(delay_s + 300)

    assert len(loud.bus.of(EventType.RUN_RETRYING)) == (1 if fault is crash_before else 2)
    assert_repeats_are_equal(loud)
    assert loud.bus.only(EventType.RUN_SUCCEEDED)["attempt"] == 2


def test_an_error_action_is_published_as_a_run_of_its_own(loud: Stage) -> None:
    loud.endpoint.script = [WRONG]

    planned = run_once(loud, error_action=loud.action(url="https://example.org/alarm"))

    failed, alarm = loud.bus.only(EventType.RUN_FAILED), loud.bus.only(EventType.RUN_SUCCEEDED)
    assert alarm["kind"] == "error_action"
    assert alarm["parentRunId"] == failed["runId"] == loud.runs(planned, Kind.SCHEDULED)[0].id


def test_answers_urls_and_payloads_are_never_published(loud: Stage) -> None:
    loud.endpoint.answer = replace(WRONG, answer="the answer's text", message="the message")
    action = loud.action(url="https://example.org/hidden", payload={"hidden": 1})

    run_once(loud, action=action)

    said = str([told.detail for told in loud.bus.told])
    assert loud.bus.of(EventType.RUN_FAILED)
    for secret in ("answer's", "the message", "hidden", "example.org"):
        assert secret not in said


@pytest.mark.parametrize("choice", Events)
def test_a_collection_chooses_the_published_events(stage: Stage, choice: Events) -> None:
    stage.tell(choice)
    stage.endpoint.script = [WRONG]

    stage.create({"cron": "*/5 * * * *", "count": 2})
    stage.run(700)

    failures = ["run.failed"]
    everything = ["job.created", "run.failed", "run.succeeded", "schedule.completed"]
    assert stage.bus.kinds() == {Events.NONE: [], Events.FAILURES: failures, Events.ALL: everything}[choice]


def test_the_collection_of_the_job_decides_about_its_events(stage: Stage) -> None:
    tenancy.create_collection(stage.world, Collection(TENANT, "quiet"))
    stage.tell(Events.NONE, "quiet")
    stage.endpoint.answer = WRONG

    stage.create(once(5 * MINUTE), collection="quiet")
    heard = run_once(stage)

    assert stage.bus.only(EventType.RUN_FAILED)["jobId"] == heard.job.id


def test_a_success_after_a_long_action_does_not_read_the_choice_again(stage: Stage) -> None:
    """The gate read the collection two seconds ago and more: what it saw then holds for this run."""
    stage.endpoint.takes_s = 14.0
    due_now(stage)
    stage.taps.passed.clear()

    stage.deliver_all()

    after = stage.taps.names()[stage.taps.names().index("endpoint.http") + 1 :]
    assert after[0] == "dynamodb.UpdateItem"
    assert "dynamodb.BatchGetItem" not in after  # which reads the collection; a GetItem counts for the series' end


def test_a_reported_result_is_published_with_its_effects(loud: Stage) -> None:
    loud.endpoint.answer = ACCEPTED
    planned = run_once(loud)
    run = loud.only_run(planned)
    assert loud.bus.of(EventType.RUN_SUCCEEDED) == []

    results.record(loud.world, TENANT, run.schedule_id or "", run.uuid, success=True, message=None)
    loud.deliver_all()

    assert loud.bus.only(EventType.RUN_SUCCEEDED)["runId"] == run.id


@pytest.mark.parametrize(("choice", "kinds"), [(Events.FAILURES, []), (Events.ALL, ["run.cancelled"])])
def test_a_cancel_is_not_published_with_the_failures(stage: Stage, choice: Events, kinds: list[str]) -> None:
    planned = stage.create(ALL_BUT_RUNS)
    stage.tell(choice)
    stage.endpoint.answer = ACCEPTED
    run_id = manual.run_now(stage.world, TENANT, planned.job.id, None, None).run_id
    stage.deliver_all()

    results.cancel(stage.world, TENANT, planned.job.id, run_id.partition("_")[2])
    stage.deliver_all()

    assert stage.bus.kinds() == kinds


@pytest.mark.parametrize(("choice", "kinds"), [(Events.FAILURES, []), (Events.ALL, ["run.skipped"])])
def test_a_skipped_occurrence_of_a_disabled_collection_is_published_with_all_events(
    stage: Stage, choice: Events, kinds: list[str]
) -> None:
    due_now(stage)
    tenancy.change_collection(
        stage.world, TENANT, "default", lambda there: tenancy.enabled(replace(there, events=choice), on=False), None
    )
    stage.bus.told.clear()

    stage.deliver_all()

    assert [kind for kind in stage.bus.kinds() if kind.startswith("run.")] == kinds


def test_a_run_that_ends_after_the_delete_of_its_job_is_published(loud: Stage) -> None:
    loud.endpoint.answer = ACCEPTED
    planned = run_once(loud)
    run = loud.only_run(planned)
    loud.delete(planned)
    loud.bus.told.clear()

    loud.run(120)

    told = loud.bus.only(EventType.RUN_CANCELLED)
    assert (told["runId"], told["reason"]) == (run.id, "OWNER_GONE")
    assert (told["jobId"], told["jobName"], told["tags"]) == (planned.job.id, None, [])


def test_the_run_of_a_message_for_a_deleted_job_is_published(loud: Stage) -> None:
    """The executor ends it before the clean-up does: the collection is known from the clean-up row."""
    loud.endpoint.answer = BUSY
    planned = due_now(loud, action=loud.action(retry=fixed(10)))
    loud.deliver_all()
    loud.delete(planned)
    loud.bus.told.clear()

    loud.pass_time(11)
    loud.deliver_all()

    assert loud.bus.only(EventType.RUN_CANCELLED)["reason"] == "OWNER_GONE"


def test_a_message_that_arrives_too_late_is_a_missed_run(stage: Stage) -> None:
    stage.create({"cron": "* * * * *"}, policies={"misfire": {"type": "latest"}})
    stage.tick()
    stage.pass_time(600)

    stage.deliver_all()

    told = stage.bus.of(EventType.RUN_MISSED)
    assert told
    assert {each["reason"] for each in told} == {"SERVICE_OUTAGE"}
    assert [each["startedAt"] for each in told] == [None] * len(told)


def test_an_undelivered_run_is_published(stage: Stage) -> None:
    due_now(stage)
    url = URLS[Lane.FAST]
    (message,) = stage.sqs._queues[url].messages
    given_up = replace(decode(message.body), returns=dead_letters.MOST_RETURNS, sent_at=message.sent_at)
    stage.sqs.purge(url)
    stage.sqs.send_message(QueueUrl=DEAD, MessageBody=encode(given_up))

    stage.deliver_all()

    assert stage.bus.only(EventType.RUN_FAILED)["reason"] == "UNDELIVERED"


# Lines for many


def test_an_outage_is_published_once_with_its_range(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"}, policies={"misfire": {"type": "latest"}})
    stage.run(60)
    stage.pass_time(3_600)

    stage.run(120)

    told = stage.bus.only(EventType.OCCURRENCES_MISSED)
    (line,) = [run for run in stage.runs(planned) if run.range_count is not None]
    assert told["runId"] == line.id
    assert told["plannedAt"] == text_ms(line.planned_at)
    assert told["range"] == {"until": text_ms(line.range_until or START), "count": line.range_count}
    assert stage.bus.of(EventType.RUN_FAILED) == []


def test_occurrences_too_late_after_an_outage_are_published_once_with_their_range(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"}, policies={"misfire": {"type": "latest", "maxLatenessSeconds": 600}})
    stage.run(60)
    stage.pass_time(3_600)

    stage.run(120)

    told = stage.bus.only(EventType.OCCURRENCES_EXPIRED)
    (line,) = [run for run in stage.runs(planned) if run.state is State.EXPIRED and run.range_count is not None]
    assert (told["runId"], told["state"], told["reason"]) == (line.id, "EXPIRED", "MAX_LATENESS")
    assert told["range"] == {"until": text_ms(line.range_until or START), "count": line.range_count}


def test_an_effect_of_a_line_that_was_never_written_starts_nothing(stage: Stage) -> None:
    """The sweeper dies between its messages and its transaction: the next tick finds the same, and writes the line."""
    stage.create({"cron": "* * * * *"}, policies={"misfire": {"type": "latest"}})
    stage.run(60)
    stage.pass_time(3_600)
    called = len(stage.endpoint.received)
    with stage.taps.once("dynamodb.TransactWriteItems", crash_before), pytest.raises(Crash):
        stage.tick()

    stage.pass_time(31)
    stage.deliver_all()
    assert stage.bus.of(EventType.OCCURRENCES_MISSED) == []
    assert len(stage.endpoint.received) == called + 1  # the one that the policy runs
    stage.run(120)

    assert len(stage.bus.of(EventType.OCCURRENCES_MISSED)) == 1


@pytest.mark.parametrize(("choice", "kinds"), [(Events.FAILURES, []), (Events.ALL, ["occurrences.skipped"])])
def test_occurrences_left_out_by_a_pause_are_published_when_the_job_continues(
    stage: Stage, choice: Events, kinds: list[str]
) -> None:
    planned = stage.create({"cron": "* * * * *"})
    stage.set_state(planned, pause=Pause(START))
    stage.run(600)
    stage.tell(choice)

    stage.set_state(planned, pause=None)
    stage.bus.told.clear()
    stage.run(45)

    assert [kind for kind in stage.bus.kinds() if kind.startswith("occ")] == kinds
    if kinds:
        assert stage.bus.only(EventType.OCCURRENCES_SKIPPED)["reason"] == "PAUSED"


# The schedule


def test_the_end_of_a_series_is_published(loud: Stage) -> None:
    planned = loud.create({"cron": "*/5 * * * *", "count": 2})
    loud.run(700)

    told = loud.bus.only(EventType.SCHEDULE_COMPLETED)
    assert told["id"] == f"schedule.completed:{planned.schedules[0].id}:1"
    assert (told["state"], told["reason"], told["plannedTotal"]) == ("COMPLETED", "COUNT_REACHED", 2)


def test_a_series_completed_by_its_wake_row_is_published(loud: Stage) -> None:
    """The executor died after the end of the last run, and its message was purged: no run is left to tell of it."""
    loud.create({"at": text_ms(NOON + MINUTE)})
    loud.tick()
    loud.pass_time(60)
    with loud.taps.once("dynamodb.GetItem", crash_before), pytest.raises(Crash):
        loud.deliver(most=1)
    for url in loud.world.settings.queue_urls.values():
        loud.sqs.purge(url)
    assert loud.bus.of(EventType.SCHEDULE_COMPLETED) == []

    loud.run(16 * 60)

    assert loud.bus.only(EventType.SCHEDULE_COMPLETED)["reason"] == "ONE_TIME_DONE"


def test_a_manual_run_of_a_completed_schedule_publishes_no_end_of_a_series(loud: Stage) -> None:
    planned = run_once(loud)
    loud.bus.told.clear()

    manual.run_now(loud.world, TENANT, planned.job.id, planned.schedules[0].id, None)
    loud.deliver_all()

    assert loud.bus.kinds() == ["run.succeeded"]


@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_a_death_before_publishing_the_end_of_a_series_is_repaired_by_the_returning_message(
    loud: Stage, fault: Fault
) -> None:
    """Found COMPLETED, the event goes out again, under the same id and with the same content."""
    due_now(loud)
    loud.bus.told.clear()
    with loud.taps.once(PUT, fault, skip=1), pytest.raises(Crash):  # the first is the run's
        loud.deliver()

    loud.run(300)

    assert loud.bus.of(EventType.SCHEDULE_COMPLETED)
    assert_repeats_are_equal(loud)


def test_a_completion_whose_answer_was_lost_is_published(loud: Stage) -> None:
    """The SDK repeats the write, and the condition refuses its own success."""
    due_now(loud)
    with loud.taps.once("dynamodb.UpdateItem", answer_lost, skip=1):  # the first is the run's
        loud.deliver_all()

    loud.run(60)

    assert len(loud.bus.of(EventType.SCHEDULE_COMPLETED)) == 1


def spoil(stage: Stage, planned: Planned) -> None:
    stage.edit_item(keys.job(TENANT, planned.job.id), keys.schedule(planned.schedules[0].id), sweep={"S": "no sense"})


def test_an_unreadable_schedule_and_its_run_are_published(stage: Stage) -> None:
    planned = stage.create({"cron": "*/10 * * * *"})
    spoil(stage, planned)

    stage.run(700)

    told = stage.bus.only(EventType.SCHEDULE_BROKEN)
    assert (told["scheduleId"], told["reason"]) == (planned.schedules[0].id, "UNREADABLE")
    assert stage.bus.only(EventType.RUN_FAILED)["reason"] == "BAD_PAYLOAD"


def test_an_unreadable_schedule_starts_the_error_action(stage: Stage) -> None:
    planned = stage.create({"cron": "*/10 * * * *"}, error_action=stage.action(url="https://example.org/alarm"))
    spoil(stage, planned)

    stage.run(700)

    assert [received.params["url"] for received in stage.endpoint.received] == ["https://example.org/alarm"]


@pytest.mark.parametrize("call", ["dynamodb.TransactWriteItems", "sqs.SendMessageBatch", "dynamodb.UpdateItem"])
@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_a_sweeper_that_dies_while_marking_a_broken_schedule_is_repaired(stage: Stage, call: str, fault: Fault) -> None:
    planned = stage.create({"cron": "*/10 * * * *"})
    spoil(stage, planned)
    stage.pass_time(500)
    with stage.taps.once(call, fault), pytest.raises(Crash):
        stage.tick()
    stage.pass_time(40)

    stage.run(300)

    assert stage.bus.of(EventType.SCHEDULE_BROKEN)
    assert stage.bus.of(EventType.RUN_FAILED)
    assert_repeats_are_equal(stage)
    assert stage.stored(planned).state is ScheduleState.BROKEN


# Events about users' actions


def test_changes_of_a_job_are_published_with_its_revision(loud: Stage) -> None:
    planned = loud.create(ALL_BUT_RUNS)
    loud.set_state(planned, pause=Pause(START, note="lunch"))
    loud.set_state(planned, pause=None)
    loud.set_state(planned, active=False)
    loud.set_state(planned, active=True)
    loud.change(planned, name="other")
    loud.delete(planned)

    told = [(each.kind.value, each.detail["revision"]) for each in loud.bus.told]
    assert told == [
        ("job.created", 1),
        ("job.paused", 2),
        ("job.resumed", 3),
        ("job.deactivated", 4),
        ("job.activated", 5),
        ("job.changed", 6),
        ("job.deleted", 6),
    ]
    assert [each.detail["active"] for each in loud.bus.told] == [True, True, True, False, True, True, True]
    assert [each.detail["paused"] for each in loud.bus.told] == [False, True] + [False] * 5
    assert loud.bus.only(EventType.JOB_CHANGED)["jobName"] == "other"


def test_a_change_that_also_deactivates_is_published_as_both(loud: Stage) -> None:
    planned = loud.create(ALL_BUT_RUNS)
    loud.bus.told.clear()

    loud.change(planned, name="other", active=False)

    assert loud.bus.kinds() == ["job.deactivated", "job.changed"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda stage, planned: stage.change(planned, timings=[{"cron": "0 1 * * *"}]),
        lambda stage, planned: stage.change_schedules(
            planned, lambda there: [ScheduleRequest(None, stage.schedule({"cron": "0 2 * * *"}))]
        ),
        lambda stage, planned: stage.change_schedules(
            planned, lambda there: [ScheduleRequest(there.schedules[0], None, delete=True)]
        ),
    ],
    ids=["another timing", "one more schedule", "one schedule less"],
)
def test_a_change_of_a_schedule_is_a_change_of_its_job(loud: Stage, edit: Callable[[Stage, Planned], object]) -> None:
    planned = loud.create(ALL_BUT_RUNS)
    loud.bus.told.clear()

    edit(loud, planned)

    assert loud.bus.kinds() == ["job.changed"]


def test_a_change_that_changes_nothing_is_not_published(loud: Stage) -> None:
    planned = loud.create(ALL_BUT_RUNS)
    loud.bus.told.clear()

    loud.change(planned)
    loud.set_state(planned, active=True)

    assert loud.bus.told == []


def test_changes_of_a_job_publish_nothing_by_default(stage: Stage) -> None:
    planned = stage.create(ALL_BUT_RUNS)
    stage.set_state(planned, active=False)
    stage.delete(planned)

    assert stage.taps.count(PUT) == 0


def test_a_create_repeated_under_its_key_publishes_the_missing_event(loud: Stage) -> None:
    key = Once("key", "body")
    with loud.taps.once(PUT, crash_before), pytest.raises(Crash):
        loud.create(ALL_BUT_RUNS, once=key)

    planned = loud.create(ALL_BUT_RUNS, once=key)
    loud.create(ALL_BUT_RUNS, once=key)

    assert [told["jobId"] for told in loud.bus.of(EventType.JOB_CREATED)] == [planned.job.id] * 2
    assert_repeats_are_equal(loud)


def test_an_unavailable_bus_fails_no_request(loud: Stage) -> None:
    with loud.taps.faulty(lambda passing, act: refused(passing, act) if passing.name == PUT else act()):
        planned = loud.create(ALL_BUT_RUNS)

    assert loud.job(planned).revision == 1
    assert "an event was not published" in loud.journal.at("error")
    assert loud.journal.counts["EventsUnsent"] == 1


def test_a_collection_that_is_enabled_or_disabled_is_published_once(loud: Stage) -> None:
    for on in (False, False, True):
        tenancy.change_collection(
            loud.world, TENANT, "default", lambda there, on=on: tenancy.enabled(there, on=on), None
        )

    assert loud.bus.kinds() == ["collection.disabled", "collection.enabled"]
    first, second = (told.detail for told in loud.bus.told)
    assert (first["state"], second["state"]) == ("DISABLED", "ENABLED")
    assert second["revision"] == first["revision"] + 1


# Repairs of the audit


def test_the_audit_publishes_a_stopped_series_that_it_repairs(stage: Stage) -> None:
    planned = stage.create({"every": "PT1H"})
    stage.edit_schedule(planned, next_run_at=None)

    stage.audit()

    told = stage.bus.only(EventType.AUDIT_FINDING)
    assert (told["finding"], told["scheduleId"]) == (Finding.SERIES_STOPPED, planned.schedules[0].id)


def test_the_audit_publishes_lost_messages_that_it_sends_again(stage: Stage) -> None:
    planned = stage.create({"every": "PT1M"})
    stage.tick()
    stage.sqs.purge("https://queue/fast")
    stage.pass_time(1_200)

    stage.audit()
    stage.audit()

    told = stage.bus.of(EventType.AUDIT_FINDING)
    assert {(each["finding"], each["jobId"]) for each in told} == {(Finding.RUNS_LOST, planned.job.id)}
    assert told[0]["count"] > 0
    assert len({each["id"] for each in told}) == 1


# Crashes, repeats, a deaf bus


def assert_repeats_are_equal(stage: Stage) -> None:
    """Checks that the same id has the same content, however often it was sent."""
    for told in stage.bus.told:
        assert [each.detail for each in stage.bus.told if each.id == told.id].count(told.detail) == sum(
            each.id == told.id for each in stage.bus.told
        )


@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_the_returning_message_publishes_an_end_that_a_dying_executor_did_not(stage: Stage, fault: Fault) -> None:
    stage.endpoint.answer = WRONG
    planned = due_now(stage)
    with stage.taps.once(PUT, fault), pytest.raises(Crash):
        stage.deliver()
    assert stage.only_run(planned).finished

    stage.run(300)

    told = stage.bus.of(EventType.RUN_FAILED)
    assert len(told) == (1 if fault is crash_before else 2)
    assert_repeats_are_equal(stage)
    assert len(stage.endpoint.received) == 1


def test_a_duplicate_message_publishes_again_under_the_same_id(stage: Stage) -> None:
    stage.endpoint.answer = WRONG
    due_now(stage)
    stage.sqs.duplicate("https://queue/fast")

    stage.run(60)

    assert len(stage.bus.of(EventType.RUN_FAILED)) == 2
    assert_repeats_are_equal(stage)


@pytest.mark.parametrize("fault", [refused, refused_by_bus])
def test_a_bus_unavailable_for_three_repeats_leaves_a_note_and_no_open_run(stage: Stage, fault: Fault) -> None:
    stage.endpoint.answer = WRONG
    with stage.taps.faulty(lambda passing, act: fault(passing, act) if passing.name == PUT else act()):
        planned = run_once(stage)

    run = stage.only_run(planned)
    assert stage.taps.count(PUT) == 4
    assert (run.state, run.reason) == (State.REQUEST_ERROR, Reason.HTTP_STATUS)
    assert run.notes == ("the event run.failed could not be published",)
    assert stage.bus.told == []
    assert stage.journal.counts["EventsUnsent"] == 1


def test_a_bus_available_at_the_third_repeat_leaves_no_note(stage: Stage) -> None:
    stage.endpoint.answer = WRONG
    deaf = iter([refused, first_entry_fails])
    with stage.taps.faulty(
        lambda passing, act: next(deaf, lambda _, act: act())(passing, act) if passing.name == PUT else act()
    ):
        planned = run_once(stage)

    assert stage.bus.only(EventType.RUN_FAILED)
    assert stage.only_run(planned).notes == ()


@pytest.mark.repeats
def test_every_event_is_published_after_a_crash_at_any_call(loud: Stage) -> None:
    """A failing and a succeeding occurrence and the end of their series: told in the end, each repeat the same."""
    for number in itertools.count():
        met = _history(loud, number, crash_before if number % 2 else crash_after)
        assert {"run.failed", "run.succeeded", "schedule.completed"} <= set(loud.bus.kinds()), number
        assert_repeats_are_equal(loud)
        if not met:
            break
    assert number > 20


def test_every_event_is_published_after_a_crash_before_or_after_any_put(loud: Stage) -> None:
    for number in range(3):
        for fault in (crash_before, crash_after):
            assert _history(loud, number, fault, among=PUT)
            assert {"run.failed", "run.succeeded", "schedule.completed"} <= set(loud.bus.kinds()), (number, fault)
            assert_repeats_are_equal(loud)


def _history(loud: Stage, number: int, fault: Fault, among: str | None = None) -> bool:
    """Lets the call of this number (among those of one name) meet the fault. False where there was no such call."""
    loud.bus.told.clear()
    planned = loud.create({"every": "PT10S", "count": 2})
    failing = planned.schedules[0].next_run_at
    loud.endpoint.answer = lambda call: WRONG if call.planned_at == failing else OK
    loud.tick()
    calls = itertools.count()
    met = False

    def at_its_number(passing: Passing, act: Act) -> object:
        nonlocal met
        if among not in {None, passing.name} or next(calls) != number:
            return act()
        met = True
        return fault(passing, act)

    with loud.taps.faulty(at_its_number):
        for _ in range(12):
            with suppress(Crash):
                loud.deliver_all(most=1)
            loud.clock.advance(2)
    loud.run(200, most=1)
    return met


def test_the_largest_event_is_far_below_the_limit_of_the_bus(loud: Stage) -> None:
    """The bus of the stage takes 10 KB; EventBridge 256."""
    widest = "\U0001f552"
    tenancy.create_collection(loud.world, replace(Collection(TENANT, widest * 128), events=Events.ALL))

    loud.create(
        once(DAY),
        name=widest * 128,
        collection=widest * 128,
        resource_id=widest * 256,
        tags=tuple(f"{n}{widest * 127}" for n in range(10)),
    )

    assert loud.bus.only(EventType.JOB_CREATED)["jobName"] == widest * 128
