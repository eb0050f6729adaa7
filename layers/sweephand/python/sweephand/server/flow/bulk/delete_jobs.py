"""Deletes the jobs that match filters, each as a caller would: a few at once, many as an operation.

params: the filters, in the members of the API, and `reason`. cursor: `after`, the place of the last job examined, and
`kept`, the number of jobs that no longer matched when their turn came. A job created after the request stays.
"""

from __future__ import annotations

from functools import partial

from sweephand.base.errors import InvalidRequest, NotFound, PreconditionFailed
from sweephand.domain.job import Job
from sweephand.domain.operation import Operation, OperationKind, Page
from sweephand.server.flow.bulk import some_jobs
from sweephand.server.flow.bulk.some_jobs import Done
from sweephand.server.flow.job_parts.change_log import By
from sweephand.server.flow.jobs import deletion
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.world import World
from sweephand.server.store.views import jobs as lists
from sweephand.server.store.views.jobs import Filters


def begin(world: World, tenant: str, filters: Filters, count: int, by: By) -> tuple[int, Operation | None]:
    """Returns how many were deleted at once, and the operation for the others.

    count: the number of matching jobs that the caller was shown before.
    """
    deleted = 0
    if count <= some_jobs.AT_ONCE:
        now = world.clock.now()
        some = some_jobs.act_on(world, tenant, filters, None, now, some_jobs.AT_ONCE, partial(_delete, world, by))
        if some.place is None:
            return some.done, None
        deleted = some.done
    wanted, total = some_jobs.params_of(filters), count - deleted
    wanted |= {} if by.reason is None else {"reason": by.reason}
    return deleted, verbs.begin(world, tenant, OperationKind.DELETE_JOBS, wanted, actor=by.actor, total=total)


def page(world: World, operation: Operation) -> Page:
    """Deletes the next jobs. May be repeated.

    Deleted jobs are no longer listed, so only the last page knows the total.
    """
    assert operation.tenant is not None
    after, kept = operation.cursor.get("after"), int(operation.cursor.get("kept", 0))
    by = By(actor=operation.actor, reason=operation.params.get("reason"))
    filters, act = some_jobs.filters_of(operation.params), partial(_delete, world, by)
    try:
        some = some_jobs.act_on(world, operation.tenant, filters, after, operation.started_at, some_jobs.JOBS, act)
    except lists.TooMany as many:
        raise InvalidRequest(None, "the list has become too long for these filters") from many
    kept += some.kept
    if some.place is not None:
        return Page({"after": some.place, "kept": kept}, some.done)
    done = max(0, (operation.total or 0) - kept - operation.done)
    return Page(None, done, result={"kept": kept})


def _delete(world: World, by: By, job: Job) -> Done:
    """Deletes a job; keeps one that was changed a moment ago."""
    try:
        deletion.delete_job(world, job.tenant, job.id, job.revision, by=by)
    except PreconditionFailed:
        return Done.KEPT
    except NotFound:
        return Done.DONE
    return Done.DONE
