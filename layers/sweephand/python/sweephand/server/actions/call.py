"""A call: everything that an action knows about the run for which it acts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import text as instant_text
from sweephand.domain.run import Reason

if TYPE_CHECKING:
    from sweephand.base.sources import Clock

with lazy():
    from sweephand.server.security import guard


@dataclass(frozen=True)
class Call:
    """One attempt of a run.

    run_id: the native id. job_id: None for a message. payload: as it is sent; that of the schedule, else that of the
    action. secrets: in clear text, by their field within the action. signing_secrets: those of the collection, which
    sign the call. hop: the number to send. closes_circle: see Run. deadline_s: seconds that the whole attempt may take;
    the action's own limit may be shorter. on202: `success` or `wait`, if the action itself does not say.
    integer_job_id: set if the job's facade has such ids. base_url: that of the service itself.

    put_event: sends (detail type, detail) to the stack's own bus in the tenant's name; returns why it was refused.
    start_job: starts a run of another job of the tenant, by the job's id; returns the run's id, None if there is no
    such job. redirects: those of the collection, see actions.azure.redirects. job_name, collection, region: as the
    job's facade shows them; region is None if it has none. missed: whether the occurrence waited for its consumer.
    missed_count, missed_from: how many occurrences it stands for, and the first of them.
    """

    run_id: str
    job_id: str | None
    schedule_id: str | None
    tenant: str
    planned_at: datetime
    attempt: int
    deadline_s: float
    clock: Clock
    payload: str | None = None
    payload_is_json: bool = False
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    callback_url: str | None = None
    callback_token: str | None = field(default=None, repr=False)
    signing_secrets: tuple[str, ...] = field(default=(), repr=False)
    hop: int = 1
    closes_circle: bool = False
    on202: str = "success"
    integer_job_id: int | None = None
    base_url: str | None = None
    job_name: str = ""
    collection: str = ""
    region: str | None = None
    resource_id: str | None = None
    tags: tuple[str, ...] = ()
    missed: bool = False
    missed_count: int = 1
    missed_from: datetime | None = None
    put_event: Callable[[str, str], str | None] | None = field(default=None, repr=False)
    start_job: Callable[[str], str | None] | None = field(default=None, repr=False)
    redirects: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    def secret(self, name: str) -> str:
        """Returns a secret of the action by its field. Raises CallFailed if the job has no secret of this name."""
        if name not in self.secrets:
            raise guard.CallFailed(Reason.GUARD, f"the secret {name} of this job is missing")
        return self.secrets[name]

    @property
    def confidences(self) -> tuple[str, ...]:
        """Returns the secrets that may be sent to the target and must not be revealed to anybody else."""
        return (*self.secrets.values(), *filter(None, (self.callback_token,)))


def run_as_payload(call: Call) -> dict[str, str | int | None]:
    """Returns the run as JSON, for a target that needs a payload if the job has none."""
    members: dict[str, str | int | None] = {
        "runId": call.run_id,
        "jobId": call.job_id,
        "scheduleId": call.schedule_id,
        "plannedAt": instant_text(call.planned_at),
        "attempt": call.attempt,
    }
    callback = {"callbackUrl": call.callback_url, "callbackToken": call.callback_token}
    return members | {name: value for name, value in callback.items() if value is not None}
