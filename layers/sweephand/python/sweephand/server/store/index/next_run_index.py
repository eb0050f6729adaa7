"""The next-run index: queries for due rows, and the batched conditional advance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, SupportsInt

from sweephand.base.errors import Unavailable
from sweephand.base.ids import shard_of
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import Schedule, ScheduleState, names_zone
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Table
from sweephand.server.store.dynamo.flat_models import SECONDS, Codec
from sweephand.server.store.dynamo.table import CATALOGUE, NEXT_RUN, CatalogueItem, WaitingItem

with lazy():
    from sweephand.domain.occurrences import moved

BATCH_MOST = 25
PAGE = 800
"""Rows that one query reads: groups for all threads of a sweep."""


@dataclass(frozen=True)
class WaitingRow:
    """A row of the index. sweep: packed, not yet read. next_run_at: as in the index, which may lag.

    shard: None for a schedule's row that was not read from the index.
    """

    pk: str
    sk: str
    next_run_at: datetime
    sweep: str
    generation: int = 0
    planned_total: int = 0
    shard: int | None = None

    @classmethod
    def of(cls, schedule: Schedule, sweep: str) -> WaitingRow:
        """Returns a waiting schedule as the sweeper sees it. sweep: its packed text."""
        assert schedule.next_run_at is not None
        return cls(
            pk=keys.job(schedule.tenant, schedule.job_id),
            sk=keys.schedule(schedule.id),
            next_run_at=schedule.next_run_at,
            sweep=sweep,
            generation=schedule.generation,
            planned_total=schedule.planned_total,
        )

    @property
    def tenant(self) -> str:
        return keys.parts(self.pk)[1]

    @property
    def owner(self) -> str:
        """Returns the job's id for a schedule's row; the schedule's or the job's id for a run's row."""
        return keys.parts(self.pk)[3]

    @property
    def own_id(self) -> str:
        return keys.parts(self.sk)[1]


_ROWS = Codec(WaitingRow, WaitingItem, {"next_run_at": SECONDS})


def due(
    table: Table, shard: int, since: datetime | None, until: datetime, start: Mapping[str, Any] | None = None
) -> Iterator[list[WaitingRow]]:
    """Yields the shard's rows in pages, earliest first, from `since` (None: the beginning) to `until`, both included.

    start: the key to continue after, which must lie between the two.
    """
    while True:
        rows, start = _page(table, shard, since, until, start)
        if rows:
            yield rows
        if start is None:
            return


def key_of(row: WaitingRow) -> dict[str, Any]:
    """Returns the key of a row that was read from the index, after which `due` can continue."""
    own = {"pk": {"S": row.pk}, "sk": {"S": row.sk}}
    return {**own, "shard": {"N": str(row.shard)}, "next_run_at": {"N": str(epoch_s(row.next_run_at))}}


def fresh_first(table: Table, shard: int, fresh_from: datetime, until: datetime) -> Iterator[list[WaitingRow]]:
    """Yields the shard's rows up to `until` in pages: first those from `fresh_from` on, then overdue ones.

    Cost: one query if all fit into a page, or if nothing is due.
    """
    fresh_from = fresh_from.replace(microsecond=0)
    rows, more = _page(table, shard, None, until, None)
    fresh = [row for row in rows if row.next_run_at >= fresh_from]
    overdue = rows[: len(rows) - len(fresh)]
    if more is not None and not fresh:
        yield from due(table, shard, fresh_from, until)
        yield overdue
        yield from due(table, shard, None, fresh_from - timedelta(seconds=1), more)
        return
    if fresh:
        yield fresh
    if more is not None:
        yield from due(table, shard, fresh_from, until, more)
    if overdue:
        yield overdue


def _page(
    table: Table,
    shard: int,
    since: datetime | None,
    until: datetime,
    start: Mapping[str, Any] | None,
    limit: int | None = None,
) -> tuple[list[WaitingRow], Mapping[str, Any] | None]:
    sort = WaitingItem.next_run_at.between(epoch_s(since) if since else 0, epoch_s(until))
    items, more = table.query(
        shard, sort, index=NEXT_RUN, partition=WaitingItem.shard, limit=limit or PAGE, start=start
    )
    return [_ROWS.read(WaitingItem.from_raw_data(item)) for item in items], more


def oldest(table: Table, shard: int) -> datetime | None:
    """Returns the shard's earliest instant."""
    items, _ = table.query(shard, None, index=NEXT_RUN, partition=WaitingItem.shard, limit=1)
    return from_s(int(items[0]["next_run_at"]["N"])) if items else None


LOOKED_AT = 125
"""Due rows of a shard that are looked at for those of one tenant."""


def oldest_of(table: Table, shard: int, tenant: str, until: datetime) -> datetime | None:
    """Returns the earliest instant of a tenant among the shard's first due rows. Usually nothing is due."""
    rows, _ = _page(table, shard, None, until, None, LOOKED_AT)
    begin = f"{keys.tenant(tenant)}#"
    return next((row.next_run_at for row in rows if row.pk.startswith(begin)), None)


