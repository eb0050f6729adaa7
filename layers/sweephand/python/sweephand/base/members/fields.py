"""Readers for the members of a caller's JSON, in one voice: `must be ..., not ...`. They treat `null` as absent.

They raise only InvalidRequest. Everything that reads what a caller declares uses them: all facades, actions, schedules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.lazy import lazy

if TYPE_CHECKING:
    from sweephand.base.json_schema import Schema

with lazy():
    import unicodedata

    from sweephand.base.members import near_names

Choice = TypeVar("Choice", bound=StrEnum)
Read = Callable[[Any, str, Any], Any]
"""Takes the value, its path and the context of the request. Raises InvalidRequest."""

LONGEST_TEXT = 1_000
LONGEST_WORDS = 100
"""The most characters of a string that is read word by word, or by a standard."""
MOST_TAGS = 10
_SHOWN = 100


# Refusals


def must_be(
    field: str | None, wanted: str, value: object, *, part: str = "", position: int | None = None
) -> InvalidRequest:
    """Returns the error for another value than the wanted ones. part: its name within a string, such as "hour"."""
    return InvalidRequest(field, f"{part and f'{part} '}must be {wanted}, not {shown(value)}", position=position)


def must_continue(field: str, wanted: str, text: str, position: int) -> InvalidRequest:
    """Returns the error for a string that is right up to a position, and then lacks something."""
    before, rest = text[:position], text[position:]
    wanted = f"continue with {wanted} after {shown(before.strip())}" if before.strip() else f"begin with {wanted}"
    return InvalidRequest(field, f"must {wanted}{rest and f', not {shown(rest)}'}", position=position)


def must_end(field: str, text: str, position: int, why: str = "") -> InvalidRequest:
    """Returns the error for a string that is complete before its end."""
    return InvalidRequest(field, f"must end before {shown(text[position:])}{why and f': {why}'}", position=position)


def below(field: str, name: str) -> str:
    """Returns the path of a member of `field`; an empty field is the body itself."""
    return f"{field}.{name[:_SHOWN]}" if field else name[:_SHOWN]


def unknown(field: str, name: str, known: Collection[str]) -> InvalidRequest:
    """Returns the error for an unknown member, with the most similar known one."""
    return InvalidRequest(below(field, name), near_names.unknown_member(field, name, known), code="UNKNOWN_MEMBER")


def inactive(field: str, name: str, why: str) -> InvalidRequest:
    """Returns the error for a member without effect. why: the reason, or where it would have an effect."""
    return InvalidRequest(below(field, name), f"has no effect here: {why}")


def not_a_string(value: object, field: str) -> InvalidRequest:
    """Returns the error for a value that is not a string. It names only the type, because the value may be a secret."""
    return InvalidRequest(field, f"must be a string, not {near_names.kind_of(value)}")


def shown(value: object) -> str:
    """Returns a wrong value as error messages show it: short and printable.

    Shows only the type of objects and lists.
    """
    return near_names.shown(value)


# Objects and lists


def an_object(
    value: object, field: str | None, wanted: str = "an object", *, secret: bool = False
) -> Mapping[str, Any]:
    """Returns a JSON object. secret: the value may be a secret in the wrong place, so the error only names its type."""
    if isinstance(value, Mapping):
        return value
    if secret:
        raise InvalidRequest(field, f"must be {wanted}, not {near_names.kind_of(value)}")
    raise must_be(field, wanted, value)


def members(
    value: object, field: str, known: Collection[str], mistakes: Mistakes | None = None, wanted: str = "an object"
) -> dict[str, Any]:
    """Returns the members of an object that are present and not null.

    Raises InvalidRequest if the value is not an object, and UNKNOWN_MEMBER with the path of each unknown member.
    mistakes: collects unknown members instead, so that the other members are read as well.
    """
    value = an_object(value, field, wanted)
    collected = Mistakes() if mistakes is None else mistakes
    for name in value:
        if name not in known:
            collected.add(unknown(field, str(name), known))
    if mistakes is None:
        collected.check()
    return {name: member for name, member in value.items() if member is not None and name in known}


def required(members: Mapping[str, Any], name: str, field: str = "") -> Any:
    if name not in members:
        raise InvalidRequest(below(field, name), "is required")
    return members[name]


def listed(value: object, field: str, most: int = 1_000, wanted: str = "a list", least: int = 0) -> Sequence[Any]:
    """Returns a list of `least` to `most` members."""
    if not isinstance(value, list | tuple):
        raise must_be(field, wanted, value)
    if not least <= len(value) <= most:
        bounds = f"{least:,} to {most:,}" if least else f"at most {most:,}"
        raise InvalidRequest(field, f"must have {bounds} members, not {len(value):,}")
    return value


def distinct(value: object, field: str, most: int) -> tuple[str, ...]:
    """Returns up to `most` strings of one line with 1 to 128 characters, none of which appears twice."""
    wrong = Mistakes()
    elements = listed(value, field, most, "a list of strings")
    strings = [wrong.of(line, each, f"{field}[{n}]", 128) for n, each in enumerate(elements)]
    seen: set[str] = set()
    for n, each in enumerate(strings):
        if each in seen:
            wrong.add(InvalidRequest(f"{field}[{n}]", f"appears twice: {shown(each)}"))
        seen.add(each)
    wrong.check()
    return tuple(strings)


def tags(value: object, field: str) -> tuple[str, ...]:
    """Returns the tags of a job, each once."""
    return distinct(value, field, MOST_TAGS)


# Plain values


def whole(value: object, field: str, lowest: int, highest: int) -> int:
    """Returns a JSON integer within bounds. Rejects true, 1.0 and "1"."""
    if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest:
        return value
    raise must_be(field, f"a whole number from {lowest:,} to {highest:,}" if lowest < highest else f"{lowest:,}", value)


def number(text: str, field: str, lowest: int, highest: int) -> int:
    """Returns the whole number within bounds that a parameter of a query is."""
    digits = re.fullmatch("0|[1-9][0-9]{0,15}", text, re.ASCII)
    return whole(int(text) if digits else text, field, lowest, highest)


def flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise must_be(field, "true or false", value)
    return value


def one_of(value: object, field: str, choices: Collection[str], *, any_case: bool = False, secret: bool = False) -> str:
    """Returns one of the choices.

    any_case: the caller may write it in upper or lower case. secret: the value may be a secret in the wrong place, so
    errors do not repeat it.
    """
    if isinstance(value, str):
        if value in choices:
            return value
        if any_case and value.isascii():
            for choice in choices:
                if choice.lower() == value.lower():
                    return choice
    names = ", ".join(sorted(choices) if isinstance(choices, set | frozenset) else choices)
    but = "" if secret else f", not {near_names.choice(value, choices)}"
    raise InvalidRequest(field, f"must be one of {names}{but}")


def chosen(value: object, field: str, choices: type[Choice]) -> Choice:
    """Returns the member of an enumeration."""
    return choices(one_of(value, field, tuple(choices)))


def by_schema(schema: Schema) -> Read:
    """Returns the reader of a plain member: a flag, a choice, a whole number or a string."""
    if schema.get("type") == "boolean":
        return lambda value, field, _: flag(value, field)
    if "enum" in schema:
        choices = tuple(schema["enum"])
        return lambda value, field, _: one_of(value, field, choices)
    if schema.get("type") == "integer":
        low, high = schema["minimum"], schema["maximum"]
        return lambda value, field, _: whole(value, field, low, high)
    shortest, longest = schema.get("minLength", 0), schema["maxLength"]
    return lambda value, field, _: free(value, field, shortest, longest)


# Strings


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
        checked = text(value, field, shortest, longest)
        if not form.fullmatch(checked):
            raise InvalidRequest(field, reason)
        return checked

    return reader


def notation(value: object, field: str, wanted: str, *, longest: int = LONGEST_TEXT, lines: bool = False) -> str:
    """Returns a string in a notation that is read next: printable ASCII and tabs, which is no secret.

    lines: whether line breaks are allowed.
    """
    if not isinstance(value, str) or not value.strip():
        raise must_be(field, wanted, value, position=0 if isinstance(value, str) else None)
    if len(value) > longest:
        raise InvalidRequest(field, f"must have at most {longest:,} characters, not {len(value):,}", position=longest)
    if value.isascii() and value.isprintable():  # nearly every text: no regular expression is needed or compiled
        return value
    strange = re.search(r"[^\t\r\n\x20-\x7e]" if lines else r"[^\t\x20-\x7e]", value)
    if strange is not None:
        reason = f"must be {wanted}: U+{ord(strange[0]):04X} is not a printable ASCII character"
        raise InvalidRequest(field, reason, position=strange.start())
    return value


# Strings that people read in lists, in exports and on terminals. They must be visible and must not control a screen.

_LINE = (
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Control characters, line ends, marks that change the direction of a line, and tags. Compiled when first used."""
_FREE = _LINE.replace("\x00-\x1f", "\x00-\x08\x0b\x0c\x0e-\x1f")
"""The same without tabs and line ends."""
_UNSEEN = frozenset({"Cf", "Cc", "Zs", "Zl", "Zp", "Mn", "Me"})
_BLANKS = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and symbols that are invisible."""


def free(value: object, field: str, shortest: int, longest: int) -> str:
    """Returns a string of several lines, such as a description or a note."""
    return _checked(text(value, field, shortest, longest), field, _FREE)


def line(value: object, field: str, longest: int) -> str:
    """Returns a string of one line with at least one visible character."""
    checked = _checked(text(value, field, 1, longest), field, _LINE)
    if not is_visible(checked):
        raise InvalidRequest(field, f"contains no visible character: {shown(checked)}", position=0)
    return checked


def is_visible(text: str) -> bool:
    """Returns True if at least one character is visible."""
    return not all(character in _BLANKS or unicodedata.category(character) in _UNSEEN for character in text)


def name(value: object, field: str) -> str:
    """Returns a name of 1 to 128 characters, without a space at either end: two names must not look the same."""
    checked = line(value, field, 128)
    if checked != checked.strip():
        raise InvalidRequest(field, f"begins or ends with a space: {shown(checked)}")
    return checked


def without_commands(text: str) -> str:
    """Returns the string with control characters written as `\\x1b`, so that it is safe to show in a terminal."""
    return re.sub(_FREE, lambda match: match[0].encode("unicode_escape").decode(), text)


def _checked(text: str, field: str, strange: str) -> str:
    match = re.search(strange, text)
    if match:
        code = f"U+{ord(match[0]):04X}"
        raise InvalidRequest(field, f"contains the control character {code}: leave it out", position=match.start())
    return text
