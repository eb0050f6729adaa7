"""Series built from another series and from single instants, and the n-th occurrence of any series."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from heapq import merge

from sweephand.base.records import dataclass
from sweephand.schedules.rule import Amended, MovedBy, Series
from sweephand.schedules.zones.localtime import wall_of


@dataclass(frozen=True)
class Also(Amended):
    """The occurrences of `series` and the seconds `extras`, which are in order; at least one unless all are dropped.

    marks: in order, how time rules changed extras. An extra that a rule dropped is marked at the clock change.
    """

    series: Series
    extras: tuple[int, ...]
    marks: tuple[tuple[int, MovedBy], ...] = ()

    def after(self, second: int) -> int | None:
        instant = self.series.after(second)
        following = bisect_right(self.extras, second)
        if following == len(self.extras):
            return instant
        return self.extras[following] if instant is None else min(instant, self.extras[following])

    def until(self, second: int) -> int | None:
        instant = self.series.until(second)
        following = bisect_right(self.extras, second)
        if not following:
            return instant
        return self.extras[following - 1] if instant is None else max(instant, self.extras[following - 1])

    def count(self, after: int, until: int, limit: int) -> int:
        named = self.extras[bisect_right(self.extras, after) : bisect_right(self.extras, until)]
        alone = sum(self.series.until(second) != second for second in named)
        return max(0, min(self.series.count(after, until, limit) + alone, limit))

    def takes_out(self, second: int) -> bool:  # noqa: ARG002 - takes out nothing
        return False

    def moved_by(self, second: int) -> MovedBy | None:
        if self.series.until(second) == second:
            return self.series.moved_by(second)
        return next((mark for at, mark in self.marks if at == second and mark.effect != "skipped"), None)

    def dropped(self, after: int, until: int) -> Iterator[tuple[int, MovedBy]]:
        own = [(at, mark) for at, mark in self.marks if after < at <= until and mark.effect == "skipped"]
        others = (gap for gap in self.series.dropped(after, until) if gap not in own)
        return merge(own, others, key=lambda gap: (gap[0], gap[1].local_time))

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        own = sorted((wall_of(mark.local_time), at) for at, mark in self.marks if _moves(mark))
        return merge((gap for gap in own if begin <= gap[0] < end), self.series.missing(begin, end))

    def only_stands_in(self, second: int) -> bool:
        if self.series.until(second) == second and not self.series.only_stands_in(second):
            return False
        named = bisect_left(self.extras, second) < bisect_right(self.extras, second)
        return not named or any(at == second and _moves(mark) for at, mark in self.marks)


@dataclass(frozen=True)
class Without(Amended):
    """The occurrences of `series` outside `spans`: (first, last) seconds, in order, not adjacent, at least one.

    A search skips each span at most once.
    """

    series: Series
    spans: tuple[tuple[int, int], ...]

    def after(self, second: int) -> int | None:
        instant = self.series.after(second)
        while instant is not None and (span := self._span_of(instant)) is not None:
            instant = self.series.after(span[1])
        return instant

    def until(self, second: int) -> int | None:
        instant = self.series.until(second)
        while instant is not None and (span := self._span_of(instant)) is not None:
            instant = self.series.until(span[0] - 1)
        return instant

    def takes_out(self, second: int) -> bool:
        return self._span_of(second) is not None

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        return ((wall, at) for wall, at in self.series.missing(begin, end) if not self.takes_out(at))

    def count(self, after: int, until: int, limit: int) -> int:
        if after >= until:
            return 0
        number, begin = 0, after
        inside = self.spans[bisect_left(self.spans, after + 1, key=lambda span: span[1]) :]
        for first, last in inside:
            if first > until or number >= limit:
                break
            number += self.series.count(begin, max(begin, first - 1), limit)
            begin = max(begin, last)
        number += self.series.count(begin, until, limit) if begin < until else 0
        return max(0, min(number, limit))

    def _span_of(self, second: int) -> tuple[int, int] | None:
        at = bisect_left(self.spans, second, key=lambda span: span[1])
        return self.spans[at] if at < len(self.spans) and self.spans[at][0] <= second else None


def _moves(mark: MovedBy) -> bool:
    """Returns whether the mark is for a wall time of the schedule's own clock that a gap moved."""
    return mark.rule == "dstGap" and mark.effect == "moved" and mark.zone is None


def joined(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Prepares spans in any order for `Without`: sorted, with spans that meet joined."""
    made: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if made and first <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(made[-1][1], last))
        else:
            made.append((first, last))
    return tuple(made)


def nth_after(series: Series, second: int, which: int, last: int) -> int | None:
    """Returns the `which`-th occurrence (from 1) strictly after `second`; None if it lies beyond `last`.

    Counts in spans that double, then in spans that halve, so that hardly anything beyond the answer is searched.
    """
    left, span = which - 1, 1 << 16
    counted = series.count(second, min(second + span, last), left + 1)
    while counted <= left and second + span < last:
        second, left, span = second + span, left - counted, span * 2
        counted = series.count(second, min(second + span, last), left + 1)
    if counted <= left:
        return None
    while left and span > 1:
        span //= 2
        counted = series.count(second, second + span, left + 1)
        if counted <= left:
            second, left = second + span, left - counted
    return series.after(second)
