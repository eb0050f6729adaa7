"""Create, find and delete jobs with their schedules: everything of one request in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sweephand.domain.collection import Collection, CollectionState, Events, Usage
from sweephand.domain.instants import text
from sweephand.domain.job import SCHEDULES_AT_ONCE, Job, JobDraft, Payload, ScheduleDraft, hook_owner
from sweephand.domain.schedule import Schedule, ScheduleState, names_calendars
from sweephand.errors import Conflict, InvalidRequest, NotFound, PreconditionFailed, Unavailable
from sweephand.flow import cleaning, drafts, quotas, replan, tenancy, unused
from sweephand.flow.history import CREATED, By, entry
from sweephand.flow.idempotency import Once, earlier_answer, once_op
from sweephand.flow.world import World
from sweephand.schedules.timing import Timing
from sweephand.store import directory, history, jobs, keys, usage
from sweephand.store.conditional import TRANSACTION_MOST, Cancelled, Op, Written

if TYPE_CHECKING:
    from sweephand.store.own_hooks import ByName

TRIES = 5
COMPLETED_WITHIN_S = 2.0
"""So long a request completes schedules that it has left nothing."""
IN_JOBS_TRANSACTION = 60
"""Writes of schedules and their payloads in their job's transaction (DynamoDB takes 100 in all);
of larger jobs the other schedules follow in transactions of their own.
"""


@dataclass(frozen=True)
class Planned:
    job: Job
    schedules: tuple[Schedule, ...]


def create_job(
    world: World,
    tenant: str,
    draft: JobDraft,
    once: Once | None = None,
    by: By = CREATED,
    most: int = SCHEDULES_AT_ONCE,
) -> Planned:
    """Creates a job with up to `most` schedules. A refusal leaves nothing. Schedules for which the job's transaction
    has no room follow the job (decision 0017).

    Raises InvalidRequest, QuotaExceeded, Conflict(NAME_TAKEN), Unavailable.
    """
    if len(draft.schedules or ()) > most:
        more = "the job can be created with some of them, and the others added to it"
        raise InvalidRequest(
            "schedules", f"at most {most:,} in one request, not {len(draft.schedules or ()):,}; {more}"
        )
    for _ in range(TRIES):
        try:
            return _create_job(world, tenant, draft, once, by)
        except _Moved:
            continue
    raise Unavailable("a calendar or the quota was changed by others all the time")


class _Moved(Exception):
    """A calendar that the job names, or the tenant's quota, is another one than what the request was judged by."""


def _create_job(world: World, tenant: str, draft: JobDraft, once: Once | None, by: By) -> Planned:
    now = world.clock.now()
    job_id = world.chance.new_id(now)
    wanted, use_ops_of = _with_calendars(world, tenant, draft.schedules or ())
    job, parts = drafts.job_from(draft, tenant, job_id, now, 1)
    collection, seen = tenancy.open_with_usage(world, tenant, job.collection)
    schedules = []
    for n, schedule_draft in enumerate(wanted):
        schedule = new_schedule(world, schedule_draft, job, parts, minted_at(now, n), now, f"schedules[{n}]")
        schedules.append(within_quota(collection, seen, schedule, f"schedules[{n}]"))
    refuse_twins([(schedule, f"schedules[{n}]") for n, schedule in enumerate(schedules)])
    job = with_schedule_ids(job, schedules)
    sealed = drafts.seal(world, job, parts)
    job = replace(job, number=directory.next_number(world.table, tenant))
    ops = [
        *directory.create_ops(world.table, job, schedules),
        tenancy.count_job_op(world, collection, 1),
        *quotas.count_ops(world, None, job, seen),
        *tenancy.flow_key_ops(world, tenant, None, job.policies.get("flowKey")),
        history.put_op(world.table, entry(world, by, None, job, [(None, schedule) for schedule in schedules])),
        *([once_op(world, tenant, once, job.id)] if once else []),
        *use_ops_of(job, schedules),
    ]
    whole = [*_own_ops(world, job, schedules, parts, sealed), *ops]
    if len(whole) > TRANSACTION_MOST:
        job = replace(job, open_change=job.revision)
        whole = [*_following_ops(world, job, schedules, parts, sealed), *ops]
    done = world.table.transact(whole)
    if isinstance(done, Cancelled):
        planned = _not_created(world, job, done, once, seen)
    elif job.open_change is not None:
        planned = followed(world, job)
    else:
        if collection.state is CollectionState.ENABLED:
            replan.send_ahead(world, schedules)
        planned = Planned(job, tuple(schedules))
    planned = completed(world, planned)
    if planned.job.revision == 1 and collection.events is Events.ALL:
        _tell(world, planned.job, created=True)
    return planned


