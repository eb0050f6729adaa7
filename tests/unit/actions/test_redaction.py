"""What is kept of an answer holds nothing that the target was told in confidence, however it says it back."""

from __future__ import annotations

import json
import re
from html import escape
from urllib.parse import quote, quote_plus
from xml.sax import saxutils

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sweephand.actions.redaction import hidden, of_query

SECRET = 'a/b+c "quoted" <&> \\ ü\'=='
SPELLINGS = {
    "as it is": SECRET,
    "JSON": json.dumps(SECRET),
    "JSON, letters beyond ASCII": json.dumps(SECRET, ensure_ascii=False),
    "JSON of PHP": json.dumps(SECRET).replace("/", "\\/"),
    "path": quote(SECRET),
    "query": quote(SECRET, safe=""),
    "query of .NET": re.sub("%..", lambda found: found[0].lower(), quote_plus(SECRET)),
    "form": quote_plus(SECRET),
    "XML": saxutils.escape(SECRET),
    "attribute": saxutils.escape(SECRET, {'"': "&quot;"}),
    "HTML": escape(SECRET),
}


@pytest.mark.parametrize("how", SPELLINGS)
def test_a_secret_is_hidden_in_every_spelling(how: str) -> None:
    said = hidden(f"you said {SPELLINGS[how]} to me", [SECRET])

    assert "***" in said
    assert "quoted" not in said


def test_a_text_in_utf_16_hides_its_secrets_too() -> None:
    said = "you said s3cret-of-mine".encode("utf-16-le").decode("utf-8", "replace")

    assert hidden(said, ["s3cret-of-mine"]) == "you said ***"


@pytest.mark.parametrize("length", [4, 9, 17])
def test_a_text_that_breaks_off_within_a_secret_does_not_tell_its_beginning(length: int) -> None:
    assert hidden("s3cret? s3cr " + "s3cret-of-mine-all"[:length], ["s3cret-of-mine-all"]) == "s3cret? s3cr ***"


def test_the_longer_secret_goes_first() -> None:
    assert hidden("token-and-more token.", ["token", "token-and-more"]) == "*** ***."


def test_what_is_too_short_to_be_a_secret_stays() -> None:
    assert hidden("a bad day", ["a", ""]) == "a bad day"


def test_the_signature_within_a_query_opens_the_door_by_itself() -> None:
    told = of_query("sv=2021&sp=a&sig=c2ln%2Bg%3D%3D")

    assert hidden('{"sig": "c2ln+g=="}', told) == '{"sig": "***"}'
    assert hidden("sig=c2ln%2Bg%3D%3D", told) == "sig=***"


@given(st.text(min_size=4), st.text(), st.text())
def test_whatever_the_secret_it_is_not_in_what_is_kept(secret: str, before: str, after: str) -> None:
    assume("\0" not in secret and "*" not in secret)

    assert secret not in hidden(before + secret + after, [secret])
