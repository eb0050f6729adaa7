"""Settings and the API of every contract test of the native facade."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from sweephand.server.facades.native.api import NativeApi
from tests.contract.native import described
from tests.contract.native.api import Api
from tests.contract.native.api import api as made
from tests.support.examples import by_steps

by_steps()


@pytest.fixture(autouse=True, scope="session")
def _all_is_as_described() -> Iterator[None]:
    """Every exchange of these tests is held against openapi.json."""
    handle = NativeApi.handle

    def checked(self: NativeApi, event: Mapping[str, Any], request_id: str) -> dict[str, Any]:
        answer = handle(self, event, request_id)
        described.check(event, answer)
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NativeApi, "handle", checked)
        yield


@pytest.fixture
def api() -> Iterator[Api]:
    with made() as there:
        yield there


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    """Makes one API for the tests of a module that leave nothing to clean up."""
    with made() as there:
        yield there
