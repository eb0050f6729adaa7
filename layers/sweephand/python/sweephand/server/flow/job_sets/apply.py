"""Job sets: plans what a desired list changes, and makes the changes one job at a time.

Each change is one transaction of its job, on condition that the member of the set has not changed since it was planned.
A crash leaves no half-written job. The next apply of the same list makes the changes that are left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import field, replace

from sweephand.base.errors import (
    Conflict,
    InvalidRequest,
    Mistakes,
    NotFound,
    PreconditionFailed,
    SweephandError,
    Unavailable,
)
from sweephand.base.members.fields import shown
from sweephand.base.records import dataclass
from sweephand.domain import job_set as rules
from sweephand.domain.collection import Collection, Usage
from sweephand.domain.job import Job, JobDraft, Payload, ScheduleDraft
from sweephand.domain.job_set import Change, Member, Membership, Plan, Verb, Wanted
from sweephand.domain.jobs.job_state import is_final
from sweephand.schedules.rule import limited_for
from sweephand.server.flow.concurrency import tolerated
from sweephand.server.flow.idempotency import Once, note_deleted, was_deleted
from sweephand.server.flow.job_parts import membership
from sweephand.server.flow.job_parts.change_log import By
from sweephand.server.flow.jobs import change, creation, deletion, lookup
from sweephand.server.flow.jobs.creation import Begun
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.steps import DryRun
from sweephand.server.flow.manual import manual
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.job_sets import job_sets as store
from sweephand.server.store.jobs import directory, jobs
from sweephand.server.store.views import jobs as lists

IN_USE_S = 10


@dataclass(frozen=True)
class SetPlan:
    """A plan, and the jobs that it changes, by their ids.

    opened: the collections of the list, by name, with quotas. ids: the ids of jobs of the list, by key; only of those
    that exist and of new ones to which others refer. owner: of a set that the plan creates. begun: the checked jobs
    that are new, by key.
    """

    plan: Plan
    jobs: Mapping[str, Planned]
    ids: Mapping[str, str]
    opened: Mapping[str, tuple[Collection, Usage]] = field(default_factory=dict)
    owner: str | None = None
    begun: Mapping[str, Begun] = field(default_factory=dict)

    def job_of(self, each: Change) -> Planned | None:
        """Returns the stored job that a change is about; None for a new one."""
        return None if each.member is None or each.member.gone else self.jobs.get(each.member.job_id)


def plan(world: World, tenant: str, name: str, wanted: Sequence[Wanted], *, prune: bool = True) -> SetPlan:
    """Plans without writing. A set of unchanged jobs costs one query. prune: whether to delete what the list lacks."""
    stored = list(store.members(world.table, tenant, name))
    jobs_by_id: dict[str, Planned] = {}
    missing: set[str] = set()
    while True:
        members = rules.with_missing(stored, missing)
        planned = rules.plan(name, wanted, members, prune=prune)
        owned = {each.member.job_id for each in planned.changes if each.member is not None and not each.member.gone}
        unread = owned - jobs_by_id.keys()
        if not unread:
            return SetPlan(planned, jobs_by_id, _ids(world, planned, wanted, members))
        with_schedules = lists.jobs_with_schedules(world.table, tenant, sorted(unread), consistent=True)
        read = {job.id: Planned(job, tuple(schedules)) for job, schedules in with_schedules}
        jobs_by_id |= read
        missing |= unread - read.keys()


def _ids(world: World, planned: Plan, wanted: Sequence[Wanted], members: Sequence[Member]) -> dict[str, str]:
    """Returns the ids of the list's jobs. A job to which another refers gets its id before it is created."""
    ids = rules.ids_of(wanted, members)
    refers = {key for each in planned.changes if each.wanted is not None for key in each.wanted.refers}
    now = world.clock.now()
    return ids | {key: world.chance.new_id(now) for key in sorted(refers - ids.keys())}


