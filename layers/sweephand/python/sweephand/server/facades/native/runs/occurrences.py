"""Past and planned occurrences of a job, for the native API."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.ids import is_uuid, run_uuid
from sweephand.base.json_schema import one_of, or_null
from sweephand.domain.answers import Table, answered
from sweephand.domain.instants import epoch_ms, text
from sweephand.domain.run import Kind, Reason, State
from sweephand.domain.schedule import Schedule
from sweephand.domain.schema_words import ID, INSTANT, RUN_ID, TEXT
from sweephand.schedules import rule
from sweephand.schedules.rule import Undecided
from sweephand.schedules.text.instants import parse_instant
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.jobs.answers import as_held
from sweephand.server.facades.native.members.schedule_members import MOVED_BY, moved_body
from sweephand.server.facades.native.query import instant
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.occurrences import Asked, Occurrence, between
from sweephand.server.flow.jobs.schedule_timing import LAST

OF_A_SCHEDULE = 1_000
"""Units of work for each schedule of a job. One whose occurrences are easy to find takes some 400."""
SECOND = timedelta(seconds=1)


def occurrences(ctx: Context) -> Answer:
    """Lists the instants of a job's schedules from `from` (now) to `until`, each with the state of its run, if any.

    Cost: none for occurrences ahead. If `from` has passed, two queries for each schedule, 16 of them at once: a part of
    the page, and a few rows before `from` to find a range that reaches it.
    """
    limit, mark = ctx.page(_is_instant, is_uuid)
    planned, _ = as_held(ctx, lookup.find(ctx.world, ctx.tenant, ctx.id("job")))
    schedules = planned.schedules
    if "scheduleId" in ctx.query:
        schedules = (lookup.find_schedule(planned, ctx.query["scheduleId"]),)
    begin, until = instant(ctx.query, "from") or ctx.now, instant(ctx.query, "until") or LAST
    if until < begin:
        raise InvalidRequest("until", "is before `from`", code="INVALID_QUERY")
    after = parse_instant(mark[0], "cursor") if mark else _whole_second(begin)
    asked = [Asked.of(ctx.world, planned.job, each, ctx.now) for each in schedules]
    of_each = between(asked, after - SECOND, until, limit + 2)
    merged = heapq.merge(*((_Planned(*pair) for pair in each) for each in of_each), key=_order)
    later = (each for each in merged if (_order(each) > (after, mark[1]) if mark else each.instant >= begin))
    page, whole = _bounded(takewhile(lambda each: each.instant <= until, later), limit + 1, len(schedules))
    last = page[limit - 1] if len(page) > limit else None if whole else page[-1]
    return Answer(
        200,
        {
            "items": OCCURRENCE.show_all(page[:limit]),
            "nextCursor": ctx.cursor(text(last.instant), last.schedule.id) if last else None,
            "searchedUntil": text(last.instant if last else until),
        },
    )


def _bounded(planned: Iterable[_Planned], limit: int, schedules: int) -> tuple[list[_Planned], bool]:
    """Returns the first occurrences, and whether they are all. Fewer come if the next takes too long to compute.

    Raises InvalidRequest if that is the first one.
    """
    page: list[_Planned] = []
    easy = OF_A_SCHEDULE * schedules
    with suppress(Undecided), rule.limited(rule.OF_ANSWER + easy, easy):
        page.extend(islice(planned, limit))
        return page, True
    if page:
        return page, False
    raise InvalidRequest(
        "from",
        "takes too long to compute: choose one schedule with `scheduleId`, or an earlier time",
        code="INVALID_QUERY",
    )


def _whole_second(instant: datetime) -> datetime:
    """Returns the first instant from this one on at which an occurrence can be planned."""
    whole = instant.replace(microsecond=0)
    return whole if whole == instant else whole + SECOND


class _Planned(NamedTuple):
    """An occurrence of a schedule."""

    schedule: Schedule
    at: Occurrence

    @property
    def instant(self) -> datetime:
        return self.at.instant


def _order(planned: _Planned) -> tuple[datetime, str]:
    return planned.instant, planned.schedule.id


def _is_instant(text: str) -> bool:
    try:
        parse_instant(text, "cursor")
    except InvalidRequest:
        return False
    return True


def _run_id(planned: _Planned) -> str | None:
    """Returns the id of the row. Only an occurrence that is still to run has one before its row."""
    schedule, at = planned.schedule, planned.at
    if at.run is not None:
        return at.run.id
    if at.skipped is not None:
        return None
    uuid = run_uuid(schedule.tenant, schedule.id, epoch_ms(at.instant), Kind.SCHEDULED.value)
    return f"{schedule.id}_{uuid}"


def _calendar(planned: _Planned) -> str | None:
    number = planned.at.calendar
    return None if number is None else planned.schedule.timing["calendars"][number]["name"]


OCCURRENCE = Table(
    {
        "scheduleId": answered(ID, "schedule.id"),
        "plannedAt": answered(INSTANT, "instant"),
        "state": answered(one_of(State), "at.state"),
        "reason": answered(or_null(one_of(Reason)), "at.reason"),
        "runId": answered(
            or_null(RUN_ID),
            _run_id,
            "The id of its run, or of the range that stands for it; null if it is skipped and has no row yet, or "
            "because a calendar excludes it.",
        ),
        "movedBy": answered(MOVED_BY, lambda planned: moved_body(planned.at.moved_by)),
        "calendar": answered(or_null(TEXT), _calendar, "The name of the calendar that leaves it out."),
    }
)
