"""The instants that each generation of a schedule covers, and the change from one to the next. Pure.

The audit compares these instants with the ledger. At a change, the old plan covers its instants up to the end of the
seam, because its messages may be on their way. The new plan begins with the request. An instant of both plans is one
occurrence with one run id, and the new plan counts it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.occurrences import series
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.schedules.rule import between
from sweephand.schedules.timing import Timing, load_or_never

SECOND = timedelta(seconds=1)
TAKES_EFFECT_AFTER = timedelta(seconds=5)
"""How long messages of the old plan may still be on their way to a claim after the change was requested."""


def takes_effect(asked_at: datetime) -> datetime:
    """Returns E of a change, in whole seconds, at least five seconds after its request."""
    return from_s(epoch_s(asked_at + TAKES_EFFECT_AFTER) + 1)


@dataclass(frozen=True)
class Generation:
    """One plan of a schedule: the instants of its rule with began < instant <= through, and `first`.

    packed: read by schedules.timing.load. through: the last instant that it covers; None while it is in force. first:
    its first occurrence if the rule does not contain it (a run at once, a one-time instant a moment ago).
    """

    number: int
    packed: str
    began: datetime
    through: datetime | None = None
    first: datetime | None = None

    def timing(self) -> Timing:
        """Loads the timing. A string that cannot be read gives one without occurrences."""
        return load_or_never(self.packed)

    @property
    def since(self) -> datetime:
        """Returns an instant before everything that it covers."""
        return self.began if self.first is None else min(self.began, self.first - timedelta(seconds=1))

    @property
    def interval(self) -> timedelta | None:
        """Returns the time from a start to the next occurrence, if the series follows its actual starts."""
        seconds = self.timing().actual_start_interval_s
        return None if seconds is None else timedelta(seconds=seconds)

    def has(self, instant: datetime) -> bool:
        """Returns True if it covers this instant, provided that its rule contains it."""
        return self.began < instant and (self.through is None or instant <= self.through)

    def instants(self, since: datetime, until: datetime, most: int) -> list[datetime]:
        """Returns its instants with since < instant <= until, in order, at most `most`.

        Instants that follow from actual starts are known only from the ledger and are not returned.
        """
        timing = self.timing()
        last = until if self.through is None else min(until, self.through)
        by_rule: Iterable[datetime] = ()
        if timing.actual_start_interval_s is None:
            by_rule = between(timing.rule, max(since, self.began), last, most)
        first = [self.first] if self.first is not None and since < self.first <= last else []
        return sorted({*first, *by_rule})[:most]


def began(schedule: Schedule) -> datetime:
    """Returns the whole second after which the occurrences of the generation in force begin.

    If its first one lies within the seam, it begins before the previous generation has ended.
    """
    if schedule.first_at is not None:
        return schedule.first_at - timedelta(seconds=1)
    ended = schedule.ended_at.get(schedule.generation - 1)
    return series.before_first(schedule.created_at) if ended is None else from_s(ended)


def sent_until(schedule: Schedule) -> datetime | None:
    """Returns the instant up to which the generation in force has been sent; None if it sends nothing."""
    if schedule.state is ScheduleState.ENDING:
        return schedule.last_planned_at
    if schedule.state is ScheduleState.ACTIVE and schedule.unsent_from is not None:
        return schedule.unsent_from - timedelta(seconds=1)
    return None


def sent_after(schedule: Schedule, instant: datetime, most: int) -> list[datetime]:
    """Returns the first occurrences after an instant that were sent, at most `most`, in order."""
    until = sent_until(schedule)
    own = in_force(schedule).instants(instant, until, most) if until is not None else []
    return sorted({*own, *(each for each in schedule.still_due if each > instant)})[:most]


def in_force(schedule: Schedule) -> Generation:
    """Returns the generation in the schedule's row. If the schedule is off, `through` leaves it no instants."""
    since = began(schedule)
    through = None
    if schedule.state is ScheduleState.ENDING:
        through = schedule.last_planned_at
    elif schedule.state is not ScheduleState.ACTIVE:
        through = since
    return Generation(schedule.generation, schedule.packed, since, through, schedule.first_at)


def left_behind(schedule: Schedule, owed: Sequence[datetime], effective: datetime) -> Generation | None:
    """Returns the rest of the generation in force after a change at `effective`; None if it covers nothing.

    owed: the instants that the change itself sends for it. A completed generation is settled to its end.
    """
    if schedule.state is ScheduleState.ACTIVE:
        count = load_or_never(schedule.packed).count
        over = count is not None and bool(owed) and schedule.planned_total + len(owed) >= count
        through = owed[-1] if over else effective
    elif schedule.state is ScheduleState.ENDING:
        through = max(began(schedule), min(effective, schedule.last_planned_at or effective))
    else:
        return None
    return Generation(schedule.generation, schedule.packed, began(schedule), through, schedule.first_at)


