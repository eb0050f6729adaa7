"""Collections and applications that have metrics of their own, by the parameter MetricsOf. Pure."""

from __future__ import annotations

from functools import cache

from sweephand.base.records import dataclass
from sweephand.domain.application import QUEUE
from sweephand.domain.job import Job
from sweephand.domain.run import Run
from sweephand.domain.runs.run_action import action_of

COLLECTION, APPLICATION = "collection", "application"
_APPLICATION = "app:"


@dataclass(frozen=True)
class Part:
    """A collection or an application of a tenant. kind: the name of its dimension. value: `tenant/name`."""

    kind: str
    value: str

    @property
    def tenant(self) -> str:
        return self.value.partition("/")[0]

    @property
    def name(self) -> str:
        return self.value.partition("/")[2]


@cache
def parts(listed: str) -> frozenset[Part]:
    """Reads the parameter: `tenant/collection` and `tenant/app:application`, separated by commas."""
    return frozenset(map(_part, filter(None, listed.split(","))))


def _part(text: str) -> Part:
    tenant, _, name = text.partition("/")
    kind = APPLICATION if name.startswith(_APPLICATION) else COLLECTION
    return Part(kind, f"{tenant}/{name.removeprefix(_APPLICATION)}")


def parts_of(listed: str, run: Run, job: Job) -> frozenset[Part]:
    """Returns those of the listed parts to which a run belongs."""
    action = action_of(job, run.kind)
    own = {Part(COLLECTION, f"{job.tenant}/{job.collection}")}
    if action.kind == QUEUE:
        own.add(Part(APPLICATION, f"{job.tenant}/{action.params['application']}"))
    return parts(listed) & own
