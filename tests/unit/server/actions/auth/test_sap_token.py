"""The stack's own token in calls of SAP's dialect: as the stack's setting is when the call is made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.domain.run import Verdict
from sweephand.server.actions.auth.authentication import NONE, STACK, Authentication
from sweephand.server.actions.http import Http
from sweephand.server.actions.run_headers import OWN, SAP
from sweephand.server.security.guard import Outbound
from sweephand.server.security.identity import Identity
from sweephand.testing.own_key import KEY_ID, OwnKey
from tests.unit.endpoints import answering, listening
from tests.unit.server.actions.auth.test_every_authentication import authority, place, status
from tests.unit.server.actions.test_http import CALL, LOCAL

perform = Http.perform

__all__ = ["authority"]
BASIC = Authentication("basic", {"username": "me"})
SECRETS = {"authentication.password": "pass-of-mine"}
BEARER, PAIR, OTHER = "Authorization: Bearer ey", "Authorization: Basic ", "Authorization: mine"


def outbound(*, identity: bool, authorities: str | None = None) -> Outbound:
    own = Identity(OwnKey, KEY_ID, "https://s.example") if identity else None
    return Outbound(LOCAL, authorities=authorities, identity=own)


@pytest.mark.parametrize(
    ("dialect", "how", "identity", "shown"),
    [
        (SAP, NONE, True, BEARER),
        (SAP, STACK, True, BEARER),
        (SAP, NONE, False, None),
        (SAP, STACK, False, None),
        (SAP, BASIC, True, PAIR),
        (OWN, NONE, True, None),
    ],
)
def test_the_sap_token_is_sent_while_the_stack_has_an_identity(authority, dialect, how, identity, shown):
    with place(authority, "none", status(200)) as there:
        made = Http(there.url, authentication=how, dialect=dialect)
        ways = outbound(identity=identity, authorities=authority.pem)
        outcome = perform(made, replace(CALL, secrets=SECRETS), ways)

    assert outcome.verdict is Verdict.SUCCEEDED, outcome
    (request,) = there.requests
    assert request.count("Authorization: ") == (shown is not None)
    assert shown is None or shown in request


def test_the_sap_token_is_not_added_next_to_the_callers_own_header(authority):
    with place(authority, "none", status(200)) as there:
        made = Http(there.url, headers=(("authorization", "***"),), dialect=SAP)
        ways = outbound(identity=True, authorities=authority.pem)
        outcome = perform(made, replace(CALL, secrets={"headers.Authorization": "mine"}), ways)

    assert outcome.verdict is Verdict.SUCCEEDED, outcome
    assert BEARER not in there.requests[0]


def test_the_sap_token_is_not_sent_over_plain_http():
    requests: list[bytes] = []
    with listening(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", requests)) as endpoint:
        outcome = perform(Http(endpoint.url(), dialect=SAP), CALL, outbound(identity=True))

    assert outcome.verdict is Verdict.SUCCEEDED, outcome
    assert b"authorization" not in requests[0].lower()
