"""Faults of the calls to AWS, and calls of botocore's clients that pass through the taps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from botocore.client import BaseClient
from botocore.exceptions import ClientError

from sweephand.testing import statements
from sweephand.testing.memory import Memory
from sweephand.testing.taps import Act, Passing, Taps


class Crash(BaseException):
    """The function dies here: no `except Exception` may survive it."""


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


@contextmanager
def in_memory(tap: Taps, *, remembers: bool = False) -> Iterator[Memory]:
    """Makes a backend for tests.support.stage.stage."""
    memory = Memory(remembers)
    with on_botocore(tap, memory):
        yield memory


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
