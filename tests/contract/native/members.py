"""Every member that a request may bring, from the schemas of openapi.json, such as `Tenant.quota.maxJobs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sweephand.server.facades.native.routes import ROUTES
from tools.openapi.schemas import SCHEMAS


def all_members() -> set[str]:
    """Returns all members by the name of their schema. Members that only answers have are passed over."""
    found: set[str] = set()
    seen: set[str] = set()
    for route in ROUTES.all:
        if route.takes and not route.takes.endswith("Patch"):
            found |= set(_of(route.takes, seen))
    return found


def _of(name: str, seen: set[str]) -> Iterator[str]:
    if name in seen:
        return
    seen.add(name)
    place = name.removesuffix("Replacement").removesuffix("Draft").replace("SchedulePolicies", "Policies")
    yield from _inside(place, SCHEMAS[name], seen)


def _inside(place: str, schema: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    if "$ref" in schema:
        yield from _of(schema["$ref"].rpartition("/")[2], seen)
    for name, each in schema.get("properties", {}).items():
        if not each.get("readOnly"):
            kind = _kind(schema)
            yield f"{place}{kind}.{name}"
            yield from _inside(f"{place}{kind}.{name}", each, seen)
    for form in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _inside(place, form, seen)
    if isinstance(schema.get("items"), Mapping):
        yield from _inside(place, schema["items"], seen)


def _kind(schema: Mapping[str, Any]) -> str:
    """Returns the kind; for a member of several forms: its type."""
    kind = schema.get("properties", {}).get("type", {}).get("const")
    return f"[{kind}]" if kind else ""
