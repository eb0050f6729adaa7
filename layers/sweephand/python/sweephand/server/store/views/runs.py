"""Lists of runs by schedule, by job, and of those that need attention."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import chain, islice
from typing import Any, NamedTuple
from uuid import UUID

from sweephand.base.ids import first_order_at, first_uuid_at, instant_ms_of, instant_ms_of_order, order_of, range_uuid
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, epoch_s, from_ms
from sweephand.domain.run import Attempt, Kind, Run, State
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import GROWTH, LARGEST_PAGE, Table
from sweephand.server.store.dynamo.expressions import Condition
from sweephand.server.store.dynamo.table import AttemptItem, AttentionItem, Item, RunItem
from sweephand.server.store.runs import ledger, run_rows

with lazy():
    from sweephand.server import threads
    from sweephand.server.store.consumers import consumers
    from sweephand.server.store.runs import attempts, spread

AFTER_ANY_RUN = keys.run("g")
"""Run ids are hexadecimal, so this sorts after all of them."""


def planned_between(
    table: Table,
    tenant: str,
    schedule_id: str,
    after: datetime,
    until: datetime,
    *,
    page: int | None = None,
    consistent: bool = True,
) -> Iterator[Run]:
    """Yields the runs of planned occurrences with after < instant <= until, in order.

    page: how many rows are read at first, if not all may be needed.
    """
    first, last = (keys.run(first_uuid_after(epoch_ms(bound))) for bound in (after, until))
    sort = RunItem.sk.between(first, last)
    rows = table.query_all(keys.runs(tenant, schedule_id), sort, limit=page, consistent=consistent)
    yield from (run for run in _runs(rows) if run.kind is Kind.SCHEDULED)


@dataclass(frozen=True)
class Recorded:
    """The newest rows of a schedule's planned occurrences. Nothing is known about what is older than the oldest."""

    oldest: int
    newest: int
    instants: frozenset[int]
    ranges: tuple[tuple[int, int], ...]

    def has(self, second: int) -> bool:
        """Returns whether an occurrence at this epoch second has a row, as far as is known."""
        if second < self.oldest or second in self.instants:
            return True
        return any(first <= second <= last for first, last in self.ranges)


