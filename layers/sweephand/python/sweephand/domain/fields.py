"""Reading members of a caller's JSON: any type may come anywhere, only InvalidRequest goes out. `null` is absent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sweephand.errors import InvalidRequest

_SHOWN = 100


def below(field: str, name: str) -> str:
    """The path of a member of `field`; an empty field is the body itself."""
    return f"{field}.{name[:_SHOWN]}" if field else name[:_SHOWN]


def members(value: object, field: str, known: Collection[str]) -> dict[str, Any]:
    """The members of an object that are there and not null. Raises UNKNOWN_MEMBER with the path of a stranger."""
    if not isinstance(value, Mapping):
        raise InvalidRequest(field, "must be an object")
    for name in value:
        if name not in known:
            raise InvalidRequest(below(field, str(name)), "is not a member here", code="UNKNOWN_MEMBER")
    return {name: member for name, member in value.items() if member is not None}


def text(value: object, field: str, shortest: int, longest: int) -> str:
    """A text of `shortest` to `longest` characters that UTF-8 can write."""
    if not isinstance(value, str):
        raise InvalidRequest(field, "must be a text")
    if not shortest <= len(value) <= longest:
        raise InvalidRequest(field, f"must have {shortest} to {longest} characters")
    try:
        value.encode()
    except UnicodeEncodeError as wrong:
        raise InvalidRequest(field, "holds half of a surrogate pair", position=wrong.start) from wrong
    return value


def whole(value: object, field: str, lowest: int, highest: int) -> int:
    """A JSON integer within bounds; true, 1.0 and "1" are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidRequest(field, "must be a whole number")
    if not lowest <= value <= highest:
        raise InvalidRequest(field, f"must be within {lowest}..{highest}")
    return value


def one_of(value: object, field: str, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise InvalidRequest(field, f"must be one of {', '.join(sorted(choices))}")
    return value


def flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(field, "must be true or false")
    return value
