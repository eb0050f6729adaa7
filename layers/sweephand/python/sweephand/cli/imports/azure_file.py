"""Reads jobs of Azure Scheduler from ARM templates and from answers of its API. Pure, except for reading files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from sweephand.cli.commands.files import unreadable
from sweephand.cli.imports.arm_expressions import MOST_COPIES, Scope, Unresolved, resolve
from sweephand.cli.imports.service import Failed

COLLECTION = "microsoft.scheduler/jobcollections"
JOB = f"{COLLECTION}/jobs"
HISTORY = f"{JOB}/history"
NESTED = "microsoft.resources/deployments"
_ID = re.compile(
    r"/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/(Microsoft\.Scheduler/jobCollections)"
    r"/([^/]+)(?:/jobs/([^/]+))?(/.*)?",
    re.ASCII | re.IGNORECASE,
)


class Place(NamedTuple):
    """The names of a job, or of a collection if it has no job."""

    subscription: str
    group: str
    collection: str
    job: str | None = None

    @property
    def shown(self) -> str:
        return f"{self.collection}/{self.job}" if self.job else f"{self.collection}  (job collection)"

    @property
    def lower(self) -> Place:
        """The place in lower case, for comparing: names are not case-sensitive."""
        return Place(*(None if each is None else each.lower() for each in self))  # type: ignore[arg-type]

    @property
    def of_collection(self) -> Place:
        return self._replace(job=None)


class Found(NamedTuple):
    """A collection or job. body: as it is sent, with `location` or `properties`."""

    place: Place
    body: Mapping[str, Any]


class Problem(NamedTuple):
    """A resource that is not imported. failed: True if the user can do something about it."""

    name: str
    reason: str
    failed: bool


@dataclass(frozen=True)
class Names:
    """The names from options; without them, those in an id are used. parameters: of templates, by name."""

    subscription: str | None = None
    group: str | None = None
    location: str | None = None
    parameters: Mapping[str, Any] | None = None


def read_json(path: str) -> Any:
    """Returns the content of a file in UTF-8 or UTF-16. Raises Failed."""
    try:
        content = Path(path).read_bytes()
        value = json.loads(content.decode("utf-8-sig") if content[:3] == b"\xef\xbb\xbf" else content)
        json.dumps(value, ensure_ascii=False).encode()  # raises ValueError for a lone surrogate
    except (OSError, ValueError, RecursionError) as wrong:
        raise Failed(unreadable(path, wrong)) from wrong
    return value


def read_parameters(path: str) -> dict[str, Any]:
    """Returns the values of a parameter file, with or without ARM's outer object. Raises Failed."""
    content = read_json(path)
    inner = content.get("parameters", content) if isinstance(content, Mapping) else None
    if not isinstance(inner, Mapping) or not all(isinstance(each, Mapping) for each in inner.values()):
        raise Failed(f'{path}: must be a parameter file: {{"parameters": {{"name": {{"value": ...}}}}}}')
    return {name.lower(): each["value"] for name, each in inner.items() if "value" in each}


def found_in(content: Any, names: Names) -> Iterator[Found | Problem]:
    """Yields the resources of a file. Raises Failed if the file is neither a template nor an answer."""
    if isinstance(content, Mapping) and isinstance(content.get("resources"), list | Mapping):
        yield from _of_template(content, names)
    elif isinstance(content, Mapping) and isinstance(content.get("value"), list):
        yield from _listed(content["value"], names)
        if content.get("nextLink"):
            yield Problem("the list", "continues at its nextLink, which is not in the file", failed=True)
    elif isinstance(content, list):
        yield from _listed(content, names)
    elif isinstance(content, Mapping) and ("id" in content or "type" in content):
        yield from _listed([content], names)
    else:
        raise Failed("is neither an ARM template nor an answer of Azure Scheduler")


# Answers


def _listed(items: Sequence[Any], names: Names) -> Iterator[Found | Problem]:
    for item in items:
        if not isinstance(item, Mapping):
            yield Problem(repr(item)[:40], "is not an object", failed=True)
            continue
        yield from _one(item, names)


def _one(item: Mapping[str, Any], names: Names) -> Iterator[Found | Problem]:
    resource_id = item.get("id")
    match = _ID.fullmatch(resource_id) if isinstance(resource_id, str) else None
    if match is None or match[6]:
        yield from _typed(str(item.get("type", "")), str(item.get("name", "")), item, names)
    else:
        place = Place(names.subscription or match[1], names.group or match[2], match[4], match[5])
        yield Found(place, item)


