"""The slot of a schedule whose runs exclude each other: taken at the first attempt, released by the effects of the end.

A run that has ended but is still in the slot, because its executor died, blocks nobody: the next run that finds it
there releases the slot. So an end needs no transaction, whether an executor, a callback, a cancel or a clean-up writes
it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from enum import Enum, auto

from sweephand.domain.run import Reason, Run, State
from sweephand.domain.runs import overlap
from sweephand.domain.runs.overlap import Busy, Clear, Overlap, Queue, Slot, Take, Wait, contend, unattended, without
from sweephand.domain.runs.run_action import OpenAttempt
from sweephand.domain.schedule import Lane, Schedule
from sweephand.server.flow.concurrency import TRIES, tolerated, too_many
from sweephand.server.flow.retention import run_expiry
from sweephand.server.flow.runs import settle
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Cancelled, Refused, Written
from sweephand.server.store.runs import ledger, overlap_slots

WAKE_QUEUED = timedelta(minutes=15)
WAKE_PASSED = timedelta(seconds=60)


class Turn(Enum):
    WAITS = auto()
    """The run is queued. Its wake row makes sure that it continues."""
    MOVED = auto()
    """The slot, or a run in it, changed in between: read again."""


def take_turn(world: World, attempt: OpenAttempt) -> Written | Refused | Busy | Turn:
    """Claims the first attempt of a run together with its schedule's slot, or returns why not.

    attempt: with the row as the claim will leave it, in the slot. Returns Refused if somebody else wrote the run's row
    first, or if this executor did and the answer was lost. Raises Unavailable.
    """
    run, before, lane = attempt.run, attempt.before, attempt.lane
    slot, rows = overlap_slots.read(world.table, run)
    policy = Overlap(attempt.policies.get("overlap", Overlap.ALLOW))
    queued_before = before is not None and before.slotted
    match contend(policy, run, slot, rows, queued_before=queued_before):
        case Take(after):
            return _claim(world, lane, overlap_slots.Move(slot, after, run, before))
        case overlap.Replace(after, open_runs):
            move = overlap_slots.Move(slot, after, run, before)
            return _replace(world, lane, move, open_runs, attempt.job.collection)
        case Queue(after, active):
            _wake(world, lane, active)
            return _queue(world, lane, overlap_slots.Move(slot, after, run, before))
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
    """Passes a finished run's slot on to the waiting run, or frees it. Raises Unavailable.

    May be repeated, even after others have had the slot.
    """
    assert run.schedule_id is not None
    lane = schedule.lane if schedule is not None else world.settings.lane
    alone = Slot(run.tenant, run.job_id, run.schedule_id, active=run.uuid)
    _clear(world, lane, alone, run.uuid)


def _claim(world: World, lane: Lane, move: overlap_slots.Move) -> Written | Refused | Turn:
    if move.before == move.after and move.row is not None:
        # The slot was passed on to this run: only its own row can still refuse the claim.
        lease = ledger.Lease.of(move.run)
        return ledger.claim_again(world.table, move.row, lease, move.row.attempt)
    done = overlap_slots.claim(world.table, move, shards=world.shards, lane=lane)
    return done if isinstance(done, Written) else _refused(done)


def _replace(
    world: World, lane: Lane, move: overlap_slots.Move, open_runs: tuple[Run, ...], collection: str
) -> Written | Refused | Turn:
    """Claims the run and cancels the open ones.

    A call that has begun cannot be recalled: its late answer becomes a note of the replaced run.
    """
    now = world.clock.now()
    ended = tuple(
        replace(
            old,
            state=State.CANCELLED,
            reason=Reason.REPLACED,
            message=f"replaced by the run {move.run.id}",
            finished_at=now,
            expires_at=run_expiry(world, old.tenant, collection, now),
            lease_owner=None,
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
        lease_owner=None,
        lease_until=None,
        started_at=None,
        first_started_at=None,
        wake_at=world.clock.now() + WAKE_QUEUED,
    )
    done = overlap_slots.queue(world.table, replace(move, run=waiting), shards=world.shards, lane=lane)
    if isinstance(done, Written):
        return Turn.WAITS
    return _refused(done)


def _refused(cancelled: Cancelled) -> Refused | Turn:
    """Returns the refusal of the run, not that of the slot: it shows whether this call was already carried out."""
    return cancelled.refused.get("run") or Turn.MOVED


def _clear(world: World, lane: Lane, slot: Slot, uuid: str) -> None:
    """Takes a run that has ended out of the slot. slot: as it was read, or as it is assumed to be."""
    moved: Written | Refused | None
    for _ in range(TRIES):
        queued = _row(world, slot, slot.queued) if slot.active == uuid else None
        after = without(slot, uuid, queued)
        if after == slot:
            active = _row(world, slot, slot.active)
            if active is not None and active.state is State.QUEUED:
                settle.send_pointer(world, lane, active)
            return
        if queued is not None and after.active == queued.uuid:
            moved = _pass_on(world, lane, slot, after, queued)
        else:
            moved = overlap_slots.move(world.table, slot, after)
        if isinstance(moved, Written):
            return
        if moved is not None:
            slot = overlap_slots.read_in(moved, slot)
    raise too_many("changes to the schedule's slot")


def _pass_on(world: World, lane: Lane, slot: Slot, after: Slot, queued: Run) -> Written | Refused | None:
    """Passes the slot on to the queued run. Raises Unavailable.

    Returns None if that run no longer waits, Refused if the slot is no longer as it was read.
    """
    wake_at = world.clock.now() + WAKE_PASSED
    done = overlap_slots.pass_on(world.table, slot, after, queued, wake_at, shards=world.shards, lane=lane)
    if isinstance(done, Written):
        settle.send_pointer(world, lane, queued)
        return done
    return done.refused.get("slot")


def _row(world: World, slot: Slot, uuid: str | None) -> Run | None:
    return None if uuid is None else ledger.read(world.table, slot.tenant, slot.schedule_id, uuid)


def _wake(world: World, lane: Lane, active: Run) -> None:
    """Sends the pointer of an active run that no executor works on. Its delivery continues or ends the run."""
    if unattended(active, world.clock.now()):
        _try_pointer(world, lane, active)


def _try_pointer(world: World, lane: Lane, run: Run) -> None:
    with tolerated(world, "a pointer was not sent; the run's wake or the next run sends it", run=run.uuid):
        settle.send_pointer(world, lane, run)
