"""Compares requested schedules with stored ones and returns one validated step per schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sweephand.base.errors import InvalidRequest
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.collection import Collection, Usage
from sweephand.domain.instants import text
from sweephand.domain.job import Job, Payload, ScheduleDraft
from sweephand.domain.jobs.job_state import OFF, wanted_state
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.schedules.rule import limited_for
from sweephand.schedules.timing import Timing, load_or_never
from sweephand.server.flow.job_parts.change_log import Step
from sweephand.server.flow.jobs import drafts, schedule_timing
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.series import replan
from sweephand.server.flow.series.replan import Effect
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Op

if TYPE_CHECKING:
    from sweephand.domain.calendar import Calendar
    from sweephand.domain.job import Activation
    from sweephand.server.store.jobs.own_hooks import ByName

with lazy():
    from sweephand.domain.jobs import job_state
    from sweephand.server.flow.job_parts import named_calendars, schedule_hooks
    from sweephand.server.flow.jobs import last_instant
    from sweephand.server.store.jobs import own_hooks as store


@dataclass(frozen=True)
class ScheduleRequest:
    """The requested change of one schedule. before: None for a new schedule.

    draft: None for a schedule that stays as it is and only follows its job's state; with `recast`, it also follows its
    calendars' new versions.
    """

    before: Schedule | None
    draft: ScheduleDraft | None
    delete: bool = False
    path: str = ""
    recast: bool = False


def staying(planned: Planned) -> list[ScheduleRequest]:
    return [ScheduleRequest(schedule, None) for schedule in planned.schedules]


def matched(planned: Planned, wanted: Sequence[ScheduleDraft]) -> list[ScheduleRequest]:
    """Matches the schedules of a PUT with the stored ones, by id or else by name. The other stored ones are deleted."""
    by_id = {schedule.id: schedule for schedule in planned.schedules}
    by_name = {schedule.name: schedule for schedule in planned.schedules}
    requests, taken = [], set()
    for n, draft in enumerate(wanted):
        before = by_id.get(draft.id) if draft.id is not None else by_name.get(draft.name or "")
        if draft.id is not None and before is None:
            raise InvalidRequest(f"schedules[{n}].id", "no schedule of this job has this id")
        if before is not None and before.id in taken:
            raise InvalidRequest(f"schedules[{n}]", "another entry names the same schedule")
        if before is not None:
            taken.add(before.id)
        requests.append(ScheduleRequest(before, draft, path=f"schedules[{n}]"))
    gone = [ScheduleRequest(schedule, None, delete=True) for schedule in planned.schedules if schedule.id not in taken]
    return requests + gone


@dataclass(frozen=True)
class ChangeContext:
    """The context of one change, shared by all its requests. stored: the current payloads of its schedules.

    usage: the tenant's, with its quotas. activation: applies to the schedules that the request does not name. book: the
    calendars that the schedules name, by name.
    """

    before: Job
    after: Job
    collection: Collection
    usage: Usage
    stored: Mapping[str, Payload]
    effect: Effect
    activation: Activation | None = None
    book: Mapping[str, Calendar] = field(default_factory=dict)


def steps_of(world: World, requests: Sequence[ScheduleRequest], context: ChangeContext, now: datetime) -> list[Step]:
    """Returns one step per request. Raises InvalidRequest and QuotaExceeded with the path of the request."""
    with limited_for(len(requests)):
        steps = [_step(world, request, context, now, n) for n, request in enumerate(requests)]
    _refuse_twins(
        [(step.after, request.path) for step, request in zip(steps, requests, strict=True) if step.after is not None]
    )
    return steps


def _step(world: World, request: ScheduleRequest, context: ChangeContext, now: datetime, n: int) -> Step:
    """Returns the step for one request. n: the request's position."""
    if request.delete:
        return Step(request.before, None)
    if request.before is None:
        return _new(world, request, context, now, n)
    step, timing = _change(world, request, request.before, context, now)
    if step.after != request.before and not request.recast:
        tenancy.check_interval(context.collection, context.usage, timing, request.path)
    return step


