"""Runs and occurrences of the native API."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any, NamedTuple

from sweephand.domain.instants import epoch_ms, epoch_s, text
from sweephand.domain.members import fields
from sweephand.domain.occurrences import generations, upcoming
from sweephand.domain.run import Attempt, Kind, Reason, Run, State
from sweephand.domain.runs.run_file import run_body
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.errors import InvalidRequest
from sweephand.facades.http import RUN_TOKEN_HEADER, Answer
from sweephand.facades.native.context import TASKS, Context, in_query
from sweephand.facades.native.jobs.answers import as_held
from sweephand.facades.native.members.schedule_members import moved_body
from sweephand.facades.native.query_instants import exact_instant, instant
from sweephand.facades.native.runs import report
from sweephand.flow.jobs import lookup
from sweephand.flow.jobs.schedule_timing import LAST
from sweephand.flow.retention import RUN_DAYS
from sweephand.flow.runs import results, run_lists
from sweephand.flow.runs.run_lists import JobNames, Wanted
from sweephand.flow.tenants import tenancy
from sweephand.ids import is_uuid, run_uuid
from sweephand.lazy import lazy
from sweephand.schedules.explain.explain import left_out
from sweephand.schedules.rule import MovedBy, Undecided
from sweephand.schedules.text.instants import parse_instant
from sweephand.schedules.timing import Timing, load_or_never
from sweephand.security.caller import RUN_TARGET
from sweephand.store.views import runs as views
from sweephand.store.views.runs import Passed, RunMark, Span

with lazy():
    pass

LOOKED_AT_MOST = 1_000
"""How many rows, or days without any, a page reads to find those of the query: at most about 1,000 read units."""
STATES = frozenset(State) - {State.SCHEDULED}
KINDS = frozenset(Kind)


def list_all(ctx: Context) -> Answer:
    """Lists runs, latest planned first. Without a filter by job: those that did not succeed or that wait."""
    limit, given = ctx.page(is_uuid, is_uuid)
    found, last = select(ctx, (given[0], given[1]) if given else None, limit)
    names = JobNames(ctx.world, ctx.tenant).of(found)
    items = [run_body(run, job_name=names[run.job_id]) for run in found]
    return Answer(200, {"items": items, "nextCursor": ctx.cursor(*last) if last else None})


def select(ctx: Context, last: RunMark | None, limit: int) -> tuple[list[Run], RunMark | None]:
    """Returns up to `limit` runs of the query after `last`, and the mark from which to continue; None at the end."""
    wanted = replace(wanted_of(ctx), state=ctx.choice("state", STATES), kind=ctx.choice("kind", KINDS))
    found: list[Run] = []
    for looked, each in enumerate(_listed(ctx, wanted, last, limit + 1)):
        run = each if wanted.holds(each, ctx.now) else None
        if (run is not None and len(found) == limit) or looked == LOOKED_AT_MOST:
            return found, last
        if run is not None:
            found.append(run)
        last = run_lists.mark_of(each)
    return found, None


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
        span=Span(instant(ctx, "from", exact_instant), instant(ctx, "until", exact_instant)),
    )
    with in_query():
        run_lists.check_members(wanted)
    return wanted


def _query_schedule(ctx: Context) -> str | None:
    given = ctx.query.get("scheduleId")
    if given is not None and not is_uuid(given):
        raise InvalidRequest("scheduleId", f"is not the id of a schedule: {fields.shown(given)}", code="INVALID_QUERY")
    return given


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
        *(ctx.world, ctx.tenant, owner, uuid), success=success, message=message, token=token, follow_up=follow_up
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
    return Answer(200, _shown(ctx, results.cancel(ctx.world, ctx.tenant, *ctx.run())))


def _shown(ctx: Context, run: Run, attempts: Sequence[Attempt] = ()) -> dict[str, Any]:
    return run_body(run, attempts, job_name=JobNames(ctx.world, ctx.tenant).of([run])[run.job_id])


# Past and planned occurrences


def occurrences(ctx: Context) -> Answer:
    """Lists the instants of a job's schedules from `from` (now) to `until`, each with the state of its run, if any."""
    limit, mark = ctx.page(_is_instant, is_uuid)
    planned, _ = as_held(ctx, lookup.find(ctx.world, ctx.tenant, ctx.id("job")))
    schedules = planned.schedules
    if "scheduleId" in ctx.query:
        schedules = (lookup.find_schedule(planned, ctx.query["scheduleId"]),)
    begin, until = instant(ctx, "from") or ctx.now, instant(ctx, "until") or LAST
    if until < begin:
        raise InvalidRequest("until", "is before `from`", code="INVALID_QUERY")
    after = parse_instant(mark[0], "cursor") if mark else begin
    found = heapq.merge(
        *(_planned(ctx, each, after - timedelta(seconds=1), until, limit + 2) for each in schedules), key=_order
    )
    later = (each for each in found if (_order(each) > (after, mark[1]) if mark else each.instant >= begin))
    page = list(islice(takewhile(lambda each: each.instant <= until, later), limit + 1))
    last = page[limit - 1] if len(page) > limit else None
    return Answer(
        200,
        {
            "items": [_occurrence(ctx, each) for each in page[:limit]],
            "nextCursor": ctx.cursor(text(last.instant), last.schedule.id) if last else None,
            "searchedUntil": text(last.instant if last else until),
        },
    )


