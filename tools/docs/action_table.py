"""The tables action x authentication x outcome of docs/actions.md, from the marks of the tests that show each cell.

A test has `@pytest.mark.action("http", "basic", "success")`; several kinds of action are separated by spaces. Files are
read, not imported. A cell without a test is an error, so that every new kind or type has a test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from sweephand.server.actions import KINDS
from tools.docs.test_sentences import sentence

ROOT = Path(__file__).resolve().parents[2]
OUTCOMES = ("success", "wait", "failure", "silence", "unreachable", "unproven")
Cell = tuple[str, str, str]
IN_WORDS = {
    "none": "without authentication",
    "role": "with a role that the job names",
    "own": "with the permission of the stack",
    "key": "with a key in the job",
}
"""Authentication without a type of its own, in the words of headings."""


def action_table() -> str:
    """Returns a table for the actions with the same outcomes. Raises ValueError for an empty cell or an unknown one."""
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
    alike: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for kind, how in wanted:
        alike.setdefault(tuple(_told(found, (kind, how, outcome)) for outcome in OUTCOMES), []).append((kind, how))
    parts = []
    for told, pairs in alike.items():
        rows = (f"| {outcome} | {cell} |" for outcome, cell in zip(OUTCOMES, told, strict=True))
        parts += [f"### {_heading(pairs)}", "", "| Case | Test |", "| --- | --- |", *rows, ""]
    return "\n".join(parts[:-1]) + "\n"


def _heading(pairs: Sequence[tuple[str, str]]) -> str:
    """Returns the actions and their authentication in words."""
    kinds = " and ".join(dict.fromkeys(f"`{kind}`" for kind, _ in pairs))
    proofs = list(dict.fromkeys(how for _, how in pairs))
    return f"{kinds} {IN_WORDS.get(proofs[0]) or 'with ' + ', '.join(proofs)}"


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
    return sentence(found[cell])
