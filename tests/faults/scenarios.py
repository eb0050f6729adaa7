"""The histories whose every call meets every fault: small ones, which together make every call that the code can make.

To add one: a class with its history (the requests, the passing of time, the expected result). Being here is enough;
`python -m tests.faults write` counts its plans.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from sweephand.base import ids
from sweephand.base.errors import Conflict, NotFound, Unavailable
from sweephand.domain.calendar import Calendar
from sweephand.domain.collection import Collection, Events, Retention, Usage
from sweephand.domain.consumer import Phase
from sweephand.domain.event import EventType
from sweephand.domain.failure import Group
from sweephand.domain.flow_keys.flow_keys import CircuitRule, FlowKey, Rate
from sweephand.domain.instants import EPOCH, epoch_ms, text, up_to_second
from sweephand.domain.job import ActionDraft, Job, JobDraft, Pause, Payload, integer_id
from sweephand.domain.job_set import Member, Wanted
from sweephand.domain.operation import OperationKind, OperationState
from sweephand.domain.run import FAILED, Kind, Outcome, State
from sweephand.domain.schedule import Lane, Schedule, ScheduleState, StateReason
from sweephand.schedules.calendars import calendar_content
from sweephand.server.actions import draft
from sweephand.server.actions.call import Call
from sweephand.server.flow.audit import repeat_effects
from sweephand.server.flow.bulk.export_runs import begin as begin_export
from sweephand.server.flow.calendars import calendars
from sweephand.server.flow.consumers import deletion as consumer_deletion
from sweephand.server.flow.consumers import leases
from sweephand.server.flow.errors import failures
from sweephand.server.flow.flow_keys import flow_key_changes
from sweephand.server.flow.job_parts.change_log import By, Operation
from sweephand.server.flow.job_sets import apply as job_sets
from sweephand.server.flow.jobs import change, deletion, drafts, lookup
from sweephand.server.flow.jobs.change import ScheduleRequest
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual, rerun
from sweephand.server.flow.operations import verbs as operations
from sweephand.server.flow.runs import edits, results
from sweephand.server.flow.runs.replay import DROPPED_TYPE
from sweephand.server.flow.tenants import access, applications, signing, subscriptions, tenancy
from sweephand.server.flow.tenants.integer_ids import Ordinals
from sweephand.server.security.caller import FIRST_ID, PROVIDER_ALL, Caller
from sweephand.server.security.guard import Outbound
from sweephand.server.store.consumers import consumers as consumer_rows
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import JobItem
from sweephand.server.store.flow_keys import circuits
from sweephand.server.store.flow_keys import flow_keys as flow_key_rows
from sweephand.server.store.jobs.jobs import job_of
from sweephand.server.store.operations.operations import OperationItem, operation_of
from sweephand.server.store.views import resources as views
from tests.faults import azure_scenarios as azure_scenarios  # noqa: PLC0414 - its histories are listed below
from tests.faults import message_scenarios as message_scenarios  # noqa: PLC0414 - likewise
from tests.faults.play import NOON, TENANT, TICK, Play, Scenario, minutes, surviving
from tests.support.ecs import ACTION as TASK
from tests.support.ecs import GUARD, Cluster
from tests.support.endpoint import ACCEPTED, BUSY, DOWN, OK, WRONG
from tests.support.taps import Crash

MINUTELY = {"cron": "* * * * *"}
EITHER_WAY = frozenset(State)


def counted(count: int) -> dict[str, object]:
    return {**MINUTELY, "count": count}


def until(minute: int) -> dict[str, object]:
    return {**MINUTELY, "endTime": text(NOON + minute * TICK)}


def fixed(delay_s: int, retries: int = 3) -> dict[str, Any]:
    return {"type": "fixed", "delaySeconds": delay_s, "maxRetries": retries}


def failing(*minute: float, answer: Outcome = BUSY, attempts: int = 1) -> Any:
    """Returns how the target answers: thus to the first attempts at these occurrences, else with success."""
    return lambda call: answer if call.planned_at in minutes(*minute) and call.attempt <= attempts else OK


def run_at(schedule: Schedule, minute: float) -> str:
    """Returns the id of an occurrence's run, which can be computed."""
    instant = epoch_ms(NOON + minute * TICK)
    return ids.run_uuid(TENANT, schedule.id, instant, Kind.SCHEDULED.value)


# Runs and their retries


class Retry(Scenario):
    """Two occurrences; the first fails once and succeeds at its retry."""

    name = "retry"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = failing(1)
        job = at.create(counted(2), action=at.scene.action(retry=fixed(20)))
        at.expect(job, minutes(1, 2))
        at.go_to(4)


class FarRetry(Scenario):
    """The retry is 16 minutes away: it waits as a row and is sent by the sweep."""

    name = "far-retry"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = failing(1)
        job = at.create(counted(1), action=at.scene.action(retry=fixed(960)))
        at.expect(job, minutes(1))
        at.go_to(19)


class ErrorAction(Scenario):
    """A run fails for good and starts its error action; both bring payloads and secrets."""

    name = "error-action"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = lambda call: WRONG if call.payload == '{"n":1}' else OK
        action = at.scene.action(payload={"n": 1}, authentication={"type": "bearer", "token": "t"})
        error_action = at.scene.action(payload={"n": 2}, authentication={"type": "bearer", "token": "u"})
        job = at.create(counted(1), action=action, error_action=error_action, tags=("a",), resource_id="r")
        at.expect(job, dict.fromkeys(minutes(1), State.REQUEST_ERROR))
        at.go_to(3)

    def check(self, at: Play) -> None:
        (failed,) = at.runs(Kind.SCHEDULED)
        (reaction,) = at.runs(Kind.ERROR_ACTION)
        assert reaction.parent_uuid == failed.uuid
        called = {call.run_id: call.secrets for call in (each.call for each in at.scene.endpoint.received)}
        assert called.get(reaction.id, {"authentication.token": "u"}) == {"authentication.token": "u"}


class Hooks(Scenario):
    """A run that fails and one that succeeds each start their hook, which receives the end. One hook is the job's, the
    other its schedule's.
    """

    name = "hooks"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = lambda call: (
            WRONG if call.payload == '{"n":1}' and call.planned_at in minutes(1) else OK
        )
        token = {"type": "bearer", "token": "t"}
        hooks = {name: at.scene.action(authentication=token) for name in ("onSuccess", "onFailure")}
        own = {"onFailure": hooks["onFailure"]}
        job = at.create(counted(2), action=at.scene.action(payload={"n": 1}), hooks=hooks, own_hooks=own)
        first, second = minutes(1, 2)
        at.expect(job, {first: State.REQUEST_ERROR, second: State.SUCCESS})
        at.go_to(4)

    def check(self, at: Play) -> None:
        for kind, ends in ((Kind.ON_SUCCESS, {State.SUCCESS}), (Kind.ON_FAILURE, FAILED)):
            ended = {run.uuid for run in at.runs(Kind.SCHEDULED) if run.state in ends}
            assert {run.parent_uuid for run in at.runs(kind)} == ended


class LostExecutors(Scenario):
    """The target takes its executor along: once, so that another takes over; at the second occurrence always."""

    name = "lost-executors"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = self._deadly
        job = at.create(counted(2))
        first, second = minutes(1, 2)
        at.expect(job, {first: State.SUCCESS, second: State.UNKNOWN})
        at.go_to(8)

    def _deadly(self, call: Call) -> Outcome:
        if call.planned_at in minutes(2):
            raise Crash
        return OK


def two_dead_letters(at: Play) -> None:
    """Makes dead letters of one message that nobody took in time, and of one whose executor died with it."""

    def deadly(_call: Call) -> Outcome:
        raise Crash

    at.go_to(0.9)
    at.outage(8)
    at.bury()
    at.go_to(1.9)
    at.scene.endpoint.script = [deadly]
    at.go_to(2.1)
    at.bury_held()
    at.go_to(6)


class DeadLetters(Scenario):
    """One message never reached an executor that could settle it, another lost its executor in the call.

    Neither comes back from the dead letters, as if both had done so too often.
    """

    name = "dead-letters"
    constants = {"flow.delivery.dead_letters.MOST_RETURNS": 0}  # noqa: RUF012 - as declared

    def history(self, at: Play) -> None:
        first, second, third = minutes(1, 2, 3)
        job = at.create(counted(3))
        undelivered = frozenset({State.ERROR, State.SUCCESS})  # by the audit, where the messages were purged before
        at.expect(job, {first: undelivered, second: undelivered, third: State.SUCCESS})
        two_dead_letters(at)


class ReturnedLetters(Scenario):
    """The same, and each message goes back to its queue: both runs begin in the end."""

    name = "returned-letters"

    def history(self, at: Play) -> None:
        job = at.create(counted(2))
        at.expect(job, minutes(1, 2))
        two_dead_letters(at)


