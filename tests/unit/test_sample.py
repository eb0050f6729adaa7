"""Tests of `make test` that `make test-rest` repeats."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_rest_repeats_tests_of_hypothesis_with_all_their_examples() -> None:
    asked = ["--collect-only", "--only", "rest", "-o", "addopts=-p no:cacheprovider", "tests/unit/base/test_ids.py"]

    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-qq", *asked], cwd=ROOT, check=False, capture_output=True, text=True
    )

    assert told.returncode == 0, told.stdout
