"""The lists of what goes wrong and the table of what is kept, from tests/mutants/promises.toml.

A line names the tests that prove it, and each of them fails if the promise is broken (tests/mutants). A line without a
test is an error.
"""

from __future__ import annotations

from tests.mutants import promises
from tools.docs.test_sentences import sentence

KEPT = ("What", "How long", "Shown by")


def kept() -> list[tuple[str, ...]]:
    """Returns the lines of the table of what is kept. Raises ValueError for an empty cell."""
    return [(each.what, each.seen, "<br>".join(map(_told, _tests(each)))) for each in promises.tables()["kept"]]


def faults(table: str) -> str:
    """Returns a list of faults, each with what a user sees and its tests. Raises ValueError for an empty part."""
    parts = []
    for each in promises.tables()[table]:
        heading = [f"\n### {each.part}\n"] if each.part else []
        seen = each.seen[0].upper() + each.seen[1:]
        parts += [*heading, f"- **{each.what}.** {seen}.", *(f"  - {_told(test)}" for test in _tests(each))]
    return "\n".join(parts).lstrip("\n") + "\n"


def _tests(line: promises.Line) -> list[str]:
    return list(dict.fromkeys(shown.test for shown in line.shown))


def _told(test: str) -> str:
    """Returns the test's name as a sentence, with a link to its file."""
    path, _, name = test.partition("::")
    return f"[{sentence(name)}](../../{path})"
