"""Watches: columns of the row that something waits for, which put it into the next-run index, and the stack's list.

An application is watched from its first unclaimed run, a consumer from the first run that is held for it, a target from
the first call without an answer, each until somebody receives or answers again. Its row is in the next-run index for
that time. The row of a target exists only for its watch.
"""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any, SupportsInt

from sweephand.base.ids import shard_of
from sweephand.domain.absence import Watched
from sweephand.domain.application import CHECKED_AGAIN
from sweephand.domain.instants import epoch_ms, epoch_s
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import Lane
from sweephand.domain.silence import SilentTarget
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Op, Refused, Table, Written
from sweephand.server.store.dynamo.expressions import Condition, assign, every, removal
from sweephand.server.store.dynamo.flat_models import TENANT, Codec, Integer, UnicodeAttribute
from sweephand.server.store.dynamo.table import Item


class WatchedItem(Item):
    """The columns of a watch. They are absent while nothing waits."""

    watched_since = Integer(null=True)
    away_at = Integer(null=True)
    waiting = Integer(default=0)
    seen_at = Integer(null=True)
    shard = Integer(null=True)
    next_run_at = Integer(null=True)
    sweep = UnicodeAttribute(null=True)


class TargetItem(WatchedItem):
    """A watched target: its host or its address."""

    name = UnicodeAttribute()


_TARGETS = Codec(SilentTarget, TargetItem, {"tenant": TENANT})
target_of = _TARGETS.read


OF_WATCH = "watched_since away_at waiting seen_at shard next_run_at sweep"


def key_of(watched: Watched) -> tuple[str, str]:
    return keys.tenant(watched.tenant), keys.watched(watched.noun, watched.parts)


NEW: Condition = WatchedItem.watched_since.does_not_exist()
UNWATCHED: Condition = every(WatchedItem.pk.exists(), NEW)
UNSEEN: Condition = every(WatchedItem.watched_since.exists(), WatchedItem.seen_at.does_not_exist())


def same_watch(watched: Watched) -> Condition:
    """Requires the watch that was read."""
    assert watched.watched_since is not None
    same: Condition = WatchedItem.watched_since == epoch_ms(watched.watched_since)
    return same


def begin(table: Table, watched: Watched, since: datetime, now: datetime, shards: SupportsInt) -> Written | Refused:
    """Begins to watch what is not watched."""
    pk, sk = key_of(watched)
    actions = [
        assign(WatchedItem.watched_since, epoch_ms(since)),
        assign(WatchedItem.shard, shard_of(sk, shards)),
        assign(WatchedItem.next_run_at, epoch_s(now + CHECKED_AGAIN)),
        assign(WatchedItem.sweep, str(SweepText(Waits.WATCH, Lane.FAST))),
    ]
    if watched.registered:
        return table.update(pk, sk, actions, UNWATCHED)
    return table.update(pk, sk, [*actions, assign(TargetItem.name, watched.name)], NEW)


def see(table: Table, watched: Watched, now: datetime) -> Written | Refused:
    """Notes that somebody came, once for each watch."""
    return table.update(*key_of(watched), [assign(WatchedItem.seen_at, epoch_ms(now))], UNSEEN)


def mark_away(table: Table, watched: Watched, now: datetime, waiting: int) -> Written | Cancelled:
    """Notes that nobody receives what waits, and adds an entry to the stack's list."""
    actions = [assign(WatchedItem.away_at, epoch_ms(now)), assign(WatchedItem.waiting, waiting)]
    listed = Item(pk=keys.STACK_AWAY, sk=_place(watched))
    return table.transact(
        [
            table.update_op("watched", *key_of(watched), actions, same_watch(watched)),
            table.put_op("listed", listed),
        ]
    )


def count_waiting(table: Table, watched: Watched, waiting: int) -> Written | Refused:
    return table.update(*key_of(watched), [assign(WatchedItem.waiting, waiting)], same_watch(watched))


def end(table: Table, watched: Watched) -> Written | Cancelled:
    """Ends the watch that was read, and removes its entry from the stack's list."""
    key, same = key_of(watched), same_watch(watched)
    if watched.registered:
        ended = table.update_op("watched", *key, removal(WatchedItem, OF_WATCH), same)
    else:
        ended = table.delete_op("watched", *key, same)
    return table.transact([ended] if watched.away_at is None else [ended, forget_op(table, watched)])


def forget_op(table: Table, watched: Watched) -> Op:
    """Returns the write that removes the entry from the stack's list."""
    return table.delete_op("listed", keys.STACK_AWAY, _place(watched))


def forget(table: Table, tenant: str) -> None:
    """Removes the entries of a tenant that is being purged from the stack's list."""
    for row in list(table.query_all(keys.STACK_AWAY, WatchedItem.sk.startswith(keys.away(tenant, "")))):
        table.delete(keys.STACK_AWAY, row["sk"]["S"])


def _place(watched: Watched) -> str:
    return keys.away(watched.tenant, key_of(watched)[1])


def listed_away(table: Table, most: int) -> list[dict[str, Any]]:
    """Returns the rows on the stack's list, by tenant, kind and name, in DynamoDB's JSON."""
    listed = islice(table.query_all(keys.STACK_AWAY, limit=most), most)
    places = [keys.away_parts(row["sk"]["S"]) for row in listed]
    wanted = [(keys.tenant(tenant), sk) for tenant, sk in places]
    rows = table.batch_get(wanted) if wanted else {}
    return [rows[key] for key in wanted if key in rows]
