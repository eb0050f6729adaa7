"""Entries of the change log: who changed a job, how, and which of its schedules."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.base.records import dataclass
from sweephand.domain.job import Payload
from sweephand.domain.schedule import Schedule

if TYPE_CHECKING:
    from sweephand.server.store.jobs.own_hooks import ByName

from collections.abc import Iterable
from enum import StrEnum

from sweephand.domain.job import Job
from sweephand.domain.jobs.job_state import Entry
from sweephand.server.flow.world import World


class Operation(StrEnum):
    CREATE = "create"
    REPLACE = "replace"
    PATCH = "patch"
    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    PAUSE = "pause"
    RESUME = "resume"
    ADD_SCHEDULE = "add_schedule"
    REPLACE_SCHEDULE = "replace_schedule"
    PATCH_SCHEDULE = "patch_schedule"
    ACTIVATE_SCHEDULE = "activate_schedule"
    DEACTIVATE_SCHEDULE = "deactivate_schedule"
    DELETE_SCHEDULE = "delete_schedule"
    APPLY = "apply"
    """Made by the job set of the job."""
    FOLLOW_CALENDAR = "follow_calendar"
    """Made by the service: a calendar that the job's schedules name was changed."""
    DEACTIVATE_UNREACHABLE = "deactivate_unreachable"
    """Made by the service: a schedule's target could not be reached for ten days."""
    CHANGE = "change"
    """Made by the service itself, or by a caller that does not name an operation."""


@dataclass(frozen=True)
class By:
    """The author of a change. actor: the caller's client id; None for the service itself. reason: in their words."""

    operation: Operation = Operation.CHANGE
    actor: str | None = None
    reason: str | None = None

    @property
    def words(self) -> str | None:
        """Returns who made the change and why, for messages of the ledger; None without a reason."""
        return None if self.reason is None else f"{self.actor or 'the service'}: {self.reason}"


BY_SERVICE = By()
CREATED = By(Operation.CREATE)

Pair = tuple[Schedule | None, Schedule | None]
"""A schedule before and after a change; None before its creation and after its deletion."""


def entry(world: World, by: By, before: Job | None, after: Job, pairs: Iterable[Pair]) -> Entry:
    """Returns the log entry for the revision of `after`. Schedules that only follow their job are left out."""
    requested = tuple(pair for pair in pairs if _callers_members(pair[0]) != _callers_members(pair[1]))
    now, operation = world.clock.now(), by.operation.value
    return Entry(after.revision, now, by.actor, operation, before, after, requested, reason=by.reason)


def _callers_members(schedule: Schedule | None) -> object:
    """Returns the members of a schedule that a caller decides."""
    if schedule is None:
        return None
    members = schedule.name, schedule.timing, schedule.active, schedule.policies, schedule.payload_version
    return *members, schedule.hooks, schedule.attributes


@dataclass(frozen=True)
class Step:
    """A schedule's change.

    before: the row as read; None for a new schedule. after: the schedule as requested; None to delete it. at: the
    instant of a new one-time timing. payload, hooks: written under the versions that `after` names. fresh: see
    ScheduleDraft.
    """

    before: Schedule | None
    after: Schedule | None
    at: datetime | None = None
    payload: Payload | None = None
    hooks: ByName | None = None
    fresh: bool = False
