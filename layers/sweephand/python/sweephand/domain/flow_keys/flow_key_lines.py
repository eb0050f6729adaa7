"""The line of runs that wait under a flow key: which runs are called, and when the line is checked again. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.records import dataclass
from sweephand.domain.flow_keys.flow_keys import (
    AHEAD,
    COMES_WITHIN,
    NO_PLACE,
    RECHECK_AFTER,
    TOGETHER,
    Holds,
    Place,
    Turnstile,
    has_room,
    with_place,
)

COMES_LATE = timedelta(seconds=2)
"""How long after the instant of its turn a run may arrive."""


@dataclass(frozen=True)
class Patience:
    """The limits of a run's wait: in all (until), and for its target's circuit (tries_until). None: forever."""

    until: datetime | None = None
    tries_until: datetime | None = None

    def over_at(self, at: datetime, *, shut: bool) -> datetime | None:
        """Returns when the patience ended if that is before `at`, else None.

        shut: whether the target's circuit is open.
        """
        ends = [end for end in (self.until, self.tries_until if shut else None) if end is not None]
        return min(ends) if ends and min(ends) < at else None


ENDLESS = Patience()


@dataclass(frozen=True)
class Waiting:
    """An entry of the line. order: its place in the line. target: the target whose circuit it depends on."""

    order: str
    who: str
    target: str
    patience: Patience = ENDLESS


@dataclass(frozen=True)
class Line:
    """The entries to check, each in order.

    again: late entries; entries before the mark, if its turn is long over; one entry for each target with an open
    circuit. fresh: entries after `called`. more: whether further entries follow.
    """

    again: Sequence[Waiting] = ()
    fresh: Sequence[Waiting] = ()
    more: bool = False


@dataclass(frozen=True)
class Called:
    order: str
    at: datetime


@dataclass(frozen=True)
class Calls:
    """The result of a check. check_at: when the line must be checked again, unless a message for that has been sent."""

    turnstile: Turnstile
    called: tuple[Called, ...] = ()
    check_at: datetime | None = None


def mark_is_over(turnstile: Turnstile, now: datetime) -> bool:
    """Returns True if all runs called up to the mark should have arrived."""
    return turnstile.mark_at is None or now - turnstile.mark_at > COMES_WITHIN


def call(turnstile: Turnstile, line: Line, shut: Mapping[str, datetime], now: datetime) -> Calls:
    """Returns which runs are called out of the line, and for which instants.

    shut: targets with an open circuit, and when the next call may test each of them. One run is called for each. A run
    whose patience ends before its turn is called when its patience ends. It gets neither a turn nor a place, and ends.
    """
    interval = turnstile.terms.rate.interval if turnstile.terms.rate else timedelta(0)
    turn_at = _next_turn(turnstile, now)
    tried, called_to_order = dict(shut), turnstile.called
    called: list[Called] = []
    checks = [probe_at for probe_at in shut.values() if probe_at > now]
    stopped = at_fresh = False
    done: set[str] = set()
    for n, entry in enumerate((*line.again, *line.fresh)):
        at_fresh = n >= len(line.again)
        probe_at = tried.get(entry.target)
        waits_for_probe = probe_at is not None and probe_at > now
        in_vain = _in_vain(entry, now if waits_for_probe else turn_at + COMES_LATE, probe_at, now)
        if in_vain is not None:
            called.append(in_vain)
            checks += [now + COMES_LATE] if probe_at is not None else []
        elif not waits_for_probe and not _on_its_way(turnstile, entry, now):
            held = turnstile.places.get(entry.who, NO_PLACE)
            if turn_at - now > AHEAD or not (held.lasts(now) or has_room(turnstile, now)):
                stopped = True
                break
            turnstile = with_place(turnstile, entry.who, _place_to(held, turn_at), now)
            called.append(Called(entry.order, max(now, turn_at - TOGETHER)))  # messages come up to a second late
            turn_at += interval
            if probe_at is not None and turnstile.terms.circuit is not None:
                tried[entry.target] = now + timedelta(seconds=turnstile.terms.circuit.probe_s)
                checks.append(tried[entry.target])
        called_to_order = max(called_to_order, entry.order)
        done.add(entry.order)
    check_at = now if line.more and not stopped else min(checks, default=None)
    left = tuple(entry.order for entry in line.again if entry.order in turnstile.late and entry.order not in done)
    after = replace(turnstile, called=called_to_order, called_to=turn_at, wake_at=_wake_at(turnstile, now), late=left)
    if (at_fresh or not stopped) and mark_is_over(turnstile, now):
        after = replace(after, mark=called_to_order, mark_at=turn_at)
    if check_at is None or (turnstile.look_at is not None and now < turnstile.look_at <= check_at):
        return Calls(after, tuple(called))
    return Calls(replace(after, look_at=check_at), tuple(called), check_at)


def _place_to(held: Place, turn_at: datetime) -> Place:
    """Returns the place of a called run. held: the place of an earlier attempt, whose target may still be working."""
    place = Place(turn_at + COMES_WITHIN, Holds.CALLED)
    return place if held.holds is Holds.CALLED or held.until < place.until else held


def _in_vain(entry: Waiting, comes_at: datetime, probe_at: datetime | None, now: datetime) -> Called | None:
    """Calls a run for the end of its patience, if that is soon and the run would arrive only after it."""
    over_at = entry.patience.over_at(comes_at, shut=probe_at is not None)
    if over_at is None or over_at > now + AHEAD:
        return None
    return Called(entry.order, max(now, over_at + TOGETHER))


def _next_turn(turnstile: Turnstile, now: datetime) -> datetime:
    if turnstile.terms.rate is None:
        return now
    return max(now, turnstile.next_at or now, turnstile.called_to or now)


def _on_its_way(turnstile: Turnstile, entry: Waiting, now: datetime) -> bool:
    """Returns True if a run was called and is still expected. New terms call entries after `called` again."""
    place = turnstile.places.get(entry.who, NO_PLACE)
    return entry.order <= turnstile.called and place.holds is Holds.CALLED and place.lasts(now)


def wakes(turnstile: Turnstile, now: datetime) -> bool:
    """Returns True if it is time to check the whole line: the sweep has sent its message, or is about to."""
    return turnstile.wake_at is not None and _wake_at(turnstile, now) != turnstile.wake_at


def rest(turnstile: Turnstile, now: datetime) -> Turnstile:
    """Returns the turnstile after a check that calls nobody."""
    return replace(turnstile, wake_at=_wake_at(turnstile, now))


def _wake_at(turnstile: Turnstile, now: datetime) -> datetime:
    """Returns the next wake-up of the row. It moves only if it is far off, so that few checks write to the index.

    The sweep moves it far ahead when it sends its message. Then the check brings it back.
    """
    at = turnstile.wake_at
    if at is not None and RECHECK_AFTER / 2 < at - now <= RECHECK_AFTER * 1.5:
        return at
    return now + RECHECK_AFTER
