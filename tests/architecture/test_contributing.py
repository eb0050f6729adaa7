"""The file lists of CONTRIBUTING.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
LISTS = {
    name: re.findall(r"^- `([^`]+)`:", text, re.MULTILINE)
    for name, text in re.findall(r"<!-- files: (\w+) -->\n((?:[- ] .+\n|-.+\n|  .+\n)+)", PAGE)
}


def test_each_kind_of_addition_has_its_list() -> None:
    assert LISTS.keys() == {"action", "notation", "attribute", "reason", "member", "event", "metric", "facade"}
    assert all(LISTS.values())


@pytest.mark.parametrize("path", [path for paths in LISTS.values() for path in paths])
def test_every_file_in_a_list_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"(?<![\w/])(?:tests|docs)/[\w/.-]*\w", PAGE))))
def test_every_path_to_a_test_or_a_page_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_layout_names_each_package_of_the_flow() -> None:
    flow = ROOT / "layers/sweephand/python/sweephand/server/flow"
    layout = PAGE[PAGE.index("```\n") : PAGE.index("tests/  ")]

    rooms = {folder.name for folder in flow.iterdir() if (folder / "__init__.py").is_file()}

    assert {room for room in rooms if not re.search(rf"\b{room}\b", layout)} == set()


def test_the_rules_for_commits_keep_to_their_own_length() -> None:
    (subject,) = re.findall(r"at most 60 characters \(`([^`]+)`\)", PAGE)

    assert len(subject) <= 60
