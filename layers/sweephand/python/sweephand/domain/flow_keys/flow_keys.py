"""Flow keys: what the calls of several jobs share. How often they may begin, how many at once, who waits. Pure.

A key's turnstile is one row that every call passes: it holds the places of the calls that are under way and the
instant from which the next may begin. Who may not pass joins the key's line, and is called when its turn comes
(flow_key_lines.py). (Decision 0039.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sweephand.domain.instants import EPOCH, epoch_ms
from sweephand.domain.job import Pause

MOST_PARALLEL = 100
LONGEST_PERIOD_S = 604_800
MOST_A_SECOND = 1_000
TOGETHER = timedelta(seconds=1)
"""Calls of one second may begin together: queues deliver to the second."""
NAP = timedelta(seconds=1)
"""A wait this short is slept through; a longer one is spent in the line."""
AHEAD = timedelta(seconds=60)
"""So far ahead are runs called out of the line to the instants of their turns."""
COMES_WITHIN = timedelta(seconds=20)
"""A run that was called and has not come by then has lost its message: its place is free, and it is called again."""
LOOKS_AGAIN = timedelta(seconds=60)
"""The line is looked at by its row in the next-run index at the latest after this long."""
AWAITS_BEYOND = timedelta(seconds=60)
"""A run that waits for its result keeps its place so long beyond the deadline, for what follows from its end."""


@dataclass(frozen=True)
class Rate:
    """So many calls in so many seconds, evenly spaced."""

    limit: int
    period_s: int

    @property
    def interval(self) -> timedelta:
        return timedelta(seconds=self.period_s) / self.limit


@dataclass(frozen=True)
class CircuitRule:
    """A target's circuit opens after so many consecutive failures; then one call in so many seconds tries it."""

    failures: int = 10
    probe_s: int = 5


@dataclass(frozen=True)
class Terms:
    """What a key asks of those who pass. None: no limit, no circuit."""

    rate: Rate | None = None
    parallelism: int | None = None
    circuit: CircuitRule | None = None
    paused: bool = False

    @property
    def limited(self) -> bool:
        """There is an order in which runs pass. Without, those who wait do so for a circuit only."""
        return self.rate is not None or self.parallelism is not None

    @property
    def slow(self) -> bool:
        """Each turn counts. Queues deliver to the second: a shorter one cannot be kept for its run."""
        return self.rate is not None and self.rate.interval >= TOGETHER


@dataclass(frozen=True)
class FlowKey:
    """users: jobs and collections that name it. revision: its owner's. created_by, modified_by: client ids.

    resting: the rule of a circuit that is switched off, which it has again when it is on.
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
    """What a place is held for."""

    CALLED = "c"
    """A run that was called out of the line and is on its way."""
    CALL = "w"
    """A call that is under way: never longer than the lease of its run."""
    RESULT = "r"
    """A run whose target will report its result."""


@dataclass(frozen=True)
class Place:
    until: datetime
    holds: Holds

    @property
    def comes_at(self) -> datetime:
        """The instant of the message of a run that was called."""
        return self.until - COMES_WITHIN - TOGETHER

    def lasts(self, now: datetime) -> bool:
        return self.until > now


NO_PLACE = Place(EPOCH, Holds.CALLED)


@dataclass(frozen=True)
class Turnstile:
    """turn: another one after every move, by which a move knows that none came between.

    next_at: when the next call may begin, by the rate alone. places: by run (`holder`). wake_at: when the line is
    looked at again at the latest; None: nobody waits. look_at: when a message will ask for an earlier look.

    called: the entry of the line (its order) up to which runs have been called; called_to: from which instant on turns
    are free. mark, mark_at: what these were some time ago: who stands before the mark when its turn is long over has
    lost its message. late: entries that came into the line before `called` when that had passed them, or came in vain.
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
        """Places that are taken."""
        return sum(place.lasts(now) for place in self.places.values())


def holder(uuid: str) -> str:
    """A run's name among those that hold a place: the 64 bits of its id that do not tell its instant."""
    return uuid[-17:].replace("-", "")


# Passing


class Why(StrEnum):
    """For what a run waits, in words that follow `waits for`."""

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
    """A run wants to call. until: the end of its lease. order: of its entry, if it stands in the line."""

    who: str
    until: datetime
    order: str = ""


@dataclass(frozen=True)
class Stay:
    """A run keeps its place until its result is there."""

    who: str
    until: datetime


@dataclass(frozen=True)
class Leave:
    """A run gives its place back. own: by who made the call. Nobody else knows whether a call is still under way.

    order: of the entry of a run that left the line without a call: another one has its turn.
    """

    who: str
    own: bool
    order: str = ""


@dataclass(frozen=True)
class Join:
    """A run has joined the line. again: it stood there, and came in vain."""

    who: str
    order: str
    again: bool = False


Ask = Enter | Stay | Leave | Join
Answer = Go | Wait | bool
"""bool: the line should be looked at now."""


