"""Search over jobs and over schedules: words, and qualifiers `active:`, `startTime:` and `endTime:`; all must hold.

Words of a search for jobs stand in the name or the description, those of a search for schedules in the description.
It reads the jobs (and schedules) themselves, many at once: not for every page of a screen.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sweephand.domain.job import Job
from sweephand.domain.schedule import Schedule
from sweephand.errors import InvalidRequest
from sweephand.facades.http import Answer
from sweephand.facades.sap import bodies
from sweephand.facades.sap.context import Context
from sweephand.facades.sap.job_list import all_of, read, tenants_of
from sweephand.facades.sap.pages import Page, envelope, page_of
from sweephand.facades.sap.times import shown
from sweephand.flow import plan
from sweephand.flow.plan import Planned

LONGEST = 1_000
AT_ONCE = 8
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


@dataclass(frozen=True)
class Query:
    """words: in lower case. active None: both."""

    words: tuple[str, ...] = ()
    active: bool | None = None
    start: tuple[Check, ...] = ()
    end: tuple[Check, ...] = ()

    def holds(self, texts: Sequence[str], active: bool, start: datetime | None, end: datetime | None) -> bool:
        return (
            self.active in {None, active}
            and all(any(word in text.lower() for text in texts) for word in self.words)
            and all(check(start) for check in self.start)
            and all(check(end) for check in self.end)
        )


def parse(text: str) -> Query:
    """Raises InvalidRequest with the documented texts."""
    if len(text) > LONGEST:
        raise InvalidRequest(None, f"the query is longer than {LONGEST} characters")
    words: list[str] = []
    active: bool | None = None
    times: dict[str, list[Check]] = {"startTime": [], "endTime": []}
    for token in text.split():
        name, colon, value = token.partition(":")
        if not colon:
            words.append(token.lower())
        elif name == "active":
            if value not in {"true", "false"}:
                raise InvalidRequest(None, "active must be true or false")
            active = value == "true"
        elif name in times:
            times[name].append(_check(name, value))
        else:
            raise InvalidRequest(None, "Field not recognized")
    return Query(tuple(words), active, tuple(times["startTime"]), tuple(times["endTime"]))


def _check(name: str, value: str) -> Check:
    found = _MOMENT.fullmatch(value)
    if found is None:
        raise InvalidRequest(None, f"Operator not specified for {name}")
    compare, text = _COMPARE[found[1]], found[2]
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
    found = [
        planned
        for planned in _everything(ctx)
        if wanted.holds(
            (planned.job.name, planned.job.description or ""),
            planned.job.active,
            planned.job.start_at,
            planned.job.end_at,
        )
    ]
    some = found[page.offset : page.end(len(found))]
    results = [_job_body(ctx, planned, with_schedules=with_schedules) for planned in some]
    return _answer("/scheduler/search/jobs", page, len(found), results, text)


def search_schedules(ctx: Context) -> Answer:
    if ctx.option("displaySchedules") is not None:
        raise InvalidRequest(None, "displaySchedules is not supported")
    wanted, text = _query(ctx)
    page = page_of(ctx.query, usual=None)
    found = [
        (planned.job, schedule)
        for planned in _everything(ctx)
        for schedule in planned.schedules
        if wanted.holds(
            (str(schedule.attributes.get("description", "")),),
            bodies.is_active(schedule),
            bodies.instant_of(schedule, "startTime"),
            bodies.instant_of(schedule, "endTime"),
        )
    ]
    some = found[page.offset : page.end(len(found))]
    results = [_schedule_body(ctx, job, schedule) for job, schedule in some]
    return _answer("/scheduler/search/schedules", page, len(found), results, text)


def _answer(path: str, page: Page, total: int, results: list[dict[str, Any]], text: str) -> Answer:
    body = envelope(path, page, total, results, q=text)
    return Answer(200, {**body, "pagination_enabled": page.asked})


def _everything(ctx: Context) -> Iterator[Planned]:
    """All jobs that the caller sees, with their schedules."""
    listed = list(all_of(ctx, tenants_of(ctx)))
    chunks = [listed[n : n + CHUNK] for n in range(0, len(listed), CHUNK)]

    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        for found in pool.map(lambda some: list(read(ctx, some)), chunks):
            yield from (Planned(job, tuple(schedules)) for job, schedules in found)


def _job_body(ctx: Context, planned: Planned, *, with_schedules: bool) -> dict[str, Any]:
    job = planned.job
    body: dict[str, Any] = {
        "_id": job.integer_id,
        "name": job.name,
        "description": job.description or "",
        "action": job.action.params["url"],
        "user": bodies.user_of(job),
        "jobActive": job.active,
        "httpMethod": job.action.params["method"],
        "jobStartTime": shown(job.start_at),
        "jobEndTime": shown(job.end_at),
        "signatureVersion": 0,
    }
    if with_schedules:
        payloads = plan.payloads_of(ctx.world, planned)
        body["schedules"] = [
            _renamed(bodies.schedule_body(each, payloads.get(each.id), ctx.now)) for each in planned.schedules
        ]
    return body


def _renamed(schedule: dict[str, Any]) -> dict[str, Any]:
    description = schedule.pop("description")
    return {**schedule, "scheduleDescription": description}


def _schedule_body(ctx: Context, job: Job, schedule: Schedule) -> dict[str, Any]:
    payloads = plan.payloads_of(ctx.world, Planned(job, (schedule,)))
    parent = {"_id": job.integer_id, "name": job.name, "jobUrl": f"/scheduler/jobs/{job.integer_id}"}
    return bodies.schedule_body(schedule, payloads.get(schedule.id), ctx.now) | {"parent": parent}
