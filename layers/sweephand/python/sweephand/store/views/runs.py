"""Lists of runs by schedule, by job, and of those that need attention; totals of a schedule."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import date, datetime, timedelta
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from sweephand.domain.instants import epoch_ms, epoch_s, from_ms
from sweephand.domain.run import REACTIONS, TERMINAL, Attempt, Kind, Run, State
from sweephand.domain.schedule import Schedule
from sweephand.ids import first_order_at, instant_ms_of_order, order_of
from sweephand.lazy import lazy
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import GROWTH, LARGEST_PAGE, Table
from sweephand.store.dynamo.table import ATTENTION, AttemptItem, AttentionItem, Item, RunItem, StatsItem
from sweephand.store.runs import ledger, run_rows

with lazy():
    from sweephand.store.runs import attempts

T = TypeVar("T")
R = TypeVar("R")

AFTER_ANY_RUN = keys.run("g")
"""Run ids are hexadecimal, so this sorts after all of them."""


@dataclass(frozen=True)
class Totals:
    """The totals of a schedule. planned: occurrences that were sent. ended: those that have ended.

    Each also counts the manual runs that have ended if the policy `totals` of the job is `all`.
    missed: skipped by the misfire policy before they were sent; missed_sent: after they were sent, by the executor.
    """

    planned: int = 0
    ended: int = 0
    failed: int = 0
    failed_attempts: int = 0
    skipped: int = 0
    missed: int = 0
    missed_sent: int = 0

    @property
    def open(self) -> int:
        return max(0, self.planned - self.ended)

    @property
    def executions(self) -> int:
        """Returns how many that ended had begun or failed: not those that were left out."""
        return self.ended - self.skipped - self.missed_sent

    @property
    def succeeded(self) -> int:
        return max(0, self.ended - self.failed - self.skipped - self.missed_sent)

    def __add__(self, other: Totals) -> Totals:
        return Totals(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def stats_of(table: Table, schedules: Iterable[Schedule]) -> dict[str, StatsItem]:
    """Returns the statistics of schedules by their ids: one read for each, a hundred in a call."""
    places = {(keys.job(each.tenant, each.job_id), keys.stats(each.id)): each.id for each in schedules}
    return {places[key]: StatsItem.from_raw_data(row) for key, row in table.batch_get(places).items()}


def totals_of(table: Table, schedule: Schedule, stats: StatsItem | None) -> Totals:
    """Returns exact totals: the settled part from the statistics, the rest counted in the ledger after settled_to.

    Cost: one query over the runs since the audit last moved settled_to.
    """
    sort = RunItem.sk.between(_first_unsettled(stats), AFTER_ANY_RUN)
    rows = table.query_all(keys.runs(schedule.tenant, schedule.id), sort, consistent=True)
    return _totals(schedule, stats, sum(map(_is_ended, rows)))


def _first_unsettled(stats: StatsItem | None) -> str:
    """Returns the place in the ledger after which ended runs are counted one by one."""
    settled_to = None if stats is None else stats.settled_to
    return keys.run("") if settled_to is None else keys.run(_first_uuid_after(settled_to))


def _is_ended(row: Mapping[str, Any]) -> bool:
    """Says whether a row is an ended run of a planned occurrence."""
    return (
        row.get("state", {}).get("S") in TERMINAL
        and row["kind"]["S"] == Kind.SCHEDULED.value
        and "range_count" not in row
    )


def _totals(schedule: Schedule, stats: StatsItem | None, ended: int) -> Totals:
    """ended: counted after settled_to."""
    if stats is None:
        return Totals(planned=max(schedule.planned_total, ended), ended=ended)
    ended += stats.settled_total
    return Totals(
        # A run that a creation or change sends at once may end before the sweep counts it.
        planned=max(schedule.planned_total, ended) + stats.manual_ended,
        ended=ended + stats.manual_ended,
        failed=stats.failed + stats.manual_failed,
        failed_attempts=stats.failed_attempts + stats.manual_failed_attempts,
        skipped=stats.skipped,
        missed=stats.missed,
        missed_sent=stats.missed_sent,
    )


@dataclass(frozen=True)
class Progress:
    """How far a schedule has come. started_at: when its last execution began; None before the first."""

    totals: Totals = Totals()
    started_at: datetime | None = None


def executions_sent(table: Table, schedule: Schedule) -> int:
    """Counts the executions that were sent, open ones included, and the manual runs that have ended. Costs one read."""
    stats = stats_of(table, [schedule]).get(schedule.id)
    if stats is None:
        return schedule.planned_total
    return schedule.planned_total - stats.skipped - stats.missed_sent + stats.manual_ended


LOOKED_AT = 20
"""Runs that are searched for the last execution: those before it never began."""


def progress_of(table: Table, schedules: Sequence[Schedule], now: datetime) -> dict[str, Progress]:
    """Returns the progress of schedules by their ids.

    Cost: one batched read; and for each schedule that may have run, one query over the runs that are not settled.
    """
    stats = stats_of(table, schedules)

    def may_have_run(each: Schedule) -> bool:
        due = each.next_run_at is not None and each.next_run_at <= now
        return due or each.planned_total > 0 or each.id in stats

    asked = [each for each in schedules if may_have_run(each)]
    found = _at_once(lambda each: _progress(table, each, stats.get(each.id)), asked)
    ran = {schedule.id: progress for schedule, progress in zip(asked, found, strict=True)}
    return {each.id: ran.get(each.id, Progress()) for each in schedules}


def _progress(table: Table, schedule: Schedule, stats: StatsItem | None) -> Progress:
    """Reads the newest runs, until one is settled and the last execution is found."""
    settled = _first_unsettled(stats)
    unsettled = max(0, schedule.planned_total - (0 if stats is None else stats.settled_planned))
    rows = table.query_all(
        keys.runs(schedule.tenant, schedule.id),
        RunItem.sk.between(keys.run(""), AFTER_ANY_RUN),
        forward=False,
        limit=2 * unsettled + LEAST_OF_EACH,
        consistent=True,
        only=(RunItem.sk, RunItem.state, RunItem.kind, RunItem.range_count, *_STARTS),
    )
    ended, started_at = 0, None
    for looked_at, row in enumerate(row for row in rows if "state" in row):
        is_settled = row["sk"]["S"] < settled
        if is_settled and (started_at is not None or looked_at >= LOOKED_AT):
            break
        ended += not is_settled and _is_ended(row)
        started_at = started_at or _started_at(row)
    return Progress(_totals(schedule, stats, ended), started_at)


_STARTS = (RunItem.first_started_at, RunItem.started_at)


def _started_at(row: Mapping[str, Any]) -> datetime | None:
    """Returns when the execution of a row began; None for other runs."""
    if row["kind"]["S"] in REACTIONS:
        return None
    return next((from_ms(int(row[each.attr_name]["N"])) for each in _STARTS if each.attr_name in row), None)


def planned_between(
    table: Table, tenant: str, schedule_id: str, after: datetime, until: datetime, *, consistent: bool = True
) -> Iterator[Run]:
    """Yields the runs of planned occurrences with after < instant <= until, in order."""
    first, last = (keys.run(_first_uuid_after(epoch_ms(bound))) for bound in (after, until))
    rows = table.query_all(keys.runs(tenant, schedule_id), RunItem.sk.between(first, last), consistent=consistent)
    yield from (run for run in _runs(rows) if run.kind is Kind.SCHEDULED)


def line_over(table: Table, tenant: str, schedule_id: str, instant: datetime, *, back: int | None = None) -> Run | None:
    """Returns the line for many occurrences that covers an instant; None if there is none.

    back: rows to read, consistently; by default a few, without the very latest writes.
    """
    last = keys.run(_first_uuid_after(epoch_ms(instant)))
    rows, _ = table.query(
        keys.runs(tenant, schedule_id),
        RunItem.sk.between(keys.run(""), last),
        forward=False,
        limit=back or LOOKED_BACK,
        consistent=back is not None,
    )
    runs = (run_rows.run_of(RunItem.from_raw_data(row)) for row in rows if "range_until" in row)
    return next((run for run in runs if run.range_until is not None and run.range_until >= instant), None)


def between(table: Table, tenant: str, owner: str, since: datetime, until: datetime) -> Iterator[Run]:
    """Yields all runs of a schedule (or of a job itself) with since <= planned instant <= until, in order."""
    first, last = (keys.run(_first_uuid_after(bound)) for bound in (epoch_ms(since) - 1, epoch_ms(until)))
    yield from _runs(table.query_all(keys.runs(tenant, owner), RunItem.sk.between(first, last), consistent=True))


def _runs(rows: Iterable[dict[str, Any]]) -> Iterator[Run]:
    """Yields the runs among the rows of a ledger, which has rows of attempts and edits as well."""
    return (run_rows.run_of(RunItem.from_raw_data(row)) for row in rows if "state" in row)


LOOKED_BACK = 5
"""A line covers at most a few runs: those under way when it began."""


def _first_uuid_after(instant_ms: int) -> str:
    """Returns an id that sorts after every run of this instant and before every run of the next millisecond."""
    number = f"{instant_ms + 1:012x}"
    return f"{number[:8]}-{number[8:]}"


AT_ONCE = 16
LEAST_ROWS, ROWS_AT_ONCE = 10, 100
LEAST_OF_EACH = 2
RunMark = tuple[str, str]
"""The position in a list of runs: (uuid, owner) of the last one shown. Lists show the latest planned instant first."""


@dataclass(frozen=True)
class Passed:
    """A position in a list whose run was skipped without reading it."""

    mark: RunMark


@dataclass(frozen=True)
class Span:
    """The limits of the planned instants in a list, both included; None: no limit."""

    since: datetime | None = None
    until: datetime | None = None

    def holds(self, instant: datetime) -> bool:
        """Returns whether an instant is within the limits."""
        return (self.since is None or self.since <= instant) and (self.until is None or instant <= self.until)


ALWAYS = Span()


def runs_of(
    table: Table,
    tenant: str,
    owner: str,
    mark: RunMark | None,
    page: int,
    span: Span = ALWAYS,
    *,
    consistent: bool = True,
) -> Iterator[Run]:
    """Yields the runs of a schedule (or of a job itself), latest planned first, after `mark`. page: rows wanted."""
    first = keys.run("") if span.since is None else keys.run(_first_uuid_after(epoch_ms(span.since) - 1))
    last, limit = AFTER_ANY_RUN, page
    if mark is not None:
        last, limit = keys.run(mark[0]), page + 1
    elif span.until is not None:
        last = keys.run(_first_uuid_after(epoch_ms(span.until)))
    if last < first:
        return
    sort = RunItem.sk.between(first, last)
    rows = table.query_all(keys.runs(tenant, owner), sort, forward=False, limit=limit, consistent=consistent)
    yield from (run for run in _runs(rows) if mark is None or (run.uuid, owner) < mark)


def with_attempts(table: Table, tenant: str, owner: str, wanted: int) -> Iterator[tuple[Run, list[Attempt]]]:
    """Yields the runs of a schedule, latest planned first, each with those of its attempts that have rows, in order.

    wanted: rows that the caller will probably take. No query reads many more, or more than a page.
    """
    pk, sort = keys.runs(tenant, owner), RunItem.sk.between(keys.run(""), AFTER_ANY_RUN)
    found: list[Attempt] = []
    start = None
    while True:
        limit = min(max(wanted, LEAST_ROWS), ROWS_AT_ONCE)
        rows, start = table.query(pk, sort, forward=False, limit=limit, start=start, consistent=True)
        wanted -= len(rows)
        for row in rows:
            if "state" in row:
                yield run_rows.run_of(RunItem.from_raw_data(row)), found[::-1]
                found = []
            elif "attempt" in row:
                found.append(attempts.attempt_of(AttemptItem.from_raw_data(row)))
        if start is None:
            return


def runs_after(table: Table, tenant: str, owner: str, uuid: str, page: int) -> Iterator[Run]:
    """Yields the runs of a schedule planned after a run, earliest first. page: rows that one query reads."""
    sort = RunItem.sk.between(f"{keys.run(uuid)}~", AFTER_ANY_RUN)
    yield from _runs(table.query_all(keys.runs(tenant, owner), sort, limit=page, consistent=True))


class Brief(NamedTuple):
    """The members of a run that a count needs. many: a line for many occurrences. expires_s: epoch seconds."""

    uuid: str
    state: State
    many: bool
    expires_s: int | None

    def is_gone(self, now: datetime) -> bool:
        """Returns the same as Run.is_gone."""
        return self.expires_s is not None and self.expires_s <= epoch_s(now)


_RUN = keys.run("")
LEAST_AGAIN = 100
SETTLING = timedelta(minutes=5)
"""A row this old has reached every copy of the table; copies usually lag by a second."""


def briefs_of(table: Table, tenant: str, owner: str, after: str | None, wanted: int, now: datetime) -> Iterator[Brief]:
    """Yields briefs in the order of runs_of, far faster where thousands are counted, and for half the read units.

    Reads runs planned before the last minutes from any copy of the table. after: starts after this run's uuid; None:
    from the top. wanted: how many the caller will probably take.
    """
    newest, bound = AFTER_ANY_RUN, keys.run(_first_uuid_after(epoch_ms(now - SETTLING)))
    if after is not None:
        newest = keys.run(after)
    if newest > bound:
        yield from _briefs(table, tenant, owner, (bound, newest), wanted, consistent=True)
    yield from _briefs(table, tenant, owner, (keys.run(""), min(bound, newest)), wanted, consistent=False)


def _briefs(
    table: Table, tenant: str, owner: str, places: tuple[str, str], wanted: int, *, consistent: bool
) -> Iterator[Brief]:
    """Yields briefs between two places, without the later place itself.

    Rows of attempts lie among those of runs. If the first query yields too few runs, the next one asks for little more,
    because every row costs; if the caller drops most briefs, later queries ask for many.
    """
    pk, sort, last = keys.runs(tenant, owner), RunItem.sk.between(*places), places[1]
    only = (RunItem.sk, RunItem.state, RunItem.range_count, RunItem.expires_at)
    start, given, limit = None, 0, wanted + 1
    while True:
        rows, start = table.query(pk, sort, forward=False, limit=limit, start=start, consistent=consistent, only=only)
        for row in rows:
            place = row["sk"]["S"]
            if "state" in row and place != last:
                given += 1
                expires_s = int(row["expires_at"]["N"]) if "expires_at" in row else None
                yield Brief(place[len(_RUN) :], State(row["state"]["S"]), "range_count" in row, expires_s)
        if start is None:
            return
        more = wanted - given if given < wanted else min(limit * GROWTH, LARGEST_PAGE)
        limit = max(LEAST_AGAIN, more)


def merged_runs(
    table: Table,
    tenant: str,
    owners: Sequence[str],
    mark: RunMark | None,
    page: int,
    span: Span = ALWAYS,
    *,
    consistent: bool = True,
) -> Iterator[Run]:
    """Yields the runs of several schedules as one list.

    Reads the newest run of each first, in parallel, because a job may have 1,000 schedules. The more schedules, the
    fewer rows a query reads of each.
    """
    size = max(LEAST_OF_EACH, 2 * page // max(1, len(owners)))
    lists = [runs_of(table, tenant, owner, mark, min(page, size), span, consistent=consistent) for owner in owners]
    return heapq.merge(*_begun(lists), key=lambda run: (run.uuid, run.schedule_id or run.job_id), reverse=True)


def _begun(lists: Sequence[Iterator[Run]]) -> list[Iterator[Run]]:
    """Returns the lists with the first run of each already read."""
    firsts = _at_once(lambda runs: list(islice(runs, 1)), lists)
    return [chain(first, rest) for first, rest in zip(firsts, lists, strict=True)]


def _at_once(read: Callable[[T], R], places: Sequence[T]) -> list[R]:
    """Returns the answers to several questions, in order."""
    if len(places) < 2:
        return [read(place) for place in places]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only lists read several at once

    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(places))) as pool:
        return list(pool.map(read, places))


def attention(
    table: Table,
    tenant: str,
    since: date,
    until: datetime,
    mark: RunMark | None,
    page: int,
    owners: Container[str] | None = None,
) -> Iterator[Run | Passed]:
    """Yields runs of the tenant that did not succeed or that wait, latest planned first, after `mark`.

    Cost: one query per day. The index sorts by the order of the runs' ids, which are distinct, so a page never splits
    equal positions. owners: only runs of these schedules (or of these jobs themselves). The index's keys name the owner
    of a run, so rows of others are not read; their positions are yielded as Passed.
    """
    last = order_of(mark[0]) - 1 if mark else first_order_at(epoch_ms(until) + 1) - 1
    day = from_ms(instant_ms_of_order(last)).date()
    while day >= since:
        entries = table.query_all(
            f"{keys.tenant(tenant)}#{day.isoformat()}",
            AttentionItem.attention_at <= last,
            index=ATTENTION,
            partition=AttentionItem.attention_day,
            forward=False,
            limit=page,
        )
        yield from _attention_runs(table, entries, page, owners)
        day -= timedelta(days=1)


def _attention_runs(
    table: Table, entries: Iterator[dict[str, dict[str, str]]], page: int, owners: Container[str] | None
) -> Iterator[Run | Passed]:
    """Yields the runs of the index's entries; leaves out those that have succeeded since."""
    while batch := [(entry["pk"]["S"], entry["sk"]["S"]) for entry in islice(entries, page)]:
        others = set() if owners is None else {key for key in batch if keys.owner_of_runs(key[0]) not in owners}
        found = table.batch_get(key for key in batch if key not in others)
        for key in batch:
            if key in others:
                yield Passed((keys.parts(key[1])[1], keys.owner_of_runs(key[0])))
            if key in found and (run := run_rows.run_of(RunItem.from_raw_data(found[key]))).state is not State.SUCCESS:
                yield run


def read(table: Table, tenant: str, owner: str, uuid: str) -> Run | None:
    """Reads one run. owner: the schedule's id, or the job's for a run without a schedule."""
    return ledger.read(table, tenant, owner, uuid)


def attempts_of(table: Table, run: Run) -> list[Attempt]:
    """Returns the attempts before the last, in order."""
    first = keys.attempt(run.uuid, 0)
    rows = table.query_all(
        keys.runs(run.tenant, run.schedule_id or run.job_id),
        Item.sk.between(first, f"{keys.run(run.uuid)}#A#~"),
        consistent=True,
    )
    return [attempts.attempt_of(AttemptItem.from_raw_data(row)) for row in rows]
