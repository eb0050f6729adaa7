"""Makes the table action x authentication x outcome of docs/actions.md, from the marks of the tests for each cell.

A test has `@pytest.mark.action("http", "basic", "success")`; several kinds of action are separated by spaces. Files are
read, not imported. A cell without a test is an error, so that every new kind or type has a test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from sweephand.actions import KINDS

ROOT = Path(__file__).resolve().parent.parent
OUTCOMES = ("success", "wait", "failure", "silence", "unreachable", "unproven")
Cell = tuple[str, str, str]


def action_table() -> str:
    """Returns the table, in which each cell names a test. Raises ValueError for an empty or unknown cell."""
    found: dict[Cell, str] = {}
    for cell, test in marked():
        found.setdefault(cell, test)
    wanted = [(name, how) for name, kind in KINDS.items() for how in kind.shows]
    cells = [(kind, how, outcome) for kind, how in wanted for outcome in OUTCOMES]
    empty = [cell for cell in cells if cell not in found and why_never(cell) is None]
    strange = [cell for cell in found if cell not in cells]
    if empty or strange:
        mark = '@pytest.mark.action("kind", "authentication", "outcome")'
        raise ValueError(f"docs/actions.md: add a test with {mark} for {empty}; these cells do not exist: {strange}")
    lines = [f"| Action | Authentication | {' | '.join(OUTCOMES)} |", "| --- | --- |" + " --- |" * len(OUTCOMES)]
    for kind, how in wanted:
        told = (_told(found, (kind, how, outcome)) for outcome in OUTCOMES)
        lines.append(f"| `{kind}` | {how} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def why_never(cell: Cell) -> str | None:
    """Returns why a cell cannot exist, from the class of the kind."""
    kind, how, outcome = cell
    never = KINDS[kind].never
    return never.get(outcome) or never.get(f"{how} {outcome}")


def marked() -> Iterator[tuple[Cell, str]]:
    """Yields the cell and the name of the test of every mark, in the order of the files."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.action(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for decorator in node.decorator_list:
                    yield from ((cell, node.name) for cell in _cells(decorator))


def _cells(decorator: ast.expr) -> Iterator[Cell]:
    """Yields the cells of a mark on the test or on one of its parameters."""
    for node in ast.walk(decorator):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.action":
            kinds, how, outcome = (ast.literal_eval(argument) for argument in node.args)
            yield from ((kind, how, outcome) for kind in kinds.split())


def _told(found: dict[Cell, str], cell: Cell) -> str:
    if cell not in found:
        return f"({why_never(cell)})"
    return found[cell].removeprefix("test_").replace("_", " ")
