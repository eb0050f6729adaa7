"""A second try of failed tests, alone, as CI has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.checks import tests

SOURCE = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("n", range({count}))
def test_every_other_time(n):
    mark = Path(__file__).with_name(f"mark-{{n}}")
    been = mark.exists()
    mark.touch()
    assert been
"""
BROKEN = "\ndef test_never():\n    assert False\n"


@pytest.mark.parametrize(
    ("content", "status", "listed"),
    [
        (SOURCE.format(count=1), 0, "test_here.py::test_every_other_time[0]\n"),
        (SOURCE.format(count=2) + BROKEN, 1, ""),
        (SOURCE.format(count=4), 1, ""),
    ],
    ids=["unstable", "one is broken", "too many"],
)
def test_what_fails_once_and_passes_alone_is_listed(
    content: str, status: int, listed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_here.py").write_text(content)
    (unstable := tmp_path / "unstable.txt").touch()
    monkeypatch.setattr(tests, "ROOT", tmp_path)
    monkeypatch.setenv("UNSTABLE", str(unstable))

    assert tests._part(["test_here.py"], {})[0] == status

    assert unstable.read_text() == listed
