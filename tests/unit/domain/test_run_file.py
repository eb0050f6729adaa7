from __future__ import annotations

import csv
import io

import pytest

from sweephand.domain.runs.run_file import COLUMNS, Format, lines
from tests.unit.domain.nouns import run


def cell(message: str) -> str:
    """Returns a message as the CSV has it."""
    text = lines(Format.CSV, [run(message=message)], {"job-1": None})
    (row,) = csv.reader(io.StringIO(text, newline=""))
    return row[COLUMNS.index("message")]


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\x07b\x00", "a\\x07b\\x00"),
        ("\u202ecod.exe", "\\u202ecod.exe"),
        ("\U000e0041x", "\\U000e0041x"),
        ("one\n\ttwo", "one\n\ttwo"),
        ("=1+1", "'=1+1"),
        ("plain \u00fc\u4e2d", "plain \u00fc\u4e2d"),
    ],
)
def test_a_cell_contains_no_terminal_control_and_no_formula(stored: str, written: str) -> None:
    assert cell(stored) == written
