"""The targets of a test's jobs: each call is recorded and answered as the test chose. None reaches the network."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from sweephand.domain.run import Outcome, Reason
from sweephand.server import actions
from sweephand.server.security.guard import CallFailed, Outbound, Target
from sweephand.server.security.outbound import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sweephand.server.actions.call import Call as Attempt
    from sweephand.testing.sources import VirtualClock

OK = 200


@dataclass(frozen=True)
class Reply:
    """An answer of a target. body: text, bytes, or anything that becomes JSON; for AWS the members of the answer."""

    status: int = OK
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass(frozen=True)
class Call:
    """A call that a target received.

    at: when. kind: that of the action, such as `http` or `sqs`. method, target: of HTTP with the URL; for AWS the
    operation and the service. headers: names in lower case. body: as it was sent. request: the members of a request to
    AWS. planned_at, attempt: of the run.
    """

    at: datetime
    kind: str
    method: str
    target: str
    job_id: str | None
    schedule_id: str | None
    run_id: str
    planned_at: datetime
    attempt: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    request: Mapping[str, Any] = field(default_factory=dict)

    @property
    def json(self) -> Any:
        """The body as JSON. Raises ValueError for any other."""
        return json.loads(self.body)


Answering = Callable[[Call], "Reply | int | Mapping[str, Any] | None"]
"""Answers a call: with a Reply, a status, the JSON of an answer of 200, or None for an empty answer of 200.

If it raises ConnectionError, the target cannot be reached; TimeoutError: it does not answer. Any other error ends the
test.
"""
_AWS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "sqs.send_message": {"MessageId": "message-1"},
        "sns.publish": {"MessageId": "message-1"},
        "events.put_events": {"FailedEntryCount": 0, "Entries": [{"EventId": "event-1"}]},
        "lambda.invoke": {"StatusCode": 200},
        "stepfunctions.start_execution": {"executionArn": "arn:aws:states:eu-central-1:123456789012:execution:e:1"},
    }
)
"""The answers of AWS if the test chose nothing else."""


class Targets:
    """All targets of a stack. calls: what they have received, in order. error: raised by the test's own answers."""

    def __init__(self, clock: VirtualClock, answer: Answering | None) -> None:
        self.calls: list[Call] = []
        self.answer = answer
        self.error: BaseException | None = None
        self._clock = clock
        self._attempt: ContextVar[tuple[str, Attempt]] = ContextVar("attempt")

    def perform(self, kind: str, params: Mapping[str, Any], attempt: Attempt, outbound: Outbound) -> Outcome:
        """Carries out an attempt as the executor does; `answer` is what lies beyond the network."""
        with self._of(kind, attempt):
            return actions.perform(kind, params, attempt, outbound)

    @contextmanager
    def _of(self, kind: str, attempt: Attempt) -> Iterator[None]:
        before = self._attempt.set((kind, attempt))
        try:
            yield
        finally:
            self._attempt.reset(before)

    def network(self, target: Target, method: str, headers: Sequence[tuple[str, str]], content: bytes | None) -> Answer:
        """Answers an HTTP request. Raises CallFailed."""
        url = f"{target.scheme}://{target.host_header}{target.target}"
        named = {name.lower(): value for name, value in headers}
        try:
            reply = self._answered(method, url, headers=named, body=content or b"")
        except ConnectionError as refused:
            raise CallFailed(Reason.CONNECT, f"no connection to {target.host}: {refused}") from refused
        except TimeoutError as late:
            raise CallFailed(Reason.NO_ANSWER, f"{target.host} did not answer in time") from late
        answered = tuple((name.lower(), value) for name, value in reply.headers.items())
        return Answer(reply.status, answered, reply.content)

    def client(self, service: str, *_: object) -> Any:
        """Returns the client of a service of AWS, for TargetRoles."""
        return _AwsClient(service, self)

    def credentials(self, *_: object) -> Mapping[str, str]:
        """Returns the credentials of a role, for signed HTTP requests."""
        return {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "test", "aws_session_token": "test"}

    def ask_aws(self, service: str, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answers a request to AWS. Raises botocore's errors."""
        try:
            reply = self._answered(operation, service, request=request)
        except ConnectionError as refused:
            raise EndpointConnectionError(endpoint_url=f"https://{service}.example") from refused
        except TimeoutError as late:
            raise ReadTimeoutError(endpoint_url=f"https://{service}.example") from late
        told = {"ResponseMetadata": {"HTTPStatusCode": reply.status}}
        if reply.status >= 400:
            error = {"Code": str(reply.body or reply.status), "Message": ""}
            raise ClientError({"Error": error, **told}, operation)
        members = dict(reply.body) if isinstance(reply.body, Mapping) else {}
        if service == "lambda":
            members.setdefault("Payload", io.BytesIO(b""))
        return {**_AWS.get(f"{service}.{operation}", {}), **members, **told}

    def _answered(self, method: str, target: str, **members: Any) -> Reply:
        kind, attempt = self._attempt.get()
        call = Call(
            at=self._clock.now(),
            kind=kind,
            method=method,
            target=target,
            job_id=attempt.job_id,
            schedule_id=attempt.schedule_id,
            run_id=attempt.run_id,
            planned_at=attempt.planned_at,
            attempt=attempt.attempt,
            **members,
        )
        self.calls.append(call)
        try:
            return _reply(None if self.answer is None else self.answer(call))
        except (ConnectionError, TimeoutError):
            raise
        except BaseException as error:
            self.error = self.error or error
            raise ConnectionError("the test's answer raised an error") from error


class _AwsClient:
    def __init__(self, service: str, targets: Targets) -> None:
        self._service, self._targets = service, targets
        self.meta = SimpleNamespace(endpoint_url=f"https://{service}.example")

    def __getattr__(self, operation: str) -> Callable[..., Mapping[str, Any]]:
        return lambda **request: self._targets.ask_aws(self._service, operation, request)


def _reply(answer: object) -> Reply:
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, int):
        return Reply(answer)
    if isinstance(answer, Mapping):
        return Reply(body=answer)
    if answer is None:
        return Reply()
    raise TypeError(f"a target's answer must be a Reply, a status, a mapping or None, not {answer!r}")
