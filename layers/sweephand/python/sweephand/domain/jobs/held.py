"""Names what keeps a job from running although it is switched on: its tenant, its collection or its flow key. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from sweephand.domain.schedule import LIVE, Schedule


class HeldBy(StrEnum):
    """A disabled tenant or collection skips what falls due; a paused flow key lets it wait in line."""

    TENANT = "tenant"
    COLLECTION = "collection"
    FLOW_KEY = "flowKey"


@dataclass(frozen=True)
class Held:
    """name: of the tenant, the collection or the flow key. since: when it was disabled or paused."""

    by: HeldBy
    name: str
    since: datetime

    @property
    def skips(self) -> bool:
        """Says that an occurrence which falls due meanwhile is skipped."""
        return self.by is not HeldBy.FLOW_KEY


def as_held(schedule: Schedule, held: Held | None, now: datetime) -> Schedule:
    """Returns the schedule as it stands from the moment at which it is held: a tick notes that in its row a little
    later, and nothing that will be skipped is announced until then.
    """
    if held is None or not held.skips or schedule.held_from is not None or schedule.state not in LIVE:
        return schedule
    return replace(schedule, held_from=min(schedule.next_run_at or now, now))
