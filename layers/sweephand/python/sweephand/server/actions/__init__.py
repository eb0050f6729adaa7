"""The actions: one class per kind, imported when a job of that kind is first read, so that a cold start pays for none.

A new kind needs its class (see kind.py), a line in KINDS and, in some cases, its permission in the template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.base.records import dataclass
from sweephand.domain.job import ActionDraft, ActionSpec, Payload
from sweephand.domain.runs import retry

if TYPE_CHECKING:
    from datetime import datetime

    from sweephand.domain.run import Outcome
    from sweephand.server.actions.call import Call
    from sweephand.server.actions.kind import Action
    from sweephand.server.security.guard import GuardSettings, Outbound

_CLASSES = {
    "http": "http:Http",
    "sqs": "aws.sqs:Sqs",
    "sns": "aws.sns:Sns",
    "events": "aws.events:Events",
    "lambda": "aws.lambda_:Lambda",
    "states": "aws.states:States",
    "ecs": "aws.ecs:Ecs",
    "event": "event:Event",
    "azure_storage_queue": "azure.storage_queue:StorageQueue",
    "azure_service_bus_queue": "azure.service_bus:ServiceBusQueue",
    "azure_service_bus_topic": "azure.service_bus:ServiceBusTopic",
    "job": "job:StartJob",
    "queue": "queue:Queue",
}


class _Kinds(Mapping[str, "type[Action]"]):
    """A mapping that loads the class of a kind when it is first used."""

    def __getitem__(self, name: str) -> type[Action]:
        module, _, cls = _CLASSES[name].partition(":")
        kind: type[Action] = getattr(import_module(f"{__name__}.{module}"), cls)
        return kind

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


KINDS: Mapping[str, type[Action]] = _Kinds()


def draft(fields: object, *, field: str, guard: GuardSettings, stored: ActionSpec | None = None) -> ActionDraft:
    """Reads the action that a caller requests. stored: the action that a change replaces, whose secrets may be kept.

    fields: any JSON. Raises InvalidRequest with the path.
    """
    fields = read.an_object(fields, field)
    kind = KINDS[_kind(fields.get("type"), below(field, "type"))]
    wrong = Mistakes()
    action = wrong.of(kind.parse, fields, field=field, guard=guard)
    policy = wrong.of(retry.parse, fields.get("retry"), below(field, "retry"))
    wrong.check()
    old = kind.from_json(stored.params) if stored is not None and stored.kind == kind.kind else None
    kept = action.kept_secrets(old, field=field, guard=guard)
    shown = action.carried_over(old, kept) if old is not None and kept else action
    dialect = {"dialect": stored.params["dialect"]} if stored is not None and "dialect" in stored.params else {}
    return ActionDraft(
        kind=kind.kind,
        params={**shown.to_json(), **dialect},
        retry=retry.to_json(policy),
        payload=action.payload,
        secrets=action.secrets,
        kept=kept,
    )


def load(kind: str, params: Mapping[str, Any]) -> Action:
    """Returns a stored action."""
    return KINDS[kind].from_json(params)


def as_stored(spec: ActionSpec, payload: Payload | None, guard: GuardSettings) -> ActionDraft:
    """Returns the draft that requests an action as it is stored, secrets included. payload: the stored one."""
    stored = load(spec.kind, spec.params)
    kept = stored.kept_secrets(stored, field="", guard=guard)
    return ActionDraft(spec.kind, spec.params, spec.retry, payload, kept=kept)


def check(draft: ActionDraft, field: str, now: datetime, *, reaction_of: str | None = None) -> None:
    """Raises InvalidRequest if a draft contains something that has expired, such as a certificate.

    reaction_of: the id of the job whose error action or hook it is. It must not run that job itself in a loop.
    """
    action = load(draft.kind, draft.params)
    if reaction_of is not None and action.starts_job == reaction_of:
        raise InvalidRequest(below(field, "jobId"), "is the job itself: an error action or hook must start another job")
    action.check_lasting(draft.secrets, field, now)


def check_payload(kind: str, params: Mapping[str, Any], payload: Payload | None, field: str) -> None:
    """Raises InvalidRequest if a payload cannot replace the action's."""
    if payload is not None:
        load(kind, params).check_payload(payload, field)


@dataclass(frozen=True)
class Allowed:
    """The kinds of actions, as the settings of a stack allow them; see sweephand.formats.actions."""

    guard: GuardSettings

    def draft(self, fields: object, *, field: str, stored: ActionSpec | None = None) -> ActionDraft:
        return draft(fields, field=field, guard=self.guard, stored=stored)

    def check_payload(self, kind: str, params: Mapping[str, Any], payload: Payload | None, field: str) -> None:
        check_payload(kind, params, payload, field)


def perform(kind: str, params: Mapping[str, Any], call: Call, outbound: Outbound) -> Outcome:
    """Carries out one attempt. Whatever the target does becomes an Outcome, never an exception."""
    return load(kind, params).perform(call, outbound)


def _kind(value: object, field: str) -> str:
    if value is None:
        raise InvalidRequest(field, f"is required: one of {', '.join(KINDS)}")
    if not isinstance(value, str):
        raise read.not_a_string(value, field)
    return read.one_of(value, field, KINDS)
