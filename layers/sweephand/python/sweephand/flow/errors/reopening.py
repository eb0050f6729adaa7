"""Reopens a failure whose rerun ended without having run.

The rerun was skipped, cancelled or replaced, or its job was deleted. Only the last rerun of a failed run counts.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sweephand.domain.failure import signature_of
from sweephand.domain.job import Job
from sweephand.domain.run import FAILED, Run
from sweephand.flow.errors import failures
from sweephand.flow.world import World
from sweephand.store.errors import failures as store
from sweephand.store.runs import ledger

SOON = timedelta(seconds=60)
"""Delay until a group counts its expiring runs again, because it may have missed this one."""


def reopen(world: World, run: Run, job: Job | None) -> None:
    """Reopens the failure that `run` was to repeat.

    It is one of the effects of `run`, so it may happen twice, even after the failed run was run again. The group is
    created first and woken last, if the failed run expires before the group's next regular check.
    """
    assert run.rerun_of is not None
    owner, uuid = run.rerun_of.split("_")
    old, now = ledger.read(world.table, run.tenant, owner, uuid), world.clock.now()
    if old is None or old.is_gone(now) or old.state not in FAILED or old.rerun_by not in {None, run.id}:
        return
    failures.with_group(world, old, job if job is None or job.id == old.job_id else None)
    if old.rerun_by == run.id:
        noted = store.read_run(world.table, run.tenant, signature_of(old).id, uuid)
        noted_at = noted.at if noted is not None and noted.at is not None else now
        table = world.table
        table.transact([ledger.not_rerun_op(table, old, run.id), store.not_rerun_op(table, old, noted_at, run.id)])
    _wake_its_group(world, old, now)


def _wake_its_group(world: World, old: Run, now: datetime) -> None:
    """Sets an early check for a run that expires before the next regular one could warn of it."""
    if old.expires_at is None or old.expires_at > now + failures.LOOK + failures.TOLD_AHEAD:
        return
    group = store.read_group(world.table, old.tenant, signature_of(old).id)
    if group is not None:
        store.look_again(world.table, group, now + SOON)
