"""The slot of a schedule whose runs exclude each other: entered at the first attempt, left by the effects of the end.

A run that has ended and is still in the slot (its executor died between) holds up nobody: whoever meets it does that
part of its effects. So an end costs no transaction, whoever writes it: executor, callback, cancel, clean-up.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from enum import Enum, auto

from sweephand.domain.job import Job
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.runs import overlap
from sweephand.domain.runs.overlap import Busy, Clear, Overlap, Queue, Slot, Take, Wait, contend, unattended, without
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import Lane, Schedule
from sweephand.errors import Unavailable
from sweephand.flow.retention import run_expiry
from sweephand.flow.runs import settle
from sweephand.flow.world import World
from sweephand.store.dynamo.conditional import Cancelled, Refused, Written
from sweephand.store.runs import ledger, overlap_slots

WAKE_QUEUED = timedelta(minutes=15)
WAKE_PASSED = timedelta(seconds=60)
TRIES = 5


class Turn(Enum):
    WAITS = auto()
    """It is queued, and its wake row answers for it."""
    MOVED = auto()
    """The slot, or what stands in it, changed in between: look again."""


def take_turn(
    world: World, lane: Lane, mine: Run, there: Run | None, job: Job, schedule: Schedule | None
) -> Written | Refused | Busy | Turn:
    """Claims the first attempt of a run together with its schedule's slot, or says why not.

    mine: the row as the claim will leave it, slotted; there: as it was read. Refused: the run's row was written by
    somebody first, or by this executor (its answer was lost). Raises Unavailable.
    """
    slot, rows = overlap_slots.look(world.table, mine)
    policy = Overlap(policies_of(job, schedule).get("overlap", Overlap.ALLOW))
    queued_before = there is not None and there.slotted
    match contend(policy, mine, slot, rows, queued_before=queued_before):
        case Take(after):
            return _claim(world, lane, overlap_slots.Move(slot, after, mine, there))
        case overlap.Replace(after, open_runs):
            return _replace(world, lane, overlap_slots.Move(slot, after, mine, there), open_runs, job.collection)
        case Queue(after, active):
            _wake(world, lane, active)
            return _queue(world, lane, overlap_slots.Move(slot, after, mine, there))
        case Busy(active) as busy:
            _wake(world, lane, active)
            return busy
        case Wait(active):
            _wake(world, lane, active)
            return Turn.WAITS
        case Clear(uuid):
            _clear(world, lane, slot, uuid)
            return Turn.MOVED


def release(world: World, run: Run, schedule: Schedule | None) -> None:
    """A part of the effects of a run that was in the slot: its place goes to the one that waits, or is free.

    May happen twice, and after others have had the slot. Raises Unavailable.
    """
    assert run.schedule_id is not None
    lane = schedule.lane if schedule is not None else world.settings.lane
    alone = Slot(run.tenant, run.job_id, run.schedule_id, active=run.uuid)
    _clear(world, lane, alone, run.uuid)


def _claim(world: World, lane: Lane, move: overlap_slots.Move) -> Written | Refused | Turn:
    if move.before == move.after and move.there is not None:
        # The slot was passed on to it: only its row can still speak against it.
        lease = ledger.Lease.of(move.run)
        return ledger.claim_again(world.table, move.there, lease, move.there.attempt)
    done = overlap_slots.claim(world.table, move, shards=world.settings.shards, lane=lane)
    return done if isinstance(done, Written) else _refused(done)


def _replace(
    world: World, lane: Lane, move: overlap_slots.Move, open_runs: tuple[Run, ...], collection: str
) -> Written | Refused | Turn:
    """A call that is under way cannot be recalled: its late answer becomes a note of the run that was replaced."""
    now = world.clock.now()
    ended = tuple(
        replace(
            old,
            state=State.CANCELLED,
            reason=Reason.REPLACED,
            message=f"replaced by the run {move.run.id}",
            finished_at=now,
            expires_at=run_expiry(world, old.tenant, collection, now),
            owner=None,
            lease_until=None,
            wake_at=now,
        )
        for old in open_runs
    )
    skipped = sum(settle.counts_of(old).get("skipped", 0) for old in ended)
    move = replace(move, ended=ended, counts={"skipped": skipped} if skipped else {})
    done = _claim(world, lane, move)
    if isinstance(done, Written):
        for old in ended:
            _try_pointer(world, lane, old)
    return done


def _queue(world: World, lane: Lane, move: overlap_slots.Move) -> Refused | Turn:
    waiting = replace(
        move.run,
        state=State.QUEUED,
        owner=None,
        lease_until=None,
        started_at=None,
        first_started_at=None,
        wake_at=world.clock.now() + WAKE_QUEUED,
    )
    done = overlap_slots.queue(world.table, replace(move, run=waiting), shards=world.settings.shards, lane=lane)
    if isinstance(done, Written):
        return Turn.WAITS
    return _refused(done)


def _refused(cancelled: Cancelled) -> Refused | Turn:
    """The row speaks before the slot: it tells whether this was already done."""
    return cancelled.refused.get("run") or Turn.MOVED


def _clear(world: World, lane: Lane, slot: Slot, uuid: str) -> None:
    """Takes a run that has ended out of the slot. slot: as it was read, or as it is taken to be."""
    moved: Written | Refused | None
    for _ in range(TRIES):
        queued = _row(world, slot, slot.queued) if slot.active == uuid else None
        after = without(slot, uuid, queued)
        if after == slot:
            _wake_next(world, lane, slot)
            return
        if queued is not None and after.active == queued.uuid:
            moved = _pass_on(world, lane, slot, after, queued)
        else:
            moved = overlap_slots.move(world.table, slot, after)
        if isinstance(moved, Written):
            return
        if moved is not None:
            slot = overlap_slots.read_in(moved, slot)
    raise Unavailable("the slot of the schedule changes all the time")


def _pass_on(world: World, lane: Lane, slot: Slot, after: Slot, queued: Run) -> Written | Refused | None:
    """None: the run waits no longer. Refused: the slot is not as it was read. Raises Unavailable."""
    wake_at = world.clock.now() + WAKE_PASSED
    done = overlap_slots.pass_on(world.table, slot, after, queued, wake_at, shards=world.settings.shards, lane=lane)
    if isinstance(done, Written):
        settle.send_pointer(world, lane, queued)
        return done
    return done.refused.get("slot")


def _wake_next(world: World, lane: Lane, slot: Slot) -> None:
    """The slot was passed on before, and perhaps the pointer of the next run never went out."""
    active = _row(world, slot, slot.active)
    if active is not None and active.state is State.QUEUED:
        settle.send_pointer(world, lane, active)


def _row(world: World, slot: Slot, uuid: str | None) -> Run | None:
    return None if uuid is None else ledger.read(world.table, slot.tenant, slot.schedule_id, uuid)


def _wake(world: World, lane: Lane, active: Run) -> None:
    """A holder that nobody attends to does not lose the slot: its own delivery goes on with it, or ends it."""
    if unattended(active, world.clock.now()):
        _try_pointer(world, lane, active)


def _try_pointer(world: World, lane: Lane, run: Run) -> None:
    try:
        settle.send_pointer(world, lane, run)
    except Unavailable:
        world.journal.warning("its wake, or the next run, sends it again", run=run.uuid)