def first_catch_up(table: Table, tenant: str, schedule_id: str) -> datetime | None:
    """Returns the first occurrence of the schedule's earliest catch-up in progress."""
    sort = WaitingItem.sk.startswith(keys.catch_up(""))
    rows, _ = table.query(keys.runs(tenant, schedule_id), sort, limit=1, consistent=True)
    return from_s(int(keys.parts(rows[0]["sk"]["S"])[1])) if rows else None


def catalogue(table: Table, shard: int, after: str, page: int) -> tuple[list[tuple[str, str]], str | None]:
    """Returns the keys of the shard's enabled schedules, waiting or not, that follow the schedule `after`.

    Returns with them the last schedule of the page if more may follow; None otherwise.
    """
    sort = CatalogueItem.schedule_id > after if after else None
    items, more = table.query(shard, sort, index=CATALOGUE, partition=CatalogueItem.shard, limit=page)
    row_keys = [(item["pk"]["S"], item["sk"]["S"]) for item in items]
    return row_keys, None if more is None else more["schedule_id"]["S"]


@dataclass(frozen=True)
class Advance:
    """One conditional step of a row, in absolute values, so that it may be sent twice.

    planned_total, last_at: only for a schedule, last_at only with `ending`. ending: whether the series is over, so that
    the row stays as a wake. held_from: the earliest unsent occurrence of a held schedule.
    """

    row: WaitingRow
    next_run_at: datetime
    planned_total: int | None = None
    ending: bool = False
    last_at: datetime | None = None
    held_from: datetime | None = None


@dataclass(frozen=True)
class Advanced:
    """The results of a batch of steps.

    done: steps that were written, now or by an earlier try. left: rows that somebody else changed. again: steps that
    were throttled or in conflict.
    """

    done: tuple[Advance, ...] = ()
    left: tuple[Advance, ...] = ()
    again: tuple[Advance, ...] = ()


def advance(table: Table, steps: Sequence[Advance], shards: SupportsInt) -> Advanced:
    """Writes up to 25 steps in one call, each separately and only if next_run_at and generation are as read.

    shards: their number, by which a row may have to move to another shard.
    Source: the batched update costs 14 times less CPU per row than single updates (decision 0006).
    """
    try:
        answers = table.statements([_statement(table.name, step, shards) for step in steps])
    except Unavailable:
        return Advanced(again=tuple(steps))
    done: list[Advance] = []
    left: list[Advance] = []
    again: list[Advance] = []
    for step, answer in zip(steps, answers, strict=True):
        error = answer.get("Error")
        if error is None:
            done.append(step)
        elif error.get("Code") == "ConditionalCheckFailed":
            (done if _own_success(step, error.get("Item")) else left).append(step)
        else:
            again.append(step)
    return Advanced(tuple(done), tuple(left), tuple(again))


def _own_success(step: Advance, old: dict[str, Any] | None) -> bool:
    """Returns whether the row is already where this step moves it, because the SDK repeated a successful request."""
    if not old or "next_run_at" not in old:
        return False
    same_generation = int(old.get("generation", {"N": "0"})["N"]) == step.row.generation
    return same_generation and int(old["next_run_at"]["N"]) == epoch_s(step.next_run_at)


def _statement(table_name: str, step: Advance, shards: SupportsInt) -> dict[str, Any]:
    changes: list[tuple[str, dict[str, str]]] = [("next_run_at", _number(epoch_s(step.next_run_at)))]
    if step.row.shard is not None and (shard := shard_of(step.row.own_id, shards)) != step.row.shard:
        changes.append(("shard", _number(shard)))
    if step.planned_total is not None:
        changes.append(("planned_total", _number(step.planned_total)))
    if step.ending:
        packed = replace(SweepText.read(step.row.sweep), waits=Waits.END)
        changes += [("state", {"S": ScheduleState.ENDING.value}), ("sweep", {"S": str(packed)})]
    if step.held_from is not None:
        held = replace(SweepText.read(step.row.sweep), waits=Waits.HELD, since=step.held_from)
        changes.append(("sweep", {"S": str(held)}))
    if not step.ending and step.held_from is None and names_zone(step.row.sweep):
        offset_s = moved.offset_of(SweepText.read(step.row.sweep).packed, step.next_run_at)
        changes += [("offset_s", _number(offset_s))] if offset_s is not None else []
    if step.last_at is not None:
        changes.append(("last_planned_at", _number(epoch_s(step.last_at))))
    conditions: list[tuple[str, dict[str, str]]] = [
        ("pk", {"S": step.row.pk}),
        ("sk", {"S": step.row.sk}),
        ("next_run_at", _number(epoch_s(step.row.next_run_at))),
    ]
    if step.row.generation:
        conditions.append(("generation", _number(step.row.generation)))
    return {
        "Statement": f'UPDATE "{table_name}" '
        + " ".join(f'SET "{name}"=?' for name, _ in changes)
        + " WHERE "
        + " AND ".join(f'"{name}"=?' for name, _ in conditions),
        "Parameters": [value for _, value in changes + conditions],
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}
