"""Makes the tables of failures, plans and retention, from tests/mutants/promises.toml.

A line names the tests that prove it, and each of them fails if the promise is broken (tests/mutants). A line without a
test is an error.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.mutants import promises

TITLES = {
    "failures": ("What goes wrong", "What a user sees", "Shown by"),
    "plans": ("What happens", "What a user sees", "Shown by"),
    "kept": ("What", "How long", "Shown by"),
}


def lines(table: str) -> list[tuple[str, ...]]:
    """Returns the lines of a table. Raises ValueError for an empty cell."""
    return [(each.what, each.seen, "; ".join(map(_told, _tests(each)))) for each in promises.tables()[table]]


def _tests(line: promises.Line) -> list[str]:
    return list(dict.fromkeys(shown.test for shown in line.shown))


def _told(test: str) -> str:
    """Returns the test's name as a sentence, with a link to its file."""
    path, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../../{path})"