def completed(world: World, planned: Planned, before: Sequence[Schedule] = ()) -> Planned:
    """Schedules to which this write has left nothing are over at once, unless a run of theirs is open; where that
    fails, their wakes see to it. before: as they were.
    """
    ending = {each.id for each in before if each.state is ScheduleState.ENDING}
    over = [each for each in planned.schedules if each.state is ScheduleState.ENDING and each.id not in ending]
    if not over:
        return planned
    from sweephand.flow import endings  # noqa: PLC0415 - few schedules are made too late

    until = world.clock.monotonic() + COMPLETED_WITHIN_S
    try:
        for schedule in over:
            if world.clock.monotonic() > until:
                break  # the wakes of the others see to it
            endings.complete_if_over(world, schedule)
        return find(world, planned.job.tenant, planned.job.id)
    except Unavailable as unavailable:
        world.journal.warning("a schedule is completed by its wake", job=planned.job.id, reason=unavailable.reason)
        return planned


UseOps = Callable[[Job, Sequence[Schedule]], Sequence[Op]]


def _with_calendars(
    world: World, tenant: str, wanted: tuple[ScheduleDraft, ...]
) -> tuple[tuple[ScheduleDraft, ...], UseOps]:
    """The drafts with the calendars that they name, and what makes the part of the transaction that says so."""
    if not any("calendars" in draft.timing for draft in wanted):
        return wanted, lambda *_: ()
    from sweephand.flow import calendars  # noqa: PLC0415 - few schedules name any
    from sweephand.flow.steps import Step  # noqa: PLC0415

    book = calendars.book_of(world, tenant, (draft.timing for draft in wanted))
    references = calendars.references(book)

    def ops(job: Job, schedules: Sequence[Schedule]) -> Sequence[Op]:
        steps = [Step(None, schedule) for schedule in schedules]
        return calendars.use_ops(world, job.id, steps, schedules, book)

    return tuple(replace(draft, book=references) for draft in wanted), ops


def _leave_calendars(world: World, planned: Planned) -> list[Op]:
    if not any("calendars" in schedule.timing for schedule in planned.schedules):
        return []
    from sweephand.flow import calendars  # noqa: PLC0415 - few schedules name any

    return calendars.leave_ops(world, planned.job.tenant, planned.job.id, planned.schedules)


def _own_ops(
    world: World, job: Job, schedules: Sequence[Schedule], parts: drafts.Parts, sealed: Mapping[str, str]
) -> list[Op]:
    rows = (
        world.table.put_op(f"schedule {schedule.id}", jobs.schedule_item(schedule, world.settings.shards))
        for schedule in schedules
    )
    return [
        world.table.put_op("job", jobs.job_item(job), jobs.ABSENT),
        *rows,
        *(op for schedule in schedules for op in unused.row_ops(world, job, schedule)),
        *(op for schedule in schedules for op in hook_ops(world, schedule, parts.hooks.get(schedule.id))),
        *drafts.part_ops(world, job, parts, sealed),
    ]


def _following_ops(
    world: World, job: Job, schedules: Sequence[Schedule], parts: drafts.Parts, sealed: Mapping[str, str]
) -> list[Op]:
    """Forty schedules with payloads, ten tags, secrets and a key are more than a transaction takes: they follow."""
    from sweephand.flow import following  # noqa: PLC0415 - few jobs are created so large
    from sweephand.flow.steps import Step  # noqa: PLC0415

    steps = [
        Step(None, schedule, payload=parts.payloads.pop(schedule.id, None), hooks=parts.hooks.pop(schedule.id, None))
        for schedule in schedules
    ]
    return [*_own_ops(world, job, (), parts, sealed), *following.start_ops(world, job, steps, None)]


def followed(world: World, job: Job) -> Planned:
    """The job is as it shall be, whatever comes now: schedules that do not follow at once do so within minutes."""
    from sweephand.flow import following  # noqa: PLC0415 - as above

    try:
        following.finish(world, job)
    except Unavailable as unavailable:
        world.journal.warning("schedules follow their job later", job=job.id, reason=unavailable.reason)
    return find(world, job.tenant, job.id)


