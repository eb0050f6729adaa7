"""The members of a resource: each line of a table says how a member is read, stored, shown and described.

What is usual stays unsaid. A member is read as the schema of its request says, held by the attribute of its name, shown
as its record has it, and by default it is what its draft has by default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from typing import Any

from sweephand.domain.instants import text
from sweephand.domain.members import fields as reading
from sweephand.errors import Mistakes
from sweephand.json_schema import Members, Schema, or_null
from sweephand.schedules.text.instants import SCHEMA as INSTANT_SCHEMA
from sweephand.schedules.text.instants import parse_instant

Read = Callable[[Any, str, Any], Any]
"""Takes the value, its path and what the request is read against. Raises InvalidRequest."""
Show = Callable[[Any], Any]


@dataclass(frozen=True)
class Member:
    """One member. given: its schema in a request; None: only answers have it, and a change passes it over.

    shown: its schema in an answer. show: takes what an answer is made of. attribute: of the record, and of the draft.
    """

    given: Schema | None = None
    read: Read | None = None
    shown: Schema | None = None
    show: Show | None = None
    attribute: str = ""


def answered(shown: Schema, show: Show) -> Member:
    """Returns a member that only answers have."""
    return Member(shown=shown, show=show)


def by_schema(schema: Schema) -> Read:
    """Returns the reader of a plain member: a switch, a choice, a whole number, an instant or a text."""
    if schema.get("type") == "boolean":
        return lambda value, field, _: reading.flag(value, field)
    if "enum" in schema:
        choices = tuple(schema["enum"])
        return lambda value, field, _: reading.one_of(value, field, choices)
    if schema.get("type") == "integer":
        low, high = schema["minimum"], schema["maximum"]
        return lambda value, field, _: reading.whole(value, field, low, high)
    if schema.get("pattern") == INSTANT_SCHEMA["pattern"]:
        return lambda value, field, _: parse_instant(value, field)
    shortest, longest = schema.get("minLength", 0), schema["maxLength"]
    return lambda value, field, _: reading.free(value, field, shortest, longest)


def plain(value: Any) -> Any:
    """Returns the JSON of a stored value."""
    if isinstance(value, datetime):
        return text(value)
    return list(value) if isinstance(value, tuple) else value


class Resource:
    """The table of one resource. draft: the record that a request asks for, which says what is the default."""

    def __init__(self, draft: type, record: str, table: Mapping[str, Member]) -> None:
        self.table = table
        self.given = tuple(name for name, member in table.items() if member.given is not None)
        self.read_only = tuple(name for name, member in table.items() if member.given is None)
        self._record = record
        self._attributes = {name: table[name].attribute or _snake(name) for name in self.given}
        self._readers = {name: table[name].read or by_schema(table[name].given or {}) for name in self.given}
        default = {each.name: each.default for each in fields(draft)}
        self._nullable = {name for name, attribute in self._attributes.items() if default.get(attribute) is None}
        self._required = {name for name, attribute in self._attributes.items() if default.get(attribute) is MISSING}

    def names(self, *, change: bool) -> tuple[str, ...]:
        """Returns the members that a request may bring. change: also those that only answers have."""
        return self.given + (self.read_only if change else ())

    def read(self, given: Mapping[str, Any], field: str, against: Any, wrong: Mistakes) -> dict[str, Any]:
        """Returns the draft's attributes that the caller gives. Mistakes are collected, and leave None."""
        return {
            self._attributes[name]: wrong.of(self._readers[name], given[name], reading.below(field, name), against)
            for name in self.given
            if name in given
        }

    def show(self, seen: Any) -> dict[str, Any]:
        """Returns the JSON of all members that an answer has."""
        return {name: self._show(name, seen) for name in self.table}

    def settable(self, seen: Any) -> dict[str, Any]:
        """Returns the JSON of the members that a caller may set, without those that hold nothing."""
        shown = {name: self._show(name, seen) for name in self.given}
        return {name: value for name, value in shown.items() if value is not None}

    def _show(self, name: str, seen: Any) -> Any:
        show = self.table[name].show
        return plain(getattr(getattr(seen, self._record), self._attributes[name])) if show is None else show(seen)

    # Schemas

    def request(self) -> Members:
        return {name: member.given for name, member in self.table.items() if member.given is not None}

    def answer(self) -> Members:
        return {name: member.shown or self._shown(name, member) for name, member in self.table.items()}

    def _shown(self, name: str, member: Member) -> Schema:
        """Returns the schema of an answer: without the bounds of a text, and null where nothing is the default."""
        schema = member.given or {}
        if schema.get("type") == "string" and "enum" not in schema:
            schema = {"type": "string"}
        return or_null(schema) if name in self._nullable else schema


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