class _Planned(NamedTuple):
    instant: datetime
    schedule: Schedule
    run: Run | None
    moved_by: MovedBy | None
    calendar: str | None = None


def _order(planned: _Planned) -> tuple[datetime, str]:
    return planned.instant, planned.schedule.id


def _planned(ctx: Context, schedule: Schedule, after: datetime, until: datetime, limit: int) -> Iterator[_Planned]:
    """Yields a schedule's runs in the ledger after an instant, up to `limit` planned ones, and between them the
    occurrences that its calendars leave out.
    """
    timing = load_or_never(schedule.packed)
    begun = generations.began(schedule)
    past = after < ctx.now
    rows = views.planned_between(ctx.world.table, ctx.tenant, schedule.id, after, ctx.now) if past else ()
    line = views.line_over(ctx.world.table, ctx.tenant, schedule.id, after) if past else None
    line = None if line is None or line.is_gone(ctx.now) else line
    there = (run for run in rows if not run.is_gone(ctx.now))
    ran = (_Planned(run.planned_at, schedule, run, _moved_by(timing, run, begun)) for run in there)
    owed = (
        _Planned(each.instant, schedule, None, each.moved_by)
        for each in upcoming.ahead(schedule, timing, max(after, _complete_from(ctx, schedule)), limit)
    )
    left_out_until = until if schedule.newer_packed is None else min(until, ctx.now)
    gone = _left_out(schedule, timing, max(after, begun), left_out_until)
    seen = None
    for each in heapq.merge(ran, owed, gone, key=lambda one: (one.instant, one.run is None)):
        if each.run is not None and each.run.range_until is not None:
            line = each.run
        if each.instant != seen:
            covered = (
                each.run is None
                and each.calendar is None
                and line is not None
                and each.instant <= (line.range_until or line.planned_at)
            )
            yield each._replace(run=line) if covered else each
        seen = each.instant


def _complete_from(ctx: Context, schedule: Schedule) -> datetime:
    """Returns the instant after which every occurrence must have a row. The retention has deleted earlier ones."""
    gone = ctx.now - timedelta(days=RUN_DAYS)
    return gone if schedule.next_run_at is None else min(gone, schedule.next_run_at - timedelta(seconds=1))


def _left_out(schedule: Schedule, timing: Timing, after: datetime, until: datetime) -> Iterator[_Planned]:
    """Yields the occurrences that calendars leave out. They are computed from the rule, and not stored."""
    if schedule.state is not ScheduleState.ACTIVE or schedule.held_from is not None:
        return
    for each in left_out(timing, after, until):
        yield _Planned(each.instant, schedule, None, None, schedule.timing["calendars"][each.calendar]["name"])


def _moved_by(timing: Timing, run: Run, begun: datetime) -> MovedBy | None:
    with suppress(Undecided):
        if run.planned_at > begun and timing.rule.last_until(run.planned_at) == run.planned_at:
            return timing.rule.moved_by(epoch_s(run.planned_at))
    return None


def _is_instant(text: str) -> bool:
    try:
        parse_instant(text, "cursor")
    except InvalidRequest:
        return False
    return True


def _occurrence(ctx: Context, planned: _Planned) -> dict[str, Any]:
    schedule_id, run = planned.schedule.id, planned.run
    if run is None and planned.calendar is not None:
        return {
            "scheduleId": schedule_id,
            "plannedAt": text(planned.instant),
            "state": State.SKIPPED.value,
            "reason": Reason.CALENDAR.value,
            "runId": None,
            "movedBy": None,
            "calendar": planned.calendar,
        }
    uuid = run_uuid(ctx.tenant, schedule_id, epoch_ms(planned.instant), Kind.SCHEDULED.value)
    return {
        "scheduleId": schedule_id,
        "plannedAt": text(planned.instant),
        "state": (run.state if run else State.SCHEDULED).value,
        "reason": run.reason.value if run and run.reason else None,
        "runId": run.id if run else f"{schedule_id}_{uuid}",
        "movedBy": moved_body(planned.moved_by),
        "calendar": None,
    }
