"""Publishes on the bus the events that each collection asks for.

A failed publication never fails the change that it reports. An event that the bus refuses four times is logged and
counted; for a run, the ledger gets a note as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sweephand.base.lazy import lazy
from sweephand.domain import event
from sweephand.domain.collection import Collection, Events, Tenant
from sweephand.domain.event import Event, EventType, Finding
from sweephand.domain.failure import Group
from sweephand.domain.job import Job
from sweephand.domain.run import FAILED, Reason, Run
from sweephand.domain.schedule import Schedule, ScheduleState, StateReason
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import CleanUpItem
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import ledger

if TYPE_CHECKING:
    from sweephand.domain.absence import Watched
    from sweephand.domain.flow_keys.circuits import Circuit
    from sweephand.domain.operation import Operation
    from sweephand.server.security.caller import Caller, Credential

with lazy():
    from sweephand.domain import alerts


def run_ended(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> None:
    """Publishes the end of a run, or of a line for many occurrences, and the alerts that its job asks for.

    If this run found that the schedule cannot be read, publishes that as well.
    """
    collection = job.collection if job is not None else _last_collection(world, run)
    if collection is None:
        return  # the job was deleted long ago, and its end was published
    new_events = [event.of_run(run, job, collection)]
    if job is not None:
        new_events += alerts.requested(run, job, schedule)
    if job is not None and schedule is not None and _found_broken(run, schedule):
        new_events.append(event.of_broken(schedule, job, run.finished_at or run.planned_at))
    _publish_of_run(world, run, _choice(world, run.tenant, collection), new_events)


def _publish_of_run(world: World, run: Run, choice: Events, new_events: Iterable[Event]) -> None:
    for each in _publish(world, choice, new_events):
        ledger.note(world.table, run, f"the event {each.type} could not be published")


def run_retrying(world: World, run: Run, job: Job) -> None:
    """Publishes that an attempt failed and another one follows. Call it before the next message is sent.

    Then a crash leaves a message that comes back and publishes the event again. The collection's choice counts as the
    gate read it. An attempt whose task no worker knew did not fail.
    """
    if run.reason is Reason.UNKNOWN_TASK:
        return
    choice = world.terms.of(job.tenant, job.collection, kept_s=math.inf).events
    if choice is Events.ALL:
        _publish_of_run(world, run, choice, [event.of_retry(run, job)])


def _found_broken(run: Run, schedule: Schedule) -> bool:
    unread = run.reason is Reason.BAD_PAYLOAD and run.first_started_at is None
    return unread and schedule.state is ScheduleState.BROKEN and schedule.generation == run.generation


def _last_collection(world: World, run: Run) -> str | None:
    """Returns the collection of a deleted job from its clean-up row; None if that is gone too."""
    item = world.table.get(CleanUpItem, keys.job(run.tenant, run.job_id), keys.clean_up("job"))
    return item.collection if item is not None else None


def schedule_completed(world: World, schedule: Schedule, reason: StateReason, job: Job) -> None:
    at = schedule.modified_at if schedule.last_planned_at is None else schedule.last_planned_at
    _publish(world, _choice(world, job.tenant, job.collection), [event.of_completed(schedule, reason, job, at)])


def schedule_deactivated(world: World, schedule: Schedule, job: Job) -> None:
    """Publishes that the service switched a schedule off because its target could not be reached."""
    new_event = event.of_deactivated(schedule, StateReason.UNREACHABLE, job)
    _publish(world, _choice(world, job.tenant, job.collection), [new_event])


def schedule_moved(world: World, schedule: Schedule, job: Job, old: datetime, new: datetime) -> None:
    """Publishes that newer zone data has moved an occurrence."""
    new_event = event.of_moved(schedule, job, old, new, world.clock.now())
    _publish(world, _choice(world, job.tenant, job.collection), [new_event])


# Changes by callers. Call these only if the collection publishes all events.


def job_created(world: World, job: Job, actor: str | None, reason: str | None) -> None:
    _publish(world, Events.ALL, [event.of_job(EventType.JOB_CREATED, job, actor, reason)])


def job_deleted(world: World, job: Job, actor: str | None, reason: str | None) -> None:
    """Publishes that a job was deleted. job: as it was."""
    _publish(world, Events.ALL, [event.of_job(EventType.JOB_DELETED, job, actor, reason)])


def job_changed(
    world: World, before: Job, after: Job, actor: str | None, reason: str | None, *, schedules_too: bool
) -> None:
    _publish(world, Events.ALL, event.of_change(before, after, actor, reason, schedules_too=schedules_too))


def collection_switched(world: World, collection: Collection) -> None:
    """Publishes that a collection was enabled or disabled. collection: as it is now."""
    _publish(world, Events.ALL, [event.of_switch(collection)])


# Findings of the audit


def audit_finding(world: World, finding: Finding, schedule: Schedule, count: int) -> None:
    """Publishes a finding that the audit has repaired. Reads the job once."""
    job = jobs.read_job(world.table, schedule.tenant, schedule.job_id)
    if job is not None:
        new_event = event.of_finding(finding, schedule, job, count, world.clock.now())
        _publish(world, _choice(world, job.tenant, job.collection), [new_event])


def errors_expire(world: World, group: Group, job: Job | None, count: int, first: datetime, now: datetime) -> None:
    """Publishes that unresolved failed runs will soon be deleted at the end of their retention.

    first: when the first of them will be deleted.
    """
    new_event = event.of_expiring(group, job, count, first, now)
    _publish(world, _choice(world, group.tenant, group.collection), [new_event])


def errors_archived(world: World, group: Group, run_id: str | None, actor: str | None, at: datetime) -> None:
    """Publishes that a group of errors, or one failed run of it, was archived. actor None: by the service itself."""
    _publish_archiving(world, EventType.ERRORS_ARCHIVED, group, run_id, actor, at)


def errors_restored(world: World, group: Group, run_id: str | None, actor: str | None, at: datetime) -> None:
    """Publishes that a group of errors, or one failed run of it, is open again."""
    _publish_archiving(world, EventType.ERRORS_RESTORED, group, run_id, actor, at)


def _publish_archiving(
    world: World, kind: EventType, group: Group, run_id: str | None, actor: str | None, at: datetime
) -> None:
    if _choice(world, group.tenant, group.collection) is Events.ALL:
        job = jobs.read_job(world.table, group.tenant, group.signature.job_id)
        _publish(world, Events.ALL, [event.of_archiving(kind, group, job, run_id, actor, at)])


def error_edited(world: World, failed: Run, rerun: Run, job: Job, actor: str | None) -> None:
    """Publishes that a failed run is run again with an edit. job: the job of the rerun."""
    if _choice(world, job.tenant, job.collection) is Events.ALL:
        at = rerun.enqueued_at or rerun.planned_at
        new_event = event.of_rerun(EventType.ERRORS_EDITED, failed, job, job.collection, rerun.id, actor, at)
        _publish(world, Events.ALL, [new_event])


def error_resolved(world: World, rerun: Run, job: Job) -> None:
    """Publishes that the rerun of a failed run succeeded. Reads the failed run if all events are wanted."""
    assert rerun.rerun_of is not None
    if _choice(world, job.tenant, job.collection) is not Events.ALL:
        return
    failed = ledger.read(world.table, rerun.tenant, *rerun.rerun_of.split("_"))
    if failed is not None and failed.state in FAILED:
        at = rerun.finished_at or rerun.planned_at
        new_event = event.of_rerun(EventType.ERRORS_RESOLVED, failed, job, job.collection, rerun.id, None, at)
        _publish(world, Events.ALL, [new_event])


def operation_failed(world: World, operation: Operation) -> None:
    """Publishes that an operation failed, by its own error or by its dead letter. Collections cannot opt out."""
    _publish(world, Events.FAILURES, [event.of_operation(operation)])


# Applications, consumers and targets. Collections cannot opt out.


def away(world: World, watched: Watched, members: Mapping[str, Any], at: datetime) -> None:
    """Publishes that nobody receives what waits for an application or a consumer, or that a target does not answer."""
    _publish(world, Events.FAILURES, [event.of_away(watched, members, at)])


def back(world: World, watched: Watched, reason: str, at: datetime) -> None:
    """Publishes that an application, a consumer or a target is no longer away. watched: as it was meanwhile."""
    _publish(world, Events.FAILURES, [event.of_back(watched, reason, at)])


# Changes of access. Collections cannot opt out; changes by the service itself are not published.


def _publish_access(world: World, new_event: Event) -> None:
    if new_event.detail["actor"] is not None:
        _publish(world, Events.FAILURES, [new_event])


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
    """Publishes a change of a tenant. what: the second part of the event's type. tenant: as it is after the change."""
    _publish_access(world, event.of_tenant(EventType(f"tenant.{what}"), tenant, actor, world.clock.now()))


# Circuits of flow keys


def circuit_changed(world: World, opened: Circuit, flow_key: str, job: Job, *, closed: bool) -> None:
    """Publishes that a circuit was opened or closed.

    opened: the circuit while it is, or was, open. job: the job whose call caused the change; its collection decides
    whether the event is wanted.
    """
    kind = event.EventType.CIRCUIT_CLOSED if closed else event.EventType.CIRCUIT_OPENED
    at = opened.opened_at if not closed else None
    new_event = event.of_circuit(kind, opened, flow_key, job, at or world.clock.now())
    _publish(world, _choice(world, job.tenant, job.collection), [new_event])


def _choice(world: World, tenant: str, collection: str) -> Events:
    return world.terms.of(tenant, collection).events


def _publish(world: World, choice: Events, events: Iterable[Event]) -> Sequence[Event]:
    """Publishes the events that the collection chose. Returns those that were not sent."""
    chosen = event.wanted(events, choice)
    unsent = world.bus.publish(chosen) if chosen else []
    for each in unsent:
        world.journal.error("an event was not published", kind=each.type, tenant=each.detail["tenant"])
    if unsent:
        world.journal.count("EventsUnsent", len(unsent))
    return unsent
