"""Creates jobs with their schedules in one transaction per request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.base.errors import Conflict, InvalidRequest, Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain import application
from sweephand.domain.collection import Collection, CollectionState, Events, Home, Usage
from sweephand.domain.job import SCHEDULES_AT_ONCE, Job, JobDraft, by_owner
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.server.flow.concurrency import Moved, until_unmoved
from sweephand.server.flow.idempotency import Once, earlier_answer, once_op
from sweephand.server.flow.job_parts import quotas
from sweephand.server.flow.job_parts.change_log import CREATED, By, Step, entry
from sweephand.server.flow.jobs import drafts, requested, steps
from sweephand.server.flow.jobs.large_changes import followed
from sweephand.server.flow.jobs.lookup import Planned, find
from sweephand.server.flow.jobs.requested import ChangeContext, ScheduleRequest
from sweephand.server.flow.series import replan
from sweephand.server.flow.series.replan import Effect
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import TRANSACTION_MOST, Cancelled, Contended, Op, Written
from sweephand.server.store.jobs import directory, history, jobs

if TYPE_CHECKING:
    from sweephand.domain.job_set import Membership

with lazy():
    from sweephand.server.flow import events
    from sweephand.server.flow.job_parts import membership
    from sweephand.server.flow.jobs import completion, large_changes
    from sweephand.server.flow.tenants import applications
    from sweephand.server.store.tenants import usage

LIMITED_TRIES = 3
COMPLETED_WITHIN_S = 2.0
"""How long a request may spend on completing schedules that it leaves without an occurrence."""


def create_job(
    world: World,
    tenant: str,
    draft: JobDraft,
    once: Once | None = None,
    by: By = CREATED,
    most: int = SCHEDULES_AT_ONCE,
    home: Home | None = None,
) -> Planned:
    """Creates a job with up to `most` schedules. A refused request writes nothing.

    If the transaction has no room for the schedules, they are written after the job (decision 0017).
    home: what the caller has just read of the collection; it is read again only if the job must be planned again.
    Raises InvalidRequest, QuotaExceeded, Conflict(NAME_TAKEN), Unavailable.
    """
    if len(draft.schedules or ()) > most:
        more = "create the job with some of them, then add the others"
        raise InvalidRequest(
            "schedules", f"at most {most:,} in one request, not {len(draft.schedules or ()):,}; {more}"
        )
    return _create_job(world, tenant, draft, once, by, iter([] if home is None else [home]))


@dataclass(frozen=True)
class Begun:
    """A job that is not written yet, with the steps that make its schedules."""

    job: Job
    parts: drafts.Parts
    todo: Sequence[Step]
    context: ChangeContext


def _begun(
    world: World,
    tenant: str,
    draft: JobDraft,
    job_id: str,
    now: datetime,
    opened: Callable[[], tuple[Collection, Usage]],
) -> Begun:
    """Makes the checks that need no write. opened: returns the collection and the quotas, which it may read."""
    wanted = [ScheduleRequest(None, each, path=f"schedules[{n}]") for n, each in enumerate(draft.schedules or ())]
    book = requested.book_of(world, tenant, wanted)
    job, parts = drafts.job_from(draft, tenant, job_id, now, 1)
    if named := application.named_by(by_owner(draft.action, draft.error_action, draft.hooks)):
        applications.check(world, tenant, named)
    collection, tenant_usage = opened()
    tenancy.check_home(collection, job)
    context = ChangeContext(job, job, collection, tenant_usage, {}, Effect(now, now), book=book)
    return Begun(job, parts, requested.steps_of(world, wanted, context, now), context)


def check(world: World, tenant: str, draft: JobDraft, opened: tuple[Collection, Usage]) -> Begun:
    """Returns the job that the draft would make; raises InvalidRequest if it cannot become one.

    opened: its collection and the quotas.
    """
    now = world.clock.now()
    return _begun(world, tenant, draft, world.chance.new_id(now), now, lambda: opened)


def dry_run(begun: Begun) -> steps.DryRun:
    """Returns the job as it would be written."""
    schedules = [step.after for step in begun.todo if step.after is not None]
    return steps.dry_run_of(begun.job, begun.parts.payloads, begun.todo, schedules)


@until_unmoved("changes to a calendar or to the quota", tries=20, wait_s=0.02)
def _create_job(
    world: World, tenant: str, draft: JobDraft, once: Once | None, by: By, homes: Iterator[Home]
) -> Planned:
    """Plans and writes the job. homes: read before; each try takes one, or else reads it."""

    def opened() -> tuple[Collection, Usage]:
        return tenancy.opened(next(homes, None) or tenancy.home_of(world, tenant, draft.collection))

    now = world.clock.now()
    in_set = draft.membership
    job_id = in_set.job_id if in_set is not None and in_set.job_id is not None else world.chance.new_id(now)
    begun = _begun(world, tenant, draft, job_id, now, opened)
    job, parts, todo, book = begun.job, begun.parts, begun.todo, begun.context.book
    collection, tenant_usage, effect = begun.context.collection, begun.context.usage, begun.context.effect
    carried = steps.carry_out(world, todo, job, effect)
    schedules = carried.schedules
    job = steps.with_schedule_ids(job, schedules)
    sealed = drafts.seal(world, job, parts)
    job = replace(job, number=directory.next_number(world.table, tenant))
    ops = [
        *directory.create_ops(world.table, job, schedules),
        *quotas.count_ops(world, None, job, collection, tenant_usage),
        *tenancy.flow_key_ops(world, tenant, None, job.policies.get("flowKey"), job.number),
        history.put_op(world.table, entry(world, by, None, job, [(None, schedule) for schedule in schedules])),
        *([once_op(world, tenant, once, job.id)] if once else []),
        *(membership.set_ops(world, job, in_set) if in_set is not None else []),
        *requested.calendar_ops(world, job, todo, schedules, book),
        *drafts.part_ops(world, job, parts, sealed),
    ]
    schedule_ops = carried.ops
    if 1 + len(schedule_ops) + len(ops) > TRANSACTION_MOST:
        # Forty schedules with payloads, ten tags, secrets and an idempotency key are too many.
        job = replace(job, open_change=job.revision)
        schedule_ops = large_changes.start_ops(world, job, todo, None)
    ops = [world.table.put_op("job", jobs.job_item(job), jobs.ABSENT), *schedule_ops, *ops]
    done = _written(world, ops, limited=quotas.limits(collection, tenant_usage))
    planned = Planned(job, tuple(schedules))
    if isinstance(done, Cancelled):
        planned = _not_created(world, job, done, once, in_set)
    elif job.open_change is None and collection.state is CollectionState.ENABLED:
        replan.send_ahead(world, schedules)
    if planned.job.revision == 1 and collection.events is Events.ALL:
        events.job_created(world, planned.job, by.actor, by.reason)
    if planned.job.open_change is not None:
        planned = followed(world, planned.job)
    return completed(world, planned)


def _written(world: World, ops: Sequence[Op], *, limited: bool) -> Written | Cancelled:
    """Writes the transaction of a job. If quotas limit it, it is soon planned again: others may have used them up."""
    if not limited:
        return world.table.transact(ops)
    try:
        return world.table.transact(ops, most=LIMITED_TRIES)
    except Contended as contended:
        raise Moved from contended


def completed(world: World, planned: Planned, before: Sequence[Schedule] = ()) -> Planned:
    """Completes the schedules that this write has left without an occurrence, unless they have open runs.

    If that fails, their wake rows complete them. before: the schedules before the write. Returns the job as it is then.
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


