"""Plans what the sweep sends for one row, and how the row advances after that. Pure."""

from __future__ import annotations

from dataclasses import field, replace
from datetime import datetime, timedelta

from sweephand.base.records import dataclass
from sweephand.domain.application import CHECKED_AGAIN
from sweephand.domain.message import Pointer, Subject, occurrence
from sweephand.domain.occurrences import series
from sweephand.domain.occurrences.index_row import WAKE_AGAIN, SweepText, WaitingRun, Waits
from sweephand.domain.schedule import Lane
from sweephand.schedules.timing import load
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.index.next_run_index import Advance, WaitingRow


@dataclass(frozen=True)
class Step:
    """A row's part of the sweep: the messages to send, then the advance."""

    advance: Advance
    deliveries: tuple[Delivery, ...] = field(default=())


def plan_row(row: WaitingRow, sweep: SweepText, now: datetime, horizon: datetime) -> Step:
    """Plans the step for one row. sweep: its text. Raises ValueError if its schedule cannot be read."""
    match sweep.waits:
        case Waits.OCCURRENCE:
            return _occurrences(row, sweep, now, horizon)
        case Waits.END:
            pointer = end_pointer(row.tenant, row.owner, row.own_id, row.next_run_at)
            return _wake(row, replace(sweep, lane=sweep.lane.executors), now, pointer)
        case Waits.RUN:
            return _wake(row, sweep, now, _run_pointer(row, WaitingRun.read(sweep.packed)))
        case Waits.CATCH_UP | Waits.HELD:
            raise ValueError("a catch-up or held row is not planned here")
        case Waits.WATCH:
            pointer = Pointer(row.tenant, row.sk, None, "", row.next_run_at, subject=Subject.WATCH)
            return _wake(row, sweep, now, pointer, CHECKED_AGAIN)
        case Waits.OPERATION | Waits.ERRORS:
            pointer = replace(job_pointer(row, WAKE_SUBJECTS[sweep.waits]), generation=row.generation)
            return _wake(row, replace(sweep, lane=Lane.OPERATIONS), now, pointer)
    return _wake(row, replace(sweep, lane=Lane.FAST), now, job_pointer(row, WAKE_SUBJECTS[sweep.waits]))


WAKE_SUBJECTS = {
    Waits.CLEAN_UP: Subject.CLEAN_UP,
    Waits.RESUME: Subject.RESUME,
    Waits.CHANGE: Subject.CHANGE,
    Waits.RELEASE: Subject.RELEASE,
    Waits.ENDED: Subject.ENDED,
    Waits.REPLAN: Subject.REPLAN,
    Waits.OPERATION: Subject.OPERATION,
    Waits.ERRORS: Subject.ERRORS,
    Waits.FLOW: Subject.FLOW,
    Waits.CONSUMER: Subject.CONSUMER,
}
"""The subject of the message that each kind of row sends to the executor or the function `operations`."""


def _occurrences(row: WaitingRow, sweep: SweepText, now: datetime, horizon: datetime) -> Step:
    timing = load(sweep.packed)
    stretch = series.due(timing, row.next_run_at, horizon, row.planned_total, now)
    deliveries = tuple(
        Delivery(occurrence(row.tenant, row.owner, row.own_id, instant, row.generation), instant, sweep.lane)
        for instant in stretch.instants
    )
    planned_total = row.planned_total + len(stretch.instants)
    if stretch.next_at is not None:
        return Step(Advance(row, stretch.next_at, planned_total), deliveries)
    last = stretch.instants[-1] if stretch.instants else row.next_run_at
    return Step(Advance(row, max(last, now) + WAKE_AGAIN, planned_total, ending=True, last_at=last), deliveries)


def end_pointer(tenant: str, job_id: str, schedule_id: str, at: datetime) -> Pointer:
    """Returns the pointer that asks the executor whether an ENDING schedule is over."""
    return Pointer(tenant, job_id, schedule_id, "", at, subject=Subject.SCHEDULE)


def job_pointer(row: WaitingRow, subject: Subject) -> Pointer:
    """Returns the pointer that asks the executor to act on a row of a partition, usually a job's."""
    return Pointer(row.tenant, row.owner, None, row.own_id, row.next_run_at, subject=subject)


def _run_pointer(row: WaitingRow, run: WaitingRun) -> Pointer:
    schedule = row.owner if row.owner != run.job_id else None
    return Pointer(
        tenant=row.tenant,
        job=run.job_id,
        schedule=schedule,
        run=row.own_id,
        instant=run.planned_at,
        kind=run.kind,
        attempt=run.attempt,
        decided=True,
        recorded=True,
    )


def _wake(row: WaitingRow, sweep: SweepText, now: datetime, pointer: Pointer, again: timedelta = WAKE_AGAIN) -> Step:
    """Returns the step that sends the pointer for the row's instant.

    The row moves on by `again` and repeats the pointer until its work is done.
    """
    delivery = Delivery(pointer, row.next_run_at, sweep.lane)
    return Step(Advance(row, max(row.next_run_at, now) + again), (delivery,))
