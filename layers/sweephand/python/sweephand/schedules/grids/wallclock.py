"""Wall times in a zone: turns a pattern of wall times into instants."""

from __future__ import annotations

from bisect import bisect_right
from math import gcd
from typing import TYPE_CHECKING

from sweephand.base.records import dataclass
from sweephand.schedules.rule import MovedBy, Series
from sweephand.schedules.zones.localtime import Gap, Overlap, Zone, wall_text

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_WALL = -(1 << 40)
"""Before every wall time."""
_NEAR = 2 * 86_400
"""More than the largest jump of any clock (Apia and Kwajalein: a whole day), less than the shortest piece (a week)."""


@dataclass(frozen=True)
class OnWallClock(Series):
    """The instants at which the clock of `zone` reads a time of `pattern`, with a rule for each gap and overlap.

    pattern: a series of wall seconds (localtime.py), not of Unix seconds. marked: False if each real hour counts, so
    that nothing is moved or doubled. since: in wall seconds; earlier times in a gap of the clock do not count, although
    they would come after it.

    Each piece of constant offset is searched separately, in order of time. Within it, wall time and Unix time differ by
    a constant. So two wall times in the wrong order (a shifted one after the next) need no special care.
    """

    pattern: Series
    zone: Zone
    gap: Gap
    overlap: Overlap
    marked: bool = True
    since: int = FIRST_WALL

    def after(self, second: int) -> int | None:
        starts, offsets, ends = self.zone.starts, self.zone.offsets, self.zone.ends
        piece = bisect_right(starts, second + 1) - 1
        if second - starts[piece] > _NEAR:  # most searches end here: no clock change is near
            wall = self.pattern.after(second + offsets[piece])
            if wall is not None:
                if wall - offsets[piece] < ends[piece] - _NEAR:
                    return wall - offsets[piece]
                if ends[piece] - second > _NEAR and (instant := self._calm(wall, piece)) is not None:
                    return instant
        return self._search_after(piece, second)

    def _search_after(self, piece: int, second: int) -> int | None:
        """Searches piece by piece, beginning with that of the first second."""
        starts, offsets = self.zone.starts, self.zone.offsets
        while True:
            offset = offsets[piece]
            begin, end = self.bounds(piece)
            wall = self.pattern.after((second if second >= begin else begin - 1) + offset)
            instant = None if wall is None or wall - offset >= end else wall - offset
            moved = self._moved_after(piece, second)
            if moved is not None and (instant is None or moved < instant):
                return moved
            if instant is not None:
                return instant
            following = piece + 1
            if following == len(starts):
                return None
            # No wall time before `wall` matches, so pieces before it are skipped; but close to its end the next
            # piece may repeat earlier wall times.
            if self.zone.ends[piece] - second > _NEAR:
                if wall is None:
                    return None
                following = max(following, self.zone.piece(wall - offset - _NEAR))
            piece, second = following, starts[following] - 1

    def until(self, second: int) -> int | None:
        starts, offsets, ends = self.zone.starts, self.zone.offsets, self.zone.ends
        piece = bisect_right(starts, second) - 1
        if ends[piece] - second > _NEAR:  # as above
            wall = self.pattern.until(second + offsets[piece])
            if wall is not None:
                if wall - offsets[piece] > starts[piece] + _NEAR:
                    return wall - offsets[piece]
                if second - starts[piece] > _NEAR and (instant := self._calm(wall, piece)) is not None:
                    return instant
        return self._search_until(piece, second)

    def _search_until(self, piece: int, second: int) -> int | None:
        starts, offsets = self.zone.starts, self.zone.offsets
        while True:
            offset = offsets[piece]
            begin, end = self.bounds(piece)
            wall = self.pattern.until((second if second < end else end - 1) + offset)
            instant = None if wall is None or wall - offset < begin else wall - offset
            moved = self._moved_until(piece, second)
            if moved is not None and (instant is None or moved > instant):
                return moved
            if instant is not None:
                return instant
            if piece == 0:
                return None
            preceding = piece - 1
            if second - starts[piece] > _NEAR:  # as above, in the other direction
                if wall is None:
                    return None
                preceding = min(preceding, self.zone.piece(wall - offset + _NEAR))
            second, piece = starts[preceding + 1] - 1, preceding

    def count(self, after: int, until: int, limit: int) -> int:
        """Counts piece by piece. The pattern counts each of them, which is cheap if it counts by masks."""
        number = 0
        for piece in range(self.zone.piece(after + 1), self.zone.piece(until) + 1):
            offset = self.zone.offsets[piece]
            begin, end = self.bounds(piece)
            first, last = max(after, begin - 1), min(until, end - 1)
            if first < last and number < limit:
                number += self.pattern.count(first + offset, last + offset, limit - number)
                number += sum(after < moved <= until for moved in self._only_moved(piece))
        return max(0, min(number, limit))

    def moved_by(self, second: int) -> MovedBy | None:
        piece = self.zone.piece(second)
        start, jump = self.zone.starts[piece], self.zone.jump(piece)
        wall = second + self.zone.offsets[piece]
        if not self.marked:
            return self.pattern.moved_by(wall)
        if jump > 0 and second < start + jump and self.pattern.until(wall) != wall:
            before = self.zone.offsets[piece - 1]
            missing = second + before if self.gap is Gap.SHIFT else self._first_in_gap(start + before)
            return None if missing is None else MovedBy("dstGap", wall_text(missing), "moved")
        again = self.zone.ends[piece]
        back = self.zone.jump(piece + 1) if piece + 1 < len(self.zone.starts) else 0
        if (jump < 0 and second < start - jump) or (back < 0 and second >= again + back):
            return MovedBy("dstOverlap", wall_text(wall), "doubled" if self.overlap is Overlap.BOTH else "once")
        return self.pattern.moved_by(wall)

    def dropped(self, after: int, until: int) -> Iterator[tuple[int, MovedBy]]:
        if not self.marked or self.gap is not Gap.SKIP:
            return
        for piece in range(self.zone.piece(after) + 1, self.zone.piece(until) + 1):
            start, before = self.zone.starts[piece], self.zone.offsets[piece - 1]
            missing = self._first_in_gap(start + before)
            while missing is not None and missing < start + self.zone.offsets[piece]:
                yield start, MovedBy("dstGap", wall_text(missing), "skipped")
                missing = self.pattern.after(missing)

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        if not self.marked or self.gap is Gap.SKIP:
            return
        for piece in range(self.zone.piece(begin - _NEAR), self.zone.piece(end + _NEAR) + 1):
            start, jump = self.zone.starts[piece], self.zone.jump(piece)
            if jump <= 0:
                continue
            before = self.zone.offsets[piece - 1]
            wall = self._first_in_gap(max(begin, start + before))
            while wall is not None and wall < min(end, start + before + jump):
                yield wall, wall - before if self.gap is Gap.SHIFT else start
                wall = self.pattern.after(wall)

    def only_stands_in(self, second: int) -> bool:
        piece = self.zone.piece(second)
        if not self.marked or second >= self.zone.starts[piece] + self.zone.jump(piece):
            return False
        wall = second + self.zone.offsets[piece]
        return self.pattern.until(wall) != wall

    def _calm(self, wall: int, from_piece: int) -> int | None:
        """Returns the instant of a wall time in a piece other than `from_piece`, if no clock change is near it."""
        zone = self.zone
        piece = zone.piece(wall - zone.offsets[from_piece])
        instant = wall - zone.offsets[piece]
        return instant if zone.starts[piece] + _NEAR < instant < zone.ends[piece] - _NEAR else None

    def bounds(self, piece: int) -> tuple[int, int]:
        """Returns (first, end) of the seconds of a piece that count, without the copy that the overlap rule drops."""
        zone = self.zone
        begin, end = zone.starts[piece], zone.ends[piece]
        if self.overlap is Overlap.FIRST:
            begin -= min(0, zone.jump(piece))
        elif self.overlap is Overlap.SECOND and piece + 1 < len(zone.starts):
            end += min(0, zone.jump(piece + 1))
        return begin, end

    def _only_moved(self, piece: int) -> Iterator[int]:
        """Yields the instants that the gap at the start of a piece moves there and that match no wall time directly."""
        start, offset = self.zone.starts[piece], self.zone.offsets[piece]
        moved = self._moved_after(piece, start - 1)
        while moved is not None:
            if self.pattern.until(moved + offset) != moved + offset:
                yield moved
            moved = self._moved_after(piece, moved)

    def _moved_after(self, piece: int, second: int) -> int | None:
        """Returns the first instant after `second` that stands for a wall time in the gap at the start of the piece."""
        jump = self.zone.jump(piece)
        start = self.zone.starts[piece]
        if jump <= 0 or second >= start + jump or self.gap is Gap.SKIP:
            return None
        before = self.zone.offsets[piece - 1]
        if self.gap is Gap.SHIFT:
            wall = self._first_in_gap(max(second + 1, start) + before)
            return None if wall is None or wall >= start + before + jump else wall - before
        wall = self._first_in_gap(start + before) if second < start else None
        return None if wall is None or wall >= start + before + jump else start

    def _first_in_gap(self, wall: int) -> int | None:
        """Returns the first wall time of the pattern from `wall` on that counts in a gap."""
        return self.pattern.after(max(wall, self.since) - 1)

    def _moved_until(self, piece: int, second: int) -> int | None:
        """Returns the last instant up to `second` that stands for a wall time in the gap at the piece's start."""
        jump = self.zone.jump(piece)
        if jump <= 0 or self.gap is Gap.SKIP:
            return None
        start, before = self.zone.starts[piece], self.zone.offsets[piece - 1]
        last = min(second, start + jump - 1) if self.gap is Gap.SHIFT else start + jump - 1
        wall = self.pattern.until(last + before)
        if wall is None or wall < max(start + before, self.since):
            return None
        return wall - before if self.gap is Gap.SHIFT else start


def certain_gap(series: OnWallClock, wall_gap_s: int, common_s: int = 0, *, on_clock: bool = False) -> int:
    """Returns the guaranteed minimum distance in seconds between two occurrences, at least 1.

    wall_gap_s: the smallest distance between two wall times of the pattern. common_s: a divisor of the distance between
    any two of them (0 if wall_gap_s is one) and, if time rules apply, of their distance from midnight. A clock change
    can bring occurrences closer together by as much as the clock jumps, and a wall time that runs twice comes back
    after that time. on_clock: returns the distance on the clock, as if it never changed, unless a rule asks for both
    copies of a wall time.
    """
    if on_clock and (series.overlap is not Overlap.BOTH or not series.marked):
        return wall_gap_s
    zone = series.zone
    jumps = [abs(zone.jump(piece)) for piece in range(1, len(zone.starts)) if zone.starts[piece] >= 0]
    if not jumps:
        return wall_gap_s
    if wall_gap_s <= max(jumps):
        common = gcd(wall_gap_s, common_s, *jumps)
        return min(common, 60) if series.marked else common
    nearest = wall_gap_s - max(jumps)
    return min(nearest, *jumps) if series.overlap is Overlap.BOTH else nearest
