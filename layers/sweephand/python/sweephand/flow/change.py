"""Change jobs and their schedules: a caller's wishes, compared with what is there, as one conditional transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sweephand.domain.collection import Collection, Events
from sweephand.domain.job import Job, JobDraft, Payload, ScheduleDraft
from sweephand.domain.schedule import Schedule, ScheduleState, wanted_state
from sweephand.errors import Conflict, InvalidRequest, PreconditionFailed, QuotaExceeded, Unavailable
from sweephand.flow import cleaning, drafts, plan, ranges, replan, tenancy
from sweephand.flow.plan import IN_JOBS_TRANSACTION, TRIES, Planned
from sweephand.flow.world import World
from sweephand.schedules.timing import Timing
from sweephand.store import jobs, keys
from sweephand.store.conditional import Cancelled, Op, Written
from sweephand.store.table import ScheduleItem

SCHEDULES_MOST = 1_000


@dataclass(frozen=True)
class Wish:
    """What shall become of one schedule. before None: it is new.

    draft None: it stays as it is but for its job's state.
    """

    before: Schedule | None
    draft: ScheduleDraft | None
    delete: bool = False
    path: str = ""


Edit = Callable[[Planned, Mapping[str, Payload]], JobDraft]


def change_job(world: World, tenant: str, job_id: str, edit: Edit, if_match: int | None) -> Planned:
    """PUT and PATCH. edit: makes the wanted job from what is stored; it may be called again if something came between.

    draft.schedules None: the schedules stay; else they are matched by id, then by name, and others are deleted.
    """

    def step(planned: Planned) -> Planned:
        stored = plan.payloads_of(world, planned)
        draft = edit(planned, stored)
        wishes = _matched(planned, draft.schedules) if draft.schedules is not None else _staying(planned)
        now = world.clock.now()
        after, parts = drafts.job_from(draft, tenant, job_id, now, planned.job.revision + 1, planned.job)
        after = drafts.keep_payloads(after, planned.job, parts, stored)
        return _commit(world, planned, after, parts, wishes, stored)

    return _retried(world, tenant, job_id, if_match, step)


def change_schedules(
    world: World, tenant: str, job_id: str, wish: Callable[[Planned], Sequence[Wish]], if_match: int | None
) -> Planned:
    """Adds, changes or deletes single schedules; the job and the other schedules stay."""

    def step(planned: Planned) -> Planned:
        wishes = list(wish(planned))
        touched = {each.before.id for each in wishes if each.before is not None}
        wishes += [each for each in _staying(planned) if each.before is not None and each.before.id not in touched]
        after = replace(planned.job, revision=planned.job.revision + 1, modified_at=world.clock.now())
        return _commit(world, planned, after, drafts.Parts(), wishes, plan.payloads_of(world, planned))

    return _retried(world, tenant, job_id, if_match, step)


def set_state(world: World, tenant: str, job_id: str, edit: Callable[[Job], Job], if_match: int | None) -> Planned:
    """Activates, deactivates, pauses or resumes a job: its schedules follow in the same write."""

    def step(planned: Planned) -> Planned:
        after = edit(planned.job)
        if after == planned.job:
            return planned
        after = replace(after, revision=planned.job.revision + 1, modified_at=world.clock.now())
        return _commit(world, planned, after, drafts.Parts(), _staying(planned), {})

    return _retried(world, tenant, job_id, if_match, step)


def _retried(
    world: World, tenant: str, job_id: str, if_match: int | None, step: Callable[[Planned], Planned]
) -> Planned:
    """Reads, changes, and starts again where the sweeper or another change came between."""
    for tries in range(TRIES):
        planned = plan.find(world, tenant, job_id)
        if if_match is not None and planned.job.revision != if_match:
            raise PreconditionFailed(f"the job is at revision {planned.job.revision}")
        try:
            return step(planned)
        except _CameBetween:
            world.clock.sleep(world.chance.uniform(0.0, 0.02 * 2**tries))
    raise Unavailable("the job was changed by others all the time")


class _CameBetween(Exception):
    """What was read is no longer what is there."""


def _staying(planned: Planned) -> list[Wish]:
    return [Wish(schedule, None) for schedule in planned.schedules]


def _matched(planned: Planned, wanted: Sequence[ScheduleDraft]) -> list[Wish]:
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


@dataclass
class _Work:
    """What a change comes to: schedules as they shall be, what each owes, and the parts of the transaction."""

    stored: Mapping[str, Payload]
    schedules: list[Schedule] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    plans: list[replan.Plan] = field(default_factory=list)
    started: list[Schedule] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    later: list[list[Op]] = field(default_factory=list)
    gone: list[Schedule] = field(default_factory=list)


def _commit(
    world: World,
    planned: Planned,
    after: Job,
    parts: drafts.Parts,
    wishes: Sequence[Wish],
    stored: Mapping[str, Payload],
) -> Planned:
    before = planned.job
    if sum(1 for wish in wishes if not wish.delete) > SCHEDULES_MOST:
        raise QuotaExceeded(f"a job has at most {SCHEDULES_MOST} schedules")
    collection = tenancy.open_collection(world, before.tenant, after.collection)
    effective = replan.effective_at(world.clock.now())
    work = _Work(stored)
    for n, wish in enumerate(wishes):
        _add(world, work, wish, before, after, parts, effective, collection, n)
    plan.refuse_twins(list(zip(work.schedules, work.paths, strict=True)))
    after = plan.with_schedule_ids(after, work.schedules)
    after, sealed = _sealed(world, after, before, parts)
    if not (work.ops or work.later or sealed or parts.payloads) and _unchanged(before, after):
        return planned
    ops = [
        world.table.put_op("job", jobs.job_item(after), jobs.revision_is(before.revision)),
        *work.ops,
        *drafts.part_ops(world, after, parts, sealed),
        *(jobs.entry_ops(world.table, after, before) if jobs.entries_differ(before, after) else []),
        *tenancy.move_ops(world, before, after, collection),
        *(cleaning.of_schedules_ops(world, before, work.gone) if work.gone else []),
    ]
    replan.send_owed(world, work.plans, lines_too=collection.events is Events.ALL)
    replan.in_time(world, effective)
    done = world.table.transact(ops)
    if isinstance(done, Cancelled):
        _explain(world, after, done)
    for together in work.later:
        if not isinstance(world.table.transact(together), Written):
            world.journal.warning("a schedule of a large job was changed at the same time", job=after.id)
    replan.send_ahead(world, [*work.started, *(each.schedule for each in work.plans)])
    changed = Planned(after, plan.by_creation(work.schedules))
    if collection.events is Events.ALL:
        _tell(world, planned, changed)
    return changed


def _tell(world: World, before: Planned, after: Planned) -> None:
    from sweephand.flow import announce  # noqa: PLC0415 - most collections tell failures only

    described = [
        [(each.id, each.name, each.timing, each.active, each.policies, each.payload_version) for each in of.schedules]
        for of in (before, after)
    ]
    announce.job_changed(world, before.job, after.job, schedules_too=described[0] != described[1])


def _explain(world: World, after: Job, refused: Cancelled) -> None:
    """Own success after a lost answer returns; everything else raises."""
    there = jobs.read_job(world.table, after.tenant, after.id)
    if there == after:
        return
    if there is not None and there.revision == after.revision - 1:
        if "name" in refused.refused:
            raise Conflict(f"the collection {after.collection} has a job of this name", code="NAME_TAKEN")
        if "collection" in refused.refused:
            raise QuotaExceeded(f"the collection {after.collection} holds its most jobs, or is being deleted")
    raise _CameBetween


def _add(
    world: World,
    work: _Work,
    wish: Wish,
    before: Job,
    after: Job,
    parts: drafts.Parts,
    effective: datetime,
    collection: Collection,
    n: int,
) -> None:
    """One wish becomes a schedule as it shall be, and what is written for it. n: its place among the wishes."""
    table, shards, now = world.table, world.settings.shards, world.clock.now()
    if wish.before is None:
        assert wish.draft is not None
        schedule = plan.new_schedule(world, wish.draft, after, parts, plan.minted_at(now, n), now, wish.path)
        tenancy.check_interval(collection, drafts.stored_timing(schedule), wish.path)
        _remember(work, schedule, wish.path)
        work.started.append(schedule)
        row = table.put_op(f"schedule {schedule.id}", jobs.schedule_item(schedule, shards))
        _write(work, row, *_payload_ops(world, after, schedule, parts))
        return
    key = keys.job(before.tenant, before.id), keys.schedule(wish.before.id)
    if wish.delete:
        work.gone.append(wish.before)
        _write(work, table.delete_op(f"schedule {wish.before.id}", *key))
        return
    changed, timing, at = _wanted(wish, before, after, parts, now, work.stored)
    if changed == wish.before and not _replans(wish.before, changed, before, after):
        _remember(work, changed, wish.path)
        return
    tenancy.check_interval(collection, timing, wish.path)
    changed = replace(changed, modified_at=now)
    if _replans(wish.before, changed, before, after):
        next_plan = replan.change(wish.before, changed, after, timing, effective, at)
        work.plans.append(next_plan)
        lines = [ranges.op(world, next_plan.silence)] if next_plan.silence is not None else []
        changed = next_plan.schedule
        condition = jobs.as_read(wish.before)
        actions = jobs.schedule_update_actions(changed, shards)
    else:
        lines = []
        condition = ScheduleItem.generation == wish.before.generation
        actions = jobs.description_actions(changed)
    _remember(work, changed, wish.path)
    row = table.update_op(f"schedule {changed.id}", *key, actions, condition)
    _write(work, row, *lines, *_payload_ops(world, after, changed, parts))


def _remember(work: _Work, schedule: Schedule, path: str) -> None:
    work.schedules.append(schedule)
    work.paths.append(path)


def _payload_ops(world: World, job: Job, schedule: Schedule, parts: drafts.Parts) -> list[Op]:
    """A schedule's new payload is written together with its row."""
    payload = parts.payloads.pop(schedule.id, None)
    if payload is None:
        return []
    return [jobs.payload_op(world.table, job.tenant, job.id, schedule.id, job.revision, payload)]