class NotBegun(Scenario):
    """A service that an attempt needs is away before the first attempt, and before the second: neither is used up."""

    name = "not-begun"

    def history(self, at: Play) -> None:
        perform, away = at.scene.world.perform, {1, 2}

        def unless_away(kind: str, params: Any, call: Call, outbound: Outbound) -> Outcome:
            if call.attempt in away:
                away.remove(call.attempt)
                raise Unavailable("the key service does not answer")
            return perform(kind, params, call, outbound)

        at.scene.world = replace(at.scene.world, perform=unless_away)
        at.scene.endpoint.script = [BUSY]
        job = at.create(counted(1), action=at.scene.action(retry=fixed(20)))
        at.expect(job, minutes(1))
        at.go_to(8)


class OutOfReach(Scenario):
    """The target cannot be reached for ten days, here two minutes: its schedule is switched off, and that is told."""

    name = "out-of-reach"
    constants = {"flow.lifecycle.unreachable.LIMIT": 2 * TICK}  # noqa: RUF012 - as declared

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = lambda call: OK if call.planned_at in minutes(1, 3) else DOWN
        job = at.create(until(12))
        down = frozenset({State.REQUEST_ERROR, State.SKIPPED})  # skipped: what was purged, and sent again by the audit
        ends = {**dict.fromkeys(minutes(1, 3), EITHER_WAY), **dict.fromkeys(minutes(2, 4, 5, 6), down)}
        at.expect(job, ends, optional=minutes(7, 8, 9, 10, 11, 12), state=None)
        at.go_to(14)

    def check(self, at: Play) -> None:
        """Allows that a fault leaves one failure, or one contact, without its note: the next one makes it."""
        ((schedule, _),) = at.expected.values()
        there = at.scene.stored(schedule)
        off = (there.state, there.state_reason) == (ScheduleState.INACTIVE, StateReason.UNREACHABLE)
        assert off or at.purged, there
        told = at.scene.bus.of(EventType.SCHEDULE_DEACTIVATED)
        assert len({each["id"] for each in told}) == off or "failed-events" in at.faults, told


# Results and cancels


class Callback(Scenario):
    """The target takes the work with 202 and reports later."""

    name = "callback"
    callbacks = True

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = ACCEPTED
        action = at.scene.action(outcome={"on202": "wait", "callbackTimeoutSeconds": 1_800})
        job = at.create(counted(1), action=action)
        at.expect(job, minutes(1))
        at.go_to(1.5)
        at.go_until(lambda: at.scene.endpoint.received)
        schedule = job.schedules[0]
        at.ask(
            lambda: results.record(
                at.scene.world, TENANT, schedule.id, run_at(schedule, 1), success=True, message="done"
            )
        )
        at.go_to(4)


class NoCallback(Scenario):
    """The target took the work and never reports: the run ends at its deadline."""

    name = "no-callback"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = ACCEPTED
        action = at.scene.action(outcome={"on202": "wait", "callbackTimeoutSeconds": 120})
        job = at.create(counted(1), action=action)
        at.expect(job, dict.fromkeys(minutes(1), State.UNKNOWN))
        at.go_to(5)


class NearDeadline(Scenario):
    """The same with so little time that a message keeps the deadline."""

    name = "near-deadline"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = ACCEPTED
        action = at.scene.action(outcome={"on202": "wait", "callbackTimeoutSeconds": 20})
        job = at.create(counted(1), action=action)
        at.expect(job, dict.fromkeys(minutes(1), State.UNKNOWN))
        at.go_to(7)


class PassedOn(Scenario):
    """The limit of the call is raised as a run waits for its retry: the next executor passes the message on."""

    name = "passed-on"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = failing(1)
        job = at.create(counted(1), action=at.scene.action(retry=fixed(40)))
        at.expect(job, minutes(1))
        at.go_to(1.3)
        action = at.scene.action(retry=fixed(40), outcome={"answerTimeoutSeconds": 60})
        at.ask(lambda: at.scene.change(job, action=action))
        at.go_to(4)


class Tasks(Scenario):
    """Runs that are tasks on ECS: one ends well; the next begins without an answer, and fails; the last never ends."""

    name = "tasks"
    ecs: Cluster

    def history(self, at: Play) -> None:
        self.ecs = Cluster.of(at.scene)
        self.ecs.silent_at = text(minutes(2)[0])
        action = {**TASK, "outcome": {"callbackTimeoutSeconds": 300}, "retry": fixed(20)}
        job = at.create(counted(3), action=draft(action, field="action", guard=GUARD))
        first, second, third = minutes(1, 2, 3)
        open_ends = {State.SUCCESS, State.ERROR, State.TIMEOUT}  # a purge takes what ECS told along
        at.expect(job, dict.fromkeys((first, second), frozenset(open_ends)) | {third: State.TIMEOUT})
        self._ends(at, first, 0)
        self._ends(at, second, 1)
        at.go_until(lambda: self.ecs.at(text(third)))
        at.go_to(12)

    def _ends(self, at: Play, planned: datetime, code: int) -> None:
        at.go_until(lambda: self.ecs.at(text(planned)))
        for tell in (lambda task: self.ecs.tells("RUNNING", task), lambda task: self.ecs.ends(code, task)):
            at.go(10)
            at.aside(lambda tell=tell: tell(self.ecs.at(text(planned))))

    def check(self, at: Play) -> None:
        first, second, third = at.runs(Kind.SCHEDULED)
        if not at.purged:
            assert (first.state, second.state) == (State.SUCCESS, State.ERROR)
        assert third.task in self.ecs.stopped
        assert not {first.task, second.task} & self.ecs.stopped.keys() or at.purged
        assert len(self.ecs.begun) == len(at.runs(Kind.SCHEDULED)), "one task a run, whatever befell it"


class Cancel(Scenario):
    """A user cancels a run that waits for its retry, and another while its call is under way."""

    name = "cancel"

    def history(self, at: Play) -> None:
        job = at.create(counted(2), action=at.scene.action(retry=fixed(300)))
        schedule = job.schedules[0]

        def cancel(minute: float) -> None:
            at.ask(lambda: results.cancel(at.scene.world, TENANT, schedule.id, run_at(schedule, minute)))

        def answer(call: Call) -> Outcome:
            if call.planned_at in minutes(1):
                return BUSY
            cancel(2)
            return OK

        at.scene.endpoint.answer = answer
        at.expect(job, dict.fromkeys(minutes(1, 2), State.CANCELLED))
        at.go_to(1.5)
        at.go_until(lambda: any(called in minutes(1) for called in at.scene.endpoint.planned))
        cancel(1)
        at.go_to(4)


class ByHand(Scenario):
    """A run of the job itself and one of its schedule, each asked for with a key of the caller's."""

    name = "by-hand"

    def history(self, at: Play) -> None:
        job = at.create(counted(1))
        at.expect(job, minutes(1))
        for schedule_id in (None, job.schedules[0].id):
            once = at.key()
            at.ask(lambda owner=schedule_id, once=once: manual.run_now(at.scene.world, TENANT, job.job.id, owner, once))
            at.go(5)
        at.go_to(3)

    def check(self, at: Play) -> None:
        assert [run.state for run in at.runs(Kind.MANUAL)] == [State.SUCCESS, State.SUCCESS]


class ByHandUnlessActive(Scenario):
    """A run that is asked for only if none is active: first while one waits for its retry, then when it has ended."""

    name = "by-hand-unless-active"

    def history(self, at: Play) -> None:
        job = at.create(counted(1), action=at.scene.action(retry=fixed(40)))
        at.scene.endpoint.answer = failing(1)
        at.expect(job, minutes(1))
        at.go_to(1.2)
        for _ in range(2):
            once = at.key()
            at.ask(lambda once=once: manual.run_now(at.scene.world, TENANT, job.job.id, None, once, unless_active=True))
            at.go(90)

    def check(self, at: Play) -> None:
        """Allows that a fault leaves the scheduled run ended, or not begun, when the first one is requested."""
        runs = at.runs(Kind.MANUAL)
        assert {run.state for run in runs} == {State.SUCCESS}
        assert len(runs) == 1 or at.faults


class OverBeforeItBegan(Scenario):
    """A job whose one schedule has nothing left is created completed, next to one that has one occurrence ahead."""

    name = "over-before-it-began"

    def history(self, at: Play) -> None:
        at.ask(lambda: at.scene.tell(Events.ALL))
        over = {**MINUTELY, "endTime": text(NOON - TICK)}
        at.create(over, policies={"onNothingLeft": "complete"})
        job = at.create(over, counted(1), policies={"onNothingLeft": "complete"})
        at.expect(job.schedules[1], minutes(1))
        at.go_to(18)

    def check(self, at: Play) -> None:
        there = [item for item in at.scene.items() if item["sk"]["S"].startswith("SCH#")]
        assert [item["state"]["S"] for item in there] == ["COMPLETED"] * 3


