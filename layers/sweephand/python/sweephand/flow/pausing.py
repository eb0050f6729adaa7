"""A pause that ends by itself: a row in the next-run index, and the resume that it asks for.

The resume is written a few seconds ahead and takes effect at `until`: what is due from then on is in the run queue by
its second, as if the job had never been paused.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.domain.job import Job
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.schedule import Lane
from sweephand.domain.waiting import Waits
from sweephand.flow.history import By, Operation
from sweephand.flow.replan import LOOK_FURTHER_S
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.store import jobs, keys, parts
from sweephand.store.conditional import Op

AHEAD = timedelta(seconds=15)
"""Time for the queue, the executor and a few hundred schedules. A resume that comes later leaves nothing out either."""
CLOCKS_DIFFER = timedelta(seconds=2)
BEFORE_IT = timedelta(seconds=1)


def until_of(job: Job) -> datetime | None:
    return job.pause.until if job.pause else None


def row_ops(world: World, before: Job, after: Job) -> list[Op]:
    """The row is there exactly while the job has a pause that ends by itself."""
    until = until_of(after)
    if until == until_of(before):
        return []
    if until is None:
        return [world.table.delete_op("wake resume", keys.job(after.tenant, after.id), keys.pause())]
    at = until - AHEAD
    return [parts.wake_op(world.table, after, keys.pause(), Waits.RESUME, at, world.settings.shards)]


def send_ahead(world: World, before: Job, after: Job) -> None:
    """Where the end is so near that the sweep could see the row too late. The row sends it again."""
    until = until_of(after)
    if until is None or until == until_of(before):
        return
    now = world.clock.now()
    if until - AHEAD > now + timedelta(seconds=world.settings.look_ahead_s + LOOK_FURTHER_S):
        return
    pointer = Pointer(after.tenant, after.id, None, "end", until, subject=Subject.RESUME)
    if world.queue.send([Delivery(pointer, max(now, until - AHEAD), Lane.FAST)]):
        world.journal.warning("the next tick sends what did not go out", job=after.id)


def look(world: World, pointer: Pointer) -> None:
    """What the row asks for: the job goes on as by a resume, and what is due at `until` is planned."""
    from sweephand.flow import change  # noqa: PLC0415 - an executor seldom changes a job

    job = jobs.read_job(world.table, pointer.tenant, pointer.job)
    if job is None:
        world.table.delete(keys.job(pointer.tenant, pointer.job), keys.pause())
        return
    until = until_of(job)
    if until is None or until - AHEAD > world.clock.now() + CLOCKS_DIFFER:
        return  # of an earlier pause: if there is one now, its own row speaks for it

    def resumed(there: Job) -> Job:
        return replace(there, pause=None) if until_of(there) == until else there

    by = By(Operation.RESUME)
    change.set_state(world, pointer.tenant, pointer.job, resumed, None, by, resumed_at=until - BEFORE_IT)
