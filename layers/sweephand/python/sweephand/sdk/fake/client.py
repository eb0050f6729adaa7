"""The clients of a stack in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from sweephand.sdk.aio.client import AsyncSweephand
from sweephand.sdk.fake.service import FakeService, Occurrence, until
from sweephand.sdk.models import Run
from sweephand.sdk.sync.client import Sweephand
from sweephand.sdk.transport.request import Answer
from sweephand.sources import SystemChance

URL, NOBODY = "https://fake.invalid", "fake"
OnRun = Callable[[Occurrence], object]


class Advancing:
    """The part of a client that moves its clock."""

    _service: FakeService

    @property
    def now(self) -> datetime:
        return self._service.time

    @property
    def occurrences(self) -> Sequence[Occurrence]:
        """All occurrences so far, in order."""
        return tuple(self._service.calls)

    def advance(self, by: timedelta | str | datetime) -> list[Run]:
        """Moves the clock and runs everything that falls due. Returns the runs.

        by: a timedelta, an instant, or a string such as "1d", "90 minutes" or "PT1H".
        """
        return self._service.advance_to(until(self._service.time, by))


class FakeSweephand(Advancing, Sweephand):
    """A client of a stack in memory, for tests. Only `advance` and the waits of the client move its clock.

    now: the time at which its clock starts, an aware datetime. on_run: called with each occurrence, at its instant; a
    run fails if it raises. The stack knows jobs, schedules, runs and collections; other calls raise NotFaked.
    """

    def __init__(self, *, now: datetime, on_run: OnRun | None = None) -> None:
        self._service = FakeService(now, on_run)
        stack = _Waiting(self._service)
        super().__init__(URL, client_id=NOBODY, secret=NOBODY, transport=stack, clock=stack, chance=SystemChance())


class AsyncFakeSweephand(Advancing, AsyncSweephand):
    """The asyncio form of FakeSweephand. `advance` and `on_run` are not awaited."""

    def __init__(self, *, now: datetime, on_run: OnRun | None = None) -> None:
        self._service = FakeService(now, on_run)
        stack = _AsyncWaiting(self._service)
        super().__init__(URL, client_id=NOBODY, secret=NOBODY, transport=stack, clock=stack, chance=SystemChance())


class _Waiting:
    """The transport and the clock of a stack in memory. A sleep moves the clock."""

    def __init__(self, service: FakeService) -> None:
        self._service = service

    def now(self) -> datetime:
        return self._service.now()

    def monotonic(self) -> float:
        return self._service.monotonic()

    def sleep(self, seconds: float) -> None:
        self._service.advance_to(self._service.time + timedelta(seconds=seconds))

    def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, timeout_s: float
    ) -> Answer:
        return self._service.send(method, url, headers, content, timeout_s)

    def close(self) -> None:
        """Closes nothing: there is no connection."""


class _AsyncWaiting:
    """The asyncio form of _Waiting."""

    def __init__(self, service: FakeService) -> None:
        self._service = service

    def now(self) -> datetime:
        return self._service.now()

    def monotonic(self) -> float:
        return self._service.monotonic()

    async def sleep(self, seconds: float) -> None:
        self._service.advance_to(self._service.time + timedelta(seconds=seconds))

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, timeout_s: float
    ) -> Answer:
        return self._service.send(method, url, headers, content, timeout_s)

    async def aclose(self) -> None:
        """Closes nothing: there is no connection."""
