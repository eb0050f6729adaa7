"""The message of the run queues: a pointer, which contains keys only, never a payload or an address."""

from __future__ import annotations

import json
from dataclasses import field
from datetime import datetime
from enum import StrEnum

from sweephand.base.ids import run_uuid
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, epoch_s, from_s
from sweephand.domain.run import Kind

VERSION = 1
READABLE = frozenset({VERSION})
"""Versions that this code reads: its own and, if any, the previous one, so that old and new functions run together."""


class Subject(StrEnum):
    """The work that a pointer asks for. OPERATION and ERRORS go to the function `operations`, others to executors."""

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
    CONSUMER = "consumer"
    UNCLAIMED = "unclaimed"
    WATCH = "watch"
    MOVED = "moved"
    LEFT = "left"


@dataclass(frozen=True)
class Pointer:
    """A request for work on one row.

    instant: the planned instant in whole seconds. attempt: the attempt to make. generation: the schedule's generation
    that planned the instant. decided: whether the misfire policy was already applied (catch-up, change, audit). mark:
    shows, when a worker claims the run, that the service sent the pointer (security.marks); only messages to
    applications have one. recorded: whether the run had a row when the pointer was sent; if the row has expired since,
    the run is not repeated. not_after: the end of the time in which the pointer may act (audit); None for no limit.
    returns: how often its message has come back from the dead letters; sent_at: when the first of these messages was
    sent.

    Subjects other than RUN:
    SCHEDULE: complete the schedule if it is over. CLEAN_UP: end the open runs of a deleted owner (run: the name of the
    clean-up row). RESUME: resume the job if its pause is over. CHANGE: write schedules that still have to follow their
    job. RELEASE: release held schedules (run: the collection, empty for the whole tenant). ENDED: delete the job of a
    schedule that is over if its retention has passed (run: the schedule). REPLAN: plan the schedules of a calendar
    again (run: the calendar). OPERATION: continue an operation (run: the operation, generation: its step). ERRORS:
    publish the failures of a group that expire (run: the group). FLOW: start the runs that wait under a flow key
    (run: the key). CONSUMER: continue with the runs that are held for a consumer (run: the consumer). UNCLAIMED: check
    whether a worker has taken the run, whose message was sent a minute earlier. WATCH: check whether anybody receives
    what waits for an application or a consumer (job: the sort key of its row). MOVED: publish that newer zone data has
    moved an occurrence (run: its old instant in epoch seconds). LEFT: send the held runs of a job on whose action has
    left its workers.
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
    recorded: bool = False
    not_after: datetime | None = None
    mark: str | None = field(default=None, compare=False)
    returns: int = 0
    sent_at: datetime | None = None

    @property
    def owner(self) -> str:
        """Returns the id of the schedule or job whose ledger partition contains the run."""
        return self.schedule or self.job


class Unreadable(ValueError):
    """A message that no version of this code wrote."""


def occurrence(tenant: str, job: str, schedule: str, instant: datetime, generation: int) -> Pointer:
    """Returns the pointer of a planned occurrence. The run id is derived from the other members."""
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
    if pointer.recorded:
        members["recorded"] = True
    if pointer.not_after is not None:
        members["notAfter"] = epoch_s(pointer.not_after)
    if pointer.mark is not None:
        members["mark"] = pointer.mark
    if pointer.sent_at is not None:
        members |= {"returns": pointer.returns, "sent": epoch_s(pointer.sent_at)}
    return json.dumps(members, separators=(",", ":"))


def decode(body: str) -> Pointer:
    """Reads a message of a version in READABLE. Raises Unreadable for any other."""
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
            recorded=members.get("recorded") is True,
            not_after=None if members.get("notAfter") is None else from_s(int(members["notAfter"])),
            mark=None if members.get("mark") is None else _text(members["mark"]),
            returns=int(members.get("returns", 0)),
            sent_at=from_s(int(members["sent"])) if "sent" in members else None,
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as wrong:
        raise Unreadable(f"not a run pointer: {type(wrong).__name__}") from wrong


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a key must be a string")
    return value
