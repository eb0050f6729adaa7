"""How the schemas of schemas.py are put together: JSON Schema 2020-12 as plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

Schema = dict[str, Any]
Members = Mapping[str, Schema]
NULL: Schema = {"type": "null"}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def answer(members: Members, absent: Iterable[str] = (), **more: Any) -> Schema:
    """An object of exactly these members. absent: those that may be missing."""
    required = [name for name in members if name not in set(absent)]
    return {
        "type": "object",
        "properties": dict(members),
        "required": required,
        "additionalProperties": False,
        **more,
    }


def request(members: Members, required: Iterable[str] = (), **more: Any) -> Schema:
    """An object of these members at most; all but the required ones may be null."""
    required = list(required)
    properties = {name: each if name in required else or_null(each) for name, each in members.items()}
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False, **more}


def or_null(schema: Schema) -> Schema:
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
    bounds = {"minLength": shortest or None, "maxLength": longest}
    return {"type": "string", **{name: value for name, value in bounds.items() if value is not None}, **more}


def whole(lowest: int = 0, highest: int | None = None, **more: Any) -> Schema:
    return {"type": "integer", "minimum": lowest, **({} if highest is None else {"maximum": highest}), **more}


def one_of(values: Iterable[str] | type[StrEnum], **more: Any) -> Schema:
    return {"type": "string", "enum": [str(value) for value in values], **more}


def items(schema: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": schema, **more}


def page(of: str, more: Members | None = None, absent: Iterable[str] = ()) -> Schema:
    """A page of a list. absent: of `more`, what may be missing."""
    cursor = text(description="Give it back as `cursor`, with the same query; null at the end.")
    return answer({"items": items(ref(of)), "nextCursor": or_null(cursor), **(more or {})}, absent)


def patch_of(schema: Schema, schemas: Mapping[str, Schema], *, removable: bool = True) -> Schema:
    """Of an object's schema, that of a merge patch (RFC 7396): nothing is required, null removes, lists are whole."""
    if "$ref" in schema:
        return patch_of(schemas[schema["$ref"].rpartition("/")[2]], schemas, removable=removable)
    if "anyOf" in schema:
        forms = [each for each in schema["anyOf"] if each != NULL]
        if len(forms) == 1:
            return patch_of(forms[0], schemas, removable=removable)
        schema = {**schema, "anyOf": forms}
    if "properties" not in schema and "oneOf" not in schema:
        if "additionalProperties" in schema:
            schema = {**schema, "additionalProperties": or_null(schema["additionalProperties"])}
        return or_null(schema) if removable else schema
    if "properties" in schema:
        needed = schema.get("required", ())
        members = {
            name: patch_of(each, schemas, removable=name not in needed) for name, each in schema["properties"].items()
        }
    else:
        forms = [patch_of(form, schemas) for form in schema["oneOf"]]
        if not all("properties" in form for form in forms):
            return {"anyOf": forms}  # a text or an object: the one replaces the other
        members = _members_of_all(forms)
    # A null removes a member that is not there, whatever its name.
    patch = {"type": "object", "properties": members, "additionalProperties": NULL}
    return or_null(patch) if removable else patch


def _members_of_all(forms: Iterable[Schema]) -> dict[str, Schema]:
    """The members of several forms: of a patch that may turn one into another. Where two differ, either."""
    either: dict[str, list[Schema]] = {}
    for form in forms:
        for name, each in form["properties"].items():
            there = either.setdefault(name, [])
            there.extend([each] if each not in there else [])
    return {name: each[0] if len(each) == 1 else {"anyOf": each} for name, each in either.items()}
