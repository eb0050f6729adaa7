"""Past and planned occurrences of a job, for the native API."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain, islice, takewhile
from typing import Any, NamedTuple

from sweephand.domain.instants import epoch_ms, epoch_s, text
from sweephand.domain.job import Job
from sweephand.domain.jobs import switched_off
from sweephand.domain.occurrences import generations, off_times, upcoming
from sweephand.domain.occurrences.generations import Generation
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.errors import InvalidRequest
from sweephand.facades.http import Answer
from sweephand.facades.native.context import Context
from sweephand.facades.native.jobs.answers import as_held
from sweephand.facades.native.members.schedule_members import moved_body
from sweephand.facades.native.query_instants import instant
from sweephand.flow.jobs import lookup, past
from sweephand.flow.jobs.schedule_timing import LAST
from sweephand.flow.retention import RUN_DAYS
from sweephand.ids import is_uuid, run_uuid
from sweephand.schedules import rule
from sweephand.schedules.explain.explain import left_out
from sweephand.schedules.rule import MovedBy, Undecided
from sweephand.schedules.text.instants import parse_instant
from sweephand.schedules.timing import Timing, load_or_never
from sweephand.store.views import runs as views

KEPT = timedelta(days=RUN_DAYS)
OF_A_SCHEDULE = 1_000
"""Units of work for each schedule of a job. One whose occurrences are easy to find takes some 400."""
SECOND = timedelta(seconds=1)


def occurrences(ctx: Context) -> Answer:
    """Lists the instants of a job's schedules from `from` (now) to `until`, each with the state of its run, if any.

    Cost: none for occurrences ahead. If `from` has passed, for each schedule the rows of the page, and a few more
    before `from` to find a range that reaches it.
    """
    limit, mark = ctx.page(_is_instant, is_uuid)
    planned, _ = as_held(ctx, lookup.find(ctx.world, ctx.tenant, ctx.id("job")))
    schedules = planned.schedules
    if "scheduleId" in ctx.query:
        schedules = (lookup.find_schedule(planned, ctx.query["scheduleId"]),)
    begin, until = instant(ctx, "from") or ctx.now, instant(ctx, "until") or LAST
    if until < begin:
        raise InvalidRequest("until", "is before `from`", code="INVALID_QUERY")
    after = parse_instant(mark[0], "cursor") if mark else _whole_second(begin)
    found = heapq.merge(
        *(_of(ctx, planned.job, each, after - SECOND, until, limit + 2) for each in schedules), key=_order
    )
    later = (each for each in found if (_order(each) > (after, mark[1]) if mark else each.instant >= begin))
    page = _bounded(takewhile(lambda each: each.instant <= until, later), limit + 1, len(schedules))
    last = page[limit - 1] if len(page) > limit else None
    return Answer(
        200,
        {
            "items": [_body(ctx, each) for each in page[:limit]],
            "nextCursor": ctx.cursor(text(last.instant), last.schedule.id) if last else None,
            "searchedUntil": text(last.instant if last else until),
        },
    )


def _bounded(planned: Iterable[_Planned], limit: int, schedules: int) -> list[_Planned]:
    """Returns the first occurrences; refuses a question that takes too long to compute."""
    try:
        with rule.limited(4 * rule.MOST + OF_A_SCHEDULE * schedules):
            page = list(islice(planned, limit))
            if rule.left() >= rule.MOST:
                return page
    except Undecided:
        pass
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
    """An occurrence. run: its row, or that of the range which stands for it. skipped: why it will have such a row.

    calendar: the calendar that leaves it out.
    """

    instant: datetime
    schedule: Schedule
    run: Run | None = None
    moved_by: MovedBy | None = None
    skipped: Reason | None = None
    calendar: str | None = None


def _order(planned: _Planned) -> tuple[datetime, str]:
    return planned.instant, planned.schedule.id


def _of(ctx: Context, job: Job, schedule: Schedule, after: datetime, until: datetime, limit: int) -> Iterator[_Planned]:
    """Yields a schedule's occurrences after an instant, up to `limit` planned ones.

    They come from the ledger, from the plan, from the times for which the schedule is off, and from the calendars that
    leave them out. The first of these sources that has an instant decides about it.
    """
    timing = load_or_never(schedule.packed)
    begun = generations.began(schedule)
    recorded = (
        _Planned(at, schedule, run, _moved_by(timing, at, begun)) for at, run in _recorded(ctx, schedule, after)
    )
    owed = (
        _Planned(each.instant, schedule, None, each.moved_by, _skipped(job, schedule, each.instant))
        for each in upcoming.ahead(schedule, timing, max(after, _complete_from(ctx, schedule)), limit)
    )
    due = (_Planned(at, schedule, None, None, _skipped(job, schedule, at)) for at in schedule.still_due if at > after)
    plans = _plans_before(ctx, schedule, after)
    before = heapq.merge(*(_of_plan(ctx, job, schedule, plan, max(after, ctx.now - KEPT)) for plan in plans), key=_at)
    off = (
        _Planned(at, schedule, None, _moved_by(timing, at, begun), skipped=each.reason)
        for each in switched_off.times_off(job, schedule)
        for at in each.instants(timing, after, until)
    )
    left_out_until = until if schedule.newer_packed is None else min(until, ctx.now)
    gone = _left_out(schedule, timing, max(after, begun), left_out_until)
    seen = None
    for each in heapq.merge(recorded, owed, due, before, off, gone, key=_at):
        if each.instant != seen:
            yield each
        seen = each.instant


def _at(planned: _Planned) -> datetime:
    return planned.instant


def _skipped(job: Job, schedule: Schedule, instant: datetime) -> Reason | None:
    """Returns why an announced occurrence will be skipped: an earlier plan had sent it, and was switched off."""
    if instant not in schedule.still_due:
        return None
    return switched_off.reason_of_pending(job, schedule, instant, schedule.generation - 1)


def _plans_before(ctx: Context, schedule: Schedule, after: datetime) -> list[Generation]:
    """Returns the ended plans that may have occurrences which nothing has begun yet."""
    return past.plans_since(ctx.world, schedule, after) if after + SECOND <= ctx.now else []


def _of_plan(ctx: Context, job: Job, schedule: Schedule, plan: Generation, after: datetime) -> Iterator[_Planned]:
    """Yields the past instants of an ended plan, but none that follow from actual starts: only the ledger knows these.

    The schedule's row names those that are still ahead.
    """
    timing = plan.timing()
    until = min(plan.through or ctx.now, ctx.now)
    instants: Iterable[datetime] = [plan.first] if plan.first is not None and after < plan.first <= until else []
    if timing.actual_start_interval_s is None:
        by_rule = switched_off.by_rule(timing, max(after, plan.began, plan.first or after), until)
        instants = chain(instants, by_rule)
    for at in instants:
        yield _Planned(at, schedule, None, None, switched_off.reason_of_pending(job, schedule, at, plan.number))


def _recorded(ctx: Context, schedule: Schedule, after: datetime) -> Iterator[tuple[datetime, Run]]:
    """Yields the occurrences after an instant that the ledger has, each with its row; single runs before ranges."""
    ends_at = None if schedule.off_times is None else off_times.ends_ahead(schedule.off_times, ctx.now)
    until = ends_at or ctx.now  # a pause with a set end gets its range a little earlier
    if after + SECOND > until:
        return
    where = ctx.world.table, ctx.tenant, schedule.id
    ranges: Iterator[tuple[datetime, Run]] = iter(())
    upcoming_of_range: tuple[datetime, Run] | None = None
    for run in chain(views.reaching(*where, after + SECOND), views.planned_between(*where, after, until)):
        if run.is_gone(ctx.now):
            continue
        while upcoming_of_range is not None and upcoming_of_range[0] < run.planned_at:
            yield upcoming_of_range
            upcoming_of_range = next(ranges, None)
        if run.range_until is None:
            yield run.planned_at, run
            continue
        waiting = [] if upcoming_of_range is None else [upcoming_of_range]
        ranges = heapq.merge(chain(waiting, ranges), _of_range(ctx, schedule, run, after), key=_instant)
        upcoming_of_range = next(ranges, None)
    if upcoming_of_range is not None:
        yield upcoming_of_range
        yield from ranges


def _of_range(ctx: Context, schedule: Schedule, row: Run, after: datetime) -> Iterator[tuple[datetime, Run]]:
    for each in switched_off.of_range(row, past.timing_of(ctx.world, schedule, row), after):
        yield each, row


def _instant(pair: tuple[datetime, Run]) -> datetime:
    return pair[0]


def _complete_from(ctx: Context, schedule: Schedule) -> datetime:
    """Returns the instant after which every occurrence must have a row. The retention has deleted earlier ones."""
    gone = ctx.now - KEPT
    return gone if schedule.next_run_at is None else min(gone, schedule.next_run_at - SECOND)


def _left_out(schedule: Schedule, timing: Timing, after: datetime, until: datetime) -> Iterator[_Planned]:
    """Yields the occurrences that calendars leave out. They are computed from the rule, and not stored."""
    if schedule.state is not ScheduleState.ACTIVE or schedule.held_from is not None:
        return
    if not schedule.timing.get("calendars"):
        return  # no calendar leaves anything out, so there is nothing to count
    if timing.count is not None and upcoming.left_after(schedule, timing, after) == 0:
        return
    for each in left_out(timing, after, until):
        yield _Planned(each.instant, schedule, calendar=schedule.timing["calendars"][each.calendar]["name"])


def _moved_by(timing: Timing, at: datetime, begun: datetime) -> MovedBy | None:
    with suppress(Undecided):
        if at > begun and timing.rule.last_until(at) == at:
            return timing.rule.moved_by(epoch_s(at))
    return None


def _is_instant(text: str) -> bool:
    try:
        parse_instant(text, "cursor")
    except InvalidRequest:
        return False
    return True


def _body(ctx: Context, planned: _Planned) -> dict[str, Any]:
    state, reason, run_id = _outcome(ctx, planned)
    return {
        "scheduleId": planned.schedule.id,
        "plannedAt": text(planned.instant),
        "state": state.value,
        "reason": None if reason is None else reason.value,
        "runId": run_id,
        "movedBy": moved_body(planned.moved_by),
        "calendar": planned.calendar,
    }


def _outcome(ctx: Context, planned: _Planned) -> tuple[State, Reason | None, str | None]:
    """Returns state, reason and the id of the row. Only an occurrence that is still to run has an id before its row."""
    if planned.run is not None:
        return planned.run.state, planned.run.reason, planned.run.id
    if planned.calendar is not None:
        return State.SKIPPED, Reason.CALENDAR, None
    if planned.skipped is not None:
        return State.SKIPPED, planned.skipped, None
    uuid = run_uuid(ctx.tenant, planned.schedule.id, epoch_ms(planned.instant), Kind.SCHEDULED.value)
    return State.SCHEDULED, None, f"{planned.schedule.id}_{uuid}"
