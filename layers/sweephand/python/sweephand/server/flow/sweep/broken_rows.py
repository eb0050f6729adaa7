"""Takes a schedule out of service that cannot be read or planned."""

from __future__ import annotations

from datetime import timedelta

from sweephand.base import ids
from sweephand.domain.instants import epoch_ms, epoch_s
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane, ScheduleState, StateReason
from sweephand.schedules.rule import Undecided
from sweephand.server.flow import retention
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo.expressions import Condition, assign
from sweephand.server.store.dynamo.table import ScheduleItem
from sweephand.server.store.index.next_run_index import WaitingRow
from sweephand.server.store.runs import ledger

OUT_WITHIN = timedelta(seconds=30)
"""Delay of the message, so that the schedule is out of service when the executor reads it."""

UNREADABLE = "the stored text of this schedule cannot be read: the schedule was taken out of service"

TOO_HARD = "the next occurrence takes too long to compute with its calendars: the schedule was taken out of service"


def take_out(world: World, row: WaitingRow, why: ValueError) -> None:
    """Writes a failed run, sends its pointer, then takes the schedule out of the index unless it was changed.

    After a crash in between, the next tick repeats all of it. An executor gets the pointer a moment later and carries
    out the effects of a failed run. The run counts as planned and as failed. A row of another kind stays where it is
    and is reported at each tick. why: the error of reading or planning the schedule.
    """
    if not row.sk.startswith("SCH#"):
        world.journal.error("a waiting row cannot be read", tenant=row.tenant, job=row.owner, kind=row.sk[:8])
        return
    now = world.clock.now()
    run = Run(
        tenant=row.tenant,
        job_id=row.owner,
        schedule_id=row.own_id,
        uuid=ids.run_uuid(row.tenant, row.own_id, epoch_ms(row.next_run_at), Kind.SCHEDULED.value),
        kind=Kind.SCHEDULED,
        state=State.ERROR,
        reason=Reason.BAD_PAYLOAD,
        planned_at=row.next_run_at,
        finished_at=now,
        message=TOO_HARD if isinstance(why, Undecided) else UNREADABLE,
        expires_at=retention.expiry(now),
        generation=row.generation,
    )
    ledger.finish_without_attempt(world.table, run, shards=world.shards, lane=Lane.FAST, counts={"failed": 1})
    world.queue.send_one(Delivery(ledger.pointer_to(run), now + OUT_WITHIN, Lane.FAST))
    as_read: Condition = ScheduleItem.next_run_at == epoch_s(row.next_run_at)
    actions = [
        assign(ScheduleItem.state, ScheduleState.BROKEN.value),
        assign(ScheduleItem.state_reason, StateReason.UNREADABLE.value),
        assign(ScheduleItem.planned_total, row.planned_total + 1),
        assign(ScheduleItem.next_run_at, None),
        assign(ScheduleItem.schedule_id, None),
    ]
    world.table.update(row.pk, row.sk, actions, as_read)
    world.journal.error("a schedule cannot be read", tenant=row.tenant, job=row.owner, schedule=row.own_id)
    world.journal.count("Broken")
