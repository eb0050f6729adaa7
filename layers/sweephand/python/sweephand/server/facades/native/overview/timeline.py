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
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from sweephand.base.errors import InvalidRequest
from sweephand.base.ids import is_uuid
from sweephand.domain.instants import EPOCH, epoch_ms, epoch_s, from_ms, text, text_ms
from sweephand.domain.job import Job
from sweephand.domain.occurrences import generations, lanes, upcoming
from sweephand.domain.occurrences.lanes import Some
from sweephand.domain.occurrences.lateness import FRESH
from sweephand.domain.run import Run, State, Status
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.schedules.rule import Undecided, for_one, limited
from sweephand.schedules.timing import Timing, load_or_never
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import cursors
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.jobs.answers import AsHeld, all_as_held
from sweephand.server.facades.native.jobs.job_list import TOO_MANY, filters_of, place_of, widest
from sweephand.server.facades.native.members import job_members
from sweephand.server.facades.native.members.schedule_members import held_body
from sweephand.server.facades.native.overview import pace, sentences
from sweephand.server.facades.native.query_instants import instant
from sweephand.server.facades.native.query_numbers import number
from sweephand.server.flow.runs import run_lists
from sweephand.server.store.views import jobs as views
from sweephand.server.store.views.runs import Passed, Recorded, Span, recorded

LIMIT, LARGEST_LIMIT = 100, 500
MOST_NAMED = 50
"""How many jobs a request may name."""
MOST_SCHEDULES = 20
"""How many schedules a lane shows; the others are counted."""
MOST_MARKS_OF_LANE = 50
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


class Window(NamedTuple):
    """The time that is shown. past_to, ahead_from: now, unless the window ends before now or begins after it."""

    begin: datetime
    now: datetime
    end: datetime

    @property
    def past_to(self) -> datetime:
        return min(self.now, self.end)

    @property
    def ahead_from(self) -> datetime:
        return max(self.now, self.begin)


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


_Page = tuple[list[tuple[Job, list[Schedule]]], str | None]
"""Jobs with their schedules, and the cursor of the next page."""


def read_timeline(ctx: Context) -> Answer:
    """Returns the lanes of the jobs that match the filters, or that `jobIds` names."""
    return pace.priced(ctx, pace.CHANGES, _timeline)


def _timeline(ctx: Context) -> dict[str, Any]:
    window = _window(ctx)
    found, cursor = _named(ctx) if "jobIds" in ctx.query else _page(ctx)
    shown = all_as_held(ctx, found)
    owners = {owner for each in shown for owner in (each.job.id, *(one.id for one in each.schedules))}
    marks = _marks(ctx, window.begin, window.end, MOST_MARKS, owners)
    of_jobs: dict[str, list[Run]] = defaultdict(list)
    for run in marks.runs:
        of_jobs[run.job_id].append(run)
    rows = _recorded(ctx, shown, window)
    began = Since(_changing_from(marks.runs, ctx.now), ctx.now, NOTHING)
    return {
        "now": text_ms(ctx.now),
        "from": text(window.begin),
        "until": text(window.end),
        "marksFrom": text_ms(marks.since),
        "items": [lane(each, of_jobs[each.job.id], window, rows) for each in shown],
        "nextCursor": cursor,
        "since": str(began),
    }


def _recorded(ctx: Context, shown: Iterable[AsHeld], window: Window) -> Mapping[str, Recorded]:
    """Returns the newest rows in the ledger of each drawn schedule. Reads those that may have a past."""
    drawn = [each for now in shown for each in now.schedules[:MOST_SCHEDULES]]
    past = [each.id for each in drawn if each.planned_total and each.created_at <= window.past_to]
    return recorded(ctx.world.table, ctx.tenant, past, window.past_to, MOST_ROWS)


def _window(ctx: Context) -> Window:
    begin = instant(ctx, "from") or (ctx.now - DAY).replace(microsecond=0)
    end = instant(ctx, "until") or (ctx.now + DAY).replace(microsecond=0)
    if end < begin:
        raise InvalidRequest("until", "is before `from`", code="INVALID_QUERY")
    if end - begin > LONGEST:
        raise InvalidRequest("until", f"is more than {LONGEST.days} days after `from`", code="INVALID_QUERY")
    return Window(begin, ctx.now, end)


def _named(ctx: Context) -> _Page:
    given = ctx.query["jobIds"].split(",")
    others = ctx.query.keys() - {"jobIds", "from", "until"}
    if others:
        raise InvalidRequest(min(others), "has no effect next to `jobIds`: leave it out", code="INVALID_QUERY")
    if len(given) > MOST_NAMED or not all(map(is_uuid, given)):
        reason = f"must be 1 to {MOST_NAMED} ids of jobs, separated by commas"
        raise InvalidRequest("jobIds", reason, code="INVALID_QUERY")
    return views.jobs_with_schedules(ctx.world.table, ctx.tenant, list(dict.fromkeys(given))), None


