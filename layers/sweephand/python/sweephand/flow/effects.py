"""What follows from the end of a run. Each part may happen twice: all of it is idempotent by the run's id."""

from __future__ import annotations

import math
from datetime import timedelta

from sweephand import ids
from sweephand.domain.collection import Events
from sweephand.domain.instants import epoch_ms
from sweephand.domain.job import Job
from sweephand.domain.run import FAILED, RAN, REACTIONS, Kind, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState, may_end
from sweephand.flow import endings
from sweephand.flow.settle import action_of, lane_of, new_run
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.store import ledger
from sweephand.values import replace

WAKE = timedelta(seconds=60)
"""A run that is written before its message is looked at again after this long."""
STOPS_ITS_TASK = frozenset({State.CANCELLED, State.TIMEOUT})


_ALERTS = {"ansConfig", "calmConfig"}
"""By what a job of the SAP facade asks for events of its own."""


def after(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> None:
    """The effects of a finished run, then its wake goes. Raises Unavailable: the message then comes back."""
    if run.reported is not None:
        from sweephand.flow import reports  # noqa: PLC0415 - few targets report, and few of those with a message

        run = reports.read_over(world, run, job, schedule)
    if run.kind not in REACTIONS and job is not None:
        _react(world, run, job, schedule)
    if run.slotted:
        from sweephand.flow import overlap  # noqa: PLC0415 - most schedules let their runs overlap and have no slot

        overlap.release(world, run, schedule)
    if run.task is not None and run.state in STOPS_ITS_TASK:
        from sweephand.flow import tasks  # noqa: PLC0415 - few jobs run tasks

        tasks.stop(world, run, run.task)
    if run.flow_key is not None:
        from sweephand.flow import flow_keys  # noqa: PLC0415 - most jobs name none

        flow_keys.leave(world, run, own=False)
    _tell(world, run, job, schedule)
    _note_errors(world, run, job)
    of_attempt(world, run, job, schedule)
    if schedule is not None and _may_be_over(schedule):
        endings.after_run(world, run, schedule, job)
    if run.wake_at is not None:
        ledger.drop_wake(world.table, run)


def _may_be_over(schedule: Schedule) -> bool:
    """An endless series costs no further read."""
    return schedule.state is not ScheduleState.ACTIVE or may_end(schedule.packed)


def _note_errors(world: World, run: Run, job: Job | None) -> None:
    """A run that failed, or one that was to make a failed run good and did not run."""
    if run.state in FAILED:
        from sweephand.flow import failures  # noqa: PLC0415 - most runs succeed

        failures.noted(world, run, job)
    if run.rerun_of is not None and run.state not in RAN:
        from sweephand.flow import reopening  # noqa: PLC0415 - most runs repeat none, and what repeats one runs

        reopening.reopen(world, run, job)


def _react(world: World, run: Run, job: Job, schedule: Schedule | None) -> None:
    if run.state in FAILED and job.error_action is not None:
        start_reaction(world, run, job, Kind.ERROR_ACTION)
    if job.hooks or (schedule is not None and schedule.hooks is not None):
        from sweephand.flow import hooks  # noqa: PLC0415 - most jobs have none

        hooks.start(world, run, job, schedule)


def of_attempt(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> None:
    """What follows from an attempt at a target that was out of reach, whether another attempt follows or not."""
    if job is None or schedule is None or schedule.unreachable is None:
        return
    from sweephand.flow import reach  # noqa: PLC0415 - most targets can be reached

    reach.judge(world, run, job, schedule)


def _tell(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> None:
    """The event of this end. A plain success of which nobody wants to hear loads and reads nothing."""
    quiet = run.state is State.SUCCESS and job is not None and not _ALERTS & job.attributes.keys()
    if quiet and job is not None and _known_choice(world, job) is not Events.ALL:
        return
    from sweephand.flow import announce  # noqa: PLC0415 - most runs succeed, and most collections tell failures only

    announce.run_ended(world, run, job, schedule)


def _known_choice(world: World, job: Job) -> Events:
    """As the gate read it, however long the action took since."""
    return world.standing.of(job.tenant, job.collection, kept_s=math.inf).events


def start_reaction(world: World, ended: Run, job: Job, kind: Kind) -> None:
    """A run of its own, under an id that the ended run determines; its row first, then its message."""
    now = world.clock.now()
    owner = ended.schedule_id or ended.job_id
    uuid = ids.run_uuid(ended.tenant, owner, epoch_ms(ended.planned_at), kind.value, ended.uuid)
    started = replace(
        new_run(job, kind, ended.schedule_id, uuid, State.QUEUED, ended.planned_at),
        enqueued_at=now,
        generation=ended.generation,
        parent_uuid=ended.uuid,
        hop=ended.hop,
        chain=ended.chain,
        root=ended.root or (ended.id if action_of(job, kind).kind == "job" else None),
        wake_at=now + WAKE,
    )
    own_lane = lane_of(action_of(job, kind))
    ledger.claim_first(world.table, started, shards=world.settings.shards, lane=own_lane)
    world.queue.send_one(Delivery(ledger.pointer_to(started), now, own_lane))
