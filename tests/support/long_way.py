"""Who answers in the place of botocore sees all calls only where none goes past it (store/short_way.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from botocore.client import BaseClient

from sweephand.store.short_way import ShortWay

Call = Callable[[Any, str, dict[str, Any]], Any]
"""Of client, operation and arguments."""


@contextmanager
def instead_of_botocore(call: Call) -> Iterator[None]:
    """Every call of this process's botocore clients is answered by `call`."""
    with (
        mock.patch.object(ShortWay, "call", return_value=None),
        mock.patch.object(BaseClient, "_make_api_call", call),
    ):
        yield
