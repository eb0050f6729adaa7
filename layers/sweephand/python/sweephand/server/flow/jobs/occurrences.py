"""A schedule's occurrences, past and ahead: by the ledger and, without a row, by its plans.

Lists and explanations of single instants both come from here, so that they agree.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, takewhile
from typing import NamedTuple

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.jobs import switched_off
from sweephand.domain.jobs.switched_off import SwitchedOff
from sweephand.domain.occurrences import generations, off_times, upcoming
from sweephand.domain.occurrences.generations import Generation
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import OVER, Schedule, ScheduleState
from sweephand.schedules.explain.explain import left_out
from sweephand.schedules.rule import MovedBy, Undecided, limited
from sweephand.schedules.timing import Timing, load_or_never
from sweephand.server.flow.jobs import past
from sweephand.server.flow.retention import RUN_DAYS
from sweephand.server.flow.world import World
from sweephand.server.store.views import runs as views

KEPT = timedelta(days=RUN_DAYS)
SECOND = timedelta(seconds=1)


class Occurrence(NamedTuple):
    """An occurrence. run: its row, or that of the range which stands for it. skipped: why it will have such a row.

    calendar: the index of the calendar that leaves it out. plan: the ended plan that has it. off: the time in which it
    is skipped.
    """

    instant: datetime
    run: Run | None = None
    moved_by: MovedBy | None = None
    skipped: Reason | None = None
    calendar: int | None = None
    plan: Generation | None = None
    off: SwitchedOff | None = None

    @property
    def state(self) -> State:
        """Returns the state of the row, or as things stand."""
        if self.run is not None:
            return self.run.state
        return State.SCHEDULED if self.skipped is None else State.SKIPPED

    @property
    def reason(self) -> Reason | None:
        return self.skipped if self.run is None else self.run.reason


@dataclass(frozen=True)
class Asked:
    """A schedule of which occurrences are asked, as a response shows it, with its timing and its job."""

    world: World
    job: Job
    schedule: Schedule
    timing: Timing
    now: datetime

    @classmethod
    def of(cls, world: World, job: Job, schedule: Schedule, now: datetime) -> Asked:
        return cls(world, job, schedule, load_or_never(schedule.packed), now)

    @property
    def plan(self) -> Schedule:
        """Returns the schedule as the set end of its pause leaves it."""
        return upcoming.resumed(self.schedule, self.timing)

    @property
    def complete_from(self) -> datetime:
        """Returns the instant after which each occurrence must have a row. The retention has deleted earlier ones."""
        gone, unsent = self.now - KEPT, self.schedule.unsent_from
        return gone if unsent is None else min(gone, unsent - SECOND)


def between(
    many: Sequence[Asked], after: datetime, until: datetime, limit: int
) -> list[Iterator[tuple[Schedule, Occurrence]]]:
    """Returns the occurrences of each schedule after an instant: at least those up to `until`, up to `limit` planned.

    They come from the ledger, from the plan, from the times for which the schedule is off, and from the calendars that
    leave them out. The first of these sources that has an instant decides about it. The first rows of each schedule are
    read in parallel, because a job may have 1,000; the more there are, the fewer rows a query reads for each.
    """
    size = views.size_of_each(limit, len(many))
    rows = views.begun([_rows(each, after, size) for each in many])
    return [_between(each, after, until, limit, own) for each, own in zip(many, rows, strict=True)]


def _between(
    asked: Asked, after: datetime, until: datetime, limit: int, rows: Iterator[Run]
) -> Iterator[tuple[Schedule, Occurrence]]:
    begun = generations.began(asked.schedule)
    recorded = (Occurrence(at, run, _moved_by(asked.timing, at, begun)) for at, run in _recorded(asked, after, rows))
    for each in _decided([recorded, *_without_row(asked, after, until, limit)]):
        yield asked.schedule, each


def at(asked: Asked, instant: datetime) -> Occurrence | None:
    """Returns the occurrence at an instant; None if there is none. Cost: up to four queries of the ledger."""
    row = past.row_of(asked.world, asked.schedule, instant)
    if row is not None and (row.range_until is None or not _is_planned_again(asked, instant)):
        return Occurrence(instant, row)
    with suppress(Undecided), limited():
        first = next(_decided(_without_row(asked, instant - SECOND, instant, 1)), None)
        return first if first is not None and first.instant == instant else None
    return None


def _decided(sources: Iterable[Iterable[Occurrence]]) -> Iterator[Occurrence]:
    last = None
    for each in heapq.merge(*sources, key=_instant):
        if each.instant != last:
            yield each
        last = each.instant


def _instant(occurrence: Occurrence) -> datetime:
    return occurrence.instant


# Without a row


def _without_row(asked: Asked, after: datetime, until: datetime, limit: int) -> list[Iterable[Occurrence]]:
    """Returns the sources of occurrences without a row; the first one that has an instant decides about it."""
    schedule, timing = asked.schedule, asked.timing
    with limited() as question:
        owed = _owed(asked, max(after, asked.complete_from), limit)
    due = [_sent_before(asked, each) for each in schedule.still_due if each > after]
    before = heapq.merge(*(_of_plan(asked, plan, after) for plan in _plans_before(asked, after)), key=_instant)
    begun = generations.began(schedule)
    off = (
        Occurrence(each, None, _moved_by(timing, each, begun), time.reason, off=time)
        for time in switched_off.times_off(asked.job, schedule)
        for each in time.instants(timing, _may_be_off_after(asked, time, after), until)
    )
    return [_known(owed, whole=question.whole), due, before, off, _left_out(asked, after, until, owed)]


def _known(occurrences: list[Occurrence], *, whole: bool) -> Iterator[Occurrence]:
    """Yields occurrences. Raises Undecided after the last one unless they are all."""
    yield from occurrences
    if not whole:
        raise Undecided


def _owed(asked: Asked, after: datetime, limit: int) -> list[Occurrence]:
    """Returns the occurrences of the plan in force, and of earlier plans that are still due.

    Before the schedule follows a change of its calendars, what is due follows the older version. An occurrence that
    waits until its collection is enabled is that of the row; a paused or ending schedule has none in its row.
    """
    schedule, now = asked.schedule, asked.now
    if switched_off.waits_until_enabled(asked.job, schedule):
        if schedule.state is ScheduleState.ACTIVE:
            late = _waiting_for_enabling(asked)
            return [] if late is None or late <= after else [Occurrence(late)]
        schedule = replace(schedule, held_from=None)
    ahead = upcoming.ahead(replace(schedule, newer_packed=None), asked.timing, after, limit)
    if schedule.newer_packed is not None:
        due = list(takewhile(lambda each: each.instant <= now, ahead))
        ahead = [*due, *upcoming.ahead(schedule, asked.timing, max(after, now), limit)][:limit]
    return [
        _sent_before(asked, each.instant)
        if each.instant in schedule.still_due
        else Occurrence(each.instant, None, each.moved_by)
        for each in ahead
    ]


def _waiting_for_enabling(asked: Asked) -> datetime | None:
    """Returns the one-time instant of a held schedule. It may be held since a change, which was before that instant."""
    held_from = asked.schedule.held_from
    with suppress(Undecided):
        return held_from and (asked.timing.rule.next_after(held_from - SECOND) or held_from)
    return held_from


def _sent_before(asked: Asked, instant: datetime) -> Occurrence:
    """Returns an occurrence that an earlier plan had sent. It is skipped if that plan was switched off."""
    number = asked.schedule.generation - 1
    return Occurrence(instant, skipped=switched_off.reason_of_pending(asked.job, asked.schedule, instant, number))


def _plans_before(asked: Asked, after: datetime) -> list[Generation]:
    """Returns the ended plans that may have occurrences which nothing has begun yet."""
    return past.plans_since(asked.world, asked.schedule, after) if after + SECOND <= asked.now else []


def _of_plan(asked: Asked, plan: Generation, after: datetime) -> Iterator[Occurrence]:
    """Yields the past instants of an ended plan, but none that follow from actual starts: only the ledger knows these.

    The schedule's row names those that are still ahead.
    """
    timing, after = plan.timing(), max(after, asked.now - KEPT)
    until = min(plan.through or asked.now, asked.now)
    instants: Iterable[datetime] = [plan.first] if plan.first is not None and after < plan.first <= until else []
    if timing.actual_start_interval_s is None:
        by_rule = switched_off.by_rule(timing, max(after, plan.began, plan.first or after), until)
        instants = chain(instants, by_rule)
    for each in instants:
        skipped = switched_off.reason_of_pending(asked.job, asked.schedule, each, plan.number)
        yield Occurrence(each, skipped=skipped, plan=plan)


def _may_be_off_after(asked: Asked, time: SwitchedOff, after: datetime) -> datetime:
    """Returns the instant after which occurrences of that time have not run. Earlier ones may have been sent before."""
    return max(after, asked.complete_from) if time.reason is Reason.DISABLED and time.first is not None else after


def _left_out(asked: Asked, after: datetime, until: datetime, owed: list[Occurrence]) -> Iterator[Occurrence]:
    """Yields the occurrences that calendars leave out while the plan lasts. They are computed, and not stored.

    owed: the occurrences of the plan after `after`; the last one ends a plan with a count.
    """
    plan, timing = asked.plan, asked.timing
    if plan.held_from is not None or not plan.timing.get("calendars"):
        return
    if plan.state is ScheduleState.ENDING or plan.state in OVER:
        until = min(until, plan.last_planned_at or after)
    elif plan.state is not ScheduleState.ACTIVE:
        return
    elif timing.count is not None:
        until = min(until, owed[-1].instant if owed else after)
    if asked.schedule.newer_packed is not None:
        until = min(until, asked.now)
    for each in left_out(timing, max(after, generations.began(plan)), until):
        yield Occurrence(each.instant, skipped=Reason.CALENDAR, calendar=each.calendar)


def _moved_by(timing: Timing, at: datetime, begun: datetime) -> MovedBy | None:
    with suppress(Undecided):
        if at > begun and timing.rule.last_until(at) == at:
            return timing.rule.moved_by(epoch_s(at))
    return None


# With a row


def _rows(asked: Asked, after: datetime, page: int) -> Iterator[Run]:
    """Yields the rows of the ledger that tell of occurrences after an instant. page: how many are read at first."""
    schedule = asked.schedule
    ends_at = None if schedule.off_times is None else off_times.ends_ahead(schedule.off_times, asked.now)
    until = ends_at or asked.now  # a pause with a set end gets its range a little earlier
    if after + SECOND <= until:
        where = asked.world.table, schedule.tenant, schedule.id
        yield from views.reaching(*where, after + SECOND)
        yield from views.planned_between(*where, after, until, page=page)


def _recorded(asked: Asked, after: datetime, rows: Iterator[Run]) -> Iterator[tuple[datetime, Run]]:
    """Yields the occurrences after an instant that the ledger has, each with its row; single runs before ranges."""
    ranges: Iterator[tuple[datetime, Run]] = iter(())
    upcoming_of_range: tuple[datetime, Run] | None = None
    for run in rows:
        if run.is_gone(asked.now):
            continue
        while upcoming_of_range is not None and upcoming_of_range[0] < run.planned_at:
            yield upcoming_of_range
            upcoming_of_range = next(ranges, None)
        if run.range_until is None:
            yield run.planned_at, run
            continue
        waiting = [] if upcoming_of_range is None else [upcoming_of_range]
        ranges = heapq.merge(chain(waiting, ranges), _of_range(asked, run, after), key=_planned_at)
        upcoming_of_range = next(ranges, None)
    if upcoming_of_range is not None:
        yield upcoming_of_range
        yield from ranges


def _of_range(asked: Asked, row: Run, after: datetime) -> Iterator[tuple[datetime, Run]]:
    for each in switched_off.of_range(row, past.timing_of(asked.world, asked.schedule, row), after):
        if not _is_planned_again(asked, each):
            yield each, row


def _is_planned_again(asked: Asked, instant: datetime) -> bool:
    """Returns whether an instant that a range stands for is still to come, and in the plan.

    A series that follows its actual starts leaves out steps of its old rhythm which may lie ahead. A change made before
    them can bring them back.
    """
    if instant <= asked.now:
        return False
    with suppress(Undecided), limited():
        return any(each.instant == instant for each in _owed(asked, instant - SECOND, 1))
    return False


def _planned_at(pair: tuple[datetime, Run]) -> datetime:
    return pair[0]
