"""Wall time and instants: a zone as pieces of constant offset, the gaps and overlaps between them, the rules for both.

Seconds are whole numbers here. `second` counts Unix seconds. `wall` counts seconds from 1970-01-01T00:00:00 on the
local clock. Within one piece, wall = second + offset.

The pieces are read from the files of the `tzdata` package (RFC 9636). zoneinfo answers "which offset now?" but not
"when does it change?", and every rule about daylight saving time depends on the change. The host's own files are never
used, because two machines must not disagree about an instant.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache

import tzdata  # type: ignore[import-untyped]  # no stubs, one constant

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
    """An IANA zone as (starts, offsets); see Table. Equal by name. Made by `zone`, never directly.

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
        """Returns the index of the piece that contains the instant."""
        return bisect_right(self.starts, second) - 1

    def jump(self, piece: int) -> int:
        """Returns how far the clock jumps at the piece's start: > 0 a gap, < 0 an overlap, 0 for the first piece."""
        return self.offsets[piece] - self.offsets[piece - 1] if piece else 0

    def wall(self, second: int) -> int:
        return second + self.offsets[self.piece(second)]

    def instants(self, wall: int) -> tuple[int, ...]:
        """Returns the seconds at which the clock reads `wall`: none in a gap, two in order in an overlap, else one."""
        near = range(self.piece(wall - 2 * 86_400), self.piece(wall + 2 * 86_400) + 1)
        candidates = ((wall - self.offsets[piece], piece) for piece in near)
        return tuple(second for second, piece in candidates if self.starts[piece] <= second < self.ends[piece])

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
    return Zone(name, *table(name))


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
    return EPOCH + timedelta(0, second)  # positional: a third faster than by keyword


def wall_text(wall: int) -> str:
    """Returns a wall time as ISO 8601 without offset: 2027-03-28T02:30:00."""
    return (EPOCH + timedelta(seconds=wall)).strftime("%Y-%m-%dT%H:%M:%S")


def wall_of(text: str) -> int:
    """Returns the wall second of a string that `wall_text` wrote."""
    return (datetime.fromisoformat(text + "+00:00") - EPOCH) // _SECOND


def instant_text(second: int) -> str:
    """Returns an instant as RFC 3339 in UTC: 2027-03-28T00:30:00Z."""
    return wall_text(second) + "Z"


IANA_VERSION: str = tzdata.IANA_VERSION

LAST_YEAR = 2200
"""The last year whose changes are computed: one beyond the horizon, so that the last piece has a neighbour."""

ALWAYS = -(1 << 40)
"""A start before all instants that this package knows."""

Table = tuple[tuple[int, ...], tuple[int, ...]]
"""(starts, offsets): offsets[i] seconds east of UTC hold from the Unix second starts[i] on. The first is ALWAYS."""

_NOT_PLACES = frozenset({"Factory", "localtime", "posixrules"})

_EPOCH_DAY = date(1970, 1, 1).toordinal()

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_HEADER = struct.Struct(">4s1s15x6l")


@lru_cache(maxsize=1)
def names() -> frozenset[str]:
    """Returns all IANA names of the package, without its files that are not zones (zone.tab, tzdata.zi)."""
    return frozenset(_content("zones").decode("ascii").split()) - _NOT_PLACES


def _content(path: str) -> bytes:
    """Returns a file of the package. pkgutil would read it as well, but makes a cold start slower."""
    content: bytes = tzdata.__spec__.loader.get_data(f"{tzdata.__path__[0]}/{path}")
    return content


def table(name: str) -> Table:
    """Returns the changes of offset of one zone, from the first recorded one to the end of LAST_YEAR.

    Raises KeyError for a name that is not in `names()`, ValueError for a file that cannot be read.
    """
    if name not in names():
        raise KeyError(name)
    instants, offsets, initial, footer = _parse(_content(f"zoneinfo/{name}"))
    last = instants[-1] if instants else 0
    later = [change for change in _Footer.parse(footer).changes(last) if change[0] > last]
    return _merge(initial, [*zip(instants, offsets, strict=True), *later])


def _merge(initial: int, changes: list[tuple[int, int]]) -> Table:
    """Merges pieces: drops changes that keep the offset (a new abbreviation, the isdst flag)."""
    starts, offsets = [ALWAYS], [initial]
    for start, offset in changes:
        if offset != offsets[-1]:
            starts.append(start)
            offsets.append(offset)
    return tuple(starts), tuple(offsets)


