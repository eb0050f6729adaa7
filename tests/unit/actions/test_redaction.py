"""What is kept of an answer holds nothing that the target was told in confidence, however it says it back."""

from __future__ import annotations

import base64
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
    "HTML of templates": escape(SECRET, quote=False).replace("'", "&#39;").replace('"', "&#34;"),
    "HTML of PHP": escape(SECRET).replace("&#x27;", "&#039;"),
    "HTML, each letter by its number": "".join(f"&#{ord(each)};" for each in SECRET),
    "JSON of Go": json.dumps(SECRET, ensure_ascii=False).translate(
        {ord(each): f"\\u{ord(each):04x}" for each in "&<>"}
    ),
    "JSON of .NET": "".join(each if each.isalnum() and each.isascii() else f"\\u{ord(each):04X}" for each in SECRET),
    "JSON in JSON": json.dumps(json.dumps({"said": SECRET})),
    "JSON in HTML": escape(json.dumps(SECRET)),
    "a query in JSON of .NET": quote_plus(SECRET).replace("+", "\\u002B"),
}
BASE64 = {
    "padded": base64.b64encode(SECRET.encode()).decode(),
    "bare": base64.b64encode(SECRET.encode()).decode().rstrip("="),
    "of addresses": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "in JSON of .NET": base64.b64encode(SECRET.encode()).decode().replace("+", "\\u002B"),
}


@pytest.mark.parametrize("how", SPELLINGS)
def test_a_secret_is_hidden_in_every_spelling(how: str) -> None:
    said = hidden(f"you said {SPELLINGS[how]} to me", [SECRET])

    assert "***" in said
    assert "quoted" not in said


@pytest.mark.parametrize("how", BASE64)
def test_a_secret_is_hidden_in_base64(how: str) -> None:
    assert hidden(f"you said <{BASE64[how]}> to me", [SECRET]).rstrip() == "you said <***> to me"


def test_only_the_secret_goes_from_a_text_with_escapes() -> None:
    said = r'{"a\u002Bb": "caf\u00e9 \ud83d\ude00", "told": "7Kq\u002B9/xZaP\u002Bw==", "then": "&lt;b&#62;"}'

    assert hidden(said, ["7Kq+9/xZaP+w=="]) == said.replace(r"7Kq\u002B9/xZaP\u002Bw==", "***")


@pytest.mark.parametrize("length", range(5, 27))
def test_a_text_that_breaks_off_within_an_escape_does_not_tell_the_beginning(length: int) -> None:
    assert hidden("you said " + r"7Kqw\u002B9\u0026&amp;xZaP"[:length], ["7Kqw+9&&xZaP-and-more"]) == "you said ***"


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
