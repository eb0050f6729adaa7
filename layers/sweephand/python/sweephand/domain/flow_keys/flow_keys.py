"""Flow keys: limits that the calls of several jobs share (rate, parallelism, circuit). Pure.

A key's turnstile is one row that every call passes. It contains the places of running calls and the instant from which
the next call may begin. A run that may not pass joins the key's line and is called when its turn comes
(flow_key_lines.py). Source: decision 0039.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sweephand.base.records import dataclass
from sweephand.domain.instants import EPOCH, epoch_ms
from sweephand.domain.job import Pause

MOST_PARALLEL = 100
LONGEST_PERIOD_S = 604_800
MOST_A_SECOND = 1_000
TOGETHER = timedelta(seconds=1)
"""Calls within one second may begin together, because queues deliver to the second."""
NAP = timedelta(seconds=1)
"""The executor sleeps through waits up to this time. For longer ones the run joins the line."""
AHEAD = timedelta(seconds=60)
"""How far ahead of their turns runs are called out of the line."""
COMES_WITHIN = timedelta(seconds=20)
"""A called run that has not arrived within this time loses its place and is called again: its message may be lost."""
RECHECK_AFTER = timedelta(seconds=60)
"""The longest time between two checks of the line, by its row in the next-run index."""
AWAITS_BEYOND = timedelta(seconds=60)
"""How long after its deadline a run that waits for its result keeps its place, for the effects of its end."""


@dataclass(frozen=True)
class Rate:
    """A number of calls in a number of seconds, evenly spaced."""

    limit: int
    period_s: int

    @property
    def interval(self) -> timedelta:
        return timedelta(seconds=self.period_s) / self.limit


@dataclass(frozen=True)
class CircuitRule:
    """The rule of a circuit. It opens after consecutive failures. Then one call tests the target every probe_s."""

    failures: int = 10
    probe_s: int = 5


@dataclass(frozen=True)
class Terms:
    """The limits of a key. None: no limit, no circuit."""

    rate: Rate | None = None
    parallelism: int | None = None
    circuit: CircuitRule | None = None
    paused: bool = False

    @property
    def limited(self) -> bool:
        """Returns True if runs pass in a fixed order. Otherwise they only wait for a circuit."""
        return self.rate is not None or self.parallelism is not None

    @property
    def slow(self) -> bool:
        """Returns True if each run has its own turn: turns last at least a second, the precision of the queues."""
        return self.rate is not None and self.rate.interval >= TOGETHER


@dataclass(frozen=True)
class FlowKey:
    """A flow key. users: jobs and collections that name it. revision: raised by its owner's changes.

    created_by, modified_by: client ids. resting: the rule of a disabled circuit, used when it is enabled again.
    """

    tenant: str
    name: str
    created_at: datetime
    modified_at: datetime
    description: str | None = None
    rate: Rate | None = None
    parallelism: int | None = None
    circuit: CircuitRule | None = None
    resting: CircuitRule | None = None
    pause: Pause | None = None
    revision: int = 1
    users: int = 0
    created_by: str | None = None
    modified_by: str | None = None

    @property
    def terms(self) -> Terms:
        return Terms(self.rate, self.parallelism, self.circuit, self.pause is not None)


class Holds(StrEnum):
    """The reason why a place is taken."""

    CALLED = "c"
    """A run that was called out of the line and is expected."""
    CALL = "w"
    """A running call: never longer than the lease of its run, which a worker extends."""
    RESULT = "r"
    """A run whose target will report its result."""


@dataclass(frozen=True)
class Place:
    until: datetime
    holds: Holds

    @property
    def comes_at(self) -> datetime:
        """Returns the instant for which a called run's message was sent."""
        return self.until - COMES_WITHIN - TOGETHER

    def lasts(self, now: datetime) -> bool:
        return self.until > now


NO_PLACE = Place(EPOCH, Holds.CALLED)


