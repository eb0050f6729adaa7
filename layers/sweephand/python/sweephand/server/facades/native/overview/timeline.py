"""The timeline: the past and the planned runs of many jobs with few reads, and later only the changes.

Successful runs have no entry that can be found by time. Past instants are therefore computed from the rules, and runs
that did not succeed are read from the index `attention`. A past instant without a mark means that no failure is
recorded. If the newest rows of its schedule lack it, it has no row, because something is late, lost or dead.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.ids import is_uuid
from sweephand.base.json_schema import items, one_of, or_null, ref
from sweephand.domain.answers import Table, answered
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job import Job, JobState
from sweephand.domain.run import Run, Status
from sweephand.domain.schedule import Schedule
from sweephand.domain.schema_words import ID, INSTANT, INSTANT_MS, REVISION, TEXT
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import cursors
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.jobs.answers import AsHeld, all_as_held
from sweephand.server.facades.native.jobs.job_list import TOO_MANY, filters_of, place_of, widest
from sweephand.server.facades.native.overview import pace
from sweephand.server.facades.native.overview.lane import LANE, MARK, MOST_SCHEDULES, Lane, Window, lane
from sweephand.server.facades.native.query import instant, number
from sweephand.server.flow.runs import run_lists
from sweephand.server.store.views import jobs as views
from sweephand.server.store.views.runs import Passed, Recorded, Span, recorded

LIMIT, LARGEST_LIMIT = 100, 500
MOST_NAMED = 50
"""How many jobs a request may name."""
MOST_MARKS, MOST_PASSED = 1_000, 5_000
"""How many runs an answer reads, and how many entries of the index it examines."""
MOST_ROWS = 2_500
"""How many rows are read for gaps in the ledgers of all schedules together: some 150 read units."""
MOST_NEW, MOST_AGAIN = 100, 500
"""The most marks in an answer about changes, and in one that reads the whole day again."""
MOST_KNOWN = 5_000
"""How many jobs' revisions an answer about changes compares."""
DAY, LONGEST = timedelta(days=1), timedelta(days=14)
SETTLES = timedelta(minutes=15)
"""Runs planned longer ago rarely begin to need attention. The whole day is read again after this time."""
NOTHING = "0" * 16
_SINCE = re.compile(r"([0-9]{13})-([0-9]{13})-([0-9a-f]{16})", re.ASCII)


class Marks(NamedTuple):
    """Runs that did not succeed or that wait, newest first. since: after this instant the list is complete."""

    runs: list[Run]
    since: datetime


class Since(NamedTuple):
    """The position from which an answer about changes continues.

    again_from: marks planned after this instant may still change. whole_at: when the whole day was last read. known: a
    hash of all jobs' revisions.
    """

    again_from: datetime
    whole_at: datetime
    known: str

    def __str__(self) -> str:
        return "-".join((*(f"{epoch_ms(each):013d}" for each in self[:2]), self.known))


class Timeline(NamedTuple):
    """The lanes of a page. marks_from: see Marks."""

    window: Window
    marks_from: datetime
    lanes: Sequence[Lane]
    next_cursor: str | None
    since: Since


class Changes(NamedTuple):
    """The changes since an answer. known: all jobs if any changed; None if none did, or if there are too many."""

    now: datetime
    marks: Marks
    known: Sequence[views.Known] | None
    since: Since


_NOW = "The clock of the service."
_MARKS_FROM = "Marks planned after this instant are complete."
TIMELINE = Table(
    {
        "now": answered(INSTANT_MS, "window.now", _NOW),
        "from": answered(INSTANT, "window.begin"),
        "until": answered(INSTANT, "window.end"),
        "marksFrom": answered(INSTANT_MS, says=_MARKS_FROM),
        "items": answered(items(ref("Lane")), lambda timeline: LANE.show_all(timeline.lanes)),
        "nextCursor": answered(or_null(TEXT), says="Send it as `cursor` for the next lanes; null on the last page."),
        "since": answered(TEXT, lambda timeline: str(timeline.since), "Send it to `/v1/timeline:changes`."),
    }
)
KNOWN_JOB = Table({"jobId": answered(ID), "revision": answered(REVISION), "state": answered(one_of(JobState))})
CHANGES = Table(
    {
        "now": answered(INSTANT_MS, says=_NOW),
        "marksFrom": answered(INSTANT_MS, "marks.since", _MARKS_FROM),
        "marks": answered(
            items(ref("Mark"), maxItems=MOST_AGAIN),
            lambda changes: MARK.show_all(changes.marks.runs),
            "All marks planned after `marksFrom`; they replace those that the caller has.",
        ),
        "jobs": answered(
            or_null(items(ref("KnownJob"))),
            lambda changes: None if changes.known is None else KNOWN_JOB.show_all(changes.known),
            "All jobs, if one was created, changed or deleted since; null: none was, or more than "
            f"{MOST_KNOWN:,} jobs.",
        ),
        "since": answered(TEXT, lambda changes: str(changes.since), "Send it with the next request."),
    }
)


_Page = tuple[list[tuple[Job, list[Schedule]]], str | None]
"""Jobs with their schedules, and the cursor of the next page."""


def read_timeline(ctx: Context) -> Answer:
    """Returns the lanes of the jobs that match the filters, or that `jobIds` names."""
    return pace.priced(ctx, pace.CHANGES, _timeline)


