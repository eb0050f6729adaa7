from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest

from sweephand.base.sources import SystemClock
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server.actions.auth.authentication import Authentication
from sweephand.server.actions.http import Http, OutcomeRules
from sweephand.server.security.guard import Outbound
from tests.unit.endpoints import listening, read_request, unused_port
from tests.unit.server.actions.test_http import CALL, LOCAL, PLANNED

perform = Http.perform

SECRET = "s3cret:/of mine"


class Clock(SystemClock):
    """Real waiting, a day of the test's own."""

    def __init__(self) -> None:
        self.day = PLANNED

    def now(self) -> datetime:
        return self.day


@dataclass
class Servers:
    """A token endpoint and a target. answers: what the token endpoint says, in order, the last one for ever.

    accepts: the tokens that the target takes; None: any.
    """

    answers: list[tuple[int, Any]]
    accepts: set[str] | None = None
    asked: list[tuple[dict[str, str], dict[str, list[str]]]] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)
    outbound: Outbound = field(default_factory=lambda: Outbound(LOCAL))
    token_url: str = ""
    target_url: str = ""
    silence_s: float = 0.0

    def token(self, connection: socket.socket, over: threading.Event) -> None:
        head, _, body = read_request(connection).partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        self.asked.append((headers, parse_qs(body.decode())))
        if self.silence_s:
            over.wait(self.silence_s)
        status, said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        text = said if isinstance(said, bytes) else json.dumps(said).encode()
        connection.sendall(
            f"HTTP/1.1 {status} X\r\nRetry-After: 7\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text
        )

    def target(self, connection: socket.socket, _: threading.Event) -> None:
        request = read_request(connection).decode()
        token = next(line for line in request.split("\r\n") if line.startswith("Authorization: ")).split(" ")[2]
        self.called.append(token)
        status = 200 if self.accepts is None or token in self.accepts else 401
        text = f"you said {token}".encode()
        connection.sendall(f"HTTP/1.1 {status} X\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)

    def run(self, job: str = "j", secret: str = SECRET, deadline_s: float = 5, **members: str) -> Outcome:
        made = Http(
            self.target_url,
            authentication=Authentication("oauth2", {"tokenUrl": self.token_url, "clientId": "me", **members}),
            outcome=OutcomeRules(on_no_answer="wait"),
        )
        call = replace(
            CALL, job_id=job, clock=self.clock, deadline_s=deadline_s, secrets={"authentication.secret": secret}
        )
        return perform(made, call, self.outbound)


def given(token: str, **members: Any) -> tuple[int, dict[str, Any]]:
    return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 3_600, **members}


@contextmanager
def servers(*answers: tuple[int, Any], **members: Any) -> Iterator[Servers]:
    there = Servers(list(answers), **members)
    with listening(there.token) as token, listening(there.target) as target:
        there.token_url, there.target_url = token.url("/token"), target.url("/run")
        yield there


def test_a_token_is_fetched_and_shown_to_the_target() -> None:
    with servers(given("tok-1")) as there:
        outcome = there.run(scope="a b", audience="x", resource="y")

    assert outcome.verdict is Verdict.SUCCEEDED
    assert there.called == ["tok-1"]
    ((headers, form),) = there.asked
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"me:s3cret%3A%2Fof+mine"
    assert form == {"grant_type": ["client_credentials"], "scope": ["a b"], "audience": ["x"], "resource": ["y"]}


def test_the_credentials_are_sent_in_the_form_if_the_endpoint_wants_them_there() -> None:
    with servers(given("tok-1")) as there:
        there.run(credentialsIn="body")

    ((headers, form),) = there.asked
    assert "Authorization" not in headers
    assert (form["client_id"], form["client_secret"]) == (["me"], [SECRET])


def test_a_token_is_reused_until_shortly_before_it_expires() -> None:
    with servers(given("tok-1"), given("tok-2")) as there:
        there.run()
        there.clock.day += timedelta(seconds=3_539)
        there.run()
        there.clock.day += timedelta(seconds=1)
        there.run()

    assert there.called == ["tok-1", "tok-1", "tok-2"]
    assert len(there.asked) == 2


@pytest.mark.parametrize(
    ("life", "serves_s"),
    [({"expires_in": None}, 239), ({"expires_in": "600"}, 539), ({"expires_in": "soon"}, 239), ({}, 3_539)],
)
def test_a_missing_lifetime_or_one_written_as_a_string_is_accepted(life: dict[str, Any], serves_s: int) -> None:
    with servers(given("tok-1", **life), given("tok-2")) as there:
        there.run()
        there.clock.day += timedelta(seconds=serves_s)
        there.run()
        there.clock.day += timedelta(seconds=2)
        there.run()

    assert there.called == ["tok-1", "tok-1", "tok-2"]


def test_a_token_issued_for_another_purpose_is_not_used() -> None:
    with servers(*(given(f"tok-{n}") for n in range(1, 6))) as there:
        there.run()
        there.run(job="other")
        there.run(secret="rotated")
        there.run(scope="more")
        there.run()

    assert there.called == ["tok-1", "tok-2", "tok-3", "tok-4", "tok-1"]


def test_a_target_that_refuses_a_cached_token_gets_a_fresh_one_immediately() -> None:
    with servers(given("tok-1"), given("tok-2"), accepts={"tok-1", "tok-2"}) as there:
        there.run()
        there.accepts = {"tok-2"}
        outcome = there.run()

    assert outcome.verdict is Verdict.SUCCEEDED
    assert there.called == ["tok-1", "tok-1", "tok-2"]


