"""The description of this API: written by `make openapi`, given out as it lies on the disk."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from sweephand.facades.http import Answer
from sweephand.facades.native.context import Context

FILE = Path(__file__).with_name("openapi.json")
FRESH_S = 300
"""A deployment may change the document; its readers may be that much behind."""


def read(ctx: Context) -> Answer:
    """304 to a caller who has it already (RFC 9110, 13.1.2)."""
    text, tag = _text_and_tag()
    headers = {"ETag": tag, "Cache-Control": f"public, max-age={FRESH_S}"}
    if _knows(ctx.request.headers.get("if-none-match", ""), tag):
        return Answer(304, headers=headers)
    return Answer(200, headers=headers, raw=text)


@cache
def _text_and_tag() -> tuple[str, str]:
    text = FILE.read_text(encoding="utf-8")
    return text, f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def _knows(given: str, tag: str) -> bool:
    return given.strip() == "*" or tag in {each.strip().removeprefix("W/") for each in given.split(",")}
