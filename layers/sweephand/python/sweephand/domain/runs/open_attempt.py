"""An attempt that has begun and not ended, with the rows that its end needs. Pure."""

from __future__ import annotations

from typing import Any

from sweephand.base.records import dataclass
from sweephand.domain.collection import Terms
from sweephand.domain.job import ActionSpec, Job
from sweephand.domain.run import Run
from sweephand.domain.runs.run_action import action_of, policies_of
from sweephand.domain.schedule import Lane, Schedule


@dataclass(frozen=True)
class OpenAttempt:
    """An attempt that has begun and not ended. run: as its claim left the row. before: as it was read for the claim.

    lane: the queue of its action. schedule: None for a run of the job itself. before: None without a row.
    """

    run: Run
    job: Job
    schedule: Schedule | None
    terms: Terms
    lane: Lane
    before: Run | None = None

    @property
    def action(self) -> ActionSpec:
        return action_of(self.job, self.run.kind)

    @property
    def policies(self) -> dict[str, Any]:
        return policies_of(self.job, self.schedule)
