"""Defects of the product, made in memory, to see that the oracle notices each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from sweephand.domain.runs import admission
from sweephand.server.messaging.run_queue import RunQueue
from tests.year.lives import Luck


def _nothing(name: str) -> Callable[[], Any]:
    """Returns a mutant in which this rule of the gate never applies."""
    return lambda: mock.patch.object(admission, name, return_value=None)


def _without_overlap() -> Any:
    return mock.patch.object(admission, "contested", return_value=False)


@contextmanager
def _without_lease() -> Iterator[None]:
    """Takes a run over while its executor still holds it."""
    real = admission._with_row

    def with_row(pointer: Any, job: Any, schedule: Any, run: Any, now: Any) -> Any:
        held = run.lease_until is not None
        return real(pointer, job, schedule, replace(run, lease_until=now) if held else run, now)

    with mock.patch.object(admission, "_with_row", with_row):
        yield


@contextmanager
def _advances_unsent() -> Iterator[None]:
    """Moves a schedule on although the queue refused its message."""
    real = RunQueue.send

    def send(self: RunQueue, deliveries: Any) -> list[Any]:
        real(self, deliveries)
        return []

    with mock.patch.object(RunQueue, "send", send):
        yield


@dataclass(frozen=True)
class Mutant:
    """A defect. made: makes it for as long as it is entered. luck: what lives need to meet it soon."""

    made: Callable[[], Any]
    luck: Luck | None = None


OFTEN_OUT = Luck(outages=8)
MUTANTS: Mapping[str, Mutant] = {
    "a replaced plan is not dropped": Mutant(_nothing("_superseded")),
    "runs do not exclude each other": Mutant(_without_overlap),
    "lateness is ignored": Mutant(_nothing("_too_late"), OFTEN_OUT),
    "leases are ignored": Mutant(_without_lease, Luck(copies=0.1)),
    "unsent messages are advanced": Mutant(_advances_unsent, Luck(kinds=("failed-entries",), rate=0.5)),
    "times that were off are forgotten": Mutant(_nothing("_was_off"), OFTEN_OUT),
}