# Errors


class RunAgain(Scenario):
    """A run that failed is run again with another payload, by a key of the caller's."""

    name = "run-again"

    def history(self, at: Play) -> None:
        job = all_fail(at, 1)
        once, edit = at.key(), edits.Edit(Payload('{"n":2}', is_json=True), {"X-A": "b"})
        owner, run = job.schedules[0].id, run_at(job.schedules[0], 1)
        at.ask(lambda: rerun.rerun(at.scene.world, TENANT, owner, run, edit=edit, once=once, actor="acme.me"))
        at.go(90)

    def check(self, at: Play) -> None:
        (again,) = at.runs(Kind.MANUAL)
        (failed,) = at.runs(Kind.SCHEDULED)
        assert (again.state, again.rerun_of, failed.rerun_by) == (State.SUCCESS, failed.id, again.id)
        assert open_errors(at) == 0


class Redrive(Scenario):
    """Two runs that failed are run again as a group, each in a page of its own; paused and resumed between."""

    name = "redrive"

    def history(self, at: Play) -> None:
        all_fail(at, 2)
        world, once = at.scene.world, at.key()
        (group,) = groups_of(at)
        until = epoch_ms(world.clock.now())
        params = {"group": group.id, "until": until, "ratePerMinute": 6}
        operation = at.ask(
            lambda: operations.begin(world, TENANT, OperationKind.REDRIVE, params, actor=None, total=2, once=once)
        )
        at.go(5)
        for verb in (operations.pause, operations.resume):
            at.ask(lambda verb=verb: verb(world, operation))
        at.go(1_500)

    def check(self, at: Play) -> None:
        failed = at.runs(Kind.SCHEDULED)
        assert {run.rerun_of for run in at.runs(Kind.MANUAL)} == {run.id for run in failed}
        assert len(at.runs(Kind.MANUAL)) == 2
        (row,) = [item for item in at.scene.items() if item["sk"]["S"].startswith("OP#")]
        assert (row["state"]["S"], row["done"]["N"], row["failed"]["N"]) == ("DONE", "2", "0")
        assert open_errors(at) == 0


class OneAfterTheOther(Scenario):
    """Two runs that failed, of a schedule that skips: the first is run again, and cancelled, then the other."""

    name = "one-after-the-other"

    def history(self, at: Play) -> None:
        job = all_fail(at, 2, policies={"overlap": "skip"}, action=at.scene.action(outcome={"on202": "wait"}))
        world, once = at.scene.world, at.key()
        at.scene.endpoint.answer = lambda call: ACCEPTED if call.planned_at in minutes(1) else OK
        runs = [f"{job.schedules[0].id}_{run_at(job.schedules[0], minute)}" for minute in (1, 2)]
        params = {"runs": runs, "ratePerMinute": 60}
        at.ask(lambda: operations.begin(world, TENANT, OperationKind.REDRIVE, params, actor=None, total=2, once=once))
        at.go(30)
        at.ask(lambda: self._cancel(at))
        at.go(1_500)

    def _cancel(self, at: Play) -> None:
        first = next((run for run in at.runs(Kind.MANUAL) if run.occurrence_at in minutes(1)), None)
        if first is not None and not first.finished:
            results.cancel(at.scene.world, TENANT, str(first.schedule_id), first.uuid)

    def check(self, at: Play) -> None:
        first, second = sorted(at.runs(Kind.MANUAL), key=lambda run: run.occurrence_at or run.planned_at)
        assert second.state is State.SUCCESS
        (row,) = [item for item in at.scene.items() if item["sk"]["S"].startswith("OP#")]
        did_not_run = first.state is State.CANCELLED
        assert (row["state"]["S"], row["done"]["N"], row["failed"]["N"]) == ("DONE", "2", str(int(did_not_run)))
        assert open_errors(at) == 1
        assert did_not_run or at.faults


class ExportedRuns(Scenario):
    """Two files of what failed, of the job and of the whole tenant, each in pieces that are joined."""

    name = "exported-runs"
    constants = {  # noqa: RUF012 - as declared
        "flow.bulk.export_runs.PIECE": 500,
        "flow.bulk.export_runs.LEAST_PIECE": 1_500,
    }

    def history(self, at: Play) -> None:
        at.scene.bucket.least = 1_500
        job = all_fail(at, 4)
        world = at.scene.world
        for params in ({"jobId": job.job.id}, {}):
            wanted, once = {**params, "format": "jsonl"}, at.key()
            at.ask(lambda wanted=wanted, once=once: begin_export(world, TENANT, wanted, None, actor="me", once=once))  # type: ignore[misc]
        at.go(1_500)

    def check(self, at: Play) -> None:
        failed = [run.id for run in at.runs(Kind.SCHEDULED)]
        rows = [OperationItem.from_raw_data(item) for item in at.scene.items() if item["sk"]["S"].startswith("OP#")]
        assert len(rows) == 2
        for row in rows:
            operation = operation_of(row)
            assert (operation.state, operation.result is None) == (OperationState.DONE, False)
            content = at.scene.bucket.objects[f"{TENANT}/{operation.id}/{(operation.result or {})['file']}"].decode()
            found = [json.loads(line)["id"] for line in content.splitlines()]
            assert operation.done == len(found) == len(set(found))
            if "jobId" in operation.params:
                assert found == failed[::-1]
            else:  # the index, which may lag by a moment
                assert set(found) <= set(failed)


class CancelledExport(Scenario):
    """A file in pieces that is cancelled halfway: nothing of it stays."""

    name = "cancelled-export"
    constants = {**ExportedRuns.constants, "flow.bulk.carry_on.STRETCH_S": -1.0}  # noqa: RUF012 - as declared

    def history(self, at: Play) -> None:
        at.scene.bucket.least = 1_500
        job = at.create(counted(4))
        at.expect(job, minutes(1, 2, 3, 4))
        at.go_to(5)
        wanted, once, world = {"jobId": job.job.id, "format": "jsonl"}, at.key(), at.scene.world
        begun = at.ask(lambda: begin_export(world, TENANT, wanted, None, actor="me", once=once))
        surviving(lambda: at.scene.deliver(Lane.OPERATIONS, most=1))
        with suppress(Conflict):  # under a fault another message may have come to its end
            at.ask(lambda: operations.cancel(world, begun))
        at.go(1_500)

    def check(self, at: Play) -> None:
        (row,) = (OperationItem.from_raw_data(item) for item in at.scene.items() if item["sk"]["S"].startswith("OP#"))
        assert operation_of(row).state in {OperationState.CANCELLED, OperationState.DONE}
        assert row.state == OperationState.DONE or at.scene.bucket.objects == {}


def all_fail(at: Play, count: int, **members: Any) -> Planned:
    """Makes a job of so many occurrences, all of which have failed; from now on its target succeeds."""
    at.scene.endpoint.answer = lambda _: WRONG
    members.setdefault("action", at.scene.action(payload={"n": 1}))
    job = at.create(counted(count), **members)
    at.expect(job, dict.fromkeys(minutes(*range(1, count + 1)), State.REQUEST_ERROR))
    at.go_to(count + 0.5)
    for _ in range(30):
        noted = [item for item in at.scene.items() if "#ERROR#" in item["pk"]["S"] and "at" in item]
        if len(noted) == count:
            break
        at.go(60)
    at.scene.endpoint.answer = lambda _: OK
    return job


def groups_of(at: Play) -> list[Group]:
    with at.scene.untapped():
        return list(views.groups(at.scene.world.table, TENANT))


def open_errors(at: Play) -> int:
    with at.scene.untapped():
        return sum(failures.open_runs(at.scene.world, group).count for group in groups_of(at))


# Changes


class Edit(Scenario):
    """Another timing and payload within the window, a schedule added, the first one deleted."""

    name = "edit"

    def history(self, at: Play) -> None:
        job = at.create(until(9), name="job", action=at.scene.action(payload={"n": 1}))
        first = job.schedules[0]
        at.expect(first, minutes(1), optional=minutes(2, 4), state=None)
        at.go_to(1.3)
        timing = {"cron": "*/2 * * * *", "endTime": text(NOON + 9 * TICK)}
        at.ask(lambda: at.scene.change(job, timings=[timing], action=at.scene.action(payload={"n": 2}), tags=("b",)))
        at.go_to(2.6)
        second = self._added(at, job)
        at.expect(second, minutes(3, 4))
        at.go_to(3.6)
        at.ask(lambda: at.scene.change_schedules(job, lambda there: _gone(there, first)))
        at.go_to(7)

    def _added(self, at: Play, job: Planned) -> Schedule:
        def request(there: Planned) -> list[ScheduleRequest]:
            if any(schedule.name == "second" for schedule in there.schedules):
                return []
            draft = at.scene.schedule(counted(2), "second", payload=Payload("{}", is_json=True))
            return [ScheduleRequest(None, draft)]

        at.ask(lambda: at.scene.change_schedules(job, request))
        with at.scene.untapped():
            there = lookup.find(at.scene.world, TENANT, job.job.id)
        return next(schedule for schedule in there.schedules if schedule.name == "second")