def _parse(content: bytes) -> tuple[list[int], list[int], int, str]:
    """Returns (instants, offset from each on, offset before the first, footer) of the 64-bit block of a TZif file."""
    first = _counts(content, 0)
    base = 44 + _block_size(first, 4)
    isutc, isstd, leaps, times, types, letters = _counts(content, base)
    start = base + 44
    instants = list(struct.unpack_from(f">{times}q", content, start))
    indexes = content[start + 8 * times : start + 9 * times]
    records = start + 9 * times
    by_type = [struct.unpack_from(">l", content, records + 6 * number)[0] for number in range(types)]
    end = base + 44 + _block_size((isutc, isstd, leaps, times, types, letters), 8)
    footer = content[end:].strip(b"\n").decode("ascii")
    return instants, [by_type[index] for index in indexes], by_type[0], footer


def _counts(content: bytes, at: int) -> tuple[int, int, int, int, int, int]:
    magic, version, *counts = _HEADER.unpack_from(content, at)
    if magic != b"TZif" or version < b"2":
        raise ValueError("not a time-zone file of version 2 or later")
    isutc, isstd, leaps, times, types, letters = counts
    return isutc, isstd, leaps, times, types, letters


def _block_size(counts: tuple[int, int, int, int, int, int], width: int) -> int:
    isutc, isstd, leaps, times, types, letters = counts
    return times * (width + 1) + types * 6 + letters + leaps * (width + 4) + isstd + isutc


class _Footer:
    """The rule for the years after the last recorded change: a POSIX TZ string, with hours from -167 to 167."""

    def __init__(
        self, standard: int, summer: int, starts: tuple[str, int] | None, ends: tuple[str, int] | None
    ) -> None:
        self.standard = standard
        self.summer = summer
        self._starts = starts
        self._ends = ends

    @classmethod
    def parse(cls, text: str) -> _Footer:
        """Parses `EST5EDT,M3.2.0,M11.1.0` and the like. Raises ValueError for any other form."""
        try:
            names, *days = text.split(",")
            west, *summer_west = _offsets(names)
            if not summer_west and not days:
                return cls(-_clock(west), -_clock(west), None, None)
            summer = -_clock(summer_west[0]) if summer_west[0] else 3600 - _clock(west)
            begins, ends = (_day_and_clock(day) for day in days)
            return cls(-_clock(west), summer, begins, ends)
        except (IndexError, ValueError) as error:
            raise ValueError(f"unknown form of a time-zone rule: {text!r}") from error

    def changes(self, after: int) -> list[tuple[int, int]]:
        """Returns (Unix second, offset from it on), in order, from the year of `after` to LAST_YEAR; often none."""
        if self._starts is None or self._ends is None:
            return []
        ahead = []
        for year in range(date.fromordinal(after // 86_400 + _EPOCH_DAY).year, LAST_YEAR + 1):
            ahead.append((_day(year, self._starts[0]) * 86_400 + self._starts[1] - self.standard, self.summer))
            ahead.append((_day(year, self._ends[0]) * 86_400 + self._ends[1] - self.summer, self.standard))
        return sorted(ahead)


def _offsets(text: str) -> list[str]:
    """Returns the number after each name, or "": `<+1030>-10:30<+11>` -> ["-10:30", ""]."""
    offsets = []
    while text:
        rest = text[text.index(">") + 1 :] if text[0] == "<" else text.lstrip(_LETTERS)
        if rest == text:
            raise ValueError("a name is missing")
        text = rest.lstrip("+-:0123456789")
        offsets.append(rest[: len(rest) - len(text)])
    return offsets


def _day_and_clock(text: str) -> tuple[str, int]:
    """Splits `M3.2.0/1` into (`M3.2.0`, seconds of its wall clock). The default is two o'clock."""
    day, slash, clock = text.partition("/")
    _day(1972, day)  # a form that cannot be read must not wait for its year
    return day, _clock(clock if slash else "2")


def _clock(text: str) -> int:
    """Returns seconds of `[+-]h[:m[:s]]`."""
    sign = -1 if text[0] == "-" else 1
    hours, minutes, seconds = ([int(part) for part in text.lstrip("+-").split(":")] + [0, 0])[:3]
    return sign * (hours * 3600 + minutes * 60 + seconds)


def _day(year: int, rule: str) -> int:
    """Returns days since 1970-01-01 for `Mm.w.d` (week 5: the last), `Jn` (without 29 February) or `n` (from 0)."""
    if rule[0] == "M":
        month, week, weekday = (int(part) for part in rule[1:].split("."))
        first = date(year, month, 1).toordinal()
        day = first + (weekday - first) % 7 + (week - 1) * 7
        beyond = date(year + month // 12, month % 12 + 1, 1).toordinal()
        return (day if day < beyond else day - 7) - _EPOCH_DAY
    if rule[0] == "J":
        leap = date(year, 12, 31).timetuple().tm_yday == 366
        number = int(rule[1:])
        return date(year, 1, 1).toordinal() - _EPOCH_DAY + number - (0 if leap and number >= 60 else 1)
    return date(year, 1, 1).toordinal() - _EPOCH_DAY + int(rule)
