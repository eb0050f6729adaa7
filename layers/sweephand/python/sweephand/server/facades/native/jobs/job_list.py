"""The list of jobs. It is filtered, counted and paged by lean rows; the jobs of a page are read by their keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.ids import is_uuid
from sweephand.base.lazy import lazy
from sweephand.domain.job import JobState
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import cursors
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.jobs.answers import INCLUDES, AsHeld, all_as_held, schedule_bodies
from sweephand.server.facades.native.members import job_members
from sweephand.server.store.views import jobs as views
from sweephand.server.store.views.jobs import Filters

if TYPE_CHECKING:
    pass

with lazy():
    from sweephand.server.facades.native.jobs import last_runs, narrow_lists

LAST_RUNS = "lastRuns"
LIST_INCLUDES = INCLUDES | {"total", LAST_RUNS}
PARAMETERS = ("jobSet", "actionType", "createdAfter", "createdBefore", "nextRunAfter", "nextRunBefore", "sort")
"""Parameters that need the jobs themselves, because lean rows do not have the values."""
_PLACE = re.compile(r"0|[1-9][0-9]{0,14}", re.ASCII)
_NUMBER = re.compile(r"[1-9][0-9]{0,11}", re.ASCII)


def list_all(ctx: Context) -> Answer:
    """Lists jobs by creation or, with `collection` and without tag and resourceId, by name. Payloads are left out.

    With `include`: schedules, and then totals too; total, how many jobs match the filters; lastRuns, the last ten
    runs of each. A job that changes while the page is read may leave it one short, and many schedules end it early.
    """
    include = ctx.include(LIST_INCLUDES)
    if LAST_RUNS in include:
        last_runs.check(ctx)
    filters = filters_of(ctx)
    if ctx.query.keys() & PARAMETERS:
        return _narrow(ctx, filters, include)
    limit, mark = ctx.page(place_of(filters))
    offset = cursors.offset_of(ctx.query)
    try:
        page, total = _page(ctx, filters, mark[0] if mark else None, limit + 1, offset, total="total" in include)
    except views.TooMany as many:
        raise InvalidRequest(widest(ctx), TOO_MANY, code="INVALID_QUERY") from many
    with_schedules, last = views.page_with_schedules(ctx.world.table, ctx.tenant, page, limit)
    shown = [(job, schedules) for job, schedules in with_schedules if filters.hold_now(job, schedules)]
    body = {
        "items": _listed(ctx, all_as_held(ctx, shown), include),
        "nextCursor": None if last is None else ctx.cursor(last.place),
    }
    return Answer(200, body if total is None else {**body, "total": total})


def _page(
    ctx: Context, filters: Filters, after: str | None, size: int, offset: int, *, total: bool
) -> tuple[list[views.Row], int | None]:
    asked = (ctx.world.table, ctx.tenant, filters, after, size, offset)
    return views.page_and_count(*asked) if total else (list(islice(views.listed(*asked), size)), None)


def _narrow(ctx: Context, filters: Filters, include: frozenset[str]) -> Answer:
    """Lists jobs by values that no index has."""
    limit, mark = ctx.page(lambda text: bool(_PLACE.fullmatch(text)), is_uuid)
    page, cursor, total = narrow_lists.page(ctx, filters, limit, mark)
    items = _listed(ctx, [each.shown for each in page], include)
    return Answer(200, {"items": items, "nextCursor": cursor, **({"total": total} if "total" in include else {})})


TOO_MANY = (
    f"would have to search more than {views.FILTERED_MOST:,} jobs: narrow the list by tag, resourceId or"
    " collection, or leave out `total` and the other filters"
)


def widest(ctx: Context) -> str:
    """Returns the parameter that matches too many jobs."""
    return next(name for name in ("search", "state", "offset", "include", "name", "tag") if name in ctx.query)


def filters_of(ctx: Context) -> Filters:
    state = ctx.choice("state", frozenset(JobState))
    return replace(
        views.by_tag("" if ctx.query.get("tag") == "" else ctx.text("tag", 128)),
        collection=ctx.collection(),
        state=JobState(state) if state is not None else None,
        resource_id=ctx.text("resourceId", 256),
        name=ctx.text("name", 128),
        search=ctx.text("search", 128),
    )


def place_of(filters: Filters) -> Callable[[str], bool]:
    """Returns the check for a position in the list: a name, or a number."""
    return lambda text: (1 <= len(text) <= 128) if filters.by_name else bool(_NUMBER.fullmatch(text))


def _listed(ctx: Context, with_schedules: Sequence[AsHeld], include: frozenset[str]) -> list[dict[str, Any]]:
    items = [_listed_body(ctx, each, include) for each in with_schedules]
    if LAST_RUNS in include:
        runs_of = last_runs.of_jobs(ctx, [(each.job, each.schedules) for each in with_schedules])
        for item, runs in zip(items, runs_of, strict=True):
            item[LAST_RUNS] = runs
    return items


def _listed_body(ctx: Context, now: AsHeld, include: frozenset[str]) -> dict[str, Any]:
    job, schedules, held = now.job, now.schedules, now.held
    if "schedules" not in include:
        return job_members.job_body(job, schedules, ctx.now, waits_s=now.waits_s, held=held)
    shown, total = schedule_bodies(ctx, job, schedules, None, held=held)
    return job_members.job_body(job, schedules, ctx.now, totals=total, shown=shown, waits_s=now.waits_s, held=held)
