"""The core of every schedule: a set of whole seconds that answers "next after?" and "last until?".

Rule       the two questions in datetimes, which are all that the rest of the service uses
Series     the same in Unix seconds, with the questions that only schedules ask; the base of all that follow
├── Once         one instant
├── Never        none
├── Steps        equal steps of elapsed time from an anchor
├── OnWallClock  a pattern of wall times in a zone (wallclock.py)
└── Over         another series, limited or changed
    ├── ByCalendars  as calendars leave it (calendars.py)
    ├── Amended      with some instants added or taken out (sets.py)
    ├── Window       from a first to a last second
    └── Jittered     each occurrence delayed by a stable hash of itself

All are frozen values: equal and hashable by content, safe to share between threads.

The work of one question is limited. Most answers follow from arithmetic. Some need a search: calendars that roll, steps
on certain days only. Each step of a search spends units, and a question that has spent MOST of them raises Undecided.
So no schedule can occupy a function for long: a unit takes about a microsecond.
"""

from __future__ import annotations

from itertools import islice
from threading import local
from typing import TYPE_CHECKING, Protocol, Self

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.schedules.zones.localtime import to_instant, to_second

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


MOST = 22_000
OF_ANSWER = 3 * MOST
"""The units that all hard questions of one answer may spend together, some 50 ms."""
EASY = 250
"""The units that each schedule of an answer may spend without sharing: those of an ordinary schedule."""
REASON = "takes too long to compute: use fewer calendars, or a rule whose occurrences are easier to find"


class Undecided(InvalidRequest, ValueError):
    """A question about a schedule that needs more work than one question may take.

    It is a ValueError too, because a stored schedule that cannot be computed is treated as one that cannot be read.
    """

    def __init__(self, field: str | None = None, reason: str = REASON) -> None:
        super().__init__(field, reason)


class _Purse(local):
    """A budget. left: the units that this thread's current question may still spend; negative outside a question.

    refusals: how many questions have ended without an answer.
    """

    left = -1
    refusals = 0


_purse = _Purse()


def spend(units: int = 1) -> None:
    """Spends units. Raises Undecided if too few are left. Outside `limited` nothing is counted."""
    left = _purse.left
    if left >= 0:
        if left < units:
            _purse.refusals += 1
            raise Undecided
        _purse.left = left - units


def left() -> int:
    """Returns the units that the current question may still spend; MOST outside `limited`."""
    return MOST if _purse.left < 0 else _purse.left


class limited:  # noqa: N801 - used as a function
    """A common limit for all questions inside. A nested limit also spends from the outer one.

    free: the units that it does not spend from the outer one.
    """

    __slots__ = ("before", "begun", "free", "most", "refusals")

    def __init__(self, most: int = MOST, free: int = 0) -> None:
        self.most, self.free = most, free

    def __enter__(self) -> Self:
        self.before, self.refusals = _purse.left, _purse.refusals
        self.begun = self.most if self.before < 0 else min(self.most, self.before + self.free)
        _purse.left = self.begun
        return self

    def __exit__(self, *raised: object) -> None:
        shared = max(0, self.begun - _purse.left - self.free)
        _purse.left = self.before if self.before < 0 else self.before - shared

    @property
    def whole(self) -> bool:
        """Returns whether all questions since the beginning were answered, whoever caught their refusals."""
        return _purse.refusals == self.refusals


def of_answer() -> limited:
    """Returns the common limit for all questions of one answer."""
    return limited(OF_ANSWER)


def for_one(easy: int = EASY) -> limited:
    """Returns the limit for a schedule of an answer. Ordinary ones are answered even if hard ones have spent all.

    easy: the units that an ordinary schedule needs.
    """
    return limited(MOST, easy)


def limited_for(schedules: int) -> limited:
    """Returns a common limit for all questions of one change, so that many hard schedules cost no more than a few."""
    return limited(4 * MOST + 200 * schedules)


class Rule(Protocol):
    """Any set of planned instants. Hashable."""

    def next_after(self, instant: datetime) -> datetime | None:
        """Returns the first occurrence strictly after `instant`, aware UTC, whole seconds; None if none up to 2199.

        instant: aware, any zone. Raises ValueError if it is naive, and Undecided, which is a ValueError too.
        """

    def last_until(self, instant: datetime) -> datetime | None:
        """Returns the latest occurrence at or before `instant`; None before the first. Cost does not grow with age."""


@dataclass(frozen=True)
class MovedBy:
    """A rule that decided an occurrence: dstGap, dstOverlap, monthOverflow, calendar.

    local_time: the wall time that it stands for; with monthOverflow, on a day that does not exist, such as 31 February.
    effect: moved or skipped (dstGap); doubled or once (dstOverlap: both copies run, or only this one); else moved.
    zone: the zone of local_time, if it differs from the schedule's.
    """

    rule: str
    local_time: str
    effect: str
    zone: str | None = None


