"""Failures, what a user then sees, and the tests that show it: each with a mutant that it alone must notice.

The tables are in promises.toml; `make docs` writes them into docs/reference/faults.md and data.md.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLES = Path(__file__).with_name("promises.toml")
ROOT = TABLES.parents[2]


@dataclass(frozen=True)
class Shown:
    """test: `tests/unit/server/flow/test_x.py::test_y`. mutant: its whole name, which that test notices."""

    test: str
    mutant: str


@dataclass(frozen=True)
class Line:
    """what: goes wrong, or is kept. seen: by a user, or for how long. part: the heading above it, if any."""

    what: str
    seen: str
    shown: tuple[Shown, ...]
    part: str = ""


@cache
def tables() -> dict[str, tuple[Line, ...]]:
    """Raises ValueError for a line with an empty cell."""
    found = {}
    for name, lines in tomllib.loads(TABLES.read_text(encoding="utf-8")).items():
        read = tuple(
            Line(
                *(line["what"], line["seen"], tuple(Shown(test, mutant) for test, mutant in line["shown"])),
                part=line.get("part", ""),
            )
            for line in lines
        )
        empty = [line.what for line in read if not (line.what and line.seen and line.shown)]
        if empty:
            raise ValueError(f"promises.toml: nothing is said, or no test shows it: {empty}")
        found[name] = read
    return found


def all_shown() -> Iterator[Shown]:
    for lines in tables().values():
        for line in lines:
            yield from line.shown


def is_there(test: str) -> bool:
    """Tells whether there is such a test."""
    file, _, name = test.partition("::")
    path = ROOT / file
    if not path.exists():
        return False
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)
