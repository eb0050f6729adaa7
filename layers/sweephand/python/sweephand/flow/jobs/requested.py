"""Compares requested schedules with stored ones and returns one validated step per schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.domain.collection import Collection, Usage
from sweephand.domain.job import Job, Payload, ScheduleDraft
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.errors import InvalidRequest
from sweephand.flow.job_parts.change_log import Step
from sweephand.flow.jobs import drafts, new_schedules
from sweephand.flow.jobs.lookup import Planned
from sweephand.flow.series.replan import Effect
from sweephand.flow.tenants import tenancy
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.schedules.timing import Timing, load_or_never

if TYPE_CHECKING:
    from sweephand.domain.calendar import Calendar
    from sweephand.domain.job import Activation
    from sweephand.store.jobs.own_hooks import ByName

with lazy():
    from sweephand.flow.job_parts import named_calendars, schedule_hooks
    from sweephand.flow.jobs import last_instant
    from sweephand.store.jobs import own_hooks as store


@dataclass(frozen=True)
class ScheduleRequest:
    """The requested change of one schedule. before None: it is new.

    draft None: it stays as it is and only follows its job's state; with `recast`, also its calendars' new versions.
    """

    before: Schedule | None
    draft: ScheduleDraft | None
    delete: bool = False
    path: str = ""
    recast: bool = False


def staying(planned: Planned) -> list[ScheduleRequest]:
    return [ScheduleRequest(schedule, None) for schedule in planned.schedules]


def matched(planned: Planned, wanted: Sequence[ScheduleDraft]) -> list[ScheduleRequest]:
    """Matches the schedules of a PUT with the stored ones, by id or else by name; the others are deleted."""
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
class Scene:
    """The context of one change, shared by all its requests. stored: the current payloads of its schedules.

    seen: the tenant's quotas. activation: applies to the schedules that the request does not name. book: the calendars
    that the schedules name, by name.
    """

    before: Job
    after: Job
    parts: drafts.Parts
    collection: Collection
    seen: Usage
    stored: Mapping[str, Payload]
    effect: Effect
    activation: Activation | None = None
    book: Mapping[str, Calendar] = field(default_factory=dict)


def steps_of(world: World, requests: Sequence[ScheduleRequest], scene: Scene) -> list[Step]:
    """Returns one step per request. Raises InvalidRequest and QuotaExceeded with the path of the request."""
    now = world.clock.now()
    steps = [_step(world, request, scene, now, n) for n, request in enumerate(requests)]
    named = [
        (step.after, request.path) for step, request in zip(steps, requests, strict=True) if step.after is not None
    ]
    new_schedules.refuse_twins(named)
    return steps


def _step(world: World, request: ScheduleRequest, scene: Scene, now: datetime, n: int) -> Step:
    """Returns the step for one request. n: its position among the requests."""
    if request.delete:
        return Step(request.before, None)
    if request.before is None:
        assert request.draft is not None
        minted_at = new_schedules.minted_at(now, n)
        draft = replace(request.draft, book=_references(scene))
        schedule = new_schedules.new_schedule(world, draft, scene.after, scene.parts, minted_at, now, request.path)
        schedule = new_schedules.within_quota(scene.collection, scene.seen, schedule, request.path)
        payload, hooks = scene.parts.payloads.pop(schedule.id, None), scene.parts.hooks.pop(schedule.id, None)
        return Step(None, schedule, payload=payload, hooks=hooks)
    step, timing = _change(world, request, request.before, scene, now)
    if step.after != request.before and not request.recast:
        tenancy.check_interval(scene.collection, scene.seen, timing, request.path)
    return step


def _change(
    world: World, request: ScheduleRequest, there: Schedule, scene: Scene, now: datetime
) -> tuple[Step, Timing]:
    """Returns the step that applies the caller's request to a stored schedule, and the new timing."""
    before, after = scene.before, scene.after
    draft = request.draft or replace(drafts.as_stored(there), activation=scene.activation)
    draft, keep, strict = replace(draft, book=_references(scene)), False, False
    if draft.activation is not None:
        draft, keep, strict = last_instant.settled(there, draft, before, after, now)
    timing, at = _plan(request, there, draft, scene, now, keep=keep)
    if draft.timing != there.timing or before.collection != after.collection:
        timing = tenancy.bounded(scene.collection, timing, draft.timing.get("count"), request.path)
    payload, version = None, there.payload_version
    if request.draft is not None and request.draft.payload != scene.stored.get(there.id):
        payload = request.draft.payload
        version = after.revision if payload is not None else None
    hooks = _new_hooks(world, request, there, after)
    changed = replace(
        there,
        **drafts.alike(draft, drafts.OF_SCHEDULE),
        name=draft.name or there.id,
        packed=timing.packed,
        misfire=drafts.misfire_of(draft, after),
        lane=drafts.lane_of(after),
        payload_version=version,
        hooks=there.hooks if hooks is None else new_schedules.named_hooks(after.revision, hooks),
        state_reason=draft.because or there.state_reason,
        attributes=there.attributes if draft.attributes is None else draft.attributes,
    )
    if strict:
        _refuse_nothing_left(request, there, changed, timing, scene, now, at)
    return Step(there, changed, at, payload, hooks, anew=draft.anew), timing