def _typed(kind: str, name: str, body: Mapping[str, Any], names: Names) -> Iterator[Found | Problem]:
    """Yields a resource by its type and name: `collection`, or `collection/job`."""
    shown = name or "a resource without a name"
    parts = name.split("/")
    if kind.lower() == HISTORY:
        yield Problem(shown, "history is not imported", failed=False)
    elif kind.lower() == NESTED:
        yield Problem(shown, "is a nested template: import it as a file of its own", failed=True)
    elif not kind:
        yield Problem(shown, "has neither an id nor a type", failed=True)
    elif kind.lower() not in {COLLECTION, JOB}:
        yield Problem(shown, f"{kind} does not belong to Azure Scheduler", failed=False)
    elif not all(parts) or len(parts) != (1 if kind.lower() == COLLECTION else 2):
        yield Problem(shown, f"is not a valid name for {kind}", failed=True)
    elif missing := [each for each in ("subscription", "group") if getattr(names, each) is None]:
        yield Problem(shown, f"has no id: give {' and '.join(f'--{each}' for each in missing)}", failed=True)
    else:
        assert names.subscription is not None
        assert names.group is not None
        yield Found(Place(names.subscription, names.group, *parts), body)


# Templates


def _of_template(template: Mapping[str, Any], names: Names) -> Iterator[Found | Problem]:
    scope = Scope(
        definitions=_object(template, "parameters"),
        variables=_object(template, "variables"),
        parameters=names.parameters or {},
        subscription=names.subscription,
        group=names.group,
        location=names.location,
    )
    for resource in _resources(template):
        yield from _declared(resource, scope, names, "", "")


def _object(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = whole.get(name)
    return value if isinstance(value, Mapping) else {}


def _resources(whole: Mapping[str, Any]) -> list[Any]:
    """Returns the resources of a template or of a resource: a list or, in newer templates, an object by name."""
    value = whole.get("resources")
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


def _declared(resource: Any, scope: Scope, names: Names, outer_type: str, outer_name: str) -> Iterator[Found | Problem]:
    """Yields a resource and those within it, once for each copy. outer_type, outer_name: empty, or end with a slash."""
    if not isinstance(resource, Mapping):
        yield Problem("a resource", "is not an object", failed=True)
        return
    kind = f"{outer_type}{resource.get('type', '')}"
    try:
        for one in _copies(resource, scope):
            yield from _declared_once(resource, one, names, kind, outer_name)
    except Unresolved as wrong:
        yield Problem(f"{outer_name}{resource.get('name', kind)}", str(wrong), failed=_is_ours(kind))


def _declared_once(
    resource: Mapping[str, Any], scope: Scope, names: Names, kind: str, outer_name: str
) -> Iterator[Found | Problem]:
    if not _is_ours(kind):
        yield from _typed(kind, str(resource.get("name", "")), {}, names)
        return
    name = f"{outer_name}{resolve(resource.get('name', ''), scope)}"
    if "condition" in resource and not resolve(resource["condition"], scope):
        yield Problem(name, "its condition is false", failed=False)
        return
    members = ("location", "tags", "properties")
    try:
        body = resolve({member: resource[member] for member in members if member in resource}, scope)
    except Unresolved as wrong:
        yield Problem(name, str(wrong), failed=True)
    else:
        yield from _typed(kind, name, body, names)
    for inner in _resources(resource):
        yield from _declared(inner, scope, names, f"{kind}/", f"{name}/")


def _is_ours(kind: str) -> bool:
    return kind.lower() in {COLLECTION, JOB}


def _copies(resource: Mapping[str, Any], scope: Scope) -> Iterator[Scope]:
    """Yields the scope of each copy. Raises Unresolved."""
    loop = resource.get("copy")
    if not isinstance(loop, Mapping):
        yield scope
        return
    count = resolve(loop.get("count"), scope)
    if not isinstance(count, int) or not 0 <= count <= MOST_COPIES:
        raise Unresolved(f"copy.count must be a whole number up to {MOST_COPIES}")
    for n in range(count):
        yield replace(scope, index={**scope.index, "": n, str(loop.get("name", "")).lower(): n})
