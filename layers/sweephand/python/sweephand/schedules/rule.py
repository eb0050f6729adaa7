"""What every schedule comes down to: a set of whole seconds that answers "next after?" and "last until?".

Rule       the two questions in datetimes: all that the rest of the service knows
Series     the same in Unix seconds, with the questions that only schedules ask; the base of all that follow
├── Once         one instant
├── Never        none
├── Steps        equal steps of elapsed time from an anchor
├── OnWallClock  a pattern of wall times in a zone (wallclock.py)
├── ByCalendars  another series, as calendars leave it (calendars.py)
├── Amended      another series, with some instants put in or taken out (sets.py)
├── Window       another series, cut to its first and last second
└── Jittered     another series, each occurrence put off by a stable hash of itself

All are frozen values: equal and hashable by content, safe to share between threads.

A question may take only so much work. Most answers follow from arithmetic. Some need a search: calendars that roll,
steps that are cut to certain days. Each step of a search spends units, and a question that has spent MOST of them ends
in Undecided. So no schedule can hold a function for long: a unit is worth about a microsecond.
"""

from __future__ import annotations

from itertools import islice
from threading import local
from typing import TYPE_CHECKING, Protocol

from sweephand.errors import InvalidRequest
from sweephand.schedules.zones.localtime import to_instant, to_second
from sweephand.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


MOST = 22_000
REASON = "takes too long to compute: use fewer calendars, or a rule whose occurrences are easier to find"


class Undecided(InvalidRequest, ValueError):
    """A question about a schedule that needs more work than one question may take.

    It is a ValueError too, because a stored schedule that cannot be computed is treated as one that cannot be read.
    """

    def __init__(self, field: str | None = None, reason: str = REASON) -> None:
        super().__init__(field, reason)


class _Purse(local):
    """left: what the question that this thread works on may still spend; below 0 while it works on none."""

    left = -1


_purse = _Purse()


def spend(units: int = 1) -> None:
    """Raises Undecided when the question has nothing left. Outside of `limited` nothing is counted."""
    left = _purse.left
    if left >= 0:
        if left < units:
            raise Undecided
        _purse.left = left - units


def left() -> int:
    """What the question may still spend; MOST outside of `limited`."""
    return MOST if _purse.left < 0 else _purse.left


class limited:  # noqa: N801 - used as a function
    """Limits what is asked inside, all of it together. Inside another one it spends from that one as well."""

    __slots__ = ("before", "begun", "most")

    def __init__(self, most: int = MOST) -> None:
        self.most = most

    def __enter__(self) -> None:
        self.before = _purse.left
        self.begun = self.most if self.before < 0 else min(self.most, self.before)
        _purse.left = self.begun

    def __exit__(self, *raised: object) -> None:
        _purse.left = self.before if self.before < 0 else self.before - (self.begun - _purse.left)


class Rule(Protocol):
    """Any set of planned instants. Hashable."""

    def next_after(self, instant: datetime) -> datetime | None:
        """The first occurrence strictly after `instant`, aware UTC, whole seconds; None when there is none up to 2199.

        instant: aware, any zone. Raises ValueError if it is naive, and Undecided, which is one too (rule.py).
        """

    def last_until(self, instant: datetime) -> datetime | None:
        """The latest occurrence at or before `instant`; None before the first. Its cost does not grow with age."""


@value
class MovedBy:
    """A rule that decided an occurrence: dstGap, dstOverlap, monthOverflow, calendar.

    local_time: the wall time it stands for; of monthOverflow on a day that does not exist, such as 31 February.
    effect: moved or skipped (dstGap), doubled or once (dstOverlap: both copies run, or this one only), else moved.
    zone: whose clock reads local_time, if it is another than the schedule's.
    """

    rule: str
    local_time: str
    effect: str
    zone: str | None = None


class Series:
    """A Rule in Unix seconds. Subclasses are frozen dataclasses and answer `after` and `until`."""

    __slots__ = ()

    def after(self, second: int) -> int | None:
        """The first occurrence strictly after `second`."""
        raise NotImplementedError

    def until(self, second: int) -> int | None:
        """The latest occurrence at or before `second`."""
        raise NotImplementedError

    def moved_by(self, second: int) -> MovedBy | None:  # noqa: ARG002 - most series know no wall clock
        """What a time rule did to the occurrence at `second`; None if nothing."""
        return None

    def dropped(self, after: int, until: int) -> Iterator[tuple[int, MovedBy]]:  # noqa: ARG002 - as above
        """(second of a clock change in (after, until], a wall time that a time rule drops there), rising."""
        return iter(())

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]:  # noqa: ARG002 - as above
        """(a wall time of [begin, end) that the clock jumps over, the occurrence that stands for it), rising."""
        return iter(())

    def only_stands_in(self, second: int) -> bool:  # noqa: ARG002 - as above
        """Whether the occurrence at `second` is there for wall times that the clock jumps over, and not for its own."""
        return False

    def count(self, after: int, until: int, limit: int) -> int:
        """How many occurrences lie in (after, until], at most `limit`."""
        return sum(1 for _ in islice(self.seconds(after, until), max(0, limit)))

    def seconds(self, after: int, until: int) -> Iterator[int]:
        """The occurrences in (after, until], rising."""
        upcoming = self.after(after)
        while upcoming is not None and upcoming <= until:
            spend(4)
            yield upcoming
            upcoming = self.after(upcoming)

    def next_after(self, instant: datetime) -> datetime | None:
        with limited():
            found = self.after(to_second(instant))
        return None if found is None else to_instant(found)

    def last_until(self, instant: datetime) -> datetime | None:
        with limited():
            found = self.until(to_second(instant))
        return None if found is None else to_instant(found)


