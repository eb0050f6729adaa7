"""Carries out the steps of a change, one per schedule, on the current rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.job import SCHEDULES_AT_ONCE, Job, Payload
from sweephand.domain.jobs.job_state import wanted_state
from sweephand.domain.schedule import LIVE, OVER, Schedule, ScheduleState
from sweephand.schedules.timing import load_or_never
from sweephand.server.flow.job_parts import expiry
from sweephand.server.flow.job_parts.change_log import Step
from sweephand.server.flow.jobs import schedule_timing
from sweephand.server.flow.jobs.lookup import by_creation
from sweephand.server.flow.series import ranges, replan
from sweephand.server.flow.series.replan import Effect
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op
from sweephand.server.store.dynamo.expressions import every
from sweephand.server.store.dynamo.table import ScheduleItem
from sweephand.server.store.jobs import generations, jobs

with lazy():
    from sweephand.server.flow.series import catch_up, holding, moving
    from sweephand.server.store.jobs import own_hooks as hook_rows

CALLERS = (
    "name",
    "timing",
    "packed",
    "active",
    "policies",
    "misfire",
    "lane",
    "payload_version",
    "attributes",
    "hooks",
    "state_reason",
)
"""The members of a schedule that a request decides. The others belong to the series, which continues meanwhile.

state_reason: set by the service's own requests.
"""


@dataclass
class Carried:
    """The result of steps: operations for a transaction, messages to send before and after it, and the new rows.

    held: schedules that must be released first; then their steps start again. missed: schedules with missed
    occurrences, about which their policy must decide first, or with one that newer zone data has moved, as in a sweep.
    """

    ops: list[Op] = field(default_factory=list)
    plans: list[replan.Plan] = field(default_factory=list)
    started: list[Schedule] = field(default_factory=list)
    gone: list[Schedule] = field(default_factory=list)
    held: list[Schedule] = field(default_factory=list)
    missed: list[Schedule] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)

    @property
    def ahead(self) -> list[Schedule]:
        """Returns the rows with a new plan, whose occurrences due before the next sweep are sent at once."""
        return [*self.started, *(each.schedule for each in self.plans)]


@dataclass(frozen=True)
class DryRun:
    """A job as a change would leave it; nothing is written. payloads: those that the change would write, by owner."""

    job: Job
    steps: Sequence[Step]
    schedules: Sequence[Schedule]
    payloads: Mapping[str, Payload]


def dry_run(world: World, job: Job, payloads: Mapping[str, Payload], steps: Sequence[Step], effect: Effect) -> DryRun:
    """Returns the result that the steps would have. job: as it will be. payloads: of its actions, by owner."""
    return dry_run_of(job, payloads, steps, carry_out(world, steps, job, effect).schedules)


def dry_run_of(
    job: Job, payloads: Mapping[str, Payload], steps: Sequence[Step], schedules: Sequence[Schedule]
) -> DryRun:
    own = {step.after.id: step.payload for step in steps if step.after is not None and step.payload is not None}
    return DryRun(job, steps, schedules, {**payloads, **own})


def carry_out(world: World, steps: Sequence[Step], job: Job, effect: Effect) -> Carried:
    """Turns steps into operations and messages. job: as it will be.

    Raises Unavailable if an old plan has more occurrences left to send than one change can.
    """
    carried = Carried()
    for step in steps:
        if step.after is None:
            assert step.before is not None
            carried.gone.append(step.before)
            key = keys.job(job.tenant, job.id), keys.schedule(step.before.id)
            carried.ops.append(world.table.delete_op(f"schedule {step.before.id}", *key))
        elif step.before is None:
            carried.started.append(step.after)
            carried.schedules.append(step.after)
            item = jobs.schedule_item(step.after, world.shards)
            row = world.table.put_op(f"schedule {step.after.id}", item)
            carried.ops += [row, *expiry.row_ops(world, job, step.after), *_part_ops(world, job, step)]
        else:
            _change(world, carried, step, step.before, step.after, job, effect)
    return carried


def with_schedule_ids(job: Job, schedules: Sequence[Schedule]) -> Job:
    """Returns the job with the count of its schedules, and their ids unless they are too many."""
    many = len(schedules) > SCHEDULES_AT_ONCE
    ids = () if many else tuple(schedule.id for schedule in by_creation(schedules))
    return replace(job, schedule_ids=ids, many_schedules=many, schedule_count=len(schedules))


def release(world: World, carried: Carried, effect: Effect) -> None:
    """Releases held schedules, and splits off missed occurrences unless newer zone data has moved them.

    Then the steps must start again on the new rows.
    """
    if carried.held:
        holding.release_all(world, carried.held, effect.now)
    if carried.missed:
        catch_up.split_all(world, [each for each in carried.missed if not moving.follow(world, each)], effect.now)


def _change(
    world: World, carried: Carried, step: Step, schedule: Schedule, wanted: Schedule, job: Job, effect: Effect
) -> None:
    """Applies the caller's members to the current row. Keeps members that the sweep may have advanced meanwhile."""
    changed = replace(schedule, **{name: getattr(wanted, name) for name in CALLERS})
    replanned = replans(schedule, changed, job) and not _stays_over(schedule, changed, step.at, effect)
    if changed == schedule and not replanned:
        carried.schedules.append(schedule)
        return
    changed = replace(changed, modified_at=job.modified_at)
    lines: list[Op] = []
    if replanned and schedule.held_from is not None and load_or_never(schedule.packed).readable:
        carried.held.append(schedule)
        carried.schedules.append(changed)
        return
    if replanned and (moving.is_moved(schedule, effect.now) or replan.has_missed(schedule, effect.now)):
        carried.missed.append(schedule)
        carried.schedules.append(changed)
        return
    if replanned:
        changed = replace(changed, collection=job.collection, held_from=None, completed_at=None)
        timing = load_or_never(changed.packed)
        new = replan.change(schedule, changed, job, timing, effect, step.at, fresh=step.fresh)
        carried.plans.append(new)
        lines = [ranges.op(world, new.silence, job.collection)] if new.silence is not None else []
        lines += [generations.op(world.table, schedule, new.left)] if new.left is not None else []
        changed = new.schedule
        lines += expiry.row_ops(world, job, changed)
        condition = every(jobs.as_read(schedule), jobs.reach_as_read(schedule))
        actions = jobs.schedule_update_actions(changed, world.shards)
    else:
        condition = ScheduleItem.generation == schedule.generation
        actions = jobs.description_actions(changed)
        actions += jobs.packed_actions(changed) if changed.packed != schedule.packed else []
    carried.schedules.append(changed)
    key = keys.job(job.tenant, job.id), keys.schedule(changed.id)
    row = world.table.update_op(f"schedule {changed.id}", *key, actions, condition)
    carried.ops += [row, *lines, *_part_ops(world, job, step)]


