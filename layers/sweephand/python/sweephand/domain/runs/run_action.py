"""The action of a run, its queue, its number of attempts, and an attempt that has begun. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sweephand.base.records import dataclass
from sweephand.domain import application
from sweephand.domain.collection import Terms
from sweephand.domain.job import ActionSpec, Job, ScheduleDraft
from sweephand.domain.run import FROM_ITS_JOB, REACTIONS, Kind, Run, State
from sweephand.domain.runs import retry
from sweephand.domain.schedule import Lane, Schedule

FAST_ANSWER_S = 15
MOST_ADDRESS = 200
"""How many characters of an address tell targets of one host apart."""


def action_of(job: Job, kind: Kind) -> ActionSpec:
    """Returns the action that a run of this kind carries out."""
    own = job.reaction(kind) if kind in REACTIONS else None
    return own or job.action


def lane_of(action: ActionSpec, tenant: str) -> Lane:
    """Returns the queue whose executors wait long enough for this action's answer: fast up to 15 s.

    Runs for workers go to the queue of their application.
    """
    if action.kind == application.QUEUE:
        return application.lane_of(tenant, action.params["application"], action.params["version"])
    limit_s = int(action.params.get("outcome", {}).get("answerTimeoutSeconds", FAST_ANSWER_S))
    return Lane.FAST if limit_s <= FAST_ANSWER_S else Lane.SLOW


NAMING: tuple[tuple[str, ...], ...] = (
    ("targetArn",),
    ("taskDefinition",),
    ("namespace", "queueName"),
    ("namespace", "topicPath"),
    ("storageAccount", "queueName"),
)
"""The members that name the target of an action without a URL, the wider first."""


def targets_of(action: ActionSpec) -> tuple[str, ...]:
    """Returns the targets that the action calls, by the names that its user gave them, the wider first.

    They are a host and an address, an ARN, a task definition, or a namespace and its queue. Empty for an action that
    calls nothing outside the service.
    """
    url = action.params.get("url")
    if isinstance(url, str):
        return _of_url(url)
    for names in NAMING:
        if all(name in action.params for name in names):
            named = [str(action.params[name]) for name in names]
            return tuple("/".join(named[: number + 1])[:MOST_ADDRESS] for number in range(len(named)))
    return ()


def issuers_of(action: ActionSpec) -> tuple[str, ...]:
    """Returns the host and the address that issue the tokens of the action's calls; empty if none does."""
    url = action.params.get("authentication", {}).get("tokenUrl")
    return _of_url(url) if isinstance(url, str) else ()


def _of_url(url: str) -> tuple[str, str]:
    address = url.partition("#")[0].partition("?")[0]
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}".lower(), address[:MOST_ADDRESS]


def lane_now(job: Job | None, kind: Kind, here: Lane) -> Lane:
    """Returns the queue for the run's current action. here: the message's queue, which stays if the job was deleted."""
    return here if job is None else lane_of(action_of(job, kind), job.tenant)


def max_attempts(job: Job | None, kind: Kind) -> int:
    return 1 if job is None else retry.load(action_of(job, kind).retry).max_attempts


def new_run(job: Job, kind: Kind, schedule_id: str | None, uuid: str, state: State, planned_at: datetime) -> Run:
    """Returns a run with the members that every run takes from its job. All runs with an action begin here."""
    shared: dict[str, Any] = {name: getattr(job, name) for name in FROM_ITS_JOB}
    return Run(
        **shared,
        tenant=job.tenant,
        job_id=job.id,
        schedule_id=schedule_id,
        uuid=uuid,
        kind=kind,
        state=state,
        planned_at=planned_at,
        max_attempts=max_attempts(job, kind),
    )


def policies_of(job: Job, schedule: Schedule | ScheduleDraft | None) -> dict[str, Any]:
    """Returns the policies of a run: the job's, overridden by the schedule's."""
    return {**job.policies, **(schedule.policies if schedule else {})}


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