def answer(stile: Turnstile, asks: Sequence[Ask], now: datetime) -> tuple[Turnstile, list[Answer]]:
    """What becomes of the turnstile, and of each who asks, in their order."""
    answers: list[Answer] = []
    for ask in asks:
        stile, said = _answer(stile, ask, now)
        answers.append(said)
    return stile, answers


def _answer(stile: Turnstile, ask: Ask, now: datetime) -> tuple[Turnstile, Answer]:
    match ask:
        case Enter():
            return _enter(stile, ask, now)
        case Stay(who, until):
            return with_place(stile, who, Place(until, Holds.RESULT), now), False
        case Leave():
            after = _left(stile, ask, now)
            return after, after is not stile and stile.wake_at is not None and not stile.terms.paused
        case Join():
            return _joined(stile, ask, now)


def _joined(stile: Turnstile, ask: Join, now: datetime) -> tuple[Turnstile, bool]:
    """Who was called before it said that it has joined, or has come by an older message, still has its turn."""
    first, place = stile.wake_at is None, stile.places.get(ask.who)
    after = replace(stile, wake_at=now + LOOKS_AGAIN) if first else stile
    if ask.order <= stile.called:
        if place is not None and place.holds is Holds.CALLED:
            if not ask.again or place.comes_at > now:
                return after, False
            after = _without_place(after, ask.who, now)
        if ask.order not in stile.late:
            after = replace(after, late=(*after.late, ask.order))
    return after, not stile.terms.paused and (first or _callable(stile, now))


def _left(stile: Turnstile, ask: Leave, now: datetime) -> Turnstile:
    place = stile.places.get(ask.who)
    if place is not None and (ask.own or place.holds is not Holds.CALL):
        stile = _without_place(stile, ask.who, now)
    if not stile.terms.slow or not "" < ask.order <= stile.called:
        return stile
    placed = {who: held for who, held in stile.places.items() if held.holds is not Holds.CALLED}
    return replace(empty(stile), places=placed, wake_at=stile.wake_at, look_at=stile.look_at)


def _callable(stile: Turnstile, now: datetime) -> bool:
    """Is there a place, and a turn soon, for who stands last?"""
    if stile.terms.rate is not None and stile.called_to is not None and stile.called_to > now + AHEAD:
        return False
    return has_room(stile, now)


def has_room(stile: Turnstile, now: datetime) -> bool:
    return stile.terms.parallelism is None or stile.running(now) < stile.terms.parallelism


def _enter(stile: Turnstile, ask: Enter, now: datetime) -> tuple[Turnstile, Go | Wait]:
    terms, place = stile.terms, stile.places.get(ask.who, NO_PLACE)
    if terms.paused:
        return stile, Wait(Why.PAUSED)
    has_place = place.lasts(now)
    tried_before = has_place and place.holds is not Holds.CALLED
    if tried_before and epoch_ms(place.until) == epoch_ms(ask.until):
        return stile, Go(_same_turn(stile, now))
    # A place of an earlier attempt, whose call may be under way still, need not be waited for.
    if not tried_before and terms.limited and stile.wake_at is not None and not "" < ask.order <= stile.called:
        return stile, Wait(Why.LINE)
    if not has_place and not has_room(stile, now):
        return stile, Wait(Why.PLACES)
    at = now
    if terms.rate is not None:
        next_at = stile.next_at or now
        at = max(now, next_at - TOGETHER)
        if place.holds is Holds.CALLED:
            at = max(at, place.comes_at)  # an older message of it may come at another's turn
        if at - now > NAP:
            return stile, Wait(Why.RATE)  # a place that it has been given stays its own until its turn is over
        stile = replace(stile, next_at=max(next_at, now) + terms.rate.interval)
    return with_place(stile, ask.who, Place(ask.until, Holds.CALL), now), Go(at)


def _same_turn(stile: Turnstile, now: datetime) -> datetime:
    """Of who passed in this very claim, and whose answer was lost: not before its turn, which may have been ahead."""
    if stile.terms.rate is None or stile.next_at is None:
        return now
    return max(now, stile.next_at - stile.terms.rate.interval - TOGETHER)


def with_place(stile: Turnstile, who: str, place: Place, now: datetime) -> Turnstile:
    """Without a limit of places only who was called has one, by which its turn is known."""
    if stile.terms.parallelism is None and not (place.holds is Holds.CALLED and stile.terms.slow):
        return _without_place(stile, who, now)
    return replace(stile, places={**_without_place(stile, who, now).places, who: place})


def _without_place(stile: Turnstile, who: str, now: datetime) -> Turnstile:
    """What has lapsed goes along."""
    if who not in stile.places:
        return stile
    return replace(
        stile, places={other: held for other, held in stile.places.items() if other != who and held.lasts(now)}
    )


def empty(stile: Turnstile) -> Turnstile:
    """Nobody waits any more."""
    return replace(stile, wake_at=None, called="", called_to=None, mark="", mark_at=None, look_at=None, late=())