def check(
    world: World, tenant: str, set_plan: SetPlan, read: Callable[[Change], JobDraft], schedules: int
) -> tuple[SetPlan, Mapping[str, JobDraft]]:
    """Makes the checks that need no write, so that a refused list changes nothing.

    read: returns the draft of a changed job, just before it is checked, so that a list of wrong jobs costs no more than
    the first ones. schedules: how many the list has, at most.

    Returns the changes that can be made. A job whose dates are all past is not repaired. Names are assigned in the
    order in which they become free. Raises InvalidRequest with the path of the entry, Conflict(NAME_TAKEN,
    STATE_CONFLICT).
    """
    wrong = Mistakes()
    opened: dict[str, tuple[Collection, Usage]] = {}
    begun: dict[str, Begun] = {}
    with limited_for(schedules):
        drafts = {
            each.key: wrong.of(_checked, world, tenant, set_plan.job_of(each), each, read, opened, begun)
            for each in set_plan.plan.changes
            if each.wanted is not None
        }
    wrong.check()
    checked = {key: draft for key, draft in drafts.items() if draft is not None}
    plan = set_plan.plan.settled(drafts.keys() - checked.keys())
    changes = _by_names(world, tenant, plan, checked)
    return replace(set_plan, plan=replace(plan, changes=changes), opened=opened, begun=begun), checked


def _checked(
    world: World,
    tenant: str,
    current: Planned | None,
    each: Change,
    read: Callable[[Change], JobDraft],
    opened: dict[str, tuple[Collection, Usage]],
    begun: dict[str, Begun],
) -> JobDraft | None:
    """Returns the draft that can be applied; None for a repair of a job that is over."""
    assert each.wanted is not None
    draft, repairs = read(each), each.verb is Verb.REPAIR
    if current is not None and repairs and is_final(current.job, current.schedules):
        return None
    try:
        if draft.collection not in opened:
            opened[draft.collection] = tenancy.open_with_quotas(world, tenant, draft.collection)
        home = opened[draft.collection]
        try:
            new = _check(world, tenant, current, draft, home)
        except InvalidRequest:
            asked = draft.schedules or ()
            ahead = tuple(one for one in asked if not (repairs and _is_over(world, tenant, current, draft, one, home)))
            if len(ahead) == len(asked):
                raise
            if not ahead:
                return None
            draft = replace(draft, schedules=ahead)
            new = _check(world, tenant, current, draft, home)
    except InvalidRequest as wrong:
        raise wrong.within(f"jobs[{each.wanted.place}]") from wrong
    if new is not None:
        begun[each.key] = new
    return draft


def _check(
    world: World, tenant: str, current: Planned | None, draft: JobDraft, home: tuple[Collection, Usage]
) -> Begun | None:
    """Makes the checks that need no write. Returns a job that is new."""
    if current is None:
        return creation.check(world, tenant, draft, home)
    lookup.check(current.job, current.schedules)
    change.check(world, current, draft, home)
    return None


def dry_run(world: World, set_plan: SetPlan, each: Change, draft: JobDraft, stored: Mapping[str, Payload]) -> DryRun:
    """Returns the job as a checked change would leave it. stored: its current payloads."""
    current = set_plan.job_of(each)
    if current is None:
        return creation.dry_run(set_plan.begun[each.key])
    return change.dry_run(world, current, draft, set_plan.opened[draft.collection], stored)


def _is_over(
    world: World,
    tenant: str,
    current: Planned | None,
    draft: JobDraft,
    schedule: ScheduleDraft,
    home: tuple[Collection, Usage],
) -> bool:
    """Returns whether a schedule is refused only because no occurrence is left."""
    lenient = replace(schedule, policies={**schedule.policies, "onNothingLeft": "complete"})
    refused = [
        _is_refused(world, tenant, current, replace(draft, schedules=(one,)), home) for one in (schedule, lenient)
    ]
    return refused == [True, False]


def _is_refused(
    world: World, tenant: str, current: Planned | None, draft: JobDraft, home: tuple[Collection, Usage]
) -> bool:
    try:
        _check(world, tenant, current, draft, home)
    except InvalidRequest:
        return True
    return False


