"""Deletes a collection that its facade no longer shows: its jobs page by page, then the collection itself.

params: `collection`. Nothing can be added to the collection any more, so each page only has to delete what it finds.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from sweephand.base.errors import NotFound
from sweephand.domain.operation import Operation, Page
from sweephand.server.flow.jobs import deletion
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.views import jobs as lists

JOBS = 25


def page(world: World, operation: Operation) -> Page:
    """Deletes the next jobs, or the empty collection. May be repeated."""
    assert operation.tenant is not None
    tenant, name = operation.tenant, str(operation.params["collection"])
    rows = list(islice(lists.by_name(world.table, tenant, name, None, JOBS), JOBS))
    deleted = sum(_deleted(world, tenant, row.job_id) for row in rows)
    if rows:
        return Page({}, deleted)
    with suppress(NotFound):  # an earlier try of this page has deleted it
        tenancy.delete_collection(world, tenant, name, None)
    return Page(None)


def _deleted(world: World, tenant: str, job_id: str) -> bool:
    """Deletes a job. Returns False if it was deleted before."""
    try:
        deletion.delete_job(world, tenant, job_id, None)
    except NotFound:
        return False
    return True
