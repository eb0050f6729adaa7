"""Applications: groups of worker processes that take their runs from their own queue. Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from sweephand.base.records import dataclass
from sweephand.domain.schedule import APPLICATION, Lane

if TYPE_CHECKING:
    from sweephand.domain.job import ActionDraft, ActionSpec

QUEUE = "queue"
"""The kind of action whose runs go to an application's queue."""
LEASE_S = 60
"""How long a worker holds a run without a heartbeat; also the visibility timeout of a new queue."""
SHORTEST_LEASE_S, LONGEST_LEASE_S = 10, 3_600
RECEIVES = 20
"""A message that has been received this often goes to the stack's dead-letter queue, and its run ends."""
MOST_UNKNOWN = 10
"""How often a run may come to workers that do not know its task before it ends."""
LONGEST_UNKNOWN_S = 900
MOST_TASKS = 1_000
UNCLAIMED_AFTER = timedelta(seconds=60)
"""A run that no worker has taken this long after its message arrived gets its row from an executor."""
CHECKED_AFTER, CHECKED_AGAIN = timedelta(seconds=30), timedelta(seconds=60)
"""When an application is first checked after a run was left unclaimed, and how often after that."""
CLAIMS_WITHIN = timedelta(seconds=112)
"""If workers receive messages but none has claimed a run this long after one was due, they count as away."""
LONG_LEASE = timedelta(seconds=55)
"""A lease that still lasts this long may see no heartbeat while the application is judged."""


@dataclass(frozen=True)
class Application:
    """A registered application. version: only workers of this version read the queue; None if all of them do.

    watched_since: since when its first unclaimed message waits; None while the application is not watched. away_at:
    when it was found that nobody takes its runs. waiting: how many messages waited at the last check. seen_at: when a
    worker came, which the next check publishes. busy_until: how long a worker holds one of its runs, as far as that was
    noted: while the application is watched, and for long leases. tasks: those that the workers of this version know.
    """

    noun: ClassVar[str] = "application"
    registered: ClassVar[bool] = True

    tenant: str
    name: str
    version: str | None
    created_at: datetime
    watched_since: datetime | None = None
    away_at: datetime | None = None
    waiting: int = 0
    seen_at: datetime | None = None
    busy_until: datetime | None = None
    tasks: tuple[str, ...] = ()

    @property
    def lane(self) -> Lane:
        return lane_of(self.tenant, self.name, self.version)

    @property
    def title(self) -> str:
        """Returns the name for people."""
        return self.name if self.version is None else f"{self.name} version {self.version}"

    @property
    def parts(self) -> tuple[str, ...]:
        return self.name, self.version or ""

    @property
    def event_key(self) -> str:
        return str(self.lane)

    @property
    def in_events(self) -> dict[str, Any]:
        return {"application": self.name, "applicationVersion": self.version}

    @property
    def in_lists(self) -> dict[str, Any]:
        return {"name": self.name, "version": self.version, "waiting": self.waiting}


def lane_of(tenant: str, name: str, version: str | None) -> Lane:
    """Returns the lane of an application's queue. It is a hash, so no name can denote another tenant's queue."""
    facts = "\x00".join((tenant, name, version or "")).encode()
    digest = base64.b32encode(hashlib.sha256(facts).digest()[:16]).decode().rstrip("=").lower()
    return Lane(f"{APPLICATION}{digest}")


def unknown_again_s(times: int) -> int:
    """Returns how long a run waits for a worker that knows its task: 5 s, doubled each time, up to 15 min."""
    return min(LONGEST_UNKNOWN_S, 5 << min(times - 1, 8))


def named_by(actions: Mapping[str, ActionDraft | ActionSpec]) -> dict[str, tuple[str, str | None]]:
    """Returns the applications that actions name, each with its version, by the path of the action."""
    return {
        path: (action.params["application"], action.params.get("version"))
        for path, action in actions.items()
        if action.params.get("application") is not None
    }
