"""Searches jobs and schedules by words and by the qualifiers `active:`, `startTime:` and `endTime:`; all must match.

A search for jobs finds words in the name or the description; a search for schedules, in the description. It reads lean
rows. Jobs are read only for the page, and if the row is not enough: for long descriptions, and with `active:` for jobs
with several schedules, one of which may have ended.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.domain.instants import from_s_if_any
from sweephand.domain.job import Job
from sweephand.domain.schedule import Schedule
from sweephand.formats.sap import bodies
from sweephand.formats.sap.fields import shown_target, user_of
from sweephand.formats.sap.times import shown
from sweephand.schedules.text.instants import parse_instant
from sweephand.server import threads
from sweephand.server.facades.http import Answer
from sweephand.server.facades.sap.context import Context
from sweephand.server.facades.sap.job_list import Listed, all_of, read, tenants_of
from sweephand.server.facades.sap.jobs import schedule_bodies
from sweephand.server.facades.sap.pages import Page, envelope, page_of
from sweephand.server.flow.jobs.lookup import Planned

LONGEST = 1_000
CHUNK = 50
_MOMENT = re.compile(r"(<=|>=|<|>)(.*)", re.DOTALL)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}:[0-9]{2})?", re.ASCII)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
Check = Callable[[datetime | None], bool]
Instant = Callable[[], datetime | None]


@dataclass(frozen=True)
class Query:
    """A parsed query. words: in lower case. active: all requested values; two different ones match nothing."""

    words: tuple[str, ...] = ()
    active: frozenset[bool] = frozenset()
    start: tuple[Check, ...] = ()
    end: tuple[Check, ...] = ()

    def holds(self, texts: Sequence[str], active: bool, start: Instant, end: Instant) -> bool:
        """Returns whether all conditions match. start, end: called only if the query has times and all else matches."""
        return (
            self.active <= {active}
            and all(any(word in text.lower() for text in texts) for word in self.words)
            and all(check(start()) for check in self.start)
            and all(check(end()) for check in self.end)
        )


def parse(text: str) -> Query:
    """Parses a query. Raises InvalidRequest with the documented messages."""
    if len(text) > LONGEST:
        raise InvalidRequest(None, f"the query is longer than {LONGEST} characters")
    words: list[str] = []
    active: set[bool] = set()
    times: dict[str, list[Check]] = {"startTime": [], "endTime": []}
    for token in text.split():
        name, colon, value = token.partition(":")
        if not colon:
            words.append(token.lower())
        elif name == "active":
            if value not in {"true", "false"}:
                raise InvalidRequest(None, "active must be true or false")
            active.add(value == "true")
        elif name in times:
            times[name].append(_check(name, value))
        else:
            raise InvalidRequest(None, "Field not recognized")
    return Query(tuple(words), frozenset(active), tuple(times["startTime"]), tuple(times["endTime"]))


def _check(name: str, value: str) -> Check:
    match = _MOMENT.fullmatch(value)
    if match is None:
        raise InvalidRequest(None, f"Operator not specified for {name}")
    compare, text = _COMPARE[match[1]], match[2]
    try:
        moment = datetime.fromisoformat(text if _DATE.fullmatch(text) else "").replace(tzinfo=UTC)
    except ValueError as wrong:
        raise InvalidRequest(None, "Date format must be YYYY-MM-DDTHH:mm:ss or YYYY-MM-DD") from wrong
    return lambda instant: instant is not None and compare(instant, moment)


def _query(ctx: Context) -> tuple[Query, str]:
    text = ctx.option("q")
    if text is None or not text.strip():
        raise InvalidRequest(None, "Search query not provided")
    return parse(text), text


def search_jobs(ctx: Context) -> Answer:
    wanted, text = _query(ctx)
    with_schedules = ctx.flag("displaySchedules", usual=True)
    page = page_of(ctx.query, usual=None)
    places = _places(ctx, lambda row: _job_in_row(wanted, row), lambda planned: _job_itself(wanted, planned.job))
    some = places[page.offset : page.end(len(places))]
    bodies_ = threads.at_once(
        lambda planned: _job_body(ctx, planned, with_schedules=with_schedules),
        [planned for planned in _read(ctx, [place.row for place in some]) if planned is not None],
    )
    return _answer("/scheduler/search/jobs", page, len(places), bodies_, text)


def search_schedules(ctx: Context) -> Answer:
    if ctx.option("displaySchedules") is not None:
        raise InvalidRequest(None, "displaySchedules is not supported")
    wanted, text = _query(ctx)
    page = page_of(ctx.query, usual=None)
    places = _places(ctx, lambda row: _schedules_in_row(wanted, row), lambda planned: _own_matches(wanted, planned))
    some = places[page.offset : page.end(len(places))]
    jobs = _read(ctx, [place.row for place in some])
    matches = [
        (planned.job, planned.schedules[place.nth])
        for place, planned in zip(some, jobs, strict=True)
        if planned is not None and place.nth < len(planned.schedules)
    ]
    bodies_ = threads.at_once(lambda match: _schedule_body(ctx, *match), matches)
    return _answer("/scheduler/search/schedules", page, len(places), bodies_, text)


class Place(NamedTuple):
    """A result. nth: of the job's schedules by creation; 0 for the job itself."""

    row: Listed
    nth: int


