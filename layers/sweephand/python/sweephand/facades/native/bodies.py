"""What the flow knows to native JSON: the answers. Every member is always there, null where there is nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sweephand.domain.instants import text, text_ms
from sweephand.domain.job import ActionSpec, Job, JobState, Pause, Payload, hook_owner
from sweephand.domain.jobs.job_state import ended_state, state_of
from sweephand.domain.occurrences import upcoming
from sweephand.domain.run import Run
from sweephand.domain.schedule import OVER, Schedule, StateReason
from sweephand.facades.native import defaults
from sweephand.facades.native.defaults import Filling, payload_value
from sweephand.schedules.explain.explain import MovedBy
from sweephand.schedules.timing import load_or_never
from sweephand.store.views.runs import Totals
from sweephand.store.views.tenants import Listed

if TYPE_CHECKING:
    from sweephand.domain.jobs.held import Held

NEXT_RUNS = 5


def job_body(
    job: Job,
    schedules: Sequence[Schedule],
    now: datetime,
    *,
    payloads: Mapping[str, Payload] | None = None,
    totals: Totals | None = None,
    shown: Sequence[dict[str, Any]] | None = None,
    waits_s: int | None = None,
    held: Held | None = None,
) -> dict[str, Any]:
    """payloads None: of a list, which leaves them out. shown: the bodies of the schedules, if they are asked for.

    waits_s: see defaults.Filling. schedules: as they are held (domain.jobs.held.as_held).
    """
    filling = Filling(job.policies, waits_s)
    body: dict[str, Any] = {
        "id": job.id,
        "name": job.name,
        "description": job.description,
        "collection": job.collection,
        "facade": job.facade,
        "revision": job.revision,
        "createdAt": text_ms(job.created_at),
        "modifiedAt": text_ms(job.modified_at),
        "active": job.active,
        "state": job_state(job, schedules).value,
        "stateReason": job_state_reason(job, schedules),
        "pause": pause_body(job.pause),
        "held": held_body(held),
        "resourceId": job.resource_id,
        "tags": list(job.tags),
        "startTime": _text(job.start_at),
        "endTime": _text(job.end_at),
        "nextRunAt": _text(min((at for each in schedules if (at := next_run_at(each, now))), default=None)),
        "action": action_body(job.action, "action", payloads, filling),
        "errorAction": action_body(job.error_action, "errorAction", payloads, filling) if job.error_action else None,
        "hooks": {name: action_body(hook, hook_owner(name), payloads, filling) for name, hook in job.hooks.items()},
        "policies": defaults.shown_policies(job.policies),
    }
    if totals is not None:
        body["totals"] = totals_body(totals)
    if shown is not None:
        body["schedules"] = list(shown)
    return body


def editable(job: Job, payloads: Mapping[str, Payload], waits_s: int | None = None) -> dict[str, Any]:
    """What a merge patch is applied to: the members that a caller may set."""
    body = job_body(job, (), job.modified_at, payloads=payloads, waits_s=waits_s)
    wanted = "name description collection active resourceId tags startTime endTime action errorAction hooks policies"
    return {name: body[name] for name in wanted.split() if body[name] is not None}


def pause_body(pause: Pause | None) -> dict[str, Any] | None:
    if pause is None:
        return None
    return {"since": text_ms(pause.since), "note": pause.note, "until": _text(pause.until)}


def held_body(held: Held | None) -> dict[str, Any] | None:
    return None if held is None else {"by": held.by.value, "name": held.name, "since": text_ms(held.since)}


def job_state(job: Job, schedules: Sequence[Schedule]) -> JobState:
    """COMPLETED once every schedule is, FAULTED if one of them is; a job without schedules is as its owner wishes."""
    return state_of(active=job.active, paused=job.pause is not None, ended=ended_state(schedules))


def job_state_reason(job: Job, schedules: Sequence[Schedule]) -> str | None:
    """Why it does not run: of a job that is over its schedules' reason, or the general one where they differ."""
    match job_state(job, schedules):
        case JobState.ACTIVE:
            reasons = {each.state_reason for each in schedules if each.state not in OVER}
            return StateReason.UNREACHABLE.value if reasons == {StateReason.UNREACHABLE} else job.state_reason
        case JobState.COMPLETED | JobState.FAULTED:
            reasons = {schedule.state_reason for schedule in schedules}
            return reasons.pop() if len(reasons) == 1 else StateReason.NO_FUTURE_DATES.value
        case JobState.INACTIVE | JobState.PAUSED:
            return job.state_reason or StateReason.BY_USER.value


