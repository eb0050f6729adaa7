"""Consumers: their rows, the runs that are held for them, and the counts of occurrences that they will not get.

The index `attention` lists a held run under its consumer, so that holding one costs one write. The write that sends the
run on or ends it also removes it from that partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, SupportsInt

from pynamodb.attributes import Attribute

from sweephand.base.ids import instant_ms_of, shard_of
from sweephand.domain.consumer import Consumer, Dropped, Phase
from sweephand.domain.instants import epoch_ms, epoch_s, from_ms, from_s
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Op, Refused, Table, Written, if_any
from sweephand.server.store.dynamo.expressions import Condition, assign, every, removal
from sweephand.server.store.dynamo.flat_models import (
    TENANT,
    BooleanAttribute,
    Codec,
    Integer,
    UnicodeAttribute,
    named,
    of_key,
    one_of,
)
from sweephand.server.store.dynamo.table import Item, RunItem, WakeItem
from sweephand.server.store.runs import ledger, run_rows, spread
from sweephand.server.store.tenants.watches import WatchedItem


class ConsumerItem(WatchedItem):
    """A consumer."""

    holder = UnicodeAttribute(null=True)
    lease_until = Integer(null=True)
    taken_at = Integer(null=True)
    phase = UnicodeAttribute(null=True)
    decided = BooleanAttribute(null=True)
    current = UnicodeAttribute(null=True)
    watched = BooleanAttribute(null=True)
    idle_at = Integer(null=True)
    ends_until = Integer(null=True)


class DroppedItem(Item):
    """The occurrences of a job that its consumer will not get, until an event has reported them."""

    first_at = Integer()
    last_at = Integer()
    number = Integer()


_CONSUMERS = Codec(Consumer, ConsumerItem, {"tenant": TENANT, "name": of_key("sk", 1), "phase": one_of(Phase)})
_DROPPED = Codec(Dropped, DroppedItem, {"job_id": of_key("sk", 1), "count": named("number")})
consumer_of = _CONSUMERS.read


def read(table: Table, tenant: str, name: str, *, consistent: bool = True) -> Consumer | None:
    return if_any(consumer_of, table.get(ConsumerItem, *_key(tenant, name), consistent=consistent))


def listed(table: Table, tenant: str, after: str | None, page: int) -> Iterator[Consumer]:
    """Yields consumers by name, after `after`."""
    yield from map(consumer_of, table.listed(ConsumerItem, keys.tenant(tenant), keys.consumer, after, page))


def _key(tenant: str, name: str) -> tuple[str, str]:
    return keys.tenant(tenant), keys.consumer(name)


# The lease

OF_LEASE = "holder lease_until taken_at phase decided current"


def free_for(holder: str, now: datetime) -> Condition:
    """Requires that nobody else holds the lease."""
    free: Condition = unheld(now) | (ConsumerItem.holder == holder)
    return free


def unheld(now: datetime) -> Condition:
    """Requires that nobody holds the lease."""
    over: Condition = ConsumerItem.lease_until.does_not_exist() | (ConsumerItem.lease_until <= epoch_ms(now))
    return over


def held_by(holder: str, now: datetime) -> Condition:
    """Requires that this holder has the lease, and that the lease has not expired."""
    return every(ConsumerItem.holder == holder, ConsumerItem.lease_until > epoch_ms(now))


def as_read(consumer: Consumer) -> Condition:
    """Requires the lease and the step of its replay that were read."""
    row = _CONSUMERS.item(_key(consumer.tenant, consumer.name), consumer)
    return every(
        _same(ConsumerItem.taken_at, row.taken_at),
        _same(ConsumerItem.phase, row.phase),
        _same(ConsumerItem.decided, row.decided),
        _same(ConsumerItem.current, row.current),
    )


def _same(attribute: Attribute[Any], value: Any) -> Condition:
    return attribute.does_not_exist() if value is None else attribute == value


def renew(table: Table, tenant: str, name: str, holder: str, until: datetime, now: datetime) -> Written | Refused:
    """Extends the lease of its holder."""
    actions = [assign(ConsumerItem.lease_until, epoch_ms(until))]
    return table.update(*_key(tenant, name), actions, held_by(holder, now))


def take(table: Table, tenant: str, name: str, holder: str, until: datetime, now: datetime) -> Written | Refused:
    """Takes the lease if nobody else holds it. The consumer is away until it starts."""
    actions = [
        assign(ConsumerItem.holder, holder),
        assign(ConsumerItem.lease_until, epoch_ms(until)),
        assign(ConsumerItem.taken_at, epoch_ms(now)),
        *removal(ConsumerItem, "phase decided current"),
    ]
    return table.update(*_key(tenant, name), actions, free_for(holder, now))


def release(table: Table, tenant: str, name: str, holder: str, now: datetime) -> Written | Refused:
    """Ends the lease of this holder."""
    return table.update(*_key(tenant, name), removal(ConsumerItem, OF_LEASE), held_by(holder, now))


def start(table: Table, tenant: str, name: str, holder: str, now: datetime) -> Written | Refused:
    """Begins the replay if the holder has not begun it yet."""
    condition = every(held_by(holder, now), ConsumerItem.phase.does_not_exist())
    return table.update(*_key(tenant, name), [assign(ConsumerItem.phase, Phase.STARTING.value)], condition)


# The replay


def held(table: Table, tenant: str, name: str, limit: int | None = None) -> Iterator[tuple[str, str]]:
    """Yields the keys of the runs that the index lists under the consumer, oldest first.

    The index lags by about a second, so a run may be missing or may have been sent on since. limit: for the first page.
    """
    partitions = spread.partitions(table, tenant)
    rows = spread.entries(table, keys.consumer_rows(tenant, name), partitions, forward=True, limit=limit)
    yield from ((row["pk"]["S"], row["sk"]["S"]) for row in rows)


def planned_at(key: tuple[str, str]) -> datetime:
    """Returns the planned instant of a run by its key."""
    return from_ms(instant_ms_of(keys.parts(key[1])[1]))


def still_held(table: Table, name: str, run_keys: Sequence[tuple[str, str]]) -> list[Run]:
    """Returns those of the runs that are held for the consumer, in order. Reads each consistently."""
    return [run for run in ledger.read_many(table, run_keys) if run.state is State.HELD and run.consumer == name]


STILL_HELD: Condition = RunItem.state == State.HELD.value


def send_on(table: Table, consumer: Consumer, run: Run, *, shards: SupportsInt, lane: Lane) -> Written | Cancelled:
    """Queues a held run with its wake, and notes it as the last one sent on. run: its new state."""
    assert run.wake_at is not None
    actions = [
        assign(RunItem.state, run.state.value),
        *removal(RunItem, "reason"),
        *run_rows.attention(run, table),
        *run_rows.wake_actions(run, run.wake_at, shards=shards, lane=lane),
    ]
    current = [assign(ConsumerItem.current, run.id)]
    return table.transact(
        [
            table.update_op("consumer", *_key(consumer.tenant, consumer.name), current, as_read(consumer)),
            table.update_op("run", *run_rows.key_of(run), actions, STILL_HELD),
        ]
    )


def let_go(table: Table, run: Run, note: str, *, shards: SupportsInt, lane: Lane) -> Written | Refused:
    """Lets go of a held run that is not for its consumer any more. run: its new state, held for another or nobody."""
    actions = [
        assign(RunItem.consumer, run.consumer),
        RunItem.notes.add({note}),
        *run_rows.attention(run, table),
        *([] if run.wake_at is None else run_rows.wake_actions(run, run.wake_at, shards=shards, lane=lane)),
    ]
    return table.update(*run_rows.key_of(run), actions, STILL_HELD)


def go_live(table: Table, consumer: Consumer) -> Written | Refused:
    """Ends the replay. From now on, events are sent as they fall due."""
    actions = [assign(ConsumerItem.phase, Phase.LIVE.value), *removal(ConsumerItem, "decided current")]
    return table.update(*_key(consumer.tenant, consumer.name), actions, as_read(consumer))


def decide(table: Table, consumer: Consumer) -> Written | Refused:
    """Notes that the runs that the consumer gets have been chosen."""
    actions = [assign(ConsumerItem.decided, value=True)]
    return table.update(*_key(consumer.tenant, consumer.name), actions, as_read(consumer))


# Occurrences that the consumer will not get


def dropped(table: Table, tenant: str, name: str) -> Iterator[Dropped]:
    """Yields the counts by job."""
    yield from _counts(table, tenant, name, keys.dropped(""))


def _counts(table: Table, tenant: str, name: str, prefix: str) -> Iterator[Dropped]:
    for row in table.query_all(keys.consumer_rows(tenant, name), DroppedItem.sk.startswith(prefix), consistent=True):
        yield _DROPPED.read(DroppedItem.from_raw_data(row))


def dropped_of(table: Table, tenant: str, name: str, job_id: str) -> Dropped | None:
    return if_any(_DROPPED.read, table.get(DroppedItem, *_dropped_key(tenant, name, job_id)))


def _dropped_key(tenant: str, name: str, job_id: str) -> tuple[str, str]:
    return keys.consumer_rows(tenant, name), keys.dropped(job_id)


def count_as_read(dropped: Dropped | None) -> Condition:
    """Requires the count that was read, so that each occurrence counts exactly once."""
    if dropped is None:
        absent: Condition = DroppedItem.pk.does_not_exist()
        return absent
    same: Condition = DroppedItem.number == dropped.count
    return same


def drop(
    table: Table,
    name: str,
    ended: Sequence[Run],
    before: Dropped | None,
    *,
    shards: SupportsInt,
    lane: Lane,
) -> Written | Cancelled:
    """Ends runs of one schedule that are held, and counts them. ended: their new states, each with its wake.

    before: the count of their job so far.
    """
    one = ended[0]
    ops = [
        ledger.end_from_outside_op(table, run.uuid, run, shards=shards, lane=lane, condition=STILL_HELD)
        for run in ended
    ]
    late, same = ledger.late_ends(table, ended)
    ops.append(ledger.count_op(table, one, {"missed_sent": len(ended), **late}, same))
    planned = sorted([*(run.planned_at for run in ended), *([before.first_at, before.last_at] if before else [])])
    count = len(ended) + (before.count if before else 0)
    after = Dropped(one.job_id, planned[0], planned[-1], count)
    item = _DROPPED.item(_dropped_key(one.tenant, name, one.job_id), after)
    return table.transact([*ops, table.put_op("dropped", item, count_as_read(before))])


def close(table: Table, tenant: str, name: str, dropped: Dropped) -> Written | Cancelled:
    """Sets a count aside, so that its event always has the same number. Later occurrences start a new count."""
    item = _DROPPED.item(_closed_key(tenant, name, dropped), dropped)
    gone: Op = table.delete_op("dropped", *_dropped_key(tenant, name, dropped.job_id), count_as_read(dropped))
    return table.transact([table.put_op("closed", item), gone])


def unpublished(table: Table, tenant: str, name: str) -> Iterator[Dropped]:
    """Yields the counts that were set aside."""
    yield from _counts(table, tenant, name, keys.unpublished(""))


def forget(table: Table, tenant: str, name: str, closed: Dropped) -> None:
    """Deletes a count that an event has published."""
    table.delete(*_closed_key(tenant, name, closed))


def _closed_key(tenant: str, name: str, dropped: Dropped) -> tuple[str, str]:
    """Returns the key of a count that was set aside. No other count begins with the same occurrence."""
    return keys.consumer_rows(tenant, name), f"{keys.unpublished(dropped.job_id)}#{epoch_ms(dropped.first_at)}"


def stand_for(table: Table, name: str, run: Run, dropped: Dropped) -> Written | Cancelled:
    """Makes a held run represent those that were dropped: its event contains their number. run: its new state."""
    actions = run_rows.changes_of(run, "missed_count missed_from")
    gone: Op = table.delete_op("dropped", *_dropped_key(run.tenant, name, run.job_id), count_as_read(dropped))
    return table.transact([table.update_op("run", *run_rows.key_of(run), actions, STILL_HELD), gone])


# The wake


def watch(table: Table, tenant: str, name: str, wake_at: datetime, shards: SupportsInt) -> None:
    """Puts the consumer's wake into the next-run index, then notes that it is there."""
    wake = WakeItem(
        pk=keys.consumer_rows(tenant, name),
        sk=keys.consumer(name),
        shard=shard_of(name, shards),
        next_run_at=epoch_s(wake_at),
        sweep=str(SweepText(Waits.CONSUMER, Lane.FAST)),
    )
    table.put(wake)
    watched = [assign(ConsumerItem.watched, value=True), *removal(ConsumerItem, "idle_at")]
    table.update(*_key(tenant, name), watched)


