"""Plain English: what a program can see of its rules (CONTRIBUTING.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweephand.server.facades.native.document import FILE
from tests.architecture import words

GOOD = '''"""The sweep: one look at all rows that are due."""


def send(row):
    """Sends the row's message. `what`: its pointer."""
    return row  # the queue keeps it
'''


@pytest.mark.parametrize("path", [path for path in words.files() if path.is_file()], ids=lambda p: p.name)
def test_no_file_breaks_the_rules_for_words(path: Path) -> None:
    assert list(words.breaches(path)) == []


def test_no_text_of_the_api_description_breaks_the_rules_for_words() -> None:
    """A description may begin with "By default", but not with a fragment such as "Of a job" or "What was done"."""
    found = [
        text
        for text in _texts(json.loads(FILE.read_text()))
        if words.FRAGMENT.search(text) or words.AVOIDED.search(text)
    ]

    assert found == []


def _texts(value: Any) -> Iterator[str]:
    """Yields all descriptions and summaries of a document, without code."""
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name in {"description", "summary"} and isinstance(each, str):
                yield re.sub(r"`[^`]*`", "", each)
            else:
                yield from _texts(each)


def test_a_sentence_fragment_is_detected_only_in_the_prose_of_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# What\n\n| Of |\n\n```\nAs is\n```\n\nGood: `x`. By default it\nruns.\n\n- Of a\n  job. Who\n  knows?\n"
    )

    found = [(breach.line, breach.why.rpartition(" ")[2]) for breach in words.breaches(page)]

    assert found == [(12, "'Of'"), (12, "'Who'")]


def test_the_target_of_a_link_is_not_prose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "ROOT", tmp_path)
    page = tmp_path / "page.md"

    page.write_text("See [actions](0030-actions-beside-http.md).\n")
    assert list(words.breaches(page)) == []

    page.write_text("See [actions beside HTTP](0030-actions.md) (behind it).\n")
    assert [breach.why for breach in words.breaches(page)] == ["avoid 'beside'", "avoid 'behind'"]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("The sweep", "What a sweep is", "a sentence begins with 'What'"),
        ("Sends the row's", "The row's", "a function's docstring begins with a verb, not 'The'"),
        ("its pointer", "behind the pointer", "avoid 'behind'"),
        ("the queue keeps it", "Of the queue", "a sentence begins with 'Of'"),
    ],
)
def test_each_rule_for_words_detects_its_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, why: str
) -> None:
    monkeypatch.setattr(words, "ROOT", tmp_path)
    page = tmp_path / "page.py"

    page.write_text(GOOD)
    assert list(words.breaches(page)) == []

    page.write_text(GOOD.replace(before, after))
    assert [breach.why for breach in words.breaches(page)] == [why]


@pytest.mark.parametrize(
    "code",
    [
        "found = 1",
        "_found, rest = 1, 2",
        "for there in (): ...",
        "def there() -> None: ...",
        "async def there() -> None: ...",
        "class Below: ...",
        "class Record:\n    given: int",
        "def read(given: int) -> None: ...",
        "kept = lambda given: given",
        "names = [met for met in ()]",
        "if (lately := 1): ...",
        "match 1:\n    case brought: ...",
        "match []:\n    case [1, *rare]: ...",
    ],
)
def test_a_name_of_the_package_that_says_nothing_of_its_thing_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(words, "ROOT", tmp_path)
    inside, outside = tmp_path / words.NAMED[0] / "page.py", tmp_path / "page.py"
    inside.parent.mkdir(parents=True)

    for page in (inside, outside):
        page.write_text(f"{code}\n")

    assert [breach.why.partition(",")[0] for breach in words.breaches(inside)] == [
        "name it for the thing that it holds"
    ]
    assert list(words.breaches(outside)) == []
