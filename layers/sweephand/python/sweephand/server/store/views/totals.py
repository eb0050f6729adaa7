"""Totals and progress of schedules, from the statistics and the runs since the audit last settled them.

However many runs there are since then, an answer reads a limited number of them, the newest ones (decision 0196).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from sweephand.base.ids import instant_ms_of, run_uuid
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import EPOCH, epoch_ms, from_ms
from sweephand.domain.job import Job
from sweephand.domain.run import APART, TERMINAL, Kind, Run
from sweephand.domain.schedule import OVER, Schedule
from sweephand.schedules.timing import load_or_never
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.table import RunItem, StatsItem
from sweephand.server.store.runs import run_rows
from sweephand.server.store.views import runs

with lazy():
    from sweephand.domain.occurrences import generations
    from sweephand.server import threads


@dataclass(frozen=True)
class Totals:
    """The totals of a schedule. planned: occurrences that were sent. ended: those that have ended.

    Each also counts the manual runs that have ended if the policy `totals` of the job is `all`. missed: skipped by the
    misfire policy before they were sent. missed_sent: skipped by the executor after they were sent. exact: whether all
    runs since the audit were counted; otherwise those before the newest ones count as ended.
    """

    planned: int = 0
    ended: int = 0
    failed: int = 0
    failed_attempts: int = 0
    skipped: int = 0
    missed: int = 0
    missed_sent: int = 0
    exact: bool = True

    @property
    def open(self) -> int:
        return max(0, self.planned - self.ended)

    @property
    def executions(self) -> int:
        """Returns how many of the ended occurrences had begun or failed, without those that were left out."""
        return self.ended - self.skipped - self.missed_sent

    @property
    def succeeded(self) -> int:
        return max(0, self.ended - self.failed - self.skipped - self.missed_sent)

    def __add__(self, other: Totals) -> Totals:
        names = [each.name for each in fields(self) if each.name != "exact"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Totals(**sums, exact=self.exact and other.exact)


def stats_of(table: Table, schedules: Iterable[Schedule]) -> dict[str, StatsItem]:
    """Returns the statistics of schedules by their ids: one read for each, a hundred in a call."""
    places = {(keys.job(each.tenant, each.job_id), keys.stats(each.id)): each.id for each in schedules}
    return {places[key]: StatsItem.from_raw_data(row) for key, row in table.batch_get(places).items()}


def of_whole_job(table: Table, job: Job) -> Totals:
    """Returns the totals of the runs that belong to no schedule of the job: manual ones. Costs one read."""
    row = table.get(StatsItem, keys.job(job.tenant, job.id), keys.stats(job.id), consistent=True)
    return Totals() if row is None else _manual(row)


def _manual(stats: StatsItem) -> Totals:
    return Totals(
        planned=stats.manual_ended,
        ended=stats.manual_ended,
        failed=stats.manual_failed,
        failed_attempts=stats.manual_failed_attempts,
    )


MOST_COUNTED = 1_000
"""Rows of one schedule that an answer reads, some 50 read units."""
MOST_AHEAD = 1_000
"""Occurrences that were sent ahead; the sweep looks ahead for less."""
OF_AN_ANSWER = 10_000
"""Rows that an answer with many schedules reads in all."""
MANY = 200
"""Schedules, the most on a page. The ledgers of more are not queried."""


@dataclass(frozen=True)
class Ledger:
    """The content of a schedule's ledger that answers show. last: the run that was planned last; None if not read."""

    totals: Totals = Totals()
    last: Run | None = None


