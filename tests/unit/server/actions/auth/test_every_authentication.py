"""Every authentication against one target that takes only what it should be shown, over TLS, in each outcome."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server.actions.auth.authentication import TYPES, Authentication
from sweephand.server.actions.http import Http, OutcomeRules
from sweephand.server.security.guard import Outbound
from sweephand.server.security.identity import Identity
from sweephand.testing.own_key import KEY_ID, OwnKey
from tests.support.acting import ROLE, SETTINGS, Roles
from tests.unit.endpoints import Authority, listening, read_request, unused_port
from tests.unit.server.actions.test_http import CALL, LOCAL, FromAcceptance

perform = Http.perform

Answer = Callable[[socket.socket, threading.Event], None]
SECRETS = {
    "basic": {"authentication.password": "pass-of-mine"},
    "bearer": {"authentication.token": "token-of-mine"},
    "apiKey": {"authentication.value": "value-of-mine"},
    "oauth2": {"authentication.secret": "secret-of-mine"},
    "clientCertificate": {"authentication.pem": ""},
}
MEMBERS: Mapping[str, Mapping[str, str]] = {
    "basic": {"username": "me"},
    "apiKey": {"header": "X-Api-Key"},
    "sigv4": {"service": "execute-api", "region": "eu-west-1", "roleArn": ROLE},
}
SHOWN: Mapping[str, str] = {
    "none": "POST ",
    "basic": "Authorization: Basic " + base64.b64encode(b"me:pass-of-mine").decode(),
    "bearer": "Authorization: Bearer token-of-mine",
    "apiKey": "X-Api-Key: value-of-mine",
    "oauth2": "Authorization: Bearer fetched-token",
    "clientCertificate": "POST ",
    "sigv4": "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/",
    "sweephand": "Authorization: Bearer ey",
}


def status(code: int) -> Answer:
    def answer(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(f"HTTP/1.1 {code} X\r\nContent-Length: 0\r\n\r\n".encode())

    return answer


def silence(_: socket.socket, over: threading.Event) -> None:
    over.wait(5)


@dataclass
class Place:
    """A target with TLS that asks every client for a certificate, and the token endpoint next to it."""

    authority: Authority
    pem: str
    url: str
    token_url: str
    requests: list[str]

    def call(self, kind: str, *, proven: bool = True, on202: str | None = None, **limits: Any) -> Outcome:
        members = {
            **MEMBERS.get(kind, {}),
            **({"tokenUrl": self.token_url, "clientId": "me"} if kind == "oauth2" else {}),
        }
        secrets = dict(SECRETS.get(kind, {})) if proven else {}
        if "authentication.pem" in secrets:
            secrets["authentication.pem"] = self.pem
        outbound = Outbound(
            replace(LOCAL, aws=SETTINGS),
            authorities=self.authority.pem,
            roles=Roles() if proven else None,  # type: ignore[arg-type]
            identity=Identity(OwnKey, KEY_ID, "https://s.example") if proven else None,
        )
        rules = OutcomeRules(on202=on202)
        made = Http(self.url, authentication=Authentication(kind, members), outcome=rules)
        return perform(made, replace(CALL, secrets=secrets, **limits), outbound)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@contextmanager
def place(authority: Authority, kind: str, answer: Answer) -> Iterator[Place]:
    requests: list[str] = []

    def target(connection: socket.socket, over: threading.Event) -> None:
        requests.append(read_request(connection).decode())
        answer(connection, over)

    def token(connection: socket.socket, _: threading.Event) -> None:
        read_request(connection)
        body = json.dumps({"access_token": "fetched-token", "token_type": "bearer", "expires_in": 600}).encode()
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    key, certificate = authority.client("me")
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem = (private + certificate.public_bytes(Encoding.PEM)).decode()
    server = authority.server("127.0.0.1", clients_of=authority if kind == "clientCertificate" else None)
    with listening(target, tls=server) as there, listening(token) as endpoint:
        yield Place(authority, pem, there.url(scheme="https"), endpoint.url(), requests)


def test_these_tests_cover_every_authentication() -> None:
    assert SHOWN.keys() == TYPES.keys()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("none", marks=pytest.mark.action("http", "none", "success")),
        pytest.param("basic", marks=pytest.mark.action("http", "basic", "success")),
        pytest.param("bearer", marks=pytest.mark.action("http", "bearer", "success")),
        pytest.param("apiKey", marks=pytest.mark.action("http", "apiKey", "success")),
        pytest.param("oauth2", marks=pytest.mark.action("http", "oauth2", "success")),
        pytest.param("clientCertificate", marks=pytest.mark.action("http", "clientCertificate", "success")),
        pytest.param("sigv4", marks=pytest.mark.action("http", "sigv4", "success")),
        pytest.param("sweephand", marks=pytest.mark.action("http", "sweephand", "success")),
    ],
)
def test_the_target_sees_who_calls(authority: Authority, kind: str) -> None:
    with place(authority, kind, status(200)) as there:
        outcome = there.call(kind)

    (request,) = there.requests
    assert outcome.verdict is Verdict.SUCCEEDED
    assert SHOWN[kind] in request


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("none", marks=pytest.mark.action("http", "none", "wait")),
        pytest.param("basic", marks=pytest.mark.action("http", "basic", "wait")),
        pytest.param("bearer", marks=pytest.mark.action("http", "bearer", "wait")),
        pytest.param("apiKey", marks=pytest.mark.action("http", "apiKey", "wait")),
        pytest.param("oauth2", marks=pytest.mark.action("http", "oauth2", "wait")),
        pytest.param("clientCertificate", marks=pytest.mark.action("http", "clientCertificate", "wait")),
        pytest.param("sigv4", marks=pytest.mark.action("http", "sigv4", "wait")),
        pytest.param("sweephand", marks=pytest.mark.action("http", "sweephand", "wait")),
    ],
)
def test_a_202_waits_for_the_result_if_the_job_says_so(authority: Authority, kind: str) -> None:
    with place(authority, kind, status(202)) as there:
        outcome = there.call(kind, on202="wait")

    (request,) = there.requests
    assert (outcome.verdict, outcome.http_status) == (Verdict.ACCEPTED, 202)
    assert SHOWN[kind] in request


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("none", marks=pytest.mark.action("http", "none", "unreachable")),
        pytest.param("basic", marks=pytest.mark.action("http", "basic", "unreachable")),
        pytest.param("bearer", marks=pytest.mark.action("http", "bearer", "unreachable")),
        pytest.param("apiKey", marks=pytest.mark.action("http", "apiKey", "unreachable")),
        pytest.param("oauth2", marks=pytest.mark.action("http", "oauth2", "unreachable")),
        pytest.param("clientCertificate", marks=pytest.mark.action("http", "clientCertificate", "unreachable")),
        pytest.param("sigv4", marks=pytest.mark.action("http", "sigv4", "unreachable")),
        pytest.param("sweephand", marks=pytest.mark.action("http", "sweephand", "unreachable")),
    ],
)
def test_an_address_without_a_listener_gets_no_connection(authority: Authority, kind: str) -> None:
    with place(authority, kind, status(200)) as there:
        there.url = f"https://127.0.0.1:{unused_port()}"
        outcome = there.call(kind)

    assert (outcome.verdict, outcome.reason, outcome.retryable) == (Verdict.FAILED, Reason.CONNECT, True)
    assert there.requests == []


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("none", marks=pytest.mark.action("http", "none", "failure")),
        pytest.param("basic", marks=pytest.mark.action("http", "basic", "failure")),
        pytest.param("bearer", marks=pytest.mark.action("http", "bearer", "failure")),
        pytest.param("apiKey", marks=pytest.mark.action("http", "apiKey", "failure")),
        pytest.param("oauth2", marks=pytest.mark.action("http", "oauth2", "failure")),
        pytest.param("clientCertificate", marks=pytest.mark.action("http", "clientCertificate", "failure")),
        pytest.param("sigv4", marks=pytest.mark.action("http", "sigv4", "failure")),
        pytest.param("sweephand", marks=pytest.mark.action("http", "sweephand", "failure")),
    ],
)
@pytest.mark.parametrize(("code", "retryable"), [(401, False), (403, False), (503, True)])
def test_a_refusal_is_reported_with_its_status(authority: Authority, kind: str, code: int, retryable: bool) -> None:
    with place(authority, kind, status(code)) as there:
        outcome = there.call(kind)

    assert (outcome.verdict, outcome.reason) == (Verdict.FAILED, Reason.HTTP_STATUS)
    assert (outcome.http_status, outcome.retryable) == (code, retryable)
    assert len(there.requests) == 1, "what was made for this very call is not asked for again"


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("none", marks=pytest.mark.action("http", "none", "silence")),
        pytest.param("basic", marks=pytest.mark.action("http", "basic", "silence")),
        pytest.param("bearer", marks=pytest.mark.action("http", "bearer", "silence")),
        pytest.param("apiKey", marks=pytest.mark.action("http", "apiKey", "silence")),
        pytest.param("oauth2", marks=pytest.mark.action("http", "oauth2", "silence")),
        pytest.param("clientCertificate", marks=pytest.mark.action("http", "clientCertificate", "silence")),
        pytest.param("sigv4", marks=pytest.mark.action("http", "sigv4", "silence")),
        pytest.param("sweephand", marks=pytest.mark.action("http", "sweephand", "silence")),
    ],
)
def test_a_call_without_an_answer_ends_at_its_deadline(authority: Authority, kind: str) -> None:
    clock = FromAcceptance()
    with place(authority, kind, clock.of(silence)) as there:
        outcome = there.call(kind, deadline_s=1, clock=clock)

    assert (outcome.verdict, outcome.reason, outcome.retryable) == (Verdict.FAILED, Reason.NO_ANSWER, True)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("basic", marks=pytest.mark.action("http", "basic", "unproven")),
        pytest.param("bearer", marks=pytest.mark.action("http", "bearer", "unproven")),
        pytest.param("apiKey", marks=pytest.mark.action("http", "apiKey", "unproven")),
        pytest.param("oauth2", marks=pytest.mark.action("http", "oauth2", "unproven")),
        pytest.param("clientCertificate", marks=pytest.mark.action("http", "clientCertificate", "unproven")),
        pytest.param("sigv4", marks=pytest.mark.action("http", "sigv4", "unproven")),
        pytest.param("sweephand", marks=pytest.mark.action("http", "sweephand", "unproven")),
    ],
)
def test_an_action_without_its_credential_does_not_call(authority: Authority, kind: str) -> None:
    with place(authority, kind, status(200)) as there:
        outcome = there.call(kind, proven=False)

    assert (outcome.verdict, outcome.reason, outcome.retryable) == (Verdict.FAILED, Reason.GUARD, False)
    assert there.requests == []
