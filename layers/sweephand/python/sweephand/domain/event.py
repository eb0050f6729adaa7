"""The events published on the bus: a small closed catalogue, and the event for each fact. Pure.

An event contains ids, names, timestamps, states and reasons. It never contains a payload, an address, a secret or an
answer. The same fact always gives the same event with the same id, so that a receiver can drop duplicates. Source:
decision 0020.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sweephand.base.records import dataclass
from sweephand.domain.collection import Collection, CollectionState, Events, Tenant
from sweephand.domain.failure import Group, Signature, signature_of
from sweephand.domain.instants import epoch_ms, text_ms
from sweephand.domain.job import Job
from sweephand.domain.run import FAILED, Reason, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState, StateReason

if TYPE_CHECKING:
    from sweephand.domain.absence import Watched
    from sweephand.domain.flow_keys.circuits import Circuit
    from sweephand.domain.operation import Operation

SOURCE = "sweephand"
VERSION = 1
"""The version of the detail. It is raised if a member is removed or changes its meaning, not if one is added."""


class EventType(StrEnum):
    """The detail-type of an event. The part before the dot is its subject."""

    RUN_SUCCEEDED = "run.succeeded"
    RUN_FAILED = "run.failed"
    RUN_RETRYING = "run.retrying"
    RUN_SKIPPED = "run.skipped"
    RUN_MISSED = "run.missed"
    RUN_EXPIRED = "run.expired"
    RUN_CANCELLED = "run.cancelled"
    OCCURRENCES_MISSED = "occurrences.missed"
    OCCURRENCES_EXPIRED = "occurrences.expired"
    OCCURRENCES_SKIPPED = "occurrences.skipped"
    OCCURRENCES_CANCELLED = "occurrences.cancelled"
    SCHEDULE_COMPLETED = "schedule.completed"
    SCHEDULE_BROKEN = "schedule.broken"
    SCHEDULE_DEACTIVATED = "schedule.deactivated"
    SCHEDULE_MOVED = "schedule.moved"
    JOB_CREATED = "job.created"
    JOB_CHANGED = "job.changed"
    JOB_DELETED = "job.deleted"
    JOB_ACTIVATED = "job.activated"
    JOB_DEACTIVATED = "job.deactivated"
    JOB_PAUSED = "job.paused"
    JOB_RESUMED = "job.resumed"
    COLLECTION_ENABLED = "collection.enabled"
    COLLECTION_DISABLED = "collection.disabled"
    AUDIT_FINDING = "audit.finding"
    ERRORS_EXPIRING = "errors.expiring"
    ERRORS_ARCHIVED = "errors.archived"
    ERRORS_RESTORED = "errors.restored"
    ERRORS_EDITED = "errors.edited"
    ERRORS_RESOLVED = "errors.resolved"
    CIRCUIT_OPENED = "circuit.opened"
    CIRCUIT_CLOSED = "circuit.closed"
    APPLICATION_AWAY = "application.away"
    APPLICATION_BACK = "application.back"
    CONSUMER_AWAY = "consumer.away"
    CONSUMER_BACK = "consumer.back"
    TARGET_AWAY = "target.away"
    TARGET_BACK = "target.back"
    OPERATION_FAILED = "operation.failed"
    CREDENTIAL_CREATED = "credential.created"
    CREDENTIAL_ROTATED = "credential.rotated"
    CREDENTIAL_FORMER_ENDED = "credential.former-ended"
    CREDENTIAL_DELETED = "credential.deleted"
    SIGNING_KEY_CREATED = "signing-key.created"
    SIGNING_KEY_DELETED = "signing-key.deleted"
    TENANT_CREATED = "tenant.created"
    TENANT_CHANGED = "tenant.changed"
    TENANT_ENABLED = "tenant.enabled"
    TENANT_DISABLED = "tenant.disabled"
    TENANT_DELETED = "tenant.deleted"
    ALERT_RAISED = "alert.raised"
    ALERT_STATUS = "alert.status"


class Finding(StrEnum):
    """A defect that the audit repairs."""

    SERIES_STOPPED = "SERIES_STOPPED"
    RUNS_LOST = "RUNS_LOST"


OF_STATE: Mapping[State, EventType] = {
    State.SUCCESS: EventType.RUN_SUCCEEDED,
    **dict.fromkeys(FAILED, EventType.RUN_FAILED),
    State.SKIPPED: EventType.RUN_SKIPPED,
    State.MISSED: EventType.RUN_MISSED,
    State.EXPIRED: EventType.RUN_EXPIRED,
    State.CANCELLED: EventType.RUN_CANCELLED,
}
"""The event for one run, by its final state."""
OF_LINE: Mapping[State, EventType] = {
    State.SKIPPED: EventType.OCCURRENCES_SKIPPED,
    State.MISSED: EventType.OCCURRENCES_MISSED,
    State.EXPIRED: EventType.OCCURRENCES_EXPIRED,
    State.CANCELLED: EventType.OCCURRENCES_CANCELLED,
}
"""The event for a ledger range, which stands for many occurrences. A range can have no other state."""

USER_REASONS = frozenset(
    {
        Reason.PAUSED,
        Reason.DISABLED,
        Reason.CALENDAR,
        Reason.BY_HAND,
        Reason.BY_USER,
        Reason.OWNER_GONE,
    }
)
"""Reasons that follow from a user's own decision, so that subscribers who watch for failures need no event."""
QUIET = frozenset(
    {
        EventType.RUN_SUCCEEDED,
        EventType.RUN_RETRYING,
        EventType.SCHEDULE_COMPLETED,
        EventType.ERRORS_ARCHIVED,
        EventType.ERRORS_RESTORED,
        EventType.ERRORS_EDITED,
        EventType.ERRORS_RESOLVED,
        *(kind for kind in EventType if kind.value.startswith(("job.", "collection."))),
    }
)
"""Success and changes made by users: published only if the collection asks for all events."""


