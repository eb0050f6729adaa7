"""The Azure facade of each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.azure.api import Azure, azure
from tests.support.examples import by_steps

by_steps()


@pytest.fixture
def api() -> Iterator[Azure]:
    with azure() as there:
        yield there
