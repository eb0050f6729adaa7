"""What all actions on AWS share: a target by its ARN, the role that the job acts by, and what a refusal means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, ReadTimeoutError, SSLError

from sweephand.actions import rules as outcome_rules
from sweephand.actions.call import Call, run_as_payload
from sweephand.actions.payloads import BadPayloadError, check_size, parse_payload
from sweephand.actions.redaction import hidden
from sweephand.actions.rules import Rules, failed, taken, tells_its_run
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.members.json_text import dumps
from sweephand.domain.run import Outcome, Reason
from sweephand.errors import InvalidRequest, Mistakes
from sweephand.security.aws_targets import Arn, check_role, check_target
from sweephand.security.guard import AwsSettings, GuardSettings, Outbound
from sweephand.security.target_roles import RoleNotAssumedError

MEMBERS = ("type", "targetArn", "roleArn", "payload", "body", "outcome", "retry")
MAX_ANSWER = 16_384
MAX_MESSAGE = 500
THROTTLES = frozenset(
    {
        *("Throttling", "ThrottlingException", "ThrottledException", "Throttled", "RequestThrottled"),
        *("RequestThrottledException", "TooManyRequestsException", "RequestLimitExceeded", "SlowDown"),
        *("KMSThrottling", "KMSThrottlingException", "KmsThrottlingException", "KMS.ThrottlingException"),
        *("KmsThrottled", "KMS.Throttling", "EC2ThrottledException", "ExecutionLimitExceeded"),
        *("BandwidthLimitExceeded", "PriorRequestNotComplete", "TransactionInProgressException"),
    }
)
"""Under status 400 too, and gone in a moment."""
PASSING = THROTTLES | {"ResourceConflictException", "ResourceNotReadyException", "SnapStartNotReadyException"}
"""So is a function that is being changed."""


CLIENTS = {"states": "stepfunctions"}
"""Where botocore calls a service otherwise than ARNs do."""


@dataclass(frozen=True)
class AwsParams:
    """target, role: ARNs. options: what is the kind's own, under the API's names. payload: only after `parse`."""

    kind: str
    target: str
    role: str
    options: Mapping[str, Any] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    payload: Payload | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Sent:
    """What the target said as it took it. answer: text, at most 16 KB."""

    answer: str | None
    http_status: int | None


class TargetFailedError(Exception):
    """The target was reached, and did not do it."""

    def __init__(self, message: str, *, retryable: bool = True, answer: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.answer = answer


# Reading


OwnReader = Callable[[Mapping[str, Any], "Arn | None", str], Any]
"""(the action's members, its target unless that cannot be read, the action's path) -> the value of one option."""


def parse(
    fields: object,
    *,
    field: str,
    guard: GuardSettings,
    service: str,
    own: Mapping[str, OwnReader] | None = None,
) -> tuple[dict[str, Any], AwsParams]:
    """The members and the action. own: the members that only this kind has, which become options.

    Raises InvalidRequest.
    """
    wrong = Mistakes()
    readers = own or {}
    given = read.members(fields, field, (*MEMBERS, *readers), wrong)
    target = wrong.of(_checked, given, "targetArn", field, lambda text: check_target(text, service, guard.aws))
    role = wrong.of(_checked, given, "roleArn", field, lambda text: check_role(text, guard.aws))
    brought = wrong.of(parse_payload, given, field)
    rules = wrong.of(outcome_rules.parse, given.get("outcome", {}), below(field, "outcome"))
    options = {name: wrong.of(reader, given, target, field) for name, reader in readers.items()}
    wrong.check()
    return given, AwsParams(str(given["type"]), target.text, role, options, rules, brought[1])


def _checked(given: Mapping[str, Any], name: str, field: str, check: Callable[[str], Any]) -> Any:
    path = below(field, name)
    if name not in given:
        raise InvalidRequest(path, "is required")
    text = read.text(given[name], path, 1, 2_048)
    try:
        return check(text)
    except InvalidRequest as wrong:
        raise wrong.within(path) from wrong


def payload_field(given: Mapping[str, Any], field: str) -> str:
    return below(field, "body" if "body" in given else "payload")


def check_json(payload: Payload | None, field: str) -> None:
    """Of a target that takes nothing but JSON."""
    if payload is None:
        return
    check_size(payload, field)
    if not payload.is_json:
        raise InvalidRequest(field, "must be JSON (member payload): this target takes no other text")


def check_object(payload: Payload | None, field: str) -> None:
    """Of a target that takes JSON objects only."""
    check_json(payload, field)
    if payload is not None and not payload.text.startswith("{"):
        raise InvalidRequest(field, "must be a JSON object: this target takes nothing else")


def to_json(params: AwsParams) -> dict[str, Any]:
    """The stored form, under the API's names."""
    return {
        "type": params.kind,
        "targetArn": params.target,
        "roleArn": params.role,
        **params.options,
        "outcome": outcome_rules.to_json(params.rules),
    }


