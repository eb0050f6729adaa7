"""Operations on all jobs that match filters."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from sweephand.base.errors import InvalidRequest, PreconditionFailed
from sweephand.domain.operation import Operation as Work
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.jobs.job_list import TOO_MANY, filters_of, widest
from sweephand.server.facades.native.operations import operations
from sweephand.server.facades.native.query import number
from sweephand.server.flow.bulk import delete_jobs as deletes
from sweephand.server.flow.bulk import switch_jobs
from sweephand.server.flow.bulk.switch_jobs import Switch
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.job_parts.change_log import Operation
from sweephand.server.flow.operations import verbs
from sweephand.server.store.views import jobs as views
from sweephand.server.store.views.jobs import Filters

MOST = 10**9


def delete_jobs(ctx: Context) -> Answer:
    """Deletes the jobs that match filters. With `dryRun`, only counts them; otherwise `expectedCount` must match."""
    filters, dry, expected = _asked(ctx, "DELETE /v1/jobs", "delete")
    by = ctx.by()
    try:
        count = _counted(ctx, filters, expected)
        if dry:
            return Answer(200, {"count": count, "deleted": 0, "operation": None})
        deleted, operation = deletes.begin(ctx.world, ctx.tenant, filters, count, by)
    except views.TooMany as many:
        raise InvalidRequest(widest(ctx), TOO_MANY, code="INVALID_QUERY") from many
    if operation is None:
        return Answer(200, {"count": count, "deleted": deleted, "operation": None})
    shown = {"count": count, "deleted": deleted, "operation": operations.body(operation)}
    return operations.begun(operation, shown)


def activate_jobs(ctx: Context) -> Answer:
    ctx.no_members()
    return _switch(ctx, Switch(Operation.ACTIVATE, ctx.now))


def deactivate_jobs(ctx: Context) -> Answer:
    ctx.no_members()
    return _switch(ctx, Switch(Operation.DEACTIVATE, ctx.now))


def resume_jobs(ctx: Context) -> Answer:
    ctx.no_members()
    return _switch(ctx, Switch(Operation.RESUME, ctx.now))


def pause_jobs(ctx: Context) -> Answer:
    note, until = shapes.pause(ctx.body())
    if until is not None and until <= ctx.now:
        raise InvalidRequest("until", "must be in the future")
    return _switch(ctx, Switch(Operation.PAUSE, ctx.now, note, until))


def _switch(ctx: Context, switch: Switch) -> Answer:
    """Switches the jobs that match filters. `dryRun` and `expectedCount` act as in `delete_jobs`."""
    to, key, switch = switch.to.value, _once(ctx), replace(switch, reason=ctx.by().reason)
    filters, dry, expected = _asked(ctx, f"POST /v1/jobs:{to}", to)
    once = None if dry else key
    before = verbs.begun_before(ctx.world, ctx.tenant, once)
    if before is not None:
        return _begun(before, before.total)
    try:
        count = _counted(ctx, filters, expected)
        if dry:
            return Answer(200, {"count": count, "changed": 0, "refused": 0, "operation": None})
        some, operation = switch_jobs.begin(ctx.world, ctx.tenant, filters, switch, count, ctx.actor, once)
    except views.TooMany as many:
        raise InvalidRequest(widest(ctx), TOO_MANY, code="INVALID_QUERY") from many
    if operation is not None:
        return _begun(operation, count)
    assert some is not None
    return Answer(200, {"count": count, "changed": some.done, "refused": some.refused, "operation": None})


def _begun(operation: Work, count: int | None) -> Answer:
    shown = {"count": count, "changed": 0, "refused": 0, "operation": operations.body(operation)}
    return operations.begun(operation, shown)


def _asked(ctx: Context, request: str, verb: str) -> tuple[Filters, bool, int | None]:
    """Returns the filters, whether it is a dry run, and how many jobs the caller expects. Raises InvalidRequest."""
    filters = filters_of(ctx)
    if filters == views.ALL:
        raise InvalidRequest(
            None,
            "a filter is required: one of `collection`, `state`, `tag`, `resourceId`, `name` and `search`, "
            f"such as {request}?tag=nightly",
            code="INVALID_QUERY",
        )
    dry = ctx.choice("dryRun", frozenset({"true", "false"})) == "true"
    expected = number(ctx.query, "expectedCount", 0, MOST)
    if expected is None and not dry:
        reason = f"is required; a request with dryRun=true says how many jobs it would {verb}"
        raise InvalidRequest("expectedCount", reason, code="INVALID_QUERY")
    return filters, dry, expected


def _counted(ctx: Context, filters: Filters, expected: int | None) -> int:
    """Returns how many jobs match. Raises PreconditionFailed if the number is not as expected."""
    count = views.count(ctx.world.table, ctx.tenant, filters)
    if expected not in {None, count}:
        jobs = "job" if count == 1 else "jobs"
        reason = f"expectedCount is {expected}, but the filters find {count} {jobs}"
        raise PreconditionFailed(reason, code="COUNT_MISMATCH")
    return count


def _once(ctx: Context) -> Once | None:
    """Returns the key of the request. Its digest includes the query, which contains the filters."""
    once = ctx.once()
    if once is None:
        return None
    query = repr(sorted(ctx.query.items()))
    return replace(once, digest=hashlib.sha256(f"{once.digest} {query}".encode()).hexdigest())
