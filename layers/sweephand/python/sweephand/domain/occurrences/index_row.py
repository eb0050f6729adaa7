"""What the next-run index knows of a row that waits: enough for the sweeper to act without reading the row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import quote, unquote

from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.run import Kind, Run
from sweephand.domain.schedule import Lane

WAKE_AGAIN = timedelta(minutes=15)
"""A row that wakes somebody speaks again after this long, until what it waits for has come."""
WAKE = timedelta(seconds=60)
"""A row that is written before its message is looked at after this long, in case the message was lost."""


class Waits(StrEnum):
    """For what a row waits."""

    OCCURRENCE = "S"
    """A schedule: its next occurrence."""
    END = "E"
    """An ENDING schedule: to be looked at until it is COMPLETED."""
    RUN = "R"
    """A run: its pointer is due (retry, deadline, lost message)."""
    CATCH_UP = "C"
    """Missed occurrences that are sent paced."""
    CLEAN_UP = "X"
    """What was deleted: its open runs are to be ended."""
    RESUME = "P"
    """A paused job: its pause ends."""
    CHANGE = "G"
    """A job with many schedules: those that still have to follow a change."""
    HELD = "H"
    """A schedule whose collection or tenant is disabled: `since` is its earliest occurrence not yet sent."""
    RELEASE = "L"
    """A collection or a tenant that was enabled: its held schedules are to be let go."""
    REPLAN = "N"
    """A calendar that was changed: the schedules that name it are to be planned anew."""
    OPERATION = "O"
    """Long work under way: its next page, should the message of it be lost."""
    ERRORS = "F"
    """A group of failures: those that nobody has seen to and that will expire are told."""
    FLOW = "T"
    """A flow key: runs wait in its line, and are to be called out of it."""
    ENDED = "K"
    """A COMPLETED schedule, kept a while: its job goes when all are. `since` is its completion."""


class UnknownKind(LookupError):
    """A row of a kind that a later version wrote: to be left alone."""


@dataclass(frozen=True)
class SweepText:
    """The packed attribute `sweep`.

    packed: of a schedule, the text that schedules.timing.load reads; of a run, WaitingRun's.
    collection: of a schedule's job; None in rows of before it was packed, which are never held for their collection.
    It stands behind the kind, where a version that does not know it leaves the row alone.
    """

    waits: Waits
    lane: Lane
    misfire: str = ""
    packed: str = ""
    collection: str | None = None
    since: datetime | None = None

    def __str__(self) -> str:
        head = str(self.waits)
        if self.collection is not None or self.since is not None:
            head += "@" + ("" if self.collection is None else quote(self.collection, safe=""))
        if self.since is not None:
            head += f"@{epoch_s(self.since)}"
        return f"{head};{self.lane};{self.misfire};{self.packed}"

    @classmethod
    def read(cls, text: str) -> SweepText:
        """Raises UnknownKind for a row of a later version, ValueError for a text that nobody wrote."""
        head, lane, misfire, packed = text.split(";", 3)
        waits, *rest = head.split("@")
        try:
            kind = Waits(waits)
        except ValueError as unknown:
            raise UnknownKind(waits) from unknown
        if len(rest) > 2:
            raise UnknownKind(head)
        collection = unquote(rest[0]) if rest and rest[0] else None
        since = from_s(int(rest[1])) if len(rest) > 1 else None
        return cls(kind, Lane(lane), misfire, packed, collection, since)


@dataclass(frozen=True)
class WaitingRun:
    """What a run's pointer needs beside the row's key."""

    job_id: str
    kind: Kind
    attempt: int
    planned_at: datetime

    def __str__(self) -> str:
        return f"{self.job_id},{self.kind},{self.attempt},{epoch_s(self.planned_at)}"

    @classmethod
    def of(cls, run: Run) -> WaitingRun:
        return cls(run.job_id, run.kind, run.attempt, run.planned_at)

    @classmethod
    def read(cls, text: str) -> WaitingRun:
        job_id, kind, attempt, planned_at = text.split(",")
        return cls(job_id, Kind(kind), int(attempt), from_s(int(planned_at)))
