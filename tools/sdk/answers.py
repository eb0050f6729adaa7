"""Makes the SDK's modules with a class for each answer and for each error code."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.server.facades.native.problems import STATUS
from tools.sdk.document import MADE, Document, name_of

WITH_A_PLAN = frozenset({"PLAN_STALE", "TOO_MANY_DELETES"})
"""Codes of problems that contain the current plan of a job set."""


def models(document: Document) -> str:
    """Returns the source of the module with all answers."""
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
            lines.append(f"    {name_of(member)}: {kind}")
            table.append(f'"{name_of(member)}": ("{member}", {_later(reading, seen)}),')
        lines += ["    members = {", *table, "}"]
        seen.append(name)
    return "\n".join(lines) + "\n"


def _later(reading: str | None, seen: Sequence[str]) -> str:
    """Returns the function that reads a member, in a lambda if its class comes later in the module."""
    if reading is None or "." not in reading or reading.partition(".")[0] in seen:
        return str(reading)
    return f"lambda json: {reading}(json)"


def _by_need(document: Document) -> list[str]:
    """Returns the names of the classes, each after the classes it needs."""
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
    """Returns the source of the module with a class for each code."""
    lines = [
        f'"""An error for each code of the service. {MADE}"""',
        "from __future__ import annotations",
        "from collections.abc import Mapping",
        "from sweephand.sdk.errors import ApiError, PlanRefused",
    ]
    classes = {code: "".join(word.capitalize() for word in code.split("_")) for code in STATUS}
    for code, (status, title) in STATUS.items():
        base = "PlanRefused" if code in WITH_A_PLAN else "ApiError"
        lines += ["", "", f"class {classes[code]}({base}):", f'    """{status}: {title[0].lower()}{title[1:]}."""']
        lines += [f'    code = "{code}"']
    table = ", ".join(f'"{code}": {name}' for code, name in classes.items())
    lines += ["", "", f"BY_CODE: Mapping[str, type[ApiError]] = {{{table}}}"]
    return "\n".join(lines) + "\n"
