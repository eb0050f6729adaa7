"""Readers for the members of a caller's JSON. They raise only InvalidRequest, and treat `null` as absent."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.lazy import lazy

if TYPE_CHECKING:
    from sweephand.base.json_schema import Schema

with lazy():
    from sweephand.domain.members import near_names
    from sweephand.schedules.text import instants

Read = Callable[[Any, str, Any], Any]
"""Takes the value, its path and the context of the request. Raises InvalidRequest."""

_SHOWN = 100
MOST_TAGS = 10


def below(field: str, name: str) -> str:
    """Returns the path of a member of `field`; an empty field is the body itself."""
    return f"{field}.{name[:_SHOWN]}" if field else name[:_SHOWN]


def members(value: object, field: str, known: Collection[str], mistakes: Mistakes | None = None) -> dict[str, Any]:
    """Returns the members of an object that are present and not null.

    Raises InvalidRequest if the value is not an object, and UNKNOWN_MEMBER with the path of each unknown member.
    mistakes: collects unknown members instead, so that the other members are read as well.
    """
    value = an_object(value, field)
    collected = Mistakes() if mistakes is None else mistakes
    for name in value:
        if name not in known:
            collected.add(unknown(field, str(name), known))
    if mistakes is None:
        collected.check()
    return {name: member for name, member in value.items() if member is not None and name in known}


def unknown(field: str, name: str, known: Collection[str]) -> InvalidRequest:
    """Returns the error for an unknown member, with the most similar known one."""
    return InvalidRequest(below(field, name), near_names.unknown_member(field, name, known), code="UNKNOWN_MEMBER")


def inactive(field: str, name: str, why: str) -> InvalidRequest:
    """Returns the error for a member without effect. why: the reason, or where it would have an effect."""
    return InvalidRequest(below(field, name), f"has no effect here: {why}")


def required(given: Mapping[str, Any], name: str, field: str = "") -> Any:
    if name not in given:
        raise InvalidRequest(below(field, name), "is required")
    return given[name]


def text(value: object, field: str, shortest: int, longest: int) -> str:
    """Returns a string of `shortest` to `longest` characters that UTF-8 can encode. Errors never repeat it."""
    if not isinstance(value, str):
        raise not_a_string(value, field)
    if not shortest <= len(value) <= longest:
        raise InvalidRequest(field, f"must have {shortest:,} to {longest:,} characters, not {len(value):,}")
    try:
        value.encode()
    except UnicodeEncodeError as wrong:
        raise InvalidRequest(field, "contains half of a surrogate pair", position=wrong.start) from wrong
    return value


def matching(pattern: str, reason: str, shortest: int, longest: int) -> Callable[..., str]:
    """Returns a reader (value, field) of strings that match a pattern. reason: why other strings are refused."""
    form = re.compile(pattern, re.ASCII)

    def reader(value: object, field: str, *_: object) -> str:
        found = text(value, field, shortest, longest)
        if not form.fullmatch(found):
            raise InvalidRequest(field, reason)
        return found

    return reader


def not_a_string(value: object, field: str) -> InvalidRequest:
    """Returns the error for a value that is not a string. It names only the type, because the value may be a secret."""
    from sweephand.schedules.text.members import kind_of  # noqa: PLC0415 - only a refusal pays for it

    return InvalidRequest(field, f"must be a string, not {kind_of(value)}")


def an_object(value: object, field: str | None, *, secret: bool = False) -> Mapping[str, Any]:
    """Returns a JSON object. secret: the value may be a secret in the wrong place, so the error only names its type."""
    if isinstance(value, Mapping):
        return value
    from sweephand.schedules.text.members import kind_of  # noqa: PLC0415 - only a refusal pays for it

    raise InvalidRequest(field, f"must be an object, not {kind_of(value) if secret else shown(value)}")


def whole(value: object, field: str, lowest: int, highest: int) -> int:
    """Returns a JSON integer within bounds. Rejects true, 1.0 and "1"."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidRequest(field, f"must be a whole number from {lowest:,} to {highest:,}, not {shown(value)}")
    if not lowest <= value <= highest:
        raise InvalidRequest(field, f"must be within {lowest}..{highest}, not {shown(value)}")
    return value


