"""The live ledger: a line for each run of either tenant when it finishes, including runs of the user's own jobs."""

from __future__ import annotations

import shutil
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from sweephand.local.api import Refused
from sweephand.local.demo.summary import TERMINAL_NAMES, instant, lateness_ms
from sweephand.schedules.notations import NOTATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sweephand.base.sources import Clock
    from sweephand.local.api import Api

# Each job is read about once a second; with many jobs, as often as this number of calls per second allows.
CALLS_PER_SECOND = 6.0
LIST_JOBS_EVERY_S = 3.0
# Catch-up writes rows that are older than known ones, so older pages are read from time to time.
LOOK_BACK_EVERY_S = 20.0
PAGE = 50
FAR_PAGE = 200
FAR_PAGES = 5
REMEMBERED = 20_000
GONE = 404
# Answers of a busy or starting stack: the next call may succeed.
PASSING = frozenset({429, 500, 502, 503, 504})

COLUMNS = (
    ("PLANNED", 8),
    ("JOB", 0),
    ("SCHEDULE", 8),
    ("STATE", 13),
    ("REASON", 14),
    ("HTTP", 4),
    ("ATTEMPT", 7),
    ("LATE ms", 7),
)
FIXED_WIDTH = sum(width for _, width in COLUMNS) + len(COLUMNS) - 1
JOB_WIDTHS = (11, 32)


def row(cells: tuple[str, ...], width: int) -> str:
    """Returns a line of the table. width: of the terminal; the job's name gets the rest of the width."""
    job = max(JOB_WIDTHS[0], min(JOB_WIDTHS[1], width - FIXED_WIDTH))
    parts = []
    for cell, (title, fixed) in zip(cells, COLUMNS, strict=True):
        size = fixed or job
        text = cell if len(cell) <= size else cell[: size - 1] + "~"
        parts.append(text.rjust(size) if title in {"HTTP", "ATTEMPT", "LATE ms"} else text.ljust(size))
    return " ".join(parts).rstrip()


def header(width: int) -> str:
    return row(tuple(title for title, _ in COLUMNS), width)


def line(run: Mapping[str, Any], *, job: str, schedule: str, late_ms: int | None, width: int) -> str:
    """Returns the line of a finished run. late_ms: by the endpoint's clock for the demo's runs, else by the run."""
    span = run.get("range") or {}
    attempt = f"x{span['count']}" if "count" in span else str(run.get("attempt") or "")
    cells = (
        instant(run["plannedAt"]).strftime("%H:%M:%S"),
        job,
        schedule,
        run["state"],
        run.get("reason") or "",
        str(run.get("httpStatus") or ""),
        attempt,
        "" if late_ms is None else str(late_ms),
    )
    return row(cells, width)


def schedule_name(schedule: Mapping[str, Any]) -> str:
    """Returns the schedule's name, or its rule if the name is only its id."""
    if schedule["name"] != schedule["id"]:
        return str(schedule["name"])
    rule = next((schedule[kind] for kind in NOTATIONS if schedule.get(kind)), schedule["id"])
    return str(rule)


class Arrivals:
    """The arrivals of first attempts at the demo's endpoint, read from the endpoint itself."""

    def __init__(self, url: str) -> None:
        self._client = httpx2.Client(base_url=url, trust_env=False, timeout=5.0)
        self._number = 0
        self._first: OrderedDict[str, int] = OrderedDict()

    def refresh(self) -> None:
        try:
            items = self._client.get("/arrivals", params={"after": self._number}).json()["items"]
        except (httpx2.HTTPError, ValueError):
            return  # the next call gets them
        for arrival in items:
            self._number = max(self._number, arrival["number"])
            if arrival["attempt"] == 1:
                self._first.setdefault(arrival["runId"], arrival["atMs"])
        while len(self._first) > REMEMBERED:
            self._first.popitem(last=False)

    def first_ms(self, run_id: str) -> int | None:
        """Returns the arrival of a run in Unix milliseconds; None if it has not arrived."""
        return self._first.get(run_id)

    def close(self) -> None:
        self._client.close()


@dataclass
class _Watched:
    """A job that is followed. finished: ids of runs that were shown."""

    tenant: str
    job_id: str
    name: str
    schedules: dict[str, str]
    next_look: float
    next_far_look: float
    finished: OrderedDict[str, None] = field(default_factory=OrderedDict)


