"""The end of a pause with an `until`: a row in the next-run index that resumes the job.

The resume is written a few seconds ahead and takes effect at `until`. So occurrences from then on run on time, as if
the job had never been paused.
"""

from __future__ import annotations

from datetime import timedelta

from sweephand.base.lazy import lazy
from sweephand.domain.message import Pointer
from sweephand.server.flow.jobs.change import AHEAD, until_of
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import jobs

with lazy():
    from sweephand.server.flow.jobs import change

CLOCKS_DIFFER = timedelta(seconds=2)


def wake_up(world: World, pointer: Pointer) -> None:
    """Resumes the job and plans what is due at `until`."""
    job = jobs.read_job(world.table, pointer.tenant, pointer.job)
    if job is None:
        world.table.delete(keys.job(pointer.tenant, pointer.job), keys.pause())
        return
    until = until_of(job)
    if until is None or until - AHEAD > world.clock.now() + CLOCKS_DIFFER:
        return  # the row belongs to an earlier pause; a current pause has a row of its own
    change.end_pause(world, pointer.tenant, pointer.job, until)