def one_of(value: object, field: str, choices: Collection[str], *, secret: bool = False) -> str:
    """Returns one of the choices. secret: the value may be a secret in the wrong place, so errors do not repeat it."""
    if not isinstance(value, str) or value not in choices:
        found = "" if secret else f", not {near_names.choice(value, choices)}"
        raise InvalidRequest(field, f"must be one of {', '.join(sorted(choices))}{found}")
    return value


def flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(field, f"must be true or false, not {shown(value)}")
    return value


@contextmanager
def repeating(value: object) -> Iterator[None]:
    """Adds the value to a reader's error that only says what was expected. Do not use it for secrets."""
    try:
        yield
    except InvalidRequest as wrong:
        raise wrong.changed(reason=near_names.with_value(wrong.reason, value)) from wrong


def shown(value: object) -> str:
    """Returns a wrong value as error messages show it: short and printable.

    Shows only the type of objects and lists.
    """
    return near_names.shown(value)


# Strings that people read in lists, in exports and on terminals. They must be visible and must not control a screen.

_LINE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Control characters, line ends, marks that change the direction of a line, and tags."""
_FREE = re.compile(_LINE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b\x0c\x0e-\x1f"))
"""The same without tabs and line ends."""
_UNSEEN = frozenset({"Cf", "Cc", "Zs", "Zl", "Zp", "Mn", "Me"})
_BLANKS = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and symbols that are invisible."""


def free(value: object, field: str, shortest: int, longest: int) -> str:
    """Returns a string of several lines, such as a description or a note."""
    return _checked(text(value, field, shortest, longest), field, _FREE)


def line(value: object, field: str, longest: int) -> str:
    """Returns a string of one line with at least one visible character."""
    found = _checked(text(value, field, 1, longest), field, _LINE)
    if not is_visible(found):
        raise InvalidRequest(field, f"contains no visible character: {shown(found)}", position=0)
    return found


def is_visible(given: str) -> bool:
    """Returns True if at least one character is visible."""
    return not all(character in _BLANKS or unicodedata.category(character) in _UNSEEN for character in given)


def name(value: object, field: str) -> str:
    """Returns a name of 1 to 128 characters, without a space at either end: two names must not look the same."""
    found = line(value, field, 128)
    if found != found.strip():
        raise InvalidRequest(field, f"begins or ends with a space: {shown(found)}")
    return found


def tags(value: object, field: str) -> tuple[str, ...]:
    """Returns the tags of a job, each once."""
    return distinct(value, field, MOST_TAGS)


def distinct(value: object, field: str, most: int) -> tuple[str, ...]:
    """Returns up to `most` strings of one line with 1 to 128 characters, none of which appears twice."""
    if not isinstance(value, list | tuple):
        raise InvalidRequest(field, f"must be a list of strings, not {shown(value)}")
    if len(value) > most:
        raise InvalidRequest(field, f"has {len(value):,} members; the maximum is {most:,}")
    wrong = Mistakes()
    found = [wrong.of(line, each, f"{field}[{n}]", 128) for n, each in enumerate(value)]
    seen: set[str] = set()
    for n, each in enumerate(found):
        if each in seen:
            wrong.add(InvalidRequest(f"{field}[{n}]", f"appears twice: {shown(each)}"))
        seen.add(each)
    wrong.check()
    return tuple(found)


def without_commands(given: str) -> str:
    """Returns the string with control characters written as `\\x1b`, so that it is safe to show in a terminal."""
    return _FREE.sub(lambda found: found[0].encode("unicode_escape").decode(), given)


def _checked(given: str, field: str, strange: re.Pattern[str]) -> str:
    found = strange.search(given)
    if found:
        code = f"U+{ord(found[0]):04X}"
        raise InvalidRequest(field, f"contains the control character {code}: leave it out", position=found.start())
    return given


def by_schema(schema: Schema) -> Read:
    """Returns the reader of a plain member: a flag, a choice, a whole number, an instant or a string."""
    if schema.get("type") == "boolean":
        return lambda value, field, _: flag(value, field)
    if "enum" in schema:
        choices = tuple(schema["enum"])
        return lambda value, field, _: one_of(value, field, choices)
    if schema.get("type") == "integer":
        low, high = schema["minimum"], schema["maximum"]
        return lambda value, field, _: whole(value, field, low, high)
    if schema.get("pattern") == instants.SCHEMA["pattern"]:
        return lambda value, field, _: instants.parse_instant(value, field)
    shortest, longest = schema.get("minLength", 0), schema["maxLength"]
    return lambda value, field, _: free(value, field, shortest, longest)
