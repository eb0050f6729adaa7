"""The only parser of request bodies. Every value that it accepts can be stored, sent and written again.

Python's json module accepts NaN, 1e400, duplicate members, lone surrogates, and nesting that ends in RecursionError.
"""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_text import Number, dumps

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_NUMBER", "canonical_text", "dumps", "loads"]

MAX_BYTES = 262_144
MAX_DEPTH = 32
MAX_NUMBER = 100
"""The most characters of a number: enough for 256-bit integers, and far below Python's limit of 4,300 digits."""
MAX_VALUES = 250_000
"""The most values of a larger body, such as a job set: a body of MAX_BYTES has fewer. A member counts twice."""

_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
"""It always matches from a quote on, even if the string is not closed, so that it is linear in any text."""
_MARKS = (b",", b":", b"[", b"{")
"""The characters before values, and after the names of members."""
_STRING = re.compile(rb'"[^"]*"?')
_NOT_BRACKETS = bytes(set(range(256)) - set(b'"[]{}'))
_AS_LISTS = bytes.maketrans(b"{}", b"[]")
_WHOLE = re.compile(
    r"(?:[^\\]++|\\(?!u[dD][89a-fA-F])[\s\S]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+"
)
"""The beginning of a text, up to the first half of a surrogate pair without the other half."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_MINUS_NOUGHT = re.compile(rb"-0(?:(?<=[\s,:\[]-0)|(?<=\A-0))(?![.0-9eE])")
_LARGE = re.compile(rb"[eE]\+?[0-9]{3}")
"""A number of at most MAX_NUMBER characters needs such an exponent to be infinite."""
_OF_NUMBERS = bytes(49 if each in b"+-.0123456789eE" else 32 for each in range(256))
_LARGEST = sys.float_info.max
_SHOWN = 60


def loads(body: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Returns the value of a JSON text in UTF-8. Floats are json_text.Number, so that they are written unchanged.

    Raises InvalidRequest: TOO_LARGE over max_bytes; otherwise INVALID_JSON, with the position in characters if known.
    """
    if len(body) > max_bytes:
        raise InvalidRequest(None, f"the body has {len(body):,} bytes; the maximum is {max_bytes:,}", code="TOO_LARGE")
    text = _decoded(body)
    _check_structure(body, text, max_depth)
    parse_int, parse_float = _readers_of_numbers(body)
    try:
        with _no_garbage():
            value = json.loads(
                text,
                object_pairs_hook=_object,
                parse_int=parse_int,
                parse_float=parse_float,
                parse_constant=_constant,
            )
    except json.JSONDecodeError as wrong:
        raise _invalid(f"not JSON at line {wrong.lineno}, column {wrong.colno}: {wrong.msg}", wrong.pos) from wrong
    whole = _WHOLE.match(text) if _HALF.search(text) else None
    if whole is not None and whole.end() < len(text):
        raise _invalid("a lone surrogate is not a character", whole.end())
    return value


def canonical_text(value: Any) -> str:
    """Returns the text under which user JSON is stored: compact, members in order, numbers digit for digit."""
    return dumps(value)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Keeps the garbage collector from looking through all objects again and again: parsing makes no garbage.

    A body of 60,000 empty lists costs a quarter of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _decoded(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise _invalid("not UTF-8", wrong.start) from wrong
    if text.startswith("\ufeff"):
        raise _invalid("remove the byte order mark, which is not part of JSON", 0)
    return text


def _check_structure(body: bytes, text: str, max_depth: int) -> None:
    """Raises InvalidRequest for deep nesting, for which the parser would raise RecursionError, and for many values.

    Each round removes the innermost brackets, so that a regular text leaves nothing after max_depth rounds.
    """
    marks = sum(map(body.count, _MARKS))
    brackets = body.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in body else body
    if marks > MAX_VALUES:
        marks = _values(brackets)
    if marks > MAX_VALUES:
        reason = f"the body has more than {MAX_VALUES:,} values and names of members"
        raise InvalidRequest(None, reason, code="TOO_LARGE")
    brackets = _STRING.sub(b"", brackets.translate(None, _NOT_BRACKETS).replace(b'""', b"")).translate(_AS_LISTS)
    for _ in range(max_depth):
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        _find_depth(text, max_depth)


def _values(body: bytes) -> int:
    """Returns the number of values of a body without escapes, or a number above MAX_VALUES."""
    strings = body.count(b'"') // 2
    if strings > 2 * MAX_VALUES:
        return strings
    bare = _STRING.sub(b"", body)
    return sum(map(bare.count, _MARKS))


def _find_depth(text: str, max_depth: int) -> None:
    """Raises InvalidRequest at the first bracket that is too deep. Returns for brackets that do not match."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        mark = token[0]
        if mark in "[{":
            depth += 1
            if depth > max_depth:
                raise _invalid(f"nested deeper than {max_depth} levels", token.start())
        elif mark in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _invalid(f"the member {_shown(name)} appears twice")
            seen.add(name)
    return members


def _readers_of_numbers(body: bytes) -> tuple[Callable[[str], int | float] | None, Callable[[str], float]]:
    """Returns what reads integers (None for the parser's own) and floats: the fastest that this body allows.

    Strings that look like odd numbers only cost time.
    """
    if b"1" * (MAX_NUMBER + 1) in body.translate(_OF_NUMBERS):
        return _long_integer, _long_float
    return _integer if _MINUS_NOUGHT.search(body) else None, _float if _LARGE.search(body) else Number


def _integer(text: str) -> int | float:
    return Number(text) if text == "-0" else int(text)


def _long_integer(text: str) -> int | float:
    _check_length(text)
    return _integer(text)


def _long_float(text: str) -> float:
    _check_length(text)
    return _float(text)


def _float(text: str) -> float:
    number = Number(text)
    if not -_LARGEST <= number <= _LARGEST:
        raise _invalid(f"the number {_shown(text)} is too large")
    return number


def _constant(text: str) -> Any:
    raise _invalid(f"{text} is not JSON")


def _check_length(text: str) -> None:
    if len(text) > MAX_NUMBER:
        raise _invalid(f"the number {text[:20]}... has more than {MAX_NUMBER} characters")


def _shown(text: str) -> str:
    short = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return json.dumps(short)


def _invalid(reason: str, position: int | None = None) -> InvalidRequest:
    return InvalidRequest(None, reason, position=position, code="INVALID_JSON")
