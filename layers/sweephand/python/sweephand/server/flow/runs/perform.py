"""Performs one claimed attempt: reads payload and secrets, and performs the action within lease and deadline."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from sweephand.base.errors import NotFound, Unavailable
from sweephand.base.lazy import lazy
from sweephand.domain.application import lane_of
from sweephand.domain.job import HOOKS, ActionSpec, Job, Payload, owner_of
from sweephand.domain.run import REACTIONS, UNREACHABLE, Outcome, Reason, Run, Verdict
from sweephand.domain.runs.run_action import OpenAttempt, action_of
from sweephand.domain.schedule import Schedule
from sweephand.server import actions
from sweephand.server.actions.call import Call
from sweephand.server.flow.world import World
from sweephand.server.store.jobs import jobs

with lazy():
    from sweephand.base import json_text
    from sweephand.server.flow.job_parts import schedule_hooks
    from sweephand.server.flow.runs import chained_runs, edits
    from sweephand.server.flow.tenants import signing
    from sweephand.server.security import tokens

JOBS_SPEAK_AS = "scheduler"
"""The prefix of the source of events that jobs put on the bus; the tenant follows."""
LEASE_MARGIN_S = 2.0
"""The time of the lease that must remain for the final write."""


def act(world: World, attempt: OpenAttempt) -> Outcome:
    """Performs one attempt. A failure of the target becomes an outcome.

    Raises Unavailable, always before the call, if the table, the key service or the bus does not answer, or if the
    network is away: neither the target nor the service's own queue can be reached.
    """
    run, job, policies = attempt.run, attempt.job, attempt.policies
    action, payload = to_send(world, attempt)
    secrets = secrets_of(world, run, job, action)
    assert run.lease_until is not None
    left_s = (run.lease_until - world.clock.now()).total_seconds() - LEASE_MARGIN_S
    if left_s <= 0:
        return Outcome(
            Verdict.FAILED, Reason.DEADLINE, message="the lease was over before the call began", retryable=True
        )
    base_url = world.settings.public_base_url or None
    reports = policies.get("callbackToken") is True
    once = policies.get("delivery") == "at_most_once"
    shown = world.terms.of(job.tenant, job.collection).attributes
    call = Call(
        tenant=run.tenant,
        job_id=run.of_job,
        schedule_id=run.schedule_id,
        run_id=run.id,
        planned_at=run.occurrence_at or run.planned_at,
        attempt=run.attempt,
        deadline_s=min(world.settings.call_deadline_s, left_s),
        clock=world.clock,
        payload=payload.text if payload else None,
        payload_is_json=payload.is_json if payload else False,
        secrets=secrets,
        callback_url=f"{base_url}/v1/runs/{run.id}/result" if base_url else None,
        signing_secrets=signing_secrets(world, job),
        callback_token=token_of(world, run) if reports else None,
        on202="wait" if reports else "success",
        integer_job_id=job.integer_id,
        base_url=base_url,
        hop=run.hop + 1,
        closes_circle=run.closes_circle,
        job_name=job.attributes.get("name", job.name),
        collection=shown.get("name", job.collection),
        region=shown.get("location"),
        resource_id=job.resource_id,
        tags=job.tags,
        missed=run.consumer is not None,
        missed_count=run.missed_count,
        missed_from=run.missed_from,
        put_event=partial(put_event, world, run.tenant, action.params.get("application"), once=once),
        start_job=lambda job_id: chained_runs.run_from(world, run, job_id),
        redirects=_redirects(world, job, action.kind),
    )
    outcome = world.perform(action.kind, action.params, call, world.outbound)
    if outcome.reason in UNREACHABLE and not world.queue.can_be_reached(world.settings.lane):
        raise Unavailable("the network is away: neither the target nor the run queue can be reached")
    return outcome


def to_send(world: World, attempt: OpenAttempt) -> tuple[ActionSpec, Payload | None]:
    """Returns the action of a run and the payload that it sends, with the edit of this run applied."""
    run, action = attempt.run, attempt.action
    payload = payload_of(world, run, attempt.job, attempt.schedule)
    return edits.applied(world, run, action, payload) if run.edited else (action, payload)


def payload_of(world: World, run: Run, job: Job, schedule: Schedule | None) -> Payload | None:
    """Returns the payload to send: the schedule's, or else the action's.

    A reaction has its own. A hook without one gets the end of the run that started it.
    """
    if run.posted is not None:
        return None if job.action.inline is None else job.action.inline.payload
    if run.kind in REACTIONS:
        action = action_of(job, run.kind)
        if action.inline is not None and action.inline.payload is not None:
            return action.inline.payload
        owner, version = owner_of(run.kind), action.payload_version
        if version is None and run.kind in HOOKS:
            return chained_runs.default_payload(world, run, job)
    elif schedule is not None and schedule.payload_version is not None:
        owner, version = schedule.id, schedule.payload_version
    else:
        owner, version = "action", job.action.payload_version
    return None if version is None else jobs.read_payload(world.table, job.tenant, job.id, owner, version)


def secrets_of(world: World, run: Run, job: Job, action: ActionSpec) -> dict[str, str]:
    """Returns the action's secrets in clear text, by their field within the action.

    Secrets that cannot be opened are left out. Then the action reports the missing one.
    """
    if run.posted is not None and action.inline is not None:
        return _opened(world, (run.tenant, action.inline.of), action.inline.sealed)
    if action.inline is not None:
        return schedule_hooks.opened(world, job, HOOKS[run.kind], action.inline)
    if job.secret_version is None:
        return {}
    sealed = jobs.read_secrets(world.table, job.tenant, job.id, job.secret_version)
    return _opened(world, (job.tenant, job.id), sealed, f"{owner_of(run.kind)}.")


def _opened(world: World, place: tuple[str, str], sealed: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Opens the secrets whose fields begin with the prefix, which is left out. place: tenant and job, or message."""
    opened: dict[str, str] = {}
    for field, text in sealed.items():
        if field.startswith(prefix):
            with suppress(NotFound):
                opened[field.removeprefix(prefix)] = world.secrets.decrypt(*place, field, text)
    return opened


