"""Fixtures for all tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest
from botocore import session

if TYPE_CHECKING:
    from sweephand.flow.world import World
    from tests.support.stage import Stage

session.create_loader = cache(session.create_loader)
"""Service models are read once per process: each session of botocore would parse megabytes of JSON of its own."""


@pytest.fixture
def stage() -> Iterator[Stage]:
    """The whole service on moto under a virtual clock, with the tenant acme: see tests/support/stage.py."""
    from tests.support.stage import stage as made  # noqa: PLC0415 - moto and the packages it brings: only where used

    with made() as fresh:
        yield fresh


@pytest.fixture
def world(stage: Stage) -> World:
    return stage.world


_SWITCH = pytest.StashKey[Callable[[bool], None]]()


def pytest_configure(config: pytest.Config) -> None:
    """Compares every call to the table in memory with an engine, with TABLE_ENGINE=1: `make test PARTS=engine`."""
    if os.environ.get("TABLE_ENGINE"):
        from tests.engine.plugin import hold_against_engine  # noqa: PLC0415

        config.stash[_SWITCH] = hold_against_engine()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves the engine out where the same calls are made very often."""
    switch = item.config.stash.get(_SWITCH, None)
    if switch is not None:
        switch(item.get_closest_marker("repeats") is None)