def recorded(table: Table, tenant: str, schedule_ids: Sequence[str], until: datetime, rows: int) -> dict[str, Recorded]:
    """Returns the newest rows up to `until` of each schedule that has any. rows: how many are read for all together.

    Cost: half a read unit for each five rows; five are read for each schedule in any case.
    """
    limit = max(NEWEST, min(MOST_NEWEST, rows // max(1, len(schedule_ids))))
    newest = threads.at_once(lambda owner: _newest(table, tenant, owner, until, limit), schedule_ids, AT_ONCE)
    return {owner: _recorded(runs) for owner, runs in zip(schedule_ids, newest, strict=True) if runs}


def _newest(table: Table, tenant: str, schedule_id: str, until: datetime, limit: int) -> list[Run]:
    sort = RunItem.sk.between(keys.run(""), keys.run(first_uuid_after(epoch_ms(until))))
    rows, _ = table.query(keys.runs(tenant, schedule_id), sort, forward=False, limit=limit)
    return [run for run in _runs(rows) if run.kind is Kind.SCHEDULED]


def _recorded(runs: Sequence[Run]) -> Recorded:
    instants = frozenset(epoch_s(run.planned_at) for run in runs)
    ends = [(run.planned_at, run.range_until) for run in runs]
    ranges = tuple((epoch_s(first), epoch_s(last)) for first, last in ends if last is not None)
    newest = max([*instants, *(last for _, last in ranges)])
    return Recorded(min(instants), newest, instants, ranges)


def line_over(table: Table, tenant: str, schedule_id: str, instant: datetime, *, back: int) -> Run | None:
    """Returns the ledger range that covers an instant; None if there is none. back: how many rows to read."""
    last = keys.run(first_uuid_after(epoch_ms(instant)))
    rows, _ = table.query(
        keys.runs(tenant, schedule_id),
        RunItem.sk.between(keys.run(""), last),
        forward=False,
        limit=back,
        consistent=True,
    )
    runs = (run_rows.run_of(RunItem.from_raw_data(row)) for row in rows if "range_until" in row)
    return next((run for run in runs if run.range_until is not None and run.range_until >= instant), None)


def at(table: Table, tenant: str, schedule_id: str, instant: datetime) -> list[Run]:
    """Returns the runs of a schedule planned at an instant, and the ranges that began before it and reach it.

    Cost: two queries or, among many manual runs, up to four, which read at most some 1,000 rows before the instant.
    """
    exact = between(table, tenant, schedule_id, instant, instant)
    return [*exact, *reaching(table, tenant, schedule_id, instant)]


def reaching(
    table: Table, tenant: str, owner: str, since: datetime, mark: RunMark | None = None, *, consistent: bool = True
) -> Iterator[Run]:
    """Yields the ranges that begin before an instant and reach it, latest first, after `mark`.

    Only occurrences that were on their way when a range began have rows within it. So a range that reaches further than
    the occurrence before `since` begins at most ON_THEIR_WAY before that occurrence, and the search ends there. A
    ledger without schedule has no ranges.
    """
    last = keys.run(first_uuid_after(epoch_ms(since) - 1))
    pk, sort = keys.runs(tenant, owner), RunItem.sk.between(keys.run(""), last)
    oldest_ms = 0
    for row in _few_pages(table, pk, sort, consistent=consistent):
        uuid = keys.parts(row["sk"]["S"])[1]
        if instant_ms_of(uuid) < oldest_ms or ("state" in row and "schedule" not in row):
            return
        if "range_until" in row:
            run = run_rows.run_of(RunItem.from_raw_data(row))
            if run.range_until is not None and run.range_until >= since:
                if mark is None or (uuid, owner) < mark:
                    yield run
                continue
        if row.get("kind", {}).get("S") == Kind.SCHEDULED:
            oldest_ms = max(oldest_ms, instant_ms_of(uuid) - ON_THEIR_WAY_MS)


def _few_pages(table: Table, pk: str, sort: Condition, *, consistent: bool) -> Iterator[dict[str, Any]]:
    """Yields the last rows of a partition in reverse order, as many as PAGES_BEFORE allows."""
    start = None
    for limit in PAGES_BEFORE:
        rows, start = table.query(pk, sort, forward=False, limit=limit, start=start, consistent=consistent)
        yield from rows
        if start is None:
            return


def between(table: Table, tenant: str, owner: str, since: datetime, until: datetime) -> Iterator[Run]:
    """Yields all runs of a schedule (or of a job itself) with since <= planned instant <= until, in order."""
    first, last = (keys.run(first_uuid_after(bound)) for bound in (epoch_ms(since) - 1, epoch_ms(until)))
    yield from _runs(table.query_all(keys.runs(tenant, owner), RunItem.sk.between(first, last), consistent=True))


def _runs(rows: Iterable[dict[str, Any]]) -> Iterator[Run]:
    """Yields the runs among the rows of a ledger, which has rows of attempts and edits as well."""
    return (run_rows.run_of(RunItem.from_raw_data(row)) for row in rows if "state" in row)


PAGES_BEFORE = 10, 100, 900
"""How many rows each query reads before an instant to find the range that reaches it."""
ON_THEIR_WAY_MS = 5 * 60_000
"""Longer than any sweep looks ahead."""


def first_uuid_after(instant_ms: int) -> str:
    """Returns an id that sorts after every run of this instant and before every run of the next millisecond."""
    number = f"{instant_ms + 1:012x}"
    return f"{number[:8]}-{number[8:]}"


NEWEST, MOST_NEWEST = 5, 120
"""Rows that are read to find the newest occurrence of a schedule, among its hooks and attempts."""
AT_ONCE = 16
MOST_CONSUMERS = 100
"""The rows of consumers that one query reads; further queries read the rest."""
LEAST_ROWS, ROWS_AT_ONCE = 10, 500
LEAST_OF_EACH = 2
MOST_OF_A_DAY = 500
"""How many entries of a day are looked at to find ranges."""
NO_OWNER = str(UUID(int=0))
RunMark = tuple[str, str]
"""The position in a list of runs: (uuid, owner) of the last one shown. Lists show the latest planned instant first."""


@dataclass(frozen=True)
class Passed:
    """A position from which a list can continue: of a run that was not read, or of a day that was read whole."""

    mark: RunMark


@dataclass(frozen=True)
class Span:
    """The limits of the planned instants in a list, both included; None: no limit."""

    since: datetime | None = None
    until: datetime | None = None

    def touches(self, run: Run) -> bool:
        """Returns whether a run was planned within the limits, or a range has an instant within them."""
        last = run.range_until or run.planned_at
        return (self.since is None or self.since <= last) and (self.until is None or run.planned_at <= self.until)


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
    """Yields the runs of a schedule (or of a job itself), latest planned first, after `mark`.

    Ranges that began before the span and reach it come last. page: how many are wanted.
    """
    first = keys.run("") if span.since is None else keys.run(first_uuid_after(epoch_ms(span.since) - 1))
    last, limit = AFTER_ANY_RUN, page
    if mark is not None:
        last, limit = keys.run(mark[0]), page + 1
    elif span.until is not None:
        last = keys.run(first_uuid_after(epoch_ms(span.until)))
    if first <= last:
        sort = RunItem.sk.between(first, last)
        rows = table.query_all(keys.runs(tenant, owner), sort, forward=False, limit=limit, consistent=consistent)
        yield from (run for run in _runs(rows) if mark is None or (run.uuid, owner) < mark)
    if span.since is not None:
        yield from reaching(table, tenant, owner, span.since, mark, consistent=consistent)


def with_attempts(
    table: Table, tenant: str, owner: str, until: datetime | None, wanted: int
) -> Iterator[tuple[Run, list[Attempt]]]:
    """Yields the runs of a schedule, latest planned first, each with those of its attempts that have rows, in order.

    until: the latest instant; None for no limit. wanted: how many rows the caller will probably take. Later queries
    begin with a few rows, and grow.
    """
    last = AFTER_ANY_RUN if until is None else keys.run(first_uuid_after(epoch_ms(until)))
    pk, sort = keys.runs(tenant, owner), RunItem.sk.between(keys.run(""), last)
    its_attempts: list[Attempt] = []
    start, read = None, 0
    while True:
        limit = min(max(abs(wanted - read), LEAST_ROWS), ROWS_AT_ONCE)
        rows, start = table.query(pk, sort, forward=False, limit=limit, start=start, consistent=True)
        read += len(rows)
        for row in rows:
            if "state" in row:
                yield run_rows.run_of(RunItem.from_raw_data(row)), its_attempts[::-1]
                its_attempts = []
            elif "attempt" in row:
                its_attempts.append(attempts.attempt_of(AttemptItem.from_raw_data(row)))
        if start is None:
            return


def runs_after(table: Table, tenant: str, owner: str, uuid: str, page: int) -> Iterator[Run]:
    """Yields the runs of a schedule planned after a run, earliest first. page: rows that one query reads."""
    sort = RunItem.sk.between(f"{keys.run(uuid)}~", AFTER_ANY_RUN)
    yield from _runs(table.query_all(keys.runs(tenant, owner), sort, limit=page, consistent=True))


class Brief(NamedTuple):
    """The members of a run that a count needs.

    many: whether it is a range of many occurrences. expires_s: epoch seconds.
    """

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
    """Yields briefs in the order of runs_of: far faster for counting thousands, and for half the read units.

    Runs planned before the last minutes are read from any copy of the table. after: the uuid of the run to start after;
    None for the top. wanted: how many the caller will probably take.
    """
    newest, bound = AFTER_ANY_RUN, keys.run(first_uuid_after(epoch_ms(now - SETTLING)))
    if after is not None:
        newest = keys.run(after)
    if newest > bound:
        yield from _briefs(table, tenant, owner, (bound, newest), wanted, consistent=True)
    yield from _briefs(table, tenant, owner, (keys.run(""), min(bound, newest)), wanted, consistent=False)


def _briefs(
    table: Table, tenant: str, owner: str, places: tuple[str, str], wanted: int, *, consistent: bool
) -> Iterator[Brief]:
    """Yields briefs between two places, without the later place itself.

    Rows of attempts lie among those of runs. If the first query yields too few runs, the next one asks for a few more
    only, because every row costs. If the caller drops most briefs, later queries ask for many.
    """
    pk, sort, last = keys.runs(tenant, owner), RunItem.sk.between(*places), places[1]
    only = (RunItem.sk, RunItem.state, RunItem.range_count, RunItem.expires_at)
    start, returned, limit = None, 0, wanted + 1
    while True:
        rows, start = table.query(pk, sort, forward=False, limit=limit, start=start, consistent=consistent, only=only)
        for row in rows:
            place = row["sk"]["S"]
            if "state" in row and place != last:
                returned += 1
                expires_s = int(row["expires_at"]["N"]) if "expires_at" in row else None
                yield Brief(place[len(_RUN) :], State(row["state"]["S"]), "range_count" in row, expires_s)
        if start is None:
            return
        more = wanted - returned if returned < wanted else min(limit * GROWTH, LARGEST_PAGE)
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

    Reads the newest run of each first, in parallel, because a job may have 1,000 schedules. The more schedules there
    are, the fewer rows a query reads for each.
    """
    size = size_of_each(page, len(owners))
    lists = [runs_of(table, tenant, owner, mark, size, span, consistent=consistent) for owner in owners]
    return heapq.merge(*begun(lists), key=lambda run: (run.uuid, run.schedule_id or run.job_id), reverse=True)


def size_of_each(page: int, lists: int) -> int:
    """Returns how many rows of each list are read at first for a page of all."""
    return min(page, max(LEAST_OF_EACH, 2 * page // max(1, lists)))


def begun(lists: Sequence[Iterator[Run]]) -> list[Iterator[Run]]:
    """Returns the lists with the first run of each already read."""
    firsts = threads.at_once(lambda runs: list(islice(runs, 1)), lists, AT_ONCE)
    return [chain(first, rest) for first, rest in zip(firsts, lists, strict=True)]


def attention(
    table: Table,
    tenant: str,
    since: date,
    until: datetime,
    mark: RunMark | None,
    page: int,
    owners: Container[str] | None = None,
    *,
    consistent: bool = True,
) -> Iterator[Run | Passed]:
    """Yields runs of the tenant that did not succeed or that wait, latest planned first, after `mark`.

    Cost: one query per day, or 33 for a busy one (store.runs.spread). The index sorts by the order of the runs' ids,
    which are distinct, so a page never splits equal positions. owners: only runs of these schedules (or of these jobs
    themselves). The keys of the index name the owner of a run, so rows of others are not read; their positions are
    yielded as Passed. So is the start of each day, so that a page can end among days that have no runs.
    """
    last = order_of(mark[0]) - 1 if mark else first_order_at(epoch_ms(until) + 1) - 1
    day = from_ms(instant_ms_of_order(last)).date()
    busy = spread.partitions(table, tenant)
    while day >= since:
        partition = keys.attention_day(tenant, day)
        entries = spread.entries(table, partition, busy, AttentionItem.attention_at <= last, limit=page)
        yield from _attention_runs(table, entries, page, owners, consistent=consistent)
        yield Passed((first_uuid_at(epoch_ms(datetime(day.year, day.month, day.day, tzinfo=UTC))), NO_OWNER))
        day -= timedelta(days=1)


def ranges_before(
    table: Table, tenant: str, first: date, last: date, owners: Container[str] | None = None, *, consistent: bool = True
) -> Iterator[Run]:
    """Yields the ranges of the tenant that were planned from one day to another, latest first.

    Cost: one query for each day, or 33 for a busy one, in parallel. The keys of the index name the ranges, so no other
    rows are read; at most MOST_OF_A_DAY entries of a day are looked at.
    """

    busy = spread.partitions(table, tenant)

    def of_day(back: int) -> list[dict[str, Any]]:
        partition = keys.attention_day(tenant, last - timedelta(days=back))
        entries = islice(spread.entries(table, partition, busy, limit=MOST_OF_A_DAY), MOST_OF_A_DAY)
        return [entry for entry in entries if _is_range(tenant, entry)]

    days = threads.at_once(of_day, range((last - first).days + 1), AT_ONCE)
    entries = _attention_runs(table, chain.from_iterable(days), MOST_OF_A_DAY, owners, consistent=consistent)
    yield from (each for each in entries if isinstance(each, Run))


def _is_range(tenant: str, entry: dict[str, dict[str, str]]) -> bool:
    uuid = keys.parts(entry["sk"]["S"])[1]
    return uuid == range_uuid(tenant, keys.owner_of_runs(entry["pk"]["S"]), instant_ms_of(uuid))


def held(
    table: Table,
    tenant: str,
    until: datetime,
    mark: RunMark | None,
    page: int,
    owners: Container[str] | None = None,
    *,
    consistent: bool = True,
) -> Iterator[Run | Passed]:
    """Yields the tenant's runs that are held for a consumer, as `attention` yields those of its days."""
    last = order_of(mark[0]) - 1 if mark else first_order_at(epoch_ms(until) + 1) - 1
    partitions = [
        keys.consumer_rows(tenant, each.name) for each in consumers.listed(table, tenant, None, MOST_CONSUMERS)
    ]
    busy = spread.partitions(table, tenant) if partitions else frozenset()
    lists = [_held_for(table, each, busy, last, page, owners, consistent=consistent) for each in partitions]
    return heapq.merge(*lists, key=mark_of, reverse=True)


def _held_for(
    table: Table,
    partition: str,
    busy: frozenset[str],
    last: int,
    page: int,
    owners: Container[str] | None,
    *,
    consistent: bool,
) -> Iterator[Run | Passed]:
    entries = spread.entries(table, partition, busy, AttentionItem.attention_at <= last, limit=page)
    for each in _attention_runs(table, entries, page, owners, consistent=consistent):
        if isinstance(each, Passed) or each.state is State.HELD:
            yield each


def mark_of(each: Run | Passed) -> RunMark:
    """Returns the mark from which a list continues after this row."""
    return each.mark if isinstance(each, Passed) else (each.uuid, each.schedule_id or each.job_id)


def _attention_runs(
    table: Table,
    entries: Iterator[dict[str, dict[str, str]]],
    page: int,
    owners: Container[str] | None,
    *,
    consistent: bool,
) -> Iterator[Run | Passed]:
    """Yields the runs of the index's entries, without those that have succeeded since."""
    while batch := [(entry["pk"]["S"], entry["sk"]["S"]) for entry in islice(entries, page)]:
        others = set() if owners is None else {key for key in batch if keys.owner_of_runs(key[0]) not in owners}
        rows = table.batch_get((key for key in batch if key not in others), consistent=consistent)
        for key in batch:
            if key in others:
                yield Passed((keys.parts(key[1])[1], keys.owner_of_runs(key[0])))
            if key in rows and (run := run_rows.run_of(RunItem.from_raw_data(rows[key]))).state is not State.SUCCESS:
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