class EditOfWhatIsOwed(Scenario):
    """Nothing is swept for a while; a change then sends what the old timing still owes, before its own write."""

    name = "edit-of-what-is-owed"

    def history(self, at: Play) -> None:
        job = at.create(until(9))
        at.expect(job, minutes(*range(1, 7), 8))
        at.go_to(0.5)
        at.outage(320)
        timing = {"cron": "*/2 * * * *", "endTime": text(NOON + 9 * TICK)}
        at.ask(lambda: at.scene.change(job, timings=[timing]))
        at.go_to(10)


class OnceMore(Scenario):
    """A one-time schedule whose run goes on is asked for once more: at once, next to the first, which then reports."""

    name = "once-more"
    callbacks = True

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = lambda call: ACCEPTED if call.planned_at in minutes(1) else OK
        action = at.scene.action(outcome={"on202": "wait", "callbackTimeoutSeconds": 1_800})
        job = at.create({"at": text(NOON + TICK)}, action=action)
        schedule = job.schedules[0]
        at.go_to(1.5)
        at.go_until(lambda: at.scene.endpoint.received)
        again = up_to_second(at.scene.clock.now())
        at.expect(job, [*minutes(1), again])
        at.ask(lambda: at.scene.change(job, timings=[{"at": text(again)}], action=action))
        at.go_to(3)
        at.ask(
            lambda: results.record(
                at.scene.world, TENANT, schedule.id, run_at(schedule, 1), success=True, message="done"
            )
        )
        at.go_to(6)

    def check(self, at: Play) -> None:
        with at.scene.untapped():
            states = {item["state"]["S"] for item in at.scene.items() if item["sk"]["S"].startswith("SCH#")}
        assert states == {ScheduleState.COMPLETED.value}


class EditOfWhatIsMissed(Scenario):
    """The same for ten minutes, under the policy `latest`: before the change, it decides on what was missed."""

    name = "edit-of-what-is-missed"

    def history(self, at: Play) -> None:
        job = at.create(until(17), policies={"misfire": {"type": "latest"}})
        at.expect(job, {}, in_lines=minutes(*range(1, 13), 14, 16), optional=minutes(13, 15, 17))
        at.go_to(1.5)
        at.outage(600)
        timing = {"cron": "*/2 * * * *", "endTime": text(NOON + 17 * TICK)}
        at.ask(lambda: at.scene.change(job, timings=[timing]))
        at.go_to(20)

    def check(self, at: Play) -> None:
        ran = {run.planned_at for run in at.runs(Kind.SCHEDULED) if run.state is State.SUCCESS}
        assert {*minutes(1), *minutes(14, 16)} <= ran or at.faults
        assert len(ran) < 12 or at.faults


def _gone(there: Planned, schedule: Schedule) -> list[ScheduleRequest]:
    return [ScheduleRequest(each, None, delete=True) for each in there.schedules if each.id == schedule.id]


class PauseAndResume(Scenario):
    """Paused two seconds before an instant, which is skipped; resumed later: what lay between is one line."""

    name = "pause-and-resume"

    def history(self, at: Play) -> None:
        job = at.create(until(6))
        first, *off = minutes(1, 2, 3)
        at.expect(
            job,
            {first: frozenset({State.SKIPPED, State.SUCCESS}), **dict.fromkeys(minutes(4, 5, 6), State.SUCCESS)},
            in_lines=off,
        )
        at.go_to(0.96)
        at.ask(lambda: at.scene.set_state(job, pause=Pause(NOON)))
        at.go_to(3.5)
        at.ask(lambda: at.scene.set_state(job, pause=None))
        at.go_to(4.5)
        at.audit()
        at.go_to(8)

    def check(self, at: Play) -> None:
        """Checks that runs which a purge took before the pause come after it, by the audit."""
        first = next(run for run in at.runs(Kind.SCHEDULED) if run.planned_at in minutes(1))
        assert at.purged or first.state is State.SKIPPED


class PauseUntil(Scenario):
    """A pause with an end: what is due from its end on runs on its second."""

    name = "pause-until"

    def history(self, at: Play) -> None:
        job = at.create(until(7))
        at.expect(job, minutes(1, 4, 5, 6, 7), in_lines=minutes(2, 3))
        at.go_to(1.5)
        at.ask(lambda: at.scene.set_state(job, pause=Pause(NOON, until=NOON + 4 * TICK)))
        at.go_to(9)


class PauseManyUntil(Scenario):
    """The same for a job with more schedules than go into one transaction."""

    name = "pause-many-until"
    constants = {"flow.jobs.deletion.IN_JOBS_TRANSACTION": 1, "flow.jobs.change.IN_JOBS_TRANSACTION": 1}  # noqa: RUF012 - as declared

    def history(self, at: Play) -> None:
        job = at.create(until(6), until(6))
        for schedule in job.schedules:
            at.expect(schedule, minutes(1, 4, 5, 6), in_lines=minutes(2, 3))
        at.go_to(1.5)
        at.ask(lambda: at.scene.set_state(job, pause=Pause(NOON, until=NOON + 4 * TICK)))
        at.go_to(8)


class Delete(Scenario):
    """A job goes while its runs wait for their retries; one message is still under way."""

    name = "delete"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = BUSY
        job = at.create(until(9), action=at.scene.action(retry=fixed(1_800)), tags=("a",), resource_id="r")
        at.expect(job, {}, optional=minutes(1, 2), state=None)
        at.go_to(2.5)
        at.ask(lambda: at.scene.delete(job))
        at.go_to(5)

    def check(self, at: Play) -> None:
        assert {run.state for run in at.runs()} <= {State.CANCELLED}
        left = {item["sk"]["S"].split("#")[0] for item in at.scene.items() if "#JOB#" in item["pk"]["S"]}
        assert not left


class DeleteBeforeRetry(Scenario):
    """A job goes, with a reason, shortly before a retry of its run: the executor of the retry ends the run."""

    name = "delete-before-retry"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = BUSY
        job = at.create(counted(1), action=at.scene.action(retry=fixed(10)))
        at.expect(job, {}, optional=minutes(1), state=None)
        at.go_to(1.1)
        by = By(actor="me", reason="sold")
        at.ask(lambda: deletion.delete_job(at.scene.world, TENANT, job.job.id, None, by=by))
        at.go_to(3)

    def check(self, at: Play) -> None:
        """Checks that whoever ends the run says who deleted its job."""
        cancelled = [run.message for run in at.ledger if run.state is State.CANCELLED]
        assert at.faults or cancelled == ["the job was deleted by me: sold"]
        assert set(cancelled) <= {
            "the job was deleted by me: sold",
            "the schedule was deleted before it began, by me: sold",
        }


