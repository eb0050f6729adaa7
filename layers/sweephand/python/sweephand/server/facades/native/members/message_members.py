"""The members of a message: read from POST, shown in answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.json_schema import answer, items, one_of, or_null, ref, request, text, whole
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.domain import messages
from sweephand.domain.answers import Member, answered
from sweephand.domain.job import DEFAULT_COLLECTION, ActionDraft
from sweephand.domain.jobs import policies
from sweephand.domain.messages import Dedupe, MessageDraft
from sweephand.domain.run import Attempt, Run
from sweephand.domain.runs.run_members import run_body
from sweephand.domain.schema_words import (
    FLAG,
    GIVEN_INSTANT,
    INSTANT_MS,
    NAME,
    PLAIN_NAME,
    TEXT,
    ZONE,
)
from sweephand.schedules.text import instants
from sweephand.schedules.zones import localtime
from sweephand.server.actions.payloads import ANYTHING
from sweephand.server.facades.native.members import defaults, idle, run_edits, schedule_members
from sweephand.server.facades.native.members.defaults import Filling
from sweephand.server.facades.native.members.resource import Resource
from sweephand.server.flow.runs import edits
from sweephand.server.security.guard import GuardSettings

OWN_POLICIES = ("delivery", "keepAnswer", "callbackToken", "onNoResult")
LONGEST_DELAY_S = 175 * 366 * 86_400
MOST_DEDUPED_S = 15 * 86_400
"""The time for which every collection keeps runs, so that the first message can be shown."""
DEDUPE = ("dedupeKey", "dedupeSeconds", "onDuplicate")
WHEN = ("at", "delaySeconds", "timezone", "onPastStart")


@dataclass(frozen=True)
class MessageView:
    """The parts of an answer.

    waits_s: how long its run waits for a result by default. full: whether payload and policies are shown; lists
    leave them out.
    """

    run: Run
    held: bool
    waits_s: int
    full: bool


def _policies(value: object, field: str, _: Any) -> dict[str, Any]:
    fields.members(value, field, OWN_POLICIES)
    return defaults.without_default_policies(policies.read(value, field, of_job=True))


def _action_body(view: MessageView) -> dict[str, Any]:
    posted = view.run.posted
    assert posted is not None
    action = messages.action_of(posted)
    if action is None:
        return {}
    body = defaults.shown_action(action, Filling(posted.policies, view.waits_s))
    inline = action.inline
    if view.full:
        body |= {"payload": None, "body": None}
        if inline is not None and inline.payload is not None:
            body["payload" if inline.payload.is_json else "body"] = defaults.payload_value(inline.payload)
    return body


MESSAGE = Resource(
    MessageDraft,
    {
        "name": Member(NAME, lambda value, field, _: fields.name(value, field)),
        "collection": Member(PLAIN_NAME),
        "resourceId": Member(text(1, 256), lambda value, field, _: fields.line(value, field, 256)),
        "tags": Member(
            items(text(1, 128), maxItems=fields.MOST_TAGS, uniqueItems=True),
            lambda value, field, _: fields.tags(value, field),
            shown=items(TEXT),
        ),
        "dedupeKey": answered(or_null({**TEXT, "description": "The caller's own key for it."}), "dedupe_key"),
        "createdAt": answered({**INSTANT_MS, "description": "When it was accepted."}),
        "held": answered(
            {**FLAG, "description": "True: its instant has passed, and its collection or tenant is disabled."},
            lambda view: view.held,
        ),
        "maxLatenessSeconds": Member(
            whole(1, 31_622_400, description="If it could only begin later than this, it ends as EXPIRED."),
            attribute="max_lateness_s",
        ),
        "action": Member(
            ref("Action"),
            lambda value, field, guard: schedule_members.read_action(value, field, guard, Filling(), None),
            shown=ref("ShownAction"),
            show=_action_body,
        ),
        "policies": Member(
            request({name: policies.SCHEMA[name] for name in OWN_POLICIES}),
            _policies,
            shown=answer({name: policies.SCHEMA[name] for name in OWN_POLICIES}),
            show=lambda view: {
                name: value
                for name, value in {**policies.DEFAULTS, **view.run.posted.policies}.items()
                if name in OWN_POLICIES
            },
        ),
    },
    "run.posted",
)
_MEMBERS = tuple(MESSAGE.sent)
REQUEST = {
    **MESSAGE.request(),
    "payload": {**ANYTHING, "description": "JSON that is sent instead of the action's payload."},
    "body": text(0, description="A string that is sent unchanged; excludes `payload`."),
    "headers": {
        "type": "object",
        "additionalProperties": or_null(TEXT),
        "description": "Headers that replace the action's headers of the same names; null leaves one out.",
    },
    "dedupeKey": text(1, 255, description="The caller's own key for it: it is sent once, whoever repeats it."),
    "dedupeSeconds": whole(
        60, MOST_DEDUPED_S, default=86_400, description="How long the key counts, from the acceptance of the first one."
    ),
    "onDuplicate": one_of(
        ("keep", "refuse"),
        default="keep",
        description="The answer to a later message with the same key: the first one (200), or a refusal (409).",
    ),
    "at": {**GIVEN_INSTANT, "description": "When it is sent; without it and `delaySeconds`, at once."},
    "timezone": {**ZONE, "description": "The time zone of `at` if that has no offset; by default UTC."},
    "delaySeconds": whole(0, LONGEST_DELAY_S, description="How long after its acceptance it is sent."),
    "onPastStart": one_of(
        ("refuse", "run_now"),
        default="refuse",
        description="The rule for an `at` of more than 60 seconds ago: refused, or sent at once.",
    ),
}


def draft(body: object, guard: GuardSettings, *, tasks: bool) -> MessageDraft:
    """Reads a message. tasks: whether its caller may set the payload of tasks. Raises InvalidRequest."""
    wrong = Mistakes()
    members = fields.members(body, "", (*_MEMBERS, *run_edits.MEMBERS, *DEDUPE, *WHEN), wrong)
    wrong.of(fields.required, members, "action")
    attributes = MESSAGE.read(members, "", guard, wrong)
    attributes |= wrong.of(_when, members) or {}
    attributes["dedupe"] = wrong.of(_dedupe, members)
    edit = wrong.of(run_edits.read, members, tasks=tasks)
    action = attributes.get("action")
    if action is not None:
        for refused in idle.of_job(attributes.get("policies") or {}, action, "policies"):
            wrong.add(refused)
        if edit is not None:
            attributes["action"] = wrong.of(_edited, action, edit)
    wrong.check()
    return MessageDraft(**{"collection": DEFAULT_COLLECTION, **attributes})


def _edited(action: ActionDraft, edit: edits.Edit) -> ActionDraft:
    """Returns the action with the payload and the headers of the message."""
    edits.check(action, edit)
    if edit.headers is not None:
        merged = edits.merged(action.params["headers"], edit.headers)
        action = replace(action, params={**action.params, "headers": merged})
    return action if edit.payload is None else replace(action, payload=edit.payload)


def _dedupe(members: Mapping[str, Any]) -> Dedupe | None:
    """Reads the caller's own key. Raises InvalidRequest."""
    if "dedupeKey" not in members:
        for name in DEDUPE[1:]:
            if name in members:
                raise fields.inactive("", name, "only `dedupeKey` needs it")
        return None
    key = fields.line(members["dedupeKey"], "dedupeKey", 255)
    seconds = fields.whole(members.get("dedupeSeconds", 86_400), "dedupeSeconds", 60, MOST_DEDUPED_S)
    chosen = fields.one_of(members.get("onDuplicate", "keep"), "onDuplicate", ("keep", "refuse"))
    return Dedupe(key, seconds, refuse=chosen == "refuse")


def _when(members: Mapping[str, Any]) -> dict[str, Any]:
    """Reads when the message is sent. Raises InvalidRequest."""
    if "delaySeconds" in members and "at" in members:
        raise InvalidRequest("delaySeconds", "excludes `at`: write one of them")
    if "at" not in members:
        for name in ("timezone", "onPastStart"):
            if name in members:
                raise fields.inactive("", name, "only `at` needs it")
    if "delaySeconds" in members:
        return {"delay_s": fields.whole(members["delaySeconds"], "delaySeconds", 0, LONGEST_DELAY_S)}
    if "at" not in members:
        return {}
    zone = instants.read_zone(members.get("timezone", "UTC"))
    past = fields.one_of(members.get("onPastStart", "refuse"), "onPastStart", ("refuse", "run_now"))
    at = localtime.to_instant(instants.resolve(instants.read(members["at"], "at"), "at", zone))
    return {"at": at, "run_past": past == "run_now"}


def message_body(view: MessageView, attempts: Sequence[Attempt] = ()) -> dict[str, Any]:
    """Returns a message as JSON: the members of its run, and its own."""
    return {**run_body(view.run, attempts, job_name=None), **MESSAGE.show(view)}
