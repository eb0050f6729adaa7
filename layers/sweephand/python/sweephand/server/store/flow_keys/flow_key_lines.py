"""The lines of flow keys: an entry for each run that waits, in the order in which they joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from sweephand.base.records import dataclass
from sweephand.domain.flow_keys.flow_key_lines import ENDLESS, Patience, Waiting
from sweephand.domain.flow_keys.flow_keys import Turnstile, holder
from sweephand.domain.instants import epoch_ms, from_ms_if_any, ms_if_any
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Refused, Table, Written
from sweephand.server.store.dynamo.expressions import removal
from sweephand.server.store.dynamo.flat_models import Codec, Column, Integer, UnicodeAttribute, one_of
from sweephand.server.store.dynamo.table import Item, RunItem
from sweephand.server.store.runs import ledger, run_rows


class LineItem(Item):
    """A run that waits under a flow key. The sort key gives its order. owner: the owner of its ledger partition.

    until: when it stops waiting. tries_until: when it stops waiting for an open circuit. Both are epoch ms; None:
    never.
    """

    owner = UnicodeAttribute()
    uuid = UnicodeAttribute()
    target = UnicodeAttribute()
    lane = UnicodeAttribute()
    until = Integer(null=True)
    tries_until = Integer(null=True)


@dataclass(frozen=True, kw_only=True)
class Entry(Waiting):
    """A run in the line. target: the hash of its target. patience: as it was when the run joined."""

    owner: str
    uuid: str
    lane: Lane


_ENTRIES = Codec(
    Entry,
    LineItem,
    {"order": Column(lambda sk: sk.partition("#")[2], None, "sk"), "lane": one_of(Lane)},
    but="who patience",
)


def order_of(run: Run) -> str:
    """Returns the run's place in the line, by the instant at which it joined."""
    assert run.line_at is not None
    return f"{epoch_ms(run.line_at):013d}#{run.uuid}"


def join(
    table: Table, run: Run, left: Run | None, target: str, lane: Lane, patience: Patience = ENDLESS
) -> Written | Refused:
    """Puts a claimed run into the line of its key in one transaction, if it still has its lease.

    run: the new state of its row, with its owner. left: the run as it was in the line of another key.
    """
    assert run.flow_key is not None
    assert run.lease_owner is not None
    assert run.line_at is not None
    entry = Entry(
        order=order_of(run),
        who=holder(run.uuid),
        target=target,
        patience=patience,
        owner=run.schedule_id or run.job_id,
        uuid=run.uuid,
        lane=lane,
    )
    actions = [
        *run_rows.changes_of(run, "state reason message started_at first_started_at flow_key line_at"),
        *removal(RunItem, "owner lease_until"),
        *run_rows.attention(run, table),
    ]
    ops = [
        table.update_op("run", *run_rows.key_of(run), actions, ledger.own_lease(run.lease_owner)),
        table.put_op("entry", _item_of(run.tenant, run.flow_key, entry)),
    ]
    if left is not None and left.flow_key is not None and left.flow_key != run.flow_key:
        ops.append(table.delete_op("old entry", keys.flow(left.tenant, left.flow_key), keys.line(order_of(left))))
    done = table.transact(ops)
    return done.refused["run"] if isinstance(done, Cancelled) else done


def line(table: Table, turnstile: Turnstile, after: str, until: str, most: int) -> list[Entry]:
    """Returns the first entries after `after`, in order. until: the last entry; "" for no limit."""
    sort = LineItem.sk.between(keys.line(after + " " if after else ""), keys.line(until or "~"))
    rows = table.query(keys.flow(turnstile.tenant, turnstile.name), sort, limit=most, consistent=True)[0]
    return [_entry_of(LineItem.from_raw_data(row)) for row in rows]


def entries(table: Table, turnstile: Turnstile, orders: Sequence[str]) -> list[Entry]:
    """Returns the entries that exist."""
    pk = keys.flow(turnstile.tenant, turnstile.name)
    rows = table.batch_get((pk, keys.line(order)) for order in orders) if orders else {}
    return [_entry_of(LineItem.from_raw_data(row)) for row in rows.values()]


def _entry_of(item: LineItem) -> Entry:
    patience = Patience(from_ms_if_any(item.until), from_ms_if_any(item.tries_until))
    return _ENTRIES.read(item, who=holder(item.uuid), patience=patience)


def _item_of(tenant: str, name: str, entry: Entry) -> LineItem:
    return _ENTRIES.item(
        (keys.flow(tenant, name), keys.line(entry.order)),
        entry,
        until=ms_if_any(entry.patience.until),
        tries_until=ms_if_any(entry.patience.tries_until),
    )


def rows_of(table: Table, tenant: str, entries: Sequence[Entry]) -> dict[str, Run]:
    """Returns the runs by the order of their entries, without those that no longer exist."""
    wanted = {(keys.runs(tenant, entry.owner), keys.run(entry.uuid)): entry.order for entry in entries}
    rows = table.batch_get(wanted)
    return {wanted[key]: run_rows.run_of(RunItem.from_raw_data(row)) for key, row in rows.items()}


def drop(table: Table, tenant: str, name: str, orders: Iterable[str]) -> None:
    """Deletes the entries of runs that no longer wait."""
    for order in orders:
        table.delete(keys.flow(tenant, name), keys.line(order))


def end_patience(table: Table, tenant: str, name: str, entry: Entry, now: datetime) -> None:
    """Ends an entry's patience now. If the run has left meanwhile, its row shows that the entry is left over."""
    table.put(_item_of(tenant, name, replace(entry, patience=Patience(now))))


def waiting(table: Table, tenant: str, name: str, most: int) -> int:
    """Returns how many runs are in the line, counted up to `most`."""
    rows = table.query_all(keys.flow(tenant, name), LineItem.sk.startswith(keys.line("")), consistent=True)
    return sum(1 for _, _ in zip(range(most), rows, strict=False))


def still_queued(run: Run | None, entry: Entry) -> bool:
    """Returns whether the run's row confirms the entry. If not, the entry is left over."""
    return run is not None and run.in_line and order_of(run) == entry.order


def at_work(run: Run | None) -> bool:
    """Returns whether the run has been called and tries to pass. Then it removes or keeps its entry itself."""
    return run is not None and run.state is State.TRIGGERED
