"""Telling others: what happened goes out on the bus, as its collection has chosen.

An event never fails what it tells of. What the bus refuses four times is said: in the log, in a count, and for a run
as a note beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.domain import event
from sweephand.domain.collection import Collection, Events, Tenant
from sweephand.domain.event import Event, EventType, Finding
from sweephand.domain.failure import Group
from sweephand.domain.job import Job
from sweephand.domain.run import Reason, Run
from sweephand.domain.schedule import Schedule, ScheduleState, StateReason
from sweephand.flow.world import World
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.table import CleanUpItem
from sweephand.store.jobs import jobs
from sweephand.store.runs import ledger

if TYPE_CHECKING:
    from sweephand.domain.flow_keys.circuits import Circuit
    from sweephand.domain.operation import Operation
    from sweephand.security.caller import Caller, Credential


def run_ended(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> None:
    """A finished run, or a line for many occurrences, with the alerts that its job asks for; and the schedule that
    nobody can read, if the run says so.
    """
    collection = job.collection if job is not None else _last_collection(world, run)
    if collection is None:
        return  # the job went long ago, and its end was told
    told = [event.of_run(run, job, collection)]
    if job is not None:
        told += event.alerts(run, job, schedule)
    if job is not None and schedule is not None and _found_broken(run, schedule):
        told.append(event.of_broken(schedule, job, run.finished_at or run.planned_at))
    unsent = _publish(world, _choice(world, run.tenant, collection), told)
    for each in unsent:
        ledger.note(world.table, run, f"the event {each.type} could not be published")


def _found_broken(run: Run, schedule: Schedule) -> bool:
    unread = run.reason is Reason.BAD_PAYLOAD and run.first_started_at is None
    return unread and schedule.state is ScheduleState.BROKEN and schedule.generation == run.generation


def _last_collection(world: World, run: Run) -> str | None:
    """Of a job that is gone: its clean-up row still knows."""
    item = world.table.get(CleanUpItem, keys.job(run.tenant, run.job_id), keys.clean_up("job"))
    return item.collection if item is not None else None


def schedule_completed(world: World, schedule: Schedule, reason: StateReason, job: Job) -> None:
    at = schedule.modified_at if schedule.last_planned_at is None else schedule.last_planned_at
    _publish(world, _choice(world, job.tenant, job.collection), [event.of_completed(schedule, reason, job, at)])


def schedule_deactivated(world: World, schedule: Schedule, job: Job) -> None:
    """By the service, because its target is out of reach."""
    told = event.of_deactivated(schedule, StateReason.UNREACHABLE, job)
    _publish(world, _choice(world, job.tenant, job.collection), [told])


# What somebody did. Who asks here has seen that the collection has all told.


def job_created(world: World, job: Job) -> None:
    _publish(world, Events.ALL, [event.of_job(EventType.JOB_CREATED, job)])


def job_deleted(world: World, job: Job) -> None:
    """job: as it was."""
    _publish(world, Events.ALL, [event.of_job(EventType.JOB_DELETED, job)])


def job_changed(world: World, before: Job, after: Job, *, schedules_too: bool) -> None:
    _publish(world, Events.ALL, event.of_change(before, after, schedules_too=schedules_too))


def collection_switched(world: World, collection: Collection) -> None:
    """collection: just enabled or disabled."""
    _publish(world, Events.ALL, [event.of_switch(collection)])


# What the audit found


def found(world: World, finding: Finding, schedule: Schedule, count: int) -> None:
    """By the audit, and mended. Costs a read of the job."""
    job = jobs.read_job(world.table, schedule.tenant, schedule.job_id)
    if job is not None:
        told = event.of_finding(finding, schedule, job, count, world.clock.now())
        _publish(world, _choice(world, job.tenant, job.collection), [told])


def errors_expire(world: World, group: Group, job: Job | None, count: int, first: datetime, now: datetime) -> None:
    """Failed runs that nobody has seen to go with their retention. first: when the first of them does."""
    told = event.of_expiring(group, job, count, first, now)
    _publish(world, _choice(world, group.tenant, group.collection), [told])


def operation_failed(world: World, operation: Operation) -> None:
    """Long work that gave up, by itself or by the dead letters. No collection can choose not to hear of it."""
    _publish(world, Events.FAILURES, [event.of_operation(operation)])


# Who may do what. No collection can choose not to hear of it; what the service itself does is no news.


def _publish_access(world: World, told: Event) -> None:
    if told.detail["actor"] is not None:
        _publish(world, Events.FAILURES, [told])


def credential_changed(world: World, kind: EventType, credential: Credential, by: Caller | None, at: datetime) -> None:
    facts = {
        "client_id": credential.client_id,
        "scopes": credential.scopes,
        "generation": credential.generation,
        "former_until": credential.former_until,
    }
    _publish_access(
        world, event.of_credential(kind, facts, credential.tenant, None if by is None else by.client_id, at)
    )


def signing_key_changed(
    world: World, kind: EventType, tenant: str, collection: str, key_id: str, actor: str | None
) -> None:
    _publish_access(world, event.of_signing_key(kind, tenant, collection, key_id, actor, world.clock.now()))


def tenant_changed(world: World, what: str, tenant: Tenant, actor: str | None) -> None:
    """what: happened to it; the second part of the event's type. tenant: as it is after that."""
    _publish_access(world, event.of_tenant(EventType(f"tenant.{what}"), tenant, actor, world.clock.now()))


# What flow keys learn of targets


def circuit_changed(world: World, opened: Circuit, flow_key: str, job: Job, *, closed: bool) -> None:
    """opened: as it is open, or was. job: whose call it followed from; its collection chooses."""
    kind = event.EventType.CIRCUIT_CLOSED if closed else event.EventType.CIRCUIT_OPENED
    at = opened.opened_at if not closed else None
    told = event.of_circuit(kind, opened, flow_key, job, at or world.clock.now())
    _publish(world, _choice(world, job.tenant, job.collection), [told])


def _choice(world: World, tenant: str, collection: str) -> Events:
    return world.standing.of(tenant, collection).events


def _publish(world: World, choice: Events, events: Iterable[Event]) -> Sequence[Event]:
    """Returns what did not go out."""
    chosen = event.wanted(events, choice)
    unsent = world.bus.publish(chosen) if chosen else []
    for each in unsent:
        world.journal.error("an event was not published", kind=each.type, tenant=each.detail["tenant"])
    if unsent:
        world.journal.count("EventsUnsent", len(unsent))
    return unsent
