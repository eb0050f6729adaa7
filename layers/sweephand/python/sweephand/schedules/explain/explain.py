"""Previews a schedule: its occurrences, and how the time rules of its zone change them."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.schedules.rule import MOST, MovedBy, Undecided, limited
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant, to_second, wall_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sweephand.schedules.timing import Timing
    from sweephand.schedules.zones.localtime import Zone

with lazy():
    from sweephand.schedules.calendars import calendars

_MOST_PREVIEWED = MOST // 2
_MOST_LEFT_OUT = MOST // 8
_AT_ONCE = 100


@dataclass(frozen=True)
class Occurrence:
    """A planned instant, aware UTC. moved_by: the time rule that decided it, if the wall clock alone did not.

    dstGap: its wall time does not exist that day. dstOverlap: its wall time comes twice, and this is the first or the
    second.
    """

    instant: datetime
    moved_by: MovedBy | None


@dataclass(frozen=True)
class Dropped:
    """A wall time that does not exist and so does not run, because dstGap is skip.

    at: the instant of the clock change.
    """

    at: datetime
    moved_by: MovedBy


@dataclass(frozen=True)
class LeftOut:
    """An occurrence that a calendar stops and that does not roll. calendar: its position among the schedule's."""

    instant: datetime
    calendar: int


def preview(timing: Timing, after: datetime, limit: int) -> list[Occurrence]:
    """Returns the first `limit` occurrences strictly after `after`, each with the time rule that decided it.

    `count` is ignored, because how many were sent is not known here. The list ends early if the next one takes too long
    to find. Raises Undecided if that is the first one.
    """
    return search(timing, after, limit).occurrences


class Upcoming(NamedTuple):
    """Occurrences in order. whole: False if some are missing because the next one takes too long to find."""

    occurrences: list[Occurrence]
    whole: bool


def search(timing: Timing, after: datetime, limit: int) -> Upcoming:
    """Returns the same as `preview`, and whether the list is complete."""
    occurrences: list[Occurrence] = []
    try:
        with limited(_MOST_PREVIEWED):
            upcoming = islice(timing.rule.seconds(to_second(after), LAST_SECOND), limit)
            occurrences.extend(Occurrence(to_instant(second), timing.rule.moved_by(second)) for second in upcoming)
    except Undecided:
        if not occurrences:
            raise
        return Upcoming(occurrences, whole=False)
    return Upcoming(occurrences, whole=True)


def dropped(timing: Timing, after: datetime, until: datetime, limit: int) -> list[Dropped]:
    """Returns the first `limit` wall times that dstGap skip leaves out at clock changes in (after, until]."""
    gaps = timing.rule.dropped(to_second(after), to_second(until))
    return [Dropped(to_instant(second), moved_by) for second, moved_by in islice(gaps, limit)]


def left_out(timing: Timing, after: datetime, until: datetime) -> Iterator[LeftOut]:
    """Yields the occurrences in (after, until] that calendars leave out, in order and without jitter.

    Ends early if the next one takes too long to find.
    """
    if not timing.calendars:
        return
    second, last = to_second(after), to_second(until)
    while True:
        places: list[tuple[int, int]] = []
        with suppress(Undecided), limited(_MOST_LEFT_OUT):
            places.extend(islice(calendars.left_out(timing.rule, second, last), _AT_ONCE))
        for left_out_at, place in places:
            yield LeftOut(to_instant(left_out_at), place)
        if len(places) < _AT_ONCE:
            return
        second = places[-1][0]


def local_text(second: int, zone: Zone) -> str:
    """Returns the local time in the zone, with its offset: 2027-03-26T02:30:00+01:00."""
    offset = zone.offsets[zone.piece(second)]
    return wall_text(second + offset) + offset_text(offset)


def offset_text(offset: int) -> str:
    """Returns +01:00, or -00:44:30 for a zone that counted seconds in the past."""
    hours, rest = divmod(abs(offset), 3600)
    seconds = f":{rest % 60:02d}" if rest % 60 else ""
    return f"{'-' if offset < 0 else '+'}{hours:02d}:{rest // 60:02d}{seconds}"
