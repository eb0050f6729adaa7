"""Reads JSON members of any type: returns the right type and range, or refuses and names what was expected."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from sweephand.base.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_TEXT = 1_000
LONGEST_WORDS = 100
"""The most characters of a string that is read word by word, or by a standard."""
_UNPRINTABLE = r"[^\t\x20-\x7e]"
_UNPRINTABLE_IN_LINES = r"[^\t\r\n\x20-\x7e]"

Choice = TypeVar("Choice", bound=StrEnum)


def never_fires(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(field, reason, code="NEVER_FIRES")


def kind_of(value: object) -> str:
    """Returns the JSON name of a value's type, for error messages: "a number", "null"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list | tuple) else "something else"


def text(value: object, field: str, expected: str, *, longest: int = LONGEST_TEXT, lines: bool = False) -> str:
    """Reads printable ASCII (and tabs) of 1 to `longest` characters. expected: what the error message requests.

    lines: whether line breaks are allowed.
    """
    if not isinstance(value, str):
        raise InvalidRequest(field, f"expected {expected}, not {kind_of(value)}")
    if len(value) > longest:
        raise InvalidRequest(field, f"{len(value)} characters are more than {longest:,}", position=longest)
    plain = value.isascii() and value.isprintable()  # nearly every text: no regular expression is needed or compiled
    strange = None if plain else re.search(_UNPRINTABLE_IN_LINES if lines else _UNPRINTABLE, value)
    if strange is not None:
        code = f"U+{ord(strange[0]):04X}"
        raise InvalidRequest(
            field, f"character {code} is not printable ASCII; expected {expected}", position=strange.start()
        )
    if not value.strip():
        raise InvalidRequest(field, f"empty; expected {expected}", position=0)
    return value


def record(value: object, field: str, known: Sequence[str], expected: str) -> dict[str, object]:
    """Returns the members of a JSON object that are not null. Raises InvalidRequest; UNKNOWN_MEMBER for others."""
    if not isinstance(value, dict):
        raise InvalidRequest(field, f"expected {expected}, not {kind_of(value)}")
    for name in value:
        if name not in known:
            raise InvalidRequest(
                f"{field}.{shown(name)}", f"is not a member here; {', '.join(known)} are", code="UNKNOWN_MEMBER"
            )
    return {name: each for name, each in value.items() if each is not None}


def shown(name: object) -> str:
    """Returns a member's name as error messages repeat it: printable and short."""
    return re.sub(_UNPRINTABLE, "?", str(name))[:40]


def named(value: object, field: str, names: Sequence[str]) -> int:
    """Returns the index of a name among `names`, which are in lower case; the caller may write any case."""
    expected = f"{', '.join(names[:-1])} or {names[-1]}"
    if not isinstance(value, str):
        raise InvalidRequest(field, f"expected {expected}, not {kind_of(value)}")
    if value.isascii() and value.lower() in names:
        return names.index(value.lower())
    raise InvalidRequest(field, f"expected {expected}", position=0)


def choice(value: object, field: str, choices: type[Choice]) -> Choice:
    """Reads one of the values of an enumeration, written exactly."""
    *names_before, last = (f'"{member}"' for member in choices)
    names = f"{', '.join(names_before)} or {last}"
    if not isinstance(value, str):
        raise InvalidRequest(field, f"expected {names}, not {kind_of(value)}")
    for member in choices:
        if member.value == value:
            return member
    raise InvalidRequest(field, f"expected {names}", position=0)


def whole(value: object, field: str, least: int, most: int) -> int:
    """Returns a JSON integer within bounds. Refuses true, false and 1.0."""
    if isinstance(value, bool) or not isinstance(value, int):
        what = "a number with a fraction or exponent" if isinstance(value, float) else kind_of(value)
        raise InvalidRequest(field, f"expected {_range(least, most)}, not {what}")
    if not least <= value <= most:
        raise InvalidRequest(field, f"expected {_range(least, most)}, not {value:,}")
    return value


def _range(least: int, most: int) -> str:
    return f"a whole number from {least:,} to {most:,}" if least < most else f"the number {least:,}"
