"""Tables of a resource's members. Each line says how a member is read, stored, shown and described.

Lines name only what differs from the default: a member is read by the schema of its request, stored in the attribute of
its name, shown as in the record, and its default is that of the draft.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from sweephand.base.errors import Mistakes
from sweephand.base.json_schema import Members, Schema, answer, or_null, request
from sweephand.base.members import fields as reading
from sweephand.base.members.fields import Read
from sweephand.domain.answers import Member, Table, answered, described
from sweephand.domain.schema_words import ACTOR, INSTANT_MS, PLAIN_NAME
from sweephand.schedules.text import instants
from sweephand.server.facades.native import shapes


def _by_schema(schema: Schema) -> Read:
    if schema.get("pattern") == instants.SCHEMA["pattern"]:
        return lambda value, field, _: instants.parse_instant(value, field)
    return reading.by_schema(schema)


def part(of: Resource, read: Read | None = None, **more: Any) -> Member:
    """Returns a member that is an object with members of its own."""
    schema = request(of.request(), of.required, **more)
    return Member(schema, read or of.part, answer(of.answer()), part=of)


class Resource(Table):
    """The table of one resource. draft: the record for requests, which has the defaults.

    record: see Table. more: members that only some answers have.
    """

    def __init__(self, draft: type, table: Mapping[str, Member], record: str = "", more: tuple[str, ...] = ()) -> None:
        super().__init__(table, record)
        self.sent = tuple(name for name, member in table.items() if member.request is not None)
        self.read_only = (*(name for name, member in table.items() if member.request is None), *more)
        self._draft = draft
        self._readers = {name: table[name].read or _by_schema(table[name].request or {}) for name in self.sent}
        default = {each.name: each for each in fields(draft)}
        of_given = {name: default[self._attributes[name]] for name in self.sent if self._attributes[name] in default}
        self.required = tuple(
            name for name, each in of_given.items() if each.default is MISSING and each.default_factory is MISSING
        )
        self._defaults = {
            each.name: each.default if each.default_factory is MISSING else each.default_factory()
            for name, each in of_given.items()
            if name not in self.required
        }

    def names(self, *, change: bool) -> tuple[str, ...]:
        """Returns the members that a request may have. change: True to include those that only answers have."""
        return self.sent + (self.read_only if change else ())

    def read(self, members: Mapping[str, Any], field: str, against: Any, wrong: Mistakes) -> dict[str, Any]:
        """Returns the draft's attributes from the request. Mistakes are collected, and their attributes are None."""
        return {
            self._attributes[name]: wrong.of(self._readers[name], members[name], reading.below(field, name), against)
            for name in self.sent
            if name in members
        }

    def part(self, value: object, field: str, against: Any = None) -> Any:
        """Returns the record of a member that is an object."""
        wrong = Mistakes()
        schema = reading.members(value, field, self.sent, wrong)
        for name in self.required:
            wrong.of(reading.required, schema, name, field)
        attributes = self.read(schema, field, against, wrong)
        wrong.check()
        return self._draft(**attributes)

    def named(self, body: object, before: str | None, against: Any = None, **usual: Any) -> dict[str, Any]:
        """Returns the attributes of a resource with a name in its path, from a POST or, with `before`, a PUT.

        before: the name of the replaced resource. Members that the body leaves out have their defaults. usual: the
        defaults, as JSON, of members that have none in the record.
        """
        wrong = Mistakes()
        members = reading.members(body, "", self.names(change=before is not None), wrong)
        name = wrong.of(shapes.plain_name, members, before)
        attributes = {**self._defaults, **self.read({**usual, **members}, "", against, wrong), "name": name}
        wrong.check()
        return attributes

    def settable(self, resource: Any) -> dict[str, Any]:
        """Returns the JSON of the members that a caller may set, without empty ones."""
        shown = {name: self._shows[name](resource) for name in self.sent}
        return {name: value for name, value in shown.items() if value is not None}

    @property
    def nullable(self) -> tuple[str, ...]:
        """Returns the members of a request that are None by default. `settable` leaves them out."""
        return tuple(name for name in self.sent if self._defaults.get(self._attributes[name], MISSING) is None)

    # Schemas

    def request(self) -> Members:
        return {
            name: described(member.request, member.says)
            for name, member in self.table.items()
            if member.request is not None
        }

    def _shown(self, name: str, member: Member) -> Schema:
        """Returns the schema of an answer: without limits of strings, and with null if the default is None."""
        if member.shown is not None and member.part is None:
            return member.shown
        schema = member.shown or member.request or {}
        if schema.get("type") == "string" and "enum" not in schema:
            schema = {name: each for name, each in schema.items() if name in {"type", "description"}}
        return or_null(schema) if name in self.nullable else schema


NAMED = Member(PLAIN_NAME, lambda value, _field, _against: value)
"""The name of a resource whose path contains it. `Resource.named` reads it."""


CHANGED: Mapping[str, Member] = {
    "createdAt": answered(INSTANT_MS),
    "createdBy": answered(ACTOR),
    "modifiedAt": answered(INSTANT_MS),
    "modifiedBy": answered(ACTOR),
}
