"""Readers of plain members, made of their schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sweephand.domain.members import fields as reading
from sweephand.json_schema import Schema
from sweephand.schedules.text.instants import SCHEMA as INSTANT_SCHEMA
from sweephand.schedules.text.instants import parse_instant

Read = Callable[[Any, str, Any], Any]
"""Takes the value, its path and what the request is read against. Raises InvalidRequest."""


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
