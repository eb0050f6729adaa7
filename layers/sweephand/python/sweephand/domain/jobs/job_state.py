"""The state of a job, from its owner's switches and its schedules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from sweephand.base.records import dataclass
from sweephand.domain.instants import up_to_second
from sweephand.domain.job import HOOK_KINDS, Job, JobState
from sweephand.domain.run import Reason
from sweephand.domain.schedule import LIVE, OVER, Schedule, ScheduleState, StateReason


def ended_state(schedules: Sequence[Schedule]) -> JobState | None:
    """Returns the final state of a job whose schedules are all over: FAULTED if one of them is, else COMPLETED.

    Returns None for any other job.
    """
    if not schedules or any(each.state not in OVER for each in schedules):
        return None
    return JobState.FAULTED if any(each.state is ScheduleState.FAULTED for each in schedules) else JobState.COMPLETED


def is_final(job: Job, schedules: Sequence[Schedule]) -> bool:
    """Returns True if the job has ended for good: it can be read and deleted, but not changed or run.

    Its facade or its owner chooses this with the policy `afterEnd`.
    """
    return job.policies.get("afterEnd") == "final" and ended_state(schedules) is not None


def state_of(*, active: bool, paused: bool, ended: JobState | None) -> JobState:
    """Returns the state of a job. ended: see ended_state. Without schedules, the owner's switches decide."""
    if ended is not None:
        return ended
    if not active:
        return JobState.INACTIVE
    return JobState.PAUSED if paused else JobState.ACTIVE


def wanted_state(job: Job, active: bool) -> tuple[ScheduleState, StateReason | None]:
    """Returns the state of a schedule with future occurrences, from its switches and its job's."""
    if not active:
        return ScheduleState.INACTIVE, StateReason.BY_USER
    if not job.active:
        return ScheduleState.INACTIVE, StateReason.JOB_INACTIVE
    if job.pause is not None:
        return ScheduleState.PAUSED, StateReason.BY_USER
    return ScheduleState.ACTIVE, None


OFF = {ScheduleState.PAUSED: Reason.PAUSED, ScheduleState.INACTIVE: Reason.DISABLED}
"""The states in which occurrences that fall due are skipped, and with which reason."""


class HeldBy(StrEnum):
    """The kind of holder. A disabled tenant or collection skips due occurrences; a paused flow key makes them wait."""

    TENANT = "tenant"
    COLLECTION = "collection"
    FLOW_KEY = "flowKey"


@dataclass(frozen=True)
class Held:
    """The tenant, collection or flow key that holds a job. since: when it was disabled or paused."""

    by: HeldBy
    name: str
    since: datetime

    @property
    def skips(self) -> bool:
        """Returns True if occurrences that fall due meanwhile are skipped."""
        return self.by is not HeldBy.FLOW_KEY


def as_shown(schedule: Schedule, job: Job, held: Held | None, now: datetime) -> Schedule:
    """Returns the schedule with what its row does not say: that it is held, and when it goes on.

    The sweep marks its row as held a little later, and a release lets it go a little after the collection was enabled.
    """
    disabled = held is not None and held.skips
    if schedule.state is ScheduleState.PAUSED and job.pause is not None:
        held_from = schedule.held_from or (now if disabled else None)
        return replace(schedule, resumes_at=job.pause.until, held_from=held_from)
    if disabled and schedule.held_from is None and schedule.state in LIVE:
        return replace(schedule, held_from=schedule.next_run_at or now)
    if not disabled and schedule.held_from is not None:
        return replace(schedule, resumes_at=up_to_second(now))
    return schedule


@dataclass(frozen=True)
class OwnHooks:
    """The hooks of a schedule. version: the revision of the job that wrote them. names: in the order of HOOK_KINDS."""

    version: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        """Returns the stored form: `7 onSuccess onMissed`."""
        return " ".join((str(self.version), *self.names))

    @classmethod
    def of(cls, version: int, names: Collection[str]) -> OwnHooks:
        return cls(version, tuple(name for name in HOOK_KINDS if name in names))

    @classmethod
    def read(cls, text: str | None) -> OwnHooks | None:
        if text is None:
            return None
        version, *names = text.split(" ")
        return cls(int(version), tuple(names))


@dataclass(frozen=True)
class Entry:
    """One entry of the change log. revision: the job's, after the change. actor: a client id; None for the service.

    before: None if the job was created. schedules: pairs of before and after, for schedules that the caller changed,
    added (before is None) or deleted (after is None). omitted: how many more changes did not fit into the item. reason:
    in the caller's words.
    """

    revision: int
    at: datetime
    actor: str | None
    operation: str
    before: Job | None
    after: Job
    schedules: tuple[tuple[Schedule | None, Schedule | None], ...] = ()
    omitted: int = 0
    reason: str | None = None
