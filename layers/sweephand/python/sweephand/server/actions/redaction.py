"""Masks secrets in the answers of targets, which echo them in any spelling. Pure."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from urllib.parse import parse_qsl, quote, quote_plus

from sweephand.base.records import dataclass
from sweephand.domain.job import MASK
from sweephand.server.actions.headers import MAX_SECRET

SHORTEST = 4
"""In characters. Shorter secrets are not masked, because any text may contain them by chance."""


READINGS = 3
"""How many levels of escapes are resolved, such as JSON in JSON in HTML."""
_BEGINS = "\\%&"
_HEX = "[0-9a-fA-F]"
_BYTES = rf"(?:%{_HEX}{{2}})+(?:%{_HEX}?\Z)?|(?:\\x{_HEX}{{2}})+(?:\\(?:x{_HEX}?)?\Z)?"
_REFERENCE = rf"&(?:#[0-9]{{1,7}}|#[xX]{_HEX}{{1,6}}|[A-Za-z]{{2,8}});"
_BROKEN_OFF = rf"(?:\\(?:u{_HEX}{{0,3}}|x{_HEX}?)?|%{_HEX}?|&#?[0-9A-Za-z]{{0,8}})\Z"
_PAIR = rf"\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}"
_ESCAPE = re.compile(rf"{_PAIR}|\\u{_HEX}{{4}}|\\[\"'\\/bfnrt]|{_BYTES}|{_REFERENCE}|{_BROKEN_OFF}")
"""One letter as JSON, HTML or JavaScript escapes it, or letters whose bytes are escaped as in addresses.

The end of the text may cut it off.
"""
_ESCAPES = re.compile(rf"(?:\\\\)+|(?:\\u{_HEX}{{4}})+|\\[\"'/bfnrt]|{_BYTES}|{_REFERENCE}|{_BROKEN_OFF}")
"""The same for all escapes of one kind in a row, so that a text full of escapes does not cost much."""


@dataclass(frozen=True)
class _Reading:
    """A text with its escapes resolved. begins, ends: the place of each letter in the original text."""

    text: str
    begins: list[int]
    ends: list[int]

    def span(self, first: int, last: int) -> tuple[int, int]:
        return self.begins[first], self.ends[last]


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Returns the text with `***` in place of each secret.

    Finds secrets as they are, in hex or Base64 (even within a larger encoded text), and in the escaped forms of JSON,
    addresses, XML and JavaScript, whichever letters are escaped. Masks the beginning of a secret at which the text
    breaks off. Removes NULs, because a text in UTF-16 has them between its letters, where they would split a secret.
    """
    text = text.replace("\0", "")
    kept = {each for secret in secrets for each in _spellings(secret) if len(each) >= SHORTEST}
    spellings = sorted(kept, key=len, reverse=True)
    for each in spellings:
        text = text.replace(each, MASK)
        cut = _cut_off(text, each)
        text = text if cut is None else text[:cut] + MASK
    if not _says(text, spellings):
        return text
    return _masked(text, [span for reading in _readings(text) for span in _places(reading, spellings)])


def _says(text: str, spellings: Sequence[str]) -> bool:
    """Returns whether one of the spellings appears in a reading of the text. Finding its place costs more."""
    for _ in range(READINGS if spellings else 0):
        read = _read(text)
        if read == text:
            return False
        if any(each in read or _cut_off(read, each) is not None for each in spellings):
            return True
        text = read
    return False


def _read(text: str) -> str:
    """Returns the text with its escapes resolved."""
    if not any(each in text for each in _BEGINS):
        return text
    return _ESCAPES.sub(lambda match: _said(match[0], last=match.end() == len(text)), text)


def _cut_off(text: str, secret: str) -> int | None:
    """Returns the position of a secret's beginning at the end of the text."""
    at = text.find(secret[:SHORTEST], max(0, len(text) - len(secret) + 1))
    while at >= 0:
        if secret.startswith(text[at:]):
            return at
        at = text.find(secret[:SHORTEST], at + 1)
    return None


def _readings(text: str) -> Iterator[_Reading]:
    places = list(range(len(text)))
    reading = _Reading(text, places, [at + 1 for at in places])
    for _ in range(READINGS):
        if not _ESCAPE.search(reading.text):
            return
        reading = _resolved(reading)
        yield reading


def _resolved(read: _Reading) -> _Reading:
    letters: list[str] = []
    begins: list[int] = []
    ends: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(read.text):
        first, end = match.span()
        letters.append(read.text[at:first])
        begins += read.begins[at:first]
        ends += read.ends[at:first]
        at = first
        for letter, length in _letters(match[0], last=end == len(read.text)):
            letters.append(letter)
            begins += [read.begins[at]] * len(letter)
            ends += [read.ends[at + length - 1]] * len(letter)
            at += length
        at = end
    return _Reading("".join([*letters, read.text[at:]]), begins + read.begins[at:], ends + read.ends[at:])


