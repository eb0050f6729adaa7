"""The action `job`: starts a run of another job of the tenant, as if by hand. It succeeds once that run is written.

It may be repeated, because the id of the new run follows from the run that starts it. With this action, an error action
can do more than one thing: it runs a job, which has its own schedules, retries and error action.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

from sweephand.base.errors import InvalidRequest
from sweephand.base.ids import is_uuid
from sweephand.base.json_schema import text
from sweephand.base.members import fields as read
from sweephand.base.records import dataclass
from sweephand.domain.job import Payload
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import Action, Reading, member
from sweephand.server.actions.outcome import failed
from sweephand.server.actions.payloads import NOTHING
from sweephand.server.security.guard import Outbound

MOST_HOPS = 10
"""The most runs in a chain of jobs that run jobs, so that two jobs that run each other come to an end."""


def _job_id(value: Any, path: str, _: Reading) -> str:
    """Reads the id. Only a run checks whether the job exists, because otherwise two jobs could not name each other."""
    job_id = read.text(value, path, 1, 64)
    if not is_uuid(job_id):
        raise InvalidRequest(path, f"is not the id of a job: {read.shown(job_id)}")
    return job_id


@final
@dataclass(frozen=True)
class StartJob(Action):
    """A run of another job, which sends its own payload."""

    job_id: str = member("jobId", text(1, 64, description="A job of the same tenant."), _job_id)

    kind = "job"
    shows = ("own",)
    never: ClassVar = {
        "unproven": "uses the permission of the stack",
        "silence": "nothing is waited for",
        "wait": "nothing is waited for",
        "unreachable": "the other job is found in the service's own table",
    }
    payload_schema = body_schema = NOTHING

    @property
    def starts_job(self) -> str | None:
        return self.job_id

    def check_payload(self, payload: Payload, field: str) -> None:  # noqa: ARG002 - it takes none
        raise InvalidRequest(field, "has no effect here: the other job sends its own payload")

    def perform(self, call: Call, outbound: Outbound) -> Outcome:  # noqa: ARG002 - the other job is no target
        assert call.start_job is not None
        if call.hop > MOST_HOPS:
            return failed(Reason.GUARD, f"{MOST_HOPS} jobs in a row have already run each other", retryable=False)
        if call.closes_circle:
            why = "its job already had a run in this chain: a circle of jobs runs only once"
            return failed(Reason.GUARD, why, retryable=False)
        started = call.start_job(self.job_id)
        if started is None:
            return failed(Reason.NO_TARGET, f"there is no job {self.job_id}", retryable=False)
        return Outcome(Verdict.SUCCEEDED, answer=started)
