"""Wall time and instants: a zone as pieces of constant offset, the gaps and overlaps between them, the rules for both.

Seconds are whole numbers here: `second` counts on the time line (Unix seconds), `wall` counts what the clock on the
wall reads, from 1970-01-01T00:00:00 on that clock. Within one piece, wall = second + offset.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache

from sweephand.schedules.zones import tzif
from sweephand.schedules.zones.tzif import ALWAYS, IANA_VERSION

__all__ = [
    "ALWAYS",
    "EPOCH",
    "FIRST_SECOND",
    "IANA_VERSION",
    "LAST_SECOND",
    "Gap",
    "MonthOverflow",
    "Overlap",
    "Zone",
    "zone",
]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_SECOND = 0
LAST_SECOND = 7_258_118_399
"""2199-12-31T23:59:59Z: the horizon. Nothing is planned after it."""

NEVER = 1 << 40
_SECOND = timedelta(seconds=1)


class Gap(StrEnum):
    """Rules for a wall time that the clock jumps over."""

    SKIP = "skip"
    NEXT_VALID = "next_valid"  # the first instant after the jump
    SHIFT = "shift"  # as far after the jump as it lies after the gap's start: 02:30 becomes 03:30


class Overlap(StrEnum):
    """Rules for a wall time that the clock shows twice."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class MonthOverflow(StrEnum):
    """Rules for a day that its month does not have: 31 April."""

    SKIP = "skip"
    CLAMP = "clamp"  # the last day of that month; the next month has its own day again
    NEXT = "next"  # the first day of the following month


class Zone:
    """An IANA zone as (starts, offsets); see tzif.Table. Equal by name. Made by `zone`, never directly.

    ends: the first second after each piece.
    """

    __slots__ = ("ends", "name", "offsets", "starts")

    def __init__(self, name: str, starts: tuple[int, ...], offsets: tuple[int, ...]) -> None:
        self.name = name
        self.starts = starts
        self.ends = (*starts[1:], NEVER)
        self.offsets = offsets

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Zone) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def piece(self, second: int) -> int:
        """Returns the index of the piece that holds the instant."""
        return bisect_right(self.starts, second) - 1

    def end(self, piece: int) -> int:
        """Returns the first second after the piece."""
        return self.ends[piece]

    def jump(self, piece: int) -> int:
        """Returns how far the clock jumps at the piece's start: > 0 a gap, < 0 an overlap, 0 for the first piece."""
        return self.offsets[piece] - self.offsets[piece - 1] if piece else 0

    def wall(self, second: int) -> int:
        return second + self.offsets[self.piece(second)]

    def instants(self, wall: int) -> tuple[int, ...]:
        """Returns the seconds at which the clock reads `wall`: none in a gap, two (rising) in an overlap, else one."""
        near = range(self.piece(wall - 2 * 86_400), self.piece(wall + 2 * 86_400) + 1)
        found = ((wall - self.offsets[piece], piece) for piece in near)
        return tuple(second for second, piece in found if self.starts[piece] <= second < self.end(piece))

    def around_gap(self, wall: int) -> tuple[int, int]:
        """Returns (next valid instant, shifted instant) for a wall time in a gap. Raises ValueError for any other."""
        for piece in range(max(1, self.piece(wall - 2 * 86_400)), self.piece(wall + 2 * 86_400) + 1):
            start, before = self.starts[piece], self.offsets[piece - 1]
            if start + before <= wall < start + self.offsets[piece]:
                return start, wall - before
        raise ValueError(f"wall second {wall} exists in {self.name}")


@lru_cache(maxsize=1024)  # at most as many as the package has names
def zone(name: str) -> Zone:
    """Returns the zone of an IANA name, exactly as written. Raises KeyError for a name that tzdata lacks."""
    return Zone(name, *tzif.table(name))


def to_second(instant: datetime) -> int:
    """Returns Unix seconds, fractions cut off towards the past. Raises ValueError if `instant` is naive."""
    if instant.tzinfo is None:
        raise ValueError("an instant without a zone")
    return (instant - EPOCH) // _SECOND


def to_second_up(instant: datetime) -> int:
    """Returns Unix seconds, fractions rounded up: the earliest whole second that is not before `instant`."""
    if instant.tzinfo is None:
        raise ValueError("an instant without a zone")
    return -((EPOCH - instant) // _SECOND)


def to_instant(second: int) -> datetime:
    return EPOCH + timedelta(0, second)  # by place: a third faster than by name


def wall_text(wall: int) -> str:
    """Returns a wall time as ISO 8601 without offset: 2027-03-28T02:30:00."""
    return (EPOCH + timedelta(seconds=wall)).strftime("%Y-%m-%dT%H:%M:%S")


def wall_of(text: str) -> int:
    """Returns the wall second of a string that `wall_text` wrote."""
    return (datetime.fromisoformat(text + "+00:00") - EPOCH) // _SECOND


def instant_text(second: int) -> str:
    """Returns an instant as RFC 3339 in UTC: 2027-03-28T00:30:00Z."""
    return wall_text(second) + "Z"