@dataclass(frozen=True)
class Event:
    """An event for the bus. at: when it happened. quiet: whether it is neither a failure nor a surprise."""

    type: EventType
    id: str
    at: datetime
    detail: Mapping[str, Any]
    quiet: bool


def wanted(events: Iterable[Event], choice: Events) -> list[Event]:
    """Returns the events that a collection with this choice publishes."""
    if choice is Events.NONE:
        return []
    return [event for event in events if choice is Events.ALL or not event.quiet]


# From facts to events


def of_run(run: Run, job: Job | None, collection: str) -> Event:
    """Returns the event for a finished run or a ledger range. job: None if it was deleted."""
    assert run.finished
    kind = OF_STATE[run.state] if run.range_count is None else OF_LINE[run.state]
    members = {"runId": run.id, "scheduleId": run.schedule_id, "state": run.state.value, "reason": run.reason}
    members |= {"plannedAt": text_ms(run.planned_at)} | (_of_one(run) if run.range_count is None else _of_many(run))
    who = {**job_members(job), "jobId": run.of_job}
    return event_of(kind, run.id, run.finished_at or run.planned_at, run.tenant, collection, who | members)


def of_retry(run: Run, job: Job) -> Event:
    """Returns the event for an attempt that failed, while the run waits for the next one."""
    assert run.state is State.RETRY_WAIT
    failed, at = run.attempt - 1, run.finished_at or run.planned_at
    members: dict[str, Any] = {
        "runId": run.id,
        "scheduleId": run.schedule_id,
        "state": run.state.value,
        "reason": run.reason,
    }
    members |= {"plannedAt": text_ms(run.planned_at), **_of_one(run), "attempt": failed}
    members |= {"nextAttemptAt": text_ms(run.not_before or at)}
    key = f"{run.id}:{failed}"
    return event_of(EventType.RUN_RETRYING, key, at, run.tenant, job.collection, job_members(job) | members)


