"""The member of a job set, written in the transaction of its job.

It says what the set applied and whether others have changed the job since. A change by anyone but the set clears the
digest, so that the next plan repairs the job. Pauses and the service's own changes keep the digest, because they change
nothing that a set can ask for.
"""

from __future__ import annotations

from sweephand.base.errors import PreconditionFailed
from sweephand.domain.job import Job
from sweephand.domain.job_set import Member, Membership
from sweephand.server.flow.concurrency import Moved
from sweephand.server.flow.job_parts.change_log import By, Operation
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Cancelled, Op
from sweephand.server.store.job_sets import job_sets
from sweephand.server.store.jobs import jobs

OLD = "old member"
"""The part that removes a member whose key has changed."""
NOT_OF_THE_SET = frozenset({Operation.PAUSE, Operation.RESUME})
PLAN_STALE = "PLAN_STALE"


def set_ops(world: World, job: Job, asked: Membership) -> list[Op]:
    """Returns the operations for a job that its set creates or changes. job: as it will be."""
    as_read, member = asked.as_read, _member(job, asked)
    if as_read is None or as_read.key == asked.key:
        return [job_sets.put_op(world.table, job.tenant, asked.job_set, member, job_sets.is_as_read(as_read))]
    return [
        job_sets.put_op(world.table, job.tenant, asked.job_set, member, job_sets.is_as_read(None)),
        job_sets.delete_op(world.table, job.tenant, asked.job_set, as_read, OLD),
    ]


def change_ops(world: World, job: Job, asked: Membership | None, by: By) -> list[Op]:
    """Returns the operations for a changed job. job: as it will be. asked: None if anyone but the set changes it."""
    if asked is not None:
        return set_ops(world, job, asked)
    if job.job_set is None or job.key is None or by.actor is None or by.operation in NOT_OF_THE_SET:
        return []
    return [job_sets.put_op(world.table, job.tenant, job.job_set, Member(job.key, job.id, None, job.revision))]


def delete_ops(world: World, job: Job, as_read: Member | None) -> list[Op]:
    """Returns the operations for a deleted job. as_read: its member, if its set deletes it."""
    assert job.job_set is not None
    assert job.key is not None
    if as_read is not None:
        return [job_sets.delete_op(world.table, job.tenant, job.job_set, as_read)]
    return [job_sets.put_op(world.table, job.tenant, job.job_set, Member(job.key, job.id, None, None))]


def _member(job: Job, asked: Membership) -> Member:
    return Member(asked.key, job.id, asked.digest, job.revision)


def note(world: World, job: Job, asked: Membership) -> None:
    """Writes the member of a job that already is as its set asks. Raises Moved, PreconditionFailed(PLAN_STALE)."""
    member = _member(job, asked)
    if member == asked.as_read:
        return
    same = world.table.check_op("job", *jobs.job_keys(job.tenant, [job.id])[0], jobs.revision_is(job.revision))
    done = world.table.transact([same, *set_ops(world, job, asked)])
    if (
        isinstance(done, Cancelled)
        and job_sets.read_member(world.table, job.tenant, asked.job_set, asked.key) != member
    ):
        check(done, asked.job_set, asked.key)
        raise Moved


def check(refused: Cancelled, job_set: str, key: str) -> None:
    """Raises PreconditionFailed(PLAN_STALE) if the member has changed since the plan read it."""
    if {job_sets.PART, OLD} & set(refused.refused):
        raise stale(job_set, key)


def stale(job_set: str, key: str) -> PreconditionFailed:
    reason = f'the job "{key}" of the set {job_set} has changed since it was planned: look at the new plan'
    return PreconditionFailed(reason, code=PLAN_STALE)
