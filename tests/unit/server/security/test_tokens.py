from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import Unauthenticated
from sweephand.domain.collection import LONGEST_CALLBACK_S
from sweephand.server.security.tokens import (
    LONGEST_WAIT,
    AccessClaims,
    CallbackKey,
    StackKeys,
    callback_keys,
    callback_tenant,
    callback_token,
    derive_keys,
    hkdf_sha256,
    issue,
    verify,
)

NOW = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
KEYS = derive_keys("sweephand", "s" * 48)
CLAIMS = AccessClaims("acme", "x7", 3, frozenset({"jobs:read", "runs:write"}))
KEY = b"k" * 32
RUN = "0190b5a0-0000-7000-8000-000000000000_0190b5a0-0000-8000-8000-000000000000"


def seconds(count: int) -> timedelta:
    return timedelta(seconds=count)


@pytest.mark.parametrize(
    ("secret", "salt", "purpose", "derived"),
    [
        (
            "0b" * 22,
            "000102030405060708090a0b0c",
            "f0f1f2f3f4f5f6f7f8f9",
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        ),
        (
            "0b" * 22,
            "",
            "",
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
        ),
    ],
)
def test_keys_are_derived_as_rfc_5869_says(secret: str, salt: str, purpose: str, derived: str) -> None:
    made = hkdf_sha256(bytes.fromhex(secret), bytes.fromhex(salt), bytes.fromhex(purpose), 42)

    assert made.hex() == derived


def test_each_purpose_stack_and_secret_has_a_key_of_its_own() -> None:
    others = [derive_keys("other", "s" * 48), derive_keys("sweephand", "t" * 48)]
    keys = [KEYS.current, *(other.current for other in others)]

    assert len({value for key in keys for value in (key.kid, key.access, key.callback)}) == 9
    assert derive_keys("sweephand", "s" * 48) == KEYS
    assert "access" not in repr(KEYS)


def test_a_token_brings_back_its_claims() -> None:
    assert verify(KEYS, issue(KEYS, CLAIMS, NOW), NOW) == CLAIMS
    provider = AccessClaims(None, "admin", 1, frozenset())
    assert verify(KEYS, issue(KEYS, provider, NOW), NOW) == provider


@pytest.mark.parametrize(
    ("after_s", "holds"), [(-61, False), (-60, True), (0, True), (3_599, True), (3_600, False), (10**9, False)]
)
def test_a_token_holds_for_one_hour(after_s: int, holds: bool) -> None:
    token = issue(KEYS, CLAIMS, NOW)

    if holds:
        assert verify(KEYS, token, NOW + seconds(after_s)) == CLAIMS
    else:
        with pytest.raises(Unauthenticated):
            verify(KEYS, token, NOW + seconds(after_s))


def test_tokens_outlive_one_rotation_and_not_two() -> None:
    token = issue(KEYS, CLAIMS, NOW)
    once = derive_keys("sweephand", "t" * 48, previous="s" * 48, rotated_at=NOW)
    twice = derive_keys("sweephand", "u" * 48, previous="t" * 48, rotated_at=NOW)

    assert verify(once, token, NOW) == replace(CLAIMS, former_key=True)
    assert issue(once, CLAIMS, NOW) != token
    with pytest.raises(Unauthenticated):
        verify(twice, token, NOW)


def forged(
    members: dict[str, Any], *, key: bytes | str = KEYS.current.access, algorithm: str = "HS256", **head: Any
) -> str:
    return jwt.encode(members, key, algorithm=algorithm, headers={"kid": KEYS.current.kid, **head})


ROTATED = derive_keys("sweephand", "t" * 48, previous="s" * 48, rotated_at=NOW)


@pytest.mark.parametrize("issued_before_s", [-60, 0, 1, 3_599, 10**6])
@pytest.mark.parametrize("lives_s", [60, 3_600, 3_601, 10**9])
def test_the_former_secret_forges_nothing_an_hour_after_the_rotation(issued_before_s: int, lives_s: int) -> None:
    at = NOW + seconds(3_600)
    issued = int(at.timestamp()) - issued_before_s
    token = forged({**GOOD, "iat": issued, "exp": issued + lives_s})

    with pytest.raises(Unauthenticated):
        verify(ROTATED, token, at)


@pytest.mark.parametrize("lives_s", [3_601, 10**9])
@pytest.mark.parametrize("keys", [KEYS, ROTATED], ids=["current", "former"])
def test_no_token_lives_longer_than_an_hour_whoever_signed_it(keys: StackKeys, lives_s: int) -> None:
    token = forged({**GOOD, "exp": GOOD["iat"] + lives_s})

    with pytest.raises(Unauthenticated):
        verify(keys, token, NOW)


def test_a_former_secret_whose_rotation_has_no_date_signs_nothing() -> None:
    undated = derive_keys("sweephand", "t" * 48, previous="s" * 48)

    with pytest.raises(Unauthenticated):
        verify(undated, issue(KEYS, CLAIMS, NOW), NOW)


GOOD = {
    "aud": "sweephand",
    "sub": "x7",
    "tenant": "acme",
    "gen": 3,
    "scope": "jobs:read",
    "iat": int(NOW.timestamp()),
    "exp": int(NOW.timestamp()) + 60,
}