def as_following(world: World, schedules: Sequence[Schedule]) -> Sequence[Schedule]:
    """Returns a tenant's schedules as answers speak of them: one that has still to follow a change of its calendars
    comes with the timing that it will have. One read where any of them names a calendar.
    """
    if not any(names_calendars(schedule.packed) for schedule in schedules):
        return schedules
    from sweephand.flow import calendars  # noqa: PLC0415 - few schedules name any

    return calendars.as_following(world, schedules)


def name_taken(job: Job) -> Conflict:
    """Returns the refusal of a name that another job of the collection has."""
    return Conflict(f'the collection {job.collection} has another job with the name "{job.name}"', code="NAME_TAKEN")


def _not_created(world: World, job: Job, refused: Cancelled, once: Once | None, seen: Usage) -> Planned:
    """A refused create may be this request's own success (lost answer), or the repetition of an earlier one."""
    tenant = job.tenant
    if once is not None and "once" in refused.refused:
        return find(world, tenant, earlier_answer(refused.refused["once"], once))
    there = jobs.read_job(world.table, tenant, job.id)
    if there is not None:
        return followed(world, there) if there.open_change is not None else find(world, tenant, job.id)
    tenancy.flow_key_exists(refused, "policies.flowKey")
    if "name" in refused.refused:
        raise name_taken(job)
    if "collection" in refused.refused:
        raise tenancy.full(world, job)
    if quotas.is_exceeded(refused, seen):
        raise quotas.exceeded(seen, refused)
    if usage.PART in refused.refused or any(name.startswith("calendar ") for name in refused.refused):
        raise _Moved
    raise Conflict("something else was changed at the same time: try again")


def find_job(world: World, tenant: str, job_id: str) -> Job:
    """Raises NotFound for an unknown job and for another tenant's."""
    job = jobs.read_job(world.table, tenant, job_id)
    if job is None:
        raise NotFound("no such job")
    return job


def find(world: World, tenant: str, job_id: str) -> Planned:
    """With its schedules. Raises NotFound."""
    job = find_job(world, tenant, job_id)
    return Planned(job, tuple(jobs.read_schedules(world.table, tenant, job_id)))


def find_schedule(planned: Planned, schedule_id: str) -> Schedule:
    for schedule in planned.schedules:
        if schedule.id == schedule_id:
            return schedule
    raise NotFound("no such schedule")


def delete_job(world: World, tenant: str, job_id: str, if_match: int | None, *, runs_too: bool = False) -> None:
    """The job, its schedules and lean rows at once; a clean-up row ends its open runs and clears the rest.

    runs_too: of the ledger nothing stays either.
    """
    for tries in range(TRIES):
        deleted_at = world.clock.now()
        planned = find(world, tenant, job_id)
        if if_match is not None and planned.job.revision != if_match:
            raise PreconditionFailed(f"the job is at revision {planned.job.revision}")
        job = planned.job
        first = planned.schedules[:IN_JOBS_TRANSACTION]
        ops = [
            world.table.delete_op("job", keys.job(tenant, job_id), keys.JOB, jobs.revision_is(job.revision)),
            *(
                world.table.delete_op(f"schedule {schedule.id}", keys.job(tenant, job_id), keys.schedule(schedule.id))
                for schedule in first
            ),
            *directory.delete_ops(world.table, job),
            tenancy.count_job_op(world, tenancy.named(tenant, job.collection), -1),
            *quotas.count_ops(world, job, None, Usage()),
            cleaning.of_job_op(world, job, planned.schedules, deleted_at, with_rows=first, runs_too=runs_too),
            *_leave_calendars(world, planned),
            *tenancy.flow_key_ops(world, tenant, job.policies.get("flowKey"), None),
        ]
        done = world.table.transact(ops)
        if isinstance(done, Written) or jobs.read_job(world.table, tenant, job_id) is None:
            break
        world.clock.sleep(world.chance.uniform(0.0, 0.02 * 2**tries))
    else:
        raise Unavailable("the job was changed by others all the time")
    where = cleaning.Place.of(planned.job)
    cleaning.note_delay(world, where, deleted_at)
    rest = planned.schedules[IN_JOBS_TRANSACTION:]
    cleaning.delete_schedules(world, where, rest, deleted_at, with_rows=not runs_too)
    directory.drop_if_empty(world.table, job)
    if world.standing.of(tenant, planned.job.collection).events is Events.ALL:
        _tell(world, planned.job, created=False)


