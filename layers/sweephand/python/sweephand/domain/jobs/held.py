"""Names the tenant, the collection or the flow key that keeps an active job from running. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from sweephand.domain.schedule import LIVE, Schedule


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


def as_held(schedule: Schedule, held: Held | None, now: datetime) -> Schedule:
    """Returns the schedule as held, so that no occurrence is announced that will be skipped.

    The sweep marks its row as held a little later.
    """
    if held is None or not held.skips or schedule.held_from is not None or schedule.state not in LIVE:
        return schedule
    return replace(schedule, held_from=min(schedule.next_run_at or now, now))
