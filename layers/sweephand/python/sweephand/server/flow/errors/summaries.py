"""Sums up open errors by what their jobs have in common: the job itself, its set, the target, the version.

Only the signature is stored with a group. Everything else is read from the jobs as they are now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import islice

from sweephand.base.records import dataclass
from sweephand.domain.failure import Group
from sweephand.domain.flow_keys.circuits import target_of
from sweephand.domain.job import ActionSpec, Job, by_owner
from sweephand.server import threads
from sweephand.server.flow.errors import failures
from sweephand.server.flow.errors.failures import OpenRuns
from sweephand.server.flow.world import World
from sweephand.server.store.views import jobs

MOST_GROUPS, COUNTED = 500, 100
"""Groups in one answer, and runs that it counts in each group: at most some 1,500 read units."""


class By(StrEnum):
    JOB = "job"
    JOB_SET = "jobSet"
    TARGET = "target"
    VERSION = "version"
    """The application of a task, with the version of its workers if the job names one."""


@dataclass(frozen=True)
class Summary:
    """Open errors that have one value in common. value: None for jobs without a value and for deleted jobs.

    name: the name of the job, if summed up by JOB. more: whether there may be other runs, not counted. groups: in the
    order of their last failures, the latest first.
    """

    value: str | None
    name: str | None
    count: int
    more: bool
    jobs: int
    first_at: datetime
    last_at: datetime
    groups: Sequence[Group]


def summed(world: World, tenant: str, groups: Iterable[Group], by: By) -> tuple[list[Summary], bool]:
    """Returns the sums, the largest first, and whether they cover all groups. groups: the latest failure first."""
    looked = (each for each in groups if each.closed_through is None or each.closed_through < each.last_at)
    some = list(islice(looked, MOST_GROUPS + 1))
    counted = threads.at_once(lambda group: failures.open_runs(world, group, COUNTED), some[:MOST_GROUPS])
    still_open = [(group, runs) for group, runs in zip(some, counted, strict=False) if runs.count]
    by_id = jobs.named_jobs(world.table, tenant, {group.signature.job_id for group, _ in still_open})
    of_value: Mapping[str | None, list[tuple[Group, OpenRuns]]] = defaultdict(list)
    for group, runs in still_open:
        of_value[value_of(group, by_id.get(group.signature.job_id), by)].append((group, runs))
    sums = [_sum(value, members, by, by_id) for value, members in of_value.items()]
    return sorted(sums, key=lambda each: (-each.count, each.value or "")), len(some) <= MOST_GROUPS


def _sum(value: str | None, members: Sequence[tuple[Group, OpenRuns]], by: By, by_id: Mapping[str, Job]) -> Summary:
    groups = [group for group, _ in members]
    job = by_id.get(groups[0].signature.job_id)
    name = job.name if job is not None else groups[0].job_name
    return Summary(
        value=value,
        name=name if by is By.JOB else None,
        count=sum(runs.count for _, runs in members),
        more=any(runs.more for _, runs in members),
        jobs=len({group.signature.job_id for group in groups}),
        first_at=min(group.first_at for group in groups),
        last_at=max(group.last_at for group in groups),
        groups=groups,
    )


def value_of(group: Group, job: Job | None, by: By) -> str | None:
    """Returns what a group has in common with others. job: the job as it is now; None if it was deleted."""
    if by is By.JOB:
        return group.signature.shown_job_id
    if job is None:
        return group.signature.target if by is By.TARGET else None
    if by is By.JOB_SET:
        return job.job_set
    action = by_owner(job.action, job.error_action, job.hooks).get(group.signature.action)
    if action is None:
        return None
    return target_of(action) if by is By.TARGET else _version_of(action)


def _version_of(action: ActionSpec) -> str | None:
    application = action.params.get("application")
    return None if application is None else " ".join(filter(None, (application, action.params.get("version"))))
