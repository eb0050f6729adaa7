"""A kept answer has no secret that the target received, however it repeats it."""

from __future__ import annotations

import base64
import json
import re
import time
from html import escape
from urllib.parse import quote, quote_plus
from xml.sax import saxutils

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sweephand.server.actions.redaction import hidden, of_query

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
    "a path in a query": quote(quote(SECRET, safe=""), safe=""),
    "JSON in a query": quote(json.dumps(SECRET), safe=""),
    "HTML in a query": quote(escape(SECRET), safe=""),
    "a query, each letter by its bytes": "".join(f"%{each:02X}" for each in SECRET.encode()),
    "a query in Latin-1": quote(SECRET.encode("latin-1")),
    "a query of Java": quote_plus(SECRET, safe="*").replace("~", "%7E"),
    "JavaScript, some letters": SECRET.replace("\\", "\\\\").replace("&", r"\x26").replace("'", r"\x27"),
    "JavaScript, each letter": "".join(f"\\x{ord(each):02x}" for each in SECRET),
    "Python": repr(SECRET),
    "bytes of Python": repr(SECRET.encode()),
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


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ("S3cr!t+key", "S3cr!t%2Bkey"),
        ("pa(1)&x", "pa(1)%26x"),
        ("to~ken=1", "to%7Eken%3D1"),
        ("a*b+c 1", "a*b%2Bc+1"),
        ("p@ss:wo rd", "p@ss:wo%20rd"),
        ("a;b,c d", "a;b,c%20d"),
        ("a%41b&c", "a%41b\\u0026c"),
    ],
)
def test_characters_that_an_address_may_hold_hide_no_secret(secret: str, said: str) -> None:
    assert hidden(f"echo {said} back", [secret]) == "echo *** back"


PLAIN = st.characters(categories=("L", "N", "P", "S"), exclude_characters="*&%\\+")


@given(st.text(PLAIN, min_size=4), st.data())
def test_a_secret_is_found_whichever_of_its_letters_an_address_escapes(secret: str, data: st.DataObject) -> None:
    escaped = data.draw(st.lists(st.booleans(), min_size=len(secret), max_size=len(secret)))
    said = "".join(quote(each, safe="") if yes else each for each, yes in zip(secret, escaped, strict=True))

    assert hidden(f"<{said}>", [secret]) == "<***>"


@pytest.mark.parametrize("said", ["7Kqw%", "7Kqw%C", "7Kqw%C3", "7Kqw%C3%", r"7Kqw\xc", r"7Kqw\x", "7Kqw%C3%BC%"])
def test_a_text_cut_within_a_byte_does_not_reveal_the_start_of_a_secret(said: str) -> None:
    assert hidden(f"you said {said}", ["7Kqwü/and-more"]) == "you said ***"


@pytest.mark.parametrize("said", ["\\" * 65_536, "%41" * 21_845, r"\u0061" * 10_922])
def test_an_answer_of_only_escapes_costs_little(said: str) -> None:
    def cost_s() -> float:
        begun = time.process_time()
        hidden(said, ["s3cret-+&<value>", "x" * 100])
        return time.process_time() - begun

    assert min(cost_s() for _ in range(5)) < 0.02


def test_only_the_secret_is_removed_from_a_text_with_escapes() -> None:
    said = r'{"a\u002Bb": "caf\u00e9 \ud83d\ude00", "told": "7Kq\u002B9/xZaP\u002Bw==", "then": "&lt;b&#62;"}'

    assert hidden(said, ["7Kq+9/xZaP+w=="]) == said.replace(r"7Kq\u002B9/xZaP\u002Bw==", "***")


@pytest.mark.parametrize("length", range(5, 27))
def test_a_text_cut_within_an_escape_does_not_reveal_the_start_of_a_secret(length: int) -> None:
    assert hidden("you said " + r"7Kqw\u002B9\u0026&amp;xZaP"[:length], ["7Kqw+9&&xZaP-and-more"]) == "you said ***"


def test_secrets_in_utf_16_are_hidden_too() -> None:
    said = "you said s3cret-of-mine".encode("utf-16-le").decode("utf-8", "replace")

    assert hidden(said, ["s3cret-of-mine"]) == "you said ***"


@pytest.mark.parametrize("length", [4, 9, 17])
def test_a_text_cut_within_a_secret_does_not_reveal_its_start(length: int) -> None:
    assert hidden("s3cret? s3cr " + "s3cret-of-mine-all"[:length], ["s3cret-of-mine-all"]) == "s3cret? s3cr ***"


def test_the_longer_secret_is_replaced_first() -> None:
    assert hidden("token-and-more token.", ["token", "token-and-more"]) == "*** ***."


def test_values_too_short_to_be_a_secret_stay() -> None:
    assert hidden("a bad day", ["a", ""]) == "a bad day"


def test_the_signature_in_a_query_is_a_secret_of_its_own() -> None:
    told = of_query("sv=2021&sp=a&sig=c2ln%2Bg%3D%3D")

    assert hidden('{"sig": "c2ln+g=="}', told) == '{"sig": "***"}'
    assert hidden("sig=c2ln%2Bg%3D%3D", told) == "sig=***"


@given(st.text(min_size=4), st.text(), st.text())
def test_no_kept_value_contains_a_secret(secret: str, before: str, after: str) -> None:
    assume("\0" not in secret and "*" not in secret)

    assert secret not in hidden(before + secret + after, [secret])


@pytest.mark.parametrize("secret", ["s3cr", "s3cret-token", "ä-umlaut-ö", "a+b/c=d?e&f", "x" * 64])
@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "you sent: "])
@pytest.mark.parametrize("after", ["", "z", "zz", " and more"])
def test_a_larger_text_in_hex_or_base64_does_not_contain_the_secret(secret: str, before: str, after: str) -> None:
    whole, first = f"{before}{secret}{after}".encode(), len(before.encode())
    behind = first + len(secret.encode())

    for text in (whole.hex(), whole.hex().upper()):
        assert hidden(f"echo {text}.", [secret]) == f"echo {text[: 2 * first]}***{text[2 * behind :]}."
    for coded in (base64.b64encode, base64.urlsafe_b64encode):
        text = coded(whole).decode()
        own = text[-(-first * 8 // 6) : behind * 8 // 6]
        kept = hidden(f"echo {text}.", [secret])
        assert "***" in kept
        assert own not in kept
