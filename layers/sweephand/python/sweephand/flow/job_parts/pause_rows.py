"""The wake row in the next-run index that ends a pause."""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.job import Job
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.occurrences.index_row import Waits
from sweephand.domain.schedule import Lane
from sweephand.flow.series.replan import LOOK_FURTHER_S
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op
from sweephand.store.jobs import change_parts

AHEAD = timedelta(seconds=15)
"""Time for the queue, the executor and a few hundred schedules. Nothing is left out if the resume takes longer."""


def until_of(job: Job) -> datetime | None:
    return job.pause.until if job.pause else None


def row_ops(world: World, before: Job, after: Job) -> list[Op]:
    """Returns the operations that keep the row exactly while the job has a pause with a set end."""
    until = until_of(after)
    if until == until_of(before):
        return []
    if until is None:
        return [world.table.delete_op("wake resume", keys.job(after.tenant, after.id), keys.pause())]
    at = until - AHEAD
    return [change_parts.wake_op(world.table, after, keys.pause(), Waits.RESUME, at, world.settings.shards)]


def send_ahead(world: World, before: Job, after: Job) -> None:
    """Sends the end of a pause if it is so near that the sweep might see the row too late. The row sends it again."""
    until = until_of(after)
    if until is None or until == until_of(before):
        return
    now = world.clock.now()
    if until - AHEAD > now + timedelta(seconds=world.settings.look_ahead_s + LOOK_FURTHER_S):
        return
    pointer = Pointer(after.tenant, after.id, None, "end", until, subject=Subject.RESUME)
    if world.queue.send([Delivery(pointer, max(now, until - AHEAD), Lane.FAST)]):
        world.journal.warning("the next tick sends the messages that were not sent", job=after.id)
