"""Runs and occurrences of the native API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.ids import is_uuid
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.domain.run import Attempt, Kind, Run, State
from sweephand.server.facades.http import RUN_TOKEN_HEADER, Answer
from sweephand.server.facades.native.context import TASKS, Context
from sweephand.server.facades.native.query import exact_instant, in_query, instant
from sweephand.server.facades.native.runs import report
from sweephand.server.flow.runs import results, run_lists
from sweephand.server.flow.runs.run_lists import JobNames, Wanted
from sweephand.server.flow.tenants import tenancy
from sweephand.server.security.caller import RUN_TARGET
from sweephand.server.store.views import runs as views
from sweephand.server.store.views.runs import Passed, RunMark, Span

with lazy():
    from sweephand.domain.runs import run_members

STATES = frozenset(State) - {State.SCHEDULED}
KINDS = frozenset(Kind)


def list_all(ctx: Context) -> Answer:
    """Lists runs, latest planned first. Without a filter by job: those that did not succeed or that wait."""
    limit, mark = ctx.page(is_uuid, is_uuid)
    selected, last = select(ctx, (mark[0], mark[1]) if mark else None, limit)
    names = JobNames(ctx.world, ctx.tenant).of(selected)
    items = [run_members.run_body(run, job_name=names[run.job_id]) for run in selected]
    return Answer(200, {"items": items, "nextCursor": ctx.cursor(*last) if last else None})


def select(ctx: Context, last: RunMark | None, limit: int) -> tuple[list[Run], RunMark | None]:
    """Returns up to `limit` runs of the query after `last`, and the mark from which to continue; None at the end."""
    wanted = replace(wanted_of(ctx), state=ctx.choice("state", STATES), kind=ctx.choice("kind", KINDS))
    return run_lists.page(_listed(ctx, wanted, last, limit + 1), lambda run: wanted.holds(run, ctx.now), last, limit)


def _listed(ctx: Context, wanted: Wanted, last: RunMark | None, page: int) -> Iterator[Run | Passed]:
    with in_query():
        yield from run_lists.listed(ctx.world, ctx.tenant, wanted, last, page, ctx.now)


def wanted_of(ctx: Context) -> Wanted:
    """Reads the jobs and planned instants of a query. Raises InvalidRequest."""
    wanted = Wanted(
        job_id=ctx.job_of(ctx.query["jobId"], code="INVALID_QUERY") if "jobId" in ctx.query else None,
        schedule_id=_query_schedule(ctx),
        collection=ctx.collection(),
        tag=ctx.text("tag", 128),
        resource_id=ctx.text("resourceId", 256),
        span=Span(instant(ctx.query, "from", exact_instant), instant(ctx.query, "until", exact_instant)),
    )
    with in_query():
        run_lists.check_members(wanted)
    return wanted


def _query_schedule(ctx: Context) -> str | None:
    schedule_id = ctx.query.get("scheduleId")
    if schedule_id is not None and not is_uuid(schedule_id):
        raise InvalidRequest(
            "scheduleId", f"is not the id of a schedule: {fields.shown(schedule_id)}", code="INVALID_QUERY"
        )
    return schedule_id


def read(ctx: Context) -> Answer:
    run = tenancy.find_run(ctx.world, ctx.tenant, *ctx.run())
    return Answer(200, _shown(ctx, run, views.attempts_of(ctx.world.table, run)))


def put_result(ctx: Context) -> Answer:
    """Stores the report of an asynchronous run's target. The first result wins.

    The report is {"success", "message", "reschedule"}.
    """
    success, message, follow_up = report.read(ctx.body(), ctx.now, tasks=ctx.allows(TASKS))
    owner, uuid = ctx.run()
    token = ctx.request.headers.get(RUN_TOKEN_HEADER.lower())
    run = results.record(
        *(ctx.world, ctx.tenant, owner, uuid),
        success=success,
        message=message,
        token=token,
        by=ctx.actor,
        follow_up=follow_up,
    )
    if token is not None and ctx.caller is not None and ctx.caller.credential_id == RUN_TARGET:
        return Answer(200, _shown_to_target(ctx, run))
    return Answer(200, _shown(ctx, run))


def give_back(ctx: Context) -> Answer:
    """Ends the wait for the result of an attempt, so that the run is tried again."""
    attempt = report.attempt(ctx.body())
    run = results.give_back(ctx.world, ctx.tenant, *ctx.run(), attempt)
    if ctx.caller is not None and ctx.caller.credential_id == RUN_TARGET:
        return Answer(200, _shown_to_target(ctx, run))
    return Answer(200, _shown(ctx, run))


def _shown_to_target(ctx: Context, run: Run) -> dict[str, Any]:
    """Returns a run as its target may see it: without its error group, reruns, notes, other attempts and answers."""
    cut = replace(
        run,
        rerun_by=None,
        rerun_of=None,
        parent_uuid=None,
        answer=None,
        message=None,
        http_status=None,
        lost_calls=(),
        notes=(),
    )
    return {**_shown(ctx, cut), "errorGroupId": None}


def cancel(ctx: Context) -> Answer:
    ctx.no_members()
    return Answer(200, _shown(ctx, results.cancel(ctx.world, ctx.tenant, *ctx.run(), ctx.by().words)))


def _shown(ctx: Context, run: Run, attempts: Sequence[Attempt] = ()) -> dict[str, Any]:
    return run_members.run_body(run, attempts, job_name=JobNames(ctx.world, ctx.tenant).of([run])[run.job_id])
