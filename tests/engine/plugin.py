"""Puts the mirror between the tests and their table in memory."""

from __future__ import annotations

from typing import Any

from tests.engine.mirror import Engine, Mirror
from tests.faults import memory


def hold_against_engine() -> None:
    """From now on every table in memory of this process has a twin on the engine."""
    engine = Engine()
    make = memory.Memory.__call__

    def call(self: memory.Memory, service: str, operation: str, request: dict[str, Any]) -> Any:
        answer = make(self, service, operation, request)
        if operation == "CreateTable":
            assert isinstance(self.dynamo, memory.Dynamo)
            self.dynamo = Mirror(self.dynamo, engine)  # type: ignore[assignment]
        return answer

    memory.Memory.__call__ = call  # type: ignore[method-assign]
