"""The overlap policy: one run of a schedule at a time holds its slot, and the policy decides about others. Pure.

Scheduled and manual runs count; error actions do not. A run is active until its end, even while it waits for a retry or
a result. The slot itself never expires: if the holder's lease has expired, only the holder's own message continues or
ends the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum

from sweephand.base.records import dataclass
from sweephand.domain.run import AWAITING_RESULT, Run, State


class Overlap(StrEnum):
    """The policy for an occurrence that is due while an earlier run of its schedule is active."""

    ALLOW = "allow"
    """It runs at the same time, and no slot is used."""
    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    """It runs after the active one has ended; further ones are skipped."""
    REPLACE = "replace"
    """It runs, and the active one is cancelled."""


@dataclass(frozen=True)
class Slot:
    """The slot of one schedule: the uuids of the active run and of the one that waits for it."""

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
    """The run may begin. slot: the new value, unchanged if the run already has the slot."""

    slot: Slot


@dataclass(frozen=True)
class Queue:
    """The run waits for the active one."""

    slot: Slot
    active: Run


@dataclass(frozen=True)
class Replace:
    """The run takes the place of these open runs, which are cancelled."""

    slot: Slot
    ended: tuple[Run, ...]


@dataclass(frozen=True)
class Busy:
    """The run has no place and is skipped."""

    active: Run


@dataclass(frozen=True)
class Wait:
    """The run is already queued and must keep waiting."""

    active: Run


@dataclass(frozen=True)
class Clear:
    """An ended run is still in the slot. The effects of its end come first."""

    uuid: str


Contest = Take | Queue | Replace | Busy | Wait | Clear


def contend(policy: Overlap, me: Run, slot: Slot, rows: Mapping[str, Run], *, queued_before: bool) -> Contest:
    """Decides about a run that is about to begin its first attempt.

    queued_before: whether the run was queued before. Such a run waits for its turn under any policy. So does a rerun,
    because it will not come again and is not newer than the active run. rows: the other runs in the slot, by uuid. A
    run without a row ended so long ago that the ledger no longer contains it.
    """
    if slot.active in {None, me.uuid}:
        return Take(replace(slot, active=me.uuid, queued=None if slot.queued == me.uuid else slot.queued))
    for uuid in (slot.active, slot.queued):
        if uuid is not None and uuid != me.uuid and (uuid not in rows or rows[uuid].finished):
            return Clear(uuid)
    active = rows[str(slot.active)]
    if queued_before or slot.queued == me.uuid:  # another copy of its message may have queued it since the read
        return Wait(active)
    repeats = me.rerun_of is not None
    if (repeats or policy is Overlap.QUEUE_ONE) and slot.queued is None:
        return Queue(replace(slot, queued=me.uuid), active)
    if not repeats and policy is Overlap.REPLACE and all(run.planned_at <= me.planned_at for run in rows.values()):
        return Replace(replace(slot, active=me.uuid, queued=None), tuple(rows.values()))
    return Busy(active)


def without(slot: Slot, uuid: str, queued: Run | None) -> Slot:
    """Returns the slot after the end of a run. queued: the waiting run, which becomes active if it still waits."""
    if slot.active == uuid:
        passes = queued is not None and queued.state is State.QUEUED
        return replace(slot, active=slot.queued if passes else None, queued=None)
    return replace(slot, queued=None) if slot.queued == uuid else slot


def unattended(run: Run, now: datetime) -> bool:
    """Returns True if the holder of a slot neither runs nor waits for anything: its pointer may be lost."""
    if run.state is State.TRIGGERED:
        return run.lease_until is None or run.lease_until <= now
    if run.state in AWAITING_RESULT:
        return run.deadline_at is not None and run.deadline_at <= now
    return run.not_before is None or run.not_before <= now