def signing_secrets(world: World, job: Job) -> tuple[str, ...]:
    if not world.terms.of(job.tenant, job.collection).signing:
        return ()
    return signing.opened(world, job.tenant, job.collection)


def token_of(world: World, run: Run) -> str:
    return tokens.callback_token(world.callback_keys.current().secret, run.tenant, run.id)


def put_event(
    world: World, tenant: str, application: str | None, detail_type: str, detail: str, *, once: bool = False
) -> str | None:
    """Puts an event on the bus, and into the queue of the application if one is named. Returns why it was not taken.

    The source of the event contains the tenant, so that no job can pose as another tenant or as the service. In the
    queue, the event has the form that a rule of the bus would give it. once: whether no event may come twice.

    Raises Unavailable if the bus does not answer, or if the queue does not and the event may be put again.
    """
    source = f"{JOBS_SPEAK_AS}.{tenant}"
    refused = world.bus.put(source, detail_type, detail, once=once)
    if refused is not None or application is None:
        return refused
    event = json_text.dumps({"source": source, "detail-type": detail_type, "detail": json_text.loads(detail)})
    try:
        world.queue.send_event(lane_of(tenant, application, None), tenant, event)
    except NotFound as gone:
        return gone.reason
    except Unavailable as away:
        if once:
            return away.reason
        raise
    return None


def _redirects(world: World, job: Job, kind: str) -> Mapping[str, Mapping[str, str]]:
    """Returns the collection's redirects if the kind of action can be redirected; otherwise none, without a read."""
    return world.terms.of(job.tenant, job.collection).redirects if actions.KINDS[kind].redirectable else {}