def _page(ctx: Context) -> _Page:
    filters = filters_of(ctx)
    limit = number(ctx.query, "limit", 1, LARGEST_LIMIT) or LIMIT
    mark = cursors.read(ctx.place, ctx.query, place_of(filters))
    try:
        rows = views.listed(ctx.world.table, ctx.tenant, filters, mark[0] if mark else None, limit + 1)
        page = list(islice(rows, limit + 1))
    except views.TooMany as many:
        raise InvalidRequest(widest(ctx), TOO_MANY, code="INVALID_QUERY") from many
    found, last = views.page_with_schedules(ctx.world.table, ctx.tenant, page, limit)
    return [each for each in found if filters.hold_now(*each)], None if last is None else ctx.cursor(last.place)


# Marks


def _marks(ctx: Context, begin: datetime, end: datetime, most: int, owners: Collection[str] | None = None) -> Marks:
    """Reads runs that did not succeed or that wait, latest first, at most `most`.

    owners: those of the lanes; then a range that reaches into the window is read as well.
    """
    found: list[Run] = []
    span, reaching = Span(begin, end), owners is not None
    rows = run_lists.recent(ctx.world, ctx.tenant, span, ctx.now, owners, reaching=reaching)
    for looked, each in enumerate(rows):
        run = None if isinstance(each, Passed) or each.is_gone(ctx.now) else each
        if run is not None and not (span.touches(run) if reaching else begin <= run.planned_at):
            run = None
        if looked == MOST_PASSED or (run is not None and len(found) == most):
            return Marks(found, found[-1].planned_at if found else ctx.now)
        if run is not None:
            found.append(run)
    return Marks(found, begin)


def _changing_from(runs: Iterable[Run], now: datetime) -> datetime:
    """Returns the instant of the oldest run that has not ended, or of the oldest that may still need attention."""
    waiting = (run.planned_at for run in runs if run.state.status is Status.RUNNING)
    return max(now - DAY, min([now - SETTLES, *waiting]))


def mark_body(run: Run) -> dict[str, Any]:
    return {
        "runId": run.id,
        "jobId": run.job_id,
        "scheduleId": run.schedule_id,
        "kind": run.kind.value,
        "plannedAt": text_ms(run.planned_at),
        "state": run.state.value,
        "reason": run.reason.value if run.reason else None,
        "httpStatus": run.http_status,
        "sentence": sentences.of_run(run),
        "until": text_ms(run.range_until) if run.range_until else None,
        "count": run.range_count or 1,
    }


# Lanes


def lane(now: AsHeld, runs: Sequence[Run], window: Window, rows: Mapping[str, Recorded]) -> dict[str, Any]:
    """Returns a job with its past and planned runs.

    runs: those that did not succeed, newest first. rows: the newest of each schedule that has any.
    """
    job, schedules, held = now.job, now.schedules, now.held
    timings = {each.id: load_or_never(each.packed) for each in schedules[:MOST_SCHEDULES]}
    drawn = schedules[:MOST_SCHEDULES]
    computed = {each.id: _computed(job, each, timings[each.id], window, rows.get(each.id)) for each in drawn}
    ahead = {id_: each.ahead for id_, each in computed.items()}
    before = [_unmarked(computed[each.id].past, each, runs) for each in drawn]
    with_row = [_part(some, rows.get(each.id), has=True) for some, each in zip(before, drawn, strict=True)]
    without = [_part(some, rows.get(each.id), has=False) for some, each in zip(before, drawn, strict=True)]
    planned, past = lanes.merged([*ahead.values()], latest=False), lanes.merged(with_row, latest=True)
    no_row = lanes.merged(without, latest=True)
    unplanned = [each.stopped_at for each in computed.values()]
    due_since = _due_since(schedules, runs, [*unplanned, from_ms((no_row.seconds or [0])[0] * 1000)], window.now)
    since = [lanes.known_since(each, timings[each.id], window.begin, window.now) for each in drawn]
    next_runs = {id_: from_ms(some.seconds[0] * 1000) for id_, some in ahead.items() if some.seconds}
    next_run, _ = (upcoming.NO_RUNS, None) if next_runs else upcoming.next_of_job(schedules, window.now)
    return {
        "jobId": job.id,
        "name": job.name,
        "collection": job.collection,
        "revision": job.revision,
        "state": job_members.job_state(job, schedules).value,
        "stateReason": job_members.job_state_reason(job, schedules),
        "sentence": sentences.of_job(job, schedules, held) or (due_since and sentences.of_due(job, due_since)),
        "pause": job_members.pause_body(job),
        "held": held_body(held),
        "nextRunAt": text(min(next_runs.values())) if next_runs else next_run.first and text(next_run.first),
        "dueSince": None if due_since is None else text(due_since),
        "schedules": [
            {
                "id": each.id,
                "name": each.name,
                "state": each.state.value,
                "summary": timings[each.id].summary,
                "timezone": timings[each.id].zone.name,
                "nextRunAt": text(next_runs[each.id]) if each.id in next_runs else None,
            }
            for each in drawn
        ],
        "schedulesLeftOut": len(schedules) - len(drawn),
        "marks": [mark_body(run) for run in runs[:MOST_MARKS_OF_LANE]],
        "marksLeftOut": max(0, len(runs) - MOST_MARKS_OF_LANE),
        "noFailure": {**_some(past, window), "since": text(min(since, default=window.now))},
        "noRow": _some(no_row, window),
        "planned": _some(planned, window),
        "exact": next_run.exact and all(each.exact for each in computed.values()),
    }


