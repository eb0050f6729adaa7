"""Which instants each plan of a schedule answers for: the audit holds them against the ledger. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sweephand.domain import series
from sweephand.domain.instants import from_s
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.schedules.timing import Timing, between, load_or_never


@dataclass(frozen=True)
class Generation:
    """One plan, by its own rule: the instants with began < instant <= through, and `first`.

    packed: what schedules.timing.load reads. through: the last instant that it answers for, None while it is in force.
    first: its first occurrence where the rule has none there (a run at once, a one-time instant a moment past).
    """

    number: int
    packed: str
    began: datetime
    through: datetime | None = None
    first: datetime | None = None

    def timing(self) -> Timing:
        """Of a text that cannot be read: without an occurrence."""
        return load_or_never(self.packed)

    @property
    def since(self) -> datetime:
        """Behind this lies all that it answers for."""
        return self.began if self.first is None else min(self.began, self.first - timedelta(seconds=1))

    @property
    def interval(self) -> timedelta | None:
        """Of a series that follows its actual starts: between a start and the next occurrence."""
        seconds = self.timing().actual_start_interval_s
        return None if seconds is None else timedelta(seconds=seconds)

    def has(self, instant: datetime) -> bool:
        """Does it answer for this instant, if its rule has it?"""
        return self.began < instant and (self.through is None or instant <= self.through)

    def instants(self, since: datetime, until: datetime, most: int) -> list[datetime]:
        """Those with since < instant <= until, in order, at most `most`.

        Instants that follow from actual starts are facts of the ledger: none is computed.
        """
        timing = self.timing()
        last = until if self.through is None else min(until, self.through)
        found: Iterable[datetime] = ()
        if timing.actual_start_interval_s is None:
            found = between(timing.rule, max(since, self.began), last, most)
        first = [self.first] if self.first is not None and since < self.first <= last else []
        return sorted({*first, *found})[:most]


def began(schedule: Schedule) -> datetime:
    """The whole second behind which the generation in force has its occurrences."""
    ended = schedule.ended_at.get(schedule.generation - 1)
    return series.before_first(schedule.created_at) if ended is None else from_s(ended)


def in_force(schedule: Schedule) -> Generation:
    """The generation that the schedule's row holds. Of one that is off, `through` leaves it nothing."""
    since = began(schedule)
    through = None
    if schedule.state is ScheduleState.ENDING:
        through = schedule.last_planned_at
    elif schedule.state is not ScheduleState.ACTIVE:
        through = since
    return Generation(schedule.generation, schedule.packed, since, through, schedule.first_at)


def left_behind(schedule: Schedule, owed: Sequence[datetime], effective: datetime) -> Generation | None:
    """What a change at `effective` leaves of the generation in force; None if that answers for nothing.

    owed: what the change itself sends for it. A completed one has been settled to its end.
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
    """An instant and the generation that answers for it."""

    instant: datetime
    generation: int


def owed_between(generations: Iterable[Generation], since: datetime, until: datetime, most: int) -> list[Owed]:
    """What all generations answer for with since < instant <= until, in order, at most `most`.

    An instant that two of them have (a one-time instant sent by both) is one occurrence: of the earlier.
    """
    found: dict[datetime, int] = {}
    for each in sorted(generations, key=lambda generation: generation.number):
        for instant in each.instants(since, until, most):
            found.setdefault(instant, each.number)
    return [Owed(instant, found[instant]) for instant in sorted(found)[:most]]
