"""The answers of a worker's hook to a task that raised an error: what becomes of its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sweephand.records import dataclass

if TYPE_CHECKING:
    from sweephand.sdk.worker.tasks import TaskRun


@dataclass(frozen=True)
class Retry:
    """A retry if the job's policy allows one, as without a hook."""


@dataclass(frozen=True)
class Delay:
    """A retry whose next attempt waits at least so many seconds, up to an hour."""

    seconds: int


@dataclass(frozen=True)
class MoveTo:
    """A move to another SQS queue. No attempt follows, and the run is an error, also if the move fails."""

    queue_url: str


@dataclass(frozen=True)
class Discard:
    """An end without an attempt or an error: the run is cancelled for this reason."""

    reason: str


Verdict = Retry | Delay | MoveTo | Discard
Hook = Callable[[BaseException, "TaskRun"], Verdict | None]
"""Decides on a failed attempt. None: as Retry. If the hook itself fails, the run is an error without a retry."""
AS_USUAL: Final = Retry()
LONGEST_DELAY_S = 3_600
