"""The pytest fixture `sweephand_stack`, which pytest finds by the package's entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sweephand.testing import Stack


@pytest.fixture
def sweephand_stack() -> Iterator[Callable[..., Stack]]:
    """Makes stacks that end with the test: `sh = sweephand_stack(now=...)`, with the arguments of `testing.stack`."""
    from sweephand.testing import stack  # noqa: PLC0415 - only tests that use it pay for the import

    with ExitStack() as stacks:

        def made(**arguments: Any) -> Stack:
            return stacks.enter_context(stack(**arguments))

        yield made
