"""The sweep: one look at everything that waits and is due within the look-ahead. Send, then advance.

Two sweepers on one minute are as good as one: a message repeats under the same run id, an advance is conditional.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sweephand.domain.message import Pointer, Subject, occurrence
from sweephand.domain.occurrences import series
from sweephand.domain.occurrences.index_row import WAKE_AGAIN, SweepText, UnknownKind, WaitingRun, Waits
from sweephand.domain.occurrences.lateness import FRESH
from sweephand.domain.occurrences.suspension import Suspensions
from sweephand.domain.schedule import Lane, names_calendars
from sweephand.errors import Unavailable
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.messaging.run_queue import Delivery
from sweephand.schedules.timing import load
from sweephand.store.index import next_run_index, suspended
from sweephand.store.index.next_run_index import Advance, Advanced, WaitingRow

with lazy():
    from sweephand.flow.series import catch_up, holding
    from sweephand.flow.sweep import broken
    from sweephand.store.calendars import calendars

TICK_DEADLINE_S = 50.0
MOST_THREADS = 16
ADVANCE_TRIES = 4
GROUP = 50
"""Rows that are sent and advanced together: a crash between repeats at most their messages.

Of one occurrence each they fill five calls to the queue and two to the table.
"""


@dataclass
class Tally:
    """What one tick did. resent: advances that did not come through, so that the next tick sends the same again.

    oldest_due_s: how long ago the oldest row was due that it met, or had to leave. unseen: whether there may be older
    ones, which the table did not show.
    """

    rows: int = 0
    sent: int = 0
    advanced: int = 0
    left: int = 0
    resent: int = 0
    oldest_due_s: int = 0
    unseen: bool = False
    cut_short: bool = False

    def add(self, other: Tally) -> None:
        self.rows += other.rows
        self.sent += other.sent
        self.advanced += other.advanced
        self.left += other.left
        self.resent += other.resent
        self.oldest_due_s = max(self.oldest_due_s, other.oldest_due_s)
        self.unseen = self.unseen or other.unseen
        self.cut_short = self.cut_short or other.cut_short


@dataclass(frozen=True)
class Step:
    """One row's part of the sweep: what to send, then how to move on."""

    advance: Advance
    deliveries: tuple[Delivery, ...] = field(default=())


ASIDE_MOST = 5_000
"""Rows of what is disabled that a shard moves in one tick, after all others; the rest keeps its place."""


def tick(world: World, shards: Iterable[int]) -> Tally:
    """Sweeps these shards until all is done or 50 s are over: what is left is the next tick's."""
    shards = list(shards)
    deadline = world.clock.monotonic() + TICK_DEADLINE_S
    total = Tally()
    suspensions = _suspensions(world)
    with ThreadPoolExecutor(max_workers=max(1, min(MOST_THREADS, len(shards)))) as pool:
        for tally in pool.map(lambda shard: _sweep_shard(world, shard, suspensions, deadline), shards):
            total.add(tally)
    world.journal.info(
        "tick", rows=total.rows, sent=total.sent, advanced=total.advanced, left=total.left, resent=total.resent
    )
    _measure(world, total)
    return total


def _measure(world: World, total: Tally) -> None:
    """OldestDue with every tick that saw all its rows: its absence tells of a sweeper that is silent or blind."""
    values = {} if total.unseen else {"OldestDue": total.oldest_due_s}
    if total.resent:
        values["Resent"] = total.resent
    if values:
        world.journal.measure(**values)


def _suspensions(world: World) -> Suspensions | None:
    """What is disabled; None if the table does not say: then all is sent, and the executor's gate decides."""
    try:
        return suspended.read(world.table)
    except Unavailable:
        world.journal.warning("what is disabled is not known")
        return None


def _sweep_shard(world: World, shard: int, suspensions: Suspensions | None, deadline: float) -> Tally:
    """One shard, fresh rows before overdue ones, and what is only moved behind all that is sent.

    What the table refuses for now is the next tick's.
    """
    now = world.clock.now()
    horizon = now + timedelta(seconds=world.settings.look_ahead_s)
    tally = Tally()
    try:
        aside: list[WaitingRow] = []
        rows = next_run_index.fresh_first(world.table, shard, now - FRESH, horizon)
        pages = (_without_held(page, suspensions, aside) for page in rows)
        for page in itertools.chain(pages, [aside]):
            for begin in range(0, len(page), GROUP):
                if world.clock.monotonic() > deadline:
                    tally.cut_short = True
                    tally.oldest_due_s = max(tally.oldest_due_s, _age_s(next_run_index.oldest(world.table, shard), now))
                    return tally
                tally.add(_sweep_group(world, page[begin : begin + GROUP], suspensions, horizon, deadline))
    except Unavailable:
        tally.cut_short = tally.unseen = True
        world.journal.warning("shard cut short", shard=shard)
    return tally


