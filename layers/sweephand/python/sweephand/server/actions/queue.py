"""The action `queue`: a run for the workers of an application, which take it from their own queue.

Sweeper and executors send the run's pointer to that queue. A worker claims the run through the API and settles it there
(flow.runs.workers), so no executor ever performs this action.
"""

from __future__ import annotations

from typing import ClassVar, final

from sweephand.base.records import dataclass
from sweephand.domain.run import Outcome, Reason
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import Action, string
from sweephand.server.actions.outcome import failed
from sweephand.server.security.guard import Outbound

_PLAIN = (
    r"[A-Za-z0-9][A-Za-z0-9._-]*",
    "must have letters, digits, . _ and - only, and begin with a letter or a digit",
)


@final
@dataclass(frozen=True)
class Queue(Action):
    """A task for a worker. version: only workers of this version of the application get it."""

    application: str = string("application", 1, 64, like=_PLAIN)
    task: str = string("task", 1, 256)
    version: str | None = string("version", 1, 64, like=_PLAIN, default=None)

    kind = "queue"
    shows = ("own",)
    never: ClassVar = {
        "wait": "the worker holds the run until it has ended",
        "silence": "a worker that dies loses its lease",
        "unreachable": "workers fetch their runs",
        "unproven": "uses the permission of the stack",
    }
    description = "A run for the workers of a registered application."

    def sends_callback(self, *, with_payload: bool) -> bool:  # noqa: ARG002 - whatever it carries
        """Returns False, because a worker settles the run that it claimed without a token."""
        return False

    def perform(self, call: Call, outbound: Outbound) -> Outcome:  # noqa: ARG002 - nobody is called
        return failed(Reason.NO_TARGET, "only a worker of the application can carry this out", retryable=False)