def _by_names(world: World, tenant: str, plan: Plan, drafts: Mapping[str, JobDraft]) -> tuple[Change, ...]:
    """Returns the changes in an order in which each name is free when it is needed.

    Raises InvalidRequest for a name that appears twice, Conflict(NAME_TAKEN) for one that another job keeps.
    """
    wanted: dict[tuple[str, str], Change] = {}
    for each in plan.changes:
        draft = drafts.get(each.key)
        if each.wanted is None or draft is None or draft.name is None:
            continue
        place = (draft.collection, draft.name)
        if place in wanted:
            reason = f'the job "{wanted[place].key}" of this list has this name already'
            raise InvalidRequest(f"jobs[{each.wanted.place}].name", reason)
        wanted[place] = each
    holders = {each.member.job_id: each for each in plan.changes if each.member is not None}
    frees: dict[str, Change] = {}
    for (collection, name), job_id in directory.named(world.table, tenant, wanted).items():
        each = wanted[collection, name]
        holder = holders.get(job_id)
        if holder is not None and holder is not each:
            frees[each.key] = holder
        elif holder is None and not _is_of(world, tenant, plan.job_set, each.key, job_id):
            where = f'the job "{each.key}": the collection {collection} has another job with the name "{name}"'
            raise Conflict(f"{where}: choose another name, or delete that job", code="NAME_TAKEN")
    return _in_order(plan.changes, frees)


def _is_of(world: World, tenant: str, job_set: str, key: str, job_id: str) -> bool:
    """Returns whether a concurrent apply has created this job for the key."""
    job = jobs.read_job(world.table, tenant, job_id)
    return job is not None and (job.job_set, job.key) == (job_set, key)


def _in_order(changes: Sequence[Change], frees: Mapping[str, Change]) -> tuple[Change, ...]:
    """Returns the changes, each after the one that frees its name. frees: by key. Raises Conflict(NAME_TAKEN)."""
    ordered: dict[str, Change] = {}
    for each in changes:
        chain = {} if each.key in ordered else {each.key: each}
        first = frees.get(each.key)
        while first is not None and first.key not in ordered and chain:
            if first.key in chain:
                circle = list(chain)[list(chain).index(first.key) :]
                names = ", ".join(f'"{key}"' for key in circle)
                reason = f"the jobs {names} exchange their names: give one of them another name first"
                raise Conflict(reason, code="NAME_TAKEN")
            chain[first.key] = first
            first = frees.get(first.key)
        ordered |= dict(reversed(chain.items()))
    return tuple(ordered.values())


def is_overtaken(
    world: World, tenant: str, name: str, wanted: Sequence[Wanted], refused: AbstractSet[str], *, prune: bool = True
) -> bool:
    """Returns whether another list was applied meanwhile, so that the set differs from this one. Costs one query.

    So if two lists are applied at once, only the last one is reported as done. refused: keys of changes that were
    refused. Changes by hand do not count: they are drift.
    """
    left = rules.plan(name, wanted, list(store.members(world.table, tenant, name)), prune=prune).changes
    return any(each.verb is not Verb.REPAIR and each.key not in refused for each in left)


def may_delete(world: World, tenant: str, name: str) -> bool:
    """Returns whether there is such a set, or it was deleted within the last 24 hours."""
    return store.read_set(world.table, tenant, name) is not None or was_deleted(world, tenant, _mark(name))


def _mark(name: str) -> str:
    return f"job set {name}"


@contextmanager
def applying(world: World, tenant: str, set_plan: SetPlan, by: By) -> Iterator[None]:
    """Puts the set into the list of sets while the changes of a plan are made, if they give it jobs.

    One write before them and one after them. A crash leaves the set in the list. A new set goes again if all changes
    were refused.
    """
    name = set_plan.plan.job_set
    if all(each.wanted is None for each in set_plan.plan.changes):
        yield
        return
    new = store.begin(world.table, tenant, name, world.clock.now(), by.actor, set_plan.owner)
    try:
        yield
    except SweephandError as refused:
        _end(world, tenant, name, unused=new and not isinstance(refused, Unavailable))
        raise
    _end(world, tenant, name)


def _end(world: World, tenant: str, name: str, *, unused: bool = False) -> None:
    with tolerated(world, "a job set counts as being applied for a minute"):
        store.end(world.table, tenant, name)
        if unused:
            _remove_empty(world, tenant, name)


