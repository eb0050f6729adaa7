"""The calendars that a job's schedules name, and the parts of the job's transaction that hold them.

A schedule holds the reference of the version that it was planned by. A job that begins to name a calendar, or is
planned anew, checks in its own transaction that this version still holds; a change of a calendar looks for its users
after its own write. So whichever of the two comes second sees the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sweephand.domain.calendar import MOST_OF_A_JOB, Calendar
from sweephand.domain.schedule import OVER, Schedule
from sweephand.errors import InvalidRequest, QuotaExceeded
from sweephand.flow.job_parts.step import Step
from sweephand.flow.world import World
from sweephand.schedules.calendars import calendar_uses
from sweephand.schedules.calendars import calendars as mathematics
from sweephand.schedules.timing import load_or_never, with_calendars
from sweephand.store.calendars import calendars as store
from sweephand.store.dynamo.conditional import Op

MEMBER = calendar_uses.FIELD


def book_of(world: World, tenant: str, timings: Iterable[Mapping[str, Any]]) -> dict[str, Calendar]:
    """The calendars that timings name, by name, with their content known. A name without one is missing."""
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
    """The names in the member `calendars`; none where it cannot be read, which whoever parses the timing says."""
    try:
        return [use.name for use in calendar_uses.read(timing.get(MEMBER))]
    except InvalidRequest:
        return []


def names_of(schedules: Iterable[Schedule | None]) -> set[str]:
    return {name for schedule in schedules if schedule is not None for name in named(schedule.timing)}


def use_ops(
    world: World, job_id: str, steps: Sequence[Step], stay: Sequence[Schedule], book: Mapping[str, Calendar]
) -> list[Op]:
    """Parts of a job's transaction. steps: of its schedules; stay: as they shall be.

    Raises QuotaExceeded where they name too many.
    """
    before, after = names_of(step.before for step in steps), names_of(stay)
    if len(after) > MOST_OF_A_JOB:
        raise QuotaExceeded(f"the schedules of a job name at most {MOST_OF_A_JOB} calendars")
    anew = names_of(
        step.after for step in steps if step.after and (step.before is None or step.before.packed != step.after.packed)
    )
    tenant = next((schedule.tenant for schedule in (*stay, *(step.before for step in steps)) if schedule), "")
    ops: list[Op] = []
    for name in sorted(after - before):
        ops += store.take_ops(world.table, book[name], job_id)
    ops += [store.keep_op(world.table, book[name]) for name in sorted(after & before & anew) if name in book]
    for name in sorted(before - after):
        ops += store.leave_ops(world.table, tenant, name, job_id)
    return ops


def leave_ops(world: World, tenant: str, job_id: str, schedules: Iterable[Schedule]) -> list[Op]:
    """Of a job that is deleted."""
    names = sorted(names_of(schedules))
    return [op for name in names for op in store.leave_ops(world.table, tenant, name, job_id)]


def moved(refused: Iterable[str]) -> bool:
    """Whether a transaction failed because a calendar was changed, or deleted, meanwhile."""
    return any(name.startswith(store.PART) for name in refused)


def recast(schedule: Schedule, book: Mapping[str, Calendar]) -> str:
    """The packed timing by the versions that hold now. One that is over, or cannot be read, stays as it is."""
    timing = load_or_never(schedule.packed)
    names = named(schedule.timing)
    if schedule.state in OVER or not timing.calendars or not all(name in book for name in names):
        return schedule.packed
    return with_calendars(timing, [book[name].reference for name in names]).packed


def as_following(world: World, schedules: Sequence[Schedule]) -> list[Schedule]:
    """Returns a tenant's schedules as answers speak of them (lookup.as_following)."""
    book = book_of(world, schedules[0].tenant, (schedule.timing for schedule in schedules))
    return [_as_following(schedule, book) for schedule in schedules]


def _as_following(schedule: Schedule, book: Mapping[str, Calendar]) -> Schedule:
    newer = recast(schedule, book)
    return schedule if newer == schedule.packed else replace(schedule, newer_packed=newer)
