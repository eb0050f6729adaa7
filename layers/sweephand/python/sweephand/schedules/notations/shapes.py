"""The inputs and outputs that all notations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.schedules.grids.wallclock import OnWallClock
from sweephand.schedules.zones.localtime import FIRST_SECOND, Gap, Overlap, Zone

if TYPE_CHECKING:
    from sweephand.base.json_schema import Schema
    from sweephand.schedules.rule import Series
    from sweephand.schedules.zones.localtime import MonthOverflow

Facts = Any
"""JSON: a string, or an object of whole numbers and strings."""
Defaults = Mapping[str, str]
"""The member of a rule, and its value if a caller states none."""


@dataclass(frozen=True)
class Rules:
    """The rules that a schedule states in addition to its notation.

    None: not stated; the notation's default applies.
    """

    zone: Zone
    gap: Gap | None = None
    overlap: Overlap | None = None
    month_overflow: MonthOverflow | None = None


@dataclass(frozen=True)
class Beginning:
    """The instants from which a series may take its anchor, in Unix seconds.

    start: the schedule's startTime, else that of its job. unread: the wall time of startTime, if the clock jumps over
    it and `start` only stands for it.
    """

    now: int
    start: int | None
    align: object = None  # the member as the caller wrote it; only `every` knows it
    unread: int | None = None

    def wall(self, where: Zone, *, fixed: bool = True) -> int:
        """Returns the wall time of the start, or the skipped one; without a start, that of now.

        fixed: False for a grid that runs through clock changes, which lies on `start` itself.
        """
        if self.start is None:
            return where.wall(self.now)
        return where.wall(self.start) if self.unread is None or not fixed else self.unread


@dataclass(frozen=True)
class Compiled:
    """A series and what is known about it. earliest: the first Unix second that counts.

    summary: makes the sentence when it is needed. interval: computes the guaranteed minimum gap between two
    occurrences, in seconds, when it is needed: elapsed, or with True on the clock of the zone; None for one instant.
    """

    series: Series
    summary: Callable[[], str]
    interval: Callable[[bool], int] | None = None
    recurring: bool = True
    earliest: int = FIRST_SECOND
    actual_start_interval_s: int | None = None


class Notation(Protocol):
    """A module of this package.

    It may also have the functions that `is_one_time`, `defaults_of`, `counted_from`, `zone_named` and `as_rfc_3339` of
    this package call.
    """

    DEFAULTS: Defaults
    """The rules that apply to the notation, as responses show them if a caller states none."""
    SCHEMA: Schema
    """The JSON Schema of the member, with its description."""

    def read(self, value: object, rules: Rules, beginning: Beginning) -> Facts:
        """Returns the facts of a caller's value. Raises InvalidRequest for anything else, whatever its JSON type."""

    def compile_(self, facts: Facts, rules: Rules) -> Compiled:
        """Returns the series of these facts. Raises LookupError, TypeError or ValueError for facts that do not fit."""


ALL_HOURS = (1 << 24) - 1
ON_THE_CLOCK: Defaults = {"dstGap": "next_valid", "dstOverlap": "first", "monthOverflow": "skip"}
"""The defaults of most notations. That of dstOverlap is `first` in all of them."""


def check_no_overflow(rules: Rules, instead: str) -> None:
    """Raises InvalidRequest if a schedule states a monthOverflow that its notation does not support."""
    if rules.month_overflow not in (None, "skip"):
        raise InvalidRequest("monthOverflow", f"acts on every, recurrence and cron, not here: {instead}")


def at_hours(
    pattern: Series,
    hours: int,
    rules: Rules,
    *,
    stepped: bool,
) -> OnWallClock:
    """Returns the wall times of a pattern in the schedule's zone. Its hours decide about clock changes (decision 0012).

    hours: mask. With all hours, each real hour counts, and nothing is lost or doubled. stepped: whether the hours are a
    step over the whole day, which loses and doubles nothing either. Otherwise the hours are fixed, and the schedule's
    rules decide.
    """
    if hours == ALL_HOURS:
        return OnWallClock(pattern, rules.zone, Gap.SKIP, Overlap.BOTH, marked=False)
    if stepped:
        return OnWallClock(pattern, rules.zone, Gap.NEXT_VALID, Overlap.FIRST)
    return OnWallClock(pattern, rules.zone, rules.gap or Gap.NEXT_VALID, rules.overlap or Overlap.FIRST)