def forget(world: World, tenant: str, name: str) -> None:
    """Removes an empty set from the list of sets. Raises Unavailable while another list may give it jobs."""
    note_deleted(world, tenant, _mark(name))
    if not (_remove_empty(world, tenant, name) or _remove_empty(world, tenant, name)):
        reason = f"another list is being applied to the set {name}: delete it again in a minute"
        raise Unavailable(reason, retry_after_s=IN_USE_S)


def _remove_empty(world: World, tenant: str, name: str) -> bool:
    """Removes a set unless it has jobs. Returns False if another list may just be giving it some."""
    stored = store.read_set(world.table, tenant, name)
    if stored is None or next(store.members(world.table, tenant, name), None) is not None:
        return True
    return not stored.is_applied(world.clock.now()) and store.delete_set(world.table, tenant, stored)


def claim(world: World, tenant: str, name: str, owner: str) -> None:
    """Makes the set belong to its owner, after the whole list was applied."""
    stored = store.read_set(world.table, tenant, name)
    if stored is not None and stored.owner != owner:
        store.claim(world.table, tenant, name, owner)


def release(world: World, tenant: str, name: str, owner: str) -> None:
    """Makes the set belong to nothing. May be repeated. Raises NotFound, and Conflict for a set of another owner."""
    stored = store.read_set(world.table, tenant, name)
    if stored is None:
        raise no_such_set(name)
    if stored.owner not in {None, owner}:
        raise Conflict(f"the set {name} belongs to {stored.owner}, not to {owner}")
    if stored.owner is not None and not store.release(world.table, tenant, name, owner):
        raise Conflict(f"the owner of the set {name} was changed meanwhile: read it again")


def no_such_set(name: str) -> NotFound:
    return NotFound(f"no such job set: {shown(name)}")


def apply_change(
    world: World, tenant: str, set_plan: SetPlan, each: Change, draft: JobDraft | None, by: By
) -> Job | None:
    """Makes one change of a plan. Returns the job; None for a deleted one, and for one that needs no change.

    May be repeated. Raises PreconditionFailed(PLAN_STALE) if a caller has changed the job since it was planned.
    """
    name = set_plan.plan.job_set
    try:
        return _apply(world, tenant, set_plan, each, draft, by)
    except (PreconditionFailed, NotFound) as refused:
        member = store.read_member(world.table, tenant, name, each.key)
        wanted = None if each.wanted is None else each.wanted.digest_with(set_plan.ids)
        if (None if member is None else member.digest) == wanted and (member is None) == (wanted is None):
            return None
        if each.wanted is None and each.member is not None and member is not None and member.gone:
            store.forget(world.table, tenant, name, member)
            return None
        if isinstance(refused, NotFound) and each.member is not None:
            raise membership.stale(name, each.key) from refused
        raise


def _apply(world: World, tenant: str, set_plan: SetPlan, each: Change, draft: JobDraft | None, by: By) -> Job | None:
    member, name = each.member, set_plan.plan.job_set
    if each.wanted is None:
        assert member is not None
        if member.gone:
            store.forget(world.table, tenant, name, member)
        else:
            deletion.delete_job(world, tenant, member.job_id, None, member, by=by)
        return None
    assert draft is not None
    as_read = None if member is None else replace(member, missing=False)
    in_set = Membership(name, each.key, each.wanted.digest_with(set_plan.ids), as_read)
    if member is None or member.gone:
        in_set = replace(in_set, job_id=set_plan.ids.get(each.key))
        return creation.create_job(world, tenant, replace(draft, membership=in_set), None, by).job

    def edit(_planned: Planned, _stored: Mapping[str, Payload]) -> JobDraft:
        return replace(draft, membership=in_set)

    return change.change_job(world, tenant, member.job_id, edit, None, by).job


def run_now(world: World, tenant: str, job: Job) -> None:
    """Starts a run of a repaired job, once even if the request is repeated."""
    key = hashlib.sha256(f"repaired {job.id} {job.revision}".encode()).hexdigest()
    manual.run_now(world, tenant, job.id, None, Once(key, key))
