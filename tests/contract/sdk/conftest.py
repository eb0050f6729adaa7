"""The API of every contract test of the SDK."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.native.api import Api
from tests.contract.native.api import api as made


@pytest.fixture
def api() -> Iterator[Api]:
    with made() as there:
        yield there
