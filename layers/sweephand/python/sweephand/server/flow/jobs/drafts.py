"""Turns a caller's drafts into rows, and into the payloads and secrets that are written together with the job's row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.domain.job import (
    ActionDraft,
    ActionSpec,
    Job,
    JobDraft,
    Payload,
    ScheduleDraft,
    by_owner,
    hook_owner,
)
from sweephand.domain.occurrences.lateness import RATE_PER_MINUTE, Misfire, Policy
from sweephand.domain.runs import run_action
from sweephand.domain.schedule import Schedule
from sweephand.schedules.timing import Timing
from sweephand.server import actions
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Op
from sweephand.server.store.jobs import jobs

if TYPE_CHECKING:
    from sweephand.server.security.guard import GuardSettings


def _alike(draft: type, record: type, but: set[str]) -> tuple[str, ...]:
    """Returns the members that a draft and its record have in common, except those in `but`."""
    names = {each.name for each in fields(record)} - but
    return tuple(each.name for each in fields(draft) if each.name in names)


OF_JOB = _alike(JobDraft, Job, {"name", "action", "error_action", "hooks", "facade", "ordinal", "attributes"})
OF_SCHEDULE = _alike(ScheduleDraft, Schedule, {"id", "name", "hooks", "attributes"})
"""The members that are stored exactly as requested."""


def alike(record: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


@dataclass
class Parts:
    """The parts of a job's actions that its transaction writes in rows of their own.

    payloads: by owner. secrets: in clear text, by field. kept: fields whose stored secret stays.
    """

    payloads: dict[str, Payload] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)


def job_from(
    draft: JobDraft, tenant: str, job_id: str, now: datetime, version: int, before: Job | None = None
) -> tuple[Job, Parts]:
    """Returns the job as it will be, and the parts that are written together with it. version: its new revision.

    Raises InvalidRequest.
    """
    parts = Parts()
    for owner, asked in by_owner(draft.action, draft.error_action, draft.hooks).items():
        actions.check(asked, owner, now, reaction_of=None if owner == "action" else job_id)
        if asked.payload is not None:
            parts.payloads[owner] = asked.payload
        parts.secrets |= {f"{owner}.{name}": value for name, value in asked.secrets.items()}
        parts.kept |= {f"{owner}.{name}" for name in asked.kept}
    job = Job(
        **alike(draft, OF_JOB),
        **_each_action(draft, lambda _, asked: _spec(asked, version)),
        tenant=tenant,
        id=job_id,
        name=draft.name or job_id,
        created_at=before.created_at if before else now,
        modified_at=now,
        facade=before.facade if before else draft.facade,
        secret_version=version if parts.secrets or parts.kept else None,
        revision=version,
        pause=before.pause if before else None,
        number=before.number if before else 0,
        ordinal=before.ordinal if before else draft.ordinal,
        own_runs=before.own_runs if before else False,
        attributes=before.attributes if before and draft.attributes is None else draft.attributes or {},
        **_place(draft, before),
    )
    return job, parts


def _place(draft: JobDraft, before: Job | None) -> dict[str, Any]:
    """Returns the set that owns the job, and its key there."""
    if draft.membership is not None:
        return {"job_set": draft.membership.job_set, "key": draft.membership.key}
    return {"job_set": before.job_set, "key": before.key} if before else {}


def keep_payloads(job: Job, before: Job, parts: Parts, stored: Mapping[str, Payload]) -> Job:
    """Keeps the stored version of every payload that did not change, and drops it from the parts."""
    stored_actions = by_owner(before.action, before.error_action, before.hooks)

    def kept(owner: str, new: ActionSpec) -> ActionSpec:
        if owner not in stored_actions or owner not in parts.payloads or parts.payloads[owner] != stored.get(owner):
            return new
        del parts.payloads[owner]
        return replace(new, payload_version=stored_actions[owner].payload_version)

    return replace(job, **_each_action(job, kept))


def job_as_stored(job: Job, payloads: Mapping[str, Payload], guard: GuardSettings) -> JobDraft:
    """Returns the draft that requests a job as it is stored; its schedules stay. payloads: the stored ones."""
    return JobDraft(
        **alike(job, OF_JOB),
        **_each_action(job, lambda owner, spec: actions.as_stored(spec, payloads.get(owner), guard)),
        name=job.name,
        schedules=None,
        facade=job.facade,
        ordinal=job.ordinal,
        attributes=job.attributes,
    )


def as_stored(schedule: Schedule, payload: Payload | None = None) -> ScheduleDraft:
    """Returns the draft that requests a schedule as it is stored. payload: its own, if it has one."""
    return ScheduleDraft(
        **alike(schedule, OF_SCHEDULE),
        name=schedule.name,
        payload=payload,
        id=schedule.id,
        attributes=schedule.attributes,
    )


def requested_members(draft: ScheduleDraft, schedule_id: str, job: Job, timing: Timing) -> dict[str, Any]:
    """Returns the members of a schedule's row that its draft determines. job: as it will be."""
    misfire: Any = draft.policies.get("misfire") or job.policies.get("misfire") or {}
    rate = int(misfire.get("ratePerMinute", RATE_PER_MINUTE))
    return {
        **alike(draft, OF_SCHEDULE),
        "name": draft.name or schedule_id,
        "packed": timing.packed,
        "misfire": str(Policy(Misfire(misfire.get("type", "sap")), rate, misfire.get("maxLatenessSeconds"))),
        "lane": run_action.lane_of(job.action, job.tenant),
    }


def _each_action(job: Job | JobDraft, made: Callable[[str, Any], object]) -> dict[str, Any]:
    """Returns the members that hold a job's actions, each converted by `made`, which gets the owner and the action."""
    return {
        "action": made("action", job.action),
        "error_action": made("errorAction", job.error_action) if job.error_action is not None else None,
        "hooks": {name: made(hook_owner(name), hook) for name, hook in job.hooks.items()},
    }


def _spec(draft: ActionDraft, version: int) -> ActionSpec:
    return ActionSpec(draft.kind, draft.params, draft.retry, version if draft.payload is not None else None)


def seal(world: World, job: Job, parts: Parts, before: Job | None = None) -> dict[str, str]:
    """Returns the ciphertexts by field: encrypts new secrets and copies kept ones from the stored item."""
    sealed = {
        name: world.secrets.encrypt(job.tenant, job.id, name, value) for name, value in sorted(parts.secrets.items())
    }
    if parts.kept:
        version = before.secret_version if before else None
        stored = jobs.read_secrets(world.table, job.tenant, job.id, version) if version is not None else {}
        for name in sorted(parts.kept):
            if name not in stored:
                raise InvalidRequest(name, "there is no stored value to keep; give the value")
            sealed[name] = stored[name]
    return sealed


def part_ops(world: World, job: Job, parts: Parts, sealed: Mapping[str, str]) -> list[Op]:
    ops = [
        jobs.payload_op(world.table, job.tenant, job.id, owner, job.revision, payload)
        for owner, payload in parts.payloads.items()
    ]
    if sealed:
        ops.append(jobs.secret_op(world.table, job.tenant, job.id, job.revision, sealed))
    return ops
