"""Jobs and schedules of the native API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any

from sweephand.domain.instants import text
from sweephand.domain.job import Job, JobDraft, JobState, Pause, ScheduleDraft
from sweephand.domain.schedule import Schedule
from sweephand.errors import Conflict, InvalidRequest
from sweephand.facades.http import Answer
from sweephand.facades.native import bodies, cursors, shapes
from sweephand.facades.native.context import Context
from sweephand.flow import manual, plan
from sweephand.flow.idempotency import earlier
from sweephand.flow.plan import Planned, Wish
from sweephand.schedules.timing import load
from sweephand.store.views import jobs as job_views
from sweephand.store.views import runs as run_views
from sweephand.store.views.runs import Totals

INCLUDES = frozenset({"schedules"})
READ_AHEAD = 200
LOOKED_AT_MOST = 2_000
"""Jobs that one page looks at: with a rare filter it may end early, with a cursor to go on."""


def create(ctx: Context) -> Answer:
    once = ctx.once()
    body = ctx.body()
    if once is not None and (there := earlier(ctx.world, ctx.tenant, once)) is not None:
        return _created(ctx, plan.find(ctx.world, ctx.tenant, there))
    draft = shapes.job_draft(body, ctx.guard)
    return _created(ctx, plan.create_job(ctx.world, ctx.tenant, draft, once))


def _created(ctx: Context, planned: Planned) -> Answer:
    answer = _whole(ctx, planned, fresh=True, include=INCLUDES)
    return Answer(201, answer.body, {**answer.headers, "Location": f"/v1/jobs/{planned.job.id}"})


def read(ctx: Context) -> Answer:
    include = ctx.include(INCLUDES)
    return _whole(ctx, plan.find(ctx.world, ctx.tenant, ctx.id("job")), include=include)


def put(ctx: Context) -> Answer:
    body = ctx.body()

    def edit(planned: Planned, _stored: Any) -> JobDraft:
        draft = shapes.job_draft(body, ctx.guard, planned.job)
        return draft if draft.name else replace(draft, name=planned.job.name)

    return _changed(ctx, plan.change_job(ctx.world, ctx.tenant, ctx.id("job"), edit, ctx.if_match()))


def patch(ctx: Context) -> Answer:
    body = ctx.body()
    if not isinstance(body, dict):
        raise InvalidRequest(None, "a merge patch of a job must be an object", code="INVALID_FIELD")

    def edit(planned: Planned, stored: Any) -> JobDraft:
        current = bodies.editable(planned.job, planned.schedules, stored)
        return shapes.job_draft(shapes.merged(current, body), ctx.guard, planned.job)

    return _changed(ctx, plan.change_job(ctx.world, ctx.tenant, ctx.id("job"), edit, ctx.if_match()))


def delete(ctx: Context) -> Answer:
    plan.delete_job(ctx.world, ctx.tenant, ctx.id("job"), ctx.if_match())
    return Answer(204)


def run(ctx: Context) -> Answer:
    given = ctx.body()
    if not isinstance(given, dict) or given.keys() - {"scheduleId"}:
        raise InvalidRequest(None, "the body may have the member scheduleId only", code="UNKNOWN_MEMBER")
    schedule = given.get("scheduleId")
    if schedule is not None and not isinstance(schedule, str):
        raise InvalidRequest("scheduleId", "must be a text")
    run_id = manual.run_now(ctx.world, ctx.tenant, ctx.id("job"), schedule, ctx.once())
    return Answer(202, {"runId": run_id}, {"Location": f"/v1/runs/{run_id}"})


def pause(ctx: Context) -> Answer:
    note, _ = shapes.pause(ctx.body())
    now = ctx.now

    def edit(job: Job) -> Job:
        return replace(job, pause=Pause(since=job.pause.since if job.pause else now, note=note))

    return _changed(ctx, plan.set_state(ctx.world, ctx.tenant, ctx.id("job"), edit, ctx.if_match()))


def resume(ctx: Context) -> Answer:
    return _set(ctx, lambda job: replace(job, pause=None))


def activate(ctx: Context) -> Answer:
    return _set(ctx, lambda job: replace(job, active=True))


def deactivate(ctx: Context) -> Answer:
    return _set(ctx, lambda job: replace(job, active=False))


def _set(ctx: Context, edit: Any) -> Answer:
    if ctx.body() != {}:
        raise InvalidRequest(None, "the body must be empty or {}", code="UNKNOWN_MEMBER")
    return _changed(ctx, plan.set_state(ctx.world, ctx.tenant, ctx.id("job"), edit, ctx.if_match()))


def next_run(ctx: Context) -> Answer:
    """The earliest instant of the job that is still ahead, and which schedule it belongs to."""
    planned = plan.find(ctx.world, ctx.tenant, ctx.id("job"))
    found = min(
        ((each.instant, schedule) for schedule in planned.schedules for each in _ahead(ctx, schedule, 1)),
        key=lambda pair: pair[0],
        default=None,
    )
    if found is None:
        return Answer(200, {"nextRunAt": None, "scheduleId": None})
    return Answer(200, {"nextRunAt": text(found[0]), "scheduleId": found[1].id})


def _ahead(ctx: Context, schedule: Schedule, limit: int) -> list[Any]:
    return bodies.ahead(schedule, load(schedule.packed), ctx.now, limit)


# Lists


def list_all(ctx: Context) -> Answer:
    """By creation; with `collection` (and without tag and resourceId) by name.

    A page with a rare filter may be short.
    """
    limit = cursors.limit_of(ctx.query)
    state = ctx.choice("state", frozenset(JobState))
    mark = cursors.read("jobs", ctx.query, 1)
    last = mark[0] if mark else None
    items: list[dict[str, Any]] = []
    more = False
    for looked, (job, schedules, here) in enumerate(_listed(ctx, last, limit)):
        wanted = _wanted(ctx, job, schedules, state)
        more = (wanted and len(items) == limit) or looked == LOOKED_AT_MOST
        if more:
            break
        if wanted:
            items.append(bodies.job_body(job, schedules))
        last = here
    return Answer(
        200, {"items": items, "nextCursor": cursors.write("jobs", ctx.query, (last,)) if more and last else None}
    )


def _listed(ctx: Context, after: str | None, limit: int) -> Iterator[tuple[Job, list[Schedule], str]]:
    """Jobs of the smallest list that the filters allow, each with its place in that list."""
    table, tenant, query = ctx.world.table, ctx.tenant, ctx.query
    by_name = "collection" in query and "tag" not in query and "resourceId" not in query
    if "resourceId" in query:
        ids = job_views.with_resource(table, tenant, query["resourceId"], after, READ_AHEAD)
    elif "tag" in query:
        ids = job_views.with_tag(table, tenant, query["tag"], after, READ_AHEAD)
    elif by_name:
        named = job_views.names_in(table, tenant, query["collection"], query.get("name", ""), after, READ_AHEAD)
        ids = (job_id for _, job_id in named)
    else:
        ids = job_views.in_directory(table, tenant, after, READ_AHEAD)
    size = READ_AHEAD if query.keys() & {"state", "name", "tag", "resourceId"} else limit + 1
    while batch := list(islice(ids, size)):
        for job, schedules in job_views.jobs_with_schedules(table, tenant, batch):
            yield job, schedules, job.name if by_name else job.id


def _wanted(ctx: Context, job: Job, schedules: Sequence[Schedule], state: str | None) -> bool:
    query = ctx.query
    return (
        ("collection" not in query or job.collection == query["collection"])
        and ("tag" not in query or query["tag"] in job.tags)
        and ("resourceId" not in query or job.resource_id == query["resourceId"])
        and ("name" not in query or job.name == query["name"])
        and (state is None or bodies.job_state(job, schedules).value == state)
    )


# Schedules


def list_schedules(ctx: Context) -> Answer:
    planned = plan.find(ctx.world, ctx.tenant, ctx.id("job"))
    limit = cursors.limit_of(ctx.query)
    mark = cursors.read("schedules", ctx.query, 1)
    behind = [each for each in planned.schedules if mark is None or each.id > mark[0]]
    page = behind[:limit]
    payloads = plan.payloads_of(ctx.world, Planned(planned.job, tuple(page)))
    items = [bodies.schedule_body(each, ctx.now, payload=payloads.get(each.id)) for each in page]
    cursor = cursors.write("schedules", ctx.query, (page[-1].id,)) if len(behind) > limit else None
    return Answer(200, {"items": items, "nextCursor": cursor})


def create_schedule(ctx: Context) -> Answer:
    body = ctx.body()
    made: list[str] = []

    def wish(planned: Planned) -> list[Wish]:
        action = planned.job.action
        made[:] = [each.id for each in planned.schedules]
        return [Wish(None, shapes.schedule_draft(body, "", action.kind, action.params, change=False))]

    planned = plan.change_schedules(ctx.world, ctx.tenant, ctx.id("job"), wish, ctx.if_match())
    new = next(each for each in planned.schedules if each.id not in made)
    location = {"Location": f"/v1/jobs/{new.job_id}/schedules/{new.id}"}
    answer = _one_schedule(ctx, planned, new.id)
    return Answer(201, answer.body, {**answer.headers, **location})


def read_schedule(ctx: Context) -> Answer:
    return _one_schedule(ctx, plan.find(ctx.world, ctx.tenant, ctx.id("job")), ctx.id("schedule"))


def put_schedule(ctx: Context) -> Answer:
    body = ctx.body()

    def draft(planned: Planned, there: Schedule) -> ScheduleDraft:
        action = planned.job.action
        wanted = shapes.schedule_draft(body, "", action.kind, action.params, change=True)
        return replace(wanted, id=there.id, name=wanted.name or there.name)

    return _change_schedule(ctx, draft)


def patch_schedule(ctx: Context) -> Answer:
    body = ctx.body()
    if not isinstance(body, dict):
        raise InvalidRequest(None, "a merge patch of a schedule must be an object", code="INVALID_FIELD")

    def draft(planned: Planned, there: Schedule) -> ScheduleDraft:
        action = planned.job.action
        payloads = plan.payloads_of(ctx.world, Planned(planned.job, (there,)))
        current = bodies.schedule_editable(there, payloads.get(there.id))
        wanted = shapes.schedule_draft(shapes.merged(current, body), "", action.kind, action.params, change=True)
        return replace(wanted, id=there.id, name=wanted.name or there.name)

    return _change_schedule(ctx, draft)


def activate_schedule(ctx: Context) -> Answer:
    return _switch_schedule(ctx, active=True)


def deactivate_schedule(ctx: Context) -> Answer:
    return _switch_schedule(ctx, active=False)


def _switch_schedule(ctx: Context, *, active: bool) -> Answer:
    if ctx.body() != {}:
        raise InvalidRequest(None, "the body must be empty or {}", code="UNKNOWN_MEMBER")

    def draft(planned: Planned, there: Schedule) -> ScheduleDraft:
        payloads = plan.payloads_of(ctx.world, Planned(planned.job, (there,)))
        return ScheduleDraft(there.name, there.timing, active, payloads.get(there.id), there.policies, there.id)

    return _change_schedule(ctx, draft)


def delete_schedule(ctx: Context) -> Answer:
    schedule_id = ctx.id("schedule")

    def wish(planned: Planned) -> list[Wish]:
        return [Wish(plan.find_schedule(planned, schedule_id), None, delete=True)]

    plan.change_schedules(ctx.world, ctx.tenant, ctx.id("job"), wish, ctx.if_match())
    return Answer(204)


def _change_schedule(ctx: Context, draft: Any) -> Answer:
    schedule_id = ctx.id("schedule")

    def wish(planned: Planned) -> list[Wish]:
        there = plan.find_schedule(planned, schedule_id)
        wanted = draft(planned, there)
        if wanted.id not in {None, there.id}:
            raise Conflict("the id of a schedule cannot be changed")
        return [Wish(there, wanted)]

    planned = plan.change_schedules(ctx.world, ctx.tenant, ctx.id("job"), wish, ctx.if_match())
    return _one_schedule(ctx, planned, schedule_id)


# Answers


def _changed(ctx: Context, planned: Planned) -> Answer:
    return _whole(ctx, planned, include=INCLUDES)


def _whole(ctx: Context, planned: Planned, *, include: frozenset[str], fresh: bool = False) -> Answer:
    """The job with its totals; with its schedules if they are asked for. fresh: nothing can have run yet."""
    payloads = plan.payloads_of(ctx.world, planned)
    totals = {each.id: Totals() for each in planned.schedules} if fresh else _totals(ctx, planned.schedules)
    shown = None
    if "schedules" in include:
        last = {} if fresh else _last_runs(ctx, planned.schedules)
        shown = [
            bodies.schedule_body(
                each, ctx.now, payload=payloads.get(each.id), totals=totals[each.id], last_run=last.get(each.id)
            )
            for each in planned.schedules
        ]
    whole = sum(totals.values(), Totals())
    body = bodies.job_body(planned.job, planned.schedules, payloads=payloads, totals=whole, shown=shown)
    return Answer(200, body, {"ETag": f'"{planned.job.revision}"'})


def _one_schedule(ctx: Context, planned: Planned, schedule_id: str) -> Answer:
    schedule = plan.find_schedule(planned, schedule_id)
    payloads = plan.payloads_of(ctx.world, Planned(planned.job, (schedule,)))
    body = bodies.schedule_body(
        schedule,
        ctx.now,
        payload=payloads.get(schedule.id),
        totals=run_views.totals_of(ctx.world.table, schedule),
        last_run=_last_run(ctx, schedule),
    )
    return Answer(200, body, {"ETag": f'"{planned.job.revision}"'})


def _totals(ctx: Context, schedules: Sequence[Schedule]) -> dict[str, Totals]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        found = pool.map(lambda each: run_views.totals_of(ctx.world.table, each), schedules)
        return {each.id: totals for each, totals in zip(schedules, found, strict=True)}


def _last_runs(ctx: Context, schedules: Sequence[Schedule]) -> dict[str, Any]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        found = pool.map(lambda each: _last_run(ctx, each), schedules)
        return {each.id: run for each, run in zip(schedules, found, strict=True)}


def _last_run(ctx: Context, schedule: Schedule) -> Any:
    return next(run_views.runs_of(ctx.world.table, ctx.tenant, schedule.id, None, 1), None)
