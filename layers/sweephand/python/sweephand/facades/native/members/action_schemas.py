"""The schemas of the actions, made of their members: as an action is given, as it is shown, as lists show it."""

from __future__ import annotations

from sweephand.actions import KINDS, outcome
from sweephand.actions.aws import service as aws
from sweephand.actions.azure import redirects
from sweephand.actions.kind import Action, members_of
from sweephand.actions.payloads import ANYTHING, TEXT_BODY
from sweephand.facades.native.members.json_schema import Members, Schema, answer, one_of, or_null, ref, request

_AWS: Members = {"targetArn": aws.TARGET, "roleArn": aws.ROLE}
_REDIRECT: Members = {**_AWS, "format": one_of(redirects.FORMATS, description="Of storage queues; else always raw.")}
REDIRECTS: Schema = {
    "type": "object",
    "additionalProperties": request(_REDIRECT, _AWS),
    "maxProperties": redirects.MOST,
    "description": "From an Azure queue or topic (`account/queue`, `namespace/entity`) to one of SQS or SNS.",
}
SHOWN_REDIRECTS: Schema = {**REDIRECTS, "additionalProperties": answer(_REDIRECT)}
_PAYLOAD: Members = {"payload": ANYTHING, "body": or_null(TEXT_BODY)}
_ORDER = ("type", "method", "url", "headers", "payload", "body", "authentication", "outcome", "retry")
"""Of the members of the kind `http`, as its schema has always had them."""


def names(prefix: str = "") -> list[Schema]:
    """Returns references to the schemas of all kinds."""
    return [ref(f"{prefix}{_name(kind)}Action") for kind in KINDS]


def schemas() -> dict[str, Schema]:
    """Returns the schemas of all kinds but `http`, and those that they refer to."""
    kinds = {name: kind for name, kind in KINDS.items() if name != "http"}
    made = outcome.schemas("TakenOutcome", outcome.Rules)
    for kind in kinds.values():
        made |= kind.components
    for name, kind in kinds.items():
        made |= {f"{_name(name)}Action": given(kind)}
        made |= {f"Shown{_name(name)}Action": shown(kind), f"Listed{_name(name)}Action": listed(kind)}
    return made


def given(kind: type[Action]) -> Schema:
    """Returns the schema of an action in a request."""
    members = {each.name: each for each in members_of(kind).values()}
    own = {name: each.schema for name, each in members.items() if name != "outcome"}
    all_members: dict[str, Schema] = {
        "type": {"const": kind.kind},
        **own,
        "retry": ref("Retry"),
        "payload": kind.payload_schema,
        "body": kind.body_schema,
        **({"outcome": members["outcome"].schema} if "outcome" in members else {}),
    }
    if kind.kind == "http":
        all_members = {name: all_members[name] for name in _ORDER}
    required = (name for name, each in members.items() if each.required)
    described = {} if kind.description is None else {"description": kind.description}
    return request(all_members, ("type", *required), **described)


def shown(kind: type[Action]) -> Schema:
    """Returns the schema of an action in an answer."""
    return answer({**_listed(kind), **_PAYLOAD})


def listed(kind: type[Action]) -> Schema:
    """Returns the schema of an action in a list, without its payload."""
    return answer(_listed(kind))


def _listed(kind: type[Action]) -> Members:
    own = {
        each.name: or_null(each.shown or each.schema) if each.nullable else each.shown or each.schema
        for each in members_of(kind).values()
    }
    return {"type": {"const": kind.kind}, **own, "retry": ref("ShownRetry")}


def _name(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_"))