def _plan(
    request: ScheduleRequest, there: Schedule, draft: ScheduleDraft, scene: Scene, now: datetime, *, keep: bool
) -> tuple[Timing, datetime | None]:
    """Returns the new timing, and its first instant if the rule alone does not give it.

    keep: accepts a timing that never fires.
    """
    before, after = scene.before, scene.after
    if draft.anew:
        timing = _new_timing(request, there, draft, after, now)
        return timing, drafts.first_instant(draft, after, timing, now)
    at = None
    if drafts.unchanged_timing(there, draft, before, after):
        timing = drafts.stored_timing(there)
        if there.state is ScheduleState.BROKEN and request.draft is not None:
            timing = drafts.mended_timing(there, draft, after, now)
        elif request.recast:
            timing = load_or_never(named_calendars.recast(there, scene.book))
    else:
        timing = _changed_timing(request, there, draft, before, after, now, keep=keep)
        instant = drafts.one_time_instant(timing)
        stored = drafts.stored_timing(there)
        before_it = stored.written_at if draft.activation else drafts.one_time_instant(stored)
        if instant is not None and instant != before_it and drafts.still_runs(timing, instant, now):
            at = instant
    return timing, scene.effect.at if drafts.restarts(there, draft, timing, after, now) else at


def _refuse_nothing_left(
    request: ScheduleRequest,
    there: Schedule,
    changed: Schedule,
    timing: Timing,
    scene: Scene,
    now: datetime,
    at: datetime | None,
) -> None:
    refused = last_instant.refusal(there, changed, scene.after, timing, now, scene.effect, at)
    if refused is not None:
        raise refused.within(request.path) if request.path else refused


def _new_hooks(world: World, request: ScheduleRequest, there: Schedule, job: Job) -> ByName | None:
    """Returns the schedule's new hooks, {} to remove them; None if they do not change."""
    wanted = request.draft.hooks if request.draft is not None else None
    if wanted is None or (not wanted and there.hooks is None):
        return None
    stored = store.read(world.table, there)
    hooks = schedule_hooks.sealed(world, job, there.id, wanted, stored, request.path)
    return None if hooks == stored else hooks


def _references(scene: Scene) -> dict[str, str]:
    return {name: head.reference for name, head in scene.book.items()}


def _new_timing(request: ScheduleRequest, there: Schedule, draft: ScheduleDraft, after: Job, now: datetime) -> Timing:
    """Returns the timing of a schedule that is planned as if it were created now."""
    try:
        return drafts.timing_of(draft, after, there.id, now)
    except InvalidRequest as wrong:
        raise (wrong.within(request.path) if request.path else wrong) from wrong


def _changed_timing(
    request: ScheduleRequest,
    there: Schedule,
    draft: ScheduleDraft,
    before: Job,
    after: Job,
    now: datetime,
    *,
    keep: bool,
) -> Timing:
    """Returns the new timing; raises InvalidRequest at the member at fault. keep: accepts one that never fires."""
    try:
        return drafts.changed_timing(there, draft, before, after, now, may_be_empty=keep)
    except InvalidRequest as wrong:
        if request.draft is None:
            # The request names only the job, so its window is at fault.
            where = "endTime" if after.end_at != before.end_at else "startTime"
            reason = f"leaves the schedule {there.name} no occurrence"
            raise InvalidRequest(where, reason, code="NEVER_FIRES") from wrong
        raise (wrong.within(request.path) if request.path else wrong) from wrong