def ledgers_of(table: Table, schedules: Sequence[Schedule], now: datetime, *, last: bool = True) -> list[Ledger]:
    """Returns the totals and, if `last`, the last runs of schedules, in order.

    Cost: the statistics, read in batches, and a query for each schedule, for up to 1,000 rows. If there are more than
    MANY schedules, their last planned runs are read in batches instead, and no others are counted.
    """
    stats = stats_of(table, schedules)
    if len(schedules) > MANY:
        rows = _last_planned(table, schedules, now) if last else {}
        return [Ledger(_estimated(each, stats.get(each.id), [], now), rows.get(each.id)) for each in schedules]
    most = min(MOST_COUNTED, OF_AN_ANSWER // max(1, len(schedules)))
    return threads.at_once(lambda each: _newest(table, each, stats.get(each.id), now, most, last=last), schedules)


def totals_of(table: Table, schedule: Schedule, stats: StatsItem | None, now: datetime) -> Totals:
    """Returns totals: the settled part from the statistics, the rest counted in the ledger. Cost: one query."""
    return _newest(table, schedule, stats, now, MOST_COUNTED, last=False).totals


def _newest(
    table: Table, schedule: Schedule, stats: StatsItem | None, now: datetime, most: int, *, last: bool
) -> Ledger:
    """Reads the newest rows of a ledger until they are settled, at most `most`. last: whether to read at least one."""
    settled = _first_unsettled(stats)
    sort = RunItem.sk.between(keys.run("") if last else settled, runs.AFTER_ANY_RUN)
    page = min(most, 2 * _unsettled(schedule, stats) + runs.LEAST_OF_EACH)
    newest: Mapping[str, Any] | None = None
    counted: list[Mapping[str, Any]] = []
    read, start, is_whole = 0, None, False
    while read < most and not is_whole:
        rows, start = table.query(
            keys.runs(schedule.tenant, schedule.id),
            sort,
            forward=False,
            limit=min(page, most - read),
            start=start,
            consistent=True,
        )
        read += len(rows)
        newest = newest or next((row for row in rows if "state" in row), None)
        counted += (row for row in rows if row["sk"]["S"] >= settled and _is_planned(row))
        is_whole = start is None or bool(newest is not None and rows and rows[-1]["sk"]["S"] < settled)
        page = most
    shown = run_rows.run_of(RunItem.from_raw_data(newest)) if last and newest is not None else None
    if is_whole:
        return Ledger(_totals(schedule, stats, sum(map(_is_ended, counted))), shown)
    return Ledger(_estimated(schedule, stats, counted, now), shown)


def _unsettled(schedule: Schedule, stats: StatsItem | None) -> int:
    """Returns how many occurrences were sent after the settled part."""
    return max(0, schedule.planned_total - (0 if stats is None else stats.settled_planned))


def _estimated(
    schedule: Schedule, stats: StatsItem | None, counted: Sequence[Mapping[str, Any]], now: datetime
) -> Totals:
    """Returns the totals if only the newest runs were counted: earlier ones count as ended.

    An occurrence that was sent ahead and has no row yet is open.
    """
    newest = from_ms(instant_ms_of(keys.parts(counted[0]["sk"]["S"])[1])) if counted else now
    ahead = len(generations.sent_after(schedule, newest, MOST_AHEAD))
    earlier = max(0, _unsettled(schedule, stats) - len(counted) - ahead)
    totals = _totals(schedule, stats, earlier + sum(map(_is_ended, counted)))
    return replace(totals, exact=earlier == 0)


def _last_planned(table: Table, schedules: Sequence[Schedule], now: datetime) -> dict[str, Run]:
    """Returns the run of the last due occurrence of each schedule, if there is one, a hundred in a call."""
    instants = {each.id: _last_instant(each, now) for each in schedules}
    places = {each.id: _place(each, at) for each in schedules if (at := instants[each.id]) is not None}
    rows = table.batch_get(places.values())
    return {
        schedule: run_rows.run_of(RunItem.from_raw_data(rows[place]))
        for schedule, place in places.items()
        if place in rows
    }


def _last_instant(schedule: Schedule, now: datetime) -> datetime | None:
    if schedule.state in OVER:
        return schedule.last_planned_at
    until = generations.sent_until(schedule) or generations.began(schedule)
    return load_or_never(schedule.packed).rule.last_until(min(until, now))


def _first_unsettled(stats: StatsItem | None) -> str:
    """Returns the place in the ledger after which ended runs are counted one by one."""
    settled_to = None if stats is None else stats.settled_to
    return keys.run("") if settled_to is None else keys.run(runs.first_uuid_after(settled_to))


def _is_planned(row: Mapping[str, Any]) -> bool:
    """Returns whether a row is a run of one planned occurrence."""
    return "state" in row and row["kind"]["S"] == Kind.SCHEDULED.value and "range_count" not in row


def _is_ended(row: Mapping[str, Any]) -> bool:
    """Returns whether a row is an ended run of a planned occurrence."""
    return _is_planned(row) and row["state"]["S"] in TERMINAL


def _totals(schedule: Schedule, stats: StatsItem | None, ended: int) -> Totals:
    """Returns the totals. ended: how many were counted after settled_to."""
    if stats is None:
        return Totals(planned=max(schedule.planned_total, ended), ended=ended)
    ended += stats.settled_total
    planned = Totals(
        # A run that a creation or change sends at once may end before the sweep counts it.
        planned=max(schedule.planned_total, ended),
        ended=ended,
        failed=stats.failed,
        failed_attempts=stats.failed_attempts,
        skipped=stats.skipped,
        missed=stats.missed,
        missed_sent=stats.missed_sent,
    )
    return planned + _manual(stats)


@dataclass(frozen=True)
class Progress:
    """The progress of a schedule. started_at: when its last execution began; None before the first."""

    totals: Totals = Totals()
    started_at: datetime | None = None


def executions_sent(table: Table, schedule: Schedule) -> int:
    """Counts the executions that were sent, open ones included, and the manual runs that have ended. Costs one read."""
    stats = stats_of(table, [schedule]).get(schedule.id)
    if stats is None:
        return schedule.planned_total
    return schedule.planned_total - stats.skipped - stats.missed_sent + stats.manual_ended


LOOKED_AT = 20
"""The most runs that are searched for the last execution; the newest ones may never have begun."""
FEW = 6
"""Runs of a schedule that are read by their keys, together with those of other schedules."""
AT_ONCE = 16


def progress_of(table: Table, schedules: Sequence[Schedule], now: datetime) -> dict[str, Progress]:
    """Returns the progress of schedules by their ids.

    Cost: one batched read of the statistics, and one of the runs of all schedules that are over or have had few runs
    since the audit. Any other schedule costs a query of its runs since then.
    """
    stats = stats_of(table, schedules)
    places = {each.id: _places(each, stats.get(each.id), now) for each in schedules}
    rows = table.batch_get((place for some in places.values() for place in some or ()), only=_READ)

    stored = {
        each.id: _from(each, stats.get(each.id), [rows.get(place) for place in own])
        for each in schedules
        if (own := places[each.id]) is not None
    }
    left = [each for each in schedules if stored.get(each.id) is None]
    more = threads.at_once(lambda each: _queried(table, each, stats.get(each.id), now), left, AT_ONCE) if left else []
    queried = {schedule.id: progress for schedule, progress in zip(left, more, strict=True)}
    return {each.id: stored.get(each.id) or queried[each.id] for each in schedules}


def _places(schedule: Schedule, stats: StatsItem | None, now: datetime) -> list[tuple[str, str]] | None:
    """Returns the keys of the due runs that are not settled, the newest first.

    Returns only the last one for a schedule that is over; None if the ledger must be queried.
    """
    ran_manually = stats is not None and (stats.manual_ended > 0 or stats.manual_failed_attempts > 0)
    if ran_manually or (schedule.next_run_at is not None and schedule.next_run_at <= now):
        return None
    unsettled = schedule.planned_total - (0 if stats is None else stats.settled_planned)
    if unsettled == 0 and schedule.state in OVER and schedule.last_planned_at is not None:
        instants = [schedule.last_planned_at]
    elif 0 <= unsettled <= FEW:
        since = EPOCH if stats is None or stats.settled_to is None else from_ms(stats.settled_to)
        instants = generations.sent_after(schedule, since, FEW + 1)
        if len(instants) != unsettled:
            return None
    else:
        return None
    return [_place(schedule, each) for each in reversed(instants) if each <= now]


def _place(schedule: Schedule, instant: datetime) -> tuple[str, str]:
    uuid = run_uuid(schedule.tenant, schedule.id, epoch_ms(instant), Kind.SCHEDULED.value)
    return keys.runs(schedule.tenant, schedule.id), keys.run(uuid)


def _from(schedule: Schedule, stats: StatsItem | None, rows: Sequence[Mapping[str, Any] | None]) -> Progress | None:
    """Returns the progress according to these runs; None if one of them does not exist, or none has begun."""
    settled = _first_unsettled(stats)
    ended, started_at = 0, None
    for row in rows:
        if row is None or "range_count" in row:
            return None
        ended += row["sk"]["S"] >= settled and _is_ended(row)
        started_at = started_at or _started_at(row)
    if started_at is None and schedule.planned_total > 0:
        return None
    return Progress(_totals(schedule, stats, ended), started_at)


def _queried(table: Table, schedule: Schedule, stats: StatsItem | None, now: datetime) -> Progress:
    """Reads the newest runs, until one is settled and the last execution is found; at most 1,000."""
    settled = _first_unsettled(stats)
    unsettled = _unsettled(schedule, stats)
    rows = table.query_all(
        keys.runs(schedule.tenant, schedule.id),
        RunItem.sk.between(keys.run(""), runs.AFTER_ANY_RUN),
        forward=False,
        limit=min(MOST_COUNTED, 2 * unsettled + runs.LEAST_OF_EACH),
        consistent=True,
        only=(RunItem.sk, *_READ),
    )
    counted: list[Mapping[str, Any]] = []
    started_at = None
    for looked_at, row in enumerate(row for row in rows if "state" in row):
        is_settled = row["sk"]["S"] < settled
        if looked_at >= MOST_COUNTED:
            return Progress(_estimated(schedule, stats, counted, now), started_at)
        if is_settled and (started_at is not None or looked_at >= LOOKED_AT):
            break
        if not is_settled and _is_planned(row):
            counted.append(row)
        started_at = started_at or _started_at(row)
    return Progress(_totals(schedule, stats, sum(map(_is_ended, counted))), started_at)


_STARTS = (RunItem.first_started_at, RunItem.started_at)
_READ = (RunItem.state, RunItem.kind, RunItem.range_count, *_STARTS)
"""The attributes of a run that show the progress of its schedule."""


def _started_at(row: Mapping[str, Any]) -> datetime | None:
    """Returns when the execution of a row began; None for other runs."""
    if row["kind"]["S"] in APART:
        return None
    return next((from_ms(int(row[each.attr_name]["N"])) for each in _STARTS if each.attr_name in row), None)
