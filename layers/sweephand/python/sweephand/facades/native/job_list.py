"""The list of jobs, by the smallest index that its filters allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from sweephand.domain.job import Job, JobState
from sweephand.domain.schedule import Schedule
from sweephand.facades.http import Answer
from sweephand.facades.native import bodies
from sweephand.facades.native.answers import INCLUDES, schedule_bodies
from sweephand.facades.native.context import Context
from sweephand.ids import is_uuid
from sweephand.store.views import jobs as views

READ_AHEAD = 200
COST_OF_JOB, COST_OF_ROW, COST_OF_PAGE = 10, 1, 20_000
"""One page looks at 2,000 jobs, or at 20,000 lean rows: with a rare filter it may end early, with a cursor to go on."""


def list_all(ctx: Context) -> Answer:
    """By creation; with `collection` (and without tag and resourceId) by name. Payloads are left out.

    With `include`: schedules, and then totals too. A page with a rare filter may be short.
    """
    include = ctx.include(INCLUDES)
    state = ctx.choice("state", frozenset(JobState))
    limit, mark = ctx.page(_is_name if _by_name(ctx) else is_uuid)
    last = mark[0] if mark else None
    items: list[dict[str, Any]] = []
    cost = 0
    for place, job, schedules in _listed(ctx, last, limit):
        cost += COST_OF_ROW if job is None else COST_OF_JOB
        wanted = job is not None and _wanted(ctx, job, schedules, state)
        if cost > COST_OF_PAGE or (wanted and len(items) == limit):
            return Answer(200, {"items": items, "nextCursor": ctx.cursor(last) if last else None})
        if wanted and job is not None:
            items.append(_listed_body(ctx, job, schedules, include))
        last = place
    return Answer(200, {"items": items, "nextCursor": None})


def _listed(ctx: Context, after: str | None, limit: int) -> Iterator[tuple[str, Job | None, Sequence[Schedule]]]:
    """Jobs of the smallest list that the filters allow, each with its place there; None for one of another name."""
    entries = _entries(ctx, after)
    name = ctx.query.get("name")
    size = READ_AHEAD if ctx.query.keys() & {"state", "name", "tag", "resourceId"} else limit + 1
    while batch := list(islice(entries, size)):
        ids = [each.job_id for each in batch if name in {None, each.name}]
        found = {
            job.id: (job, schedules) for job, schedules in views.jobs_with_schedules(ctx.world.table, ctx.tenant, ids)
        }
        for each in batch:
            yield each.place, *found.get(each.job_id, (None, ()))


def _entries(ctx: Context, after: str | None) -> Iterator[views.Entry]:
    table, tenant = ctx.world.table, ctx.tenant
    resource_id, tag = ctx.text("resourceId", 256), ctx.text("tag", 128)
    collection, name = ctx.text("collection", 128), ctx.text("name", 128)
    if resource_id is not None:
        return views.with_resource(table, tenant, resource_id, after, READ_AHEAD)
    if tag is not None:
        return views.with_tag(table, tenant, tag, after, READ_AHEAD)
    if collection is None:
        return views.in_directory(table, tenant, after, READ_AHEAD)
    if name is None:
        return views.in_collection(table, tenant, collection, after, READ_AHEAD)
    only = views.named(table, tenant, collection, name)
    return iter([only] if only is not None and after is None else [])


def _by_name(ctx: Context) -> bool:
    return "collection" in ctx.query and not ctx.query.keys() & {"tag", "resourceId"}


def _is_name(text: str) -> bool:
    return 1 <= len(text) <= 128


def _listed_body(ctx: Context, job: Job, schedules: Sequence[Schedule], include: frozenset[str]) -> dict[str, Any]:
    if "schedules" not in include:
        return bodies.job_body(job, schedules, ctx.now)
    shown, total = schedule_bodies(ctx, schedules, None)
    return bodies.job_body(job, schedules, ctx.now, totals=total, shown=shown)


def _wanted(ctx: Context, job: Job, schedules: Sequence[Schedule], state: str | None) -> bool:
    query = ctx.query
    return (
        ("collection" not in query or job.collection == query["collection"])
        and ("tag" not in query or query["tag"] in job.tags)
        and ("resourceId" not in query or job.resource_id == query["resourceId"])
        and ("name" not in query or job.name == query["name"])
        and (state is None or bodies.job_state(job, schedules).value == state)
    )
