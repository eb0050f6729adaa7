"""Makes the schedules that a request adds to a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sweephand.domain.collection import Collection, Usage
from sweephand.domain.instants import text
from sweephand.domain.job import SCHEDULES_AT_ONCE, Job, ScheduleDraft
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.errors import InvalidRequest
from sweephand.flow.jobs import drafts
from sweephand.flow.jobs.lookup import by_creation
from sweephand.flow.series import replan
from sweephand.flow.tenants import tenancy
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.schedules.timing import Timing
from sweephand.store.dynamo.conditional import Op

if TYPE_CHECKING:
    from sweephand.store.jobs.own_hooks import ByName

with lazy():
    from sweephand.domain.jobs import job_state
    from sweephand.flow.job_parts import schedule_hooks
    from sweephand.store.jobs import own_hooks as hook_rows


def named_hooks(version: int, hooks: Mapping[str, object] | None) -> str | None:
    """Returns the entry for a schedule's own hooks in its row; None if it has none."""
    if not hooks:
        return None
    return str(job_state.OwnHooks.of(version, hooks))


def hook_ops(world: World, schedule: Schedule, hooks: ByName | None) -> list[Op]:
    """Returns the operation that writes a schedule's new hooks, in the same transaction as its row."""
    if not hooks:
        return []
    return [hook_rows.put_op(world.table, schedule, hooks)]


def within_quota(collection: Collection, seen: Usage, schedule: Schedule, path: str) -> Schedule:
    """Returns a new schedule within the limits of its collection and of the provider. Raises QuotaExceeded."""
    timing = drafts.stored_timing(schedule)
    tenancy.check_interval(collection, seen, timing, path)
    return replace(schedule, packed=tenancy.bounded(collection, timing, timing.count, path).packed)


def minted_at(now: datetime, n: int) -> datetime:
    """Returns the instant for the id of a request's n-th schedule: ids sort by millisecond and keep the order."""
    return now + timedelta(milliseconds=n)


def new_schedule(
    world: World,
    draft: ScheduleDraft,
    job: Job,
    parts: drafts.Parts,
    minted_at: datetime,
    now: datetime,
    path: str,
) -> Schedule:
    schedule_id = world.chance.new_id(minted_at)
    try:
        timing = drafts.timing_of(draft, job, schedule_id, now, may_be_empty=draft.activation is not None)
    except InvalidRequest as wrong:
        raise (wrong.within(path) if path else wrong) from wrong
    if draft.payload is not None:
        parts.payloads[schedule_id] = draft.payload
    if draft.hooks:
        parts.hooks[schedule_id] = schedule_hooks.sealed(world, job, schedule_id, draft.hooks, {}, path)
    schedule = Schedule(
        **drafts.alike(draft, drafts.OF_SCHEDULE),
        tenant=job.tenant,
        job_id=job.id,
        id=schedule_id,
        name=draft.name or schedule_id,
        packed=timing.packed,
        lane=drafts.lane_of(job),
        collection=job.collection,
        created_at=now,
        modified_at=now,
        misfire=drafts.misfire_of(draft, job),
        payload_version=job.revision if draft.payload is not None else None,
        hooks=named_hooks(job.revision, draft.hooks),
        attributes=draft.attributes or {},
    )
    planned = replan.first_plan(schedule, job, timing, now, drafts.first_instant(draft, job, timing, now))
    if planned.state is ScheduleState.ACTIVE and planned.next_run_at is None:
        if draft.activation is not None or drafts.may_be_over(draft, job):
            return replan.over_at_once(planned, now)
        over = _over(draft, job, timing, now)
        raise over.within(path) if path else over
    return planned


def _over(draft: ScheduleDraft, job: Job, timing: Timing, now: datetime) -> InvalidRequest:
    """Returns the error for a schedule without an occurrence, with the member at fault unless the job is over."""
    field: str | None = timing.notation
    if draft.timing.get("endTime") is not None and timing.ends_at <= now:
        field = "endTime"
    elif job.end_at is not None and job.end_at <= now:
        field = None
    last = timing.rule.last_until(now)
    reason = "no occurrence lies ahead" if last is None else f"no occurrence lies ahead, the last was {text(last)}"
    return InvalidRequest(field, reason, code="NEVER_FIRES")


def refuse_twins(schedules: Sequence[tuple[Schedule, str]]) -> None:
    """Raises InvalidRequest if two schedules have the same name.

    schedules: each with its path in the request; the path is empty if the request does not name the schedule.
    """
    names: set[str] = set()
    for schedule, path in sorted(schedules, key=lambda pair: pair[1] != ""):
        if schedule.name in names:
            field = f"{path}.name" if path else "name"
            raise InvalidRequest(field, "another schedule of this job has this name")
        names.add(schedule.name)


def with_schedule_ids(job: Job, schedules: Sequence[Schedule]) -> Job:
    many = len(schedules) > SCHEDULES_AT_ONCE
    ids = () if many else tuple(schedule.id for schedule in by_creation(schedules))
    return replace(job, schedule_ids=ids, many_schedules=many, schedule_count=len(schedules))
