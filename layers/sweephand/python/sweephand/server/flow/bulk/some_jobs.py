"""Acts on the jobs that match filters, one after the other, each as a caller would: a few at once, many in pages.

A job that was created after the request, or that was changed as its turn came, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import Enum, auto
from itertools import islice
from typing import Any

from sweephand.base.records import dataclass
from sweephand.domain.job import Job, JobState
from sweephand.server.flow.world import World
from sweephand.server.store.views import jobs as lists
from sweephand.server.store.views.jobs import Filters

AT_ONCE = 100
"""More jobs than this become an operation."""
JOBS = 25
PAGE_S = 10.0
"""A page begins no further job after this long: a job of 1,000 schedules takes some seconds."""
FILTERS = {
    "collection": "collection",
    "state": "state",
    "tag": "tag",
    "resourceId": "resource_id",
    "name": "name",
    "search": "search",
}
"""The fields of Filters by the members of the API."""


class Done(Enum):
    """The result for one job."""

    DONE = auto()
    KEPT = auto()
    """The job had changed, and may no longer match."""
    REFUSED = auto()


@dataclass(frozen=True)
class Some:
    """The result of a page. place: the place of the last job examined; None if no job is left."""

    done: int
    kept: int
    refused: int
    place: str | None


Act = Callable[[Job], Done]


def act_on(
    world: World, tenant: str, filters: Filters, after: str | None, asked_at: datetime, most: int, act: Act
) -> Some:
    """Acts on up to `most` jobs after the place `after`. Raises lists.TooMany."""
    deadline = world.clock.monotonic() + PAGE_S
    rows = list(islice(lists.listed(world.table, tenant, filters, after, most + 1), most + 1))
    with_schedules = lists.jobs_with_schedules(world.table, tenant, [row.job_id for row in rows[:most]])
    fit = {
        job.id: job
        for job, schedules in with_schedules
        if filters.hold_now(job, schedules) and job.created_at <= asked_at
    }
    results: list[Done] = []
    for row in rows[:most]:
        job = fit.get(row.job_id)
        results.append(Done.KEPT if job is None else act(job))
        if world.clock.monotonic() > deadline and row is not rows[-1]:
            return _some(results, row.place)
    return _some(results, rows[most - 1].place if len(rows) > most else None)


def _some(results: list[Done], place: str | None) -> Some:
    return Some(results.count(Done.DONE), results.count(Done.KEPT), results.count(Done.REFUSED), place)


def params_of(filters: Filters) -> dict[str, str]:
    """Returns the filters in the members of the API."""
    wanted = {member: str(value) for member, name in FILTERS.items() if (value := getattr(filters, name)) is not None}
    return wanted | ({"tag": ""} if filters.untagged else {})


def filters_of(params: Mapping[str, Any]) -> Filters:
    """Reads the filters among the members of a request."""
    members: dict[str, Any] = {name: params[member] for member, name in FILTERS.items() if member in params}
    members.pop("tag", None)
    state = params.get("state")
    return replace(lists.by_tag(params.get("tag")), **members | {"state": None if state is None else JobState(state)})
