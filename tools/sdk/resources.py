"""Makes the SDK's modules with the methods of the resources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from tools.sdk.document import MADE, Document, class_of, name_of
from tools.sdk.methods import FIRST, ONE_OR_MORE, OWN_IDS, SEVERAL


def resource(document: Document, name: str, methods: Mapping[str, str]) -> str:
    """Returns the source of a resource's module."""
    found = [
        (verb, path, each, method)
        for verb, path, operation in _found(document, methods)
        for each, method in _of_one_or_several(document, operation, methods[operation["operationId"]])
    ]
    parts = [_method(document, *each) for each in found]
    base = "AsyncWaiting" if name == "operations" else ""
    lines = [
        f'"""`{name}`. {MADE}"""',
        "from __future__ import annotations",
        "from collections.abc import Mapping, Sequence",
        "from datetime import datetime",
        "from typing import Any",
        "from sweephand.sdk import models",
        "from sweephand.sdk.aio.caller import AsyncCaller",
        "from sweephand.sdk.aio.operations import AsyncWaiting",
        "from sweephand.sdk.aio.pages import AsyncPages",
        "from sweephand.sdk.transport.request import ABSENT, Absent, Json, Named, Request, Revision, part, several",
        "",
        f"class Async{class_of(name)}{f'({base})' if base else ''}:",
        f'    """The methods of `{name}`."""',
        *([] if base else ["    def __init__(self, caller: AsyncCaller) -> None:", "        self._caller = caller"]),
    ]
    return "\n".join([*lines, *parts]) + "\n"


def _found(document: Document, methods: Mapping[str, str]) -> list[tuple[str, str, Mapping[str, Any]]]:
    found = {operation["operationId"]: (method, path, operation) for method, path, operation in document.operations()}
    return [found[each] for each in methods]