def _write(work: _Work, *together: Op) -> None:
    if len(work.ops) + len(together) <= IN_JOBS_TRANSACTION:
        work.ops.extend(together)
    else:
        work.later.append(list(together))


def _wanted(
    wish: Wish, before: Job, after: Job, parts: drafts.Parts, now: datetime, stored: Mapping[str, Payload]
) -> tuple[Schedule, Timing, datetime | None]:
    """The schedule with the caller's wishes, its timing, and the instant of a new one-time timing."""
    there = wish.before
    assert there is not None
    draft = wish.draft or ScheduleDraft(there.name, there.timing, there.active, policies=there.policies, id=there.id)
    at = None
    if drafts.unchanged_timing(there, draft, before, after):
        timing = drafts.stored_timing(there)
        if there.state is ScheduleState.BROKEN and wish.draft is not None:
            timing = drafts.mended_timing(there, draft, after, now)
    else:
        timing = _changed_timing(wish, there, draft, before, after, now)
        instant = drafts.one_time_instant(timing)
        at = instant if instant != drafts.one_time_instant(drafts.stored_timing(there)) else None
    payload_version = there.payload_version
    if wish.draft is not None and wish.draft.payload != stored.get(there.id):
        payload_version = after.revision if wish.draft.payload is not None else None
        if wish.draft.payload is not None:
            parts.payloads[there.id] = wish.draft.payload
    changed = replace(
        there,
        name=draft.name or there.id,
        timing=draft.timing,
        packed=timing.packed,
        active=draft.active,
        policies=draft.policies,
        misfire=drafts.misfire_of(draft, after),
        lane=drafts.lane_of(after),
        payload_version=payload_version,
    )
    return changed, timing, at


