"""The entry of a waiting row in the next-run index: enough for the sweeper to act without reading the row."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import quote, unquote

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.run import Kind, Run
from sweephand.domain.schedule import Lane

WAKE_AGAIN = timedelta(minutes=15)
"""A row that sent a wake-up sends it again after this time, until its wait is over."""
WAKE = timedelta(seconds=60)
"""If a row is written before its message, the sweeper checks it after this time, in case the message was lost."""


class Waits(StrEnum):
    """The event that a row waits for."""

    OCCURRENCE = "S"
    """A schedule: its next occurrence."""
    END = "E"
    """An ENDING schedule: checked until it is COMPLETED."""
    RUN = "R"
    """A run: its pointer is due (retry, deadline, lost message)."""
    CATCH_UP = "C"
    """Missed occurrences, which are sent at a limited rate."""
    CLEAN_UP = "X"
    """A deleted owner: its open runs must be ended."""
    RESUME = "P"
    """A paused job: its pause ends."""
    CHANGE = "G"
    """A job with many schedules: those that still have to follow a change."""
    HELD = "H"
    """A schedule whose collection or tenant is disabled: `since` is its earliest occurrence not yet sent."""
    RELEASE = "L"
    """A collection or a tenant that was enabled: its held schedules must be released."""
    REPLAN = "N"
    """A changed calendar: the schedules that name it must be planned again."""
    OPERATION = "O"
    """A running operation: its next page, in case its message was lost."""
    ERRORS = "F"
    """A group of failures: open ones that will expire are published."""
    FLOW = "T"
    """A flow key: runs wait in its line and must be started in turn."""
    CONSUMER = "M"
    """A consumer that is away: runs are held for it, and those that it will not get are ended."""
    WATCH = "A"
    """An application or a consumer for which something waits: checked until somebody receives it."""
    ENDED = "K"
    """A COMPLETED schedule in its retention, after which its job may be deleted. `since` is its completion."""


class UnknownKind(LookupError):
    """A row of a kind that a later version wrote. It must be left alone."""


@dataclass(frozen=True)
class SweepText:
    """The packed attribute `sweep`.

    packed: for a schedule, the string that schedules.timing.load reads; for a run, a WaitingRun. collection: that of a
    schedule's job; None in older rows, which are never held for their collection. It follows the kind in the text, so
    that a version that does not know it leaves the row alone.
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
        """Reads the attribute. Raises UnknownKind for a row of a later version, ValueError for an invalid string."""
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
    """The members of a run's pointer that are not in the row's key."""

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
