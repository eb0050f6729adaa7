"""The instants of a schedule around now, for a picture of many schedules. A few are listed, the others counted.

Pure. All instants are whole epoch seconds, because a picture has tens of thousands of them.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.occurrences import generations, upcoming
from sweephand.domain.schedule import OVER, Schedule, ScheduleState
from sweephand.schedules.rule import Undecided, for_one, limited
from sweephand.schedules.timing import Timing

MOST = 48
"""The most instants on each side of now: one for each half hour of a day."""
COUNTED_MOST = 999
FEW = 200
"""Up to this many instants are found one by one. If there are more, they are counted slot by slot."""


class Some(NamedTuple):
    """Instants in order, and how many more there are, counted up to COUNTED_MOST."""

    seconds: list[int]
    left_out: int


NONE = Some([], 0)


def known_since(schedule: Schedule, timing: Timing, since: datetime, now: datetime) -> datetime:
    """Returns the instant from which the rule in force shows what was planned: not before the last change or pause.

    Instants that follow from actual starts are known only from the ledger.
    """
    if timing.actual_start_interval_s is not None:
        return now
    return min(now, max(since, generations.began(schedule)))


def past(schedule: Schedule, timing: Timing, since: datetime, now: datetime) -> Some:
    """Returns the latest instants of the rule in force after `since` that were sent and are due."""
    until = schedule.last_planned_at if schedule.state in OVER else generations.sent_until(schedule)
    begin = epoch_s(known_since(schedule, timing, since, now))
    if until is None or timing.actual_start_interval_s is not None:
        return NONE
    instants: list[int] = []
    left_out = 0
    with suppress(Undecided), limited():
        at = timing.rule.until(epoch_s(min(until, now)))
        while at is not None and at > begin and len(instants) < MOST:
            instants.append(at)
            at = timing.rule.until(at - 1)
        if at is not None and at > begin:
            left_out = timing.rule.count(begin, at, COUNTED_MOST)
    return Some(instants[::-1], left_out)


def planned(schedule: Schedule, timing: Timing, now: datetime, until: datetime) -> Some:
    """Returns the next instants up to `until`, as far as they are certain."""
    last = epoch_s(until)
    if by_rule_alone(schedule, timing):
        return _by_rule(timing, epoch_s(max(now, generations.began(schedule))), last)
    ahead = upcoming.ahead(schedule, timing, now, COUNTED_MOST)
    instants = [at for each in ahead if (at := epoch_s(each.instant)) <= last]
    return Some(instants[:MOST], max(0, len(instants) - MOST))


def by_rule_alone(schedule: Schedule, timing: Timing) -> bool:
    """Returns whether exactly the instants of the rule run."""
    return (
        schedule.state is ScheduleState.ACTIVE
        and timing.count is None
        and timing.actual_start_interval_s is None
        and not schedule.still_due
        and (schedule.held_from, schedule.newer_packed, schedule.first_at) == (None, None, None)
    )


def _by_rule(timing: Timing, after: int, last: int) -> Some:
    instants: list[int] = []
    left_out = 0
    with suppress(Undecided), limited():
        instants.extend(islice(timing.rule.seconds(after, last), MOST))
        if len(instants) == MOST:
            left_out = timing.rule.count(instants[-1], last, COUNTED_MOST)
    return Some(instants, left_out)


def merged(some: list[Some], *, latest: bool) -> Some:
    """Returns the instants of several schedules as one list of at most MOST.

    latest: keeps the latest, not the first.
    """
    seconds = sorted(second for each in some for second in each.seconds)
    kept = seconds[-MOST:] if latest else seconds[:MOST]
    left_out = sum(each.left_out for each in some) + len(seconds) - len(kept)
    return Some(kept, min(COUNTED_MOST, left_out))


def slots(schedule: Schedule, timing: Timing, begin: datetime, slot_s: int, count: int) -> tuple[int, ...] | None:
    """Returns how many instants lie in each of `count` slots of `slot_s` seconds from `begin` on.

    Returns None if that takes too long to compute.
    """
    second = epoch_s(begin)
    if by_rule_alone(schedule, timing):
        with suppress(Undecided), for_one(4 * 2 * FEW):
            return _slots_by_rule(timing, second, slot_s, count)
        return None
    ahead = upcoming.next_runs(schedule, timing, from_s(second - 1), COUNTED_MOST)
    counts = [0] * count
    for each in ahead.instants:
        place = (epoch_s(each) - second) // slot_s
        if place < count:
            counts[place] += 1
    return tuple(counts) if ahead.exact else None


@lru_cache(maxsize=4096)
def _slots_by_rule(timing: Timing, begin: int, slot_s: int, count: int) -> tuple[int, ...]:
    """Returns the same for a rule. It is cached, because many schedules share a rule. Raises Undecided."""
    counts = [0] * count
    last = begin + slot_s * count - 1
    if timing.rule.count(begin - 1, last, FEW + 1) <= FEW:
        for second in timing.rule.seconds(begin - 1, last):
            counts[(second - begin) // slot_s] += 1
    else:
        for place in range(count):
            first = begin + slot_s * place
            counts[place] = timing.rule.count(first - 1, first + slot_s - 1, slot_s)
    return tuple(counts)
