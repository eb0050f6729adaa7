"""Which tests `make quick` runs for a change."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

IMPORTERS = {
    "sweephand.ids": {"sweephand.flow.jobs", "tests.unit.test_ids"},
    "sweephand.flow.jobs": {"sweephand.facades", "tests.unit.flow.test_jobs", "tests.faults.test_jobs"},
    "sweephand.facades": {"tests.contract.test_facades"},
}


@pytest.fixture(scope="module")
def quick() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quick", Path(__file__).resolve().parents[2] / ".ci" / "quick.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_nearest_tests_come_first(quick: ModuleType) -> None:
    chosen = quick.nearest(["layers/sweephand/python/sweephand/ids.py"], IMPORTERS)

    assert chosen == ["tests/unit/test_ids.py", "tests/unit/flow/test_jobs.py", "tests/contract/test_facades.py"]


def test_a_changed_test_is_run_itself(quick: ModuleType) -> None:
    assert quick.nearest(["tests/unit/test_ids.py"], IMPORTERS) == ["tests/unit/test_ids.py"]


def test_a_folder_stands_for_its_init(quick: ModuleType) -> None:
    chosen = quick.nearest(["layers/sweephand/python/sweephand/flow/jobs/__init__.py"], IMPORTERS)

    assert chosen == ["tests/unit/flow/test_jobs.py", "tests/contract/test_facades.py"]


def test_tests_that_need_a_stack_or_minutes_are_left_to_make_test(quick: ModuleType) -> None:
    assert quick.nearest(["tests/faults/test_jobs.py"], {}) == []
