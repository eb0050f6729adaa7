"""Who changes a job, and what of it goes into the change log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sweephand.domain.job import Job
from sweephand.domain.jobs.revision import Entry
from sweephand.domain.schedule import Schedule
from sweephand.flow.world import World


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
    FOLLOW_CALENDAR = "follow_calendar"
    """Of the service: a calendar that its schedules name was changed."""
    DEACTIVATE_UNREACHABLE = "deactivate_unreachable"
    """Of the service: a schedule's target could not be reached for ten days."""
    CHANGE = "change"
    """Of the service itself, or of a caller that does not say which."""


@dataclass(frozen=True)
class By:
    """actor: the caller's client id; None: the service itself."""

    operation: Operation = Operation.CHANGE
    actor: str | None = None


BY_SERVICE = By()
CREATED = By(Operation.CREATE)

Pair = tuple[Schedule | None, Schedule | None]
"""A schedule before and after: None where it was not there yet, or is gone."""


def entry(world: World, by: By, before: Job | None, after: Job, pairs: Iterable[Pair]) -> Entry:
    """The entry of the revision that `after` is. A schedule that only follows its job is left out."""
    wished = tuple(pair for pair in pairs if _wished(pair[0]) != _wished(pair[1]))
    return Entry(after.revision, world.clock.now(), by.actor, by.operation.value, before, after, wished)


def _wished(schedule: Schedule | None) -> object:
    """What of a schedule is the caller's."""
    if schedule is None:
        return None
    wished = schedule.name, schedule.timing, schedule.active, schedule.policies, schedule.payload_version
    return *wished, schedule.hooks, schedule.attributes
