"""Sets of seconds, as stretches of time. Each finds the next or the previous second that it covers or does not cover.

Spans        stretches with a beginning and an end, listed
Dates        the same, with the days on which they lie
Weekly       stretches of a week, week after week
On           any of these on the clock of a zone
Together     covered where any of its parts is

All have one method, `find`, and are frozen values. A step of 1 looks ahead, -1 back, beginning with the given second.
None means that there is no such second up to the horizon.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from sweephand.base.records import dataclass
from sweephand.schedules.rule import spend

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sweephand.schedules.zones.localtime import Zone

DAY_S, WEEK_S = 86_400, 7 * 86_400
MONDAY = -3 * DAY_S
"""A Monday's midnight: that of 1969-12-29."""
_NEAR = 2 * DAY_S
"""More than any clock jumps back: wall times may repeat for less than this after a clock change."""


class Stretches(Protocol):
    """A set of seconds that finds the next second that it covers or does not cover."""

    def find(self, second: int, covered: bool, step: int) -> int | None:
        """Returns the first second from `second` on, in the direction of `step`, that is covered or is not."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches from each of `begins` up to its end, which is excluded. In order; no two of them meet."""

    begins: tuple[int, ...]
    ends: tuple[int, ...]

    def find(self, second: int, covered: bool, step: int) -> int | None:
        at = bisect_right(self.begins, second) - 1
        inside = at >= 0 and second < self.ends[at]
        if inside is covered:
            return second
        if inside:
            return self.ends[at] if step > 0 else self.begins[at] - 1
        if step > 0:
            return self.begins[at + 1] if at + 1 < len(self.begins) else None
        return self.ends[at] - 1 if at >= 0 else None


@dataclass(frozen=True, slots=True)
class Dates(Spans):
    """Spans with their days (day_masks.py). touched: days that are covered in part. whole: days covered completely."""

    touched: int = field(compare=False, repr=False)
    whole: int = field(compare=False, repr=False)


def spans(pairs: Iterable[tuple[int, int]]) -> Spans:
    """Joins stretches (beginning, end) that meet or overlap, given in any order."""
    joined: list[list[int]] = []
    for begin, end in sorted(pair for pair in pairs if pair[0] < pair[1]):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return Spans(tuple(begin for begin, _ in joined), tuple(end for _, end in joined))


@dataclass(frozen=True, slots=True)
class Weekly:
    """Stretches of each week, in seconds since Monday's midnight.

    One that continues into the next week counts as two.
    """

    week: Spans

    def find(self, second: int, covered: bool, step: int) -> int | None:
        begin = MONDAY + (second - MONDAY) // WEEK_S * WEEK_S
        for weeks in range(3):
            asked = second - begin if weeks == 0 else 0 if step > 0 else WEEK_S - 1
            of_week = self.week.find(asked, covered, step)
            if of_week is not None and 0 <= of_week < WEEK_S:
                return begin + of_week
            begin += step * WEEK_S
        return None


@dataclass(frozen=True, slots=True)
class On:
    """The seconds at which the clock of a zone reads a time that `walls` cover, whether once or twice."""

    walls: Stretches
    zone: Zone

    def find(self, second: int, covered: bool, step: int) -> int | None:
        starts, offsets = self.zone.starts, self.zone.offsets
        piece = self.zone.piece(second)
        while True:
            spend(2)
            offset, end = offsets[piece], self.zone.ends[piece]
            wall = self.walls.find(second + offset, covered, step)
            candidate = None if wall is None else wall - offset
            if candidate is not None and starts[piece] <= candidate < end:
                return candidate
            # Close to its end the next piece may repeat earlier wall times; else pieces are skipped.
            near = end - second <= _NEAR if step > 0 else second - starts[piece] < _NEAR
            if candidate is None and not near:
                return None
            piece += step
            if not 0 <= piece < len(starts):
                return None
            if candidate is not None and not near:
                far = self.zone.piece(candidate - step * _NEAR)
                piece = max(piece, far) if step > 0 else min(piece, far)
            second = starts[piece] if step > 0 else self.zone.ends[piece] - 1


@dataclass(frozen=True, slots=True)
class Together:
    """A combination that is covered where any of its parts is, or where all are."""

    parts: tuple[Stretches, ...]
    where_all: bool = False

    def find(self, second: int, covered: bool, step: int) -> int | None:
        if covered is self.where_all:
            return agreed([(part, covered) for part in self.parts], second, step)
        return nearest((part.find(second, covered, step) for part in self.parts), step)


def nearest(candidates: Iterable[int | None], step: int) -> int | None:
    """Returns the first of some seconds in the direction of `step`."""
    best = None
    for second in candidates:
        if second is not None and (best is None or (second - best) * step < 0):
            best = second
    return best


def agreed(wanted: Sequence[tuple[Stretches, bool]], second: int, step: int) -> int | None:
    """Returns the first second that each part covers, or does not cover, as wanted. Raises Undecided."""
    while True:
        spend()
        moved = False
        for part, covered in wanted:
            candidate = part.find(second, covered, step)
            if candidate is None:
                return None
            moved = moved or candidate != second
            second = candidate
        if not moved:
            return second


def week_spans(pairs: Iterable[tuple[int, int]]) -> Spans:
    """Prepares stretches that begin within a week for `Weekly`: a part beyond its end moves to its beginning."""
    cut = (((begin, min(end, WEEK_S)), (0, end - WEEK_S)) for begin, end in pairs)
    return spans(chain.from_iterable(cut))