def action_body(
    action: ActionSpec, owner: str, payloads: Mapping[str, Payload] | None, filling: Filling
) -> dict[str, Any]:
    body = defaults.shown_action(action, filling)
    if payloads is not None:
        body |= {"payload": None, "body": None}
        payload = payloads.get(owner)
        if payload is not None:
            body["payload" if payload.is_json else "body"] = payload_value(payload)
    return body


def _payload(payload: Payload | None) -> Any:
    return None if payload is None else payload_value(payload)


def next_run_at(schedule: Schedule, now: datetime) -> datetime | None:
    """The next instant at which it is due; None while it is off or when nothing lies ahead."""
    return next(iter(upcoming.next_runs(schedule, load_or_never(schedule.packed), now, 1)), None)


def schedule_body(
    schedule: Schedule,
    now: datetime,
    *,
    payloads: Mapping[str, Payload] | None,
    last_run: Run | None,
    totals: Totals,
    hooks: Mapping[str, Any] | None = None,
    held: Held | None = None,
) -> dict[str, Any]:
    """payloads None: of a list of jobs, which leaves them out, and the hooks with theirs."""
    timing = load_or_never(schedule.packed)
    return {
        "id": schedule.id,
        "jobId": schedule.job_id,
        "name": schedule.name,
        "active": schedule.active,
        "state": schedule.state.value,
        "stateReason": schedule.state_reason,
        "held": held_body(held),
        "type": "recurring" if timing.recurring else "one-time",
        "summary": timing.summary,
        **defaults.shown_timing(schedule.timing),
        **({} if payloads is None else {"payload": _payload(payloads.get(schedule.id)), "hooks": dict(hooks or {})}),
        "policies": dict(schedule.policies),
        "createdAt": text_ms(schedule.created_at),
        "modifiedAt": text_ms(schedule.modified_at),
        "nextRunAt": _text(next_run_at(schedule, now)),
        "nextRuns": [text(instant) for instant in upcoming.next_runs(schedule, timing, now, NEXT_RUNS)],
        "lastRun": {"id": last_run.id, "state": last_run.state.value} if last_run else None,
        "totals": totals_body(totals),
    }


def moved_body(moved: MovedBy | None) -> dict[str, str] | None:
    if moved is None:
        return None
    where = {} if moved.zone is None else {"timezone": moved.zone}
    return {"rule": moved.rule, "localTime": moved.local_time, **where, "effect": moved.effect}


def schedule_editable(
    schedule: Schedule, payload: Payload | None, hooks: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a merge patch is applied to: the members that a caller may set. hooks: as they are shown."""
    body = {"name": schedule.name, "active": schedule.active, **schedule.timing, "policies": dict(schedule.policies)}
    if hooks:
        body["hooks"] = dict(hooks)
    if payload is not None:
        body["payload"] = payload_value(payload)
    return body


def totals_body(totals: Totals) -> dict[str, int]:
    return {
        "planned": totals.planned,
        "open": totals.open,
        "succeeded": totals.succeeded,
        "failed": totals.failed,
        "failedAttempts": totals.failed_attempts,
        "skipped": totals.skipped,
        "missed": totals.missed + totals.missed_sent,
    }


def credential_body(item: Listed, now: datetime) -> dict[str, Any]:
    """Never the secret: it was shown once."""
    until = item.former_until
    return {
        "clientId": f"{item.tenant or 'provider'}.{item.id}",
        "name": item.name,
        "scopes": list(item.scopes),
        "createdAt": text_ms(item.created_at),
        "createdBy": item.created_by,
        "rotatedAt": None if item.rotated_at is None else text_ms(item.rotated_at),
        "rotatedBy": item.rotated_by,
        "formerSecretUntil": text_ms(until) if until is not None and now < until else None,
    }


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else text(instant)