def _tell(world: World, job: Job, *, created: bool) -> None:
    """A create that is repeated under its key tells it again, under the same id."""
    from sweephand.flow import announce  # noqa: PLC0415 - most collections tell failures only

    announce.job_created(world, job) if created else announce.job_deleted(world, job)


def payloads_of(world: World, planned: Planned) -> dict[str, Payload]:
    """The payloads of a job and its schedules by owner: action, errorAction, or the schedule's id. One batched read."""
    job = planned.job
    wanted: dict[str, int] = {}
    if job.action.payload_version is not None:
        wanted[drafts.ACTION] = job.action.payload_version
    if job.error_action is not None and job.error_action.payload_version is not None:
        wanted[drafts.ERROR_ACTION] = job.error_action.payload_version
    wanted |= {
        hook_owner(name): hook.payload_version for name, hook in job.hooks.items() if hook.payload_version is not None
    }
    wanted |= {each.id: each.payload_version for each in planned.schedules if each.payload_version is not None}
    return jobs.read_payloads(world.table, job.tenant, job.id, wanted)


def named_hooks(version: int, hooks: Mapping[str, object] | None) -> str | None:
    """What a schedule's row says of the hooks that it brings itself; None without any."""
    if not hooks:
        return None
    from sweephand.domain.own_hooks import OwnHooks  # noqa: PLC0415 - few schedules bring any

    return str(OwnHooks.of(version, hooks))


def hook_ops(world: World, schedule: Schedule, hooks: ByName | None) -> list[Op]:
    """A schedule's new hooks are written together with its row."""
    if not hooks:
        return []
    from sweephand.store import own_hooks  # noqa: PLC0415 - few schedules bring any

    return [own_hooks.put_op(world.table, schedule, hooks)]


def within_quota(collection: Collection, seen: Usage, schedule: Schedule, path: str) -> Schedule:
    """A new schedule as its collection and its provider allow it. Raises QuotaExceeded."""
    timing = drafts.stored_timing(schedule)
    tenancy.check_interval(collection, seen, timing, path)
    return replace(schedule, packed=tenancy.bounded(collection, timing, timing.count, path).packed)


def minted_at(now: datetime, n: int) -> datetime:
    """Ids sort by their milliseconds: those of one request keep its order."""
    return now + timedelta(milliseconds=n)


def by_creation(schedules: Sequence[Schedule]) -> tuple[Schedule, ...]:
    return tuple(sorted(schedules, key=lambda schedule: schedule.id))


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
        timing = drafts.timing_of(draft, job, schedule_id, now, may_be_empty=draft.asked is not None)
    except InvalidRequest as wrong:
        raise (wrong.within(path) if path else wrong) from wrong
    if draft.payload is not None:
        parts.payloads[schedule_id] = draft.payload
    if draft.hooks:
        from sweephand.flow import own_hooks  # noqa: PLC0415 - few schedules bring any

        parts.hooks[schedule_id] = own_hooks.sealed(world, job, schedule_id, draft.hooks, {}, path)
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
        if draft.asked is not None or drafts.may_be_over(draft, job):
            return replan.over_at_once(planned, now)
        over = _over(draft, job, timing, now)
        raise over.within(path) if path else over
    return planned


def _over(draft: ScheduleDraft, job: Job, timing: Timing, now: datetime) -> InvalidRequest:
    """The refusal of what has no occurrence left, at the member that says so; at none of it where the job is over."""
    field: str | None = timing.notation
    if draft.timing.get("endTime") is not None and timing.ends_at <= now:
        field = "endTime"
    elif job.end_at is not None and job.end_at <= now:
        field = None
    last = timing.rule.last_until(now)
    reason = "no occurrence lies ahead" if last is None else f"no occurrence lies ahead, the last was {text(last)}"
    return InvalidRequest(field, reason, code="NEVER_FIRES")


def refuse_twins(schedules: Sequence[tuple[Schedule, str]]) -> None:
    """Each with its path in the request; that of one which the request does not name is empty."""
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