def let_idle(table: Table, tenant: str, name: str, now: datetime) -> Written | Refused:
    """Notes that nothing is held. An executor that holds a run after this writes the wake again."""
    actions = [assign(ConsumerItem.idle_at, epoch_ms(now)), *removal(ConsumerItem, "watched")]
    return table.update(*_key(tenant, name), actions, ConsumerItem.watched == True)  # noqa: E712 - an expression


def wake_of(table: Table, tenant: str, name: str) -> datetime | None:
    item = table.get(WakeItem, keys.consumer_rows(tenant, name), keys.consumer(name))
    return None if item is None else from_s(item.next_run_at)


def drop_wake(table: Table, tenant: str, name: str, wake_at: datetime) -> Written | Refused:
    """Removes the wake if nobody has written it again since it was read."""
    return table.delete(keys.consumer_rows(tenant, name), keys.consumer(name), same_wake(wake_at))


def same_wake(wake_at: datetime) -> Condition:
    """Requires the wake that was read."""
    same: Condition = WakeItem.next_run_at == epoch_s(wake_at)
    return same


# The delete


def end(table: Table, tenant: str, name: str, now: datetime, *, even_if_held: bool) -> Written | Refused:
    """Notes that the consumer was deleted, and ends its lease.

    Its wake must exist already; the replay does the rest.
    """
    actions = [assign(ConsumerItem.ends_until, epoch_ms(now)), *removal(ConsumerItem, OF_LEASE)]
    return table.update(*_key(tenant, name), actions, None if even_if_held else unheld(now))


