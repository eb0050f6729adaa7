"""Operations: long work that the service carries out page by page. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sweephand.base.records import dataclass

KEPT = timedelta(days=30)
"""How long an ended operation is shown."""
LAST_PAGE = timedelta(minutes=3)
"""The longest time that a page can take: the function's limit is two minutes."""

WAITS_FOR = "waitsFor"
"""The cursor's member that says in words what the next page waits for, apart from its pace."""


class OperationKind(StrEnum):
    REDRIVE = "redrive"
    """Reruns failed runs at a limited rate."""
    DELETE_JOBS = "delete_jobs"
    """Deletes the jobs that match filters."""
    SWITCH_JOBS = "switch_jobs"
    """Activates, deactivates, pauses or resumes the jobs that match filters."""
    DELETE_COLLECTION = "delete_collection"
    """Deletes a collection with its jobs."""
    PURGE_TENANT = "purge_tenant"
    """Deletes a tenant with everything that it owns."""
    EXPORT_RUNS = "export_runs"
    """Writes runs to a file."""


class OperationState(StrEnum):
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    DONE = "DONE"
    FAILED = "FAILED"
    """It could not continue; `cause` says why. It can be resumed where it stopped."""
    CANCELLED = "CANCELLED"


OVER = frozenset({OperationState.DONE, OperationState.FAILED, OperationState.CANCELLED})


@dataclass(frozen=True)
class Operation:
    """Long work, carried out page by page. tenant: None for an operation of the provider.

    params: the request, whose members depend on the kind. cursor: where its next page begins. step: counts its moves;
    each message is for one step. done: items finished. failed: items among them that failed. total: None while unknown.
    due_at: the next page does not begin before this. cause: why it failed, in words. result: depends on the kind.
    actor: the caller's client id. by: who moved it last. leaves: whether it was cancelled and its output must still be
    deleted.
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
        """Returns the instant after which no function still works on a page of this cancelled operation."""
        assert self.ended_at is not None
        return self.ended_at + LAST_PAGE


@dataclass(frozen=True)
class Page:
    """The result of one page of an operation. done, failed: items of this page.

    cursor: where the next page begins; None if everything is done. due_at: the next page does not begin before this.
    total: set if this page determined it. result: set by the last page.
    """

    cursor: Mapping[str, Any] | None
    done: int = 0
    failed: int = 0
    due_at: datetime | None = None
    total: int | None = None
    result: Mapping[str, Any] | None = None
