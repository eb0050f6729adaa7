"""Creates jobs with their schedules in one transaction per request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sweephand.domain.collection import CollectionState, Events, Usage
from sweephand.domain.job import SCHEDULES_AT_ONCE, Job, JobDraft, ScheduleDraft
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.errors import Conflict, InvalidRequest, Unavailable
from sweephand.flow.concurrency import Moved, until_unmoved
from sweephand.flow.idempotency import Once, earlier_answer, once_op
from sweephand.flow.job_parts import expiry, quotas
from sweephand.flow.job_parts.change_log import CREATED, By, entry
from sweephand.flow.jobs import drafts
from sweephand.flow.jobs.large_changes import followed
from sweephand.flow.jobs.lookup import Planned, find
from sweephand.flow.jobs.new_schedules import (
    hook_ops,
    minted_at,
    new_schedule,
    refuse_twins,
    with_schedule_ids,
    within_quota,
)
from sweephand.flow.series import replan
from sweephand.flow.tenants import tenancy
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.store.dynamo.conditional import TRANSACTION_MOST, Cancelled, Op
from sweephand.store.jobs import directory, history, jobs
from sweephand.store.tenants import tenants, usage

with lazy():
    from sweephand.flow import events
    from sweephand.flow.job_parts import change_log, named_calendars
    from sweephand.flow.jobs import completion, large_changes

COMPLETED_WITHIN_S = 2.0
"""How long a request may spend on completing schedules that it has left no occurrence."""


def create_job(
    world: World,
    tenant: str,
    draft: JobDraft,
    once: Once | None = None,
    by: By = CREATED,
    most: int = SCHEDULES_AT_ONCE,
) -> Planned:
    """Creates a job with up to `most` schedules. A refused request writes nothing.

    If the transaction has no room for the schedules, they are written after the job (decision 0017).
    Raises InvalidRequest, QuotaExceeded, Conflict(NAME_TAKEN), Unavailable.
    """
    if len(draft.schedules or ()) > most:
        more = "create the job with some of them, then add the others"
        raise InvalidRequest(
            "schedules", f"at most {most:,} in one request, not {len(draft.schedules or ()):,}; {more}"
        )
    return _create_job(world, tenant, draft, once, by)


@until_unmoved("changes to a calendar or to the quota")
def _create_job(world: World, tenant: str, draft: JobDraft, once: Once | None, by: By) -> Planned:
    now = world.clock.now()
    job_id = world.chance.new_id(now)
    wanted, use_ops_of = _with_calendars(world, tenant, draft.schedules or ())
    job, parts = drafts.job_from(draft, tenant, job_id, now, 1)
    collection, seen = tenancy.open_with_usage(world, tenant, job.collection)
    tenancy.check_home(collection, job)
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
        tenants.count_job_op(world.table, collection, 1),
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
        events.job_created(world, planned.job)
    return planned


def completed(world: World, planned: Planned, before: Sequence[Schedule] = ()) -> Planned:
    """Completes the schedules to which this write has left no occurrence, unless they have open runs.

    If that fails, their wake rows complete them. before: the schedules before the write. Returns the job as it then is.
    """
    ending = {each.id for each in before if each.state is ScheduleState.ENDING}
    over = [each for each in planned.schedules if each.state is ScheduleState.ENDING and each.id not in ending]
    if not over:
        return planned
    until = world.clock.monotonic() + COMPLETED_WITHIN_S
    try:
        for schedule in over:
            if world.clock.monotonic() > until:
                break  # their wake rows complete the others
            completion.complete_if_over(world, schedule)
        return find(world, planned.job.tenant, planned.job.id)
    except Unavailable as unavailable:
        world.journal.warning("a schedule will be completed later", job=planned.job.id, reason=unavailable.reason)
        return planned


UseOps = Callable[[Job, Sequence[Schedule]], Sequence[Op]]


def _with_calendars(
    world: World, tenant: str, wanted: tuple[ScheduleDraft, ...]
) -> tuple[tuple[ScheduleDraft, ...], UseOps]:
    """Returns the drafts with references to their calendars, and a function that makes the operations for them."""
    if not any("calendars" in draft.timing for draft in wanted):
        return wanted, lambda *_: ()
    book = named_calendars.book_of(world, tenant, (draft.timing for draft in wanted))
    references = named_calendars.references(book)

    def ops(job: Job, schedules: Sequence[Schedule]) -> Sequence[Op]:
        steps = [change_log.Step(None, schedule) for schedule in schedules]
        return named_calendars.use_ops(world, job.id, steps, schedules, book)

    return tuple(replace(draft, book=references) for draft in wanted), ops


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
        *(op for schedule in schedules for op in expiry.row_ops(world, job, schedule)),
        *(op for schedule in schedules for op in hook_ops(world, schedule, parts.hooks.get(schedule.id))),
        *drafts.part_ops(world, job, parts, sealed),
    ]


def _following_ops(
    world: World, job: Job, schedules: Sequence[Schedule], parts: drafts.Parts, sealed: Mapping[str, str]
) -> list[Op]:
    """Returns the job's operations for a request that is too large for one transaction: its schedules follow later.

    Forty schedules with payloads, ten tags, secrets and an idempotency key are too many.
    """
    steps = [
        change_log.Step(
            None, schedule, payload=parts.payloads.pop(schedule.id, None), hooks=parts.hooks.pop(schedule.id, None)
        )
        for schedule in schedules
    ]
    return [*_own_ops(world, job, (), parts, sealed), *large_changes.start_ops(world, job, steps, None)]


def name_taken(job: Job) -> Conflict:
    """Returns the error for a name that another job of the collection has."""
    where = f'the collection {job.collection} has another job with the name "{job.name}"'
    return Conflict(f"{where}: choose another name, or change that job", code="NAME_TAKEN")


def _not_created(world: World, job: Job, refused: Cancelled, once: Once | None, seen: Usage) -> Planned:
    """Returns the job if this request, or an earlier one with its key, has created it after all; raises otherwise.

    A refused transaction may have been written by this very call, whose answer was lost.
    """
    tenant = job.tenant
    if once is not None and "once" in refused.refused:
        return find(world, tenant, earlier_answer(refused.refused["once"], once))
    there = jobs.read_job(world.table, tenant, job.id)
    if there is not None:
        return followed(world, there) if there.open_change is not None else find(world, tenant, job.id)
    tenancy.flow_key_exists(refused, "policies.flowKey", job.policies.get("flowKey"))
    if "name" in refused.refused:
        raise name_taken(job)
    if "collection" in refused.refused:
        raise tenancy.full(world, job)
    if quotas.is_exceeded(refused, seen):
        raise quotas.exceeded(seen, refused)
    if usage.PART in refused.refused or any(name.startswith("calendar ") for name in refused.refused):
        raise Moved
    raise Conflict("another change was made at the same time; try again")
