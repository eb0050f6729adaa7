"""What targets report of their runs may repeat what they were told in confidence, and who takes it down may open no
secret. So it waits in the row, unseen, until an executor has read it over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sweephand.domain.job import HOOKS, Job
from sweephand.domain.run import REACTIONS, Run
from sweephand.domain.runs.run_action import action_of, policies_of
from sweephand.domain.schedule import Schedule
from sweephand.flow.world import World
from sweephand.lazy import lazy

with lazy():
    from sweephand.actions import redaction
    from sweephand.actions.auth import authenticate
    from sweephand.flow.runs import perform

NOT_KEPT = "(its message is not kept: it may repeat a secret)"


def may_repeat_a_secret(world: World, run: Run, job: Job | None) -> bool:
    """Its target is told secrets, or may be: of a job that is gone nobody knows, and a hook may be its schedule's."""
    if job is None or job.secret_version is not None or (run.kind in HOOKS and run.schedule_id is not None):
        return True
    return bool(world.standing.of(job.tenant, job.collection).signing)


def read_over(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> Run:
    """With the message that its target reported, without the secrets that it was told. May happen twice.

    Secrets are those that the job has now. Raises Unavailable, as an attempt does.
    """
    assert run.reported is not None
    if job is None or (run.kind in REACTIONS and job.reaction(run.kind) is None):
        return replace(run, message=NOT_KEPT)
    return replace(run, message=without(run.reported, _told(world, run, job, schedule)))


def without(message: str, secrets: Iterable[str]) -> str:
    return redaction.hidden(message, secrets)


def _told(world: World, run: Run, job: Job, schedule: Schedule | None) -> list[str]:
    action = action_of(job, run.kind)
    secrets = perform.secrets_of(world, run, job, action)
    told = [*secrets.values(), *perform.signing_secrets(world, job)]
    if isinstance(authentication := action.params.get("authentication"), dict):
        told += authenticate.derived_secrets(authentication, secrets)
    if policies_of(job, schedule).get("callbackToken") is True:
        told.append(perform.token_of(world, run))
    return told
