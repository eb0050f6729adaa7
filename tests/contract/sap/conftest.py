"""The SAP facade of each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.sap.api import Sap, sap
from tests.support.examples import by_steps

by_steps()


@pytest.fixture
def api() -> Iterator[Sap]:
    with sap() as there:
        yield there
