"""The actions: one module a kind, imported when a job of that kind is first read, so that a cold start pays for none.

A module gives `parse`, `to_json`, `from_json`, `check_payload`, `kept_secrets` (pure) and `perform`; one whose actions
have secrets also `carried_over`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweephand.domain.job import ActionDraft, ActionSpec, Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.runs import retry
from sweephand.errors import InvalidRequest, Mistakes

if TYPE_CHECKING:
    from datetime import datetime
    from types import ModuleType

    from sweephand.actions.call import Call
    from sweephand.domain.run import Outcome
    from sweephand.security.guard import GuardSettings, Outbound

KINDS = {
    "http": "sweephand.actions.http",
    "sqs": "sweephand.actions.sqs",
    "sns": "sweephand.actions.sns",
    "events": "sweephand.actions.events",
    "lambda": "sweephand.actions.lambda_",
    "states": "sweephand.actions.states",
    "ecs": "sweephand.actions.ecs",
    "event": "sweephand.actions.event",
    "job": "sweephand.actions.job",
    "azure_storage_queue": "sweephand.actions.azure_storage_queue",
    "azure_service_bus_queue": "sweephand.actions.azure_service_bus",
    "azure_service_bus_topic": "sweephand.actions.azure_service_bus",
}
_LATER = frozenset({"queue"})


def draft(fields: object, *, field: str, guard: GuardSettings, stored: ActionSpec | None = None) -> ActionDraft:
    """The action that a caller asks for. stored: the action that a change replaces, whose secrets may be kept.

    Raises InvalidRequest with the path, whatever JSON `fields` is.
    """
    if not isinstance(fields, Mapping):
        raise InvalidRequest(field, f"must be an object, not {read.shown(fields)}")
    kind = _kind(fields.get("type"), below(field, "type"))
    action = _module(kind)
    wrong = Mistakes()
    params = wrong.of(action.parse, fields, field=field, guard=guard)
    policy = wrong.of(retry.parse, fields.get("retry"), below(field, "retry"))
    wrong.check()
    old = action.from_json(stored.params) if stored is not None and stored.kind == kind else None
    kept = action.kept_secrets(params, old, field=field, guard=guard)
    shown = action.carried_over(params, old, kept) if kept else params
    dialect = {"dialect": stored.params["dialect"]} if stored is not None and "dialect" in stored.params else {}
    return ActionDraft(
        kind=kind,
        params={**action.to_json(shown), **dialect},
        retry=retry.to_json(policy),
        payload=params.payload,
        secrets=params.secrets,
        kept=kept,
    )


def as_stored(spec: ActionSpec, payload: Payload | None, guard: GuardSettings) -> ActionDraft:
    """Returns the draft that asks for an action as it is stored, secrets included. payload: the stored one."""
    action = _module(spec.kind)
    there = action.from_json(spec.params)
    kept = action.kept_secrets(there, there, field="", guard=guard)
    return ActionDraft(spec.kind, spec.params, spec.retry, payload, kept=kept)


def check_lasting(draft: ActionDraft, field: str, now: datetime) -> None:
    """Raises InvalidRequest where a draft brings a certificate that has ended. One that is kept is not judged again."""
    shown = draft.params.get("authentication", {})
    if shown.get("type") != "clientCertificate":
        return
    from sweephand.actions import authentication  # noqa: PLC0415 - few kinds have any

    if authentication.PEM in draft.secrets:
        authentication.check_lasting(authentication.from_json(shown), below(field, "authentication"), now)


def check_reaction(draft: ActionDraft, field: str, job_id: str) -> None:
    """An error action or a hook of the job. Raises InvalidRequest where it would run the job itself, over and over."""
    if draft.kind == "job" and draft.params["jobId"] == job_id:
        raise InvalidRequest(below(field, "jobId"), "is the job itself: what follows from its runs is another job's")


def check_payload(kind: str, params: Mapping[str, Any], payload: Payload | None, field: str) -> None:
    """Can a schedule's payload take the place of the action's? Raises InvalidRequest if not."""
    action = _module(kind)
    action.check_payload(action.from_json(params), payload, field)


def own_headers(params: Mapping[str, Any]) -> frozenset[str]:
    """The headers of a stored action that show its target who calls, in lower case: nobody sets them for a run."""
    if "headers" not in params:
        return frozenset()
    from sweephand.actions import authentication  # noqa: PLC0415 - few kinds have headers

    stored = params.get("authentication", {"type": "none"})
    return frozenset({"authorization", *(name.lower() for name in authentication.from_json(stored).headers)})


def perform(kind: str, params: Mapping[str, Any], call: Call, outbound: Outbound) -> Outcome:
    """One attempt; never raises for what the target does."""
    action = _module(kind)
    outcome: Outcome = action.perform(action.from_json(params), call, outbound)
    return outcome


def _module(kind: str) -> ModuleType:
    return importlib.import_module(KINDS[kind])


def _kind(value: object, field: str) -> str:
    if value is None:
        raise InvalidRequest(field, f"is required: one of {', '.join(sorted(KINDS))}")
    if not isinstance(value, str):
        raise read.not_a_string(value, field)
    if value in _LATER:
        raise InvalidRequest(field, f"is not available yet: {value[:40]}")
    return read.one_of(value, field, KINDS)
