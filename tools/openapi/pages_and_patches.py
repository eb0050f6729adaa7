"""Schemas of pages and of merge patches. The other builders are those of sweephand.base.json_schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sweephand.base.json_schema import NULL, Members, Schema, answer, items, or_null, ref, text


def page(of: str, more: Members | None = None, absent: Iterable[str] = ()) -> Schema:
    """Returns the schema of a page of a list. absent: the members of `more` that may be missing."""
    cursor = text(description="Send it as `cursor`, with the same query, to get the next page; null on the last page.")
    return answer({"items": items(ref(of)), "nextCursor": or_null(cursor), **(more or {})}, absent)


def patch_of(schema: Schema, schemas: Mapping[str, Schema], *, removable: bool = True) -> Schema:
    """Returns the schema of a merge patch (RFC 7396): nothing is required, null removes, lists are replaced."""
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
            return {"anyOf": forms}  # a string replaces an object, and the other way round
        members = _members_of_all(forms)
    # A null is also accepted for a member that does not exist.
    patch = {"type": "object", "properties": members, "additionalProperties": NULL}
    return or_null(patch) if removable else patch


def _members_of_all(forms: Iterable[Schema]) -> dict[str, Schema]:
    """Returns the members of all forms, for a patch that turns one form into another.

    If two forms differ, either schema is accepted. Null removes a member that the new form does not have.
    """
    forms = list(forms)
    either: dict[str, list[Schema]] = {}
    for form in forms:
        for name, each in form["properties"].items():
            schemas = either.setdefault(name, [])
            schemas.extend([each] if each not in schemas else [])
    members = {name: each[0] if len(each) == 1 else {"anyOf": each} for name, each in either.items()}
    common = set.intersection(*(set(form["properties"]) for form in forms))
    return {name: each if name in common else or_null(each) for name, each in members.items()}
