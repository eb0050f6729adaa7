"""Azure's jobs as drafts of the domain.

The properties of a job are stored as they were read, without secrets, and shown again; the draft follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_text import dumps
from sweephand.base.records import dataclass
from sweephand.domain.collection import Collection
from sweephand.domain.instants import text, up_to_second
from sweephand.domain.job import ActionDraft, Job, JobDraft, ScheduleDraft
from sweephand.formats.actions import Actions
from sweephand.formats.azure import actions, free_plan
from sweephand.formats.azure import collection_fields as collections
from sweephand.formats.azure.members import FACADE, JOB, TARGETS
from sweephand.formats.azure.shapes import as_instant

LONGEST_AHEAD = timedelta(days=548)
MOST_BYTES = 16_384
SCHEDULE = "main"
POLICIES = {
    "misfire": {"type": "latest"},
    "onPastStart": "run_now",
    "onEnable": "run_now",
    "onNothingLeft": "complete",
    "onUnreachable": "continue",
    "afterEnd": "final",
    "keepAnswer": "beginning",
    "totals": "all",
}


@dataclass(frozen=True)
class Wanted:
    """A requested job. properties: as they are stored and shown. draft: with its schedule."""

    properties: Mapping[str, Any]
    draft: JobDraft


def read(
    named: Mapping[str, Any],
    name: str,
    collection: Collection,
    kinds: Actions,
    now: datetime,
    before: Job | None = None,
) -> Wanted:
    """Returns the requested job. named: its properties, from JOB.named. before: the job that they change."""
    properties = JOB(named, "properties")
    _check(properties, collection, now)
    action, error_action = _actions(properties["action"], collection, kinds, before)
    if len(dumps(_without_certificates(properties)).encode()) > MOST_BYTES:
        raise InvalidRequest("properties", f"must have at most {MOST_BYTES:,} bytes")
    public = JOB.public(properties)
    public["action"] = _sealed(public["action"], action, error_action)
    public.setdefault("state", "Enabled")
    draft = JobDraft(
        name=name.lower(),
        action=action,
        error_action=error_action,
        collection=collection.name,
        active=public["state"] == "Enabled",
        policies=POLICIES,
        schedules=(_schedule(properties, now),),
        facade=FACADE,
        attributes={"name": before.attributes["name"] if before else name, "properties": public},
    )
    return Wanted(public, draft)


def _check(properties: Mapping[str, Any], collection: Collection, now: datetime) -> None:
    start = properties.get("startTime")
    if start is not None and as_instant(start) > now + LONGEST_AHEAD:
        raise InvalidRequest("properties.startTime", "must be at most 18 months ahead")
    free_plan.check_job(collection, properties)


def _without_certificates(value: Any) -> Any:
    """Returns properties, or a part of them, without certificates and their passwords."""
    if not isinstance(value, Mapping):
        return value
    certificate = ("pfx", "password") if value.get("type") == "ClientCertificate" else ()
    return {name: _without_certificates(each) for name, each in value.items() if name not in certificate}


def _actions(
    properties: Mapping[str, Any], collection: Collection, kinds: Actions, before: Job | None
) -> tuple[ActionDraft, ActionDraft | None]:
    path = "properties.action"
    asked = actions.Asked(path, kinds, before.action if before else None, _usual_retry_s(collection))
    action = actions.draft(properties, asked, None)
    if "errorAction" not in properties:
        return action, None
    asked = replace(asked, path=f"{path}.errorAction", stored=before.error_action if before else None)
    return action, actions.draft(properties["errorAction"], asked, properties.get("retryPolicy"))


def _sealed(action: Mapping[str, Any], made: ActionDraft, error: ActionDraft | None) -> dict[str, Any]:
    """Returns an action as it is stored: with the secrets in its uri and headers as `***`."""
    member = TARGETS[action["type"]]
    own = dict(action)
    if member == "request":
        own[member] = {**action[member], "uri": made.params["url"]}
        if "headers" in action[member]:
            own[member]["headers"] = dict(made.params["headers"])
    if error is not None:
        own["errorAction"] = _sealed(action["errorAction"], error, None)
    return own


def _schedule(properties: Mapping[str, Any], now: datetime) -> ScheduleDraft:
    start, recurrence = properties.get("startTime"), properties.get("recurrence")
    if recurrence is None:
        return ScheduleDraft(SCHEDULE, {"at": start or text(up_to_second(now))})
    rule = {name: recurrence[name] for name in ("frequency", "interval", "schedule") if name in recurrence}
    beside = {name: recurrence[name] for name in ("count", "endTime") if name in recurrence}
    if start is None:
        return ScheduleDraft(SCHEDULE, {"recurrence": rule, **beside}, policies={"onCreate": "run_now"})
    return ScheduleDraft(SCHEDULE, {"recurrence": rule, **beside, "startTime": start})


def filled(properties: Mapping[str, Any], collection: Collection) -> dict[str, Any]:
    """Returns the properties of a job with the defaults that answers fill in: two jobs are compared in this form."""
    shown = {**properties, "action": _with_policy(properties["action"], _usual_retry_s(collection))}
    if "recurrence" in properties:
        shown["recurrence"] = {"interval": 1, **properties["recurrence"]}
    return shown


def _with_policy(action: Mapping[str, Any], usual_s: int) -> dict[str, Any]:
    shown = dict(action)
    policy = action.get("retryPolicy")
    if policy is not None and policy.get("retryType") == "None":
        shown["retryPolicy"] = {"retryType": "None"}
    elif policy is not None:
        usual = {"retryType": "Fixed", "retryInterval": f"PT{usual_s}S", "retryCount": actions.RETRIES}
        shown["retryPolicy"] = {**usual, **policy}
    if "errorAction" in action:
        shown["errorAction"] = _with_policy(action["errorAction"], usual_s)
    return shown


def _usual_retry_s(collection: Collection) -> int:
    free = collections.plan_name(collection) == collections.FREE
    return free_plan.LEAST_RETRY_S if free else actions.RETRY_S
