"""The load ahead: how many runs each quarter of an hour will have in the next 24 hours, by the rules of all jobs.

No index contains the load, because each row knows only its next instant. It is computed from all schedules and kept in
the memory of the process. Later, only jobs that have changed are read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from threading import Lock

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.job import Job
from sweephand.domain.jobs import job_state
from sweephand.domain.occurrences import lanes
from sweephand.domain.schedule import Schedule
from sweephand.schedules.timing import load_or_never
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.world import World
from sweephand.server.store.views import holds, jobs
from sweephand.server.store.views.jobs import Known

SLOT_S, SLOTS = 900, 96
MOST_JOBS = 10_000
"""The most jobs that are counted: at most some 10,000 read units, once."""
MOST_KEPT = 20_000
"""Jobs that a process keeps, of all tenants: some 60 MB."""
FRESH = timedelta(minutes=15)

Planned = tuple[Job, Sequence[Schedule]]


@dataclass(frozen=True)
class Kept:
    """The load as it was computed. known, planned: the jobs that were read, by id.

    jobs, left_out: how many it counts, and how many it does not, because they are too many or too hard to compute.
    """

    computed_at: datetime
    begin: datetime
    slots: tuple[int, ...]
    known: dict[str, Known]
    planned: dict[str, Planned]
    jobs: int
    left_out: int


class Loads(dict[str, Kept]):
    """The loads that this process has computed, by tenant."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = Lock()


def load_ahead(world: World, tenant: str, now: datetime) -> Kept:
    """Returns the load from memory while it is fresh; computes it again otherwise."""
    loads = world.memory.of(Loads)
    before = loads.get(tenant)
    if before is not None and now - before.computed_at < FRESH:
        return before
    load = _computed(world, tenant, before, now)
    with loads.lock:
        loads.pop(tenant, None)
        loads[tenant] = load
        while len(loads) > 1 and sum(len(each.planned) for each in loads.values()) > MOST_KEPT:
            del loads[next(iter(loads))]
    return load


def _computed(world: World, tenant: str, before: Kept | None, now: datetime) -> Kept:
    some, total = jobs.known(world.table, tenant, MOST_JOBS)
    known = {each.job_id: each for each in some[:MOST_JOBS]}
    planned = {} if before is None else {id_: before.planned[id_] for id_ in _unchanged(before, known)}
    changed = [id_ for id_ in known if id_ not in planned]
    planned |= {job.id: (job, own) for job, own in jobs.jobs_with_schedules(world.table, tenant, changed)}
    begin = from_s(epoch_s(now) // SLOT_S * SLOT_S)
    slots, hard = _sum(world, tenant, list(planned.values()), begin, now)
    return Kept(now, begin, slots, known, planned, len(planned) - hard, max(0, total - len(known)) + hard)


def _unchanged(before: Kept, known: dict[str, Known]) -> list[str]:
    """Returns the jobs whose schedules are as they were read: their next instants follow from the rule alone."""
    return [
        id_
        for id_, each in known.items()
        if before.known.get(id_) == each
        and id_ in before.planned
        and all(lanes.by_rule_alone(own, load_or_never(own.packed)) for own in before.planned[id_][1])
    ]


def _sum(
    world: World, tenant: str, planned: list[Planned], begin: datetime, now: datetime
) -> tuple[tuple[int, ...], int]:
    """Returns the sum of all jobs, and how many are not in it because they take too long to compute."""
    held = holds.of_jobs(world.table, tenant, [job for job, _ in planned]).held
    current = iter(lookup.with_current_calendars(world, [each for _, own in planned for each in own]))
    total, hard = [0] * SLOTS, 0
    for job, own in planned:
        shown = [job_state.as_shown(each, job, held.get(job.id), now) for each in islice(current, len(own))]
        counted = [lanes.slots(each, load_or_never(each.packed), begin, SLOT_S, SLOTS) for each in shown]
        if None in counted:
            hard += 1
            continue
        total = [sum(each) for each in zip(total, *filter(None, counted), strict=True)]
    return tuple(total), hard
