"""The receiver's check of signed calls in the SDK, held against what the service signs."""

from __future__ import annotations

import hmac
import re
from datetime import timedelta
from pathlib import Path

import pytest

from sweephand.sdk import ConfigError, InvalidArgument, NotSigned, verify
from sweephand.server.security import signing
from sweephand.testing.sources import START, VirtualClock

BODY = b'{"a":1}'
SECRET, OTHER, THIRD = (signing.new_secret(bytes([n] * 32)) for n in range(3))
GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "signatures.md"


def signed(*secrets: str, body: bytes = BODY) -> dict[str, str]:
    return {"webhook-id": "s_r", **dict(signing.headers(secrets, "s_r", START, body))}


def verified(secrets, headers, body=BODY, *, later_s: float = 0, **more) -> str:
    return verify(secrets, headers, body, clock=VirtualClock(START + timedelta(seconds=later_s)), **more)


def test_a_signed_call_gives_the_id_of_its_run():
    assert verified(SECRET, signed(SECRET)) == "s_r"
    assert verified([SECRET], signed(SECRET, body=b""), b"") == "s_r"


def test_header_names_can_have_any_case():
    assert verified(SECRET, {name.title(): value for name, value in signed(SECRET).items()}) == "s_r"


@pytest.mark.parametrize("held", [SECRET, OTHER, [SECRET, THIRD], (THIRD, OTHER)])
def test_during_a_rotation_one_signature_matches_one_secret(held):
    assert verified(held, signed(OTHER, SECRET)) == "s_r"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"webhook-id": "s_x"}, "no signature of the call matches"),
        ({"webhook-timestamp": str(int(START.timestamp()) + 1)}, "no signature of the call matches"),
        ({"webhook-signature": "v1,AAAA"}, "no signature of the call matches"),
        ({"webhook-signature": "v1,\u00e9"}, "no signature of the call matches"),
        ({"webhook-signature": ","}, "no signature of the call matches"),
        ({"webhook-signature": ""}, "no header webhook-signature"),
        ({"webhook-id": ""}, "no header webhook-id"),
        ({"webhook-timestamp": ""}, "no header webhook-timestamp"),
        ({"webhook-timestamp": "\u00b2"}, "webhook-timestamp must be whole seconds since 1970"),
        ({"webhook-timestamp": "-1"}, "webhook-timestamp must be whole seconds since 1970"),
        ({"webhook-timestamp": "9" * 5_000}, "webhook-timestamp must be whole seconds since 1970"),
    ],
)
def test_a_call_that_was_changed_is_refused(changed, says):
    with pytest.raises(NotSigned, match=says):
        verified(SECRET, {**signed(SECRET), **changed})


def test_signatures_of_another_version_are_ignored():
    headers = signed(SECRET)

    with pytest.raises(NotSigned, match="no signature of the call matches"):
        verified(SECRET, {**headers, "webhook-signature": headers["webhook-signature"].replace("v1,", "v2,")})


def test_another_secret_or_body_is_refused_without_repeating_either():
    for secret, body in ((OTHER, BODY), (SECRET, b'{"a":2}')):
        with pytest.raises(NotSigned, match="the secret is another one, or the body was changed") as refused:
            verified(secret, signed(SECRET), body)
        assert not {secret, signed(SECRET)["webhook-signature"]} & {*str(refused.value).split()}


@pytest.mark.parametrize(("later_s", "where"), [(301, "before"), (-301, "after")])
def test_a_call_with_an_old_or_future_timestamp_is_refused(later_s, where):
    assert verified(SECRET, signed(SECRET), later_s=299 * later_s / 301) == "s_r"
    with pytest.raises(NotSigned, match=rf"is 30\d s {where} this machine's time; 300 s are allowed"):
        verified(SECRET, signed(SECRET), later_s=later_s)
    assert verified(SECRET, signed(SECRET), later_s=later_s, tolerance_s=400) == "s_r"


def test_all_pairs_are_compared_in_constant_time(monkeypatch):
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: compared.append(1) or real(one, other))

    verified([SECRET, OTHER], signed(SECRET, OTHER))

    assert len(compared) == 4


@pytest.mark.parametrize("secret", ["whsec_", "whsec_AAAA", "whsec_no base64, but long enough", "\u00e9" * 40])
def test_an_invalid_secret_is_an_error_of_the_receiver_and_is_not_repeated(secret):
    with pytest.raises(ConfigError, match="a signing secret must be whsec_ and at least 16 bytes in Base64") as wrong:
        verified(secret, signed(SECRET))
    assert secret not in str(wrong.value) or secret == "whsec_"


def test_nothing_is_verified_without_a_secret():
    with pytest.raises(ConfigError, match="no signing secret is given"):
        verified([], signed(SECRET))


def test_a_body_that_was_parsed_is_refused():
    with pytest.raises(InvalidArgument, match="body must be the bytes as received, not str"):
        verified(SECRET, signed(SECRET), BODY.decode())


def test_the_program_of_the_guide_answers_401_to_unsigned_calls(capsys):
    (program, *_) = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    known = {"do_once": lambda run, body: 200}
    exec(compile(program, "signatures.md", "exec"), known)

    assert known["receive"]({}, BODY, SECRET) == 401
    assert capsys.readouterr().out == "the call has no header webhook-id\n"