@dataclass(frozen=True)
class Owed:
    """An instant and the generation that covers it."""

    instant: datetime
    generation: int


def owed_between(generations: Iterable[Generation], since: datetime, until: datetime, most: int) -> list[Owed]:
    """Returns the instants of all generations with since < instant <= until, in order, at most `most`.

    An instant of two generations (a one-time instant sent by both) is one occurrence of the earlier one.
    """
    numbers: dict[datetime, int] = {}
    for each in sorted(generations, key=lambda generation: generation.number):
        for instant in each.instants(since, until, most):
            numbers.setdefault(instant, each.number)
    return [Owed(instant, numbers[instant]) for instant in sorted(numbers)[:most]]


# From one plan to the next


@dataclass(frozen=True)
class Seam:
    """The time in which two plans meet. since: the new plan begins after it. until: the last second of the old plan."""

    since: datetime
    until: datetime


@dataclass(frozen=True)
class Start:
    """The start of a new plan. first_at: its first occurrence; None if it has none.

    taken_over: instants that the old plan had counted and the new one counts instead.
    """

    first_at: datetime | None
    taken_over: frozenset[datetime] = frozenset()


def counted_after(before: Schedule, old: Timing, since: datetime) -> set[datetime]:
    """Returns the instants after `since` that a schedule has sent and counted, by its plan and by earlier ones."""
    counted = {each for each in before.still_due if each > since}
    sent_to = sent_until(before)
    if sent_to is None or sent_to <= since:
        return counted
    if old.actual_start_interval_s is not None:
        return counted | _chained(before, old, since)
    if before.first_at is not None and since < before.first_at <= sent_to:
        counted.add(before.first_at)
    return counted | set(between(old.rule, max(since, began(before)), sent_to, series.MOST_AT_ONCE))


def _chained(before: Schedule, old: Timing, since: datetime) -> set[datetime]:
    """Returns the same for a series that follows its actual starts, by stepping back from its next occurrence."""
    assert old.actual_start_interval_s is not None
    step = timedelta(seconds=old.actual_start_interval_s)
    if before.state is ScheduleState.ENDING:
        last = before.last_planned_at
    else:
        last = None if before.next_run_at is None else before.next_run_at - step
    first = before.first_at or old.rule.next_after(began(before))
    counted: set[datetime] = set()
    while last is not None and first is not None and last > since and last >= first:
        counted.add(last)
        last -= step
    return counted


def start_of(
    timing: Timing, planned_total: int, counted: Collection[datetime], seam: Seam, at: datetime | None
) -> Start:
    """Returns where the new plan begins.

    planned_total: includes everything that the old plan has counted. counted: the future instants among these. at: set
    if the new plan runs at once at an instant that its rule does not contain.

    The new plan's `count` must have room for the instants already counted. A series that follows its actual starts
    must not have another plan's occurrences between its own. Otherwise the new plan begins later, at the latest after
    the seam.
    """
    for first_at in _candidates(timing, seam) if at is None else [at]:
        chain = list(_until(timing, first_at, seam.until))
        taken_over = frozenset(chain).intersection(counted)
        among = any(each > first_at for each in counted if each not in taken_over)
        if among and timing.actual_start_interval_s is not None:
            continue
        left = None if timing.count is None else timing.count - planned_total + len(taken_over)
        if left is None or taken_over.issubset(chain[: max(0, left)]):
            return Start(None) if left is not None and left <= 0 else Start(first_at, taken_over)
    return Start(None)


def _candidates(timing: Timing, seam: Seam) -> Iterator[datetime]:
    """Yields the instants of a timing within the seam, and the first one after it."""
    upcoming = timing.rule.next_after(seam.since)
    while upcoming is not None:
        yield upcoming
        if upcoming > seam.until:
            return
        upcoming = timing.rule.next_after(upcoming)


def _until(timing: Timing, first_at: datetime, until: datetime) -> Iterator[datetime]:
    """Yields the occurrences from `first_at` up to and including `until`."""
    upcoming: datetime | None = first_at
    while upcoming is not None and upcoming <= until:
        yield upcoming
        upcoming = series.following(timing, upcoming, upcoming)
