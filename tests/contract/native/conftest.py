"""Settings and the API of every contract test of the native facade."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.contract.native.api import Api
from tests.contract.native.api import api as made

# Tests bound steps, not milliseconds: a busy machine is no failure.
settings.register_profile(
    "contract", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("contract")


@pytest.fixture
def api() -> Iterator[Api]:
    with made() as there:
        yield there


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    """One API for the tests of a module that leave nothing behind."""
    with made() as there:
        yield there
