"""Serves the description of this API, a file that `make openapi` writes."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path

from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context

FILE = Path(__file__).with_name("openapi.json")
FRESH_S = 300
"""How long readers may cache the document, which a deployment may change."""


def read(ctx: Context) -> Answer:
    """Returns the document, compressed if the caller accepts that; 304 if the caller has it (RFC 9110, 13.1.2)."""
    text, tag = _text_and_tag()
    headers = {"ETag": tag, "Cache-Control": f"public, max-age={FRESH_S}", "Vary": "Accept-Encoding"}
    if _knows(ctx.request.headers.get("if-none-match", ""), tag):
        return Answer(304, headers=headers)
    if _takes_gzip(ctx.request.headers.get("accept-encoding", "")):
        return Answer(200, headers={**headers, "Content-Encoding": "gzip"}, packed=_packed())
    return Answer(200, headers=headers, raw=text)


@cache
def _text_and_tag() -> tuple[str, str]:
    text = FILE.read_text(encoding="utf-8")
    return text, f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def _knows(header: str, tag: str) -> bool:
    return header.strip() == "*" or tag in {each.strip().removeprefix("W/") for each in header.split(",")}


@cache
def _packed() -> bytes:
    """Compresses the document to about 6 %, once per process."""
    return gzip.compress(FILE.read_bytes(), mtime=0)


def _takes_gzip(accepted: str) -> bool:
    """Returns whether the header names gzip (or `*`) and does not refuse it by `q=0` (RFC 9110, 12.5.3)."""
    weights = {}
    for part in accepted.lower().split(","):
        coding, _, weight = part.partition(";")
        weights[coding.strip()] = weight.replace(" ", "")
    wanted = weights.get("gzip", weights.get("*"))
    return wanted is not None and not (wanted.startswith("q=0") and not wanted.removeprefix("q=0").strip(".0"))
