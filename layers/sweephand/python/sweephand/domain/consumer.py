"""A consumer of events: its lease, its phase, and which missed occurrences it still gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Self

from sweephand.base.records import dataclass
from sweephand.domain.job import Job

USUAL_LEASE_S, LEAST_LEASE_S, LONGEST_LEASE_S = 90, 10, 900
USUAL_KEEP_S, LONGEST_KEEP_S = 604_800, 7_776_000
USUAL_LIMIT, MOST_HELD = 100, 1_000
NAME_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]*"
NAME_RULE = "must begin with a letter or digit, and may then have only letters, digits and . _ -"


class Phase(StrEnum):
    AWAY = "AWAY"
    """Nobody has its lease, or its holder has not started: runs are held."""
    STARTING = "STARTING"
    """It gets its missed events, oldest first. Events that fall due meanwhile are held as well."""
    LIVE = "LIVE"
    """It gets events as they fall due."""


class Mode(StrEnum):
    EACH = "each"
    LATEST = "latest"
    EARLIEST = "earliest"
    COUNT = "count"
    """One event, for the latest occurrence, with the number and the span of all."""


@dataclass(frozen=True)
class Consumer:
    """A consumer. phase: as stored; `phase_at` also considers whether the lease has expired.

    taken_at: when its holder took the lease, which identifies this lease. decided: whether the missed occurrences that
    the consumer gets have been chosen. current: the whole id of the last run that was sent on. watched: whether its
    wake is in the next-run index. idle_at: since when nothing has been held, so that its wake will be removed.
    ends_until: set if it was deleted; runs planned up to this instant are no longer sent. watched_since, away_at,
    waiting: those of its watch, as for an application, for which messages wait instead of held runs.
    """

    noun: ClassVar[str] = "consumer"
    registered: ClassVar[bool] = True

    tenant: str
    name: str
    holder: str | None = None
    lease_until: datetime | None = None
    taken_at: datetime | None = None
    phase: Phase = Phase.AWAY
    decided: bool = False
    current: str | None = None
    watched: bool = False
    idle_at: datetime | None = None
    ends_until: datetime | None = None
    watched_since: datetime | None = None
    away_at: datetime | None = None
    waiting: int = 0

    def is_held(self, now: datetime) -> bool:
        """Returns whether somebody holds its lease."""
        return self.lease_until is not None and self.lease_until > now

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def event_key(self) -> str:
        return f"{self.tenant}:{self.name}"

    @property
    def in_events(self) -> dict[str, Any]:
        return {"consumer": self.name}

    @property
    def in_lists(self) -> dict[str, Any]:
        return {"name": self.name, "version": None, "waiting": self.waiting}

    def phase_at(self, now: datetime) -> Phase:
        return self.phase if self.is_held(now) else Phase.AWAY


@dataclass(frozen=True)
class MissedRule:
    """A job's choice of the missed occurrences that its consumer still gets. limit: how many wait at most."""

    mode: Mode = Mode.EACH
    keep_s: int = USUAL_KEEP_S
    limit: int = USUAL_LIMIT

    @classmethod
    def of(cls, job: Job | None) -> Self:
        """Returns the rule of a job; the default if the job was deleted or no longer names a consumer."""
        said: Mapping[str, Any] = (job.action.params.get("missed") if job is not None else None) or {}
        return cls(
            Mode(said.get("mode", Mode.EACH)),
            said.get("keepSeconds", USUAL_KEEP_S),
            said.get("limit", USUAL_LIMIT),
        )

    def kept(self, planned: Sequence[datetime], now: datetime, *, starting: bool) -> range:
        """Returns the positions of the runs that are kept. planned: the instants of one job's held runs, in order.

        starting: whether the consumer gets them now. Before that, only age and number count.
        """
        fresh = now - timedelta(seconds=self.keep_s)
        first = sum(instant < fresh for instant in planned)
        kept = range(max(first, len(planned) - self.limit), len(planned))
        if not starting or self.mode is Mode.EACH:
            return kept
        return kept[:1] if self.mode is Mode.EARLIEST else kept[-1:]


@dataclass(frozen=True)
class Dropped:
    """The occurrences of one job that its consumer will not get. Each of them counts once."""

    job_id: str
    first_at: datetime
    last_at: datetime
    count: int


def consumer_of(job: Job) -> str | None:
    """Returns the consumer that a job's events are for."""
    return job.action.params.get("consumer") if job.action.kind == "event" else None
