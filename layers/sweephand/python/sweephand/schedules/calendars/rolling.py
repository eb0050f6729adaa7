"""Occurrences that calendars stop, and that come on another day instead.

Their new day is computed from the days that are free, not searched among the occurrences: only the day after a stop
(or before it, when rolling back) can receive any. Each time of such a day receives the occurrences at that time of the
days before it, as far back as the time is stopped on every day. So a search looks at one stretch of the calendars after
another, and only at the stopped days of each, at most MOST_ROLLED_DAYS.
"""

from __future__ import annotations

from sweephand.base.records import dataclass
from sweephand.schedules.grids import day_masks
from sweephand.schedules.grids.coverage import DAY_S, Stretches, agreed, nearest
from sweephand.schedules.rule import ByCalendars, MovedBy, Series, spend
from sweephand.schedules.zones.localtime import LAST_SECOND, Zone, wall_text

MOST_ROLLED_DAYS = 62
"""An occurrence that finds no free day within this many days is left out."""
RULE = "calendar"
_NEAR = 2 * DAY_S
"""More than any clock jumps."""
_FAR = 1 << 38
"""Beyond the horizon."""
_REACH = (MOST_ROLLED_DAYS + 2) * DAY_S
"""No occurrence moves further than this, whatever the clock did in between."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One calendar as a schedule uses it."""

    times: Stretches
    include: bool
    rolls: bool

    def stops(self, second: int) -> bool:
        return self.times.find(second, self.include, 1) != second


@dataclass(frozen=True, slots=True)
class Filter:
    """All calendars of a schedule.

    open: the stretches in which they ever let anything through. reach: the stretches in which occurrences may come.
    Both are computed by reach.py; None if not known.
    """

    stops: tuple[Stop, ...]
    open: Stretches | None = None
    reach: Stretches | None = None

    def lets(self, second: int) -> bool:
        """Returns whether none of the calendars stops this second."""
        return not any(each.stops(second) for each in self.stops)

    def near(self, second: int, step: int) -> int | None:
        """Returns the first second from `second` on at which no calendar stops and an occurrence may come."""
        if self.reach is None:
            return self.free(second, step)
        within = self.reach.find(second, True, step)
        return None if within is None else self.free(within, step)

    def free(self, second: int, step: int) -> int | None:
        """Returns the first second from `second` on that none of the calendars stops."""
        free = [(each.times, each.include) for each in self.stops]
        return agreed(free if self.open is None else [(self.open, True), *free], second, step)

    def stopped(self, second: int, step: int = 1) -> int | None:
        """Returns the first second from `second` on that one of the calendars stops."""
        return nearest((each.times.find(second, not each.include, step) for each in self.stops), step)

    def rolls(self, second: int) -> bool:
        """Returns whether all calendars that stop this second roll."""
        return all(each.rolls for each in self.stops if each.stops(second))

    def rolling(self, second: int, step: int, last: int) -> int | None:
        """Returns the first second from `second` to `last` that is stopped, and only by calendars that roll."""
        firm = [(each.times, each.include) for each in self.stops if not each.rolls]
        while True:
            passed = agreed(firm, second, step)
            if passed is None or (passed - last) * step > 0:
                return None
            stopped = (each.times.find(passed, not each.include, step) for each in self.stops if each.rolls)
            free = nearest(stopped, step)
            if free is None or free == passed:
                return free
            second = free

    def first(self, second: int) -> int | None:
        """Returns the index of the first calendar that stops this second."""
        return next((n for n, each in enumerate(self.stops) if each.stops(second)), None)


