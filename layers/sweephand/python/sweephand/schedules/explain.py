"""What a schedule will do, and what the time rules of its zone make of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from sweephand.schedules.localtime import LAST_SECOND, to_instant, to_second
from sweephand.schedules.rule import MovedBy

if TYPE_CHECKING:
    from datetime import datetime

    from sweephand.schedules.timing import Timing

__all__ = ["Dropped", "MovedBy", "Occurrence", "dropped", "preview"]


@dataclass(frozen=True)
class Occurrence:
    """A planned instant, aware UTC. moved_by: the time rule that decided it, if the wall clock alone did not.

    dstGap: its wall time does not exist that day. dstOverlap: its wall time comes twice, this is the first or second.
    """

    instant: datetime
    moved_by: MovedBy | None


@dataclass(frozen=True)
class Dropped:
    """A wall time that does not exist and does not run, because dstGap is skip. at: the instant of the clock change."""

    at: datetime
    moved_by: MovedBy


def preview(timing: Timing, after: datetime, limit: int) -> list[Occurrence]:
    """The first `limit` occurrences strictly after `after`, each with the time rule that decided it.

    `count` is not looked at: how many were sent is not known here.
    """
    upcoming = timing.rule.seconds(to_second(after), LAST_SECOND)
    return [Occurrence(to_instant(second), timing.rule.moved_by(second)) for second in islice(upcoming, limit)]


def dropped(timing: Timing, after: datetime, until: datetime, limit: int) -> list[Dropped]:
    """The first `limit` wall times that dstGap skip leaves out at clock changes in (after, until]."""
    found = timing.rule.dropped(to_second(after), to_second(until))
    return [Dropped(to_instant(second), moved_by) for second, moved_by in islice(found, limit)]
