"""Headers and parameters of a query that usually carry secrets are sealed like a password, whoever names them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.domain.run import Reason
from sweephand.server.actions.http import Http
from sweephand.server.actions.http_fields import opened_url, sealed_url
from sweephand.server.security.guard import GuardSettings, Outbound, networks
from tests.unit.endpoints import answering, listening
from tests.unit.server.actions.test_http import CALL

from_json, kept_secrets, parse, to_json = Http.from_json, Http.kept_secrets, Http.parse, Http.to_json

GUARD = GuardSettings()
PLAIN = GuardSettings(plain_http=True)
LOCAL = Outbound(GuardSettings(private=networks("127.0.0.0/8"), plain_http=True))
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
SECRET = "canary-of-a-secret"
HEADERS = [
    *("X-Api-Key", "X-API-KEY", "Api-Key", "apikey", "X-ApiKey", "Cookie", "X-Auth-Token", "X-Access-Token"),
    *("X-Functions-Key", "Ocp-Apim-Subscription-Key", "Private-Token", "X-GitLab-Token", "X-Vault-Token"),
    *("X-Goog-Api-Key", "X-Amz-Security-Token", "DD-API-KEY", "X-Session-Token", "X-Auth-Key", "X-Api-Secret"),
    *("X-Shopify-Access-Token", "X-Rapid-Api-Key", "X-Password", "X-Authorization"),
]
PLAIN_HEADERS = [
    "X-A",
    "Idempotency-Key",
    "Accept",
    "Content-Type",
    "User-Agent",
    "X-Partition-Key",
    "X-Monkey",
    "Token-Type",
]
QUERIES = [
    *("sig", "SIG", "signature", "X-Amz-Signature", "access_token", "api_key", "apikey", "subscription-key"),
    *("client_secret", "password", "code", "key", "token"),
]


def made(**fields: object) -> Http:
    return parse({"type": "http", "url": "https://example.org/x", **fields}, field="action", guard=GUARD)


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_usually_carries_a_secret_is_sealed(name: str) -> None:
    params = made(headers={name: SECRET})

    assert params.secrets == {f"headers.{name.lower()}": SECRET}
    assert SECRET not in str(to_json(params))
    assert to_json(params)["headers"] == {name: "***"}
    assert params.confidential
    assert from_json(to_json(params)).secret_fields == {f"headers.{name.lower()}"}


@pytest.mark.parametrize("name", PLAIN_HEADERS)
def test_other_headers_stay_as_they_are(name: str) -> None:
    params = made(headers={name: "some value"})

    assert (params.secrets, params.headers, params.confidential) == ({}, ((name, "some value"),), False)


@pytest.mark.parametrize("name", QUERIES)
def test_a_parameter_that_usually_carries_a_secret_is_sealed(name: str) -> None:
    params = made(url=f"https://example.org/x?a=1&{name}={SECRET}&b=2#part")

    assert params.url == f"https://example.org/x?a=1&{name}=***&b=2#part"
    assert params.secrets == {f"url.{name.lower()}": SECRET}
    assert SECRET not in str(to_json(params))
    assert params.confidential


@pytest.mark.parametrize("query", ["code=s3cret", "key=42", "token=abc", "auth=x", "hmac=0123456789a"])
def test_a_secret_of_a_query_is_sealed_however_short_it_is(query: str) -> None:
    name, _, value = query.partition("=")

    assert sealed_url(f"https://example.org/x?{query}&a=1") == (
        f"https://example.org/x?{name}=***&a=1",
        {f"url.{name}": value},
    )


@pytest.mark.parametrize(
    "query",
    ["keys=aaaaaaaaaaaaaaaa", "a=sig", "sig=", "monkey=aaaaaaaaaaaaaaaa"],
)
def test_other_parameters_stay_as_they_are(query: str) -> None:
    url = f"https://example.org/code=aaaaaaaaaaaaaaaa?{query}"

    assert sealed_url(url) == (url, {})
    assert made(url=url).secrets == {}


def test_a_parameter_that_is_given_twice_keeps_both() -> None:
    url = "https://example.org/?sig=one&x=1&SIG=two%2B"
    masked, found = sealed_url(url)

    assert (masked, found) == ("https://example.org/?sig=***&x=1&SIG=***", {"url.sig": "one", "url.sig#2": "two%2B"})
    assert opened_url(masked, found.__getitem__) == url


@pytest.mark.parametrize("fields", [{"headers": {"X-Api-Key": SECRET}}, {"url": f"http://93.184.215.14/?sig={SECRET}"}])
def test_a_sealed_value_never_goes_over_plain_http_to_a_public_address(fields: dict[str, object]) -> None:
    given = {"type": "http", "url": "http://93.184.215.14/", **fields}

    with pytest.raises(InvalidRequest, match="never go over plain http"):
        parse(given, field="action", guard=PLAIN)


def test_a_target_receives_the_sealed_value() -> None:
    requests: list[bytes] = []
    with listening(answering(OK, requests)) as endpoint:
        params = parse(
            {"type": "http", "url": endpoint.url("/x?sig=a%2Bb&n=1"), "headers": {"X-Api-Key": SECRET}},
            field="action",
            guard=LOCAL.settings,
        )
        stored = from_json(to_json(params))
        Http.perform(stored, replace(CALL, secrets=dict(params.secrets)), LOCAL)

    (request,) = requests
    assert request.startswith(b"POST /x?sig=a%2Bb&n=1 ")
    assert f"X-Api-Key: {SECRET}".encode() in request


def test_a_sealed_value_that_a_target_echoes_is_hidden() -> None:
    body = f"you sent {SECRET} and a+b-of-the-query".encode()
    answer = b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with listening(answering(answer, [])) as endpoint:
        params = parse(
            {"type": "http", "url": endpoint.url("/x?sig=a%2Bb-of-the-query"), "headers": {"Cookie": SECRET}},
            field="action",
            guard=LOCAL.settings,
        )
        outcome = Http.perform(params, replace(CALL, secrets=dict(params.secrets)), LOCAL)

    assert outcome.answer == "you sent *** and ***"


def test_a_missing_secret_fails_with_the_reason_of_the_guard() -> None:
    outcome = Http.perform(made(url="https://example.org/?sig=aaaa"), CALL, LOCAL)

    assert (outcome.reason, outcome.message) == (Reason.GUARD, "the secret url.sig of this job is missing")


def test_a_job_stored_with_such_a_header_in_clear_text_still_runs() -> None:
    """Versions before this rule have written it in this way."""
    requests: list[bytes] = []
    with listening(answering(OK, requests)) as endpoint:
        stored = {**to_json(made()), "url": endpoint.url("/x?sig=clear"), "headers": {"X-Api-Key": SECRET}}
        params = from_json(stored)
        assert params.secret_fields == frozenset()
        Http.perform(params, CALL, LOCAL)

    assert requests[0].startswith(b"POST /x?sig=clear ")
    assert f"X-Api-Key: {SECRET}".encode() in requests[0]


def test_a_change_keeps_omitted_values_only_for_the_same_destination() -> None:
    old = made(url=f"https://example.org/x?sig={SECRET}", headers={"X-Api-Key": SECRET})
    same = made(url="https://example.org/y?sig=***&n=2", headers={"X-API-Key": "***"})
    elsewhere = made(url="https://elsewhere.org/x?sig=***")

    assert kept_secrets(same, old, field="action", guard=GUARD) == {"headers.x-api-key", "url.sig"}
    with pytest.raises(InvalidRequest, match="destination"):
        kept_secrets(elsewhere, old, field="action", guard=GUARD)
    with pytest.raises(InvalidRequest, match="is required"):
        kept_secrets(same, None, field="action", guard=GUARD)
