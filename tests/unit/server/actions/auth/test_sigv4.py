"""Signature Version 4 as a service of AWS checks it: computed anew here, from the bytes that came."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote_plus, unquote_to_bytes

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from sweephand.base.errors import InvalidRequest, Unavailable
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server import actions
from sweephand.server.actions.auth.authentication import Authentication
from sweephand.server.actions.http import Http
from sweephand.server.security.guard import AwsSettings, Outbound
from sweephand.server.security.target_roles import RoleNotAssumedError
from tests.support.acting import GUARD, KEY, ROLE, SETTINGS, Roles
from tests.unit.endpoints import answering, listening
from tests.unit.server.actions.test_http import CALL, LOCAL

perform = Http.perform

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
        made = Http(endpoint.url(path), method=method, authentication=signing(service))
        call = replace(CALL, **{"payload": '{"a":1}', "payload_is_json": True, **changes})
        outcome = perform(made, call, Outbound(guard, roles=roles or Roles()))
    return outcome, b"".join(requests)


def expected(request: bytes, service: str) -> str:
    """Computes the signature by AWS's description, over the headers that the request says it signed.

    Names and values of the query, and the path of an object of S3, are read as the service reads them, then encoded.
    """
    head, _, body = request.partition(b"\r\n\r\n")
    line, *rest = head.decode().split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in rest)}
    signed = headers["authorization"].split("SignedHeaders=")[1].split(",")[0]
    path, _, query = target.partition("?")
    canonical = "\n".join(
        [
            method,
            quote(unquote_to_bytes(path) if service == "s3" else path, safe="/"),
            "&".join("=".join(pair) for pair in sorted(encoded(query))),
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


def encoded(query: str) -> list[tuple[str, str]]:
    pairs = (piece.partition("=") for piece in query.split("&") if piece)
    return [(quote(unquote_plus(name), safe=""), quote(unquote_plus(value), safe="")) for name, _, value in pairs]


def signed_right(outcome: Outcome, request: bytes, service: str = "execute-api") -> str:
    """Returns the address that was sent, and that a service of AWS finds signed."""
    assert outcome.verdict is Verdict.SUCCEEDED
    assert f"Signature={expected(request, service)}" in request.decode()
    return request.decode().split(" ")[1]


@pytest.mark.parametrize("service", ["execute-api", "s3"])
def test_an_aws_service_accepts_the_signature_as_its_own(service: str) -> None:
    outcome, request = called(service=service)

    assert outcome.verdict is Verdict.SUCCEEDED
    assert f"Signature={expected(request, service)}" in request.decode()
    assert b"X-Amz-Security-Token: acme-token\r\n" in request
    assert outcome.answer == "***", "the token of the session is nobody else's"


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
@pytest.mark.parametrize(
    ("payload", "query"),
    [
        ('{"q":"a b"}', "q=a%20b"),
        ('{"a b":"c+d"}', "a%20b=c%2Bd"),
        ('{"at":"2027-01-01T00:00:00Z","x":"a,b;c=d&/~*"}', "at=2027-01-01T00%3A00%3A00Z&x=a%2Cb%3Bc%3Dd%26%2F~%2A"),
        ('{"o":{"k":"v w"}}', "o=%7B%22k%22%3A%22v%20w%22%7D"),
        ('{"e":"","n":null,"u":"é"}', "e=&u=%C3%A9"),
        ('{"b":["z","a",""],"a":1,"aa":2,"a-":3,"B":4}', "b=z&b=a&b=&a=1&aa=2&a-=3&B=4"),
    ],
    ids=["blank", "blank in a name", "signs", "object", "empty", "repeated and unsorted"],
)
def test_a_payload_that_becomes_the_query_is_signed_as_the_service_reads_it(
    method: str, payload: str, query: str
) -> None:
    outcome, request = called("/p", method=method, payload=payload)

    assert signed_right(outcome, request) == f"/p?{query}"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("/p?t=00:00&f=a,b", "/p?t=00%3A00&f=a%2Cb"),
        ("/p?f=a/b@c", "/p?f=a%2Fb%40c"),
        ("/p?f=%c3%a9&g=é&h=%7e", "/p?f=%C3%A9&g=%C3%A9&h=~"),
        ("/p?f=a+b&g=a%2Bb", "/p?f=a%20b&g=a%2Bb"),
        ("/p?f=a=b&&g&=h&", "/p?f=a%3Db&g&=h"),
        ("/p?b=2&a=2&a=1&a-=0&%41=1", "/p?b=2&a=2&a=1&a-=0&A=1"),
        ("/p?100%&x=%zz", "/p?100%25&x=%25zz"),
        ("/p?", "/p"),
        ("/a:b/c+d/%c3%a9?x", "/a:b/c+d/%c3%a9?x"),
    ],
)
def test_the_query_of_an_address_is_signed_as_the_service_reads_it(given: str, sent: str) -> None:
    """A plus is a blank there, as services of AWS take it; who means a plus writes %2B."""
    outcome, request = called(given)

    assert signed_right(outcome, request) == sent


def test_the_query_of_the_address_and_of_the_payload_are_signed_together() -> None:
    outcome, request = called("/p?t=00:00&", method="GET", payload='{"q":"a b"}')

    assert signed_right(outcome, request) == "/p?t=00%3A00&q=a%20b"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("/a%20b/c:d+e", "/a%20b/c%3Ad%2Be"),
        ("/%c3%a9/é/~x", "/%C3%A9/%C3%A9/~x"),
        ("/a//b/../c/", "/a//b/../c/"),
        ("/100%/%25?uploads&prefix=a/b", "/100%25/%25?uploads&prefix=a%2Fb"),
    ],
)
def test_the_name_of_an_object_is_signed_as_s3_reads_it(given: str, sent: str) -> None:
    outcome, request = called(given, service="s3", method="PUT")

    assert signed_right(outcome, request, "s3") == sent


def test_an_unsigned_call_keeps_the_query_of_its_address() -> None:
    requests: list[bytes] = []
    with listening(answering(OK, requests)) as endpoint:
        perform(Http(endpoint.url("/a:b?t=00:00&f=a+b&&%c3")), CALL, Outbound(LOCAL))

    assert requests[0].startswith(b"POST /a:b?t=00:00&f=a+b&&%c3 HTTP/1.1\r\n")


def test_a_service_that_refuses_is_a_failure_like_others() -> None:
    outcome, _ = called(answer=b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    assert (outcome.reason, outcome.http_status) == (Reason.HTTP_STATUS, 403)


def test_a_role_that_cannot_be_assumed_fails_the_attempt_and_nothing_is_sent() -> None:
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "canary"}}, "AssumeRole")

    outcome, request = called(roles=Roles({"sts": RoleNotAssumedError(denied)}))

    assert (outcome.verdict, request) == (Verdict.FAILED, b"")
    assert (outcome.message or "").startswith("the role could not be assumed: ")


def test_sts_that_does_not_answer_is_an_outage_of_the_service() -> None:
    with pytest.raises(Unavailable, match="STS does not answer"):
        called(roles=Roles({"sts": RoleNotAssumedError(ReadTimeoutError(endpoint_url="u"))}))


def test_a_role_forbidden_by_the_parameters_later_signs_nothing() -> None:
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
def test_a_caller_cannot_set_a_header_of_the_signature(name: str) -> None:
    how = {"type": "sigv4", "service": "s3", "region": "eu-west-1", "roleArn": ROLE}
    fields = {"type": "http", "url": "https://x.org/", "authentication": how, "headers": {name: "x"}}

    with pytest.raises(InvalidRequest, match="sigv4 authentication sets it already") as caught:
        actions.draft(fields, field="action", guard=GUARD)

    assert str(caught.value.field).lower() == f"action.headers.{name.lower()}"
