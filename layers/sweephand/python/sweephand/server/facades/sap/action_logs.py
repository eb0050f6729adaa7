"""The changes of a job and its schedules, by callers and by the service, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.domain.instants import epoch_ms
from sweephand.domain.jobs.job_state import Entry
from sweephand.domain.schedule import Schedule, StateReason
from sweephand.formats.sap.times import shown
from sweephand.schedules.timing import load_or_never
from sweephand.server.facades.http import Answer
from sweephand.server.facades.sap.context import Context
from sweephand.server.store.views import resources

MOST = 200
OF_JOB = {
    "create": "JOB_CREATION",
    "replace": "JOB_UPDATE",
    "patch": "JOB_UPDATE",
    "activate": "JOB_ACTIVATION",
    "deactivate": "JOB_DEACTIVATION",
}
OF_SCHEDULE = {
    "add_schedule": "SCHEDULE_CREATION",
    "replace_schedule": "SCHEDULE_UPDATE",
    "patch_schedule": "SCHEDULE_UPDATE",
    "activate_schedule": "SCHEDULE_ACTIVATION",
    "deactivate_schedule": "SCHEDULE_DEACTIVATION",
    "delete_schedule": "SCHEDULE_DELETION",
    "deactivate_unreachable": "DEACTIVATION_ENDPOINT_UNREACHABLE",
}
BY_ITSELF = {
    StateReason.ONE_TIME_DONE: "DEACTIVATION_ON_COMPLETION",
    StateReason.NO_FUTURE_DATES: "DEACTIVATION_NO_FUTURE_DATES",
    StateReason.END_REACHED: "DEACTIVATION_ENDTIME_REACHED",
    StateReason.COUNT_REACHED: "DEACTIVATION_ON_COMPLETION",
    StateReason.QUOTA_REACHED: "DEACTIVATION_QUOTA_REACHED",
}


def list_all(ctx: Context) -> Answer:
    """Lists the changes of a job, or of one of its schedules (`scheduleId`)."""
    job_id = ctx.option("jobId")
    if job_id is None:
        raise InvalidRequest(None, "jobId is required")
    planned = ctx.find(job_id)
    schedule_id = ctx.option("scheduleId")
    schedules = list(planned.schedules)
    if schedule_id is not None:
        schedules = [ctx.find_schedule(planned, schedule_id)]
    job = planned.job
    entries = list(islice(resources.changes(ctx.world.table, job.tenant, job.id, None, MOST), MOST))
    lines = list(islice(_of_entries(entries, schedule_id), MOST))
    lines += _ended([*schedules, *_replaced(entries, schedule_id)])
    lines.sort(key=lambda line: line[0], reverse=True)
    return Answer(200, {"total": len(lines), "results": [line for _, line in lines[:MOST]]})


Line = tuple[int, dict[str, Any]]
"""A line, with the instant to sort by in epoch milliseconds."""


def _of_entries(entries: Iterable[Entry], schedule_id: str | None) -> Iterator[Line]:
    for entry in entries:
        at = epoch_ms(entry.at)
        common = {"time": shown(entry.at), "user": entry.actor}
        if schedule_id is None and entry.operation in OF_JOB:
            yield at, {"type": OF_JOB[entry.operation], **common}
        for before, after in entry.schedules:
            schedule = after or before
            if schedule is not None and schedule_id in {None, schedule.id}:
                kind = OF_SCHEDULE.get(entry.operation) or _kind(before, after)
                yield at, {"type": kind, **common, "scheduleId": schedule.id}


def _kind(before: Schedule | None, after: Schedule | None) -> str:
    """Returns the kind of change of a schedule that changed with its job."""
    if before is None:
        return "SCHEDULE_CREATION"
    return "SCHEDULE_DELETION" if after is None else "SCHEDULE_UPDATE"


def _replaced(entries: Iterable[Entry], schedule_id: str | None) -> Iterator[Schedule]:
    """Yields schedules as changes found them: their ends are listed even if they continue later."""
    for entry in entries:
        for before, _ in entry.schedules:
            if before is not None and schedule_id in {None, before.id}:
                yield before


def _ended(states: Iterable[Schedule]) -> Iterable[Line]:
    """Returns the service's own deactivations, each only once, even if several changes found it."""
    lines: dict[tuple[str, datetime], Line] = {}
    for each in states:
        if each.completed_at is not None and each.state_reason in BY_ITSELF:
            kind = _deactivation(each, each.completed_at)
            line = {"type": kind, "time": shown(each.completed_at), "user": None, "scheduleId": each.id}
            lines[each.id, each.completed_at] = epoch_ms(each.completed_at), line
    return lines.values()


def _deactivation(schedule: Schedule, at: datetime) -> str:
    """Returns the kind of a deactivation. A series ends with its last run, even if its endTime is in the future."""
    reason = StateReason(schedule.state_reason or "")
    if reason is StateReason.END_REACHED and at < load_or_never(schedule.packed).ends_at:
        reason = StateReason.NO_FUTURE_DATES
    return BY_ITSELF[reason]
