"""`make sdk`: writes the parts of the SDK that are made, from openapi.json and from its own asyncio half.

- `models.py`, `api_errors.py` and `aio/resources/`, from the description of the API and the closed table of codes;
- `sync/`, from `aio/` by replacing words.

All of it is checked in. tests/unit/sdk/test_generated.py fails if a file differs from what this makes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "layers" / "sweephand" / "python"
sys.path[:0] = [str(PACKAGE)]

from sweephand.facades.native.document import FILE  # noqa: E402
from sweephand.facades.native.problems import STATUS  # noqa: E402
from sweephand.sdk.model import snake  # noqa: E402

SDK = PACKAGE / "sweephand" / "sdk"
RUFF = ROOT / ".venv" / "bin" / "ruff"
MADE = "Made by .ci/sdk.py: change that, or its source, and run `make sdk`."

METHODS: Mapping[str, Mapping[str, str]] = {
    "applications": {"registerApplication": "register"},
    "jobs": {
        "createJob": "create",
        "listJobs": "list",
        "readJob": "get",
        "putJob": "put",
        "patchJob": "patch",
        "deleteJob": "delete",
        "deleteJobs": "delete_matching",
        "runJob": "run",
        "pauseJob": "pause",
        "resumeJob": "resume",
        "activateJob": "activate",
        "deactivateJob": "deactivate",
        "activateJobs": "activate_matching",
        "deactivateJobs": "deactivate_matching",
        "pauseJobs": "pause_matching",
        "resumeJobs": "resume_matching",
        "nextRun": "next",
        "occurrences": "occurrences",
        "listChanges": "changes",
    },
    "schedules": {
        "createSchedule": "create",
        "listSchedules": "list",
        "readSchedule": "get",
        "putSchedule": "put",
        "patchSchedule": "patch",
        "deleteSchedule": "delete",
        "activateSchedule": "activate",
        "deactivateSchedule": "deactivate",
        "explainSchedule": "explain",
        "previewSchedule": "preview",
    },
    "runs": {
        "listRuns": "list",
        "readRun": "get",
        "putResult": "report",
        "giveBack": "nack",
        "cancelRun": "cancel",
        "rerunRun": "rerun",
        "beginExportFiles": "export",
        "claimRun": "claim",
        "heartbeatRun": "heartbeat",
        "settleRun": "settle",
    },
    "errors": {
        "listErrors": "list",
        "readError": "get",
        "listErrorRuns": "runs",
        "readErrorSummary": "summary",
        "addNote": "add_note",
        "archiveError": "archive",
        "restoreError": "restore",
        "archiveErrorRun": "archive_run",
        "restoreErrorRun": "restore_run",
        "redriveErrors": "redrive",
    },
    "error_redirects": {"listRedirects": "list", "putRedirect": "put", "deleteRedirect": "delete"},
    "operations": {
        "listOperations": "list",
        "readOperation": "get",
        "pauseOperation": "pause",
        "resumeOperation": "resume",
        "cancelOperation": "cancel",
    },
    "collections": {
        "createCollection": "create",
        "listCollections": "list",
        "readCollection": "get",
        "putCollection": "put",
        "patchCollection": "patch",
        "deleteCollection": "delete",
        "enableCollection": "enable",
        "disableCollection": "disable",
    },
    "overview": {
        "readTimeline": "timeline",
        "readTimelineChanges": "changes",
        "readLoad": "load",
        "listAttention": "attention",
    },
    "signing_keys": {"createSigningKey": "create", "listSigningKeys": "list", "deleteSigningKey": "delete"},
    "job_sets": {
        "listJobSets": "list",
        "readJobSet": "get",
        "putJobSet": "put",
        "deleteJobSet": "delete",
    },
    "consumers": {
        "listConsumers": "list",
        "readConsumer": "get",
        "deleteConsumer": "delete",
        "takeLease": "take_lease",
        "releaseLease": "release_lease",
        "startConsumer": "start",
    },
    "calendars": {
        "createCalendars": "create",
        "listCalendars": "list",
        "readCalendars": "get",
        "putCalendars": "put",
        "deleteCalendars": "delete",
        "listVersions": "versions",
        "readVersion": "get_version",
    },
    "flow_keys": {
        "createFlowKeys": "create",
        "listFlowKeys": "list",
        "readFlowKeys": "get",
        "putFlowKeys": "put",
        "patchFlowKeys": "patch",
        "deleteFlowKeys": "delete",
        "pauseFlowKeys": "pause",
        "resumeFlowKeys": "resume",
    },
    "credentials": {
        "createCredentials": "create",
        "listCredentials": "list",
        "rotateCredentials": "rotate",
        "endFormerSecret": "end_former_secret",
        "deleteCredentials": "delete",
    },
    "tenants": {
        "createTenant": "create",
        "listTenants": "list",
        "readTenant": "get",
        "patchTenant": "patch",
        "deleteTenant": "delete",
        "enableTenant": "enable",
        "disableTenant": "disable",
    },
    "subscriptions": {
        "listSubscriptions": "list",
        "subscribeTenant": "subscribe",
        "unsubscribeTenant": "unsubscribe",
    },
    "service": {"health": "health"},
}
"""The methods: resource -> operation -> name."""

LEFT_OUT = {
    "readDocument": "the SDK is made of it",
    "exportRuns": "its rows are those of runs.list; runs.export makes a file of them",
    "readKeys": "for who verifies the stack's tokens",
    "readConfiguration": "for who verifies the stack's tokens",
    "listProblems": "pages for people; ApiError.help leads to them",
    "readProblem": "pages for people; ApiError.help leads to them",
    "token": "the SDK identifies itself by Basic",
}
"""Operations without a method, each with its reason."""

FIRST = {"createJob": ("name", "action", "schedules"), "addNote": ("text",), "putRedirect": ("to",)}
"""Members of a body that may be given without their names."""
ONE_OR_MORE = {"schedules"}
"""Members with an array of which one element may be given alone."""
PATTERN_OF_INSTANTS = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
WORDS = (
    ("sweephand.sdk.clocks", "sweephand.sources"),
    ("sweephand.sdk.aio", "sweephand.sdk.sync"),
    ("async def", "def"),
    ("async with", "with"),
    ("async for", "for"),
    ("await ", ""),
    ("AsyncIterator", "Iterator"),
    ("__aiter__", "__iter__"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
    ("aclose", "close"),
    ("Awaitable[T]", "T"),
    ("Awaitable[None]", "None"),
)
ASYNC_NAME = re.compile(r"\bAsync([A-Z])")


@dataclass
class Document:
    """The description of the API. models: the classes that answers need, by name, with their schemas."""

    told: Mapping[str, Any]
    models: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def schema(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the schema that a reference leads to; any other as it is."""
        found: Mapping[str, Any] = given
        while "$ref" in found:
            found = self.told["components"]["schemas"][found["$ref"].rpartition("/")[2]]
        return found

    def plain(self, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None, bool]:
        """Returns a schema without null and without references, its name if it has one, and whether it may be null."""
        name = given["$ref"].rpartition("/")[2] if "$ref" in given else None
        found, nullable = self.schema(given), False
        kinds = found.get("type")
        if isinstance(kinds, list):
            nullable = "null" in kinds
            kinds = [kind for kind in kinds if kind != "null"]
            return {**found, "type": kinds[0] if len(kinds) == 1 else kinds}, name, nullable
        if kinds == "null":
            return {}, None, True
        choices = found.get("anyOf", [])
        if {"type": "null"} in choices and len(choices) == 2:
            (other,) = (each for each in choices if each != {"type": "null"})
            inner, name, _ = self.plain(other)
            return inner, name, True
        return found, name, nullable

    def operations(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        for path, methods in self.told["paths"].items():
            for method, operation in methods.items():
                yield method.upper(), path, operation

    # Answers

    def reading(self, given: Mapping[str, Any], parent: str, member: str) -> tuple[str, str | None]:
        """Returns the type of a member of an answer, and the function that reads it from JSON."""
        schema, name, nullable = self.plain(given)
        also = " | None" if nullable else ""
        kind = schema.get("type")
        if kind == "string":
            instant = schema.get("format") == "date-time"
            return (f"datetime{also}", "instant") if instant else (f"str{also}", None)
        if kind in {"integer", "number", "boolean"}:
            return {"integer": "int", "number": "float", "boolean": "bool"}[kind] + also, None
        if kind == "array":
            inner, reading = self.reading(schema.get("items", {}), parent, member.removesuffix("s"))
            if reading is not None and reading.endswith(".of"):
                return f"tuple[{inner.removesuffix(' | None')}, ...]{also}", f"{reading.removesuffix('.of')}.all_of"
            return f"tuple[{inner}, ...]{also}", "instants" if reading == "instant" else "tuple"
        if (merged := self._members(schema)) is not None:
            chosen = (name or f"{parent}{member[0].upper()}{member[1:]}").removeprefix("Shown")
            self.model(chosen, merged)
            return f"{chosen}{also}", f"{chosen}.of"
        return ("Any", None) if kind != "object" else (f"Mapping[str, Any]{also}", None)

    def model(self, name: str, schema: Mapping[str, Any]) -> None:
        """Notes the class of an answer, with the classes that it needs."""
        if name in self.models:
            return
        self.models[name] = schema
        for member, facts in schema["properties"].items():
            self.reading(facts, name, member)

    def _members(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Returns an object's schema; of several kinds of one, the members of all, none of them required."""
        if "properties" in schema:
            return schema
        kinds = [self.plain(each)[0] for each in schema.get("oneOf", ())]
        if not kinds or not all("properties" in kind for kind in kinds):
            return None
        return {"properties": {name: facts for kind in reversed(kinds) for name, facts in kind["properties"].items()}}

    # Requests

    def taking(self, given: Mapping[str, Any], member: str) -> str:
        """Returns the type of a member of a body."""
        schema, _, nullable = self.plain(given)
        also = " | None" if nullable else ""
        kind = schema.get("type")
        if kind == "string":
            instant = schema.get("pattern", "").startswith(PATTERN_OF_INSTANTS) or schema.get("format") == "date-time"
            return ("datetime | str" if instant else "str") + also
        if kind in {"integer", "number", "boolean"}:
            return {"integer": "int", "number": "float", "boolean": "bool"}[kind] + also
        if kind == "array":
            inner = self.taking(schema.get("items", {}), member)
            return (f"{inner} | Sequence[{inner}]" if member in ONE_OR_MORE else f"Sequence[{inner}]") + also
        if kind == "object" or self._members(schema) is not None:
            return f"Json{also}"
        return "Any"

    def asking(self, given: Mapping[str, Any], name: str) -> str:
        """Returns the type of a parameter of a query."""
        schema = self.schema(given)
        if set(schema.get("enum", ())) == {"true", "false"}:
            return "bool"
        if name.endswith("Id") and name != "resourceId":
            return "Named"
        if name == "include":
            return "str | Sequence[str]"
        return self.taking(schema, name)


def models(document: Document) -> str:
    """Returns the module of all answers."""
    lines = [
        f'"""The answers of the service. {MADE}"""',
        "from __future__ import annotations",
        "from collections.abc import Mapping",
        "from datetime import datetime",
        "from typing import Any",
        "from sweephand.sdk.model import Model, instant, instants",
    ]
    seen: list[str] = []
    for name in _by_need(document):
        schema, required = document.models[name], document.models[name].get("required", ())
        lines += ["", "", f"class {name}(Model):", "    __slots__ = ()"]
        table = []
        for member, facts in schema["properties"].items():
            kind, reading = document.reading(facts, name, member)
            if member not in required and not kind.endswith(" | None") and kind != "Any":
                kind += " | None"
            lines.append(f"    {_name(member)}: {kind}")
            table.append(f'"{_name(member)}": ("{member}", {_later(reading, seen)}),')
        lines += ["    members = {", *table, "}"]
        seen.append(name)
    return "\n".join(lines) + "\n"


def _later(reading: str | None, seen: Sequence[str]) -> str:
    """Returns the function that reads a member; of a class that comes later in the module, through a lambda."""
    if reading is None or "." not in reading or reading.partition(".")[0] in seen:
        return str(reading)
    return f"lambda json: {reading}(json)"


def _by_need(document: Document) -> list[str]:
    """Returns the names of the classes, each after those that it needs."""
    done: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in done or name in above:
            return
        for member, facts in document.models[name]["properties"].items():
            reading = document.reading(facts, name, member)[1]
            if reading is not None and "." in reading:
                visit(reading.partition(".")[0], (*above, name))
        done.append(name)

    for name in sorted(document.models):
        visit(name, ())
    return done


def api_errors() -> str:
    """Returns the module with a class for each code."""
    lines = [
        f'"""An error for each code of the service. {MADE}"""',
        "from __future__ import annotations",
        "from collections.abc import Mapping",
        "from sweephand.sdk.errors import ApiError",
    ]
    classes = {code: "".join(word.capitalize() for word in code.split("_")) for code in STATUS}
    for code, (status, title) in STATUS.items():
        lines += ["", "", f"class {classes[code]}(ApiError):", f'    """{status}: {title[0].lower()}{title[1:]}."""']
        lines += [f'    code = "{code}"']
    table = ", ".join(f'"{code}": {name}' for code, name in classes.items())
    lines += ["", "", f"BY_CODE: Mapping[str, type[ApiError]] = {{{table}}}"]
    return "\n".join(lines) + "\n"


def resource(document: Document, name: str, methods: Mapping[str, str]) -> str:
    """Returns the module of a resource."""
    parts = [_method(document, *found, methods[found[2]["operationId"]]) for found in _found(document, methods)]
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
        "from sweephand.sdk.request import ABSENT, Absent, Json, Named, Request, Revision, part, several",
        "",
        f"class Async{_class(name)}{f'({base})' if base else ''}:",
        f'    """The methods of `{name}`."""',
        *([] if base else ["    def __init__(self, caller: AsyncCaller) -> None:", "        self._caller = caller"]),
    ]
    return "\n".join([*lines, *parts]) + "\n"


def _found(document: Document, methods: Mapping[str, str]) -> list[tuple[str, str, Mapping[str, Any]]]:
    found = {operation["operationId"]: (method, path, operation) for method, path, operation in document.operations()}
    return [found[each] for each in methods]


def _method(document: Document, verb: str, path: str, operation: Mapping[str, Any], name: str) -> str:
    """Returns a method's text."""
    headers, queries = _parameters(operation)
    paged = name == "list" or "cursor" in queries
    given = re.findall(r"\{(\w+)\}", path)
    body = {member: facts for member, facts in _body(document, operation).items() if member not in given}
    asked = {member: facts for member, facts in queries.items() if not (paged and member in {"limit", "cursor"})}
    first = FIRST.get(operation["operationId"], ())
    named = [_argument(member, *facts) for member, facts in body.items() if member not in first]
    named += [f"{_name(each)}: {document.asking(facts['schema'], each)} | None = None" for each, facts in asked.items()]
    named += [f"{each} | None = None" for each in ("page_size: int", "max_items: int", "cursor: str") if paged]
    named += ["if_match: Revision | None = None"] if "If-Match" in headers else []
    named += ["idempotency_key: str | None = None"] if "Idempotency-Key" in headers else []
    positional = [*(f"{each}: Named" for each in given), *_leading(first, body)]
    signature = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    where = re.sub(r"\{(\w+)\}", r"{part(\1)}", path)
    arguments = [f'"{verb}"', f'{"f" if given else ""}"{where}"']
    arguments += [f"query={_table(asked)}"] if asked else []
    arguments += [f"body={_table(body)}"] if body else []
    request = f"Request({', '.join([*arguments, *_options(operation, headers)])})"
    about = f'        """{operation.get("description") or operation["summary"]}"""'
    if paged:
        item = _item(document, operation)
        paging = "page_size=page_size, max_items=max_items, cursor=cursor"
        head = f"    def {name}({signature}) -> AsyncPages[models.{item}]:"
        made_of = f"        return AsyncPages(self._caller, {request}, models.{item}, {paging})"
        return f"\n{head}\n{about}\n{made_of}"
    shown, reading = _answer(document, operation)
    call = f"await self._caller.json({request})"
    done = f"        {call}" if reading is None else f"        return {reading.format(call)}"
    return "\n".join(["", f"    async def {name}({signature}) -> {shown}:", about, done])


def _table(members: Mapping[str, Any]) -> str:
    named = {member: _name(member) for member in members}
    named |= {member: f"several({named[member]})" for member in ONE_OR_MORE & named.keys()}
    return "{" + ", ".join(f'"{member}": {value}' for member, value in named.items()) + "}"


def _argument(member: str, kind: str, required: bool) -> str:
    if required:
        return f"{_name(member)}: {kind}"
    plain = kind.removesuffix(" | None")
    also = " | None" if plain != kind else ""
    return f"{_name(member)}: {plain} | Absent{also} = ABSENT"


def _leading(first: Sequence[str], body: Mapping[str, tuple[str, bool]]) -> list[str]:
    """Returns the arguments that may be given without their names. A required one makes those before it required."""
    last = max((n for n, member in enumerate(first) if body[member][1]), default=-1)
    return [_argument(member, body[member][0], n <= last) for n, member in enumerate(first)]


def _options(operation: Mapping[str, Any], headers: set[str]) -> list[str]:
    options = ["if_match=if_match"] if "If-Match" in headers else []
    if "Idempotency-Key" in headers:
        options += ["keyed=True", "key=idempotency_key"]
    elif operation["operationId"] == "deleteJobs":
        options.append("repeatable=dry_run is True")
    return [*options, "acting=True"] if "Sweephand-Tenant" in headers else options


def _parameters(operation: Mapping[str, Any]) -> tuple[set[str], dict[str, Mapping[str, Any]]]:
    headers = {each["$ref"].rpartition("/")[2] for each in operation.get("parameters", ()) if "$ref" in each}
    return headers, {each["name"]: each for each in operation.get("parameters", ()) if each.get("in") == "query"}


def _body(document: Document, operation: Mapping[str, Any]) -> dict[str, tuple[str, bool]]:
    """Returns the members of a body that a caller may give: type, and whether it must be there."""
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
    """Returns the type of an answer, and how it is made of the JSON."""
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


def _name(member: str) -> str:
    name = snake(member)
    return f"{name}_" if name in {"from", "in", "is", "not", "global"} else name


def _class(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def in_turn(text: str) -> str:
    """Returns the blocking form of a module of `aio`."""
    for word, other in WORDS:
        text = text.replace(word, other)
    return ASYNC_NAME.sub(r"\1", text)


def made() -> dict[Path, str]:
    """Returns each made file with its text."""
    document = Document(json.loads(FILE.read_text(encoding="utf-8")))
    files = {Path("aio/resources") / f"{name}.py": resource(document, name, each) for name, each in METHODS.items()}
    files[Path("models.py")] = models(document)
    files[Path("api_errors.py")] = api_errors()
    files = _formed(files)
    own = {path.relative_to(SDK): path.read_text() for path in SDK.glob("aio/*.py")}
    halves = {path: text for path, text in (own | files).items() if path.parts[0] == "aio"}
    note = '"""Made from {} by .ci/sdk.py."""\n'
    blocking = {
        Path("sync", *path.parts[1:]): in_turn(text if text.strip() else note.format(path.as_posix()))
        for path, text in halves.items()
    }
    files |= _formed(blocking)
    return {SDK / path: text for path, text in files.items()}


def _formed(files: Mapping[Path, str]) -> dict[Path, str]:
    """Returns the files as ruff writes them: imports in order, without those that are not used."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_text(text)
        rules = ["--config", str(ROOT / "pyproject.toml"), "--config", 'lint.isort.known-first-party = ["sweephand"]']
        for command in (["check", "--fix-only", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
            subprocess.run([str(RUFF), *command, *rules, folder], check=True)  # noqa: S603 - of this repository
        return {path: (Path(folder) / path).read_text() for path in files}


def main(arguments: list[str]) -> int:
    files = made()
    differ = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    known = {*files, *SDK.glob("aio/*.py")}
    left = [path for half in ("aio", "sync") for path in (SDK / half).rglob("*.py") if path not in known]
    strays = [path for path in left if path.parent.name != "resources" or path.name != "__init__.py"]
    for path in [*differ, *strays]:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    if "--check" in arguments:
        return 1 if differ or strays else 0
    for path in differ:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path])
    for path in strays:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
