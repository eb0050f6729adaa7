"""Operations on all jobs that match filters."""

from __future__ import annotations

from sweephand.errors import InvalidRequest, PreconditionFailed
from sweephand.facades.http import Answer
from sweephand.facades.native.context import Context
from sweephand.facades.native.jobs.job_list import TOO_MANY, filters_of, widest
from sweephand.facades.native.operations import operations
from sweephand.facades.native.query_numbers import number
from sweephand.flow.bulk import delete_jobs as work
from sweephand.store.views import jobs as views

MOST = 10**9


def delete_jobs(ctx: Context) -> Answer:
    """Deletes the jobs that match filters. dryRun: only counts them; else `expectedCount` is the number meant."""
    filters = filters_of(ctx)
    if filters == views.ALL:
        raise InvalidRequest(
            None,
            "a filter is required: one of `collection`, `state`, `tag`, `resourceId`, `name` and `search`, "
            "such as DELETE /v1/jobs?tag=nightly",
            code="INVALID_QUERY",
        )
    dry = ctx.choice("dryRun", frozenset({"true", "false"})) == "true"
    expected = number(ctx.query, "expectedCount", 0, MOST)
    if expected is None and not dry:
        reason = "is required; a request with dryRun=true says how many jobs it would delete"
        raise InvalidRequest("expectedCount", reason, code="INVALID_QUERY")
    try:
        count = views.count(ctx.world.table, ctx.tenant, filters)
        if expected not in {None, count}:
            jobs = "job" if count == 1 else "jobs"
            reason = f"expectedCount is {expected}, but the filters find {count} {jobs}"
            raise PreconditionFailed(reason, code="COUNT_MISMATCH")
        if dry:
            return Answer(200, {"count": count, "deleted": 0, "operation": None})
        deleted, operation = work.begin(ctx.world, ctx.tenant, filters, count, ctx.actor)
    except views.TooMany as many:
        raise InvalidRequest(widest(ctx), TOO_MANY, code="INVALID_QUERY") from many
    if operation is None:
        return Answer(200, {"count": count, "deleted": deleted, "operation": None})
    shown = {"count": count, "deleted": deleted, "operation": operations.body(operation)}
    return operations.begun(operation, shown)
