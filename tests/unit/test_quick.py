"""Which tests `make quick` runs for a change."""

from __future__ import annotations

from tools.checks.quick import nearest

IMPORTERS = {
    "sweephand.base.ids": {"sweephand.server.flow.jobs", "tests.unit.base.test_ids"},
    "sweephand.server.flow.jobs": {
        "sweephand.server.facades",
        "tests.unit.server.flow.test_jobs",
        "tests.faults.test_jobs",
    },
    "sweephand.server.facades": {"tests.contract.test_facades"},
}


def test_the_nearest_tests_come_first() -> None:
    chosen = nearest(["layers/sweephand/python/sweephand/base/ids.py"], IMPORTERS)

    assert chosen == [
        "tests/unit/base/test_ids.py",
        "tests/unit/server/flow/test_jobs.py",
        "tests/contract/test_facades.py",
    ]


def test_a_changed_test_is_run_itself() -> None:
    assert nearest(["tests/unit/base/test_ids.py"], IMPORTERS) == ["tests/unit/base/test_ids.py"]


def test_a_folder_stands_for_its_init() -> None:
    chosen = nearest(["layers/sweephand/python/sweephand/server/flow/jobs/__init__.py"], IMPORTERS)

    assert chosen == ["tests/unit/server/flow/test_jobs.py", "tests/contract/test_facades.py"]


def test_tests_that_need_a_stack_or_minutes_are_left_to_make_test() -> None:
    assert nearest(["tests/faults/test_jobs.py"], {}) == []
