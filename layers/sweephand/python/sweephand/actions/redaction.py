"""What targets say back is kept without what they were told in confidence: endpoints echo, in any spelling. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, quote, quote_plus

from sweephand.actions.headers import MASK, MAX_SECRET

SHORTEST = 4
"""What is shorter is no secret that could be hidden: every text may hold it by chance."""


def hidden(text: str, secrets: Iterable[str]) -> str:
    """The text with `***` in the place of each secret: as it is, and as JSON, an address or XML would write it.

    The beginning of one goes too where the text breaks off in it. NULs go: they are what a text in UTF-16 has between
    its letters, and would part those of a secret.
    """
    text = text.replace("\0", "")
    spellings = {each for secret in secrets if len(secret) >= SHORTEST for each in _spellings(secret)}
    for each in sorted(spellings, key=len, reverse=True):
        text = _whole_end(text.replace(each, MASK), each)
    return text


def _whole_end(text: str, secret: str) -> str:
    at = text.find(secret[:SHORTEST], max(0, len(text) - len(secret) + 1))
    while at >= 0:
        if secret.startswith(text[at:]):
            return text[:at] + MASK
        at = text.find(secret[:SHORTEST], at + 1)
    return text


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
    yield from (marked_up, marked_up.replace('"', "&quot;"), marked_up.replace('"', "&quot;").replace("'", "&#x27;"))


def _small(written: str) -> str:
    """`%2F` as `%2f`: both are written."""
    first, *others = written.split("%")
    return "%".join([first, *(each[:2].lower() + each[2:] for each in others)])


def of_query(query: str) -> list[str]:
    """A query that is a secret: the whole, and the signature in it, which opens the same door by itself."""
    return [query, *(value for name, value in parse_qsl(query) if name == "sig")]
