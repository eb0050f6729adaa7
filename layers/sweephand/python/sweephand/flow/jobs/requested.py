"""From what a caller wishes for a job's schedules to steps: one a schedule, checked, whenever they are carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.domain.collection import Collection, Usage
from sweephand.domain.job import Job, Payload, ScheduleDraft
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.errors import InvalidRequest
from sweephand.flow.job_parts.step import Step
from sweephand.flow.jobs import drafts, new_schedules
from sweephand.flow.jobs.lookup import Planned
from sweephand.flow.series.replan import Effect
from sweephand.flow.tenants import tenancy
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.schedules.timing import Timing, load_or_never

if TYPE_CHECKING:
    from sweephand.domain.calendar import Calendar
    from sweephand.domain.job import Asked
    from sweephand.store.jobs.own_hooks import ByName

with lazy():
    from sweephand.flow.job_parts import named_calendars, schedule_hooks
    from sweephand.flow.jobs import last_instant
    from sweephand.store.jobs import own_hooks as store


@dataclass(frozen=True)
class Wish:
    """What shall become of one schedule. before None: it is new.

    draft None: it stays as it is but for its job's state, and with `recast` for the versions of its calendars.
    """

    before: Schedule | None
    draft: ScheduleDraft | None
    delete: bool = False
    path: str = ""
    recast: bool = False


def staying(planned: Planned) -> list[Wish]:
    return [Wish(schedule, None) for schedule in planned.schedules]


def matched(planned: Planned, wanted: Sequence[ScheduleDraft]) -> list[Wish]:
    """PUT: each wanted schedule takes the stored one of its id, else of its name; the rest is deleted."""
    by_id = {schedule.id: schedule for schedule in planned.schedules}
    by_name = {schedule.name: schedule for schedule in planned.schedules}
    wishes, taken = [], set()
    for n, draft in enumerate(wanted):
        before = by_id.get(draft.id) if draft.id is not None else by_name.get(draft.name or "")
        if draft.id is not None and before is None:
            raise InvalidRequest(f"schedules[{n}].id", "no schedule of this job has this id")
        if before is not None and before.id in taken:
            raise InvalidRequest(f"schedules[{n}]", "names a schedule that another one names too")
        if before is not None:
            taken.add(before.id)
        wishes.append(Wish(before, draft, path=f"schedules[{n}]"))
    gone = [Wish(schedule, None, delete=True) for schedule in planned.schedules if schedule.id not in taken]
    return wishes + gone


@dataclass(frozen=True)
class Scene:
    """What every wish of one change is seen against. stored: the payloads of the schedules that are there.

    seen: the tenant's quotas. asked: the rule of schedules that the request does not name. book: the calendars that
    they name, by name.
    """

    before: Job
    after: Job
    parts: drafts.Parts
    collection: Collection
    seen: Usage
    stored: Mapping[str, Payload]
    effect: Effect
    asked: Asked | None = None
    book: Mapping[str, Calendar] = field(default_factory=dict)


def steps_of(world: World, wishes: Sequence[Wish], scene: Scene) -> list[Step]:
    """Raises InvalidRequest and QuotaExceeded with the path of the wish."""
    now = world.clock.now()
    steps = [_step(world, wish, scene, now, n) for n, wish in enumerate(wishes)]
    named = [(step.after, wish.path) for step, wish in zip(steps, wishes, strict=True) if step.after is not None]
    new_schedules.refuse_twins(named)
    return steps


def _step(world: World, wish: Wish, scene: Scene, now: datetime, n: int) -> Step:
    """n: its place among the wishes."""
    if wish.delete:
        return Step(wish.before, None)
    if wish.before is None:
        assert wish.draft is not None
        minted_at = new_schedules.minted_at(now, n)
        draft = replace(wish.draft, book=_references(scene))
        schedule = new_schedules.new_schedule(world, draft, scene.after, scene.parts, minted_at, now, wish.path)
        schedule = new_schedules.within_quota(scene.collection, scene.seen, schedule, wish.path)
        payload, hooks = scene.parts.payloads.pop(schedule.id, None), scene.parts.hooks.pop(schedule.id, None)
        return Step(None, schedule, payload=payload, hooks=hooks)
    step, timing = _change(world, wish, wish.before, scene, now)
    if step.after != wish.before and not wish.recast:
        tenancy.check_interval(scene.collection, scene.seen, timing, wish.path)
    return step


def _change(world: World, wish: Wish, there: Schedule, scene: Scene, now: datetime) -> tuple[Step, Timing]:
    """The schedule with the caller's wishes, and its timing."""
    before, after = scene.before, scene.after
    draft = wish.draft or replace(drafts.as_stored(there), asked=scene.asked)
    draft, keep, strict = replace(draft, book=_references(scene)), False, False
    if draft.asked is not None:
        draft, keep, strict = last_instant.settled(there, draft, before, after, now)
    at = None
    if drafts.unchanged_timing(there, draft, before, after):
        timing = drafts.stored_timing(there)
        if there.state is ScheduleState.BROKEN and wish.draft is not None:
            timing = drafts.mended_timing(there, draft, after, now)
        elif wish.recast:
            timing = _recast(there, scene)
    else:
        timing = _changed_timing(wish, there, draft, before, after, now, keep=keep)
        instant = drafts.one_time_instant(timing)
        stored = drafts.stored_timing(there)
        before_it = stored.written_at if draft.asked else drafts.one_time_instant(stored)
        if instant is not None and instant != before_it and drafts.still_runs(timing, instant, now):
            at = instant
    if drafts.restarts(there, draft, timing, after, now):
        at = scene.effect.at
    if draft.timing != there.timing or before.collection != after.collection:
        timing = tenancy.bounded(scene.collection, timing, draft.timing.get("count"), wish.path)
    payload, version = None, there.payload_version
    if wish.draft is not None and wish.draft.payload != scene.stored.get(there.id):
        payload = wish.draft.payload
        version = after.revision if payload is not None else None
    hooks = _new_hooks(world, wish, there, after)
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
        _refuse_nothing_left(wish, there, changed, timing, scene, now, at)
    return Step(there, changed, at, payload, hooks), timing