Matches = list[int]
"""The schedules of a job that are results; [0] for the job itself."""


def _places(
    ctx: Context, in_row: Callable[[Listed], Matches | None], itself: Callable[[Planned], Matches]
) -> list[Place]:
    """Returns all results in order, from the rows. If in_row returns None for a row, its job is read."""
    rows = list(all_of(ctx, tenants_of(ctx), search=True))
    matches_of_rows = [in_row(row) for row in rows]
    undecided = [n for n, matches in enumerate(matches_of_rows) if matches is None]
    for n, planned in zip(undecided, _read(ctx, [rows[n] for n in undecided]), strict=True):
        matches_of_rows[n] = [] if planned is None else itself(planned)
    return [Place(row, nth) for row, matches in zip(rows, matches_of_rows, strict=True) for nth in matches or ()]


def _job_in_row(wanted: Query, row: Listed) -> Matches | None:
    said = row.entry.searched
    if said is None:
        return None
    times = partial(from_s_if_any, said.start_s), partial(from_s_if_any, said.end_s)
    return [0] if wanted.holds((row.entry.name, said.description), row.entry.active, *times) else []


def _job_itself(wanted: Query, job: Job) -> Matches:
    texts = job.name, job.description or ""
    return [0] if wanted.holds(texts, job.active, lambda: job.start_at, lambda: job.end_at) else []


def _schedules_in_row(wanted: Query, row: Listed) -> Matches | None:
    """Returns the matching schedules by the row; None if it matters which of several schedules have ended."""
    said = row.entry.searched
    if said is None:
        return None
    over = row.entry.ended is not None
    some_may_be_over = not over and len(said.schedules) > 1 and any(each.active for each in said.schedules)
    if wanted.active and some_may_be_over:
        return None
    return [
        n
        for n, each in enumerate(said.schedules)
        if wanted.holds(
            (each.description,), each.active and not over, partial(_instant, each.start), partial(_instant, each.end)
        )
    ]


def _own_matches(wanted: Query, planned: Planned) -> Matches:
    return [
        n
        for n, schedule in enumerate(planned.schedules)
        if wanted.holds(
            (str(schedule.attributes.get("description", "")),),
            bodies.is_active(schedule),
            partial(bodies.instant_of, schedule, "startTime"),
            partial(bodies.instant_of, schedule, "endTime"),
        )
    ]


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text, "")


def _answer(path: str, page: Page, total: int, results: list[dict[str, Any]], text: str) -> Answer:
    body = envelope(path, page, total, results, q=text)
    return Answer(200, {**body, "pagination_enabled": page.asked})


def _read(ctx: Context, rows: Sequence[Listed]) -> list[Planned | None]:
    """Returns the jobs of rows, in the same order; None for a job that was deleted meanwhile."""
    chunks = [list(rows[n : n + CHUNK]) for n in range(0, len(rows), CHUNK)]
    by_id: dict[str, Planned] = {}
    for some in threads.at_once(lambda chunk: list(read(ctx, chunk)), chunks):
        by_id |= {job.id: Planned(job, tuple(schedules)) for job, schedules in some}
    return [by_id.get(row.entry.job_id) for row in rows]


def _job_body(ctx: Context, planned: Planned, *, with_schedules: bool) -> dict[str, Any]:
    job = planned.job
    body: dict[str, Any] = {
        "_id": job.integer_id,
        "name": job.name,
        "description": job.description or "",
        **shown_target(job),
        "user": user_of(job),
        "jobActive": job.active,
        "jobStartTime": shown(job.start_at),
        "jobEndTime": shown(job.end_at),
        "signatureVersion": 0,
    }
    if with_schedules:
        body["schedules"] = list(map(_renamed, schedule_bodies(ctx, planned)))
    return body


def _renamed(schedule: dict[str, Any]) -> dict[str, Any]:
    description = schedule.pop("description")
    return {**schedule, "scheduleDescription": description}


def _schedule_body(ctx: Context, job: Job, schedule: Schedule) -> dict[str, Any]:
    (body,) = schedule_bodies(ctx, Planned(job, (schedule,)))
    parent = {"_id": job.integer_id, "name": job.name, "jobUrl": f"/scheduler/jobs/{job.integer_id}"}
    return _renamed(body) | {"parent": parent}