def _new(world: World, request: ScheduleRequest, context: ChangeContext, now: datetime, n: int) -> Step:
    """Returns the step that adds a schedule. n: the request's position; the order of ids follows it."""
    assert request.draft is not None
    draft, job = replace(request.draft, book=_references(context)), context.after
    schedule_id = world.chance.new_id(now + timedelta(milliseconds=n))
    with _within(request.path):
        timing = schedule_timing.timing_of(draft, job, schedule_id, now, may_be_empty=draft.activation is not None)
        timing.check_computable(now)
    hooks = schedule_hooks.sealed(world, job, schedule_id, draft.hooks, {}, request.path) if draft.hooks else None
    schedule = Schedule(
        **drafts.requested_members(draft, schedule_id, job, timing),
        tenant=job.tenant,
        job_id=job.id,
        id=schedule_id,
        collection=job.collection,
        created_at=now,
        modified_at=now,
        payload_version=job.revision if draft.payload is not None else None,
        hooks=_named_hooks(job.revision, hooks),
        attributes=draft.attributes or {},
    )
    planned = replan.first_plan(schedule, job, timing, now, schedule_timing.first_instant(draft, job, timing, now))
    if planned.state is ScheduleState.ACTIVE and planned.next_run_at is None:
        if draft.activation is None and not schedule_timing.may_be_over(draft, job):
            raise _over(draft, job, timing, now).within(request.path)
        planned = replan.over_at_once(planned, now)
    timing = load_or_never(planned.packed)
    tenancy.check_interval(context.collection, context.usage, timing, request.path)
    timing = tenancy.bounded(context.collection, timing, timing.count, request.path)
    return Step(None, replace(planned, packed=timing.packed), payload=draft.payload, hooks=hooks)


def _over(draft: ScheduleDraft, job: Job, timing: Timing, now: datetime) -> InvalidRequest:
    """Returns the error for a schedule without an occurrence. Names the member at fault unless the job is over."""
    field: str | None = timing.notation
    if draft.timing.get("endTime") is not None and timing.ends_at <= now:
        field = "endTime"
    elif job.end_at is not None and job.end_at <= now:
        field = None
    last = timing.rule.last_until(now)
    reason = "has no future occurrence" if last is None else f"has no future occurrence; the last was {text(last)}"
    return InvalidRequest(field, reason, code="NEVER_FIRES")


def _refuse_twins(schedules: Sequence[tuple[Schedule, str]]) -> None:
    """Raises InvalidRequest if two schedules have the same name.

    schedules: each with its path in the request; the path is empty if the request does not name the schedule.
    """
    names: set[str] = set()
    for schedule, path in sorted(schedules, key=lambda pair: pair[1] != ""):
        if schedule.name in names:
            raise InvalidRequest("name", "another schedule of this job has this name").within(path)
        names.add(schedule.name)


def _named_hooks(version: int, hooks: Mapping[str, object] | None) -> str | None:
    """Returns the entry for a schedule's own hooks in its row; None if it has none."""
    return str(job_state.OwnHooks.of(version, hooks)) if hooks else None


def _change(
    world: World, request: ScheduleRequest, schedule: Schedule, context: ChangeContext, now: datetime
) -> tuple[Step, Timing]:
    """Returns the step that applies the caller's request to a stored schedule, and the new timing."""
    before, after = context.before, context.after
    draft = request.draft or replace(drafts.as_stored(schedule), activation=context.activation)
    draft, keep, strict = replace(draft, book=_references(context)), False, False
    if draft.activation is not None:
        draft, keep, strict = last_instant.settled(schedule, draft, before, after, now)
    timing, at = _plan(request, schedule, draft, context, now, keep=keep)
    if draft.timing != schedule.timing or before.collection != after.collection:
        timing = tenancy.bounded(context.collection, timing, draft.timing.get("count"), request.path)
    payload, version = None, schedule.payload_version
    if request.draft is not None and request.draft.payload != context.stored.get(schedule.id):
        payload = request.draft.payload
        version = after.revision if payload is not None else None
    hooks = _new_hooks(world, request, schedule, after)
    changed = replace(
        schedule,
        **drafts.requested_members(draft, schedule.id, after, timing),
        payload_version=version,
        hooks=schedule.hooks if hooks is None else _named_hooks(after.revision, hooks),
        state_reason=draft.because or schedule.state_reason,
        attributes=schedule.attributes if draft.attributes is None else draft.attributes,
    )
    if _asks_for_times(request, changed, context):
        _check_computable(request, schedule, timing, now)
    if strict:
        refused = last_instant.refusal(schedule, changed, after, timing, now, context.effect, at)
        if refused is not None:
            raise refused.within(request.path)
    return Step(schedule, changed, at, payload, hooks, fresh=draft.fresh), timing