def _refuse_nothing_left(
    wish: Wish, there: Schedule, changed: Schedule, timing: Timing, scene: Scene, now: datetime, at: datetime | None
) -> None:
    refused = last_instant.refusal(there, changed, scene.after, timing, now, scene.effect, at)
    if refused is not None:
        raise refused.within(wish.path) if wish.path else refused


def _new_hooks(world: World, wish: Wish, there: Schedule, job: Job) -> ByName | None:
    """The hooks that the schedule shall bring, {} for none; None: those that it brings, it brings still."""
    wanted = wish.draft.hooks if wish.draft is not None else None
    if wanted is None or (not wanted and there.hooks is None):
        return None
    stored = store.read(world.table, there)
    hooks = schedule_hooks.sealed(world, job, there.id, wanted, stored, wish.path)
    return None if hooks == stored else hooks


def _references(scene: Scene) -> dict[str, str]:
    return {name: head.reference for name, head in scene.book.items()}


def _recast(there: Schedule, scene: Scene) -> Timing:
    return load_or_never(named_calendars.recast(there, scene.book))


def _changed_timing(
    wish: Wish, there: Schedule, draft: ScheduleDraft, before: Job, after: Job, now: datetime, *, keep: bool
) -> Timing:
    """keep: also one that never fires."""
    try:
        return drafts.changed_timing(there, draft, before, after, now, may_be_empty=keep)
    except InvalidRequest as wrong:
        if wish.draft is None:
            # The caller spoke of the job alone: it is its window that leaves the schedule nothing.
            where = "endTime" if after.end_at != before.end_at else "startTime"
            reason = f"leaves the schedule {there.name} no occurrence"
            raise InvalidRequest(where, reason, code="NEVER_FIRES") from wrong
        raise (wrong.within(wish.path) if wish.path else wrong) from wrong