def _of_one(run: Run) -> dict[str, Any]:
    started = run.first_started_at or run.started_at
    return {
        "kind": run.kind.value,
        "startedAt": None if started is None else text_ms(started),
        "finishedAt": text_ms(run.finished_at or run.planned_at),
        "latenessMs": run.lateness_ms,
        "attempt": run.attempt,
        "maxAttempts": run.max_attempts,
        "httpStatus": run.http_status,
        "parentRunId": run.parent_id,
    }


def _of_many(run: Run) -> dict[str, Any]:
    return {"range": {"until": text_ms(run.range_until or run.planned_at), "count": run.range_count}}


def of_completed(schedule: Schedule, reason: StateReason, job: Job, at: datetime) -> Event:
    """Returns the event for a schedule whose runs have all ended. at: when the last of them ended.

    schedule: COMPLETED, or FAULTED if its only run failed.
    """
    return _of_schedule(EventType.SCHEDULE_COMPLETED, schedule, schedule.state, reason, job, at)


def of_broken(schedule: Schedule, job: Job, at: datetime) -> Event:
    """Returns the event for a schedule whose stored timing cannot be read. at: when this was found."""
    reason = StateReason.UNREADABLE
    return _of_schedule(EventType.SCHEDULE_BROKEN, schedule, ScheduleState.BROKEN, reason, job, at)


def of_deactivated(schedule: Schedule, reason: StateReason, job: Job) -> Event:
    """Returns the event for a schedule that the service switched off. schedule: its state after that."""
    return _of_schedule(EventType.SCHEDULE_DEACTIVATED, schedule, schedule.state, reason, job, schedule.modified_at)


def of_moved(schedule: Schedule, job: Job, old: datetime, new: datetime, at: datetime) -> Event:
    """Returns the event for an occurrence that newer zone data has moved from one instant to another."""
    members = {"scheduleId": schedule.id, "scheduleName": schedule.name, "from": text_ms(old), "to": text_ms(new)}
    key = f"{schedule.id}:{int(old.timestamp())}:{int(new.timestamp())}"
    return event_of(EventType.SCHEDULE_MOVED, key, at, job.tenant, job.collection, job_members(job) | members)


def _of_schedule(
    kind: EventType, schedule: Schedule, state: ScheduleState, reason: StateReason, job: Job, at: datetime
) -> Event:
    members = {
        "scheduleId": schedule.id,
        "scheduleName": schedule.name,
        "state": state.value,
        "reason": reason.value,
        "generation": schedule.generation,
        "plannedTotal": schedule.planned_total,
    }
    key = f"{schedule.id}:{schedule.generation}"
    return event_of(kind, key, at, job.tenant, job.collection, job_members(job) | members)


def of_finding(finding: Finding, schedule: Schedule, job: Job, count: int, at: datetime) -> Event:
    """Returns the event for a repair by the audit. count: how many runs it concerns. One event per finding and hour."""
    members = {"scheduleId": schedule.id, "finding": finding.value, "count": count}
    key = f"{schedule.id}:{finding.value}:{int(at.timestamp()) // 3_600}"
    return event_of(EventType.AUDIT_FINDING, key, at, job.tenant, job.collection, job_members(job) | members)


def of_expiring(group: Group, job: Job | None, count: int, first: datetime, at: datetime) -> Event:
    """Returns the event for open failures that will expire. job: None if deleted. first: when the first one expires."""
    key, members = f"{group.id}:{int(first.timestamp())}", {"count": count, "expiresAt": text_ms(first)}
    who = job_members(job) | _of_signature(group.signature)
    return event_of(EventType.ERRORS_EXPIRING, key, at, group.tenant, group.collection, who | members)


