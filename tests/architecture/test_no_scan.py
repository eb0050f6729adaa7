"""No code path reads a whole table or index: neither by name nor by a statement."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "layers" / "sweephand" / "python" / "sweephand"
OUTBOX = PACKAGE / "sdk" / "outbox.py"
"""Reads a table of the user's own in the user's process, which holds only what waits to be relayed."""
DEPLOYED = [path for path in PACKAGE.rglob("*.py") if PACKAGE / "local" not in path.parents and path != OUTBOX]
SOURCES = [*DEPLOYED, *(ROOT / "functions").rglob("*.py")]
READS_ALL = {"scan", "Scan", "rate_limited_scan", "execute_statement", "get_paginator"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_code_scans_the_table(path):
    tree = ast.parse(path.read_text())

    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not called & READS_ALL
    assert not texts & {"scan", "Scan"}
    assert not [text for text in texts if text.lstrip().upper().startswith("SELECT ")]
