"""Received messages, their verdicts (acknowledge, or return to the queue), and the metrics of their runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import from_ms
from sweephand.domain.job import Job
from sweephand.domain.run import FAILED, Kind, Run, State
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Letter

if TYPE_CHECKING:
    from sweephand.domain.message import Pointer
    from sweephand.domain.runs.admission import RunContext
    from sweephand.domain.runs.run_action import OpenAttempt
    from sweephand.domain.schedule import Lane

with lazy():
    from sweephand.domain import watched
    from sweephand.domain.runs import run_action


@dataclass(frozen=True)
class Delivered:
    """A received message. received_at: by this function's clock; sent_at: the queue's stamp."""

    message_id: str
    receipt: str
    body: str
    received_at: datetime
    sent_at: datetime | None = None
    receive_count: int = 1


def delivered(letter: Letter, now: datetime) -> Delivered:
    """Returns a message that this function has received itself."""
    sent_at = from_ms(letter.sent_ms)
    return Delivered(letter.message_id, letter.receipt, letter.body, now, sent_at, letter.receive_count)


@dataclass(frozen=True)
class RunMessage:
    """A received message of a run, with the rows that decide about it. lane: the queue whose readers may act on it.

    owner, lease_s: names who claims the run, and for how long; not needed if nobody does.
    """

    delivered: Delivered
    pointer: Pointer
    context: RunContext
    lane: Lane
    owner: str = ""
    lease_s: float = 0

    @property
    def first_sent_at(self) -> datetime | None:
        """When the queue accepted the first message of this pointer; None for a worker's run.

        The lateness of a worker's message counts from the planned instant. If it counted from when the message was
        sent, an executor would consider a message that was just passed on to be fresh, and would send it back.
        """
        return None if self.lane.of_application else self.pointer.sent_at or self.delivered.sent_at

    def reread(self, run: Run | None) -> RunMessage:
        """Returns the message with the run's row as it is now."""
        return replace(self, context=replace(self.context, run=run))

    def attempt(self, run: Run) -> OpenAttempt:
        """Returns an attempt of its run, which has a job. run: as the attempt's claim leaves or left the row."""
        context = self.context
        assert context.job is not None
        return run_action.OpenAttempt(run, context.job, context.schedule, context.terms, self.lane, context.run)


@dataclass(frozen=True)
class Verdict:
    """The outcome of a message. acknowledged: if False, the message is reported as failed and comes back.

    back_in_s: seconds until it comes back; None for the queue's visibility timeout. attempted: the run as it was
    claimed for an attempt. ended: the run, if this message ended it. job: of that run; None if it was deleted.
    """

    acknowledged: bool
    back_in_s: float | None = None
    attempted: Run | None = None
    ended: Run | None = None
    job: Job | None = None


DONE = Verdict(acknowledged=True)

AGAIN = Verdict(acknowledged=False)

LEASE_MARGIN_S = 10
"""How much longer than its lease a message stays hidden, so that its next delivery can take over the run."""


def later(world: World, at: datetime) -> Verdict:
    """Returns the verdict for a message that must wait until `at`. It comes back 1 to 5 s after that."""
    left_s = (at - world.clock.now()).total_seconds()
    return Verdict(acknowledged=False, back_in_s=max(1.0, left_s) + world.chance.uniform(1, 5))


LONGEST_WAIT_S = 900.0


def back_in_s(verdict: Verdict, message: Delivered, lease_s: float) -> float | None:
    """Returns how long a message stays hidden that was not acknowledged; None if it was.

    Without a time of its own, it comes back after the lease, which doubles with each receive up to 15 minutes. So the
    ten receives before a dead letter take an hour and a half.
    """
    if verdict.acknowledged:
        return None
    if verdict.back_in_s is not None:
        return verdict.back_in_s
    return min(LONGEST_WAIT_S, (lease_s + LEASE_MARGIN_S) * 2.0 ** min(message.receive_count - 1, 10))


def measure(world: World, verdicts: Collection[Verdict]) -> None:
    """Writes one line for these verdicts, and one for each collection and application with metrics of its own.

    A line has the lateness of first attempts, and 0 or 1 for each run that ended. A repeated pointer may count a
    reported result twice; only the totals in the table are exact.
    """
    _write(world, verdicts, None)
    if world.settings.metrics_of:
        parts = [(each, _parts_of(world, each)) for each in verdicts]
        for part in frozenset[watched.Part]().union(*(own for _, own in parts)):
            _write(world, [each for each, own in parts if part in own], {part.kind: part.value})


def _parts_of(world: World, verdict: Verdict) -> frozenset[watched.Part]:
    run = verdict.attempted or verdict.ended
    if run is None or verdict.job is None:
        return frozenset()
    return watched.parts_of(world.settings.metrics_of, run, verdict.job)


def _write(world: World, verdicts: Collection[Verdict], part: Mapping[str, str] | None) -> None:
    first = [run for each in verdicts if (run := each.attempted) and _shows_lateness(run)]
    ended = [run.state for each in verdicts if (run := each.ended)]
    values = {
        "Lateness": [run.lateness_ms for run in first if run.lateness_ms is not None],
        "Failed": [int(state in FAILED) for state in ended if state is State.SUCCESS or state in FAILED],
    }
    if any(values.values()):
        world.journal.measure(part, **{name: each for name, each in values.items() if each})


def _shows_lateness(run: Run) -> bool:
    """Returns whether the run's start shows how late the service is. A run that waited for its consumer does not."""
    return run.attempt == 1 and run.kind is Kind.SCHEDULED and run.consumer is None
