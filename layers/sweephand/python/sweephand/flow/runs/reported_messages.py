"""Redacts the messages that targets report.

A reported message may repeat a secret, and the API may not decrypt secrets. So the message stays hidden in the run's
row until an executor has redacted it.
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
    """Returns whether the run's target may have received secrets.

    That is assumed if the job is gone, and for hooks, which may be the schedule's own.
    """
    if job is None or job.secret_version is not None or (run.kind in HOOKS and run.schedule_id is not None):
        return True
    return bool(world.standing.of(job.tenant, job.collection).signing)


def read_over(world: World, run: Run, job: Job | None, schedule: Schedule | None) -> Run:
    """Returns the run with its reported message, redacted by the job's current secrets. May happen twice.

    Raises Unavailable, as an attempt does.
    """
    assert run.reported is not None
    if job is None or (run.kind in REACTIONS and job.reaction(run.kind) is None):
        return replace(run, message=NOT_KEPT)
    return replace(run, message=without(run.reported, _sent_secrets(world, run, job, schedule)))


def without(message: str, secrets: Iterable[str]) -> str:
    return redaction.hidden(message, secrets)


def _sent_secrets(world: World, run: Run, job: Job, schedule: Schedule | None) -> list[str]:
    action = action_of(job, run.kind)
    secrets = perform.secrets_of(world, run, job, action)
    sent = [*secrets.values(), *perform.signing_secrets(world, job)]
    if isinstance(authentication := action.params.get("authentication"), dict):
        sent += authenticate.derived_secrets(authentication, secrets)
    if policies_of(job, schedule).get("callbackToken") is True:
        sent.append(perform.token_of(world, run))
    return sent
