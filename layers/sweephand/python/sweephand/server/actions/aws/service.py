"""The base of all actions on AWS: the target's ARN, the role that the job assumes, and the meaning of a refusal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, ReadTimeoutError, SSLError

from sweephand.base.errors import InvalidRequest, Unavailable
from sweephand.base.json_schema import text
from sweephand.base.members import fields as read
from sweephand.base.records import dataclass
from sweephand.domain.job import Payload
from sweephand.domain.run import Outcome, Reason
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import Action, Reading, checked, member, within
from sweephand.server.actions.outcome import Rules, failed, taken, taken_outcome
from sweephand.server.actions.payloads import JSON_ONLY, BadPayloadError, message
from sweephand.server.actions.redaction import hidden
from sweephand.server.security.aws_targets import Arn, check_role, check_target
from sweephand.server.security.guard import AwsSettings, Outbound
from sweephand.server.security.target_roles import RoleNotAssumedError

MAX_ANSWER = 16_384
MAX_MESSAGE = 500
THROTTLES = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "Throttled",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "SlowDown",
        "KMSThrottling",
        "KMSThrottlingException",
        "KmsThrottlingException",
        "KMS.ThrottlingException",
        "KmsThrottled",
        "KMS.Throttling",
        "EC2ThrottledException",
        "ExecutionLimitExceeded",
        "BandwidthLimitExceeded",
        "PriorRequestNotComplete",
        "TransactionInProgressException",
    }
)
"""The error codes of throttling. They are retried even if their status is 400."""
PASSING = THROTTLES | {"ResourceConflictException", "ResourceNotReadyException", "SnapStartNotReadyException"}
"""The error codes that are retried: throttling, and a function that is being changed or is not ready yet."""


@dataclass(frozen=True)
class Sent:
    """The answer of a target that accepted its message. answer: a string of at most 16 KB."""

    answer: str | None
    http_status: int | None


class TargetFailedError(Exception):
    """A failure of a target that was reached."""

    def __init__(self, message: str, *, retryable: bool = True, answer: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.answer = answer


def _target(value: Any, path: str, reading: Reading) -> str:
    arn = read.text(value, path, 1, 2_048)
    with within(path):
        return check_target(arn, reading.kind, reading.guard.aws).text


TARGET = text(1, 2_048, description="The region is the ARN's.")
ROLE = text(1, 2_048, description="One of the parameter TargetRoleArns; assumed with the tenant as its ExternalId.")


@dataclass(frozen=True)
class AwsAction(Action):
    """An action on a service of AWS. The kind is the name of the service in ARNs.

    client: the name of the service in botocore, if it differs from the kind.
    """

    target: str = member("targetArn", TARGET, _target)
    role: str = member("roleArn", ROLE, checked(lambda arn, guard: check_role(arn, guard.aws)))
    outcome: Rules = taken_outcome()

    shows = ("role",)
    client: ClassVar[str | None] = None

    @abstractmethod
    def send(self, call: Call, client: Any, target: Arn) -> Sent:
        """Sends one message with a client of the service. May raise botocore's errors and TargetFailedError."""

    def perform(self, call: Call, outbound: Outbound) -> Outcome:
        """Carries out one attempt with the job's role. Returns an Outcome for every answer and error of the target.

        Raises Unavailable if STS, which all roles need, does not answer.

        A function may echo its input, and a refusal may quote it. The run's callback token is masked in both.
        """
        outcome = self._attempted(call, outbound)
        if call.callback_token is None:
            return outcome
        answer, message = (text and hidden(text, call.confidences) for text in (outcome.answer, outcome.message))
        return replace(outcome, answer=answer, message=message)

    def _attempted(self, call: Call, outbound: Outbound) -> Outcome:
        try:
            sent = self._sent(call, outbound)
        except InvalidRequest as refused:
            return failed(Reason.GUARD, refused.reason, retryable=False)
        except BadPayloadError as wrong:
            return failed(Reason.BAD_PAYLOAD, str(wrong), retryable=False)
        except TargetFailedError as error:
            said = failed(Reason.TARGET_ERROR, error.message, retryable=error.retryable)
            return replace(said, answer=error.answer)
        except RoleNotAssumedError as refused:
            return not_assumed(refused)
        except (ClientError, BotoCoreError) as error:
            return failure_of(error)
        can_report = self.sends_callback(with_payload=call.payload is not None)
        return taken(self.outcome, call, sent.answer, sent.http_status, can_report=can_report)

    def _sent(self, call: Call, outbound: Outbound) -> Sent:
        """Sends the message after a second check against the stack's parameters, which may have changed meanwhile."""
        settings: AwsSettings = outbound.settings.aws
        target = check_target(self.target, self.kind, settings)
        check_role(self.role, settings)
        if outbound.roles is None:
            raise InvalidRequest(None, "this function acts by no roles")
        limit_s = max(1, int(min(self.outcome.answer_timeout_s, call.deadline_s)))
        client = outbound.roles.client(self.client or self.kind, target.region, self.role, call.tenant, limit_s)
        return self.send(call, client, target)


class JsonAction(AwsAction):
    """An action whose target accepts only JSON.

    The target learns of its run only if the job has no payload, because the run is then sent in its place.
    """

    body_schema = JSON_ONLY

    def check_payload(self, payload: Payload, field: str) -> None:
        """Raises InvalidRequest if the payload is too long or is not JSON."""
        super().check_payload(payload, field)
        if not payload.is_json:
            raise InvalidRequest(field, "must be JSON (member payload): this target accepts no other string")

    def sends_callback(self, *, with_payload: bool) -> bool:
        return not with_payload


def json_message(call: Call) -> str:
    """Returns the JSON to send. Raises BadPayloadError for a string that was stored for another kind of target."""
    if call.payload is not None and not call.payload_is_json:
        raise BadPayloadError("this target takes JSON only")
    return message(call)


def not_assumed(refused: RoleNotAssumedError) -> Outcome:
    """Returns the outcome of a role that STS refuses. Raises Unavailable if STS does not answer, or has no time."""
    why = failure_of(refused.cause)
    if why.retryable:
        raise Unavailable("STS does not answer: no role can be assumed") from refused
    return replace(why, message=f"the role could not be assumed: {why.message}")


def failure_of(error: ClientError | BotoCoreError) -> Outcome:
    """Returns the outcome of a refusal, by its code and status, never by its message."""
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


def sent_from(answer: Mapping[str, Any], member: str) -> Sent:
    """Returns one member of botocore's answer as a string, with the HTTP status."""
    return Sent(str(answer[member]), answer.get("ResponseMetadata", {}).get("HTTPStatusCode"))
