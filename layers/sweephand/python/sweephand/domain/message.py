"""The pointer that travels through the run queues: keys only, never a payload or an address."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sweephand.domain.instants import epoch_ms, epoch_s, from_s
from sweephand.domain.run import Kind
from sweephand.ids import run_uuid

VERSION = 1
READABLE = frozenset({VERSION})
"""Versions that this code reads: its own and the one before, so that old and new functions work side by side."""


class Subject(StrEnum):
    """What a pointer asks for: OPERATION and ERRORS the function `operations`, others an executor."""

    RUN = "run"
    SCHEDULE = "schedule"
    CLEAN_UP = "clean_up"
    RESUME = "resume"
    CHANGE = "change"
    RELEASE = "release"
    ENDED = "ended"
    REPLAN = "replan"
    OPERATION = "operation"
    ERRORS = "errors"
    FLOW = "flow"


@dataclass(frozen=True)
class Pointer:
    """instant: planned, whole seconds. attempt: the attempt that it asks for.

    generation: of the schedule that planned it.

    decided: its lateness was already judged (catch-up, change, audit). subject SCHEDULE: see whether the schedule
    is over; CLEAN_UP: end what a deleted owner left (run: the name of the clean-up row); RESUME: see whether the job's
    pause is over; CHANGE: see whether schedules still have to follow their job; RELEASE: let go what was held (run: the
    collection, empty for the whole tenant); ENDED: see whether the job of a schedule that is over goes
    (run: the schedule); REPLAN: plan anew what names a calendar (run: the calendar); OPERATION: go on with long work
    (run: the operation, generation: its step); ERRORS: tell what expires of a group of failures (run: the group);
    FLOW: call who waits under a flow key (run: the key).
    """

    tenant: str
    job: str
    schedule: str | None
    run: str
    instant: datetime
    kind: Kind = Kind.SCHEDULED
    attempt: int = 1
    generation: int = 0
    decided: bool = False
    subject: Subject = Subject.RUN

    @property
    def owner(self) -> str:
        """Whose ledger partition the run is in."""
        return self.schedule or self.job


class Unreadable(ValueError):
    """A message that no version of this code wrote."""


def occurrence(tenant: str, job: str, schedule: str, instant: datetime, generation: int) -> Pointer:
    """The pointer of a planned occurrence: its run id follows from it."""
    run = run_uuid(tenant, schedule, epoch_ms(instant), Kind.SCHEDULED.value)
    return Pointer(tenant, job, schedule, run, instant, generation=generation)


def encode(pointer: Pointer) -> str:
    members: dict[str, object] = {
        "v": VERSION,
        "kind": pointer.kind.value,
        "tenant": pointer.tenant,
        "job": pointer.job,
        "schedule": pointer.schedule,
        "run": pointer.run,
        "instant": epoch_s(pointer.instant),
        "attempt": pointer.attempt,
        "generation": pointer.generation,
        "decided": pointer.decided,
    }
    if pointer.subject is not Subject.RUN:
        members["subject"] = pointer.subject.value
    return json.dumps(members, separators=(",", ":"))


def decode(body: str) -> Pointer:
    """Raises Unreadable for anything that encode, of this version or the one before, did not write."""
    try:
        members = json.loads(body)
        if members["v"] not in READABLE:
            raise Unreadable(f"message version {members['v']!r}")
        return Pointer(
            tenant=_text(members["tenant"]),
            job=_text(members["job"]),
            schedule=None if members["schedule"] is None else _text(members["schedule"]),
            run=_text(members["run"]),
            instant=from_s(int(members["instant"])),
            kind=Kind(members["kind"]),
            attempt=int(members["attempt"]),
            generation=int(members["generation"]),
            decided=members["decided"] is True,
            subject=Subject(members.get("subject", Subject.RUN.value)),
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as wrong:
        raise Unreadable(f"not a run pointer: {type(wrong).__name__}") from wrong


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a key is a text")
    return value
