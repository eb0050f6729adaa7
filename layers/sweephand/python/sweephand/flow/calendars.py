"""Calendars: create, change and delete them, and what a job's transaction says of those that its schedules name.

A schedule holds the reference of the version that it was planned by. A job that begins to name a calendar, or is
planned anew, checks in its own transaction that this version still holds; a change of a calendar looks for its users
after its own write. So whichever of the two comes second sees the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from sweephand.domain.calendar import MOST_OF_A_JOB, Calendar, Version, reference_of
from sweephand.domain.schedule import OVER, Schedule
from sweephand.errors import Conflict, InvalidRequest, NotFound, PreconditionFailed, QuotaExceeded, Unavailable
from sweephand.flow.steps import Step
from sweephand.flow.world import World
from sweephand.schedules import calendars as mathematics
from sweephand.schedules import uses
from sweephand.schedules.timing import load_or_never, with_calendars
from sweephand.store import calendars as store
from sweephand.store import tenants
from sweephand.store.conditional import Cancelled, Op
from sweephand.store.views import calendars as views

TRIES = 5
MEMBER = uses.FIELD


def create(world: World, wanted: Calendar, actor: str | None) -> Calendar:
    """wanted: its name, content and facts. Raises Conflict(NAME_TAKEN)."""
    now = _ms(world.clock.now())
    calendar = replace(wanted, created_at=now, modified_at=now, version=1)
    calendar = replace(calendar, reference=reference_of(calendar))
    stays = tenants.stays_op(world.table, wanted.tenant)
    done = world.table.transact([*store.create_ops(world.table, calendar, actor), stays])
    if isinstance(done, Cancelled):
        if "tenant" in done.refused:
            raise Conflict("the tenant is being deleted, or is not there")
        there = store.read(world.table, wanted.tenant, wanted.name)
        if there is None or there.reference != calendar.reference:
            raise Conflict("a calendar of this name exists", code="NAME_TAKEN")
    return calendar


def find(world: World, tenant: str, name: str) -> Calendar:
    """With its content. Raises NotFound."""
    head = find_head(world, tenant, name)
    return replace(head, content=content_of(world, tenant, head.reference))


def find_version(world: World, tenant: str, name: str, number: int) -> tuple[Version, Mapping[str, Any]]:
    """With its content. Raises NotFound."""
    version = store.read_version(world.table, tenant, name, number)
    if version is None:
        raise NotFound("no such version")
    return version, content_of(world, tenant, version.reference)


def find_head(world: World, tenant: str, name: str) -> Calendar:
    head = store.read(world.table, tenant, name)
    if head is None:
        raise NotFound("no such calendar")
    return head


def content_of(world: World, tenant: str, reference: str) -> Mapping[str, Any]:
    content = store.read_content(world.table, tenant, reference)
    if content is None:
        raise NotFound("no such calendar")  # deleted since its head was read
    return content


def change(
    world: World, tenant: str, name: str, edit: Callable[[Calendar], Calendar], if_match: int | None, actor: str | None
) -> Calendar:
    """The next version; its users follow. What is asked for as it is changes nothing."""
    from sweephand.flow import replanning  # noqa: PLC0415 - the executor's, but for its beginning

    for _ in range(TRIES):
        before = find(world, tenant, name)
        if if_match is not None and before.version != if_match:
            raise PreconditionFailed(f"the calendar is at version {before.version}")
        wanted = edit(before)
        if (wanted.content, wanted.description) == (before.content, before.description):
            return before
        after = replace(wanted, version=before.version + 1, modified_at=_ms(world.clock.now()))
        if wanted.content != before.content:
            after = replace(after, reference=reference_of(after), replanning=True)
        ops = store.change_ops(world.table, before, after, actor, world.settings.shards)
        if not isinstance(world.table.transact(ops), Cancelled) or _is_written(world, after):
            if after.reference != before.reference:
                replanning.begin(world, tenant, name)
            return after
    raise Unavailable("the calendar was changed by others all the time")


def _is_written(world: World, after: Calendar) -> bool:
    """The answer to this very write may have been lost."""
    there = store.read_version(world.table, after.tenant, after.name, after.version)
    return there is not None and (there.reference, there.at) == (after.reference, after.modified_at)


def delete(world: World, tenant: str, name: str, if_match: int | None) -> None:
    """Raises Conflict while schedules name it."""
    before = find_head(world, tenant, name)
    if if_match is not None and before.version != if_match:
        raise PreconditionFailed(f"the calendar is at version {before.version}")
    now = world.clock.now()
    if not before.users:
        for version in views.versions(world.table, tenant, name, before.version, 25):
            store.forget_version(world.table, before, version, now)
        done = world.table.transact(store.delete_ops(world.table, before, now))
        if not isinstance(done, Cancelled) or store.read(world.table, tenant, name) is None:
            return
    some = list(islice(store.users(world.table, tenant, name, None, 3), 3))
    raise Conflict(f"schedules name it, of the jobs {', '.join(some)}" if some else "it was changed meanwhile")


# What a job's schedules name


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
        return [use.name for use in uses.read(timing.get(MEMBER))]
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
    """Returns a tenant's schedules as answers speak of them (plan.as_following)."""
    book = book_of(world, schedules[0].tenant, (schedule.timing for schedule in schedules))
    return [_as_following(schedule, book) for schedule in schedules]


def _as_following(schedule: Schedule, book: Mapping[str, Calendar]) -> Schedule:
    newer = recast(schedule, book)
    return schedule if newer == schedule.packed else replace(schedule, newer_packed=newer)


def _ms(instant: datetime) -> datetime:
    """Whole milliseconds, as the table keeps them."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
