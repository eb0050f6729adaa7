"""What targets say back is kept without what they were told in confidence: endpoints echo, in any spelling. Pure."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, quote_plus

from sweephand.actions.headers import MASK, MAX_SECRET

SHORTEST = 4
"""What is shorter is no secret that could be hidden: every text may hold it by chance."""


READINGS = 3
"""Texts within texts: JSON in JSON, in HTML."""
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[\"\\/bfnrt]"
    r"|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});"
    r"|(?:\\(?:u[0-9a-fA-F]{0,3})?|&#?[0-9A-Za-z]{0,8})\Z"
)
"""One letter as JSON or HTML writes it, perhaps broken off by the end of the text."""


@dataclass(frozen=True)
class _Reading:
    """What a text says once its escapes are resolved. begins, ends: of each letter, where it stands in the text."""

    text: str
    begins: list[int]
    ends: list[int]

    def span(self, first: int, last: int) -> tuple[int, int]:
        return self.begins[first], self.ends[last]


def hidden(text: str, secrets: Iterable[str]) -> str:
    """The text with `***` in the place of each secret: as it is, in Base64, and as JSON, an address or XML would write
    it, whichever of its letters they escape, and how.

    The beginning of one goes too where the text breaks off in it. NULs go: they are what a text in UTF-16 has between
    its letters, and would part those of a secret.
    """
    text = text.replace("\0", "")
    kept = {each for secret in secrets if len(secret) >= SHORTEST for each in _spellings(secret)}
    spellings = sorted(kept, key=len, reverse=True)
    for each in spellings:
        text = text.replace(each, MASK)
        cut = _cut_off(text, each)
        text = text if cut is None else text[:cut] + MASK
    spans = [span for reading in _readings(text) for span in _found(reading, spellings)] if spellings else []
    return _masked(text, spans)


def _cut_off(text: str, secret: str) -> int | None:
    """Where the beginning of a secret stands at the end of the text."""
    at = text.find(secret[:SHORTEST], max(0, len(text) - len(secret) + 1))
    while at >= 0:
        if secret.startswith(text[at:]):
            return at
        at = text.find(secret[:SHORTEST], at + 1)
    return None


def _readings(text: str) -> Iterator[_Reading]:
    places = list(range(len(text))) if _ESCAPE.search(text) else []
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
    for found in _ESCAPE.finditer(read.text):
        first, behind = found.span()
        if first == behind:
            continue
        letter = _letter(found[0])
        letters += [read.text[at:first], letter]
        begins += [*read.begins[at:first], *[read.begins[first]] * len(letter)]
        ends += [*read.ends[at:first], *[read.ends[behind - 1]] * len(letter)]
        at = behind
    return _Reading("".join([*letters, read.text[at:]]), begins + read.begins[at:], ends + read.ends[at:])


def _letter(escape: str) -> str:
    """What it stands for; none for one that is broken off."""
    if escape[0] == "&":
        from html import unescape  # noqa: PLC0415 - its table is large, and few answers are HTML

        return unescape(escape) if escape[-1] == ";" else ""
    try:
        read: str = json.loads(f'"{escape}"')
    except ValueError:
        return ""
    return read


def _found(reading: _Reading, spellings: Iterable[str]) -> Iterator[tuple[int, int]]:
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
    for first, behind in sorted(spans):
        if first >= at:
            parts += [text[at:first], MASK]
        at = max(at, behind)
    return "".join([*parts, text[at:]])


def _spellings(secret: str) -> Iterator[str]:
    yield secret
    if len(secret) > MAX_SECRET:
        return  # a private key, which no target is told: 10 ms of CPU for each call
    for escapes in (True, False):
        written = json.dumps(secret, ensure_ascii=escapes)[1:-1]
        yield from (written, written.replace("/", "\\/"))
    for written in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield from (written, _small(written))
    marked_up = secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for coded in (base64.b64encode, base64.urlsafe_b64encode):
        in_base64 = coded(secret.encode("utf-8", "surrogatepass")).decode()
        yield from (in_base64, in_base64.rstrip("="))
    yield from (marked_up, marked_up.replace('"', "&quot;"), marked_up.replace('"', "&quot;").replace("'", "&#x27;"))


def _small(written: str) -> str:
    """`%2F` as `%2f`: both are written."""
    first, *others = written.split("%")
    return "%".join([first, *(each[:2].lower() + each[2:] for each in others)])


def of_query(query: str) -> list[str]:
    """A query that is a secret: the whole, and the signature in it, which opens the same door by itself."""
    return [query, *(value for name, value in parse_qsl(query) if name == "sig")]