def _of_one_or_several(
    document: Document, operation: Mapping[str, Any], name: str
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yields the operation with its method or, if it takes one thing or several, one operation for each."""
    if operation["operationId"] not in SEVERAL:
        yield operation, name
        return
    member, other, about = SEVERAL[operation["operationId"]]
    content = operation["requestBody"]["content"]["application/json"]["schema"]
    many = document.plain(document.schema(content)["properties"][member])[0]
    yield {**operation, "requestBody": _json(many["items"])}, name
    yield (
        {
            **operation,
            "operationId": "".join(word.capitalize() if n else word for n, word in enumerate(other.split("_"))),
            "description": about,
            "requestBody": _json({"properties": {member: many}, "required": [member]}),
            "responses": {"200": operation["responses"]["207"]},
        },
        other,
    )


def _json(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _part(found: re.Match[str]) -> str:
    """Returns the source of a parameter in a method's path."""
    own = OWN_IDS.get(found[1])
    return f"{{part({found[1]})}}" if own is None else f"{{part({found[1]}, '{own}')}}"


def _method(document: Document, verb: str, path: str, operation: Mapping[str, Any], name: str) -> str:
    """Returns the source of a method."""
    headers, queries = parameters(operation)
    paged = name == "list" or "cursor" in queries
    given = re.findall(r"\{(\w+)\}", path)
    body = {member: facts for member, facts in _body(document, operation).items() if member not in {*given, *queries}}
    filters = {member: facts for member, facts in queries.items() if not (paged and member in {"limit", "cursor"})}
    first = FIRST.get(operation["operationId"], ())
    needed = {
        each: (document.asking(facts["schema"], each), True) for each, facts in filters.items() if facts.get("required")
    }
    named = [_argument(member, *facts) for member, facts in (needed | body).items() if member not in first]
    named += [
        f"{name_of(each)}: {document.asking(facts['schema'], each)} | None = None"
        for each, facts in filters.items()
        if each not in needed
    ]
    named += [f"{each} | None = None" for each in ("page_size: int", "max_items: int", "cursor: str") if paged]
    named += ["if_match: Revision | None = None"] if "If-Match" in headers else []
    named += ["idempotency_key: str | None = None"] if "Idempotency-Key" in headers else []
    named += ["reason: str | None = None"] if REASON_HEADER in headers else []
    positional = [*(f"{each}: Named" for each in given), *_leading(first, needed | body)]
    signature = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    where = re.sub(r"\{(\w+)\}", _part, path)
    arguments = [f'"{verb}"', f'{"f" if given else ""}"{where}"']
    arguments += [f"query={_table(filters)}"] if filters else []
    arguments += [f"body={_table(body)}"] if body else []
    request = f"Request({', '.join([*arguments, *_options(operation, headers)])})"
    words = dict(_texts(document, operation, [*given, *body, *filters], headers, paged))
    about = _docstring(operation.get("description") or operation["summary"], words)
    if paged:
        item = _item(document, operation)
        paging = "page_size=page_size, max_items=max_items, cursor=cursor"
        head = f"    def {name}({signature}) -> AsyncPages[models.{item}]:"
        code = f"        return AsyncPages(self._caller, {request}, models.{item}, {paging})"
        return f"\n{head}\n{about}\n{code}"
    shown, reading = _answer(document, operation)
    call = f"await self._caller.json({request})"
    done = f"        {call}" if reading is None else f"        return {reading.format(call)}"
    return "\n".join(["", f"    async def {name}({signature}) -> {shown}:", about, done])


WIDTH = 110
IF_MATCH = "Changes it only if this is still its revision."
REPEATED = "A repetition with the same key within 24 hours has no further effect."
REASON_HEADER = "Sweephand-Reason"
REASON = "Why the change is made, for the change log, the ledger and events. ASCII, up to 500 characters."
OF_PAGES = {
    "page_size": "How many entries one request reads.",
    "max_items": "The most entries to return; all by default.",
    "cursor": "The `cursor` of a page, to continue after it.",
}
MOST_CHOICES = 16
"""A longer list of values is only in the reference."""


def _texts(
    document: Document, operation: Mapping[str, Any], members: Sequence[str], headers: set[str], paged: bool
) -> Iterator[tuple[str, str]]:
    """Returns each argument with its text in openapi.json."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    facts = {} if content is None else dict(document.schema(content["schema"]).get("properties", {}))
    facts |= {each["name"]: each for each in operation.get("parameters", ()) if "name" in each}
    for member in members:
        yield name_of(member), _text(document, facts[member])
    yield from OF_PAGES.items() if paged else ()
    yield from [("if_match", IF_MATCH)] if "If-Match" in headers else []
    yield from [("idempotency_key", REPEATED)] if "Idempotency-Key" in headers else []
    yield from [("reason", REASON)] if REASON_HEADER in headers else []


def _text(document: Document, facts: Mapping[str, Any]) -> str:
    """Returns the description of a member or parameter, with the values that it may have."""
    schema, _, _ = document.plain(facts.get("schema", facts))
    text: str = facts.get("description") or schema["description"]
    values = schema.get("enum") or document.plain(schema.get("items", {}))[0].get("enum", ())
    named = [f"`{each}`" for each in values if each not in {"true", "false", None}]
    if len(named) > MOST_CHOICES or all(each in text for each in named):
        return text
    return f"{text} Values: {', '.join(named)}."


def _docstring(about: str, arguments: Mapping[str, str]) -> str:
    """Returns the docstring of a method: a sentence, and one line or more for each argument."""
    if not arguments:
        return f'        """{about}"""'
    lines = [f'        """{about}', "", "        Args:"]
    for name, text in arguments.items():
        lines += wrap(
            f"{name}: {text}", WIDTH, initial_indent=" " * 12, subsequent_indent=" " * 16, break_on_hyphens=False
        )
    return "\n".join([*lines, '        """'])


def _table(members: Mapping[str, Any]) -> str:
    named = {member: name_of(member) for member in members}
    named |= {member: f"several({named[member]})" for member in ONE_OR_MORE & named.keys()}
    return "{" + ", ".join(f'"{member}": {value}' for member, value in named.items()) + "}"


def _argument(member: str, kind: str, required: bool) -> str:
    if required:
        return f"{name_of(member)}: {kind}"
    plain = kind.removesuffix(" | None")
    also = " | None" if plain != kind else ""
    return f"{name_of(member)}: {plain} | Absent{also} = ABSENT"


def _leading(first: Sequence[str], body: Mapping[str, tuple[str, bool]]) -> list[str]:
    """Returns the positional arguments. A required one makes all before it required."""
    last = max((n for n, member in enumerate(first) if body[member][1]), default=-1)
    return [_argument(member, body[member][0], n <= last) for n, member in enumerate(first)]


def _options(operation: Mapping[str, Any], headers: set[str]) -> list[str]:
    options = ["if_match=if_match"] if "If-Match" in headers else []
    options += ["reason=reason"] if REASON_HEADER in headers else []
    if "Idempotency-Key" in headers:
        options += ["keyed=True", "key=idempotency_key"]
    elif operation["operationId"] == "deleteJobs":
        options.append("repeatable=dry_run is True")
    return [*options, "acting=True"] if "Sweephand-Tenant" in headers else options


def parameters(operation: Mapping[str, Any]) -> tuple[set[str], dict[str, Mapping[str, Any]]]:
    """Returns the names of an operation's shared headers, and its query parameters by name."""
    headers = {each["$ref"].rpartition("/")[2] for each in operation.get("parameters", ()) if "$ref" in each}
    return headers, {each["name"]: each for each in operation.get("parameters", ()) if each.get("in") == "query"}


def _body(document: Document, operation: Mapping[str, Any]) -> dict[str, tuple[str, bool]]:
    """Returns the members that a caller may set in a body, each with its type and whether it is required."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return {}
    schema = document.schema(content["schema"])
    required = schema.get("required", ())
    return {
        name: (document.taking(facts, name), name in required)
        for name, facts in schema.get("properties", {}).items()
        if not document.schema(facts).get("readOnly")
    }


def _schema_of_answer(operation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for status in ("200", "201", "202"):
        content = operation["responses"].get(status, {}).get("content", {})
        if "application/json" in content:
            found: Mapping[str, Any] = content["application/json"]["schema"]
            return found
    return None


def _answer(document: Document, operation: Mapping[str, Any]) -> tuple[str, str | None]:
    """Returns the type of an answer, and the code that makes it from the JSON."""
    schema = _schema_of_answer(operation)
    if schema is None:
        return "None", None
    name = schema["$ref"].rpartition("/")[2]
    if "204" in operation["responses"]:
        document.model(name, document.schema(schema))
        return f"models.{name} | None", f"models.{name}.of({{}})"
    if name.endswith("Page"):
        return "None", None
    document.model(name, document.schema(schema))
    return f"models.{name}", f"models.{name}({{}})"


def _item(document: Document, operation: Mapping[str, Any]) -> str:
    schema = _schema_of_answer(operation)
    assert schema is not None
    page = document.schema(schema)
    name: str = page["properties"]["items"]["items"]["$ref"].rpartition("/")[2]
    document.model(name, document.schema(page["properties"]["items"]["items"]))
    return name
