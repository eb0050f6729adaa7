"""What a schedule will do, and what the time rules of its zone make of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from sweephand.schedules.localtime import LAST_SECOND, to_instant, to_second, wall_text
from sweephand.schedules.rule import MovedBy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sweephand.schedules.localtime import Zone
    from sweephand.schedules.timing import Timing

__all__ = ["Dropped", "LeftOut", "MovedBy", "Occurrence", "dropped", "left_out", "local_text", "preview"]


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


@dataclass(frozen=True)
class LeftOut:
    """An occurrence that a calendar stops and that does not roll. calendar: its place among the schedule's."""

    instant: datetime
    calendar: int


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


def left_out(timing: Timing, after: datetime, until: datetime) -> Iterator[LeftOut]:
    """The occurrences in (after, until] that calendars leave out, rising, as they are taken; jitter is not in them."""
    if not timing.calendars:
        return
    from sweephand.schedules import calendars  # noqa: PLC0415 - few schedules name any

    for second, place in calendars.left_out(timing.rule, to_second(after), to_second(until)):
        yield LeftOut(to_instant(second), place)


def local_text(second: int, zone: Zone) -> str:
    """What the clock of the zone reads, with its offset: 2027-03-26T02:30:00+01:00."""
    offset = zone.offsets[zone.piece(second)]
    return wall_text(second + offset) + offset_text(offset)


def offset_text(offset: int) -> str:
    """+01:00, or -00:44:30 where a zone of the past counted seconds."""
    hours, rest = divmod(abs(offset), 3600)
    seconds = f":{rest % 60:02d}" if rest % 60 else ""
    return f"{'-' if offset < 0 else '+'}{hours:02d}:{rest // 60:02d}{seconds}"