def test_a_refused_fresh_token_is_an_answer_of_the_target() -> None:
    with servers(given("tok-1"), accepts=set()) as there:
        outcome = there.run()

    assert (outcome.verdict, outcome.reason, outcome.http_status) == (Verdict.FAILED, Reason.HTTP_STATUS, 401)
    assert (there.called, len(there.asked)) == (["tok-1"], 1)


def test_a_refused_token_is_requested_again_only_once() -> None:
    with servers(given("tok-1"), given("tok-2"), given("tok-3")) as there:
        there.run()
        there.accepts = set()
        outcome = there.run()

    assert outcome.http_status == 401
    assert there.called == ["tok-1", "tok-1", "tok-2"]


@pytest.mark.parametrize(
    ("answer", "words", "retryable"),
    [
        ((401, {"error": "invalid_client", "error_description": "canary"}), "status 401: invalid_client", False),
        ((400, {"error": "<b>canary</b>"}), "status 400", False),
        ((400, {"error": "no_client_has.s3cret"}), "status 400: no_client_has.***", False),
        ((503, b"canary"), "status 503", True),
        ((429, {}), "status 429", True),
    ],
)
def test_a_token_endpoint_that_issues_none_fails_the_attempt_with_its_status(
    answer: tuple[int, Any], words: str, retryable: bool
) -> None:
    with servers(answer) as there:
        outcome = there.run()

    assert (outcome.verdict, outcome.reason, outcome.http_status) == (Verdict.FAILED, Reason.HTTP_STATUS, answer[0])
    assert outcome.message == f"the token endpoint answered with {words}"
    assert (outcome.retryable, outcome.retry_after_s) == (retryable, 7)
    assert there.called == []


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"canary",
        b"[" * 60_000,
        [],
        {"access_token": ""},
        {"access_token": "a b", "token_type": "bearer"},
        {"a": 1},
    ],
)
def test_an_answer_without_a_token_gives_no_token(said: Any) -> None:
    with servers((200, said)) as there:
        outcome = there.run()

    assert (outcome.verdict, outcome.reason, there.called) == (Verdict.FAILED, Reason.NO_ANSWER, [])
    assert "canary" not in (outcome.message or "")


def test_a_token_of_another_type_is_not_sent() -> None:
    with servers(given("tok-1", token_type="DPoP")) as there:
        outcome = there.run()

    assert (outcome.retryable, there.called) == (False, [])
    assert outcome.message == "the token endpoint: its token is not of type bearer"


def test_a_silent_token_endpoint_is_a_failure_even_if_the_job_waits_for_silent_targets() -> None:
    with servers(given("tok-1"), silence_s=10) as there:
        outcome = there.run(deadline_s=0.3)

    assert (outcome.verdict, outcome.reason, outcome.retryable) == (Verdict.FAILED, Reason.NO_ANSWER, True)
    assert (outcome.message or "").startswith("the token endpoint: ")


@pytest.mark.parametrize(
    ("url", "reason", "retryable"),
    [
        ("http://127.0.0.1:{unused}/", Reason.CONNECT, True),
        ("http://10.0.0.1/", Reason.GUARD, False),
        ("http://nowhere.invalid/", Reason.DNS, True),
    ],
)
def test_the_token_call_goes_through_the_guard(url: str, reason: Reason, retryable: bool) -> None:
    with servers(given("tok-1")) as there:
        there.token_url = url.format(unused=unused_port())
        outcome = there.run()

    assert (outcome.reason, outcome.retryable, there.called) == (reason, retryable, [])


def test_a_token_repeated_by_the_target_is_hidden() -> None:
    with servers(given("tok-1-of-mine")) as there:
        outcome = there.run()

    assert outcome.answer == "you said ***"


def test_ten_concurrent_runs_request_one_token() -> None:
    with servers(given("tok-1"), given("tok-2"), silence_s=0.1) as there, ThreadPoolExecutor(10) as pool:
        outcomes = list(pool.map(lambda _: there.run(), range(10)))

    assert {outcome.verdict for outcome in outcomes} == {Verdict.SUCCEEDED}
    assert len(there.asked) == 1
    assert there.called == ["tok-1"] * 10


def test_runs_that_wait_for_a_shared_token_request_one_themselves_when_it_fails() -> None:
    with servers((503, {}), given("tok-2"), silence_s=0.1) as there, ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda _: there.run(), range(2)))

    assert sorted(outcome.verdict for outcome in outcomes) == [Verdict.FAILED, Verdict.SUCCEEDED]


def test_an_outcome_says_whether_the_endpoint_was_asked_and_answered_or_stayed_silent() -> None:
    with servers(given("tok-1"), (503, {}), (200, b"no JSON"), silence_s=0) as there:
        fetched, cached = there.run(), there.run()
        refused, garbage = there.run(job="k"), there.run(job="l")
        there.silence_s = 5
        silent = there.run(job="m", deadline_s=0.5)

    said = [(each.apart, each.issuer) for each in (fetched, cached, refused, garbage, silent)]
    assert said == [(False, True), (False, False), (True, True), (True, False), (True, True)]
    assert silent.reason is Reason.NO_ANSWER