class _Computed(NamedTuple):
    """The instants of a schedule. stopped_at: as in `_stopped_at`. exact: False if some take too long to compute."""

    ahead: Some
    past: Some
    stopped_at: datetime
    exact: bool


def _computed(job: Job, schedule: Schedule, timing: Timing, window: Window, rows: Recorded | None) -> _Computed:
    """Computes the instants of a schedule. Hard schedules of one answer share its limit."""
    with for_one() as asked:
        ahead = lanes.planned(schedule, timing, window.ahead_from, window.end)
        past = lanes.past(schedule, timing, window.begin, window.past_to)
        stopped = job.open_change is None and schedule.next_run_at is None
        stopped_at = _stopped_at(schedule, timing, rows) if stopped else EPOCH
    return _Computed(ahead, past, stopped_at, asked.whole)


def _some(some: Some, window: Window) -> dict[str, Any]:
    begin = epoch_s(window.begin)
    return {"seconds": [second - begin for second in some.seconds], "leftOut": some.left_out}


def _unmarked(some: Some, schedule: Schedule, runs: Sequence[Run]) -> Some:
    """Returns the instants of a schedule that have no mark and are not part of a range."""
    own = [run for run in runs if run.schedule_id == schedule.id]
    if not own:
        return some
    marked = {epoch_s(run.planned_at) for run in own}
    ranges = [(epoch_s(run.planned_at), epoch_s(run.range_until)) for run in own if run.range_until is not None]
    kept = [
        second
        for second in some.seconds
        if second not in marked and not any(first <= second <= last for first, last in ranges)
    ]
    return Some(kept, some.left_out)


def _part(some: Some, rows: Recorded | None, *, has: bool) -> Some:
    """Returns the instants that have a row or, unless `has`, the others. Further ones count with the earliest."""
    kept = [second for second in some.seconds if (rows is not None and rows.has(second)) is has]
    of_earliest = bool(some.seconds) and (rows is not None and rows.has(some.seconds[0])) is has
    return Some(kept, some.left_out if of_earliest else 0)


def _stopped_at(schedule: Schedule, timing: Timing, rows: Recorded | None) -> datetime:
    """Returns the first instant after the last row of a schedule that acts but has lost its next instant."""
    if schedule.state is ScheduleState.ACTIVE and schedule.held_from is None:
        last = epoch_s(generations.began(schedule)) if rows is None else rows.newest
        with suppress(Undecided), limited():
            found = timing.rule.next_after(from_ms(last * 1000))
            return EPOCH if found is None else found
    return EPOCH


def _due_since(
    schedules: Sequence[Schedule], runs: Sequence[Run], without_row: Sequence[datetime], now: datetime
) -> datetime | None:
    """Returns the oldest instant that is due and has not begun; None if nothing waits.

    It was not sent, has no row after two minutes, or is held because nobody takes it. without_row: the first instants
    without one; EPOCH for none.
    """
    waits = [each.next_run_at for each in schedules if each.state.value == "ACTIVE" and each.held_from is None]
    found = [at for at in waits if at is not None and at < now]
    found += [run.planned_at for run in runs if run.state is State.HELD]
    found += [at for at in without_row if EPOCH < at < now - FRESH]
    return min(found, default=None)


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
    return {
        "now": text_ms(ctx.now),
        "marksFrom": text_ms(marks.since),
        "marks": [mark_body(run) for run in marks.runs],
        "jobs": None if too_many or hashed == since.known else [_known_body(each) for each in known],
        "since": str(after),
    }


def _known_body(known: views.Known) -> Mapping[str, Any]:
    return {"jobId": known.job_id, "revision": known.revision, "state": known.state.value}


def _since(ctx: Context) -> Since:
    found = _SINCE.fullmatch(ctx.query.get("since", ""))
    if found is None:
        reason = "is required: send `since` of the timeline, or of its last changes"
        raise InvalidRequest("since", reason, code="INVALID_QUERY")
    return Since(from_ms(int(found[1])), from_ms(int(found[2])), found[3])