class JobSets(Scenario):
    """A job set under two lists, one after the other.

    A job is changed and takes another key, one goes, one comes, one that somebody has deleted comes back.
    """

    name = "job-sets"

    def history(self, at: Play) -> None:
        first = {key: self._draft(at, key, 3) for key in "abd"}
        self._apply(at, first)
        jobs = self._jobs(at)
        at.expect(jobs["a"], minutes(1, 2, 3))
        at.expect(jobs["b"], {}, optional=minutes(1), state=None)
        at.expect(jobs["d"], {}, optional=minutes(1), state=None)
        at.go_to(1.5)
        at.ask(lambda: at.scene.delete(jobs["d"]))
        changed = replace(first["a"], description="new")
        new = self._draft(at, "e", 1)
        second = {"x": changed, "d": first["d"], "e": new}
        self._apply(at, second, was={"x": "a"})
        self._apply(at, second, spelling="as before, in other words")
        after = self._jobs(at)
        assert (after["x"].job.id, after["x"].job.key, after["x"].job.description) == (jobs["a"].job.id, "x", "new")
        at.expect(after["d"], minutes(2, 3, 4))
        at.expect(after["e"], minutes(2))
        at.go_to(6)

    def check(self, at: Play) -> None:
        members = self._members(at)
        assert [member.key for member in members] == ["d", "e", "x"]
        assert all(member.digest is not None for member in members)
        there = [job_of(JobItem.from_raw_data(item)) for item in at.scene.items() if item["sk"]["S"] == keys.JOB]
        assert {(job.key, job.id) for job in there} == {(member.key, member.job_id) for member in members}
        assert [each.name for each in views.job_sets(at.scene.world.table, TENANT, None, 9)] == ["set"]

    def _draft(self, at: Play, name: str, count: int) -> JobDraft:
        draft = at.scene.draft(counted(count), name=name)
        return replace(draft, schedules=tuple(replace(each, name="s") for each in draft.schedules or ()))

    def _apply(
        self, at: Play, drafts: Mapping[str, JobDraft], was: Mapping[str, str] | None = None, spelling: str = ""
    ) -> None:
        """Sends a list until there is an answer, as a client does."""
        wanted = [Wanted(key, repr(drafts[key]) + spelling, n, (was or {}).get(key)) for n, key in enumerate(drafts)]

        def request() -> None:
            world = at.scene.world
            set_plan, by = job_sets.plan(world, TENANT, "set", wanted), By(Operation.APPLY, "me")
            with job_sets.applying(world, TENANT, set_plan, by):
                for each in set_plan.plan.changes:
                    job_sets.apply_change(world, TENANT, set_plan, each, drafts.get(each.key), by)

        at.ask(request)

    def _jobs(self, at: Play) -> dict[str, Planned]:
        def read() -> dict[str, Planned]:
            return {each.key: lookup.find(at.scene.world, TENANT, each.job_id) for each in self._members(at)}

        return at.ask(read)

    def _members(self, at: Play) -> list[Member]:
        return views.members(at.scene.world.table, TENANT, "set")


@dataclass
class Listener:
    """A program that takes events from a queue. took: the counts of those about dropped occurrences, by their ids."""

    at: Play
    url: str
    took: dict[str, int] = field(default_factory=dict)

    def work(self) -> bool:
        messages = self.at.scene.sqs.receive(self.url)
        for message in messages:
            detail = json.loads(message.body)["detail"]
            self.took[detail["id"]] = detail["count"]
            self.at.scene.sqs.delete(self.url, message.receipt)
        return bool(messages)

    def twin(self) -> Listener:
        return self


class Consumer(Scenario):
    """A consumer is away, and comes back for what it missed, of which its job keeps one."""

    name = "consumer"
    constants = {"flow.runs.replay.DROPPED_TOGETHER": 1, "flow.runs.replay.DROPPED_AT_ONCE": 1}  # noqa: RUF012 - as declared

    def history(self, at: Play) -> None:
        members = {"type": "event", "consumer": "c", "application": "c", "missed": {"limit": 1}}
        at.ask(lambda: applications.register(at.scene.world, TENANT, "c", None))
        at.workers = [Listener(at, *at.scene.sqs.created)]
        job = at.create(counted(4), action=draft(members, field="action", guard=GUARD))
        either = frozenset({State.MISSED, State.SUCCESS})  # by what the index shows when it starts
        at.expect(job, {**dict.fromkeys(minutes(1, 2, 3), either), minutes(4)[0]: State.SUCCESS})
        at.go_to(3.5)
        at.go_until(lambda: self._beat(at) is Phase.LIVE)
        at.go_to(4.2)
        at.go_until(lambda: self._beat(at) is Phase.LIVE and sum(run.finished for run in at.runs()) == 4)

    def check(self, at: Play) -> None:
        """Compares the events about dropped occurrences with the ledger."""
        told = {each["id"]: each["count"] for each in (json.loads(entry["Detail"]) for entry in at.scene.bus.of_jobs)}
        [listener] = at.workers
        assert listener.took == told or "purged-queue" in at.faults
        missed = [run for run in at.ledger if run.state is State.MISSED]
        assert sum(told.values()) == len(missed)
        assert at.faults or len(missed) == 2

    def _beat(self, at: Play) -> Phase:
        """Takes the lease of the consumer as its process does, and starts unless it has."""
        world = at.scene.world
        there = at.ask(lambda: leases.take(world, TENANT, "c", "me", 90))
        if there is not None and there.phase is Phase.AWAY:
            there = at.ask(lambda: leases.start(world, TENANT, "c", "me"))
        return Phase.AWAY if there is None else there.phase


class ConsumerDeleted(Scenario):
    """A consumer is deleted while events wait for it; its job goes on to name it, and the consumer comes back."""

    name = "consumer-deleted"
    constants = {"flow.runs.replay.DROPPED_TOGETHER": 1, "flow.runs.replay.DROPPED_AT_ONCE": 1}  # noqa: RUF012 - as declared

    def history(self, at: Play) -> None:
        world = at.scene.world
        job = at.create(counted(3), action=draft({"type": "event", "consumer": "c"}, field="action", guard=GUARD))
        either = frozenset({State.MISSED, State.SUCCESS})  # by when it was held, and when the request got through
        at.expect(job, dict.fromkeys(minutes(1, 2, 3), either))
        at.go_to(2.5)
        at.go_until(lambda: self._there(at))
        at.ask(lambda: consumer_deletion.delete(world, TENANT, "c", force=True))
        at.go_to(3.5)
        at.ask(lambda: leases.take(world, TENANT, "c", "me", 900))
        at.ask(lambda: leases.start(world, TENANT, "c", "me"))
        at.go_until(lambda: sum(run.finished for run in at.runs()) == 3)
        at.ask(lambda: consumer_deletion.delete(world, TENANT, "c", force=True))
        at.go_until(lambda: not self._there(at))

    def check(self, at: Play) -> None:
        """Compares the events with the rows that ended as MISSED; nothing is left of the consumer."""
        told = [json.loads(entry["Detail"]) for entry in at.scene.bus.of_jobs if entry["DetailType"] == DROPPED_TYPE]
        missed = [run for run in at.ledger if run.state is State.MISSED]
        assert sum({each["id"]: each["count"] for each in told}.values()) == len(missed)
        assert at.faults or len(missed) == 2
        assert not any("#CONSUMER#" in item["pk"]["S"] for item in at.scene.items())

    def _there(self, at: Play) -> bool:
        return at.ask(lambda: consumer_rows.read(at.scene.world.table, TENANT, "c")) is not None


class ConsumerLeft(Scenario):
    """A job names another consumer while events wait for the first one, and then none: they go on."""

    name = "consumer-left"

    def history(self, at: Play) -> None:
        policies = {"misfire": {"type": "all"}, "overlap": "allow"}
        job = at.create(counted(3), action=self._event(consumer="c"), policies=policies)
        at.expect(job, dict.fromkeys(minutes(1, 2, 3), State.SUCCESS))
        at.go_to(2.5)
        at.ask(lambda: at.scene.change(job, action=self._event(consumer="d"), policies=policies))
        at.go_to(3.5)
        at.ask(lambda: at.scene.change(job, action=self._event(), policies=policies))
        at.go_until(lambda: sum(run.finished for run in at.runs()) == 3)

    def _event(self, **members: str) -> ActionDraft:
        return draft({"type": "event", **members}, field="action", guard=GUARD)


class ManySchedules(Scenario):
    """A job with more schedules than go into one transaction is stopped, started and deleted."""

    name = "many-schedules"
    constants = {"flow.jobs.deletion.IN_JOBS_TRANSACTION": 1, "flow.jobs.change.IN_JOBS_TRANSACTION": 1}  # noqa: RUF012 - as declared

    def history(self, at: Play) -> None:
        job = at.create(until(9), until(9))
        for schedule in job.schedules:
            at.expect(schedule, minutes(1), in_lines=minutes(2, 3, 4), optional=minutes(5, 6), state=None)
        at.go_to(1.5)
        at.ask(lambda: at.scene.set_state(job, active=False))
        at.go_to(3.5)
        at.ask(lambda: at.scene.set_state(job, active=True))
        at.go_to(6.5)
        at.ask(lambda: at.scene.delete(job))
        at.go_to(8)


# Outages


class CatchUpAll(Scenario):
    """Nothing is swept for ten minutes: missed occurrences run at a limited rate, and fresh ones go on at the same
    time.
    """

    name = "catch-up-all"

    def history(self, at: Play) -> None:
        policies = {"misfire": {"type": "sap", "ratePerMinute": 4}}
        job = at.create(until(16), policies=policies)
        at.expect(job, minutes(*range(1, 17)))
        at.go_to(1.5)
        at.outage(600)
        at.go(20)
        at.audit()
        at.go_to(19)


class CatchUpLatest(Scenario):
    """The same under the policy `latest`: one line for what was left out."""

    name = "catch-up-latest"

    def history(self, at: Play) -> None:
        job = at.create(until(13), policies={"misfire": {"type": "latest"}})
        at.expect(job, {}, in_lines=minutes(*range(1, 14)))
        at.go_to(1.5)
        at.outage(600)
        at.go_to(16)

    def check(self, at: Play) -> None:
        ran = {run.planned_at for run in at.runs(Kind.SCHEDULED) if run.state is State.SUCCESS}
        assert {*minutes(1), *minutes(12, 13)} <= ran or at.faults


