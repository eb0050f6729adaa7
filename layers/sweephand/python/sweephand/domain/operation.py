"""Long work that goes on by itself: what it is, how it stands, and what one page of it came to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

KEPT = timedelta(days=30)
"""An operation that has ended is shown so long."""
LAST_PAGE = timedelta(minutes=3)
"""No page lasts longer: the function has two minutes."""

WAITS_FOR = "waitsFor"
"""In a cursor: for what the next page waits, in words, where that is more than its pace."""


class OperationKind(StrEnum):
    REDRIVE = "redrive"
    """Failed runs are run again, paced."""
    DELETE_JOBS = "delete_jobs"
    """The jobs that filters let through are deleted."""
    PURGE_TENANT = "purge_tenant"
    """A tenant is deleted with all that it has."""
    EXPORT_RUNS = "export_runs"
    """Runs are written into a file."""


class OperationState(StrEnum):
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    DONE = "DONE"
    FAILED = "FAILED"
    """It could not go on; `cause` says why. It may be resumed where it stopped."""
    CANCELLED = "CANCELLED"


OVER = frozenset({OperationState.DONE, OperationState.FAILED, OperationState.CANCELLED})


@dataclass(frozen=True)
class Operation:
    """tenant None: the provider's own. params: what was asked for, by the kind; cursor: where its next page begins.

    step: how often it was moved on; a message is for one step. done, failed: of its things, failed ones among the done;
    total: None while it is not known. due_at: before which the next page does not begin. cause: why it failed, in
    words. result: what came of it, by the kind. actor: the caller's client id. by: who moved it on last. leaves: it was
    cancelled, and what it had written is still to be cleared away.
    """

    tenant: str | None
    id: str
    kind: OperationKind
    params: Mapping[str, Any]
    started_at: datetime
    state: OperationState = OperationState.RUNNING
    cursor: Mapping[str, Any] = field(default_factory=dict)
    step: int = 1
    done: int = 0
    failed: int = 0
    total: int | None = None
    due_at: datetime | None = None
    ended_at: datetime | None = None
    cause: str | None = None
    result: Mapping[str, Any] | None = None
    actor: str | None = None
    by: str | None = None
    expires_at: datetime | None = None
    leaves: bool = False

    @property
    def cleared_at(self) -> datetime:
        """Of one that was cancelled: whoever was at work on a page has come to an end by then."""
        assert self.ended_at is not None
        return self.ended_at + LAST_PAGE


@dataclass(frozen=True)
class Page:
    """What one page of the work came to: done and failed are this page's.

    cursor: where the next page begins; None: all is done. due_at: before which that does not begin. total: where it
    became known. result: with the last page.
    """

    cursor: Mapping[str, Any] | None
    done: int = 0
    failed: int = 0
    due_at: datetime | None = None
    total: int | None = None
    result: Mapping[str, Any] | None = None