@dataclass(frozen=True, slots=True)
class Rolled(ByCalendars):
    """The occurrences of `series` that the calendars let through, and those that they move to another day.

    An occurrence that only rolling calendars stop comes at its time of the day on another day. step: 1 for a later
    day, -1 for an earlier one.
    """

    series: Series
    filter: Filter
    zone: Zone
    step: int

    def after(self, second: int) -> int | None:
        return self._first(second + 1, 1)

    def until(self, second: int) -> int | None:
        return self._first(second, -1)

    def _first(self, second: int, way: int) -> int | None:
        """Returns the first occurrence from `second` on. Looks at one free stretch after another."""
        looked = _Stretch(self.filter)
        at: int | None = second
        while True:
            spend(10)
            near = None if at is None else self.filter.near(at, way)
            if near is None:
                return None
            stop = self.filter.stopped(near, way)
            far = way * _FAR if stop is None else stop
            own = self.series.after(near - 1) if way > 0 else self.series.until(near)
            if own is not None and (far - own) * way <= 0:
                own = None
            end = far if own is None else own
            moved = self._moved(near, end, 1, looked) if way > 0 else self._moved(end + 1, near + 1, -1, looked)
            if moved is not None:
                return moved[0]
            if own is not None or stop is None:
                return own
            at = self._onward(far, way)

    def comes(self, second: int) -> int | None:
        return min(self._places(second), default=None)

    def _comings(self, second: int) -> list[int]:
        """Returns the instants at which a stopped occurrence comes.

        If it stands for times in a gap of the clock, each of those times comes at its own time of the day.
        """
        if not self.filter.rolls(second):
            return []
        wall = self.zone.wall(second)
        walls = [] if self.series.only_stands_in(second) else [wall]
        walls += [missing for missing, at in self.series.missing(wall - _NEAR, wall) if at == second]
        return [place for each in walls if (place := self._on_free_day(each)) is not None]

    def _places(self, second: int) -> list[int]:
        """Returns the instants at which an occurrence comes, whether it is stopped or not."""
        return [second] if self.filter.lets(second) else self._comings(second)

    def _on_free_day(self, wall: int) -> int | None:
        """Returns the instant of a wall time on the nearest other day on which it is free; None if there is none."""
        day, time = divmod(wall, DAY_S)
        on = day + self.step
        while abs(on - day) <= MOST_ROLLED_DAYS:
            spend(5)
            at = self._at(on * DAY_S + time)
            free = self.filter.free(at, self.step)
            if free is None or free == at:
                return free
            reached = self.zone.wall(free) // DAY_S
            on = reached if (reached - on) * self.step > 0 else on + self.step
        return None

    def stopped_by(self, second: int) -> int | None:
        return self.filter.first(second)

    def alike_until(self, second: int) -> int:
        """Returns an end before any moved occurrence: these come only within a day of a stop, by the wall clock."""
        stopped, earlier = self.filter.stopped(second), self.filter.stopped(second, -1)
        if self.step > 0 and earlier is not None and second <= earlier + _NEAR:
            return second - 1
        end = LAST_SECOND if stopped is None else stopped - 1
        return end if self.step > 0 or stopped is None else max(second - 1, end - _NEAR)

    def moved_by(self, second: int) -> MovedBy | None:
        if not self.filter.lets(second):
            return None
        if self.series.until(second) == second:
            return self.series.moved_by(second)
        moved = self._moved(second, second + 1, 1, _Stretch(self.filter))
        return None if moved is None else MovedBy(RULE, wall_text(moved[1]), "moved")

    # Occurrences that move to a free stretch

    def _moved(self, begin: int, end: int, way: int, stopped: _Stretch) -> tuple[int, int] | None:
        """Returns the first second of [begin, end) to which a stopped occurrence moves, and its former wall time.

        With way -1, returns the last such second. The stretch is free.
        """
        walls = [(self._wall(begin), self._wall(end))]
        edge = walls[0][0] if self.step > 0 else walls[0][1] - _NEAR  # of stopped occurrences
        best: tuple[int, int] | None = None
        near = _FAR * self.step  # no occurrence lies between it and the days that were looked at
        reached = _FAR
        for days in range(1, MOST_ROLLED_DAYS + 1):
            walls = [(low, high) for low, high in walls if low < high]
            if not walls:
                break
            spend(10)
            shift = -self.step * days * DAY_S
            first, past = self._at(walls[0][0] + shift), self._past(walls[-1][1] + shift)
            if (near >= first or past > reached) if self.step > 0 else (near < past):
                candidate = self.series.until(past - 1) if self.step > 0 else self.series.after(first - 1)
                if candidate is None:
                    break
                near, reached = candidate, past
            if first <= near < past:
                source = self._source(walls, shift, way, edge)
                if source is not None:
                    wall = source - shift
                    best = self._at(wall), source
                    walls = [(low, min(high, wall)) if way > 0 else (max(low, wall + 1), high) for low, high in walls]
            walls = self._still_stopped(walls, shift, stopped)
        return best

    def _source(self, walls: list[tuple[int, int]], shift: int, way: int, edge: int) -> int | None:
        """Returns the first wall time (way -1: the last), moved by `shift`, at which an occurrence rolls."""
        for target, target_end in walls[::way]:
            low, high = target + shift, target_end + shift
            source = self._read(low, high, way)
            begin, end = (low, min(high, edge)) if self.step > 0 else (max(low, edge), high)
            if begin < end and self.zone.piece(begin - _NEAR) != self.zone.piece(end + _NEAR):
                rolling = (wall for wall, at in self.series.missing(begin, end) if self.filter.rolling(at, 1, at) == at)
                source = nearest((source, *rolling), way)
            if source is not None:
                return source
        return None

    def _read(self, low: int, high: int, way: int) -> int | None:
        """Returns the first wall time of [low, high) (way -1: the last) at which an occurrence rolls."""
        first, last = self._at(low), self._end(high) - 1
        plain = self.zone.piece(first - _NEAR) == self.zone.piece(last)
        best: int | None = None
        candidate = self.series.after(first - 1) if way > 0 else self.series.until(last)
        while candidate is not None and first <= candidate <= last:
            spend(10)
            rolling = self.filter.rolling(candidate, way, last if way > 0 else first)
            if rolling is None:
                break
            if rolling == candidate:
                wall = self.zone.wall(candidate)
                own = low <= wall < high and (plain or not self.series.only_stands_in(candidate))
                if own and (best is None or (wall - best) * way < 0):
                    best = wall
                if plain and best is not None:
                    break
                rolling += way
            candidate = self.series.after(rolling - 1) if way > 0 else self.series.until(rolling)
        return best

    def _still_stopped(self, walls: list[tuple[int, int]], shift: int, stopped: _Stretch) -> list[tuple[int, int]]:
        """Returns the wall times that are still stopped on the day that `shift` moves them to."""
        left = []
        for low, high in walls:
            at, last = self._at(low + shift), self._at(high - 1 + shift)
            while at <= last:
                begin, end = stopped.around(at)
                if begin > last:
                    break
                left.append((max(low, self._wall(begin) - shift), min(high, self._wall(end) - shift)))
                at = end
        return [(low, high) for low, high in left if low < high]

    def _onward(self, edge: int, way: int) -> int | None:
        """Returns the first second from `edge` on, in the direction `way`, at which an occurrence may come.

        If occurrences are few, the last two before the edge, or the next two, are known.
        """
        rolls_on = way == self.step
        near = self._three(edge - way, -way) if rolls_on else self._three(edge, way)
        if len(near) == 3 and abs(near[2] - edge) <= _REACH:
            return edge if rolls_on else nearest((edge, near[0] - way * _REACH), -way)
        near_edge = (each for each in near[:2] if not rolls_on or abs(each - edge) <= _REACH)
        candidates: list[int | None] = [at for each in near_edge for at in self._places(each)]
        if rolls_on:
            candidates.append(self.series.toward(edge, way))
        elif len(near) == 3:
            candidates.append(near[2] - way * _REACH)
        return nearest((each for each in candidates if each is not None and (each - edge) * way >= 0), way)

    def _three(self, second: int, way: int) -> list[int]:
        """Returns the first three occurrences of the series from `second` on."""
        instants: list[int] = []
        at = self.series.toward(second, way)
        while at is not None and len(instants) < 3:
            instants.append(at)
            at = self.series.toward(at + way, way)
        return instants

    # Wall times as instants, in order: the first of two; the end of the gap if there is none

    def _at(self, wall: int) -> int:
        piece = self.zone.piece(wall - _NEAR)
        if wall + _NEAR < self.zone.ends[piece]:
            return wall - self.zone.offsets[piece]
        instants = self.zone.instants(wall)
        return instants[0] if instants else self.zone.around_gap(wall)[0]

    def _end(self, wall: int) -> int:
        """Returns the first second after all at which the clock reads less than `wall`."""
        piece = self.zone.piece(wall - _NEAR)
        if wall + _NEAR < self.zone.ends[piece]:
            return wall - self.zone.offsets[piece]
        instants = self.zone.instants(wall - 1)
        return instants[-1] + 1 if instants else self.zone.around_gap(wall - 1)[0]

    def _past(self, wall: int) -> int:
        """Returns the same for all times of the rule before `wall`. Times in a gap come up to its length later."""
        piece = self.zone.piece(wall - _NEAR)
        if wall + _NEAR < self.zone.ends[piece]:
            return wall - self.zone.offsets[piece]
        end = self._end(wall)
        piece = self.zone.piece(end)
        return max(end, self.zone.starts[piece] + self.zone.jump(piece))

    def _wall(self, second: int) -> int:
        """Returns the first wall time whose instant is `second` or later."""
        piece = self.zone.piece(second)
        wall, jump = second + self.zone.offsets[piece], self.zone.jump(piece)
        before = wall - jump
        if jump < 0:  # a wall time that comes twice stands for its first instant
            return max(wall, self.zone.starts[piece] + self.zone.offsets[piece - 1])
        return before if jump > 0 and second == self.zone.starts[piece] else wall


