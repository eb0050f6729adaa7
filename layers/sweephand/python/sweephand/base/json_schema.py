"""Builders of JSON Schema 2020-12 as plain dictionaries, for actions, notations and resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

Schema = dict[str, Any]
Members = Mapping[str, Schema]
NULL: Schema = {"type": "null"}


def ref(name: str) -> Schema:
    """Returns a reference to a schema of the API's document."""
    return {"$ref": f"#/components/schemas/{name}"}


def answer(members: Members, absent: Iterable[str] = (), **more: Any) -> Schema:
    """Returns the schema of an object with exactly these members. absent: members that may be missing."""
    required = [name for name in members if name not in set(absent)]
    return {
        "type": "object",
        "properties": dict(members),
        "required": required,
        "additionalProperties": False,
        **more,
    }


def request(members: Members, required: Iterable[str] = (), **more: Any) -> Schema:
    """Returns the schema of an object with at most these members; all but the required ones may be null."""
    required = list(required)
    properties = {name: each if name in required else or_null(each) for name, each in members.items()}
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False, **more}


def or_null(schema: Schema) -> Schema:
    """Returns the schema of a value that may also be null."""
    if "$ref" in schema or "oneOf" in schema:
        return {"anyOf": [schema, NULL]}
    if "anyOf" in schema:
        return schema if NULL in schema["anyOf"] else {**schema, "anyOf": [*schema["anyOf"], NULL]}
    kinds = schema.get("type")
    if kinds is None or kinds == "null" or "null" in kinds:
        return schema
    either = {**schema, "type": [kinds, "null"]}
    return {**either, "enum": [*schema["enum"], None]} if "enum" in schema else either


def text(shortest: int | None = None, longest: int | None = None, **more: Any) -> Schema:
    """Returns the schema of a string within a range of lengths."""
    bounds = {"minLength": shortest or None, "maxLength": longest}
    return {"type": "string", **{name: value for name, value in bounds.items() if value is not None}, **more}


def whole(lowest: int = 0, highest: int | None = None, **more: Any) -> Schema:
    """Returns the schema of a whole number."""
    return {"type": "integer", "minimum": lowest, **({} if highest is None else {"maximum": highest}), **more}


def one_of(values: Iterable[str] | type[StrEnum], **more: Any) -> Schema:
    """Returns the schema of a string that is one of `values`."""
    return {"type": "string", "enum": [str(value) for value in values], **more}


def items(schema: Schema, **more: Any) -> Schema:
    """Returns the schema of a list."""
    return {"type": "array", "items": schema, **more}


INSTANT = text(format="date-time", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")
PASSED_OVER: Schema = {
    "readOnly": True,
    "description": "Part of answers. Ignored here, so that an answer can be sent back.",
}
