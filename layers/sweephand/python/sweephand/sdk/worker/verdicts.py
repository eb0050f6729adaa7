"""The verdicts of a worker's hook, which decide what happens to a run whose task raised an error."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sweephand.base.records import dataclass
from sweephand.sdk.errors import ConfigError
from sweephand.sdk.worker.tasks import seconds_of

if TYPE_CHECKING:
    from sweephand.sdk.worker.tasks import TaskRun


@dataclass(frozen=True)
class Retry:
    """A retry if the job's policy allows one, as without a hook."""


@dataclass(frozen=True)
class Delay:
    """A retry whose next attempt waits at least `seconds`, up to an hour: `5m`, a number or a timedelta."""

    seconds: str | float | timedelta

    def __post_init__(self) -> None:
        try:
            seconds = seconds_of(self.seconds)
        except (ValueError, OverflowError) as wrong:
            raise ConfigError(f"Delay: {wrong}") from wrong
        if seconds > LONGEST_DELAY_S:
            reason = f"Delay takes at most an hour ({LONGEST_DELAY_S} seconds), not {self.seconds!r}"
            raise ConfigError(f"{reason}; for a later run, call run.reschedule in the task")
        object.__setattr__(self, "seconds", seconds)

    @property
    def delay_s(self) -> int:
        """The wait in whole seconds; 0 for a negative one."""
        return max(0, seconds_of(self.seconds))


@dataclass(frozen=True)
class MoveTo:
    """A move to another SQS queue. No attempt follows, and the run becomes an error, even if the move fails."""

    queue_url: str

    def __post_init__(self) -> None:
        _check_text(self.queue_url, "MoveTo needs the address of a queue")


@dataclass(frozen=True)
class Discard:
    """A cancellation of the run for this reason. No attempt follows, and the run is not an error."""

    reason: str

    def __post_init__(self) -> None:
        _check_text(self.reason, "Discard needs a reason")


def _check_text(text: object, needs: str) -> None:
    if not isinstance(text, str) or not text:
        raise ConfigError(f"{needs}, as a string that is not empty, not {text!r}")


Verdict = Retry | Delay | MoveTo | Discard
Hook = Callable[[BaseException, "TaskRun"], Verdict | None]
"""A function that decides on a failed attempt. None means Retry. If it fails, the run becomes an error at once."""
AS_USUAL: Final = Retry()
LONGEST_DELAY_S = 3_600
