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


def test_each_thing_that_people_add_has_its_list() -> None:
    assert LISTS.keys() == {"action", "notation", "attribute", "reason", "facade"}
    assert all(LISTS.values())


@pytest.mark.parametrize("path", [path for paths in LISTS.values() for path in paths])
def test_a_file_of_a_list_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\b(?:tests|docs)/[\w/.-]*\w", PAGE))))
def test_every_path_of_a_test_or_a_page_leads_somewhere(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_layout_names_each_room_of_the_verbs() -> None:
    flow = ROOT / "layers/sweephand/python/sweephand/flow"
    layout = PAGE[PAGE.index("```\n") : PAGE.index("tests/  ")]

    rooms = {folder.name for folder in flow.iterdir() if (folder / "__init__.py").is_file()}

    assert {room for room in rooms if not re.search(rf"\b{room}\b", layout)} == set()


def test_a_commit_of_the_rules_fits_its_own_length() -> None:
    (subject,) = re.findall(r"at most 60 characters \(`([^`]+)`\)", PAGE)

    assert len(subject) <= 60
