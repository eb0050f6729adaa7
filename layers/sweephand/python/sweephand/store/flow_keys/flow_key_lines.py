"""The lines of flow keys: an entry for each run that waits, in the order in which they joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sweephand.domain.flow_keys.flow_key_lines import ENDLESS, Patience
from sweephand.domain.flow_keys.flow_keys import Turnstile
from sweephand.domain.instants import epoch_ms, from_ms_if_any, ms_if_any
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import Lane
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Cancelled, Refused, Table, Written
from sweephand.store.dynamo.expressions import assign
from sweephand.store.dynamo.table import RunItem
from sweephand.store.flow_keys.flow_items import LineItem
from sweephand.store.runs import ledger, run_rows


@dataclass(frozen=True)
class Entry:
    """A run in the line. target: the hash of its target. patience: as it was when the run joined."""

    order: str
    owner: str
    uuid: str
    target: str
    lane: Lane
    patience: Patience = ENDLESS


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
    assert run.owner is not None
    assert run.line_at is not None
    owner = run.schedule_id or run.job_id
    entry = LineItem(
        pk=keys.flow(run.tenant, run.flow_key),
        sk=keys.line(order_of(run)),
        owner=owner,
        uuid=run.uuid,
        target=target,
        lane=lane.value,
        until=ms_if_any(patience.until),
        tries_until=ms_if_any(patience.tries_until),
    )
    actions = [
        assign(RunItem.state, run.state.value),
        assign(RunItem.reason, run.reason.value if run.reason else None),
        assign(RunItem.message, run.message),
        assign(RunItem.owner, None),
        assign(RunItem.lease_until, None),
        assign(RunItem.started_at, ms_if_any(run.started_at)),
        assign(RunItem.first_started_at, ms_if_any(run.first_started_at)),
        assign(RunItem.flow_key, run.flow_key),
        assign(RunItem.line_at, epoch_ms(run.line_at)),
        *run_rows.attention(run),
    ]
    ops = [
        table.update_op("run", *run_rows.key_of(run), actions, ledger.own_lease(run.owner)),
        table.put_op("entry", entry),
    ]
    if left is not None and left.flow_key is not None and left.flow_key != run.flow_key:
        ops.append(table.delete_op("old entry", keys.flow(left.tenant, left.flow_key), keys.line(order_of(left))))
    done = table.transact(ops)
    return done.refused["run"] if isinstance(done, Cancelled) else done


def line(table: Table, stile: Turnstile, behind: str, until: str, most: int) -> list[Entry]:
    """Returns the first entries after `behind`, in order; until: the last one, "" for all."""
    sort = LineItem.sk.between(keys.line(behind + " " if behind else ""), keys.line(until or "~"))
    rows = table.query(keys.flow(stile.tenant, stile.name), sort, limit=most, consistent=True)[0]
    return [_entry_of(LineItem.from_raw_data(row)) for row in rows]


def entries(table: Table, stile: Turnstile, orders: Sequence[str]) -> list[Entry]:
    """Returns those of the entries that exist."""
    pk = keys.flow(stile.tenant, stile.name)
    found = table.batch_get((pk, keys.line(order)) for order in orders) if orders else {}
    return [_entry_of(LineItem.from_raw_data(row)) for row in found.values()]


def _entry_of(item: LineItem) -> Entry:
    return Entry(
        order=item.sk.partition("#")[2],
        owner=item.owner,
        uuid=item.uuid,
        target=item.target,
        lane=Lane(item.lane),
        patience=Patience(from_ms_if_any(item.until), from_ms_if_any(item.tries_until)),
    )


def rows_of(table: Table, tenant: str, entries: Sequence[Entry]) -> dict[str, Run]:
    """Returns the runs by the order of their entries, without those that no longer exist."""
    wanted = {(keys.runs(tenant, entry.owner), keys.run(entry.uuid)): entry.order for entry in entries}
    found = table.batch_get(wanted)
    return {wanted[key]: run_rows.run_of(RunItem.from_raw_data(row)) for key, row in found.items()}


def drop(table: Table, tenant: str, name: str, orders: Iterable[str]) -> None:
    """Deletes the entries of runs that no longer wait."""
    for order in orders:
        table.delete(keys.flow(tenant, name), keys.line(order))


def let_go(table: Table, tenant: str, name: str, entry: Entry, now: datetime) -> None:
    """Ends an entry's patience now. If the run has left meanwhile, its row shows that the entry is left over."""
    item = LineItem(
        pk=keys.flow(tenant, name),
        sk=keys.line(entry.order),
        owner=entry.owner,
        uuid=entry.uuid,
        target=entry.target,
        lane=entry.lane.value,
        until=epoch_ms(now),
    )
    table.put(item)


def waiting(table: Table, tenant: str, name: str, most: int) -> int:
    """Returns how many runs are in the line, counted up to `most`."""
    rows = table.query_all(keys.flow(tenant, name), LineItem.sk.startswith(keys.line("")), consistent=True)
    return sum(1 for _, _ in zip(range(most), rows, strict=False))


def still_queued(run: Run | None, entry: Entry) -> bool:
    """Returns whether the run's row confirms the entry; if not, the entry is left over."""
    return run is not None and run.in_line and order_of(run) == entry.order


def at_work(run: Run | None) -> bool:
    """Returns whether the run has been called and is trying to pass; it then removes or keeps its entry itself."""
    return run is not None and run.state is State.TRIGGERED