def of_archiving(
    kind: EventType, group: Group, job: Job | None, run_id: str | None, actor: str | None, at: datetime
) -> Event:
    """Returns the event for failures that were archived or restored. run_id: None for the whole group."""
    members = {"runId": run_id, "actor": actor}
    key = f"{run_id or group.id}:{epoch_ms(at)}"
    who = job_members(job) | _of_signature(group.signature)
    return event_of(kind, key, at, group.tenant, group.collection, who | members)


def of_rerun(
    kind: EventType, failed: Run, job: Job | None, collection: str, rerun: str, actor: str | None, at: datetime
) -> Event:
    """Returns the event for a failed run whose rerun began with an edit, or succeeded. rerun: its whole id."""
    members = {"runId": failed.id, "rerunId": rerun, "actor": actor}
    who = job_members(job) | _of_signature(signature_of(failed))
    return event_of(kind, rerun, at, failed.tenant, collection, who | members)


def _of_signature(signature: Signature) -> dict[str, Any]:
    return {
        "jobId": signature.shown_job_id,
        "errorGroup": signature.id,
        "state": signature.state.value,
        "reason": signature.reason,
    }


def of_circuit(kind: EventType, circuit: Circuit, flow_key: str, job: Job, at: datetime) -> Event:
    """Returns the event for a target's circuit under a flow key.

    circuit: its state while it was open. job: the job whose call opened or closed it. Two calls that see the same
    opening, or close the circuit at the same time, give the same event.
    """
    assert circuit.opened_at is not None
    members = {
        "flowKey": flow_key,
        "circuit": circuit.id,
        "openedAt": text_ms(circuit.opened_at),
        "failures": circuit.failures,
        "reason": circuit.reason,
    }
    key = f"{flow_key}:{circuit.id}:{epoch_ms(circuit.opened_at)}"
    return event_of(kind, key, at, job.tenant, job.collection, job_members(job) | members)


def of_away(watched: Watched, members: Mapping[str, Any], at: datetime) -> Event:
    """Returns the event for something that is away. members: how much waits, or why a target does not answer."""
    return _of_watch("away", watched, at, members)


def of_back(watched: Watched, reason: str, at: datetime) -> Event:
    """Returns the event for something that is no longer away."""
    assert watched.away_at is not None
    return _of_watch("back", watched, at, {"awayAt": text_ms(watched.away_at), "reason": reason})


def _of_watch(what: str, watched: Watched, at: datetime, members: Mapping[str, Any]) -> Event:
    assert watched.watched_since is not None
    kind, key = EventType(f"{watched.noun}.{what}"), f"{watched.event_key}:{epoch_ms(watched.watched_since)}"
    who = {**watched.in_events, "since": text_ms(watched.watched_since)}
    return event_of(kind, key, at, watched.tenant, None, {**who, **members})


def of_operation(operation: Operation) -> Event:
    """Returns the event for an operation that failed. It has no collection and, for the provider's, no tenant."""
    assert operation.ended_at is not None
    members = {
        "operationId": operation.id,
        "kind": operation.kind.value,
        "state": operation.state.value,
        "cause": operation.cause,
        "done": operation.done,
        "failed": operation.failed,
        "total": operation.total,
        "startedAt": text_ms(operation.started_at),
    }
    key = f"{operation.id}:{epoch_ms(operation.ended_at)}"
    return event_of(EventType.OPERATION_FAILED, key, operation.ended_at, operation.tenant, None, members)


def of_credential(
    kind: EventType, credential: Mapping[str, Any], tenant: str | None, actor: str | None, at: datetime
) -> Event:
    """Returns the event for a credential that was created, rotated or deleted, or that lost its former secret.

    credential: client_id, scopes, generation and former_until (the instant until which its former secret is accepted).
    """
    until = credential["former_until"]
    members = {
        "actor": actor,
        "clientId": credential["client_id"],
        "scopes": sorted(credential["scopes"]),
        "formerSecretUntil": None if until is None else text_ms(until),
    }
    key = f"{credential['client_id']}:{credential['generation']}"
    return event_of(kind, key, at, tenant, None, members)