def name_taken(job: Job) -> Conflict:
    """Returns the error for a name that another job of the collection has."""
    where = f'the collection {job.collection} has another job with the name "{job.name}"'
    return Conflict(f"{where}: choose another name, or change that job", code="NAME_TAKEN")


def explain(world: World, job: Job, refused: Cancelled) -> None:
    """Raises the error for a transaction that the job's flow key or name has refused."""
    tenancy.flow_key_exists(world, job.tenant, refused, "policies.flowKey", job.policies.get("flowKey"))
    if "name" in refused.refused:
        raise name_taken(job)


def _not_created(world: World, job: Job, refused: Cancelled, once: Once | None, in_set: Membership | None) -> Planned:
    """Returns the job if this request, or an earlier one with its key, has created it after all; raises otherwise.

    A transaction may be refused because this same call has written it before and lost the answer.
    """
    tenant = job.tenant
    if once is not None and "once" in refused.refused:
        return find(world, tenant, earlier_answer(refused.refused["once"], once))
    if jobs.read_job(world.table, tenant, job.id) is not None:
        return find(world, tenant, job.id)
    if in_set is not None:
        membership.check(refused, in_set.job_set, in_set.key)
    explain(world, job, refused)
    if {usage.PART, "collection"} & set(refused.refused) or any(
        name.startswith("calendar ") for name in refused.refused
    ):
        raise Moved
    raise Conflict("another change was made at the same time; try again")
