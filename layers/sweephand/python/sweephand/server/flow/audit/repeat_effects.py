"""Repeats the effects of finished runs on request, for a queue that was purged before the effects took place.

It sends the pointers of the runs again. An executor that gets the pointer of a finished run only repeats its effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice

from sweephand.base.errors import Unavailable
from sweephand.base.records import dataclass
from sweephand.domain.job import Job
from sweephand.domain.run import Run
from sweephand.domain.runs import run_action
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import ledger
from sweephand.server.store.views import jobs as lists
from sweephand.server.store.views import runs as views

DEADLINE_S = 600.0
PAGE = 100
AT_ONCE = 100


@dataclass
class Repeated:
    """The progress. jobs: how many were read. runs: how many finished runs were sent again. rest: where to continue."""

    jobs: int = 0
    runs: int = 0
    rest: str | None = None


@dataclass(frozen=True)
class Range:
    """Planned instants from `since` to `until`, both included, of one job or of all jobs after the mark `after`."""

    tenant: str
    since: datetime
    until: datetime
    job: str | None = None
    after: str | None = None

    @classmethod
    def read(cls, members: Mapping[str, str]) -> Range:
        """Reads tenant, since, until (RFC 3339 with an offset), and job or from. Raises ValueError for others."""
        left = dict(members)
        try:
            tenant, since, until = left.pop("tenant"), left.pop("since"), left.pop("until")
        except KeyError as missing:
            raise ValueError(f"{missing.args[0]} is missing") from missing
        range_ = cls(tenant, _instant(since), _instant(until), left.pop("job", None), left.pop("from", None))
        if left:
            raise ValueError(f"unknown members: {', '.join(sorted(left))}")
        return range_


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text} has no offset: write one, such as Z or +01:00")
    return instant


def repeat(world: World, members: Mapping[str, str]) -> Repeated:
    """Sends the pointer of every finished run of the range, which repeats its effects. May be called again.

    It reads at least one job, so that calls that continue come to an end. members: the input of Range.read. Raises
    ValueError as it does, Unavailable if a message was not sent.
    """
    wanted = Range.read(members)
    deadline = world.clock.monotonic() + DEADLINE_S
    done = Repeated()
    after = wanted.after
    for place, job in _jobs(world, wanted):
        if done.jobs and world.clock.monotonic() > deadline:
            done.rest = after
            break
        pointers = (_pointer(world, job, run) for run in _finished(world, wanted, job))
        while batch := list(islice(pointers, AT_ONCE)):
            if world.queue.send(batch):
                raise Unavailable("the run queue did not accept a message")
            done.runs += len(batch)
        done.jobs += 1
        after = place
    world.journal.info("effects repeated", tenant=wanted.tenant, rows=done.runs)
    return done


def _pointer(world: World, job: Job, run: Run) -> Delivery:
    lane = run_action.lane_of(run_action.action_of(job, run.kind), job.tenant)
    return Delivery(ledger.pointer_to(run), world.clock.now(), lane.executors)


def _jobs(world: World, wanted: Range) -> Iterator[tuple[str, Job]]:
    """Yields each job with its place in the list of all jobs."""
    places: Iterator[tuple[str, str]] = iter([("", wanted.job or "")])
    if wanted.job is None:
        rows = lists.listed(world.table, wanted.tenant, lists.ALL, wanted.after, PAGE)
        places = ((row.place, row.job_id) for row in rows)
    for place, job_id in places:
        job = jobs.read_job(world.table, wanted.tenant, job_id)
        if job is not None:
            yield place, job


def _finished(world: World, wanted: Range, job: Job) -> Iterator[Run]:
    now = world.clock.now()
    schedules = jobs.read_schedules(world.table, job.tenant, job.id)
    for owner in [job.id, *(schedule.id for schedule in schedules)]:
        for run in views.between(world.table, job.tenant, owner, wanted.since, wanted.until):
            if run.finished and run.range_count is None and not run.is_gone(now):
                yield run