def ended_as_read(consumer: Consumer) -> Condition:
    """Requires the delete that was read, and that nobody has taken the lease since."""
    row = _CONSUMERS.item(_key(consumer.tenant, consumer.name), consumer)
    return every(_same(ConsumerItem.ends_until, row.ends_until), _same(ConsumerItem.taken_at, row.taken_at))


def stay(table: Table, consumer: Consumer) -> Written | Refused:
    """Notes that a deleted consumer exists again, after everything that its delete ends has ended."""
    actions = removal(ConsumerItem, "ends_until")
    return table.update(*_key(consumer.tenant, consumer.name), actions, ended_as_read(consumer))


def remove(table: Table, consumer: Consumer, wake_at: datetime) -> Written | Cancelled:
    """Removes a deleted consumer with its wake, unless somebody holds a run for it again."""
    row = _CONSUMERS.item(_key(consumer.tenant, consumer.name), consumer)
    idle = every(ended_as_read(consumer), _same(ConsumerItem.idle_at, row.idle_at))
    wake = keys.consumer_rows(consumer.tenant, consumer.name), keys.consumer(consumer.name)
    return table.transact(
        [
            table.delete_op("consumer", *_key(consumer.tenant, consumer.name), idle),
            table.delete_op("wake", *wake, same_wake(wake_at)),
        ]
    )
