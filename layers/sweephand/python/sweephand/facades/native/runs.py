"""Runs, occurrences and previews of the native API."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sweephand.domain.instants import epoch_ms, text
from sweephand.domain.run import Kind, Run, State
from sweephand.domain.schedule import Schedule
from sweephand.errors import InvalidRequest, NotFound
from sweephand.facades.http import Answer
from sweephand.facades.native import bodies, cursors
from sweephand.facades.native.context import Context
from sweephand.flow import plan
from sweephand.ids import is_uuid, run_uuid
from sweephand.schedules.explain import Occurrence, preview
from sweephand.schedules.timing import TIMING_MEMBERS, load, parse, parse_instant
from sweephand.store.views import runs as views
from sweephand.store.views.runs import RunMark

ATTENTION_DAYS = 15
LOOKED_AT_MOST = 5_000
MOST_PREVIEWED = 1_000
_RUN_ID = re.compile(r"([0-9a-f-]{36})_([0-9a-f-]{36})", re.ASCII)


def list_all(ctx: Context) -> Answer:
    """By job or schedule; without them, what did not succeed or waits. Latest planned first."""
    limit = cursors.limit_of(ctx.query)
    state = ctx.choice("state", frozenset(State) - {State.SCHEDULED})
    kind = ctx.choice("kind", frozenset(Kind))
    given = cursors.read("runs", ctx.query, 2)
    if given is not None and not all(is_uuid(each) for each in given):
        raise InvalidRequest("cursor", "is not one that this list gave", code="INVALID_CURSOR")
    last: RunMark | None = (given[0], given[1]) if given else None
    items: list[dict[str, Any]] = []
    more = False
    for looked, run in enumerate(_source(ctx, last, limit)):
        wanted = state in {None, run.state.value} and kind in {None, run.kind.value}
        more = (wanted and len(items) == limit) or looked == LOOKED_AT_MOST
        if more:
            break
        if wanted:
            items.append(bodies.run_body(run))
        last = (run.uuid, run.schedule_id or run.job_id)
    return Answer(
        200, {"items": items, "nextCursor": cursors.write("runs", ctx.query, last) if more and last else None}
    )


def _source(ctx: Context, mark: RunMark | None, limit: int) -> Iterator[Run]:
    table, tenant = ctx.world.table, ctx.tenant
    page = limit + 1
    job_id, schedule_id = _query_id(ctx, "jobId"), _query_id(ctx, "scheduleId")
    if job_id is not None:
        planned = plan.find(ctx.world, tenant, job_id)
        if schedule_id is not None:
            owners = [plan.find_schedule(planned, schedule_id).id]
        else:
            owners = [job_id, *(each.id for each in planned.schedules)]
        yield from views.merged_runs(table, tenant, owners, mark, page)
    elif schedule_id is not None:
        yield from views.runs_of(table, tenant, schedule_id, mark, page)
    else:
        since = (ctx.now - timedelta(days=ATTENTION_DAYS)).date()
        yield from views.attention(table, tenant, since, ctx.now + timedelta(days=1), mark, page)


def _query_id(ctx: Context, name: str) -> str | None:
    given = ctx.query.get(name)
    if given is not None and not is_uuid(given):
        raise InvalidRequest(name, "is not an id", code="INVALID_QUERY")
    return given


def read(ctx: Context) -> Answer:
    run = _find(ctx)
    return Answer(200, bodies.run_body(run, views.attempts_of(ctx.world.table, run)))


def _find(ctx: Context) -> Run:
    parts = _RUN_ID.fullmatch(ctx.parameters["run"])
    run = views.read(ctx.world.table, ctx.tenant, parts[1], parts[2]) if parts else None
    if run is None:
        raise NotFound("no such run")
    return run


# Occurrences: what was and what will be


def occurrences(ctx: Context) -> Answer:
    """The instants of a job's schedules from `from` (now) on: with the state of their run where there is one."""
    limit = cursors.limit_of(ctx.query)
    planned = plan.find(ctx.world, ctx.tenant, ctx.id("job"))
    schedules = planned.schedules
    if "scheduleId" in ctx.query:
        schedules = (plan.find_schedule(planned, ctx.query["scheduleId"]),)
    begin = _instant(ctx, "from") or ctx.now
    until = _instant(ctx, "until")
    mark = cursors.read("occurrences", ctx.query, 2)
    after = begin - timedelta(seconds=1)
    if mark is not None:
        after = _marked(mark)
    found = heapq.merge(
        *(_pairs(each, after, begin, limit + 1) for each in schedules), key=lambda pair: (pair[1].instant, pair[0].id)
    )
    behind = ((each, at) for each, at in found if mark is None or (text(at.instant), each.id) > (mark[0], mark[1]))
    page = list(islice((pair for pair in behind if until is None or pair[1].instant <= until), limit + 1))
    items = [_occurrence(ctx, each, at) for each, at in page[:limit]]
    cursor = None
    if len(page) > limit:
        each, at = page[limit - 1]
        cursor = cursors.write("occurrences", ctx.query, (text(at.instant), each.id))
    searched = page[limit - 1][1].instant if cursor else (until or (page[-1][1].instant if page else begin))
    return Answer(200, {"items": items, "nextCursor": cursor, "searchedUntil": text(searched)})


