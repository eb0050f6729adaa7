"""Fixtures for all tests, and which of them `make test` runs."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest
from botocore import session

if TYPE_CHECKING:
    from sweephand.server.flow.world import World
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


# Which tests run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--only", choices=["sample", "rest"], help="what `make test` runs, or what it leaves out")


@pytest.hookimpl(trylast=True)  # after Hypothesis has marked its tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what the option says. Tests with fewer examples in the sample are in the rest too, with all of
    theirs.
    """
    only = config.getoption("only")
    if only is None:
        return
    cases: Counter[str] = Counter()
    chosen, left_out = [], []
    for item in items:
        in_sample = _in_sample(item, cases)
        wanted = in_sample if only == "sample" else not in_sample or _scaled(item)
        (chosen if wanted else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = chosen


def pytest_collection_finish() -> None:
    """Takes thousands of tests out of the sight of the garbage collector: a tenth of all time went into it."""
    gc.freeze()


def _in_sample(item: pytest.Item, cases: Counter[str]) -> bool:
    """Counts the cases of each parametrized test."""
    name = item.nodeid.partition("[")[0]
    cases[name] += 1
    sampled = item.get_closest_marker("sampled")
    if sampled is not None:
        return (cases[name] - 1) % sampled.args[0] == 0
    return item.get_closest_marker("extended") is None


def _scaled(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) is not None for name in ("hypothesis", "scaled"))


# The engine of tables

_SWITCH = pytest.StashKey[Callable[[bool], None]]()


def pytest_configure(config: pytest.Config) -> None:
    """Compares every call to the table in memory with an engine, with TABLE_ENGINE=1: `make test-rest`."""
    if os.environ.get("TABLE_ENGINE"):
        from tests.engine.plugin import hold_against_engine  # noqa: PLC0415

        config.stash[_SWITCH] = hold_against_engine()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leaves the engine out where the same calls are made very often."""
    switch = item.config.stash.get(_SWITCH, None)
    if switch is not None:
        switch(item.get_closest_marker("repeats") is None)
