"""Reads the time-zone files of the `tzdata` package (RFC 9636) into plain tables of offset changes.

zoneinfo answers "which offset now?" but not "when does it change?", and every rule about daylight saving turns on the
change. The host's own files are never looked at: two machines must not disagree about an instant.
"""

from __future__ import annotations

import struct
from datetime import date
from functools import lru_cache

import tzdata  # type: ignore[import-untyped]  # no stubs, one constant

IANA_VERSION: str = tzdata.IANA_VERSION
LAST_YEAR = 2200
"""The last year whose changes are computed: one beyond the horizon, so that its end has neighbours."""

ALWAYS = -(1 << 40)
"""A start before all instants that this package knows."""

Table = tuple[tuple[int, ...], tuple[int, ...]]
"""(starts, offsets): from starts[i] on (Unix seconds; the first is ALWAYS) offsets[i] seconds east of UTC rule."""

_NOT_PLACES = frozenset({"Factory", "localtime", "posixrules"})
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_HEADER = struct.Struct(">4s1s15x6l")


@lru_cache(maxsize=1)
def names() -> frozenset[str]:
    """Returns all IANA names of the package, without its files that are not zones (zone.tab, tzdata.zi)."""
    return frozenset(_content("zones").decode("ascii").split()) - _NOT_PLACES


def _content(path: str) -> bytes:
    """Returns a file of the package. pkgutil would read it too, but makes a cold start slower."""
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
    """Drops changes that leave the offset as it was (a new abbreviation, the isdst flag)."""
    starts, offsets = [ALWAYS], [initial]
    for start, offset in changes:
        if offset != offsets[-1]:
            starts.append(start)
            offsets.append(offset)
    return tuple(starts), tuple(offsets)


def _parse(content: bytes) -> tuple[list[int], list[int], int, str]:
    """Returns (instants, offsets from each on, offset before the first, footer) of the 64-bit block of a TZif file."""
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
        """Parses `EST5EDT,M3.2.0,M11.1.0` and the like. Raises ValueError for any other form; guesses nothing."""
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
        found = []
        for year in range(date.fromordinal(after // 86_400 + _EPOCH_DAY).year, LAST_YEAR + 1):
            found.append((_day(year, self._starts[0]) * 86_400 + self._starts[1] - self.standard, self.summer))
            found.append((_day(year, self._ends[0]) * 86_400 + self._ends[1] - self.summer, self.standard))
        return sorted(found)


def _offsets(text: str) -> list[str]:
    """Returns the number after each name, or "": `<+1030>-10:30<+11>` -> ["-10:30", ""]."""
    found = []
    while text:
        rest = text[text.index(">") + 1 :] if text[0] == "<" else text.lstrip(_LETTERS)
        if rest == text:
            raise ValueError("a name is missing")
        text = rest.lstrip("+-:0123456789")
        found.append(rest[: len(rest) - len(text)])
    return found


def _day_and_clock(text: str) -> tuple[str, int]:
    """Splits `M3.2.0/1` into (`M3.2.0`, seconds of its wall clock); two o'clock if none is given."""
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