class Unreadable(Scenario):
    """The stored text of a schedule cannot be read any more: it is taken out of service, with its line."""

    name = "unreadable"
    not_yet = {"purged-queue": "a schedule that is out of service is in no catalogue: the audit does not see it"}  # noqa: RUF012

    def history(self, at: Play) -> None:
        job = at.create(until(9))
        at.go_to(1.5)
        with at.scene.untapped():
            upcoming = at.scene.stored(job).next_run_at
        assert upcoming is not None
        sent = [instant for instant in minutes(*range(1, 9)) if instant < upcoming]
        ran_or_out_of_service = frozenset({State.SUCCESS, State.SKIPPED})
        broken = frozenset({State.ERROR, *ran_or_out_of_service})  # a stale index still has a text that can be read
        ends = {**dict.fromkeys(sent, ran_or_out_of_service), upcoming: broken}
        at.expect(job, ends, optional=[upcoming + TICK, upcoming + 2 * TICK], state=ScheduleState.BROKEN)
        at.scene.edit_schedule(job, sweep={"S": 'S;fast;sap;{"cron":"gone"}'})
        at.go_to(5)


class LostMessages(Scenario):
    """The run queue is purged while messages wait in it: the audit sends them again, and settles up in the end."""

    name = "lost-messages"

    def history(self, at: Play) -> None:
        job = at.create(counted(3))
        at.expect(job, minutes(1, 2, 3))
        at.go_to(0.5)
        at.purge()
        at.go_to(14)
        at.audit()
        at.go_to(17)
        at.audit()
        at.go_to(18)


class SettledUp(Scenario):
    """A schedule goes on; its count has gone wrong by an operator's hand, and the audit puts it right and settles."""

    name = "settled-up"
    constants = {"flow.audit.reconcile.WORTH_SETTLING": 4}  # noqa: RUF012 - as declared

    def history(self, at: Play) -> None:
        job = at.create(until(19))
        at.expect(job, minutes(*range(1, 20)))
        at.go_to(3.5)
        with at.scene.untapped():
            planned_total = at.scene.stored(job).planned_total
        at.scene.edit_schedule(job, planned_total={"N": str(planned_total + 7)})
        at.purged = True  # audits go on until the end: one that dies is made good by the next
        at.go_to(16.5)
        at.audit()
        at.go_to(21)


class EffectsRepeated(Scenario):
    """On command, the effects of the ended runs are repeated: nothing changes."""

    name = "effects-repeated"

    def history(self, at: Play) -> None:
        at.scene.endpoint.script = [WRONG]
        job = at.create(counted(2), error_action=at.scene.action())
        at.expect(job, dict.fromkeys(minutes(1, 2), frozenset({State.SUCCESS, State.REQUEST_ERROR})))
        at.go_to(4)
        spell = {"tenant": TENANT, "since": text(NOON), "until": text(NOON + 9 * TICK)}
        at.ask(lambda: repeat_effects.repeat(at.scene.world, spell))
        at.go_to(5)

    def check(self, at: Play) -> None:
        failed = [run for run in at.runs(Kind.SCHEDULED) if run.state is State.REQUEST_ERROR]
        assert len(at.runs(Kind.ERROR_ACTION)) == len(failed)
        assert at.faults or len(failed) == 1


class StoppedSeries(Scenario):
    """A series loses its next time: the audit gives it back."""

    name = "stopped-series"

    def history(self, at: Play) -> None:
        job = at.create(counted(6))
        at.expect(job, minutes(*range(1, 7)))
        at.go_to(1.5)
        at.scene.edit_schedule(job, next_run_at=None)
        at.go_to(2.5)
        at.audit()
        at.go_to(9)
        at.purged = True  # a look that dies is made good by the next audit


# Runs that exclude each other


class QueueOne(Scenario):
    """The first run waits for its retry as others are due: one waits for it and is cancelled, so that the next one
    waits, and the next is skipped.
    """

    name = "queue-one"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = failing(1)
        action = at.scene.action(retry=fixed(210))
        job = at.create(counted(5), action=action, policies={"overlap": "queue_one"})
        ends = frozenset({State.SUCCESS, State.SKIPPED, State.CANCELLED})
        at.expect(job, dict.fromkeys(minutes(*range(1, 6)), ends))
        at.go_to(2.3)
        schedule = job.schedules[0]

        def cancel() -> None:
            with suppress(NotFound, Conflict):  # under a fault it may not be there yet, or over already
                results.cancel(at.scene.world, TENANT, schedule.id, run_at(schedule, 2))

        at.ask(cancel)
        at.go_to(8)

    def check(self, at: Play) -> None:
        assert at.faults or [run.state for run in at.runs()].count(State.SKIPPED) == 1


class TakingTurns(Scenario):
    """While one changes the job, another change comes between: the first takes a turn, and both hold in the end."""

    name = "taking-turns"

    def history(self, at: Play) -> None:
        job = at.create(counted(1))
        at.expect(job, minutes(1))
        met: list[Job] = []

        def edit(there: Job) -> Job:
            if not met:
                met.append(there)
                at.aside(lambda: at.scene.change(job, policies={"overlap": "skip"}))
            return replace(there, description="mine")

        at.ask(lambda: change.set_state(at.scene.world, TENANT, job.job.id, edit, None))
        at.go_to(2)

    def check(self, at: Play) -> None:
        (row,) = (row for row in at.scene.items() if row["sk"]["S"] == keys.JOB)
        job = job_of(JobItem.from_raw_data(row))
        assert (job.description, job.policies) == ("mine", {"overlap": "skip"})


class Replace(Scenario):
    """The first run waits for its retry as the second is due, which takes its place."""

    name = "replace"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = failing(1)
        job = at.create(counted(3), action=at.scene.action(retry=fixed(150)), policies={"overlap": "replace"})
        at.expect(job, dict.fromkeys(minutes(1, 2, 3), frozenset({State.SUCCESS, State.CANCELLED})))
        at.go_to(6)

    def check(self, at: Play) -> None:
        assert at.faults or [run.state for run in at.runs()].count(State.CANCELLED) == 1


class WaitingBehind(Scenario):
    """The first run waits for its result; a manual one waits for it, and has its turn when the result is there."""

    name = "waiting-behind"
    callbacks = True

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = lambda call: ACCEPTED if call.planned_at in minutes(1) else OK
        action = at.scene.action(outcome={"on202": "wait", "callbackTimeoutSeconds": 1_800})
        job = at.create(counted(1), action=action, policies={"overlap": "queue_one"})
        at.expect(job, minutes(1))
        at.go_to(1.5)
        at.go_until(lambda: at.scene.endpoint.received)
        schedule, once = job.schedules[0], at.key()
        at.ask(lambda: manual.run_now(at.scene.world, TENANT, job.job.id, schedule.id, once))
        at.go_to(2.5)
        at.ask(
            lambda: results.record(
                at.scene.world, TENANT, schedule.id, run_at(schedule, 1), success=True, message="done"
            )
        )
        at.go_to(5)

    def check(self, at: Play) -> None:
        assert [run.state for run in at.runs(Kind.MANUAL)] == [State.SUCCESS]


class SkippedBeside(Scenario):
    """The first run waits for its retry as the second is due, which is skipped; the third has its turn."""

    name = "skipped-beside"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = failing(1)
        job = at.create(counted(3), action=at.scene.action(retry=fixed(100)), policies={"overlap": "skip"})
        at.expect(job, dict.fromkeys(minutes(1, 2, 3), frozenset({State.SUCCESS, State.SKIPPED})))
        at.go_to(5)

    def check(self, at: Play) -> None:
        assert at.faults or [run.state for run in at.runs()].count(State.SKIPPED) == 1


# Calls that share a flow key


def flow_key(at: Play, **terms: Any) -> None:
    wanted = FlowKey(TENANT, "k", EPOCH, EPOCH, **terms)
    at.ask(lambda: flow_key_changes.create(at.scene.world, wanted))


def passed_in_order(at: Play) -> None:
    """Checks that nobody waits in the end, and no place is taken; the rest lapses."""
    turnstile = flow_key_rows.read_stile(at.scene.world.table, TENANT, "k")
    assert turnstile is not None
    assert turnstile.running(at.scene.clock.now()) == 0
    assert turnstile.wake_at is None
    assert not [item for item in at.scene.items() if item["sk"]["S"].startswith("LINE#")]


