"""The line of one job in the timeline: its past and planned instants, and the runs that did not succeed or wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from sweephand.base.json_schema import answer, items, one_of, or_null, ref, whole
from sweephand.base.records import dataclass
from sweephand.domain.answers import Table, answered
from sweephand.domain.instants import EPOCH, epoch_s, from_ms
from sweephand.domain.job import Job, JobState
from sweephand.domain.occurrences import generations, lanes, upcoming
from sweephand.domain.occurrences.lanes import Some
from sweephand.domain.occurrences.lateness import FRESH
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState, StateReason
from sweephand.domain.schema_words import ID, INSTANT, INSTANT_MS, NAME, REVISION, RUN_ID, STATUS_CODE, TEXT
from sweephand.schedules.rule import Undecided, for_one, limited
from sweephand.schedules.timing import Timing, load_or_never
from sweephand.server.facades.native.jobs.answers import AsHeld
from sweephand.server.facades.native.members.job_members import JOB, job_state, job_state_reason, pause_body
from sweephand.server.facades.native.members.schedule_members import HELD, held_body
from sweephand.server.facades.native.overview import sentences
from sweephand.server.store.views.runs import Recorded

MOST_SCHEDULES = 20
"""How many schedules a lane shows; the others are counted."""
MOST_MARKS = 50


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


class Drawn(NamedTuple):
    """A schedule of a lane, and its next instant in the window."""

    schedule: Schedule
    timing: Timing
    next_run_at: datetime | None


class Dots(NamedTuple):
    """Instants, in seconds after the beginning of the window. since: the current rules know no earlier ones."""

    seconds: list[int]
    left_out: int
    since: datetime | None = None


@dataclass(frozen=True)
class Lane:
    """A job with its past and planned runs. runs: those that did not succeed, newest first.

    exact: False if some instants take too long to compute.
    """

    shown: AsHeld
    runs: Sequence[Run]
    drawn: Sequence[Drawn]
    next_run_at: datetime | None
    due_since: datetime | None
    no_failure: Dots
    no_row: Dots
    planned: Dots
    exact: bool

    @property
    def sentence(self) -> str | None:
        """Returns why the job does not run, or why it has not begun what is due."""
        job = self.shown.job
        words = sentences.of_job(job, self.shown.schedules, self.shown.held)
        return words or (None if self.due_since is None else sentences.of_due(job, self.due_since))


MARK = Table(
    {
        "runId": answered(RUN_ID, "id"),
        "jobId": answered(ID),
        "scheduleId": answered(or_null(ID)),
        "kind": answered(one_of(Kind)),
        "plannedAt": answered(INSTANT_MS),
        "state": answered(one_of(State)),
        "reason": answered(or_null(one_of(Reason))),
        "httpStatus": answered(or_null(STATUS_CODE)),
        "sentence": answered(TEXT, sentences.of_run, "The reason for its state, in words."),
        "until": answered(or_null(INSTANT_MS), "range_until", "For a mark of many occurrences: the last of them."),
        "count": answered(whole(1), lambda run: run.range_count or 1, "How many occurrences it stands for."),
    }
)
LANE_SCHEDULE = Table(
    {
        "id": answered(ID, "schedule.id"),
        "name": answered(TEXT, "schedule.name"),
        "state": answered(one_of(ScheduleState), "schedule.state"),
        "summary": answered(TEXT, "timing.summary", "In plain English."),
        "timezone": answered(TEXT, "timing.zone.name", "The zone of its wall times."),
        "nextRunAt": answered(or_null(INSTANT)),
    }
)
DOTS = Table(
    {
        "seconds": answered(
            items({"type": "integer"}, maxItems=lanes.MOST),
            says="Instants, in whole seconds after the `from` of the timeline.",
        ),
        "leftOut": answered(
            whole(0, lanes.COUNTED_MOST), says="How many more there are; the maximum means that many or more."
        ),
    }
)
PAST_DOTS = Table(
    {
        "since": answered(INSTANT, says="The current rules do not apply to earlier instants."),
        **DOTS.table,
    }
)
LANE = Table(
    {
        "jobId": answered(ID, "shown.job.id"),
        "name": answered(TEXT, "shown.job.name"),
        "collection": answered(NAME, "shown.job.collection"),
        "revision": answered(REVISION, "shown.job.revision"),
        "state": answered(one_of(JobState), lambda lane: job_state(lane.shown.job, lane.shown.schedules).value),
        "stateReason": answered(
            or_null(one_of(StateReason)), lambda lane: job_state_reason(lane.shown.job, lane.shown.schedules)
        ),
        "sentence": answered(or_null(TEXT), says="Why the job does not run, in words; null: it runs normally."),
        "pause": answered(JOB.answer()["pause"], lambda lane: pause_body(lane.shown.job)),
        "held": answered(HELD, lambda lane: held_body(lane.shown.held)),
        "nextRunAt": answered(or_null(INSTANT)),
        "dueSince": answered(
            or_null(INSTANT), says="The oldest instant that is due and has not begun; null: it is on time."
        ),
        "schedules": answered(
            items(ref("LaneSchedule"), maxItems=MOST_SCHEDULES), lambda lane: LANE_SCHEDULE.show_all(lane.drawn)
        ),
        "schedulesLeftOut": answered(
            whole(),
            lambda lane: len(lane.shown.schedules) - len(lane.drawn),
            "How many schedules the lane does not show.",
        ),
        "marks": answered(
            items(ref("Mark"), maxItems=MOST_MARKS),
            lambda lane: MARK.show_all(lane.runs[:MOST_MARKS]),
            "Runs that did not succeed, or that wait.",
        ),
        "marksLeftOut": answered(
            whole(), lambda lane: max(0, len(lane.runs) - MOST_MARKS), "How many older marks the lane does not show."
        ),
        "noFailure": answered(
            answer(PAST_DOTS.answer()),
            lambda lane: PAST_DOTS.show(lane.no_failure),
            "The latest past instants without a recorded failure, as far as rows are known.",
        ),
        "noRow": answered(
            answer(DOTS.answer()),
            lambda lane: DOTS.show(lane.no_row),
            "The latest past instants without a row in the ledger: nothing has run yet.",
        ),
        "planned": answered(answer(DOTS.answer()), lambda lane: DOTS.show(lane.planned), "The next instants."),
        "exact": answered(
            {"type": "boolean"},
            says="False if some instants take too long to compute, so that the lane may lack them.",
        ),
    }
)


def lane(shown: AsHeld, runs: Sequence[Run], window: Window, rows: Mapping[str, Recorded]) -> Lane:
    """Returns a job with its past and planned runs.

    runs: those that did not succeed, newest first. rows: the newest of each schedule that has any.
    """
    job, schedules = shown.job, shown.schedules
    drawn = schedules[:MOST_SCHEDULES]
    timings = {each.id: load_or_never(each.packed) for each in drawn}
    computed = {each.id: _computed(job, each, timings[each.id], window, rows.get(each.id)) for each in drawn}
    before = [_unmarked(computed[each.id].past, each, runs) for each in drawn]
    with_row = [_part(some, rows.get(each.id), has=True) for some, each in zip(before, drawn, strict=True)]
    without = [_part(some, rows.get(each.id), has=False) for some, each in zip(before, drawn, strict=True)]
    past, no_row = lanes.merged(with_row, latest=True), lanes.merged(without, latest=True)
    planned = lanes.merged([each.ahead for each in computed.values()], latest=False)
    unplanned = [each.stopped_at for each in computed.values()]
    since = [lanes.known_since(each, timings[each.id], window.begin, window.now) for each in drawn]
    next_runs = {id_: from_ms(each.ahead.seconds[0] * 1000) for id_, each in computed.items() if each.ahead.seconds}
    next_run, _ = (upcoming.NO_RUNS, None) if next_runs else upcoming.next_of_job(schedules, window.now)
    return Lane(
        shown,
        runs,
        [Drawn(each, timings[each.id], next_runs.get(each.id)) for each in drawn],
        next_run_at=min(next_runs.values()) if next_runs else next_run.first,
        due_since=_due_since(schedules, runs, [*unplanned, from_ms((no_row.seconds or [0])[0] * 1000)], window.now),
        no_failure=_dots(past, window, min(since, default=window.now)),
        no_row=_dots(no_row, window),
        planned=_dots(planned, window),
        exact=next_run.exact and all(each.exact for each in computed.values()),
    )


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


def _dots(some: Some, window: Window, since: datetime | None = None) -> Dots:
    begin = epoch_s(window.begin)
    return Dots([second - begin for second in some.seconds], some.left_out, since)


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
            upcoming = timing.rule.next_after(from_ms(last * 1000))
            return EPOCH if upcoming is None else upcoming
    return EPOCH


def _due_since(
    schedules: Sequence[Schedule], runs: Sequence[Run], without_row: Sequence[datetime], now: datetime
) -> datetime | None:
    """Returns the oldest instant that is due and has not begun; None if nothing waits.

    It was not sent, has no row after two minutes, or is held because nobody takes it. without_row: the first instants
    without one; EPOCH for none.
    """
    waits = [each.next_run_at for each in schedules if each.state.value == "ACTIVE" and each.held_from is None]
    instants = [at for at in waits if at is not None and at < now]
    instants += [run.planned_at for run in runs if run.state is State.HELD]
    instants += [at for at in without_row if EPOCH < at < now - FRESH]
    return min(instants, default=None)