class Series:
    """A Rule in Unix seconds. Subclasses are frozen dataclasses and answer `after` and `until`."""

    __slots__ = ()

    def after(self, second: int) -> int | None:
        """Returns the first occurrence strictly after `second`."""
        raise NotImplementedError

    def until(self, second: int) -> int | None:
        """Returns the latest occurrence at or before `second`."""
        raise NotImplementedError

    def toward(self, second: int, way: int) -> int | None:
        """Returns the first occurrence from `second` on, ahead or, with `way` -1, back."""
        return self.after(second - 1) if way > 0 else self.until(second)

    def moved_by(self, second: int) -> MovedBy | None:  # noqa: ARG002 - most series know no wall clock
        """Returns how a time rule changed the occurrence at `second`; None if none did."""
        return None

    def dropped(self, after: int, until: int) -> Iterator[tuple[int, MovedBy]]:  # noqa: ARG002 - as above
        """Yields each wall time that a time rule drops, after the second of its clock change in (after, until]."""
        return iter(())

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]:  # noqa: ARG002 - as above
        """Yields each wall time of [begin, end) in a gap of the clock, with the occurrence that stands for it."""
        return iter(())

    def only_stands_in(self, second: int) -> bool:  # noqa: ARG002 - as above
        """Returns whether the occurrence at `second` only stands for wall times that the clock jumps over."""
        return False

    def count(self, after: int, until: int, limit: int) -> int:
        """Returns how many occurrences lie in (after, until], at most `limit`."""
        return sum(1 for _ in islice(self.seconds(after, until), max(0, limit)))

    def seconds(self, after: int, until: int) -> Iterator[int]:
        """Yields the occurrences in (after, until], in order."""
        upcoming = self.after(after)
        while upcoming is not None and upcoming <= until:
            spend(4)
            yield upcoming
            upcoming = self.after(upcoming)

    def next_after(self, instant: datetime) -> datetime | None:
        second, purse = to_second(instant), _purse
        if purse.left >= 0:
            with limited():
                upcoming = self.after(second)
        else:  # the same in fewer calls, because each sweep asks this
            purse.left = MOST
            try:
                upcoming = self.after(second)
            finally:
                purse.left = -1
        return None if upcoming is None else to_instant(upcoming)

    def last_until(self, instant: datetime) -> datetime | None:
        with limited():
            second = self.until(to_second(instant))
        return None if second is None else to_instant(second)


class Over(Series):
    """The occurrences of `series`, limited or changed. Subclasses override what they change."""

    __slots__ = ()
    series: Series

    def moved_by(self, second: int) -> MovedBy | None:
        return self.series.moved_by(second)

    def dropped(self, after: int, until: int) -> Iterator[tuple[int, MovedBy]]:
        return self.series.dropped(after, until)

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        return self.series.missing(begin, end)

    def only_stands_in(self, second: int) -> bool:
        return self.series.only_stands_in(second)


class ByCalendars(Over):
    """The occurrences of `series` that calendars let through, some of them on another day. Subclasses: calendars.py."""

    __slots__ = ()

    def comes(self, second: int) -> int | None:
        """Returns the instant to which calendars move an occurrence of the series; None if it is left out."""
        raise NotImplementedError

    def stopped_by(self, second: int) -> int | None:
        """Returns the index of the first calendar of the schedule that stops this second."""
        raise NotImplementedError

    def alike_until(self, second: int) -> int:
        """Returns the end of a stretch from `second` on whose occurrences are those of the series.

        May return an earlier end if it is not known.
        """
        raise NotImplementedError


class Amended(Over):
    """The occurrences of `series` with some instants added or taken out. Subclasses: sets.py."""

    __slots__ = ()

    def takes_out(self, second: int) -> bool:
        """Returns whether this second is taken out, whether or not it is an occurrence."""
        raise NotImplementedError


@dataclass(frozen=True)
class Once(Series):
    """One instant."""

    second: int

    def after(self, second: int) -> int | None:
        return self.second if second < self.second else None

    def until(self, second: int) -> int | None:
        return self.second if second >= self.second else None


@dataclass(frozen=True)
class Never(Series):
    """No instant at all."""

    def after(self, second: int) -> int | None:  # noqa: ARG002 - as every series
        return None

    def until(self, second: int) -> int | None:  # noqa: ARG002 - as every series
        return None


