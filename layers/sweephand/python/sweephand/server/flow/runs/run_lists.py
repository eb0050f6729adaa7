"""Lists runs for users: of one job, of many jobs, or all that need attention.

A list of many jobs has two sources. Runs that failed or wait come from the index `attention`, whose keys name the
owner of each run. All others are merged from the jobs' ledgers, so that a success needs no index and costs no further
write. A page costs half a read unit for each job and each ledger that it opens, plus the rows that it reads.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import field
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeGuard

from sweephand.base.errors import InvalidRequest
from sweephand.base.ids import instant_ms_of
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job import Job
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import PAST_GRACE
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.jobs import jobs as store
from sweephand.server.store.runs.run_rows import NEEDS_ATTENTION
from sweephand.server.store.views import jobs
from sweephand.server.store.views import runs as views
from sweephand.server.store.views.runs import ALWAYS, Passed, RunMark, Span

with lazy():
    from sweephand.server.store.views import messages

ATTENTION_DAYS = 15
"""How far back from now, or from `until`, a list of runs that did not simply succeed reads without `from`."""
MOST_JOBS = 1_000
"""The most jobs whose runs one list merges: at most some 1,000 read units per page."""
RANGE_DAYS = 31
"""How far before `from` a list of many jobs looks for ranges that reach into its time; one of a single job: always."""
LOOKED_AT_MOST = 1_000
"""How many rows, or days without any, a page reads to find those of the query: at most about 1,000 read units."""
ROWS_AT_ONCE = 100


@dataclass(frozen=True)
class Wanted:
    """The filter of a list of runs. All members must match.

    Without a job, schedule, collection, tag or resource, a list contains all runs of the tenant that wait or did not
    succeed. With a state that the index does not cover, it contains the runs of all jobs.
    """

    job_id: str | None = None
    schedule_id: str | None = None
    state: str | None = None
    kind: str | None = None
    collection: str | None = None
    tag: str | None = None
    resource_id: str | None = None
    span: Span = ALWAYS

    @property
    def of_one(self) -> bool:
        """Returns whether one job or one schedule is requested."""
        return self.job_id is not None or self.schedule_id is not None

    @property
    def selects_jobs(self) -> bool:
        """Returns whether the runs are chosen by members of their jobs."""
        return any(each is not None for each in (self.collection, self.tag, self.resource_id))

    @property
    def indexed(self) -> bool:
        """Returns whether the index `attention` has every run of the requested state."""
        return self.state is not None and State(self.state) in NEEDS_ATTENTION

    def holds(self, run: Run | Passed, now: datetime) -> TypeGuard[Run]:
        """Returns whether a run belongs to the list. A run whose retention has ended does not."""
        return (
            isinstance(run, Run)
            and self.state in {None, run.state.value}
            and self.kind in {None, run.kind.value}
            and self.span.touches(run)
            and not run.is_gone(now)
        )


def page(
    rows: Iterable[Run | Passed], holds: Callable[[Run], bool], last: RunMark | None, limit: int
) -> tuple[list[Run], RunMark | None]:
    """Returns the first `limit` rows that belong to a list, and the mark from which to continue; None at its end.

    last: the mark after which the rows begin.
    """
    selected: list[Run] = []
    for looked, each in enumerate(rows):
        run = each if isinstance(each, Run) and holds(each) else None
        if (run is not None and len(selected) == limit) or looked == LOOKED_AT_MOST:
            return selected, last
        if run is not None:
            selected.append(run)
        last = views.mark_of(each)
    return selected, None


def check_members(wanted: Wanted) -> None:
    """Raises InvalidRequest for members that cannot be combined."""
    if wanted.of_one and wanted.selects_jobs:
        one = "jobId" if wanted.job_id is not None else "scheduleId"
        raise InvalidRequest(one, "selects one job; leave out `collection`, `tag` and `resourceId`, or leave this out")
    check_span(wanted.span)


def check_span(span: Span) -> None:
    """Raises InvalidRequest for limits without an instant between them."""
    if span.since is not None and span.until is not None and span.until < span.since:
        raise InvalidRequest("until", "is before `from`")


def check(world: World, tenant: str, wanted: Wanted) -> None:
    """Raises NotFound if the job does not exist or has no such schedule; InvalidRequest for too many jobs."""
    if wanted.job_id is not None:
        _owners(world, tenant, wanted.job_id, wanted.schedule_id)
    elif wanted.selects_jobs:
        job_ids_of(world, tenant, wanted)


def listed(
    world: World, tenant: str, wanted: Wanted, after: RunMark | None, page: int, now: datetime
) -> Iterator[Run | Passed]:
    """Yields runs after a mark, latest planned first. The caller leaves out those that `wanted` does not hold.

    page: how many rows a query reads. now: the time of the request, which may be long ago. Raises NotFound;
    InvalidRequest if more than MOST_JOBS jobs would have to be merged.
    """
    if wanted.job_id is not None:
        owners = _owners(world, tenant, wanted.job_id, wanted.schedule_id)
        yield from views.merged_runs(world.table, tenant, owners, after, page, wanted.span)
    elif wanted.schedule_id is not None:
        newest = views.runs_of(world.table, tenant, wanted.schedule_id, after, page, wanted.span)
        yield from _own(tenancy.began_at(world, tenant), newest)
    elif wanted.selects_jobs and wanted.indexed:
        owners = _ledgers(world, tenant, wanted)
        urgent = _attention(world, tenant, wanted.span, after, page, now, frozenset(owners))
        yield from _with_messages(world, tenant, wanted, after, page, now, urgent)
    elif wanted.selects_jobs or (wanted.state is not None and not wanted.indexed):
        owners = _ledgers(world, tenant, wanted)
        runs = views.merged_runs(world.table, tenant, owners, after, page, wanted.span, consistent=False)
        yield from _with_messages(world, tenant, wanted, after, page, now, runs)
    else:
        yield from _attention(world, tenant, wanted.span, after, page, now)


def _with_messages(
    world: World,
    tenant: str,
    wanted: Wanted,
    after: RunMark | None,
    page: int,
    now: datetime,
    runs: Iterator[Run | Passed],
) -> Iterator[Run | Passed]:
    """Yields the messages that the members of jobs would select as well, except those that wait for their instant."""
    until = now if wanted.span.until is None else min(now, wanted.span.until)
    span = Span(wanted.span.since, until)
    newest = messages.listed(world.table, tenant, wanted.collection, after, page, span)
    chosen = (each if _is_chosen(each, wanted) else Passed(views.mark_of(each)) for each in newest)
    yield from heapq.merge(runs, _own(tenancy.began_at(world, tenant), chosen), key=views.mark_of, reverse=True)


def _is_chosen(run: Run | Passed, wanted: Wanted) -> bool:
    if isinstance(run, Passed) or run.posted is None:
        return True
    fits = wanted.resource_id in {None, run.posted.resource_id} and (
        wanted.tag is None or wanted.tag in run.posted.tags
    )
    return fits and run.state is not State.SCHEDULED


def recent(
    world: World,
    tenant: str,
    span: Span,
    now: datetime,
    owners: Container[str] | None = None,
    *,
    reaching: bool = True,
) -> Iterator[Run | Passed]:
    """Yields runs that wait or did not succeed, latest planned first. May miss the latest writes, at half the cost.

    reaching: whether to end with ranges that were planned before the span and reach into it.
    """
    yield from _attention(world, tenant, span, None, ROWS_AT_ONCE, now, owners, consistent=False, reaching=reaching)


def job_ids_of(world: World, tenant: str, wanted: Wanted, most: int = MOST_JOBS) -> list[str]:
    """Returns the ids of the jobs that collection, tag and resource select; if none of them is given, of all jobs.

    Raises InvalidRequest for more than `most` jobs.
    """
    filters = jobs.Filters(wanted.collection, tag=wanted.tag, resource_id=wanted.resource_id)
    try:
        rows = list(islice(jobs.listed(world.table, tenant, filters, None, most + 1), most + 1))
    except jobs.TooMany:
        rows = None
    if rows is None or len(rows) > most:
        named = {"resourceId": wanted.resource_id, "tag": wanted.tag, "collection": wanted.collection}
        field = next((name for name, value in named.items() if value is not None), "state")
        raise InvalidRequest(
            field,
            f"selects more than {most:,} jobs; narrow the list by `collection`, `tag` or `resourceId`, or select"
            " one job by `jobId`",
        )
    return [row.job_id for row in rows]


def latest_of(world: World, tenant: str, job_ids: Iterable[str], span: Span, most: int) -> list[Run]:
    """Returns the latest planned runs of these jobs, at most `most`; none of deleted jobs."""
    owners = _ledgers_of_all(world, tenant, job_ids)
    newest = views.merged_runs(world.table, tenant, owners, None, most, span, consistent=False)
    now = world.clock.now()
    return list(islice((run for run in newest if not run.is_gone(now)), most))


def _ledgers(world: World, tenant: str, wanted: Wanted) -> list[str]:
    """Returns the owners of all ledgers of the selected jobs."""
    return _ledgers_of_all(world, tenant, job_ids_of(world, tenant, wanted))


def _ledgers_of_all(world: World, tenant: str, job_ids: Iterable[str]) -> list[str]:
    jobs_by_id = jobs.named_jobs(world.table, tenant, set(job_ids))
    return [owner for job in jobs_by_id.values() for owner in _ledgers_of(world, job)]


def _ledgers_of(world: World, job: Job) -> Iterator[str]:
    if job.own_runs:
        yield job.id
    if job.many_schedules:
        yield from (schedule.id for schedule in store.read_schedules(world.table, job.tenant, job.id))
    else:
        yield from job.schedule_ids


def _owners(world: World, tenant: str, job_id: str, schedule_id: str | None) -> list[str]:
    planned = lookup.find(world, tenant, job_id)
    if schedule_id is not None:
        return [lookup.find_schedule(planned, schedule_id).id]
    return [job_id, *(each.id for each in planned.schedules)]


def _attention(
    world: World,
    tenant: str,
    span: Span,
    after: RunMark | None,
    page: int,
    now: datetime,
    owners: Container[str] | None = None,
    *,
    consistent: bool = True,
    reaching: bool = True,
) -> Iterator[Run | Passed]:
    """Yields runs by the index `attention`. reaching: whether to end with ranges that reach into the span."""
    until = now + timedelta(days=1) if span.until is None else min(span.until, now + timedelta(days=1))
    until_ms = epoch_ms(until)
    if after is not None:
        until_ms = min(until_ms, instant_ms_of(after[0]))
    began = tenancy.began_at(world, tenant)
    oldest = from_ms(0) if began is None else began - timedelta(days=1)
    since = max(oldest, min(now, until) - timedelta(days=ATTENTION_DAYS) if span.since is None else span.since)
    newest = views.attention(
        world.table, tenant, since.date(), from_ms(until_ms), after, page, owners, consistent=consistent
    )
    held = views.held(world.table, tenant, from_ms(until_ms), after, page, owners, consistent=consistent)
    yield from _own(began, heapq.merge(newest, held, key=views.mark_of, reverse=True))
    if span.since is None or not reaching:
        return
    last = since.date() - timedelta(days=1)
    first = max(oldest.date(), last - timedelta(days=RANGE_DAYS))
    for run in views.ranges_before(world.table, tenant, first, last, owners, consistent=consistent):
        if (after is None or views.mark_of(run) < after) and span.touches(run):
            yield run


def _own(began: datetime | None, newest: Iterable[Run | Passed]) -> Iterator[Run | Passed]:
    """Yields the runs of the tenant that began then, not those of an earlier tenant with the same name.

    Ends at the first run that was planned before this tenant began.
    """
    for each in newest:
        if isinstance(each, Passed) or began is None or not each.is_of_former(began):
            yield each
        elif each.planned_at < began - PAST_GRACE:
            return


@dataclass
class JobNames:
    """The names of the jobs of runs, each read once; None for a deleted job."""

    world: World
    tenant: str
    known: dict[str, str | None] = field(default_factory=dict)

    def of(self, runs: Iterable[Run]) -> dict[str, str | None]:
        """Returns the name of each run's job by the job's id."""
        return self.by_id(run.job_id for run in runs)

    def by_id(self, job_ids: Iterable[str]) -> dict[str, str | None]:
        """Returns names by the jobs' ids."""
        asked = set(job_ids) - self.known.keys()
        if asked:
            named = jobs.named_jobs(self.world.table, self.tenant, asked)
            self.known |= {job_id: named[job_id].name if job_id in named else None for job_id in asked}
        return self.known