def rolled_days(series: Series, by: Zone, step: int) -> int:
    """Returns the days (day_masks.py), on the clock of `by`, on which an occurrence may come when rolling by `step`.

    step: 0 if it does not roll.
    """
    days = day_masks.of_series(series, by)
    most = MOST_ROLLED_DAYS + 2  # a change of the clock may lie on the way
    return day_masks.widened(days, most if step < 0 else 0, most if step > 0 else 0) if step else days


class _Stretch:
    """The stopped stretches of a filter. Keeps the last answer, because the days of one search often share it."""

    __slots__ = ("begin", "end", "filter")

    def __init__(self, through: Filter) -> None:
        self.filter = through
        self.begin = self.end = 0

    def around(self, second: int) -> tuple[int, int]:
        """Returns (beginning, end) of the stopped stretch that contains `second`, or of the first one after it."""
        if not self.begin <= second < self.end:
            begin = self.filter.stopped(second)
            if begin is None:
                return 4 * _FAR, 4 * _FAR
            if begin == second:
                last_free = self.filter.free(second, -1)
                begin = -4 * _FAR if last_free is None else last_free + 1
            end = self.filter.free(max(second, begin), 1)
            self.begin, self.end = begin, 4 * _FAR if end is None else end
        return self.begin, self.end
