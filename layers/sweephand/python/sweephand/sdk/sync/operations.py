# Generated from aio/operations.py by `make sdk`. Do not edit.
"""Waits for the end of operations."""

from __future__ import annotations

from collections.abc import Callable

from sweephand.sdk import models
from sweephand.sdk.errors import OperationFailed
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.transport.request import Request, name_of, part

SOONEST_S, LATEST_S, GROWTH = 0.5, 10.0, 1.5
Begun = models.Operation | models.Redrive | models.BulkDelete | models.BulkSwitch | str


class Waiting:
    """The part of `operations` that is not generated."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def wait(
        self,
        begun: Begun,
        progress: Callable[[models.Operation], object] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> models.Operation | None:
        """Waits until an operation is done, and returns it; None if the call did not start one.

        begun: the operation, its id, or the answer of a call that may have started one. progress: called whenever the
        operation has changed. A paused operation is waited for. Raises OperationFailed if the operation failed, was
        cancelled, or is not done after `timeout_s`.
        """
        if isinstance(begun, models.Redrive | models.BulkDelete | models.BulkSwitch):
            if begun.operation is None:
                return None
            begun = begun.operation
        clock = self._caller.clock
        began, wait_s = clock.monotonic(), SOONEST_S
        seen: models.Operation | None = None
        while True:
            path = f"/v1/operations/{part(name_of(begun))}"
            now = models.Operation(self._caller.json(Request("GET", path, acting=True)))
            if progress is not None and now != seen:
                progress(now)
            seen = now
            if now.state == "DONE":
                return now
            if now.state in {"FAILED", "CANCELLED"}:
                why = f": {now.cause}" if now.cause else ""
                raise OperationFailed(f"the operation {now.id} ({now.kind}) is {now.state}{why}", now)
            if timeout_s is not None and clock.monotonic() - began + wait_s > timeout_s:
                done = f"{now.progress.done} of {now.progress.total}"
                raise OperationFailed(f"the operation {now.id} is {now.state} after {timeout_s:g} s: {done}", now)
            clock.sleep(wait_s)
            wait_s = min(wait_s * GROWTH, LATEST_S)
