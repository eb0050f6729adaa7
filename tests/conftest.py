"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sweephand.flow.world import World
    from tests.support.stage import Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    """The whole service on moto under a virtual clock, with the tenant acme: see tests/support/stage.py."""
    from tests.support.stage import stage as made  # noqa: PLC0415 - moto and the packages it brings: only where used

    with made() as fresh:
        yield fresh


@pytest.fixture
def world(stage: Stage) -> World:
    return stage.world


def pytest_configure(config: pytest.Config) -> None:
    """With TABLE_ENGINE=1 every call to the table in memory is held against an engine: `make test PARTS=engine`."""
    if os.environ.get("TABLE_ENGINE"):
        from tests.engine.plugin import hold_against_engine  # noqa: PLC0415

        hold_against_engine()