def of_signing_key(
    kind: EventType, tenant: str, collection: str, key_id: str, actor: str | None, at: datetime
) -> Event:
    """Returns the event for a signing key that was created or deleted."""
    members = {"actor": actor, "signingKey": key_id}
    return event_of(kind, key_id, at, tenant, collection, members)


def of_tenant(kind: EventType, tenant: Tenant, actor: str | None, at: datetime) -> Event:
    """Returns the event for a tenant that was created, changed, enabled, disabled or is being deleted."""
    members = {
        "actor": actor,
        "state": tenant.state.value,
        "withheldScopes": sorted(tenant.withheld),
        "applications": sorted(tenant.applications),
    }
    return event_of(kind, f"{tenant.name}:{epoch_ms(at)}", at, tenant.name, None, members)


def of_job(kind: EventType, job: Job, actor: str | None = None, reason: str | None = None) -> Event:
    """Returns the event for a user's change to a job. job: its state after the change; for job.deleted, before it.

    actor, reason: who made the change, and why in their words; None for the service, and if they gave none.
    """
    members = {"revision": job.revision, "active": job.active, "paused": job.pause is not None, "facade": job.facade}
    members |= {"actor": actor, "reason": reason}
    key = f"{job.id}:{job.revision}"
    return event_of(kind, key, job.modified_at, job.tenant, job.collection, job_members(job) | members)


def of_switch(collection: Collection) -> Event:
    """Returns the event for a collection that was just enabled or disabled."""
    on = collection.state is CollectionState.ENABLED
    kind = EventType.COLLECTION_ENABLED if on else EventType.COLLECTION_DISABLED
    assert collection.modified_at is not None
    members = {"state": collection.state.value, "revision": collection.revision}
    key = f"{collection.tenant}:{collection.name}:{collection.revision}"
    return event_of(kind, key, collection.modified_at, collection.tenant, collection.name, members)


def of_change(
    before: Job, after: Job, actor: str | None = None, reason: str | None = None, *, schedules_too: bool
) -> list[Event]:
    """Returns the events for one change: one for each switch that changed, and job.changed for everything else.

    schedules_too: whether a schedule was added, deleted or changed.
    """
    kinds = []
    if before.active != after.active:
        kinds.append(EventType.JOB_ACTIVATED if after.active else EventType.JOB_DEACTIVATED)
    if before.pause != after.pause:
        kinds.append(EventType.JOB_RESUMED if after.pause is None else EventType.JOB_PAUSED)
    if schedules_too or _described(before) != _described(after):
        kinds.append(EventType.JOB_CHANGED)
    return [of_job(kind, after, actor, reason) for kind in kinds]


def _described(job: Job) -> dict[str, Any]:
    apart = {"active", "pause", "revision", "modified_at", "state_reason", "schedule_ids"}
    apart |= {"many_schedules", "schedule_count"}
    return {name: value for name, value in vars(job).items() if name not in apart}


def job_members(job: Job | None) -> dict[str, Any]:
    if job is None:
        return {"jobName": None, "resourceId": None, "tags": []}
    if job.of_message:
        return {"jobId": None, "jobName": None, "resourceId": job.resource_id, "tags": list(job.tags)}
    return {"jobId": job.id, "jobName": job.name, "resourceId": job.resource_id, "tags": list(job.tags)}


def event_of(
    kind: EventType, key: str, at: datetime, tenant: str | None, collection: str | None, members: Mapping[str, Any]
) -> Event:
    """Returns an event. key: identifies the fact among all events of this type."""
    own_id = f"{kind.value}:{key}"
    envelope = {
        "version": VERSION,
        "id": own_id,
        "tenant": tenant,
        "collection": collection,
        "occurredAt": text_ms(at),
    }
    quiet = kind in QUIET or members.get("reason") in USER_REASONS
    return Event(kind, own_id, at, {**envelope, **members}, quiet)