def from_json(stored: Mapping[str, Any]) -> AwsParams:
    shared = {"type", "targetArn", "roleArn", "outcome"}
    return AwsParams(
        kind=stored["type"],
        target=stored["targetArn"],
        role=stored["roleArn"],
        options={name: value for name, value in stored.items() if name not in shared},
        rules=outcome_rules.from_json(stored["outcome"]),
    )


# Acting


def message(call: Call) -> str:
    """The text that is sent: the payload, or the run where there is none."""
    return dumps(run_as_payload(call)) if call.payload is None else call.payload


def json_message(call: Call) -> str:
    """Raises BadPayloadError if the payload is a text: it was stored for another kind of target."""
    if call.payload is not None and not call.payload_is_json:
        raise BadPayloadError("this target takes JSON only")
    return message(call)


def attempt(
    params: AwsParams, call: Call, outbound: Outbound, service: str, send: Callable[[Any, Arn], Sent]
) -> Outcome:
    """One call by the job's role; whatever AWS says becomes an Outcome. send: is given the client and the target.

    A function may say back what it was told, and a refusal quote what it refuses: without the run's callback token.
    """
    outcome = _attempted(params, call, outbound, service, send)
    if call.callback_token is None:
        return outcome
    answer, message = (text and hidden(text, call.confidences) for text in (outcome.answer, outcome.message))
    return replace(outcome, answer=answer, message=message)


def _attempted(
    params: AwsParams, call: Call, outbound: Outbound, service: str, send: Callable[[Any, Arn], Sent]
) -> Outcome:
    try:
        sent = _send(params, call, outbound, service, send)
    except InvalidRequest as refused:
        return failed(Reason.GUARD, refused.reason, retryable=False)
    except BadPayloadError as wrong:
        return failed(Reason.BAD_PAYLOAD, str(wrong), retryable=False)
    except TargetFailedError as error:
        said = failed(Reason.TARGET_ERROR, error.message, retryable=error.retryable)
        return replace(said, answer=error.answer)
    except RoleNotAssumedError as refused:
        why = failure_of(refused.cause)
        return replace(why, message=f"the role could not be assumed: {why.message}")
    except (ClientError, BotoCoreError) as error:
        return failure_of(error)
    told = tells_its_run(params.kind, params.options, with_payload=call.payload is not None)
    return taken(params.rules, call, sent.answer, sent.http_status, told=told)


def _send(params: AwsParams, call: Call, outbound: Outbound, service: str, send: Callable[[Any, Arn], Sent]) -> Sent:
    """The stack's parameters may have changed since the job was made, so what they forbid is asked once more."""
    settings: AwsSettings = outbound.settings.aws
    target = check_target(params.target, service, settings)
    check_role(params.role, settings)
    if outbound.roles is None:
        raise InvalidRequest(None, "this function acts by no roles")
    limit_s = max(1, int(min(params.rules.answer_timeout_s, call.deadline_s)))
    named = CLIENTS.get(service, service)
    return send(outbound.roles.client(named, target.region, params.role, call.tenant, limit_s), target)


def failure_of(error: ClientError | BotoCoreError) -> Outcome:
    """By the error's code and status, never by its text."""
    if isinstance(error, ClientError):
        said = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        code = str(said.get("Code", "Unknown"))
        return failed(
            Reason.HTTP_STATUS,
            f"{code}: {said.get('Message', '')}"[:MAX_MESSAGE],
            retryable=code in PASSING or (status is not None and status >= 500),
            http_status=status,
        )
    if isinstance(error, ReadTimeoutError | ConnectionClosedError):
        return failed(Reason.NO_ANSWER, "AWS did not answer in time", retryable=True)
    if isinstance(error, SSLError):
        return failed(Reason.TLS, "no TLS connection to AWS", retryable=True)
    return failed(Reason.CONNECT, f"AWS could not be reached ({type(error).__name__})", retryable=True)


def told(answer: Mapping[str, Any], member: str) -> Sent:
    """What an answer of botocore says under one of its members."""
    return Sent(str(answer[member]), answer.get("ResponseMetadata", {}).get("HTTPStatusCode"))