def _age_s(due_at: datetime | None, now: datetime) -> int:
    return 0 if due_at is None else max(0, int((now - due_at).total_seconds()))


def _without_held(page: list[WaitingRow], suspensions: Suspensions | None, aside: list[WaitingRow]) -> list[WaitingRow]:
    """The rows that may be sent. The others are put aside, as many as one tick moves."""
    if not suspensions:
        return page
    sent: list[WaitingRow] = []
    for row in page:
        if not _is_held(row, suspensions):
            sent.append(row)
        elif len(aside) < ASIDE_MOST:
            aside.append(row)
    return sent


def _is_held(row: WaitingRow, suspensions: Suspensions) -> bool:
    try:
        return suspensions.holds(row.tenant, SweepText.read(row.sweep))
    except (LookupError, ValueError):
        return False  # a row that cannot be read is dealt with among the others


def _sweep_group(
    world: World, rows: Sequence[WaitingRow], suspensions: Suspensions | None, horizon: datetime, deadline: float
) -> Tally:
    now = world.clock.now()
    _know_calendars(world, rows)
    steps: list[Step] = []
    caught_up = 0
    for row in rows:
        step = _step(world, row, suspensions, now, horizon)
        if isinstance(step, Step):
            steps.append(step)
        else:
            caught_up += step
    unsent = set(world.queue.send([delivery for step in steps for delivery in step.deliveries]))
    whole = [step.advance for step in steps if unsent.isdisjoint(step.deliveries)]
    moved = _advance(world, whole, deadline)
    return Tally(
        rows=len(rows),
        sent=sum(len(step.deliveries) for step in steps) - len(unsent) + caught_up,
        advanced=len(moved.done),
        left=len(moved.left),
        resent=len(steps) - len(whole) + len(moved.again),
        oldest_due_s=max(_age_s(row.next_run_at, now) for row in rows),
    )


def _know_calendars(world: World, rows: Sequence[WaitingRow]) -> None:
    """Each version that these schedules name is read once in the life of a sweeper; most name none.

    Where one cannot be read now, its rows wait for the next tick, and no other does.
    """
    named = [(row.tenant, row.sweep) for row in rows if names_calendars(row.sweep)]
    if not named:
        return
    with suppress(Unavailable):
        calendars.know(world.table, named)


def _advance(world: World, steps: Sequence[Advance], deadline: float) -> Advanced:
    """The advance of a group; what was throttled or in conflict is tried again with jitter while the tick lasts."""
    done: tuple[Advance, ...] = ()
    left: tuple[Advance, ...] = ()
    open_steps = tuple(steps)
    for tries in range(ADVANCE_TRIES):
        if not open_steps or world.clock.monotonic() > deadline:
            break
        if tries:
            world.clock.sleep(world.chance.uniform(0.01, 0.05 * 2**tries))
        again: tuple[Advance, ...] = ()
        for begin in range(0, len(open_steps), next_run_index.BATCH_MOST):
            moved = next_run_index.advance(world.table, open_steps[begin : begin + next_run_index.BATCH_MOST])
            done, left, again = done + moved.done, left + moved.left, again + moved.again
        open_steps = again
    return Advanced(done, left, open_steps)


def _step(
    world: World, row: WaitingRow, suspensions: Suspensions | None, now: datetime, horizon: datetime
) -> Step | int:
    """The row's part of the group; what cannot wait for the group is done here: then, how many messages it sent."""
    try:
        sweep = SweepText.read(row.sweep)
        if suspensions or sweep.waits is Waits.HELD:
            decided = holding.decide(world, row, sweep, suspensions, now)
            if not isinstance(decided, WaitingRow):
                return Step(decided) if decided is not None else 0
            row, sweep = decided, SweepText.read(decided.sweep)
        late = sweep.waits is Waits.OCCURRENCE and row.next_run_at < now - FRESH
        if late or sweep.waits is Waits.CATCH_UP:
            return _catch_up(world, row, sweep, now, horizon)
        return plan_row(row, now, horizon)
    except UnknownKind as later:
        world.journal.warning("a row of a later version is left alone", kind=str(later))
    except Unavailable as unavailable:
        world.journal.warning("a row waits for the next tick", reason=unavailable.reason)
    except ValueError as unreadable:
        _take_out(world, row, unreadable)
    return 0


