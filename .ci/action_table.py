"""The table action x authentication x outcome of docs/actions.md, from the marks of the tests that show each cell.

A test says `@pytest.mark.action("http", "basic", "success")`; several kinds of action are parted by blanks. Files are
read, not imported. A cell that no test shows is an error: whoever adds a kind or a type shows what becomes of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from sweephand.actions import KINDS
from sweephand.actions.authentication import TYPES

ROOT = Path(__file__).resolve().parent.parent
OUTCOMES = ("success", "wait", "failure", "silence", "unreachable", "unproven")
ROLE, OWN, KEY = "role", "own", "key"
BESIDE_HTTP = {
    **dict.fromkeys(("sqs", "sns", "events", "lambda", "states"), ROLE),
    **dict.fromkeys(("ecs", "event", "job"), OWN),
    **dict.fromkeys(("azure_storage_queue", "azure_service_bus_queue", "azure_service_bus_topic"), KEY),
}
NEVER = {
    ("http", "none", "unproven"): "nothing is shown",
    **{(kind, OWN, "unproven"): "the stack's own" for kind in ("ecs", "event", "job")},
    ("job", OWN, "silence"): "nothing is waited for",
    ("job", OWN, "wait"): "nothing is waited for",
    ("job", OWN, "unreachable"): "the other job is found in the service's own table",
}
"""Cells of what cannot be."""
Cell = tuple[str, str, str]


def action_table() -> str:
    """Each cell names a test. Raises ValueError for an empty cell, a mark that is none, or a kind without a line."""
    found: dict[Cell, str] = {}
    for cell, test in marked():
        found.setdefault(cell, test)
    wanted = [(kind, how) for kind, how in rows()]
    cells = [(kind, how, outcome) for kind, how in wanted for outcome in OUTCOMES]
    empty = [cell for cell in cells if cell not in found and cell not in NEVER]
    strange = [cell for cell in found if cell not in cells]
    if empty or strange:
        raise ValueError(f"docs/actions.md: no test shows {empty}; there is no cell {strange}")
    lines = [f"| Action | Authentication | {' | '.join(OUTCOMES)} |", "| --- | --- |" + " --- |" * len(OUTCOMES)]
    for kind, how in wanted:
        told = (_told(found, (kind, how, outcome)) for outcome in OUTCOMES)
        lines.append(f"| `{kind}` | {how} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def rows() -> Iterator[tuple[str, str]]:
    for kind in KINDS:
        if kind == "http":
            yield from ((kind, how) for how in TYPES)
        elif kind in BESIDE_HTTP:
            yield kind, BESIDE_HTTP[kind]
        else:
            raise ValueError(f"docs/actions.md: say in {Path(__file__).name} how {kind} shows who it is")


def marked() -> Iterator[tuple[Cell, str]]:
    """(cell, name of a test) of every mark, in the order of the files."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.action(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for decorator in node.decorator_list:
                    yield from ((cell, node.name) for cell in _cells(decorator))


def _cells(decorator: ast.expr) -> Iterator[Cell]:
    """Of a mark of the test itself, or of one of its parameters."""
    for node in ast.walk(decorator):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.action":
            kinds, how, outcome = (ast.literal_eval(argument) for argument in node.args)
            yield from ((kind, how, outcome) for kind in kinds.split())


def _told(found: dict[Cell, str], cell: Cell) -> str:
    if cell not in found:
        return f"({NEVER[cell]})"
    return found[cell].removeprefix("test_").replace("_", " ")
