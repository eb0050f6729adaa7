"""Sends messages again whose queue's message was lost after they had begun, such as when a queue was purged.

A message that waits is in the next-run index. One that has begun is not, so the audit looks through the ledgers of its
day.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from sweephand.base.errors import Unavailable
from sweephand.domain.messages import ledgers_of
from sweephand.domain.run import Run
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo import keys
from sweephand.server.store.runs import ledger
from sweephand.server.store.runs import messages as rows
from sweephand.server.store.views import messages

LOST_AFTER = timedelta(minutes=15)
"""A run that should have gone on this long ago has lost its message."""
LOOKED_AT = timedelta(days=4)
"""How long the audit looks at a day."""


def send_again(world: World, key: tuple[str, str]) -> int:
    """Sends the open messages of a day whose turn has passed, and forgets an old day. Returns how many it sent.

    key: that of the note of the day. If the table or the queue does not answer, the next audit does it.
    """
    day, tenant, collection = keys.message_day_parts(key[1])
    now = world.clock.now()
    try:
        lost = [run for owner in ledgers_of(tenant, collection, day) for run in _lost(world, tenant, owner)]
        unsent = world.queue.send([Delivery(ledger.pointer_to(run), now, world.settings.lane) for run in lost])
        if not lost and now.date() - day > LOOKED_AT:
            rows.forget_day(world.table, key)
    except Unavailable as unavailable:
        world.journal.warning("messages wait for their next audit", reason=unavailable.reason, tenant=tenant)
        return 0
    return len(lost) - len(unsent)


def _lost(world: World, tenant: str, owner: str) -> Iterator[Run]:
    """Yields the open runs of a ledger that no index wakes and no executor holds."""
    before = world.clock.now() - LOST_AFTER
    for run in messages.open_of(world.table, tenant, owner, before):
        due_at = max(filter(None, (run.lease_until, run.not_before, run.planned_at)))
        if run.wake_at is None and due_at < before:
            yield run
