"""The schemas of the actions, made from their members: for requests, for answers and for lists."""

from __future__ import annotations

from sweephand.base.json_schema import Members, Schema, answer, items, one_of, or_null, ref, request, text, whole
from sweephand.domain.runs import retry
from sweephand.server.actions import KINDS, outcome
from sweephand.server.actions.auth import authentication
from sweephand.server.actions.aws import service as aws
from sweephand.server.actions.azure import redirects
from sweephand.server.actions.kind import Action, members_of
from sweephand.server.actions.payloads import ANYTHING, TEXT_BODY

_AWS: Members = {"targetArn": aws.TARGET, "roleArn": aws.ROLE}
_REDIRECT: Members = {
    **_AWS,
    "format": one_of(
        redirects.FORMATS,
        description="The format of the message. Only for storage queues; others always get raw messages.",
    ),
}
REDIRECTS: Schema = {
    "type": "object",
    "additionalProperties": request(_REDIRECT, _AWS),
    "maxProperties": redirects.MOST,
    "description": "Maps Azure queues and topics (`account/queue`, `namespace/entity`) to SQS queues and SNS topics.",
}
SHOWN_REDIRECTS: Schema = {**REDIRECTS, "additionalProperties": answer(_REDIRECT)}
_PAYLOAD: Members = {"payload": ANYTHING, "body": or_null(TEXT_BODY)}
_ORDER = ("type", "method", "url", "headers", "payload", "body", "authentication", "outcome", "retry")
"""The order of the members of `http` in its schema."""


def names(prefix: str = "") -> list[Schema]:
    """Returns references to the schemas of all kinds."""
    return [ref(f"{prefix}{_name(kind)}Action") for kind in KINDS]


def job_by_key() -> Schema:
    """Returns the schema of the action `job` in a list of jobs, where it names the other job by its key."""
    key = text(1, 128, description="The key of a job of the same list, also of a new one.")
    by_id = given(KINDS["job"])
    members = {name: each for name, each in by_id["properties"].items() if name != "jobId"}
    return {**by_id, "properties": {**members, "jobKey": key}, "required": ["type", "jobKey"]}


def schemas() -> dict[str, Schema]:
    """Returns the schemas of all kinds except `http`, and those that they refer to."""
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


RETRY: Members = {
    "type": one_of(retry.RetryType),
    "maxRetries": whole(0, retry.MOST_RETRIES, description="The maximum number of retries after the first attempt."),
    "delaySeconds": whole(0, retry.LONGEST_S, description="The delay before a retry, in seconds."),
    "maxDelaySeconds": whole(0, retry.LONGEST_S, description="The longest delay before a retry, in seconds."),
    "immediate": whole(0, retry.MOST_RETRIES, description="How many retries follow without a delay."),
    "delayed": whole(0, retry.MOST_RETRIES, description="Retries after a delay, which follow the immediate ones."),
    "increaseSeconds": whole(
        0, retry.LONGEST_S, description="How much longer each delay is than the one before, in seconds."
    ),
    "retryOn": one_of(retry.RetryOn, description="Which failures are tried again."),
    "neverOn": items(
        text(pattern=f"^([1-5]xx|[1-5][0-9]{{2}}(-[1-5][0-9]{{2}})?|{'|'.join(sorted(retry.OF_FAILURES))})$"),
        maxItems=retry.MOST_NEVER_ON,
        description="Statuses and reasons of failures that end the run at once.",
    ),
    "maxAgeSeconds": whole(
        1, retry.LONGEST_S, description="How long after the first attempt a retry may begin, in seconds."
    ),
}

AUTHENTICATION = {name: request(*authentication.request_members(name)) for name in authentication.TYPES}


def shown_authentication() -> Schema:
    """Returns the schema of authentications in answers, with one form for each type."""
    return {"oneOf": [answer(authentication.shown(name)) for name in authentication.TYPES]}


def retry_shown() -> Schema:
    """Returns the schema of retry policies in answers, with one form for each type."""
    always = {"type", "maxRetries", "immediate", "delayed"}
    shown = {name: each if name in always else or_null(each) for name, each in RETRY.items()}
    return {
        "oneOf": [
            answer({"type": {"const": kind.value}, **{name: shown[name] for name in names}})
            for kind, names in retry.USED.items()
        ]
    }
