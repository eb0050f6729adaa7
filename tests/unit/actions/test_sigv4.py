"""Signature Version 4 as a service of AWS checks it: computed anew here, from the bytes that came."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from botocore.exceptions import ClientError

from sweephand import actions
from sweephand.actions.authentication import Authentication
from sweephand.actions.http import HttpParams, perform
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.errors import InvalidRequest
from sweephand.security.guard import AwsSettings, Outbound
from sweephand.security.target_roles import RoleNotAssumedError
from tests.support.acting import GUARD, KEY, ROLE, SETTINGS, Roles
from tests.unit.actions.test_http import CALL, LOCAL
from tests.unit.endpoints import answering, listening

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nacme-token"
ALLOWED = replace(LOCAL, aws=SETTINGS)


def signing(service: str = "execute-api") -> Authentication:
    return Authentication("sigv4", {"service": service, "region": "eu-west-1", "roleArn": ROLE})


def called(
    path: str = "/stage/run?b=2&a=%20x",
    *,
    roles: Any = None,
    service: str = "execute-api",
    answer: bytes = OK,
    guard: Any = ALLOWED,
    **changes: Any,
) -> tuple[Outcome, bytes]:
    requests: list[bytes] = []
    with listening(answering(answer, requests)) as endpoint:
        method = changes.pop("method", "POST")
        made = HttpParams(method, endpoint.url(path), authentication=signing(service))
        call = replace(CALL, payload='{"a":1}', payload_is_json=True, **changes)
        outcome = perform(made, call, Outbound(guard, roles=roles or Roles()))
    return outcome, b"".join(requests)


def expected(request: bytes, service: str) -> str:
    """The signature by AWS's description, over the headers that the request says it signed."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in rest)}
    signed = headers["authorization"].split("SignedHeaders=")[1].split(",")[0]
    path, _, query = target.partition("?")
    canonical = "\n".join(
        [
            method,
            path if service == "s3" else quote(path, safe="/~"),
            "&".join(sorted(query.split("&"))),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed.split(";")),
            "",
            signed,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    stamp = headers["x-amz-date"]
    scope = f"{stamp[:8]}/eu-west-1/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{KEY}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(signed.split(";"))
    return hmac.digest(key, text.encode(), "sha256").hex()


@pytest.mark.parametrize("service", ["execute-api", "s3"])
def test_a_service_of_aws_finds_the_signature_that_it_computes_itself(service: str) -> None:
    outcome, request = called(service=service)

    assert outcome.verdict is Verdict.SUCCEEDED
    assert f"Signature={expected(request, service)}" in request.decode()
    assert b"X-Amz-Security-Token: acme-token\r\n" in request
    assert outcome.answer == "***", "the token of the session is nobody else's"


def test_a_service_that_refuses_is_a_failure_like_others() -> None:
    outcome, _ = called(answer=b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    assert (outcome.reason, outcome.http_status) == (Reason.HTTP_STATUS, 403)


def test_a_role_that_cannot_be_assumed_fails_the_attempt_and_nothing_is_sent() -> None:
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "canary"}}, "AssumeRole")

    outcome, request = called(roles=Roles({"sts": RoleNotAssumedError(denied)}))

    assert (outcome.verdict, request) == (Verdict.FAILED, b"")
    assert (outcome.message or "").startswith("the role could not be assumed: ")


def test_a_role_that_the_parameters_forbid_since_then_signs_nothing() -> None:
    outcome, request = called(guard=replace(LOCAL, aws=AwsSettings()))

    assert (outcome.reason, outcome.retryable, request) == (Reason.GUARD, False, b"")
    assert "TargetRoleArns" in (outcome.message or "")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"roleArn": None}, "roleArn"),
        ({"roleArn": "arn:aws:iam::123456789012:role/other"}, "roleArn"),
        ({"roleArn": 1}, "roleArn"),
        ({"service": "S3"}, "service"),
        ({"region": "eu west"}, "region"),
        ({"region": None}, "region"),
    ],
)
def test_a_job_signs_by_an_allowed_role_or_not_at_all(change: dict[str, Any], field: str) -> None:
    how = {"type": "sigv4", "service": "s3", "region": "eu-west-1", "roleArn": ROLE, **change}

    with pytest.raises(InvalidRequest) as caught:
        actions.draft({"type": "http", "url": "https://x.org/", "authentication": how}, field="action", guard=GUARD)

    assert caught.value.field == f"action.authentication.{field}"


@pytest.mark.parametrize(
    "name", ["authorization", "Date", "x-amz-date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"]
)
def test_a_header_that_the_signature_sets_is_not_the_caller_s(name: str) -> None:
    how = {"type": "sigv4", "service": "s3", "region": "eu-west-1", "roleArn": ROLE}
    fields = {"type": "http", "url": "https://x.org/", "authentication": how, "headers": {name: "x"}}

    with pytest.raises(InvalidRequest, match="sigv4 authentication sets it already") as caught:
        actions.draft(fields, field="action", guard=GUARD)

    assert str(caught.value.field).lower() == f"action.headers.{name.lower()}"
