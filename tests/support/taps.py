"""Where every call to the outside passes in a test: to be counted, to be refused, to be cut off."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from typing import Any
from unittest import mock

from botocore.client import BaseClient
from botocore.exceptions import ClientError

from tests.support import statements


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


class Crash(BaseException):
    """The function dies here: no `except Exception` may survive it."""


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
        met = 0

        def only_one(passing: Passing, act: Act) -> Any:
            nonlocal met
            if passing.name != name:
                return act()
            met += 1
            return fault(passing, act) if met == skip + 1 else act()

        with self.faulty(only_one):
            yield
        assert met > skip, f"no call of {name} to be faulty"


@contextmanager
def on_botocore(
    taps: Taps,
    instead: Callable[[str, str, dict[str, Any]], Any] | None = None,
    services: Collection[str] | None = None,
) -> Iterator[None]:
    """Sends every call of a botocore client of this process through the taps. It also answers the calls that moto
    answers wrongly.

    instead: answers (service, operation, request) in the place of moto. services: for which; for all without it.
    """
    real = BaseClient._make_api_call

    def act(client: Any, operation: str, request: dict[str, Any]) -> Any:
        if operation == "BatchExecuteStatement":
            return statements.carry_out(request, lambda update: real(client, "UpdateItem", update))
        return real(client, operation, request)

    def call(client: Any, operation: str, request: dict[str, Any]) -> Any:
        passing = Passing(client.meta.service_model.service_name, operation, request)
        if instead is not None and (services is None or passing.service in services):
            return taps(passing, lambda: instead(passing.service, operation, request))
        return taps(passing, lambda: act(client, operation, request))

    with mock.patch.object(BaseClient, "_make_api_call", call):
        yield


# Faults


def crash_before(_passing: Passing, _act: Act) -> Any:
    raise Crash


def crash_after(_passing: Passing, act: Act) -> Any:
    act()
    raise Crash


def answer_lost(_passing: Passing, act: Act) -> Any:
    """Carries the call out and loses its answer, so that the SDK repeats it."""
    act()
    return act()


def refused(passing: Passing, _act: Act) -> Any:
    """Refuses the call because the service has no time."""
    raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, passing.operation)


def conflict(passing: Passing, _act: Act) -> Any:
    """Refuses the call because another transaction is at work on one of the items."""
    if passing.operation != "TransactWriteItems":
        error = {"Code": "TransactionConflictException", "Message": "another transaction is at work"}
        raise ClientError({"Error": error}, passing.operation)
    reasons = [{"Code": "None"} for _ in passing.request["TransactItems"]]
    reasons[0] = {"Code": "TransactionConflict"}
    answer = {"Error": {"Code": "TransactionCanceledException", "Message": ""}, "CancellationReasons": reasons}
    raise ClientError(answer, passing.operation)


def some_failed(passing: Passing, act: Act) -> Any:
    """Makes SQS take all of the batch but its first entry."""
    first, *others = passing.request["Entries"]
    passing.request["Entries"][:] = others
    answer = act() if others else {"Successful": []}
    failed = {"Id": first["Id"], "SenderFault": False, "Code": "InternalError", "Message": ""}
    return {**answer, "Failed": [*answer.get("Failed", []), failed]}
