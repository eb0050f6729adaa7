"""What an action is told about the run that it acts for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweephand.sources import Clock


@dataclass(frozen=True)
class Call:
    """One attempt of a run.

    run_id: the native id. payload: text as it is sent, of the schedule, else of the action. secrets: in the clear, by
    their field within the action. signing_secrets: of the collection, by which the call is signed. hop: the number to
    send. deadline_s: seconds that the whole attempt may take; the action's own limit may be shorter. on202: `success`
    or `wait`, where the action itself does not say. integer_job_id: where the job's facade has such ids. base_url: of
    the service itself.
    """

    run_id: str
    job_id: str
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
    on202: str = "success"
    integer_job_id: int | None = None
    base_url: str | None = None
