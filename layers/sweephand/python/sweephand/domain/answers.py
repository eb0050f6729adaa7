"""Tables of the members of answers. Each line says how a member is shown and described.

Lines name only what differs from the default: a member is shown as in the attribute of its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import Any

from sweephand.base.json_schema import INSTANT, Members, Schema
from sweephand.base.members.fields import Read
from sweephand.base.records import dataclass
from sweephand.domain.instants import text, text_ms

Show = Callable[[Any], Any]


@dataclass(frozen=True)
class Member:
    """One member. request: its schema in a request; None if only answers have it, and changes ignore it.

    shown: its schema in an answer. show: takes the source of an answer. attribute: of the record and of the draft.
    part: the table of an object. says: its description, unless its schemas have one.
    """

    request: Schema | None = None
    read: Read | None = None
    shown: Schema | None = None
    show: Show | None = None
    attribute: str = ""
    part: Table | None = None
    says: str = ""


def answered(shown: Schema, show: Show | str = "", says: str = "") -> Member:
    """Returns a member that only answers have. show: see Member, or the path of an attribute of the record."""
    if isinstance(show, str):
        return Member(shown=shown, attribute=show, says=says)
    return Member(shown=shown, show=show, says=says)


class Table:
    """The table of an object in answers. record: the attribute of its source with the record; empty if it is that."""

    def __init__(self, table: Mapping[str, Member], record: str = "") -> None:
        self.table = table
        self._record = record and f"{record}."
        self._attributes = {
            name: member.attribute or re.sub("([A-Z])", r"_\1", name).lower() for name, member in table.items()
        }

    def show(self, source: Any) -> dict[str, Any]:
        """Returns the JSON of all members that an answer has."""
        return {name: show(source) for name, show in self._shows.items()}

    def show_all(self, sources: Iterable[Any]) -> list[dict[str, Any]]:
        return [self.show(each) for each in sources]

    @cached_property
    def _shows(self) -> Mapping[str, Show]:
        return {name: member.show or self._plain(name, member) for name, member in self.table.items()}

    def _plain(self, name: str, member: Member) -> Show:
        """Returns the function that shows an attribute. Its schema says what the value is."""
        value_of, part = attrgetter(f"{self._record}{self._attributes[name]}"), member.part
        schema = member.shown or member.request or {}
        if part is not None:
            return lambda source: None if (value := value_of(source)) is None else part.show(value)
        if schema.get("format") == "date-time":
            instant = text if schema.get("pattern") == INSTANT["pattern"] else text_ms
            return lambda source: None if (value := value_of(source)) is None else instant(value)
        if "enum" in schema:
            return lambda source: value.value if isinstance(value := value_of(source), Enum) else value
        if "items" in schema:
            return lambda source: list(value_of(source))
        return value_of

    def answer(self) -> Members:
        """Returns the schemas of the members of an answer."""
        return {name: described(self._shown(name, member), member.says) for name, member in self.table.items()}

    def _shown(self, name: str, member: Member) -> Schema:
        assert member.shown is not None, name
        return member.shown


def described(schema: Schema, says: str) -> Schema:
    return {**schema, "description": says} if says else schema
