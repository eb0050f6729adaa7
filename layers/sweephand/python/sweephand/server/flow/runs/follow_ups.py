"""The next run of a chain: a target that reports its result says when its job runs again.

The row of the next run is written in the transaction that ends the run before it, so a chain cannot break. Its id is
computed from that run, so a repeated report does not start a second one. Source: decision 0124; chained one-time jobs
of Root (R10) and timeouts of NServiceBus (N19).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base import ids
from sweephand.base.errors import InvalidRequest
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, text_ms
from sweephand.domain.job import Job
from sweephand.domain.run import Kind, Run, State
from sweephand.domain.runs import run_action
from sweephand.server.flow.runs import chained_runs, edits
from sweephand.server.flow.runs.edits import Edit
from sweephand.server.flow.series.replan import EXTRA_LOOK_AHEAD_S
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Op
from sweephand.server.store.runs import ledger, run_rows

FIELD = "reschedule"
FURTHEST = timedelta(days=548)


@dataclass(frozen=True)
class FollowUp:
    """The instant, to the second, at which the job runs again.

    asked: the request's own text, which identifies a repeated report. edit: a payload or headers for that run that
    differ from the job's.
    """

    at: datetime
    asked: str
    edit: Edit | None = None


def check(follow_up: FollowUp, job: Job, now: datetime) -> None:
    """Raises InvalidRequest for an instant that is past or too far ahead, or an edit that the action cannot send."""
    if not now < follow_up.at <= now + FURTHEST:
        reason = f"must be in the future, by {FURTHEST.days} days at most; it is {text_ms(now)} now"
        raise InvalidRequest(f"{FIELD}.at", reason)
    if follow_up.edit is not None:
        try:
            edits.check(job.action, follow_up.edit)
        except InvalidRequest as wrong:
            raise wrong.within(FIELD) from wrong


def run_after(ended: Run, job: Job, follow_up: FollowUp) -> Run:
    """Returns the next run, which waits until its instant."""
    owner = ended.schedule_id or job.id
    uuid = ids.run_uuid(job.tenant, owner, epoch_ms(follow_up.at), Kind.MANUAL.value, ended.uuid)
    return replace(
        run_action.new_run(job, Kind.MANUAL, ended.schedule_id, uuid, State.QUEUED, follow_up.at),
        not_before=follow_up.at,
        parent_uuid=ended.uuid,
        wake_at=follow_up.at,
        edited=follow_up.edit is not None,
        hop=ended.hop,
        chain=ended.chain,
        root=ended.root,
    )


def ops(world: World, run: Run, job: Job, follow_up: FollowUp) -> list[Op]:
    """Returns the operations that write the run, for the transaction that ends the one before it."""
    item = run_rows.item_of(
        run, shards=world.shards, lane=run_action.lane_of(job.action, job.tenant), table=world.table
    )
    made = [world.table.put_op("next", item, ledger.ABSENT)]
    if follow_up.edit is not None:
        made.append(edits.edit_op(world, run, follow_up.edit, run.planned_at))
    return made


def send_soon(world: World, run: Run, job: Job) -> None:
    """Sends the message of a run that is due before the next tick is certain to find it. The sweep sends later ones."""
    too_soon = timedelta(seconds=world.settings.look_ahead_s + EXTRA_LOOK_AHEAD_S)
    if run.planned_at <= world.clock.now() + too_soon:
        chained_runs.send(world, run, run_action.lane_of(job.action, job.tenant))