def _timeline(ctx: Context) -> dict[str, Any]:
    window = _window(ctx)
    with_schedules, cursor = _named(ctx) if "jobIds" in ctx.query else _page(ctx)
    shown = all_as_held(ctx, with_schedules)
    owners = {owner for each in shown for owner in (each.job.id, *(one.id for one in each.schedules))}
    marks = _marks(ctx, window.begin, window.end, MOST_MARKS, owners)
    of_jobs: dict[str, list[Run]] = defaultdict(list)
    for run in marks.runs:
        of_jobs[run.job_id].append(run)
    rows = _recorded(ctx, shown, window)
    began = Since(_changing_from(marks.runs, ctx.now), ctx.now, NOTHING)
    drawn = [lane(each, of_jobs[each.job.id], window, rows) for each in shown]
    return TIMELINE.show(Timeline(window, marks.since, drawn, cursor, began))


def _recorded(ctx: Context, shown: Iterable[AsHeld], window: Window) -> Mapping[str, Recorded]:
    """Returns the newest rows in the ledger of each drawn schedule. Reads those that may have a past."""
    drawn = [each for now in shown for each in now.schedules[:MOST_SCHEDULES]]
    past = [each.id for each in drawn if each.planned_total and each.created_at <= window.past_to]
    return recorded(ctx.world.table, ctx.tenant, past, window.past_to, MOST_ROWS)


def _window(ctx: Context) -> Window:
    begin = instant(ctx.query, "from") or (ctx.now - DAY).replace(microsecond=0)
    end = instant(ctx.query, "until") or (ctx.now + DAY).replace(microsecond=0)
    if end < begin:
        raise InvalidRequest("until", "is before `from`", code="INVALID_QUERY")
    if end - begin > LONGEST:
        raise InvalidRequest("until", f"is more than {LONGEST.days} days after `from`", code="INVALID_QUERY")
    return Window(begin, ctx.now, end)


def _named(ctx: Context) -> _Page:
    job_ids = ctx.query["jobIds"].split(",")
    others = ctx.query.keys() - {"jobIds", "from", "until"}
    if others:
        raise InvalidRequest(min(others), "has no effect next to `jobIds`: leave it out", code="INVALID_QUERY")
    if len(job_ids) > MOST_NAMED or not all(map(is_uuid, job_ids)):
        reason = f"must be 1 to {MOST_NAMED} ids of jobs, separated by commas"
        raise InvalidRequest("jobIds", reason, code="INVALID_QUERY")
    return views.jobs_with_schedules(ctx.world.table, ctx.tenant, list(dict.fromkeys(job_ids))), None


def _page(ctx: Context) -> _Page:
    filters = filters_of(ctx)
    limit = number(ctx.query, "limit", 1, LARGEST_LIMIT) or LIMIT
    mark = cursors.read(ctx.place, ctx.query, place_of(filters))
    try:
        rows = views.listed(ctx.world.table, ctx.tenant, filters, mark[0] if mark else None, limit + 1)
        page = list(islice(rows, limit + 1))
    except views.TooMany as many:
        raise InvalidRequest(widest(ctx), TOO_MANY, code="INVALID_QUERY") from many
    with_schedules, last = views.page_with_schedules(ctx.world.table, ctx.tenant, page, limit)
    return [each for each in with_schedules if filters.hold_now(*each)], None if last is None else ctx.cursor(
        last.place
    )


# Marks


def _marks(ctx: Context, begin: datetime, end: datetime, most: int, owners: Collection[str] | None = None) -> Marks:
    """Reads runs that did not succeed or that wait, latest first, at most `most`.

    owners: those of the lanes; then a range that reaches into the window is read as well.
    """
    marked: list[Run] = []
    span, reaching = Span(begin, end), owners is not None
    rows = run_lists.recent(ctx.world, ctx.tenant, span, ctx.now, owners, reaching=reaching)
    for looked, each in enumerate(rows):
        run = None if isinstance(each, Passed) or each.is_gone(ctx.now) else each
        if run is not None and not (span.touches(run) if reaching else begin <= run.planned_at):
            run = None
        if looked == MOST_PASSED or (run is not None and len(marked) == most):
            return Marks(marked, marked[-1].planned_at if marked else ctx.now)
        if run is not None:
            marked.append(run)
    return Marks(marked, begin)


def _changing_from(runs: Iterable[Run], now: datetime) -> datetime:
    """Returns the instant of the oldest run that has not ended, or of the oldest that may still need attention."""
    waiting = (run.planned_at for run in runs if run.state.status is Status.RUNNING)
    return max(now - DAY, min([now - SETTLES, *waiting]))


# Changes


def read_timeline_changes(ctx: Context) -> Answer:
    """Returns the marks that may have changed since an answer, and the revisions of all jobs if any changed."""
    return pace.priced(ctx, pace.CHANGES, _changes)


def _changes(ctx: Context) -> dict[str, Any]:
    since = _since(ctx)
    whole = ctx.now - since.whole_at >= SETTLES
    begin = ctx.now - DAY if whole else max(ctx.now - DAY, since.again_from)
    marks = _marks(ctx, begin, ctx.now + DAY, MOST_AGAIN if whole else MOST_NEW)
    known, jobs = views.known(ctx.world.table, ctx.tenant, MOST_KNOWN)
    too_many = jobs > MOST_KNOWN
    hashed = NOTHING if too_many else hashlib.sha256(repr(known).encode()).hexdigest()[:16]
    after = Since(_changing_from(marks.runs, ctx.now), ctx.now if whole else since.whole_at, hashed)
    changed = None if too_many or hashed == since.known else known
    return CHANGES.show(Changes(ctx.now, marks, changed, after))


def _since(ctx: Context) -> Since:
    match = _SINCE.fullmatch(ctx.query.get("since", ""))
    if match is None:
        reason = "is required: send `since` of the timeline, or of its last changes"
        raise InvalidRequest("since", reason, code="INVALID_QUERY")
    return Since(from_ms(int(match[1])), from_ms(int(match[2])), match[3])
