"""A schedule's account: compares the occurrences of its plans with the rows of the ledger. Pure.

An occurrence has its own row, or it belongs to a range: one row for many occurrences that were never sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from sweephand.base.records import dataclass
from sweephand.domain.instants import EPOCH
from sweephand.domain.occurrences import moved
from sweephand.domain.occurrences.generations import Generation, Owed, owed_between
from sweephand.domain.occurrences.misfire import Span
from sweephand.domain.occurrences.series import count_within
from sweephand.domain.run import LATE_END, Reason, Run, State

PASSES_OPEN = LATE_END + timedelta(hours=1)
"""The audit does not wait for an open run older than this.

A run that ends later than LATE_END corrects the totals itself. The extra hour covers clock differences and calls in
progress.
"""
SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Account:
    """The ledger of a schedule after `since`, up to which everything is settled.

    rows: sent occurrences by uuid. lines: ranges of occurrences that were not sent. generations: the plans that cover
    instants after `since`; the last one is in force. next_at: the schedule's next occurrence, if it waits for one.
    whole: whether all rows were read. remembered_from: rows of occurrences up to this instant may have expired.
    earlier: runs of the last day of the settled part, which newer zone data may move out of it.
    """

    since: datetime
    rows: Mapping[str, Run]
    lines: Sequence[Run]
    generations: Sequence[Generation]
    next_at: datetime | None = None
    whole: bool = True
    remembered_from: datetime = EPOCH
    earlier: Sequence[Run] = ()

    @property
    def newest(self) -> datetime:
        """Returns the latest instant that has a row or belongs to a range."""
        known = [run.planned_at for run in self.rows.values()]
        return max([self.since, self.generations[-1].began, *known, *(last_of(line) for line in self.lines)])

    def left_out(self, instant: datetime) -> bool:
        """Returns True if the instant belongs to a range."""
        return any(line.planned_at <= instant <= last_of(line) for line in self.lines)

    def owed(self, until: datetime, most: int) -> list[Owed]:
        """Returns at most `most` instants up to `until` at which the plans require an occurrence.

        Leaves out instants whose rows may have expired. Rules give all their instants. Chains of actual starts give
        only the missing links, see `_chained`.
        """
        since = max(self.since, self.remembered_from)
        by_rule = owed_between(self.generations, since, until, most)
        chained = [each for each in self._chained() if since < each.instant <= until]
        return sorted([*by_rule, *chained], key=lambda each: each.instant)[:most] if chained else by_rule

    def missing(self, until: datetime, most: int) -> list[Owed]:
        """Returns the owed instants up to `until` that have no row and belong to no range."""
        return self.without_row(self.owed(until, most))

    def without_row(self, owed: Iterable[Owed]) -> list[Owed]:
        """Returns the given instants that have no row and belong to no range.

        An occurrence that ran by earlier zone data has a row at an instant that its rule does not contain any more. The
        row stands for the nearest one that it does.
        """
        recorded = {run.planned_at for run in self.rows.values()}
        missing = [each for each in owed if each.instant not in recorded and not self.left_out(each.instant)]
        moved_here = self._moved_here() if missing else set()
        return [each for each in missing if each.instant not in moved_here]

    def _moved_here(self) -> set[datetime]:
        """Returns the instants for which a run of another instant stands, by earlier zone data."""
        instants = set()
        for each in self.generations:
            timing = each.timing()
            own = [run.planned_at for run in (*self.rows.values(), *self.earlier) if run.generation == each.number]
            gone = [at for at in own if at != each.first and moved.is_moved(timing, at)]
            instants |= {at for at in (moved.nearest(timing, instant) for instant in gone) if at is not None}
        return instants

    def planned(self, until: datetime, most: int) -> int:
        """Counts the occurrences with since < instant <= until that were sent or are missing."""
        rows = sum(1 for run in self.rows.values() if run.planned_at <= until)
        return rows + len(self.missing(until, most))

    def forgotten(self, planned: int, until: datetime, most: int) -> Span | None:
        """Returns the occurrences whose rows have probably expired, as one span; None if there are none.

        planned: how many occurrences were sent after `since`, up to `until`. The plan decides how many there are. The
        rules give the span, and a limit, if they are known for all of that time.
        """
        last = self.remembered_from
        if self.since >= last:
            return None
        owed = owed_between(self.generations, self.since, last, most)
        gone = self.without_row(owed)
        count = planned - self.planned(until, most) if self.whole else len(gone)
        if self._gives_all(owed, most):
            count = min(count, len(gone))
        if count <= 0:
            return None
        return Span(gone[0].instant, gone[-1].instant, count) if gone else Span(self.since + SECOND, last, count)

    def _gives_all(self, owed: Sequence[Owed], most: int) -> bool:
        """Returns True if these are all instants of the plans since `since`: none is a chain, and none has expired."""
        by_rule = all(each.interval is None for each in self.generations)
        return by_rule and len(owed) < most and min(each.since for each in self.generations) <= self.since

    def miscounted(self) -> list[tuple[Run, int]]:
        """Returns the misfire ranges that count occurrences with a row of their own, each with the correct count."""
        by_number = {each.number: each for each in self.generations}
        lines = []
        for line in self.lines:
            generation = by_number.get(line.generation)
            counts_missed = line.state in (State.MISSED, State.EXPIRED) and line.reason is not Reason.RETENTION
            if not counts_missed or generation is None:
                continue
            last = last_of(line)
            own = sum(1 for run in self.rows.values() if line.planned_at <= run.planned_at <= last)
            count = count_within(generation.timing(), line.planned_at, last) - own
            if own and count != line.range_count:
                lines.append((line, count))
        return lines

    def settles_to(self, until: datetime, missing: Sequence[Owed], now: datetime) -> datetime:
        """Returns the instant up to which totals are final: before the first occurrence that is missing or open.

        An open run does not hold the instant back if it is a day old and has a wake-up: it corrects the totals when it
        ends. The instant never lies within a range, because the next audit would not read that range. It never lies
        after the last known link of a chain.
        """
        firm = [each.instant for each in missing]
        firm += [
            run.planned_at
            for run in self.rows.values()
            if not (run.finished or (run.wake_at is not None and run.planned_at < now - PASSES_OPEN))
        ]
        settled = min([until + SECOND, *firm]) - SECOND
        if self.generations[-1].interval is not None:
            links = [run.planned_at for run in self.rows.values() if run.planned_at <= settled]
            settled = max(links, default=settled + SECOND) - SECOND
        for line in sorted(self.lines, key=lambda line: line.planned_at, reverse=True):
            if line.planned_at <= settled < last_of(line):
                settled = line.planned_at - SECOND
        return settled

    def _chained(self) -> list[Owed]:
        """Returns the missing links between the known ones, for series that follow their actual starts."""
        links: list[Owed] = []
        for each in self.generations:
            if each.interval is None:
                continue
            runs = sorted((run for run in self.rows.values() if each.has(run.planned_at)), key=_planned)
            gaps = [(one, other.planned_at) for one, other in pairwise(runs)]
            if runs and self.next_at is not None and each is self.generations[-1]:
                gaps.append((runs[-1], self.next_at))
            for run, following in gaps:
                links += [Owed(instant, each.number) for instant in links_between(run, following, each.interval)]
        return links


def links_between(run: Run, following: datetime, interval: timedelta) -> list[datetime]:
    """Returns the occurrences that the chain had between a run and `following`, the next known one.

    A chain continues one interval after the run was planned, sent or started; the last two count only if they were
    late. If `following` is not a whole number of intervals after any of these instants, a link between them was itself
    late. Then only the first link is known, and only if the run was sent in time and leaves room for it: it lies one
    interval after the planned instant.
    """
    bases = [run.planned_at, run.enqueued_at, run.first_started_at or run.started_at]
    late = [base.replace(microsecond=0) for base in bases if base is not None and base >= run.planned_at]
    for base in late:
        if following > base and (following - base) % interval == timedelta(0):
            return [base + n * interval for n in range(1, (following - base) // interval)]
    in_time = run.enqueued_at is None or run.enqueued_at <= run.planned_at
    latest = max(late) + interval + SECOND
    return [run.planned_at + interval] if in_time and following > latest else []


def last_of(line: Run) -> datetime:
    return line.range_until or line.planned_at


def _planned(run: Run) -> datetime:
    return run.planned_at