def _marked(mark: tuple[str, ...]) -> datetime:
    try:
        return parse_instant(mark[0], "cursor") - timedelta(seconds=1)
    except InvalidRequest as wrong:
        raise InvalidRequest("cursor", "is not one that this list gave", code="INVALID_CURSOR") from wrong


def _pairs(schedule: Schedule, after: datetime, begin: datetime, limit: int) -> Iterator[tuple[Schedule, Occurrence]]:
    """From the past the rule as it is now; ahead, what the schedule will really do."""
    timing = load(schedule.packed)
    found = bodies.ahead(schedule, timing, after, limit) if schedule.next_run_at else []
    if not found and begin < schedule.modified_at:
        found = preview(timing, after, limit)
    return ((schedule, each) for each in found)


def _occurrence(ctx: Context, schedule: Schedule, occurrence: Occurrence) -> dict[str, Any]:
    uuid = run_uuid(ctx.tenant, schedule.id, epoch_ms(occurrence.instant), Kind.SCHEDULED.value)
    run = views.read(ctx.world.table, ctx.tenant, schedule.id, uuid) if occurrence.instant <= ctx.now else None
    return {
        "scheduleId": schedule.id,
        "plannedAt": text(occurrence.instant),
        "state": run.state.value if run else State.SCHEDULED.value,
        "reason": run.reason.value if run and run.reason else None,
        "runId": f"{schedule.id}_{uuid}",
        "movedBy": _moved(occurrence),
    }


def _moved(occurrence: Occurrence) -> dict[str, str] | None:
    moved = occurrence.moved_by
    return None if moved is None else {"rule": moved.rule, "localTime": moved.local_time}


def _instant(ctx: Context, name: str) -> datetime | None:
    given = ctx.query.get(name)
    if given is None:
        return None
    try:
        return parse_instant(given, name)
    except InvalidRequest as wrong:
        raise InvalidRequest(name, wrong.reason, position=wrong.position, code="INVALID_QUERY") from wrong


def preview_schedule(ctx: Context) -> Answer:
    """The next instants of a schedule that is not stored. Members: those of a timing, `after` and `limit` (5)."""
    body = ctx.body()
    if not isinstance(body, dict):
        raise InvalidRequest(None, "must be an object")
    for name in body:
        if name not in TIMING_MEMBERS and name not in {"after", "limit"}:
            raise InvalidRequest(name[:100], "is not a member here", code="UNKNOWN_MEMBER")
    limit = body.get("limit")
    if limit is not None and (
        not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST_PREVIEWED
    ):
        raise InvalidRequest("limit", f"must be a whole number within 1..{MOST_PREVIEWED}")
    after = parse_instant(body["after"], "after") if body.get("after") is not None else ctx.now
    timing = parse({name: body[name] for name in body if name in TIMING_MEMBERS}, now=after)
    count = limit or 5
    if timing.count is not None:
        count = min(count, timing.count)
    items = [{"plannedAt": text(each.instant), "movedBy": _moved(each)} for each in preview(timing, after, count)]
    return Answer(
        200,
        {
            "type": "recurring" if timing.recurring else "one-time",
            "summary": timing.summary,
            "items": items,
            "nextCursor": None,
            "searchedUntil": items[-1]["plannedAt"] if items else text(after),
        },
    )
