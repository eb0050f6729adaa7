"""The run log of the SAP facade: the runs of a schedule, newest first, with the next planned one on top."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from sweephand.base.errors import Conflict, InvalidRequest, NotFound
from sweephand.base.ids import is_uuid, run_uuid
from sweephand.base.json_text import dumps
from sweephand.base.members import fields as members
from sweephand.domain.instants import epoch_ms
from sweephand.domain.occurrences import upcoming
from sweephand.domain.run import Kind, Run
from sweephand.domain.schedule import Schedule
from sweephand.formats.sap import bodies, fields
from sweephand.schedules.timing import load_or_never
from sweephand.server.facades.http import Answer
from sweephand.server.facades.sap.context import MAX_BODY, Context
from sweephand.server.facades.sap.jobs import OK
from sweephand.server.facades.sap.pages import MOST, Page, envelope, page_of
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.runs import results
from sweephand.server.flow.series.ranges import StandsForMany
from sweephand.server.store.views import runs as views

MOST_RUNS = 200
COUNTED = 1_000
"""`total` is exact up to this number. For a longer log it is a lower bound."""
LONGEST_MESSAGE = 1_000
ACKNOWLEDGED = 202


def list_all(ctx: Context) -> Answer:
    schedule = ctx.find_schedule(ctx.find())
    page = page_of(ctx.query, usual=MOST_RUNS, most=MOST_RUNS)
    where = f"/scheduler/jobs/{ctx.parameters['job']}/schedules/{schedule.id}/runs"
    for name in ("next", "prev"):
        run_id = ctx.option(name)
        if run_id is not None:
            if not is_uuid(run_id):
                raise InvalidRequest(None, f"{name} must be the id of a run")
            return Answer(200, _page_next_to(ctx, schedule, page, where, name, run_id))
    total, lines = _by_offset(ctx, schedule, page)
    return Answer(200, envelope(where, page, total, lines))


def _by_offset(ctx: Context, schedule: Schedule, page: Page) -> tuple[int, list[dict[str, Any]]]:
    """Returns a lower bound of the number of lines, and the lines of the page (decision 0050).

    Only the lines of the page and one more are read completely. Lines before it, and after it up to COUNTED, are
    counted by their ids. If the log ends with the page, the page determines the count.
    """
    planned = _planned(ctx, schedule)
    top = [planned] if planned else []
    but = [line["runId"] for line in top]
    before, last = max(0, page.offset - len(top)), None
    if before:
        passed = list(islice(_briefs(ctx, schedule, None, before, but), before))
        if len(passed) < before:
            return len(top) + len(passed), []
        last = passed[-1]
    size, lines = page.size or MOST_RUNS, top[page.offset :]
    wanted = size - len(lines)
    mark = None if last is None else (last, schedule.id)
    lines += islice(_runs(ctx, schedule, mark, wanted + 1, but), wanted + 1)
    shown = lines[:size]
    end = page.offset + len(shown)
    if len(lines) == len(shown):
        return end, shown
    last = shown[-1]["runId"] if wanted else None
    left = COUNTED - end
    return end + max(1, _count(ctx, schedule, last, left, but) if left > 1 else 1), shown


def _count(ctx: Context, schedule: Schedule, after: str | None, most: int, but: Sequence[str]) -> int:
    """Counts the lines after a run, or all lines, up to `most`."""
    return sum(1 for _ in islice(_briefs(ctx, schedule, after, most, but), most))


def _briefs(ctx: Context, schedule: Schedule, after: str | None, page: int, but: Sequence[str]) -> Iterator[str]:
    """Yields the ids of lines, newest first, otherwise like _runs."""
    briefs = views.briefs_of(ctx.world.table, schedule.tenant, schedule.id, after, page, ctx.now)
    shown = (each for each in briefs if not each.many and bodies.sap_status(each.state) and not each.is_gone(ctx.now))
    return (each.uuid for each in shown if each.uuid not in but)


def _page_next_to(ctx: Context, schedule: Schedule, page: Page, where: str, way: str, run_id: str) -> dict[str, Any]:
    """Returns a page after a run (older), or before it (newer). `total` is that of the log, as on every page."""
    size = page.size or MOST
    planned = _planned(ctx, schedule)
    first = [planned["runId"]] if planned else []
    total = len(first) + _count(ctx, schedule, None, COUNTED - len(first), first)
    if way == "next":
        older = list(islice(_runs(ctx, schedule, (run_id, schedule.id), size + 1, first), size + 1))
        shown = older[:size]
        has_newer, has_older = bool(shown), len(older) > size
    else:
        after = views.runs_after(ctx.world.table, schedule.tenant, schedule.id, run_id, size + 1)
        top = [planned] if planned and planned["runId"] > run_id else []
        newer = [*islice(_lines(ctx, after, first), size + 1), *top][: size + 1]
        shown = newer[:size][::-1]
        has_newer, has_older = len(newer) > size, bool(shown)
    return {
        "total": max(total, len(shown)),
        "results": shown,
        "prev_url": f"{where}?page_size={size}&prev={shown[0]['runId']}" if has_newer else None,
        "next_url": f"{where}?page_size={size}&next={shown[-1]['runId']}" if has_older else None,
    }


def _runs(
    ctx: Context, schedule: Schedule, mark: views.RunMark | None, page: int, but: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yields lines of runs, newest first, after a mark. but: the ids of lines to leave out."""
    return _lines(ctx, views.runs_of(ctx.world.table, schedule.tenant, schedule.id, mark, page), but)


