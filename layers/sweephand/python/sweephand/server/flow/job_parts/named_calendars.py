"""The calendars that a job's schedules name, and the operations of the job's transaction that protect them.

A schedule stores a reference to the calendar version that it was planned with. A job that begins to name a calendar,
or is planned again, checks in its own transaction that no later version is in force. A changed version comes into force
before the calendar's users are replanned. So the second of the two always sees the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sweephand.base.errors import InvalidRequest, QuotaExceeded
from sweephand.domain.calendar import MOST_OF_A_JOB, Calendar
from sweephand.domain.job import Job
from sweephand.domain.schedule import OVER, Schedule
from sweephand.schedules.calendars import calendar_uses
from sweephand.schedules.calendars import calendars as mathematics
from sweephand.schedules.timing import load_or_never, packed_with_calendars
from sweephand.server.flow.job_parts.change_log import Step
from sweephand.server.flow.world import World
from sweephand.server.store.calendars import calendars as store
from sweephand.server.store.dynamo.conditional import Op

MEMBER = calendar_uses.FIELD


def book_of(world: World, tenant: str, timings: Iterable[Mapping[str, Any]]) -> dict[str, Calendar]:
    """Returns the calendars that timings name, by name, and loads their content. Unknown names are left out."""
    names = {name for timing in timings for name in named(timing)}
    if not names:
        return {}
    book = store.read_many(world.table, tenant, sorted(names))
    packed = [str(mathematics.Use(head.reference)) for head in book.values()]
    store.know(world.table, [(tenant, f'"cal":["{text}"]') for text in packed])
    return book


def references(book: Mapping[str, Calendar]) -> dict[str, str]:
    return {name: head.reference for name, head in book.items()}


def named(timing: Mapping[str, Any]) -> list[str]:
    """Returns the names in the member `calendars`; none if it cannot be read. The parser of the timing reports that."""
    try:
        return [use.name for use in calendar_uses.read(timing.get(MEMBER))]
    except InvalidRequest:
        return []


def names_of(schedules: Iterable[Schedule | None]) -> set[str]:
    return {name for schedule in schedules if schedule is not None for name in named(schedule.timing)}


def use_ops(
    world: World, job: Job, steps: Sequence[Step], stay: Sequence[Schedule], book: Mapping[str, Calendar]
) -> list[Op]:
    """Returns the operations of a job's transaction for its calendars. stay: the schedules as they will be.

    Raises QuotaExceeded if the schedules name too many calendars.
    """
    before, after = names_of(step.before for step in steps), names_of(stay)
    if len(after) > MOST_OF_A_JOB:
        raise QuotaExceeded(f"the schedules of a job name at most {MOST_OF_A_JOB} calendars")
    replanned = names_of(
        step.after for step in steps if step.after and (step.before is None or step.before.packed != step.after.packed)
    )
    ops: list[Op] = []
    for name in sorted(after - before):
        ops += store.take_ops(world.table, book[name], job)
    ops += [store.keep_op(world.table, book[name], job) for name in sorted(after & before & replanned) if name in book]
    for name in sorted(before - after):
        ops += store.leave_ops(world.table, name, job)
    return ops


def leave_ops(world: World, job: Job, schedules: Iterable[Schedule]) -> list[Op]:
    """Returns the operations of a deleted job's transaction for its calendars."""
    names = sorted(names_of(schedules))
    return [op for name in names for op in store.leave_ops(world.table, name, job)]


def moved(refused: Iterable[str]) -> bool:
    """Returns whether a transaction failed because a calendar was changed or deleted meanwhile."""
    return any(name.startswith(store.PART) for name in refused)


def recast(schedule: Schedule, book: Mapping[str, Calendar]) -> str:
    """Returns the packed timing with the current calendar versions.

    The timing of a schedule that is over, or cannot be read, stays as it is.
    """
    timing = load_or_never(schedule.packed)
    names = named(schedule.timing)
    if schedule.state in OVER or not timing.calendars or not all(name in book for name in names):
        return schedule.packed
    return packed_with_calendars(timing, [book[name].reference for name in names])


def with_current_calendars(world: World, schedules: Sequence[Schedule]) -> list[Schedule]:
    """Returns a tenant's schedules as responses show them (lookup.with_current_calendars)."""
    book = book_of(world, schedules[0].tenant, (schedule.timing for schedule in schedules))
    return [_with_current_calendars(schedule, book) for schedule in schedules]


def _with_current_calendars(schedule: Schedule, book: Mapping[str, Calendar]) -> Schedule:
    newer = recast(schedule, book)
    return schedule if newer == schedule.packed else replace(schedule, newer_packed=newer)