def _asks_for_times(request: ScheduleRequest, changed: Schedule, context: ChangeContext) -> bool:
    """Returns whether the caller changes the times of a stored schedule, mends it, or switches it on.

    A schedule that follows its calendars or the end of its pause cannot be refused: the sweep takes it out of service.
    """
    schedule = request.before
    if schedule is None or request.recast or context.effect.resumed_at is not None:
        return False
    if changed.packed != schedule.packed or (schedule.state is ScheduleState.BROKEN and request.draft is not None):
        return True
    return schedule.state in OFF and wanted_state(context.after, changed.active)[0] is ScheduleState.ACTIVE


def _check_computable(request: ScheduleRequest, schedule: Schedule, timing: Timing, now: datetime) -> None:
    """Raises InvalidRequest if the next times take too long to compute. Names a schedule that the request does not."""
    try:
        timing.check_computable(now)
    except InvalidRequest as hard:
        if request.draft is None:
            raise InvalidRequest(None, f"the schedule {schedule.name} {hard.reason}") from hard
        raise hard.within(request.path) from hard


def _plan(
    request: ScheduleRequest,
    schedule: Schedule,
    draft: ScheduleDraft,
    context: ChangeContext,
    now: datetime,
    *,
    keep: bool,
) -> tuple[Timing, datetime | None]:
    """Returns the new timing, and its first instant if the rule alone does not give it.

    keep: whether to accept a timing that never fires.
    """
    before, after = context.before, context.after
    if draft.fresh:
        with _within(request.path):
            timing = schedule_timing.timing_of(draft, after, schedule.id, now)
        return timing, schedule_timing.first_instant(draft, after, timing, now)
    at = None
    if schedule_timing.unchanged_timing(schedule, draft, before, after):
        timing = load_or_never(schedule.packed)
        if schedule.state is ScheduleState.BROKEN and request.draft is not None:
            timing = schedule_timing.mended_timing(schedule, draft, after, now)
        elif request.recast:
            timing = load_or_never(named_calendars.recast(schedule, context.book))
    else:
        try:
            with _within(request.path):
                timing = schedule_timing.changed_timing(schedule, draft, before, after, now, may_be_empty=keep)
        except InvalidRequest as wrong:
            if request.draft is not None:
                raise
            # The request names only the job, so its window is at fault.
            where = "endTime" if after.end_at != before.end_at else "startTime"
            if wrong.code != "NEVER_FIRES":
                raise InvalidRequest(
                    where, f"cannot be applied to the schedule {schedule.name}, which {wrong.reason}"
                ) from wrong
            reason = f"leaves the schedule {schedule.name} without an occurrence"
            raise InvalidRequest(where, reason, code="NEVER_FIRES") from wrong
        instant = schedule_timing.one_time_instant(timing)
        stored = load_or_never(schedule.packed)
        before_it = stored.written_at if draft.activation else schedule_timing.one_time_instant(stored)
        if instant is not None and instant != before_it and schedule_timing.still_runs(timing, instant, now):
            at = instant
    return timing, context.effect.at if schedule_timing.restarts(schedule, draft, timing, after, now) else at


def _new_hooks(world: World, request: ScheduleRequest, schedule: Schedule, job: Job) -> ByName | None:
    """Returns the schedule's new hooks, {} to remove them; None if they do not change."""
    wanted = request.draft.hooks if request.draft is not None else None
    if wanted is None or (not wanted and schedule.hooks is None):
        return None
    stored = store.read(world.table, schedule)
    hooks = schedule_hooks.sealed(world, job, schedule.id, wanted, stored, request.path)
    return None if hooks == stored else hooks


def book_of(world: World, tenant: str, requests: Sequence[ScheduleRequest]) -> Mapping[str, Calendar]:
    """Returns the calendars that the schedules name before and after the change."""
    timings = [request.draft.timing for request in requests if request.draft is not None]
    timings += [request.before.timing for request in requests if request.before is not None]
    if not any("calendars" in timing for timing in timings):
        return {}
    return named_calendars.book_of(world, tenant, timings)


def calendar_ops(
    world: World, job: Job, steps: Sequence[Step], stay: Sequence[Schedule], book: Mapping[str, Calendar]
) -> Sequence[Op]:
    """Returns the operations of the job's transaction for its calendars. stay: the schedules as they will be."""
    return named_calendars.use_ops(world, job, steps, stay, book) if book else ()


def _references(context: ChangeContext) -> dict[str, str]:
    return {name: head.reference for name, head in context.book.items()}


@contextmanager
def _within(path: str) -> Iterator[None]:
    """Adds the path of the request to its refusal."""
    try:
        yield
    except InvalidRequest as wrong:
        raise wrong.within(path) from wrong