def _changed_timing(
    wish: Wish, there: Schedule, draft: ScheduleDraft, before: Job, after: Job, now: datetime
) -> Timing:
    try:
        return drafts.changed_timing(there, draft, before, after, now)
    except InvalidRequest as wrong:
        if wish.draft is None:
            # The caller spoke of the job alone: it is its window that leaves the schedule nothing.
            where = "endTime" if after.end_at != before.end_at else "startTime"
            reason = f"leaves the schedule {there.name} no occurrence"
            raise InvalidRequest(where, reason, code="NEVER_FIRES") from wrong
        raise (wrong.within(wish.path) if wish.path else wrong) from wrong


def _replans(there: Schedule, changed: Schedule, before: Job, after: Job) -> bool:
    """Does the change touch timing or state, or anything that the sweeper has packed? Then it is a new generation."""
    packed = (there.packed, there.active, there.lane, there.misfire) != (
        changed.packed,
        changed.active,
        changed.lane,
        changed.misfire,
    )
    if there.state is ScheduleState.COMPLETED and there.active and changed.active:
        ended_at, at = (drafts.one_time_instant(drafts.stored_timing(each)) for each in (there, changed))
        if at is not None and at == ended_at:
            return False  # it has run: a change of its window or its policies does not bring it back
    if there.state in (ScheduleState.COMPLETED, ScheduleState.BROKEN):
        return there.packed != changed.packed or there.active != changed.active
    return packed or wanted_state(before, there.active)[0] is not wanted_state(after, changed.active)[0]


def _unchanged(before: Job, after: Job) -> bool:
    """A change that asks for what is stored changes nothing and plans nothing."""
    return replace(after, revision=before.revision, modified_at=before.modified_at) == before


def _sealed(world: World, after: Job, before: Job, parts: drafts.Parts) -> tuple[Job, dict[str, str]]:
    """The job with the version of its secrets, and what must be written under it: nothing where all are kept."""
    if after.action is before.action:
        return replace(after, secret_version=before.secret_version), {}
    if not parts.secrets and not parts.kept:
        return after, {}
    sealed = drafts.seal(world, after, parts, before)
    if before.secret_version is not None and not parts.secrets:
        stored = jobs.read_secrets(world.table, before.tenant, before.id, before.secret_version)
        if stored == sealed:
            return replace(after, secret_version=before.secret_version), {}
    return after, sealed
