"""One run of a schedule at a time: who has the slot, and what becomes of a run that finds it taken. Pure.

Scheduled and manual runs of a schedule count, error actions do not. A run is active until its end: waits for a retry or
for a result included. The slot has no end of its own: when a holder's lease is over, only its own delivery goes on
with it or ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from sweephand.domain.run import AWAITING_RESULT, Run, State


class Overlap(StrEnum):
    """What becomes of an occurrence that is due while an earlier run of its schedule is active."""

    ALLOW = "allow"
    """It runs beside it, and no slot is kept."""
    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    """It runs when the active one has ended; a further one is skipped."""
    REPLACE = "replace"
    """It runs, and the active one is cancelled."""


@dataclass(frozen=True)
class Slot:
    """Of one schedule: uuids of the run whose turn it is, and of the one that waits behind it."""

    tenant: str
    job_id: str
    schedule_id: str
    active: str | None = None
    queued: str | None = None

    @property
    def empty(self) -> bool:
        return self.active is None and self.queued is None


@dataclass(frozen=True)
class Take:
    """It is this run's turn. slot: as it shall be; the same as before if it has the slot already."""

    slot: Slot


@dataclass(frozen=True)
class Queue:
    """Wait behind the active run."""

    slot: Slot
    active: Run


@dataclass(frozen=True)
class Replace:
    """Take the turn of these open runs, which end."""

    slot: Slot
    ended: tuple[Run, ...]


@dataclass(frozen=True)
class Busy:
    """No place for this run."""

    active: Run


@dataclass(frozen=True)
class Wait:
    """It is queued already, and still must be."""

    active: Run


@dataclass(frozen=True)
class Clear:
    """A run that has ended is still in the slot: what follows from its end comes first."""

    uuid: str


Contest = Take | Queue | Replace | Busy | Wait | Clear


def contend(policy: Overlap, me: Run, slot: Slot, rows: Mapping[str, Run], *, queued_before: bool) -> Contest:
    """What a run may do that is about to begin its first attempt. queued_before: once queued, it waits for its turn
    under any policy. One that repeats an earlier run does so from the start: it is neither what the policy leaves out
    because it will come again, nor newer than what is active.

    rows: those of the other runs in the slot, by uuid. One without a row ended so long ago that the ledger has
    forgotten it.
    """
    if slot.active in {None, me.uuid}:
        return Take(replace(slot, active=me.uuid, queued=None if slot.queued == me.uuid else slot.queued))
    for uuid in (slot.active, slot.queued):
        if uuid is not None and uuid != me.uuid and (uuid not in rows or rows[uuid].finished):
            return Clear(uuid)
    active = rows[str(slot.active)]
    if queued_before or slot.queued == me.uuid:  # perhaps since the row was read: by another copy of its message
        return Wait(active)
    repeats = me.rerun_of is not None
    if (repeats or policy is Overlap.QUEUE_ONE) and slot.queued is None:
        return Queue(replace(slot, queued=me.uuid), active)
    if not repeats and policy is Overlap.REPLACE and all(run.planned_at <= me.planned_at for run in rows.values()):
        return Replace(replace(slot, active=me.uuid, queued=None), tuple(rows.values()))
    return Busy(active)


def without(slot: Slot, uuid: str, queued: Run | None) -> Slot:
    """The slot after the end of a run. queued: the row of the one that waits behind it; its turn comes if it still
    waits.
    """
    if slot.active == uuid:
        passes = queued is not None and queued.state is State.QUEUED
        return replace(slot, active=slot.queued if passes else None, queued=None)
    return replace(slot, queued=None) if slot.queued == uuid else slot


def unattended(run: Run, now: datetime) -> bool:
    """Nobody seems to be at work on the holder of a slot, and nothing to be awaited: its pointer may be lost."""
    if run.state is State.TRIGGERED:
        return run.lease_until is None or run.lease_until <= now
    if run.state in AWAITING_RESULT:
        return run.deadline_at is not None and run.deadline_at <= now
    return run.not_before is None or run.not_before <= now