class FlowKeyLine(Scenario):
    """Two jobs under one flow key: the second waits for its turn and its place."""

    name = "flow-key-line"

    def history(self, at: Play) -> None:
        flow_key(at, rate=Rate(1, 20), parallelism=1)
        for _ in range(2):
            at.expect(at.create(counted(1), policies={"flowKey": "k"}), minutes(1))
        at.go_to(3)

    def check(self, at: Play) -> None:
        passed_in_order(at)
        first, *others = sorted(received.at for received in at.scene.endpoint.received)
        twice = {
            "crash-before",
            "crash-after",
            "throttled",
            "server-fault",
        } & at.faults  # its answer is lost, or its end
        assert twice or all(other - first >= timedelta(seconds=19) for other in others)


class FlowKeyResult(Scenario):
    """The first run waits for its result and keeps its place; the second has it when the result is there."""

    name = "flow-key-result"
    callbacks = True

    def history(self, at: Play) -> None:
        flow_key(at, parallelism=1)
        at.scene.endpoint.answer = lambda call: ACCEPTED if call.planned_at in minutes(1) else OK
        action = at.scene.action(outcome={"on202": "wait", "callbackTimeoutSeconds": 1_800})
        first = at.create(counted(1), action=action, policies={"flowKey": "k"})
        at.expect(first, minutes(1))
        at.go_until(lambda: at.scene.endpoint.received)
        later = (at.scene.clock.now() + TICK).replace(microsecond=0)
        at.expect(at.create({"at": text(later)}, action=action, policies={"flowKey": "k"}), [later])
        at.go(72)
        schedule = first.schedules[0]
        run = run_at(schedule, 1)
        at.ask(lambda: results.record(at.scene.world, TENANT, schedule.id, run, success=True, message="done"))
        at.go(108)

    def check(self, at: Play) -> None:
        passed_in_order(at)


class FlowKeyCircuit(Scenario):
    """A failure opens the circuit; who waits for it is called when it may be tried, and closes it."""

    name = "flow-key-circuit"

    def history(self, at: Play) -> None:
        flow_key(at, circuit=CircuitRule(1, 30))
        at.scene.endpoint.answer = failing(1)
        at.expect(at.create(counted(1), policies={"flowKey": "k"}), {minutes(1)[0]: EITHER_WAY})
        at.go_to(1.1)
        later = at.create({"at": text(NOON + 1.2 * TICK)}, policies={"flowKey": "k"})
        at.expect(later, minutes(1.2))
        at.go_to(3)

    def check(self, at: Play) -> None:
        passed_in_order(at)
        assert at.faults or at.scene.endpoint.received[1].at > NOON + 1.4 * TICK
        left = list(circuits.listed(at.scene.world.table, TENANT, "k"))
        assert at.faults or not left


class FlowKeyChanges(Scenario):
    """A key is paused while a run waits, changed and resumed, and goes with the last who names it."""

    name = "flow-key-changes"

    def history(self, at: Play) -> None:
        world = at.scene.world
        flow_key(at, parallelism=1)
        at.ask(lambda: change_key(at, lambda key: flow_key_changes.paused(key, NOON, "note")))
        job = at.create(counted(1), policies={"flowKey": "k"})
        at.expect(job, minutes(1))
        at.go_to(1.5)
        at.ask(lambda: change_key(at, lambda key: replace(key, rate=Rate(10, 1), circuit=None)))
        at.ask(lambda: change_key(at, flow_key_changes.resumed))
        at.go_to(2.5)
        at.ask(lambda: at.scene.change(job, policies={}))
        at.go_until(lambda: not waited_for(at))
        at.ask(lambda: gone(lambda: flow_key_changes.delete(world, TENANT, "k", None)))

    def check(self, at: Play) -> None:
        assert not [item for item in at.scene.items() if "KEY#" in item["pk"]["S"] + item["sk"]["S"]]


def change_key(at: Play, edit: Callable[[FlowKey], FlowKey]) -> None:
    flow_key_changes.change(at.scene.world, TENANT, "k", edit, None)


def waited_for(at: Play) -> bool:
    with at.scene.untapped():
        turnstile = flow_key_rows.read_stile(at.scene.world.table, TENANT, "k")
    return turnstile is not None and turnstile.wake_at is not None


def gone(delete: Callable[[], None]) -> None:
    """Deletes as a caller who repeats the request, because the first answer was lost."""
    with suppress(NotFound):
        delete()


# Tenants and collections

PROVIDER_CALLER = Caller(None, FIRST_ID, frozenset({PROVIDER_ALL}))


class Tenancy(Scenario):
    """A tenant, its credential and its collection come and go; what is due while the collection is off is skipped."""

    name = "tenancy"

    def history(self, at: Play) -> None:
        world = at.scene.world
        at.ask(lambda: tenancy.create_tenant(world, "globex", None))
        at.ask(lambda: tenancy.change_tenant(world, TENANT, "limited", Usage(most_schedules=9)))
        issued = at.ask(lambda: access.create_credential(world, TENANT, None, ["jobs:read"]))
        mine = issued.credential.id
        at.ask(lambda: access.rotate_credential(world, TENANT, mine, timedelta(hours=1), PROVIDER_CALLER))
        at.ask(lambda: access.end_former_secret(world, TENANT, mine))
        at.ask(lambda: access.delete_credential(world, TENANT, mine))
        at.ask(lambda: tenancy.create_collection(world, Collection(TENANT, "side")))
        job = at.create(counted(2), collection="side")
        at.expect(job, {}, in_lines=minutes(1), optional=minutes(2, 3), state=None)
        at.ask(lambda: switch(at, "side", on=False))
        at.go_to(1.5)
        at.ask(lambda: switch(at, "side", on=True))
        at.go_to(3)
        at.ask(lambda: at.scene.delete(job))
        at.go_to(4)
        at.ask(lambda: tenancy.delete_collection(world, TENANT, "side", None))


class CallbackKey(Scenario):
    """The first runs that send a callback token: whoever needs the key first makes it."""

    name = "callback-key"

    def history(self, at: Play) -> None:
        job = at.create(until(2), policies={"callbackToken": True})
        at.expect(job, minutes(1, 2))
        at.go_to(3)


class HeldCollection(Scenario):
    """A collection is off while its schedule goes on: what was sent is skipped, what was not is one line, and told."""

    name = "held-collection"

    def history(self, at: Play) -> None:
        at.ask(lambda: at.scene.tell(Events.ALL))
        job = at.create(until(8))
        at.expect(job, minutes(1, 6, 7, 8), in_lines=minutes(2, 3, 4, 5))
        at.go_to(1.5)
        at.ask(lambda: switch(at, "default", on=False))
        at.go_to(5.5)
        at.ask(lambda: switch(at, "default", on=True))
        at.go_to(10)


class RunsWhenEnabled(Scenario):
    """Single runs fall due while their collection is off, one of them sent before: each runs once, at enabling."""

    name = "runs-when-enabled"

    def history(self, at: Play) -> None:
        policies = {"onEnable": "run_now"}
        sent = at.create({"at": text(NOON + 1.5 * TICK)}, policies=policies)
        at.expect(sent, minutes(1.5))
        at.go_to(1.2)
        at.ask(lambda: switch(at, "default", on=False))
        unsent = at.create({"at": text(NOON + 3 * TICK)}, policies=policies)
        at.expect(unsent, minutes(3))
        at.go_to(4.5)
        at.ask(lambda: switch(at, "default", on=True))
        at.go_to(8)


class HeldTenant(Scenario):
    """The provider turns a tenant off and on again; a change comes while its schedules are held."""

    name = "held-tenant"

    def history(self, at: Play) -> None:
        world = at.scene.world
        job = at.create(until(8))
        at.expect(job, {}, in_lines=minutes(*range(1, 9)))
        at.go_to(1.5)
        at.ask(lambda: tenancy.switch_tenant(world, TENANT, on=False))
        at.go_to(4.5)
        at.ask(lambda: at.scene.change(job, policies={"misfire": {"type": "all"}}))
        at.go_to(5.5)
        at.ask(lambda: tenancy.switch_tenant(world, TENANT, on=True))
        at.go_to(10)

    def check(self, at: Play) -> None:
        ran = {run.planned_at for run in at.runs(Kind.SCHEDULED) if run.state is State.SUCCESS}
        assert ran >= {*minutes(6, 7, 8)}


