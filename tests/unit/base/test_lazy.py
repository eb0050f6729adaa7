"""Imports that are put off until their first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

USER = """
from sweephand.base.lazy import lazy

with lazy():
    import heavy_alone
    from heavy import part
    from heavy import part as alias

import light


def use():
    return part.VALUE, alias.VALUE, heavy_alone.VALUE
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "heavy").mkdir()
    (tmp_path / "heavy" / "__init__.py").touch()
    (tmp_path / "heavy" / "part.py").write_text("VALUE = 1\n")
    (tmp_path / "heavy_alone.py").write_text("VALUE = 2\n")
    (tmp_path / "light.py").touch()
    (tmp_path / "user_of_heavy.py").write_text(USER)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("heavy", "heavy.part", "heavy_alone", "light", "user_of_heavy"):
        sys.modules.pop(name, None)


def test_a_module_is_imported_with_the_first_use_of_a_member(folder: Path) -> None:
    user = importlib.import_module("user_of_heavy")

    assert "light" in sys.modules
    assert not {"heavy", "heavy.part", "heavy_alone"} & sys.modules.keys()

    assert user.use() == (1, 1, 2)
    assert "heavy.part" in sys.modules


def test_a_stand_in_answers_by_what_the_module_holds_now(folder: Path) -> None:
    user = importlib.import_module("user_of_heavy")
    importlib.import_module("heavy.part").VALUE = 5  # type: ignore[attr-defined]

    assert user.use()[0] == 5
    assert repr(user.part) == "<heavy.part, imported with its first use>"


def test_a_module_that_is_missing_is_refused_at_its_first_use(folder: Path) -> None:
    (folder / "heavy" / "part.py").unlink()
    user = importlib.import_module("user_of_heavy")

    with pytest.raises(ModuleNotFoundError, match=r"heavy\.part"):
        user.use()


def test_imports_after_the_block_are_carried_out_at_once(folder: Path) -> None:
    (folder / "light.py").write_text("raise ImportError('light')\n")

    with pytest.raises(ImportError, match="light"):
        importlib.import_module("user_of_heavy")