def replans(schedule: Schedule, changed: Schedule, job: Job) -> bool:
    """Returns whether a change needs a new generation. job: as it will be.

    It does if it affects the timing, the state, or a member that is packed into the sweep row.
    """
    if schedule.state in OVER and schedule.active and changed.active:
        ended_at, at = (schedule_timing.one_time_instant(load_or_never(each.packed)) for each in (schedule, changed))
        if at is not None and at == ended_at:
            return False  # it has run: a change of its window or its policies does not bring it back
    if schedule.state in OVER or schedule.state is ScheduleState.BROKEN:
        return schedule.packed != changed.packed or schedule.active != changed.active
    packed = (schedule.packed, schedule.active, schedule.lane, schedule.misfire) != (
        changed.packed,
        changed.active,
        changed.lane,
        changed.misfire,
    )
    moved = schedule.collection not in {None, job.collection}
    stands = ScheduleState.ACTIVE if schedule.state in LIVE else schedule.state
    return packed or moved or stands is not wanted_state(job, changed.active)[0]


def _stays_over(schedule: Schedule, changed: Schedule, at: datetime | None, effect: Effect) -> bool:
    """Returns whether a series that is over stays over because the change gives it no new occurrence."""
    if schedule.state not in OVER or at is not None or not (schedule.active and changed.active):
        return False
    since = effect.seam_of(schedule).since
    return load_or_never(changed.packed).rule.next_after(since) is None


def _part_ops(world: World, job: Job, step: Step) -> list[Op]:
    """Returns the operations for a schedule's new payload and hooks, written in the same transaction as its row."""
    after = step.after
    if after is None:
        return []
    ops = [hook_rows.put_op(world.table, after, step.hooks)] if step.hooks else []
    if step.payload is not None and after.payload_version is not None:
        version = after.payload_version
        ops.append(jobs.payload_op(world.table, job.tenant, job.id, after.id, version, step.payload))
    return ops
