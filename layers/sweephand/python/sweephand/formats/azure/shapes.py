"""Azure's JSON: members in any case, null as absent, unknown members ignored; each object is one table of readers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.base.members.fields import below
from sweephand.base.records import dataclass
from sweephand.domain.instants import text
from sweephand.schedules.text.duration import read as read_duration
from sweephand.schedules.text.instants import parse_instant

with lazy():
    from sweephand.schedules.notations import recurrence

Reader = Callable[[Any, str], Any]
"""Returns a value as it is stored. Takes the value that a caller gave, and its path. Raises InvalidRequest."""


@dataclass(frozen=True)
class Shape:
    """An object. members: the reader of each. required: members that must be present."""

    members: Mapping[str, Reader]
    required: tuple[str, ...] = ()

    def __call__(self, value: Any, path: str) -> dict[str, Any]:
        """Returns the members that are set. value: as `named` returns it."""
        members = fields.an_object(value, path or None)
        for name in self.required:
            if members.get(name) is None:
                raise InvalidRequest(below(path, name), "is required")
        return {
            name: read(members[name], below(path, name))
            for name, read in self.members.items()
            if members.get(name) is not None
        }

    def named(self, value: Any, path: str = "") -> dict[str, Any]:
        """Returns the known members under their own names; nulls stay. Refuses duplicates with different values."""
        names = {name.lower(): name for name in self.members}
        members: dict[str, Any] = {}
        for name, each in fields.an_object(value, path or None).items():
            own = names.get(name.lower())
            if own is None:
                continue
            read = self.members[own]
            if isinstance(read, Shape) and isinstance(each, Mapping):
                each = read.named(each, below(path, own))  # noqa: PLW2901 - the same member
            if not _same(members.setdefault(own, each), each):
                raise InvalidRequest(below(path, own), "is given twice with different values")
        return members

    def public(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the object, as it was read, without its secrets."""
        return {
            name: read.public(value[name]) if isinstance(read, Shape) else value[name]
            for name, read in self.members.items()
            if name in value and not isinstance(read, Secret)
        }


@dataclass(frozen=True)
class ByType(Shape):
    """An object whose `type` selects its members. own: the members of each type; those of other types are ignored."""

    own: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __call__(self, value: Any, path: str) -> dict[str, Any]:
        members = fields.an_object(value, path or None)
        kind = members.get("type")
        if kind is None:
            return super().__call__(members, path)
        own = self.own[self.members["type"](kind, below(path, "type"))]
        others = {name for names in self.own.values() for name in names}.difference(own)
        return super().__call__({name: each for name, each in members.items() if name not in others}, path)


@dataclass(frozen=True)
class Secret:
    """A string that no answer shows."""

    longest: int
    shortest: int = 1

    def __call__(self, value: Any, path: str) -> str:
        return fields.text(value, path, self.shortest, self.longest)


def _same(one: Any, other: Any) -> bool:
    """Returns whether two values are equal in JSON, where a number is not a boolean."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# Readers

_FRACTION = re.compile(r"\.([0-9]{1,6})", re.ASCII)


def string(longest: int, shortest: int = 0) -> Reader:
    return lambda value, path: fields.text(value, path, shortest, longest)


def whole(lowest: int, highest: int) -> Reader:
    return lambda value, path: fields.whole(value, path, lowest, highest)


def choice(*names: str, **others: str) -> Reader:
    """Reads one of several words, in upper or lower case. others: further words, each with the one that it means."""
    known = {name.lower(): name for name in names} | {name.lower(): meant for name, meant in others.items()}

    def read(value: Any, path: str) -> str:
        chosen = known.get(value.lower()) if isinstance(value, str) else None
        if chosen is None:
            raise fields.must_be(path, f"one of {', '.join(names)}", value)
        return chosen

    return read


def anything(value: Any, _: str) -> Any:
    """Reads a value that the domain checks."""
    return value


def strings(value: Any, path: str) -> dict[str, str]:
    """Reads a map of strings; its names are the caller's."""
    return {
        name: fields.text(each, below(path, name), 0, 16_384)
        for name, each in fields.an_object(value, path or None).items()
    }


def instant(value: Any, path: str) -> str:
    """Reads a date or date-time of ISO 8601; without an offset it is UTC, a date is its midnight.

    A fraction stays, up to microseconds. The domain rounds it up.
    """
    whole_s = parse_instant(recurrence.as_rfc_3339(value), path)
    fraction = _FRACTION.search(value)
    digits = fraction[1].rstrip("0") if fraction else ""
    return f"{text(whole_s - timedelta(seconds=1))[:-1]}.{digits}Z" if digits else text(whole_s)


def duration(lowest: int, highest: int) -> Reader:
    """Reads a duration within bounds in seconds: `PT1M` or `00:01:00`, stored as `PT60S`.

    Months have 30 days and years 365, as .NET reads them.
    """

    def read(value: Any, path: str) -> str:
        length = read_duration(value, path)
        seconds = length.seconds + (length.months // 12 * 365 + length.months % 12 * 30) * 86_400
        if not lowest <= seconds <= highest:
            raise fields.must_be(path, f"a duration of {lowest:,} to {highest:,} seconds", value)
        return f"PT{seconds}S"

    return read


def seconds_of(stored: str) -> int:
    """Returns the seconds of a stored duration."""
    return int(stored.removeprefix("PT").removesuffix("S"))


def as_instant(stored: str) -> datetime:
    return datetime.fromisoformat(stored)
