"""Fixtures for all tests."""

from __future__ import annotations

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