def _catch_up(world: World, row: WaitingRow, sweep: SweepText, now: datetime, horizon: datetime) -> Step | int:
    """What has been missed is sent paced or left out; its schedule goes on with what is fresh."""
    if sweep.waits is Waits.CATCH_UP:
        return catch_up.send_stretch(world, row, sweep, now)
    fresh = catch_up.split(world, row, sweep, now)
    return 0 if fresh is None or fresh.next_run_at > horizon else plan_row(fresh, now, horizon)


def _take_out(world: World, row: WaitingRow, why: ValueError) -> None:
    """A row that cannot be read holds up no other, not even where it cannot be taken out now."""
    try:
        broken.take_out(world, row, why)
    except Unavailable as unavailable:
        world.journal.warning("a row waits for the next tick", reason=unavailable.reason)


def plan_row(row: WaitingRow, now: datetime, horizon: datetime) -> Step:
    """What the sweep does with one row.

    Raises ValueError if its text cannot be read any more, UnknownKind for a later version's.
    """
    sweep = SweepText.read(row.sweep)
    match sweep.waits:
        case Waits.OCCURRENCE:
            return _occurrences(row, sweep, now, horizon)
        case Waits.END:
            return _wake(row, sweep, now, end_pointer(row.tenant, row.owner, row.own_id, row.next_run_at))
        case Waits.RUN:
            return _wake(row, sweep, now, _run_pointer(row, WaitingRun.read(sweep.packed)))
        case Waits.CATCH_UP | Waits.HELD:
            raise ValueError("it is not planned, but sent or let go")
        case Waits.OPERATION | Waits.ERRORS:
            pointer = replace(job_pointer(row, LOOKS[sweep.waits]), generation=row.generation)
            return _wake(row, replace(sweep, lane=Lane.OPERATIONS), now, pointer)
    return _wake(row, replace(sweep, lane=Lane.FAST), now, job_pointer(row, LOOKS[sweep.waits]))


LOOKS = {
    Waits.CLEAN_UP: Subject.CLEAN_UP,
    Waits.RESUME: Subject.RESUME,
    Waits.CHANGE: Subject.CHANGE,
    Waits.RELEASE: Subject.RELEASE,
    Waits.ENDED: Subject.ENDED,
    Waits.REPLAN: Subject.REPLAN,
    Waits.OPERATION: Subject.OPERATION,
    Waits.ERRORS: Subject.ERRORS,
    Waits.FLOW: Subject.FLOW,
}
"""What the executor, or the function `operations`, is asked to see to."""


def _occurrences(row: WaitingRow, sweep: SweepText, now: datetime, horizon: datetime) -> Step:
    timing = load(sweep.packed)
    stretch = series.due(timing, row.next_run_at, horizon, row.planned_total, now)
    deliveries = tuple(
        Delivery(occurrence(row.tenant, row.owner, row.own_id, instant, row.generation), instant, sweep.lane)
        for instant in stretch.instants
    )
    planned_total = row.planned_total + len(stretch.instants)
    if stretch.next_at is not None:
        return Step(Advance(row, stretch.next_at, planned_total), deliveries)
    last = stretch.instants[-1] if stretch.instants else row.next_run_at
    return Step(Advance(row, max(last, now) + WAKE_AGAIN, planned_total, ending=True, last_at=last), deliveries)


def end_pointer(tenant: str, job_id: str, schedule_id: str, at: datetime) -> Pointer:
    """Asks the executor to see whether an ENDING schedule is over."""
    return Pointer(tenant, job_id, schedule_id, "", at, subject=Subject.SCHEDULE)


def job_pointer(row: WaitingRow, subject: Subject) -> Pointer:
    """Asks the executor to look at what waits in a partition, mostly a job's own: the row's name says which."""
    return Pointer(row.tenant, row.owner, None, row.own_id, row.next_run_at, subject=subject)


def _run_pointer(row: WaitingRow, run: WaitingRun) -> Pointer:
    schedule = row.owner if row.owner != run.job_id else None
    return Pointer(
        row.tenant, run.job_id, schedule, row.own_id, run.planned_at, kind=run.kind, attempt=run.attempt, decided=True
    )


def _wake(row: WaitingRow, sweep: SweepText, now: datetime, pointer: Pointer) -> Step:
    """The pointer goes out for the row's instant; the row stays, 15 minutes on, until what it waits for has come."""
    delivery = Delivery(pointer, row.next_run_at, sweep.lane)
    return Step(Advance(row, max(row.next_run_at, now) + WAKE_AGAIN), (delivery,))
