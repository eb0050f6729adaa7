"""Where every call to the outside passes in a test: to be counted, to be refused, to be cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from typing import Any


@dataclass(frozen=True)
class Passing:
    """One call. service: dynamodb, sqs, kms, or endpoint for the call of an action."""

    service: str
    operation: str
    request: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.service}.{self.operation}"


Act = Callable[[], Any]
Fault = Callable[[Passing, Act], Any]
"""Is given a call and how to carry it out, and answers in its place."""


@dataclass
class Taps:
    """fault: answers in place of the call. Calls are carried out one at a time: moto is not made for threads."""

    passed: list[Passing] = field(default_factory=list)
    fault: Fault | None = None
    _lock: RLock = field(default_factory=RLock)

    def __call__(self, passing: Passing, act: Act) -> Any:
        def alone() -> Any:
            with self._lock:
                return act()

        self.passed.append(passing)
        fault, carry_out = self.fault, act if passing.service == "endpoint" else alone
        return carry_out() if fault is None else fault(passing, carry_out)

    def names(self) -> list[str]:
        return [passing.name for passing in self.passed]

    def count(self, name: str) -> int:
        return self.names().count(name)

    @contextmanager
    def faulty(self, fault: Fault) -> Iterator[None]:
        """Makes `fault` answer for as long as it lasts. Not to be nested."""
        assert self.fault is None
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None

    @contextmanager
    def once(self, name: str, fault: Fault, *, skip: int = 0) -> Iterator[None]:
        """Lets the first call of this name (after `skip` others) meet the fault, and lets the rest through.

        The test fails if there was no such call.
        """
        calls = 0

        def only_one(passing: Passing, act: Act) -> Any:
            nonlocal calls
            if passing.name != name:
                return act()
            calls += 1
            return fault(passing, act) if calls == skip + 1 else act()

        with self.faulty(only_one):
            yield
        assert calls > skip, f"no call of {name} to be faulty"