class Follower:
    """A reader of both tenants' ledgers through the public API, which shows runs that finish."""

    def __init__(
        self, apis: Mapping[str, Api], arrivals: Arrivals, clock: Clock, show: Callable[[str], None], since: datetime
    ) -> None:
        """Creates a follower. show: takes each line. since: runs that finished earlier are not shown."""
        self._apis = apis
        self._arrivals = arrivals
        self._clock = clock
        self._show = show
        self._width = shutil.get_terminal_size((100, 24)).columns
        self._since = since
        self._jobs: dict[str, _Watched] = {}
        self._next_list = 0.0
        self.runs: OrderedDict[str, dict[str, Any]] = OrderedDict()
        show(header(self._width))

    def step(self) -> None:
        """Reads the ledgers that are due. Raises Unreachable, and Refused for lasting errors."""
        try:
            self._step()
        except Refused as refused:
            if refused.status not in PASSING:
                raise

    def _step(self) -> None:
        if self._clock.monotonic() >= self._next_list:
            self._next_list = self._clock.monotonic() + LIST_JOBS_EVERY_S
            self._list_jobs()
        for watched in [job for job in self._jobs.values() if job.next_look <= self._clock.monotonic()]:
            try:
                self._look(watched)
            except Refused as refused:
                if refused.status != GONE:
                    raise
                self._jobs.pop(watched.job_id, None)  # deleted since the list was read

    def _list_jobs(self) -> None:
        """Adds new jobs and drops deleted ones. Raises Refused, Unreachable."""
        job_ids = set()
        for tenant, api in self._apis.items():
            for job in api.items("/v1/jobs"):
                job_ids.add(job["id"])
                if job["id"] not in self._jobs:
                    now = self._clock.monotonic()
                    self._jobs[job["id"]] = _Watched(tenant, job["id"], job["name"], {}, now, now)
        for gone in self._jobs.keys() - job_ids:
            del self._jobs[gone]

    def _look(self, watched: _Watched) -> None:
        now = self._clock.monotonic()
        far = now >= watched.next_far_look
        watched.next_look = now + max(1.0, len(self._jobs) / CALLS_PER_SECOND)
        if far:
            watched.next_far_look = now + LOOK_BACK_EVERY_S
        pages = self._apis[watched.tenant].pages(
            "/v1/runs", limit=FAR_PAGE if far else PAGE, query={"jobId": watched.job_id}
        )
        news: list[dict[str, Any]] = []
        for number, page in enumerate(pages, start=1):
            fresh = [run for run in page if run["id"] not in watched.finished]
            news.extend(fresh)
            if self._before_us(page) or (number >= FAR_PAGES if far else not fresh):
                break
        if news:
            self._arrivals.refresh()  # after the ledger, because finished runs have arrived
        for run in reversed(news):
            self._take(watched, run)

    def _before_us(self, page: list[dict[str, Any]]) -> bool:
        """Returns True if a page reaches back to runs that finished before we began."""
        oldest = page[-1] if page else None
        return oldest is None or (oldest.get("finishedAt") is not None and instant(oldest["finishedAt"]) < self._since)

    def _take(self, watched: _Watched, run: dict[str, Any]) -> None:
        self.runs[run["id"]] = {**run, "job": watched.name, "tenant": watched.tenant}
        while len(self.runs) > REMEMBERED:
            self.runs.popitem(last=False)
        if run["state"] not in TERMINAL_NAMES:
            return
        watched.finished[run["id"]] = None
        while len(watched.finished) > REMEMBERED:
            watched.finished.popitem(last=False)
        if run.get("finishedAt") is not None and instant(run["finishedAt"]) < self._since:
            del self.runs[run["id"]]
            return
        owner = watched.name if watched.tenant == next(iter(self._apis)) else f"{watched.tenant}/{watched.name}"
        late = self.late_ms(run)
        self._show(line(run, job=owner, schedule=self._schedule_name(watched, run), late_ms=late, width=self._width))

    def late_ms(self, run: Mapping[str, Any]) -> int | None:
        arrived = self._arrivals.first_ms(run["id"])
        if arrived is not None:
            return lateness_ms(run["plannedAt"], arrived)
        said: int | None = run.get("latenessMs")
        return said

    def arrived_late_ms(self, run: Mapping[str, Any]) -> int | None:
        """Returns the lateness by the endpoint's clock; None if the run did not arrive there."""
        arrived = self._arrivals.first_ms(run["id"])
        return None if arrived is None else lateness_ms(run["plannedAt"], arrived)

    def _schedule_name(self, watched: _Watched, run: Mapping[str, Any]) -> str:
        schedule_id = run.get("scheduleId")
        if schedule_id is None:
            return str(run.get("kind") or "")
        if schedule_id not in watched.schedules:
            schedules = self._apis[watched.tenant].items(f"/v1/jobs/{watched.job_id}/schedules")
            watched.schedules.update({item["id"]: schedule_name(item) for item in schedules})
        return watched.schedules.get(schedule_id) or str(schedule_id)[-8:]