@dataclass(frozen=True)
class Turnstile:
    """The row that all calls under a key pass. turn: changes with every write, for optimistic locking.

    next_at: when the next call may begin, by the rate alone. places: by run (`holder`). wake_at: when the line is
    checked at the latest; None if nobody waits. look_at: when a message will ask for an earlier check.

    called: the order of the last entry that was called. called_to: the instant from which turns are free. mark,
    mark_at: earlier values of these two. An entry before the mark whose turn is long over has lost its message. late:
    entries that joined before `called` after it had passed them, or that arrived without being let through.
    """

    tenant: str
    name: str
    terms: Terms = field(default_factory=Terms)
    turn: str = ""
    next_at: datetime | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    wake_at: datetime | None = None
    look_at: datetime | None = None
    called: str = ""
    called_to: datetime | None = None
    mark: str = ""
    mark_at: datetime | None = None
    late: tuple[str, ...] = ()

    def running(self, now: datetime) -> int:
        """Returns the number of places taken."""
        return sum(place.lasts(now) for place in self.places.values())


def holder(uuid: str) -> str:
    """Returns the name of a run as the holder of a place: the 64 bits of its id that do not encode its instant."""
    return uuid[-17:].replace("-", "")


# Passing


class Why(StrEnum):
    """The reason why a run waits, in words for people."""

    PAUSED = "it is paused"
    LINE = "others wait before it"
    PLACES = "all places are taken"
    RATE = "its rate is used up"
    CIRCUIT = "its target's circuit is open"


@dataclass(frozen=True)
class Go:
    """The call may begin at this instant, at most NAP ahead."""

    at: datetime


@dataclass(frozen=True)
class Wait:
    why: Why


@dataclass(frozen=True)
class Enter:
    """A run's request to call. until: the end of its lease. order: its entry, if it is in the line."""

    who: str
    until: datetime
    order: str = ""


@dataclass(frozen=True)
class Stay:
    """A run's request to keep its place. holds: until its result arrives, or while its call continues."""

    who: str
    until: datetime
    holds: Holds = Holds.RESULT


@dataclass(frozen=True)
class Leave:
    """A run's release of its place.

    own: whether it comes from the executor that made the call, which knows that the call has ended. order: the entry of
    a run that left the line without a call, so that another run gets its turn.
    """

    who: str
    own: bool
    order: str = ""


@dataclass(frozen=True)
class Join:
    """The news that a run has joined the line. again: whether it was called before but not let through."""

    who: str
    order: str
    again: bool = False


Ask = Enter | Stay | Leave | Join
Answer = Go | Wait | bool
"""The reply to an Ask. bool: True if the line should be checked now."""


def answer(turnstile: Turnstile, asks: Sequence[Ask], now: datetime) -> tuple[Turnstile, list[Answer]]:
    """Returns the new turnstile and the answers, in the order of the asks."""
    answers: list[Answer] = []
    for ask in asks:
        turnstile, said = _answer(turnstile, ask, now)
        answers.append(said)
    return turnstile, answers


def _answer(turnstile: Turnstile, ask: Ask, now: datetime) -> tuple[Turnstile, Answer]:
    match ask:
        case Enter():
            return _enter(turnstile, ask, now)
        case Stay(who, until, holds):
            return with_place(turnstile, who, Place(until, holds), now), False
        case Leave():
            after = _left(turnstile, ask, now)
            return after, after is not turnstile and turnstile.wake_at is not None and not turnstile.terms.paused
        case Join():
            return _joined(turnstile, ask, now)


def _joined(turnstile: Turnstile, ask: Join, now: datetime) -> tuple[Turnstile, bool]:
    """Adds an entry. A run that was called before its Join, or that arrived by an older message, keeps its turn."""
    first, place = turnstile.wake_at is None, turnstile.places.get(ask.who)
    after = replace(turnstile, wake_at=now + RECHECK_AFTER) if first else turnstile
    if ask.order <= turnstile.called:
        if place is not None and place.holds is Holds.CALLED:
            if not ask.again or place.comes_at > now:
                return after, False
            after = _without_place(after, ask.who, now)
        if ask.order not in turnstile.late:
            after = replace(after, late=(*after.late, ask.order))
    return after, not turnstile.terms.paused and (first or _callable(turnstile, now))