@dataclass(frozen=True)
class Steps(Series):
    """The seconds anchor + k * step_s for every whole k, even below 0. No clock change affects elapsed seconds."""

    anchor: int
    step_s: int

    def __post_init__(self) -> None:
        if self.step_s < 1:
            raise ValueError("a step must be at least one second")

    def after(self, second: int) -> int | None:
        return second + self.step_s - (second - self.anchor) % self.step_s

    def until(self, second: int) -> int | None:
        return second - (second - self.anchor) % self.step_s

    def count(self, after: int, until: int, limit: int) -> int:
        steps = (until - self.anchor) // self.step_s - (after - self.anchor) // self.step_s
        return max(0, min(steps, limit))


@dataclass(frozen=True)
class Window(Over):
    """The occurrences of `series` from `first` to `last`, both included."""

    series: Series
    first: int
    last: int

    def after(self, second: int) -> int | None:
        upcoming = self.series.after(second if second >= self.first else self.first - 1)
        return None if upcoming is None or upcoming > self.last else upcoming

    def until(self, second: int) -> int | None:
        latest = self.series.until(min(second, self.last))
        return None if latest is None or latest < self.first else latest

    def dropped(self, after: int, until: int) -> Iterator[tuple[int, MovedBy]]:
        return self.series.dropped(max(after, self.first - 1), min(until, self.last))

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        return ((wall, at) for wall, at in self.series.missing(begin, end) if self.first <= at <= self.last)

    def count(self, after: int, until: int, limit: int) -> int:
        after, until = max(after, self.first - 1), min(until, self.last)
        return self.series.count(after, until, limit) if after < until else 0


@dataclass(frozen=True)
class Jittered(Over):
    """The occurrences of `series`, each delayed by 0 to `spread_s` seconds: the same for the same salt and instant.

    A delay never reaches the next occurrence, so the order stays the same, and never passes `last`, the end of the
    window.
    """

    series: Series
    spread_s: int
    salt: str
    last: int

    def after(self, second: int) -> int | None:
        begun, upcoming = self.series.until(second), self.series.after(second)
        if begun is not None and (put_off := self._put_off(begun, upcoming)) > second:
            return put_off
        return None if upcoming is None else self._put_off(upcoming, self.series.after(upcoming))

    def until(self, second: int) -> int | None:
        begun = self.series.until(second)
        if begun is None or (put_off := self._put_off(begun, self.series.after(begun))) <= second:
            return None if begun is None else put_off
        earlier = self.series.until(begun - 1)  # delayed to before `begun` at the latest
        return None if earlier is None else self._put_off(earlier, begun)

    def seconds(self, after: int, until: int) -> Iterator[int]:
        """Yields each occurrence, computed and delayed once."""
        at = self.series.until(after)
        if at is None:
            at = self.series.after(after)
        while at is not None and at <= until:
            spend(4)
            upcoming = self.series.after(at)
            put_off = self._put_off(at, upcoming)
            if after < put_off <= until:
                yield put_off
            at = upcoming

    def moved_by(self, second: int) -> MovedBy | None:
        planned = self.series.until(second)
        return None if planned is None else self.series.moved_by(planned)

    def count(self, after: int, until: int, limit: int) -> int:
        if after >= until:
            return 0
        counted = self.series.count(after, until, limit + 1) - self._pending(until) + self._pending(after)
        return max(0, min(counted, limit))

    def _pending(self, second: int) -> int:
        """Returns 1 if the latest occurrence planned at or before `second` comes after it, else 0."""
        begun = self.series.until(second)
        return 1 if begun is not None and self._put_off(begun, self.series.after(begun)) > second else 0

    def _put_off(self, second: int, upcoming: int | None) -> int:
        """Returns when an occurrence comes after its delay. upcoming: the next one."""
        room = self.last - second if upcoming is None else upcoming - second - 1
        most = min(self.spread_s, room)
        from hashlib import sha256  # noqa: PLC0415 - half of this package's import time, only for schedules with jitter

        digest = sha256(f"{self.salt}\x00{second}".encode()).digest()
        return second + (int.from_bytes(digest[:8], "big") * (most + 1) >> 64)


def count_between(rule: Rule, after: datetime, until: datetime, limit: int) -> int:
    """Returns how many occurrences lie in (after, until], at most `limit`. The cost is constant for elapsed steps.

    Raises Undecided.
    """
    if isinstance(rule, Series):
        with limited():
            return rule.count(to_second(after), to_second(until), limit)
    return len(between(rule, after, until, limit))


def between(rule: Rule, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """Returns the occurrences in (after, until], in order, at most `limit` of them."""
    instants: list[datetime] = []
    upcoming = rule.next_after(after)
    while upcoming is not None and upcoming <= until and len(instants) < limit:
        instants.append(upcoming)
        upcoming = rule.next_after(upcoming)
    return instants
