"""Carries out an effect once for a key, such as a payment for the id of a run: `with dedupe(run.id) as first`.

A mark is claimed before the effect and confirmed after it. A process that dies between the two leaves a claim that does
not say whether the effect happened. The effect is then repeated (at least once, the default) or never begun again (at
most once).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType

from sweephand.base.errors import SweephandError
from sweephand.base.sources import Chance, Clock, SystemChance, SystemClock
from sweephand.sdk.errors import InvalidArgument, TransportError
from sweephand.sdk.worker.marks import Mark, Marks, confirmed

log = logging.getLogger("sweephand.worker")
DAYS_KEPT = 7
LEASE_S = 60
LONGEST_KEY = 1_024


class InProgress(SweephandError):
    """An effect that another process has claimed and not confirmed yet. The worker tries again when the claim ends.

    wait_s: the time until then.
    """

    code = "IN_PROGRESS"

    def __init__(self, key: str, wait_s: float) -> None:
        super().__init__(f'the effect "{key}" is claimed by another process for {wait_s:.0f} s more')
        self.key, self.wait_s = key, wait_s


class Unsure(SweephandError):
    """An effect that may or may not have happened. No attempt follows: a person must find out.

    Raise it in the block if the answer of the effect was lost; the claim then stays.
    """

    code = "UNSURE"


class Dedupe:
    """A guard that carries out an effect once for each key.

    marks: where the keys are kept, such as `DynamoMarks("effects")`. keep: how long an effect is remembered. lease_s:
    how long a claim keeps others out; it must be longer than the longest effect. at_most_once: True if an effect that
    was begun, and neither confirmed nor failed, must not be begun again.
    """

    def __init__(
        self,
        marks: Marks,
        *,
        keep: timedelta = timedelta(days=DAYS_KEPT),
        lease_s: int = LEASE_S,
        at_most_once: bool = False,
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        if lease_s < 1 or keep <= timedelta(seconds=lease_s):
            raise InvalidArgument("lease_s", f"must be at least 1 and shorter than keep, not {lease_s}")
        self._marks, self._keep, self._lease = marks, keep, timedelta(seconds=lease_s)
        self._at_most_once = at_most_once
        self._clock, self._chance = clock or SystemClock(), chance or SystemChance()

    def __call__(self, key: str) -> Once:
        """Returns a context manager, for `with` or `async with`, whose value is True if the effect must happen now.

        Entering raises InProgress, TransportError, and Unsure with `at_most_once`. An Exception in the block means that
        the effect did not happen, and frees the key. Unsure, and anything that is not an Exception, such as SystemExit,
        leaves the claim.
        """
        if not isinstance(key, str):
            raise InvalidArgument("key", f"must be a string, such as the id of the run, not {key!r}")
        if not 1 <= len(key) <= LONGEST_KEY:
            raise InvalidArgument("key", f"must have 1 to {LONGEST_KEY} characters, not {len(key)}")
        return Once(self, key)

    def claim(self, key: str) -> Mark | None:
        """Returns the claim; None if the effect has happened. Raises the same errors as entering the block."""
        now = self._clock.now()
        mine = Mark(self._chance.token(16).hex(), now + self._lease, now + self._keep)
        try:
            standing = self._marks.claim(key, mine, now=now, take_over=not self._at_most_once)
        except TransportError:
            self.release(key, mine)  # the claim may have been written, but the effect has not begun
            raise
        if standing.owner == mine.owner:
            return mine
        _refuse(key, standing, now)
        return None

    def confirm(self, key: str, mark: Mark) -> None:
        """Remembers the effect. Only logs a failure of the store: an error would cause the effect to be repeated."""
        try:
            self._marks.confirm(key, confirmed(mark, self._clock.now() + self._keep))
        except TransportError as fault:
            log.error('the effect "%s" happened but may not be remembered: %s', key, fault)  # noqa: TRY400

    def release(self, key: str, mark: Mark) -> None:
        """Frees the key. Best effort: if it fails, the claim ends with its lease."""
        with suppress(TransportError):
            self._marks.release(key, mark)


class Once:
    """The context manager around an effect. Its value is True if the effect must happen now, else False."""

    def __init__(self, dedupe: Dedupe, key: str) -> None:
        self._dedupe, self._key = dedupe, key
        self._mark: Mark | None = None

    def __enter__(self) -> bool:
        self._mark = self._dedupe.claim(self._key)
        return self._mark is not None

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._mark is None:
            return
        if error is None:
            self._dedupe.confirm(self._key, self._mark)
        elif isinstance(error, Exception) and not isinstance(error, Unsure):
            self._dedupe.release(self._key, self._mark)

    async def __aenter__(self) -> bool:
        from asyncio import to_thread  # noqa: PLC0415 - whoever awaits has it

        return await to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from asyncio import to_thread  # noqa: PLC0415

        await to_thread(self.__exit__, kind, error, trace)


def _refuse(key: str, standing: Mark, now: datetime) -> None:
    """Raises InProgress or Unsure for another process's claim; returns if the effect has happened."""
    if standing.claimed_until is None:
        return
    if standing.claimed_until > now:
        raise InProgress(key, (standing.claimed_until - now).total_seconds())
    raise Unsure(
        f'the effect "{key}" was begun, and it is unknown whether it happened: find out, then delete its mark to '
        "repeat the effect, or remove claimed_until from the mark if the effect happened"
    )