def _left(turnstile: Turnstile, ask: Leave, now: datetime) -> Turnstile:
    place = turnstile.places.get(ask.who)
    if place is not None and (ask.own or place.holds is not Holds.CALL):
        turnstile = _without_place(turnstile, ask.who, now)
    if not turnstile.terms.slow or not "" < ask.order <= turnstile.called:
        return turnstile
    placed = {who: held for who, held in turnstile.places.items() if held.holds is not Holds.CALLED}
    return replace(empty(turnstile), places=placed, wake_at=turnstile.wake_at, look_at=turnstile.look_at)


def _callable(turnstile: Turnstile, now: datetime) -> bool:
    """Returns True if the last entry can get a place and a turn soon."""
    if turnstile.terms.rate is not None and turnstile.called_to is not None and turnstile.called_to > now + AHEAD:
        return False
    return has_room(turnstile, now)


def has_room(turnstile: Turnstile, now: datetime) -> bool:
    return turnstile.terms.parallelism is None or turnstile.running(now) < turnstile.terms.parallelism


def _enter(turnstile: Turnstile, ask: Enter, now: datetime) -> tuple[Turnstile, Go | Wait]:
    terms, place = turnstile.terms, turnstile.places.get(ask.who, NO_PLACE)
    if terms.paused:
        return turnstile, Wait(Why.PAUSED)
    has_place = place.lasts(now)
    tried_before = has_place and place.holds is not Holds.CALLED
    if tried_before and epoch_ms(place.until) == epoch_ms(ask.until):
        return turnstile, Go(_same_turn(turnstile, now))
    # A run with a place from an earlier attempt, whose call may still be running, need not wait.
    if not tried_before and terms.limited and turnstile.wake_at is not None and not "" < ask.order <= turnstile.called:
        return turnstile, Wait(Why.LINE)
    if not has_place and not has_room(turnstile, now):
        return turnstile, Wait(Why.PLACES)
    at = now
    if terms.rate is not None:
        next_at = turnstile.next_at or now
        at = max(now, next_at - TOGETHER)
        if place.holds is Holds.CALLED:
            at = max(at, place.comes_at)  # an older message of this run may arrive during another run's turn
        if at - now > NAP:
            return turnstile, Wait(Why.RATE)  # a place that it was given stays reserved until its turn is over
        turnstile = replace(turnstile, next_at=max(next_at, now) + terms.rate.interval)
    return with_place(turnstile, ask.who, Place(ask.until, Holds.CALL), now), Go(at)


def _same_turn(turnstile: Turnstile, now: datetime) -> datetime:
    """Returns the turn of a run that passed in this claim and whose answer was lost. It may still be ahead."""
    if turnstile.terms.rate is None or turnstile.next_at is None:
        return now
    return max(now, turnstile.next_at - turnstile.terms.rate.interval - TOGETHER)


def with_place(turnstile: Turnstile, who: str, place: Place, now: datetime) -> Turnstile:
    """Returns the turnstile with a run's place. Without a limit on places, only called runs have one."""
    if turnstile.terms.parallelism is None and not (place.holds is Holds.CALLED and turnstile.terms.slow):
        return _without_place(turnstile, who, now)
    return replace(turnstile, places={**_without_place(turnstile, who, now).places, who: place})


def _without_place(turnstile: Turnstile, who: str, now: datetime) -> Turnstile:
    """Returns the turnstile without a run's place and without expired ones."""
    if who not in turnstile.places:
        return turnstile
    return replace(
        turnstile, places={other: held for other, held in turnstile.places.items() if other != who and held.lasts(now)}
    )


def empty(turnstile: Turnstile) -> Turnstile:
    """Returns the turnstile of an empty line."""
    return replace(turnstile, wake_at=None, called="", called_to=None, mark="", mark_at=None, look_at=None, late=())
