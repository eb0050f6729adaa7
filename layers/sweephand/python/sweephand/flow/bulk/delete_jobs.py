"""Deletes the jobs that match filters, each as a caller would: a few at once, many as an operation.

params: the filters, in the members of the API. cursor: `after`, the place of the last job examined; `kept`: jobs that
no longer matched when their turn came. A job created after the request stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from sweephand.domain.job import Job, JobState
from sweephand.domain.operation import Operation, OperationKind, Page
from sweephand.errors import InvalidRequest, NotFound, PreconditionFailed
from sweephand.flow.jobs import deletion
from sweephand.flow.operations import verbs
from sweephand.flow.world import World
from sweephand.records import dataclass
from sweephand.store.views import jobs as lists
from sweephand.store.views.jobs import Filters

AT_ONCE = 100
"""More jobs than this become an operation."""
JOBS = 25
PAGE_S = 10.0
"""A page begins no further job after this long: a job of 1,000 schedules takes some seconds."""
FILTERS = {
    "collection": "collection",
    "state": "state",
    "tag": "tag",
    "resourceId": "resource_id",
    "name": "name",
    "search": "search",
}
"""Members of the API -> members of Filters."""


@dataclass(frozen=True)
class Some:
    """The result of a page. place: of the last job examined; None: there are no more."""

    deleted: int
    kept: int
    place: str | None


def begin(world: World, tenant: str, filters: Filters, count: int, actor: str) -> tuple[int, Operation | None]:
    """Returns how many were deleted at once, and the operation for the others. count: shown to the caller before."""
    deleted = 0
    if count <= AT_ONCE:
        some = delete_some(world, tenant, filters, None, world.clock.now(), AT_ONCE)
        if some.place is None:
            return some.deleted, None
        deleted = some.deleted
    wanted = {member: str(value) for member, name in FILTERS.items() if (value := getattr(filters, name)) is not None}
    wanted |= {"tag": ""} if filters.untagged else {}
    total = count - deleted
    return deleted, verbs.begin(world, tenant, OperationKind.DELETE_JOBS, wanted, actor=actor, total=total)


def page(world: World, operation: Operation) -> Page:
    """Deletes the next jobs. Harmless to repeat: deleted jobs are not listed, so only the last page knows the total."""
    assert operation.tenant is not None
    after, kept = operation.cursor.get("after"), int(operation.cursor.get("kept", 0))
    filters = filters_of(operation.params)
    try:
        some = delete_some(world, operation.tenant, filters, after, operation.started_at, JOBS)
    except lists.TooMany as many:
        raise InvalidRequest(None, "the list has become too long for these filters") from many
    kept += some.kept
    if some.place is not None:
        return Page({"after": some.place, "kept": kept}, some.deleted)
    done = max(0, (operation.total or 0) - kept - operation.done)
    return Page(None, done, result={"kept": kept})


def filters_of(params: Mapping[str, str]) -> Filters:
    given: dict[str, Any] = {FILTERS[member]: value for member, value in params.items() if member != "tag"}
    state = params.get("state")
    return replace(lists.by_tag(params.get("tag")), **given | {"state": None if state is None else JobState(state)})


def delete_some(world: World, tenant: str, filters: Filters, after: str | None, asked_at: datetime, most: int) -> Some:
    """Deletes up to `most` jobs after a place, unless they changed since they matched. Raises lists.TooMany."""
    deadline = world.clock.monotonic() + PAGE_S
    rows = list(islice(lists.listed(world.table, tenant, filters, after, most + 1), most + 1))
    found = lists.jobs_with_schedules(world.table, tenant, [row.job_id for row in rows[:most]])
    fit = {job.id: job for job, schedules in found if filters.hold_now(job, schedules) and job.created_at <= asked_at}
    deleted = kept = 0
    for row in rows[:most]:
        job = fit.get(row.job_id)
        if job is not None and _delete(world, job):
            deleted += 1
        else:
            kept += 1
        if world.clock.monotonic() > deadline and row is not rows[-1]:
            return Some(deleted, kept, row.place)
    return Some(deleted, kept, rows[most - 1].place if len(rows) > most else None)


def _delete(world: World, job: Job) -> bool:
    """Returns False for a job that was changed a moment ago; it stays."""
    try:
        deletion.delete_job(world, job.tenant, job.id, job.revision)
    except PreconditionFailed:
        return False
    except NotFound:
        return True
    return True
