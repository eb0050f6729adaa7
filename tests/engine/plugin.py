"""Puts the mirror between the tests and their table in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sweephand.testing import memory
from tests.engine.mirror import Engine, Mirror


def hold_against_engine() -> Callable[[bool], None]:
    """Gives every table in memory of this process a twin on the engine from now on. Returns the switch."""
    engine, on = Engine(), True
    make = memory.Memory.__call__

    def call(self: memory.Memory, service: str, operation: str, request: dict[str, Any]) -> Any:
        answer = make(self, service, operation, request)
        if on and operation == "CreateTable":
            assert isinstance(self.dynamo, memory.Dynamo)
            self.dynamo = Mirror(self.dynamo, engine)  # type: ignore[assignment]
        return answer

    def switch(to: bool) -> None:
        nonlocal on
        on = to

    memory.Memory.__call__ = call  # type: ignore[method-assign]
    return switch