class Purge(Scenario):
    """A tenant's last subscription ends while a run waits for its retry: all that it has goes, and none of it runs."""

    name = "purge"
    constants = {"flow.bulk.purge_tenant.JOBS": 1}  # noqa: RUF012 - as declared
    forgets = True

    def history(self, at: Play) -> None:
        world = at.scene.world
        for application in ("first", "second"):
            at.ask(lambda application=application: subscriptions.subscribe(world, "globex", application))
        at.ask(lambda: subscriptions.unsubscribe(world, "globex", "first", None))
        at.ask(lambda: subscriptions.subscribe(world, TENANT, "first"))
        at.ask(lambda: calendars.create(world, _calendar("closed", dates=["12-25"]), None))
        at.ask(lambda: applications.register(world, TENANT, "billing", None))
        at.scene.endpoint.answer = failing(1)
        job = at.create(until(9), action=at.scene.action(retry=fixed(3_600)))
        at.expect(job, {}, optional=minutes(1, 2), state=None)
        at.go_to(1.4)
        at.ask(lambda: subscriptions.unsubscribe(world, TENANT, "first", None))
        at.go_to(3)

    def check(self, at: Play) -> None:
        own = [item for item in at.scene.items() if item["pk"]["S"].startswith(keys.tenant(TENANT))]
        assert {item["sk"]["S"] for item in own if "expires_at" not in item} == {keys.LAST_NUMBER}
        assert not at.ledger
        assert len(at.scene.endpoint.received) <= 2
        assert not at.scene.sqs.created, "the queues of its applications go too"
        assert tenancy.find_tenant(at.scene.world, "globex").applications.keys() == {"second"}


# Calendars


class ChangedCalendar(Scenario):
    """A calendar that a schedule names is changed, and one occurrence is left out; another calendar comes and goes."""

    name = "changed-calendar"

    def history(self, at: Play) -> None:
        world = at.scene.world
        at.ask(lambda: calendars.create(world, _calendar("spare"), None))
        at.ask(lambda: calendars.create(world, _calendar("holidays"), None))
        timing = {"cron": "*/10 * * * *", "endTime": text(NOON + 60 * TICK), "calendars": [{"name": "holidays"}]}
        job = at.create(timing)
        at.expect(job, minutes(10, 20, 30, 40, 60))
        at.go_to(1.5)
        begin, end = (text(NOON + minute * TICK) for minute in (50, 51))
        for name in ("spare", "holidays"):
            at.ask(lambda name=name: _change_calendar(at, name, ranges=[{"from": begin, "to": end}]))  # type: ignore[misc]
        at.ask(lambda: calendars.delete(world, TENANT, "spare", None))
        at.go_to(62)

    def check(self, at: Play) -> None:
        there = calendars.find_head(at.scene.world, TENANT, "holidays")
        assert (there.users, there.replanning) == (1, False)


def _calendar(name: str, **content: Any) -> Calendar:
    return Calendar(TENANT, name, NOON, NOON, content=content, facts=calendar_content.read(content))


def _change_calendar(at: Play, name: str, **content: Any) -> Calendar:
    wanted = _calendar(name, **content)

    def edit(there: Calendar) -> Calendar:
        return replace(there, content=wanted.content, facts=wanted.facts)

    return calendars.change(at.scene.world, TENANT, name, edit, None, None)


class Signed(Scenario):
    """A collection gets a key that signs its calls, and loses it again."""

    name = "signed"

    def history(self, at: Play) -> None:
        world = at.scene.world
        job = at.create(counted(2))
        at.expect(job, minutes(1, 2))
        made = at.ask(lambda: signing.create(world, TENANT, "default"))
        at.go_to(1.5)
        with at.scene.untapped():
            keys = tenancy.find_collection(world, TENANT, "default").signing
        assert at.faults or [key.id for key in keys] == [made[0].id]
        for key in keys:
            at.ask(lambda key_id=key.id: signing.delete(world, TENANT, "default", key_id))
        at.go_to(4)

    def check(self, at: Play) -> None:
        signed = {
            call.planned_at: len(call.signing_secrets) for call in (each.call for each in at.scene.endpoint.received)
        }
        assert at.faults or signed == dict(zip(minutes(1, 2), (1, 0), strict=True))


class ByCalendar(Scenario):
    """A job names a calendar; the calendar is changed so that the day is over, its user follows, and both go."""

    name = "by-calendar"
    constants = {"flow.calendars.calendars.STRETCH_S": -1}  # noqa: RUF012 - as declared; a stretch for each page

    def history(self, at: Play) -> None:
        world = at.scene.world
        at.ask(lambda: calendars.create(world, self._drawn(dates=["2020-01-01"]), None))
        job = at.create({**until(8), "calendars": [{"name": "closed", "mode": "exclude", "roll": "none"}]})
        at.expect(job, minutes(1, 2, 3), optional=minutes(*range(4, 9)), state=None)
        at.go_to(3.5)
        today = {"dates": [NOON.date().isoformat()]}
        at.ask(lambda: calendars.change(world, TENANT, "closed", lambda there: self._redrawn(there, today), None, None))
        at.go_to(9)
        at.ask(lambda: at.scene.delete(job))
        at.go_to(10)
        at.ask(lambda: calendars.delete(world, TENANT, "closed", None))

    def _drawn(self, **content: Any) -> Calendar:
        return Calendar(TENANT, "closed", EPOCH, EPOCH, content=content, facts=calendar_content.read(content))

    def _redrawn(self, there: Calendar, content: dict[str, Any]) -> Calendar:
        return replace(there, content=content, facts=calendar_content.read(content))

    def check(self, at: Play) -> None:
        left = [item["sk"]["S"] for item in at.scene.items() if item["sk"]["S"].startswith(("CAL#", "USE#", "REPLAN#"))]
        assert not left
        assert at.faults or len(at.runs()) == len(minutes(1, 2, 3))


class Numbered(Scenario):
    """A tenant gets its ordinal, and a job is found by its integer id in the whole stack."""

    name = "numbered"

    def history(self, at: Play) -> None:
        world = at.scene.world
        job = at.create(counted(1))
        at.expect(job, minutes(1))
        ordinal = at.ask(lambda: Ordinals(world).give(TENANT))
        integer = integer_id(ordinal, job.job.number)
        for whose in (None, TENANT):
            found = at.ask(lambda tenant=whose: Ordinals(world).find(integer, tenant))
            assert found == (TENANT, job.job.id)
        at.go_to(3)


class Unused(Scenario):
    """One-time schedules of SAP's API: one that ran, and one that was off when it should have, go some time after."""

    name = "unused"
    constants = {"flow.job_parts.expiry.KEPT_S": 120}  # noqa: RUF012 - as declared

    def history(self, at: Play) -> None:
        keep = Retention(ended_job_days=0)
        at.ask(lambda: tenancy.change_collection(at.scene.world, TENANT, "default", _keeping(keep), None))
        job = at.create(*({"at": text(NOON + minute * TICK)} for minute in (1, 4)), counted(9), facade="sap")
        ran, off, stays = job.schedules
        at.expect(ran, minutes(1), state=None)
        at.expect(stays, minutes(*range(1, 10)))
        at.ask(lambda: at.scene.change_schedules(job, lambda there: [_off(lookup.find_schedule(there, off.id))]))
        at.go_to(12)

    def check(self, at: Play) -> None:
        """Checks that all schedules but the one are gone, and so are the rows that asked."""
        rows = [item["sk"]["S"] for item in at.scene.items() if "#JOB#" in item["pk"]["S"]]
        assert sum(row.startswith("SCH#") for row in rows) == 1
        assert not any(row.startswith("UNUSED#") for row in rows)


def _keeping(retention: Retention) -> Callable[[Collection], Collection]:
    return lambda before: replace(before, retention=retention)


def _off(schedule: Schedule) -> ScheduleRequest:
    return ScheduleRequest(schedule, replace(drafts.as_stored(schedule), active=False))


# Events


class Told(Scenario):
    """All is told: a run that fails and is retried, one that fails for good, the schedule's end, the job's coming and
    going.
    """

    name = "told"

    def history(self, at: Play) -> None:
        at.ask(lambda: at.scene.tell(Events.ALL))
        at.scene.endpoint.answer = lambda call: WRONG if call.planned_at in minutes(2) else failing(1)(call)
        job = at.create(counted(2), action=at.scene.action(retry=fixed(20)))
        at.expect(job, dict(zip(minutes(1, 2), (State.SUCCESS, State.REQUEST_ERROR), strict=True)))
        at.go_to(4)

    def check(self, at: Play) -> None:
        """Checks that each end is published at least once, whatever happened to the service, unless the bus refuses
        three times.
        """
        told = {event.detail.get("runId") for event in at.scene.bus.told}
        assert {run.id for run in at.runs()} <= told


def switch(at: Play, collection: str, *, on: bool) -> None:
    tenancy.change_collection(at.scene.world, TENANT, collection, lambda there: tenancy.enabled(there, on=on), None)


from tests.faults import worker_scenarios as worker_scenarios  # noqa: E402, PLC0414 - histories of many calls come last

SCENARIOS: dict[str, Scenario] = {kind.name: kind() for kind in Scenario.__subclasses__()}
