"""JSON that keeps the digits of numbers and the order of members as their author wrote them.

It does not keep spaces between tokens or the spelling of escapes, because these have no meaning (RFC 8259).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from types import NoneType
from typing import Any, NamedTuple, Self


class Number(float):
    """A float that remembers its digits, so that 1.10 is written as 1.10 and not as 1.1."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __reduce__(self) -> tuple[type[Number], tuple[str]]:
        return Number, (self.text,)


def loads(text: str) -> Any:
    """Parses JSON. `dumps` writes its numbers with the same digits."""
    return json.loads(text, parse_float=Number, parse_int=_integer)


def _integer(text: str) -> int | float:
    return Number(text) if text == "-0" else int(text)


def dumps(value: Any) -> str:
    """Returns compact JSON. Characters beyond ASCII stay as they are.

    Raises ValueError for NaN and infinities, TypeError for types that JSON does not have. It is recursive, so
    strict_json limits the depth of parsed input.
    """
    return _WRITERS.get(type(value), _of_subclass)(value)


def _object_text(value: Mapping[Any, Any]) -> str:
    if not value:
        return "{}"
    members = [  # encode_basestring raises TypeError for names that are not strings
        f"{encode_basestring(name)}:{_WRITERS.get(type(member), _of_subclass)(member)}"
        for name, member in value.items()
    ]
    return f"{{{','.join(members)}}}"


def _list_text(value: Sequence[Any]) -> str:
    if not value:
        return "[]"
    return f"[{','.join([_WRITERS.get(type(item), _of_subclass)(item) for item in value])}]"


def _of_subclass(value: Any) -> str:
    for kind in (str, int, float):
        if isinstance(value, kind):
            return _WRITERS[kind](value)
    if isinstance(value, Mapping):
        return _object_text(value)
    if isinstance(value, Sequence):
        return _list_text(value)
    raise TypeError(f"JSON has no {type(value).__name__}")


def _float_text(value: float) -> str:
    if isinstance(value, Number):
        return value.text
    if not math.isfinite(value):
        raise ValueError("JSON has no NaN and no infinity")
    return float.__repr__(value)


_WRITERS: Mapping[type, Callable[[Any], str]] = {
    str: encode_basestring,
    int: int.__repr__,
    bool: lambda value: "true" if value else "false",
    NoneType: lambda _: "null",
    float: _float_text,
    Number: lambda value: value.text,
    dict: _object_text,
    list: _list_text,
    tuple: _list_text,
}
"""The writers by type, because a chain of isinstance for each value costs five times as much."""


def merged(target: Any, patch: Any, *, any_case: bool = False) -> Any:
    """Applies a merge patch (RFC 7396): null removes a member, an object is merged, anything else replaces.

    any_case: whether names that differ only in case are the same; the patch then decides the spelling.
    """
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    spellings = {name.lower(): name for name in result} if any_case else {}
    for name, value in patch.items():
        known = spellings.pop(name.lower(), name)
        before = result.get(known)
        if value is None or known != name:
            result.pop(known, None)
        if value is not None:
            result[name] = merged(before, value, any_case=any_case)
    return result


class Difference(NamedTuple):
    """One changed member. path: `action.url`. old, new: None if the member was absent."""

    path: str
    old: Any
    new: Any


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], whole: Collection[str], path: str = ""
) -> Iterator[Difference]:
    """Yields the differences in the order of the members.

    Compares objects member by member; lists, and members named in `whole`, as one value. An absent member equals null.
    Numbers differ if their digits differ.
    """
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name), new.get(name)
        where = f"{path}.{name}" if path else name
        if isinstance(before, Mapping) and isinstance(after, Mapping) and name not in whole:
            yield from differences(before, after, whole, where)
        elif dumps(before) != dumps(after):
            yield Difference(where, before, after)
