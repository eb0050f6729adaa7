"""The keys of an issuer: how often they are asked for, how long they hold, and what is no key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from jwt.algorithms import RSAAlgorithm

from sweephand.base.sources import SystemClock
from sweephand.server.security import guard, jwks
from tests.support import issuer as issuers
from tests.support.issuer import DISCOVERY, KEYS, NOW, Issuer, private_key, public_jwk, raw, text

LOCAL = guard.GuardSettings(private=guard.networks("127.0.0.0/8"), plain_http=True)


@dataclass
class Kept:
    """The keys as this process knows them. said: why they could not be had."""

    issuer: Issuer
    keys: jwks.Keys
    said: list[str]

    def has(self, kid: str | None = "k1", after_s: float = 0, algorithm: str = "RS256") -> bool:
        return self.keys.find(kid, algorithm, NOW + timedelta(seconds=after_s)) is not None

    @property
    def fetches(self) -> int:
        return self.issuer.asked.count(KEYS)


@pytest.fixture
def kept() -> Iterator[Kept]:
    with issuers.issuer() as there:
        yield keep(there)


def keep(there: Issuer, settings: guard.GuardSettings = LOCAL, keys_url: str | None = None) -> Kept:
    fetch = jwks.fetcher(guard.Outbound(settings), SystemClock().monotonic)
    said: list[str] = []
    return Kept(there, jwks.Keys(jwks.Source(there.url, keys_url), fetch, said.append), said)


def test_keys_are_fetched_once_an_hour(kept: Kept) -> None:
    for after_s in (0, 1, 60, 3_599):
        assert kept.has(after_s=after_s)
    assert kept.fetches == 1

    assert kept.has(after_s=3_600)
    assert kept.fetches == 2


def test_a_new_key_is_found_when_it_is_first_named(kept: Kept) -> None:
    assert kept.has()
    kept.issuer.publish({"k1": private_key("RS256"), "k2": private_key("RS256", 2)})

    assert kept.has("k2", after_s=300)
    assert kept.has("k1", after_s=301)
    assert kept.fetches == 2


def test_unknown_key_names_query_the_issuer_at_most_every_five_minutes(kept: Kept) -> None:
    assert kept.has()

    for after_s in range(0, 900, 2):
        assert not kept.has(f"guess-{after_s}", after_s=after_s)

    assert kept.fetches == 1 + 2


def test_a_key_that_was_withdrawn_is_gone_within_the_hour(kept: Kept) -> None:
    assert kept.has()
    kept.issuer.publish({"k2": private_key("RS256", 2)})

    assert kept.has(after_s=3_599)
    assert not kept.has(after_s=3_600)


def test_the_last_good_keys_hold_for_a_day_while_the_issuer_is_down(kept: Kept) -> None:
    assert kept.has()
    kept.issuer.fail()

    assert kept.has(after_s=3_600)
    assert kept.has(after_s=24 * 3_600 - 1)
    assert not kept.has(after_s=24 * 3_600)
    assert all("503" in why for why in kept.said)


def test_an_issuer_that_is_down_is_asked_once_a_minute_and_taken_up_when_it_is_back(kept: Kept) -> None:
    assert kept.has()
    kept.issuer.fail()
    kept.issuer.asked.clear()
    for after_s in range(3_600, 3_900, 5):
        assert kept.has(after_s=after_s)
    assert len(kept.issuer.asked) == 5

    kept.issuer.publish({"k2": private_key("RS256", 2)})

    assert kept.has("k2", after_s=3_960)


def test_an_issuer_that_never_answered_is_asked_again_after_ten_seconds(kept: Kept) -> None:
    kept.issuer.fail()
    assert not kept.has()
    kept.issuer.publish({"k1": private_key("RS256")})

    assert not kept.has(after_s=9)
    assert kept.has(after_s=10)


def test_without_a_name_the_only_key_that_fits_is_taken(kept: Kept) -> None:
    kept.issuer.publish({"r": private_key("RS256"), "e": private_key("ES256")})

    assert kept.has(None)
    assert kept.has(None, algorithm="ES256")
    assert not kept.has(None, algorithm="ES384")


def test_without_a_name_two_keys_that_fit_are_none(kept: Kept) -> None:
    kept.issuer.publish({"a": private_key("RS256"), "b": private_key("RS256", 2)})

    assert not kept.has(None)


def test_two_keys_of_one_name_are_none(kept: Kept) -> None:
    kept.issuer.publish_raw([public_jwk(private_key("RS256", number), "k1") for number in (1, 2)])

    assert not kept.has()


@pytest.mark.parametrize(
    "members",
    [
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"key_ops": "verify"},
        {"alg": "PS256"},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "EC"},
        {"kty": None},
        {"kid": 7},
        {"n": None},
        {"n": 7},
        {"n": "***"},
        {"n": "AQAB"},
        {"n": ""},
        {"e": "AA"},
        {"e": "Ag"},
    ],
    ids=str,
)
def test_a_key_that_is_broken_or_for_something_else_is_none_and_spoils_no_other(
    kept: Kept, members: dict[str, Any]
) -> None:
    wrong = {**public_jwk(private_key("RS256"), "k1"), **members}
    kept.issuer.publish_raw([7, None, [], wrong, public_jwk(private_key("ES256"), "k9")])

    assert not kept.has()
    assert kept.has("k9", algorithm="ES256")


@pytest.mark.parametrize("bits", [1_024, 1_536])
def test_a_key_that_is_too_weak_is_none(kept: Kept, bits: int) -> None:
    kept.issuer.publish({"k1": private_key("RS256", bits=bits)})

    assert not kept.has()


def test_a_set_with_private_parts_is_read_for_its_public_ones(kept: Kept) -> None:
    private = {**RSAAlgorithm.to_jwk(private_key("RS256"), as_dict=True), "kid": "k1", "use": "sig"}
    private.pop("key_ops", None)
    assert "d" in private
    kept.issuer.publish_raw([private])

    key = kept.keys.find("k1", "RS256", NOW)

    assert key is not None
    assert type(key.key).__name__ == "RSAPublicKey"


def dripping(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("content-length", "100")
    request.end_headers()
    request.wfile.write(b'{"keys": [')


@pytest.mark.parametrize(
    ("path", "answer", "why"),
    [
        (DISCOVERY, raw(b"", 404), "answered 404"),
        (DISCOVERY, raw(b"", 302, location="http://127.0.0.1:1/"), "answered 302"),
        (DISCOVERY, raw(b"<html>"), "is not JSON"),
        (DISCOVERY, raw(b"[" * 50_000), "is not JSON"),
        (DISCOVERY, raw(b"\xff"), "is not JSON"),
        (DISCOVERY, raw(b"[]"), "is not a JSON object"),
        (DISCOVERY, text({"issuer": "https://other.example", "jwks_uri": "http://127.0.0.1:1/"}), "another issuer"),
        (DISCOVERY, text({"jwks_uri": "http://127.0.0.1:1/"}), "another issuer"),
        (KEYS, raw(b"x" * 70_000), "too large"),
        (KEYS, raw(b"x" * 5_000_000), "too large"),
        (KEYS, text({"keys": []}), "contains no usable key"),
        (KEYS, text({"keys": {"a": 1}}), "contains no usable key"),
        (KEYS, text({}), "contains no usable key"),
        (KEYS, dripping, "in part"),
    ],
)
def test_a_wrong_answer_of_an_issuer_is_logged_and_keeps_the_present_keys(
    kept: Kept, path: str, answer: Callable[[BaseHTTPRequestHandler], None], why: str
) -> None:
    assert kept.has()
    kept.issuer.answers[path] = answer

    assert kept.has(after_s=3_600)
    assert len(kept.said) == 1
    assert why in kept.said[0]


@pytest.mark.parametrize("path", [DISCOVERY, KEYS])
def test_an_issuer_that_hangs_is_given_up_at_the_deadline(
    kept: Kept, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwks, "FETCH_WITHIN_S", 0.2)
    kept.issuer.hang(path)

    assert not kept.has()
    assert kept.said == ["NO_ANSWER: no answer in time"]


@pytest.mark.parametrize(
    ("settings", "url", "why"),
    [
        (guard.GuardSettings(), "http://issuer.example/", "plain http is not allowed"),
        (guard.GuardSettings(), "https://127.0.0.1/", "not public"),
        (guard.GuardSettings(), "https://169.254.169.254/latest", "not public"),
        (guard.GuardSettings(plain_http=True), "http://issuer.example/", "by https only"),
        (guard.GuardSettings(private=guard.networks("10.0.0.0/8"), plain_http=True), "http://10.0.0.1/", "https only"),
        (LOCAL, "ftp://127.0.0.1/", "must begin with https"),
        (LOCAL, "http://user:pw@127.0.0.1/", "user and password"),
    ],
)
def test_keys_are_fetched_by_https_from_where_the_stack_may_call(
    kept: Kept, settings: guard.GuardSettings, url: str, why: str
) -> None:
    other = keep(kept.issuer, settings, url)

    assert not other.has()
    assert len(other.said) == 1
    assert why in other.said[0]