def _lines(ctx: Context, runs: Iterable[Run], but: Sequence[str]) -> Iterator[dict[str, Any]]:
    return (bodies.run_body(run) for run in runs if _is_shown(ctx, run) and run.uuid not in but)


def _is_shown(ctx: Context, run: Run) -> bool:
    return run.range_count is None and bodies.sap_status(run.state) is not None and not run.is_gone(ctx.now)


def _planned(ctx: Context, schedule: Schedule) -> dict[str, Any] | None:
    """Returns the line of the next run, which the log shows before the run begins."""
    (schedule,) = lookup.with_current_calendars(ctx.world, [schedule])
    at = upcoming.next_runs(schedule, load_or_never(schedule.packed), ctx.now, 1).first
    if at is None:
        return None
    uuid = run_uuid(schedule.tenant, schedule.id, epoch_ms(at), Kind.SCHEDULED.value)
    return bodies.planned_body(uuid, at)


def logs(ctx: Context, schedule: Schedule, most: int) -> list[dict[str, Any]]:
    """Returns the log as part of a schedule. There, runText is a JSON string with a list of steps."""
    planned = _planned(ctx, schedule)
    top = [planned] if planned else []
    lines = chain(top, _runs(ctx, schedule, None, MOST_RUNS, [line["runId"] for line in top]))
    return [
        line | {"runText": json.dumps(steps := _steps(line)), "statusMessage": steps[-1]["text"], "locale": "en"}
        for line in islice(lines, most)
    ]


STEP_TEXTS = {
    "SCHEDULED": "The job has been scheduled for a future run",
    "TRIGGERED": "The job action endpoint has been invoked",
    "ACK_RECVD": "The job action endpoint has acknowledged the request",
    "ACK_NOT_RECVD": "The job action endpoint has not acknowledged the request in time",
    "SUCCESS": "The job has completed successfully",
}
"""The texts of steps without a report or an answer. The first is from SAP's sample."""


def _steps(line: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a step for each state that the run has gone through, oldest first.

    The ledger does not store the instant of an acknowledgement. It is within 15 s of the call, whose instant is shown.
    """
    called_at, ended_at, state = line["executionTimestamp"], line["completionTimestamp"], line["runState"]
    states: list[tuple[str, str, int | None]] = [("SCHEDULED", line["scheduleTimestamp"], None)]
    if called_at is not None:
        states.append(("TRIGGERED", called_at, None))
    if called_at is not None and line["httpStatus"] == ACKNOWLEDGED:
        states.append(("ACK_RECVD", called_at, ACKNOWLEDGED))
    if all(state != passed for passed, _, _ in states):
        at = ended_at or called_at or line["scheduleTimestamp"]
        states.append((state, at, line["httpStatus"]))
    steps = [{"time": at, "type": kind, "text": STEP_TEXTS.get(kind, ""), "code": code} for kind, at, code in states]
    steps[-1]["text"] = line["runText"] or steps[-1]["text"]
    return steps


def read(ctx: Context) -> Answer:
    schedule = ctx.find_schedule(ctx.find())
    run_id = _run_id(ctx)
    run = views.read(ctx.world.table, schedule.tenant, schedule.id, run_id)
    if run is not None and _is_shown(ctx, run):
        return Answer(200, bodies.run_body(run))
    planned = _planned(ctx, schedule)
    if planned is not None and planned["runId"] == run_id:
        return Answer(200, planned)
    raise NotFound("Run Not Found")


def put(ctx: Context) -> Answer:
    """Records the result that an asynchronous job reports. The first one counts; repeating it is accepted.

    A long message is cut, and a message that is not a string is kept as JSON, so that no report is refused for it.
    """
    schedule = ctx.find_schedule(ctx.find())
    body = ctx.body()
    if not isinstance(body, dict) or body.get("success") is None:
        raise InvalidRequest("success", "is required")
    success = fields.flag(body["success"], "success")
    message = body.get("message")
    if message is not None:
        written = message if isinstance(message, str) else dumps(message)
        message = members.text(written, "message", 0, MAX_BODY)[:LONGEST_MESSAGE]
    owner, run_id = (schedule.tenant, schedule.id), _run_id(ctx)
    try:
        results.record(
            ctx.world, *owner, run_id, success=success, message=message, message_counts=False, by=ctx.caller.client_id
        )
    except (NotFound, StandsForMany) as unknown:
        planned = _planned(ctx, schedule)
        if planned is not None and planned["runId"] == run_id:
            raise InvalidRequest(None, "the run has not begun") from unknown
        raise NotFound("Run Not Found") from unknown
    except Conflict as ended:
        raise InvalidRequest(None, f"the run already has a result: {ended.reason}") from ended
    return Answer(200, OK)


def _run_id(ctx: Context) -> str:
    run_id = ctx.parameters["run"].lower()
    if not is_uuid(run_id):
        raise NotFound("Run Not Found")
    return run_id