class ByCalendars(Series):
    """The occurrences of `series` that calendars let through, some of them on another day. Subclasses: calendars.py."""

    __slots__ = ()
    series: Series

    def comes(self, second: int) -> int | None:
        """When an occurrence of the series comes after all; None: not at all."""
        raise NotImplementedError

    def stopped_by(self, second: int) -> int | None:
        """The place of the first calendar that stops this second among those of its schedule."""
        raise NotImplementedError

    def alike_until(self, second: int) -> int:
        """From `second` up to there the occurrences are those of the series; before `second` if that is not known."""
        raise NotImplementedError


class Amended(Series):
    """The occurrences of `series` with some instants put in or taken out. Subclasses: sets.py."""

    __slots__ = ()
    series: Series

    def takes_out(self, second: int) -> bool:
        """Whether this second is taken out, be it an occurrence or not."""
        raise NotImplementedError


@value
class Once(Series):
    """One instant."""

    second: int

    def after(self, second: int) -> int | None:
        return self.second if second < self.second else None

    def until(self, second: int) -> int | None:
        return self.second if second >= self.second else None


@value
class Never(Series):
    """No instant at all."""

    def after(self, second: int) -> int | None:  # noqa: ARG002 - as every series
        return None

    def until(self, second: int) -> int | None:  # noqa: ARG002 - as every series
        return None


@value
class Steps(Series):
    """anchor + k * step_s for every whole k, also below 0: elapsed seconds, so no clock change touches it."""

    anchor: int
    step_s: int

    def __post_init__(self) -> None:
        if self.step_s < 1:
            raise ValueError("a step is at least a second")

    def after(self, second: int) -> int | None:
        return second + self.step_s - (second - self.anchor) % self.step_s

    def until(self, second: int) -> int | None:
        return second - (second - self.anchor) % self.step_s

    def count(self, after: int, until: int, limit: int) -> int:
        steps = (until - self.anchor) // self.step_s - (after - self.anchor) // self.step_s
        return max(0, min(steps, limit))


@value
class Window(Series):
    """The occurrences of `series` from `first` to `last`, both included."""

    series: Series
    first: int
    last: int

    def after(self, second: int) -> int | None:
        found = self.series.after(max(second, self.first - 1))
        return None if found is None or found > self.last else found

    def until(self, second: int) -> int | None:
        found = self.series.until(min(second, self.last))
        return None if found is None or found < self.first else found

    def moved_by(self, second: int) -> MovedBy | None:
        return self.series.moved_by(second)

    def dropped(self, after: int, until: int) -> Iterator[tuple[int, MovedBy]]:
        return self.series.dropped(max(after, self.first - 1), min(until, self.last))

    def missing(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        return ((wall, at) for wall, at in self.series.missing(begin, end) if self.first <= at <= self.last)

    def only_stands_in(self, second: int) -> bool:
        return self.series.only_stands_in(second)

    def count(self, after: int, until: int, limit: int) -> int:
        after, until = max(after, self.first - 1), min(until, self.last)
        return self.series.count(after, until, limit) if after < until else 0


@value
class Jittered(Series):
    """Each occurrence of `series` put off by 0 to `spread_s` seconds, always by the same for the same salt and instant.

    Never onto or past the next occurrence, so the order stays, and never past `last`, the end of the window.
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
        earlier = self.series.until(begun - 1)  # put off to before `begun` at the latest
        return None if earlier is None else self._put_off(earlier, begun)

    def seconds(self, after: int, until: int) -> Iterator[int]:
        """Each is asked for and put off once."""
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

    def dropped(self, after: int, until: int) -> Iterator[tuple[int, MovedBy]]:
        return self.series.dropped(after, until)

    def count(self, after: int, until: int, limit: int) -> int:
        if after >= until:
            return 0
        counted = self.series.count(after, until, limit + 1) - self._pending(until) + self._pending(after)
        return max(0, min(counted, limit))

    def _pending(self, second: int) -> int:
        """1 if the latest occurrence planned at or before `second` comes after it, else 0."""
        begun = self.series.until(second)
        return 1 if begun is not None and self._put_off(begun, self.series.after(begun)) > second else 0

    def _put_off(self, second: int, upcoming: int | None) -> int:
        """Where an occurrence comes. upcoming: the one behind it."""
        room = self.last - second if upcoming is None else upcoming - second - 1
        most = min(self.spread_s, room)
        from hashlib import sha256  # noqa: PLC0415 - half of this package's import, for schedules with jitter alone

        digest = sha256(f"{self.salt}\x00{second}".encode()).digest()
        return second + (int.from_bytes(digest[:8], "big") * (most + 1) >> 64)


def count_between(rule: Rule, after: datetime, until: datetime, limit: int) -> int:
    """How many occurrences lie in (after, until], at most `limit`. Constant cost for steps of elapsed time.

    Raises Undecided.
    """
    if isinstance(rule, Series):
        with limited():
            return rule.count(to_second(after), to_second(until), limit)
    return len(between(rule, after, until, limit))


def between(rule: Rule, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """The occurrences in (after, until], rising, at most `limit` of them."""
    found: list[datetime] = []
    upcoming = rule.next_after(after)
    while upcoming is not None and upcoming <= until and len(found) < limit:
        found.append(upcoming)
        upcoming = rule.next_after(upcoming)
    return found