def _letters(escape: str, *, last: bool) -> Iterator[tuple[str, int]]:
    """Yields the letters that an escape stands for, each with its length in the escape."""
    said = _said(escape, last=last)
    digits = _digits(escape)
    if digits is None:
        yield said, len(escape)
        return
    width = len("%ff") if escape[0] == "%" else len("\\xff")
    one = len(said) == len(digits) // 2
    for letter in said:
        yield letter, width * (1 if one else len(letter.encode()))


def _said(escape: str, *, last: bool) -> str:
    """Returns the letters of escapes of one kind; "" for one that is cut off. last: whether the text ends with them."""
    if escape[0] == "&":
        return _referred(escape) if escape[-1] == ";" else ""
    if escape == "\\'":
        return "'"
    digits = _digits(escape)
    if digits is not None:
        return _decoded(bytes.fromhex(digits[: len(digits) // 2 * 2]), last=last)
    try:
        read: str = json.loads(f'"{escape}"')
    except ValueError:
        return ""
    return read


def _digits(escape: str) -> str | None:
    """Returns the digits of escaped bytes; None for an escape of letters."""
    if escape[0] == "%":
        return escape.replace("%", "")
    return escape.replace("\\", "").replace("x", "") if escape[1:2] == "x" else None


def _decoded(read: bytes, *, last: bool) -> str:
    try:
        return read.decode()
    except UnicodeDecodeError as broken:
        if last and broken.end == len(read):
            return read[: broken.start].decode()
        return read.decode("latin-1")


@lru_cache(1_024)
def _referred(reference: str) -> str:
    from html import unescape  # noqa: PLC0415 - its table is large, and few answers are HTML

    return unescape(reference)


def _places(reading: _Reading, spellings: Iterable[str]) -> Iterator[tuple[int, int]]:
    for each in spellings:
        at = reading.text.find(each)
        while at >= 0:
            yield reading.span(at, at + len(each) - 1)
            at = reading.text.find(each, at + len(each))
        cut = _cut_off(reading.text, each)
        if cut is not None:
            yield reading.begins[cut], sys.maxsize


def _masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts, at = [], 0
    for first, end in sorted(spans):
        if first >= at:
            parts += [text[at:first], MASK]
        at = max(at, end)
    return "".join([*parts, text[at:]])


def _spellings(secret: str) -> Iterator[str]:
    if len(secret) < SHORTEST:
        return
    yield secret
    if len(secret) > MAX_SECRET:
        return  # a private key, which is sent to no target; it would take 10 ms of CPU for each call
    # Resolving all escapes also resolves those that are letters of the secret; forms write a space as a plus.
    once = _whole(secret)
    yield from (once, _whole(once), secret.replace(" ", "+"))
    for escapes in (True, False):
        written = json.dumps(secret, ensure_ascii=escapes)[1:-1]
        yield from (written, written.replace("/", "\\/"))
    for written in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield from (written, _small(written))
    marked_up = secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for coded in (base64.b64encode, base64.urlsafe_b64encode):
        in_base64 = coded(secret.encode("utf-8", "surrogatepass")).decode()
        yield from (in_base64, in_base64.rstrip("="))
    yield from _within(secret.encode("utf-8", "surrogatepass"))
    yield from (marked_up, marked_up.replace('"', "&quot;"), marked_up.replace('"', "&quot;").replace("'", "&#x27;"))


def _within(secret: bytes) -> Iterator[str]:
    """Yields the forms of these bytes anywhere within a larger text that is encoded in hex or Base64.

    Three bytes make four letters of Base64, so there are three forms. Letters that also encode neighbours are left out.
    """
    yield from (secret.hex(), secret.hex().upper())
    for coded in (base64.b64encode, base64.urlsafe_b64encode):
        for before in range(3):
            letters = coded(bytes(before) + secret).decode()
            yield letters[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]


def _whole(secret: str) -> str:
    """Returns a secret with its escapes resolved. It is never cut off."""
    return _read(secret + "\n").removesuffix("\n")


def _small(written: str) -> str:
    """Returns `%2F` as `%2f`, because both forms are used."""
    first, *others = written.split("%")
    return "%".join([first, *(each[:2].lower() + each[2:] for each in others)])


def of_query(query: str) -> list[str]:
    """Returns the secrets of a query that is a secret: the whole, and its signature, which gives the same access."""
    return [query, *(value for name, value in parse_qsl(query) if name == "sig")]