def unsigned(head: dict[str, Any]) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    body = f"{part(head)}.{part(GOOD)}"
    return (
        f"{body}.{base64.urlsafe_b64encode(hmac.digest(b'x' * 32, body.encode(), hashlib.sha256)).decode().rstrip('=')}"
    )


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("", id="empty"),
        pytest.param("a.b", id="two parts"),
        pytest.param("a.b.c.d", id="four parts"),
        pytest.param("a.b.c\n", id="line end"),
        pytest.param("\u00e4.b.c", id="not ASCII"),
        pytest.param("a" * 600 + ".b.c", id="long head"),
        pytest.param(base64.urlsafe_b64encode(b"[" * 380).decode().rstrip("=") + ".b.c", id="deep head"),
        pytest.param(base64.urlsafe_b64encode(b'"text"').decode().rstrip("=") + ".b.c", id="head is no object"),
        pytest.param(unsigned({"alg": "HS256", "kid": KEYS.current.kid}), id="signed by another"),
        pytest.param(unsigned({"alg": "none", "kid": KEYS.current.kid}), id="alg none"),
        pytest.param(unsigned({"alg": "RS256", "kid": KEYS.current.kid}), id="alg of a public key"),
        pytest.param(unsigned({"alg": "HS256"}), id="no kid"),
        pytest.param(unsigned({"alg": "HS256", "kid": ["x"]}), id="kid is a list"),
        pytest.param(unsigned({"alg": ["HS256"], "kid": KEYS.current.kid}), id="alg is a list"),
        pytest.param(forged(GOOD, kid="0" * 16), id="unknown kid"),
        pytest.param(forged(GOOD, algorithm="HS384", key=b"k" * 48), id="another algorithm"),
        pytest.param(forged(GOOD, key=KEYS.current.callback), id="the key of another purpose"),
        *(
            pytest.param(forged({k: v for k, v in GOOD.items() if k != name}), id=f"no {name}")
            for name in GOOD
            if name != "tenant"
        ),
        pytest.param(forged({**GOOD, "aud": "other"}), id="another stack"),
        pytest.param(forged({**GOOD, "tenant": 1}), id="tenant is a number"),
        pytest.param(forged({**GOOD, "gen": "3"}), id="generation is a text"),
        pytest.param(forged({**GOOD, "scope": ["admin"]}), id="scope is a list"),
        pytest.param(forged({**GOOD, "exp": "never"}), id="exp is a text"),
        pytest.param(forged({**GOOD, "exp": int(NOW.timestamp())}), id="over"),
        pytest.param(forged({**GOOD, "iat": int(NOW.timestamp()) + 100}), id="from the future"),
    ],
)
def test_foreign_tokens_are_refused(token: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        verify(KEYS, token, NOW)

    assert (
        caught.value.reason
        == "the token is not one of this service, or it has expired: get another by POST /oauth/token"
    )


def test_the_valid_token_of_that_list_is_accepted() -> None:
    assert verify(KEYS, forged(GOOD), NOW).scopes == {"jobs:read"}


@given(st.text(max_size=80) | st.text("ABCabc019-_.=", max_size=200))
def test_any_text_raises_only_a_refusal(token: str) -> None:
    with pytest.raises(Unauthenticated):
        verify(KEYS, token, NOW)
    assert callback_tenant([KEY], RUN, token) is None


@given(st.data())
def test_one_changed_character_is_enough(data: st.DataObject) -> None:
    token = issue(KEYS, CLAIMS, NOW)
    # The last character of a part may carry bits that nobody reads.
    at = data.draw(st.sampled_from([index for index in range(len(token) - 1) if "." not in token[index : index + 2]]))
    other = data.draw(st.sampled_from([character for character in "AQgw_-9" if character != token[at]]))

    with pytest.raises(Unauthenticated):
        verify(KEYS, token[:at] + other + token[at + 1 :], NOW)


def test_a_callback_token_is_for_one_run() -> None:
    token = callback_token(KEY, "acme", RUN)

    assert token.startswith("acme.")
    assert len(token) == len("acme.") + 43
    assert callback_token(KEY, "acme", RUN) == token
    assert callback_tenant([b"other", KEY], RUN, token) == "acme"
    assert callback_tenant([KEY], RUN[:-1] + "1", token) is None
    assert callback_tenant([KEY], RUN, token.replace("acme", "globex")) is None
    assert callback_tenant([b"other"], RUN, token) is None
    assert callback_tenant([KEY], RUN, token[:-2] + "AA") is None


@pytest.mark.parametrize(("after", "holds"), [(timedelta(0), True), (timedelta(days=7), True), (timedelta(8), False)])
@pytest.mark.parametrize("signed_by", [ROTATED.current.callback, KEYS.current.callback], ids=["current", "former"])
def test_callback_tokens_of_the_stacks_secret_hold_as_long_as_a_run_can_wait(
    after: timedelta, holds: bool, signed_by: bytes
) -> None:
    own = CallbackKey(KEY, NOW)

    accepted = callback_keys(own, ROTATED, NOW + after)

    assert callback_tenant(accepted, RUN, callback_token(KEY, "acme", RUN)) == "acme"
    assert callback_tenant(accepted, RUN, callback_token(signed_by, "acme", RUN)) == ("acme" if holds else None)


def test_callback_tokens_are_accepted_for_longer_than_any_run_waits() -> None:
    assert timedelta(seconds=LONGEST_CALLBACK_S) < LONGEST_WAIT
