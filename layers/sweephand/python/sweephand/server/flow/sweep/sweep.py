"""The sweep: sends the messages of all rows that are due within the look-ahead, then advances the rows.

Two sweepers in the same minute do no harm: a repeated message has the same run id, and an advance is conditional.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sweephand.base.errors import Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.occurrences.index_row import SweepText, UnknownKind, Waits
from sweephand.domain.occurrences.lateness import FRESH
from sweephand.domain.occurrences.suspension import Suspensions
from sweephand.domain.schedule import names_calendars, names_zone
from sweephand.schedules.timing import load
from sweephand.schedules.zones import localtime
from sweephand.server.flow.sweep.steps import Step, plan_row
from sweephand.server.flow.world import World
from sweephand.server.store.index import next_run_index, suspended
from sweephand.server.store.index.next_run_index import Advance, Advanced, WaitingRow
from sweephand.server.threads import at_once

if TYPE_CHECKING:
    from sweephand.server.store.index.newer_zones import Look

with lazy():
    from sweephand.server.flow.series import catch_up, holding, moving
    from sweephand.server.flow.sweep import broken_rows, newer_zones
    from sweephand.server.store.calendars import calendars

TICK_DEADLINE_S = 50.0
MOST_THREADS = 16
ADVANCE_TRIES = 4
GROUP = 50
"""Rows that are sent and advanced together. After a crash in between, only their messages are repeated.

With one occurrence each, they fill five calls to the queue and two to the table.
"""


@dataclass
class Tally:
    """The counts of one tick. resent: rows not advanced, whose messages the next tick sends again.

    oldest_due_s: the age of the oldest due row, sent or left. unseen: whether there may be older rows, because the
    table did not answer.
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


ASIDE_MOST = 5_000
"""Rows of disabled tenants and collections that a shard moves in one tick, after all others."""


@dataclass(frozen=True)
class _Tick:
    """One tick. began_at: until then, nothing was due. deadline: monotonic seconds, after which it begins nothing."""

    world: World
    suspensions: Suspensions | None
    began_at: datetime
    deadline: float

    @property
    def horizon(self) -> datetime:
        return self.began_at + timedelta(seconds=self.world.settings.look_ahead_s)

    @property
    def is_over(self) -> bool:
        return self.world.clock.monotonic() > self.deadline


@dataclass(frozen=True)
class _ShardRows:
    """The rows of one shard that are still to be read, in pages."""

    shard: int
    pages: Iterator[list[WaitingRow]]


def tick(world: World, worker: int = 0, workers: int = 1) -> Tally:
    """Sweeps this worker's shards for at most 50 s; the next tick does the rest.

    Reads a page of each shard, then sends and advances all groups of these pages at once, until all rows are read. So
    one shard with many due rows has all threads.
    """
    deadline = world.clock.monotonic() + TICK_DEADLINE_S
    suspensions, shards, looks = _stack(world)
    this = _Tick(world, suspensions, world.clock.now(), deadline)
    total = Tally()
    reading = [_ShardRows(shard, _pages(this, shard)) for shard in range(worker, shards, workers)]
    while reading and not this.is_over:
        read = at_once(lambda each: _next_page(this, each, total), reading, MOST_THREADS)
        groups = [page[begin : begin + GROUP] for page in read for begin in range(0, len(page or ()), GROUP) if page]
        for tally in at_once(lambda rows: _guarded(this, rows), groups, MOST_THREADS):
            total.add(tally)
        reading = [each for each, page in zip(reading, read, strict=True) if page is not None]
    if this.is_over:
        _leave(this, [each.shard for each in reading], total)
    _look_at_newer_zones(this, worker, workers, range(worker, shards, workers), looks)
    world.journal.info(
        "tick", rows=total.rows, sent=total.sent, advanced=total.advanced, left=total.left, resent=total.resent
    )
    _measure(world, total)
    return total


def _look_at_newer_zones(
    this: _Tick, worker: int, workers: int, shards: Sequence[int], looks: Mapping[int, Look] | None
) -> None:
    """Looks through what is due soon if the time-zone data are newer than those of the ticks before."""
    if looks is None or this.is_over:
        return
    look = looks.get(worker)
    if look is None or not look.is_for(localtime.IANA_VERSION, workers):
        look = newer_zones.begin(localtime.IANA_VERSION, workers, this.began_at, looks)
    elif look.step is None:
        return
    try:
        newer_zones.go_on(this.world, worker, look, shards, this.deadline)
    except Unavailable:
        this.world.journal.warning("the next tick looks for instants that newer zone data have moved")


def tick_or_fail(world: World, worker: int = 0, workers: int = 1) -> Tally:
    """Sweeps like `tick`. Raises Unavailable after that if it could not see all rows.

    Lambda then counts a failed invocation, and keeps its event as evidence.
    """
    total = tick(world, worker, workers)
    if total.unseen:
        raise Unavailable("a shard could not be read to its end; the next tick reads it again")
    return total


def _measure(world: World, total: Tally) -> None:
    """Publishes what is late or repeated. A tick in time writes nothing, because a metric costs money by the hour."""
    values = {"OldestDue": total.oldest_due_s, "Resent": total.resent}
    values = {name: value for name, value in values.items() if value}
    if values:
        world.journal.measure(**values)


def _stack(world: World) -> tuple[Suspensions | None, int, Mapping[int, Look] | None]:
    """Returns what is disabled, the number of shards, and how far workers have looked for newer zone data.

    If they cannot be read, everything in the known shards is sent, and the executor's gate decides.
    """
    try:
        suspensions, kept, looks = suspended.read(world.table)
        shards = world.shards.learn(kept)
    except Unavailable:
        world.journal.warning("cannot read the number of shards, and which tenants and collections are disabled")
        return None, max(world.shards.known, world.shards.wanted), None
    if shards > world.shards.wanted:
        refusal = f"Shards cannot be lowered to {world.shards.wanted}: the stack keeps its {shards} shards"
        world.journal.warning(refusal)
    return suspensions, shards, looks


def _pages(this: _Tick, shard: int) -> Iterator[list[WaitingRow]]:
    """Yields fresh rows, then overdue ones, and finally rows of disabled tenants and collections."""
    aside: list[WaitingRow] = []
    for page in next_run_index.fresh_first(this.world.table, shard, this.began_at - FRESH, this.horizon):
        yield _without_held(page, this.suspensions, aside)
    if aside:
        yield aside


def _next_page(this: _Tick, rows: _ShardRows, total: Tally) -> list[WaitingRow] | None:
    """Returns the shard's next page; None after the last. If the table does not answer, the next tick does the rest."""
    try:
        return next(rows.pages, None)
    except Unavailable:
        _cut_short(this, rows.shard, total)
        return None


def _cut_short(this: _Tick, shard: int | None, total: Tally) -> None:
    total.cut_short = total.unseen = True
    this.world.journal.warning("shard cut short", shard=shard)


def _leave(this: _Tick, shards: Sequence[int], total: Tally) -> None:
    """Leaves these shards to the next tick, and notes their oldest rows."""
    total.cut_short = total.cut_short or bool(shards)
    for shard in shards:
        try:
            oldest = next_run_index.oldest(this.world.table, shard)
        except Unavailable:
            _cut_short(this, shard, total)
        else:
            total.oldest_due_s = max(total.oldest_due_s, _age_s(oldest, this.began_at))


def _age_s(due_at: datetime | None, now: datetime) -> int:
    return 0 if due_at is None else max(0, int((now - due_at).total_seconds()))


def _without_held(page: list[WaitingRow], suspensions: Suspensions | None, aside: list[WaitingRow]) -> list[WaitingRow]:
    """Returns the rows that may be sent; puts the others aside, up to the limit of a tick."""
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
        return False  # _step decides about a row that cannot be read


def _guarded(this: _Tick, rows: Sequence[WaitingRow]) -> Tally:
    """Sweeps a group. If the table does not answer, the next tick does it, and all other groups go on."""
    try:
        return _sweep_group(this, rows)
    except Unavailable:
        tally = Tally()
        _cut_short(this, rows[0].shard, tally)
        return tally


def _sweep_group(this: _Tick, rows: Sequence[WaitingRow]) -> Tally:
    """Sends and advances a group, unless the tick is over."""
    world, now = this.world, this.world.clock.now()
    oldest_due_s = max(_age_s(row.next_run_at, now) for row in rows)
    if this.is_over:
        return Tally(oldest_due_s=oldest_due_s, cut_short=True)
    _know_calendars(world, rows)
    steps: list[Step] = []
    caught_up = 0
    for row in rows:
        step = _step(world, row, this.suspensions, now, this.horizon)
        if isinstance(step, Step):
            steps.append(step)
        else:
            caught_up += step
    unsent = set(world.queue.send([delivery for step in steps for delivery in step.deliveries]))
    whole = [step.advance for step in steps if unsent.isdisjoint(step.deliveries)]
    moved = _advance(this, whole)
    return Tally(
        rows=len(rows),
        sent=sum(len(step.deliveries) for step in steps) - len(unsent) + caught_up,
        advanced=len(moved.done),
        left=len(moved.left),
        resent=len(steps) - len(whole) + len(moved.again),
        oldest_due_s=oldest_due_s,
    )


def _know_calendars(world: World, rows: Sequence[WaitingRow]) -> None:
    """Reads the calendar versions that these schedules name, each once in the life of a sweeper. Most name none.

    If a version cannot be read now, only the rows that name it wait for the next tick.
    """
    named = [(row.tenant, row.sweep) for row in rows if names_calendars(row.sweep)]
    if not named:
        return
    with suppress(Unavailable):
        calendars.know(world.table, named)


def _advance(this: _Tick, steps: Sequence[Advance]) -> Advanced:
    """Advances a group; retries what was throttled or in conflict, with jitter, while the tick lasts.

    A row that is in another shard than new rows would be, because there were fewer then, moves to its new one.
    """
    world = this.world
    done: tuple[Advance, ...] = ()
    left: tuple[Advance, ...] = ()
    open_steps = tuple(steps)
    for tries in range(ADVANCE_TRIES):
        if not open_steps or this.is_over:
            break
        if tries:
            world.clock.sleep(world.chance.uniform(0.01, 0.05 * 2**tries))
        again: tuple[Advance, ...] = ()
        for begin in range(0, len(open_steps), next_run_index.BATCH_MOST):
            moved = next_run_index.advance(
                world.table, open_steps[begin : begin + next_run_index.BATCH_MOST], world.shards
            )
            done, left, again = done + moved.done, left + moved.left, again + moved.again
        open_steps = again
    return Advanced(done, left, open_steps)


def _step(
    world: World, row: WaitingRow, suspensions: Suspensions | None, now: datetime, horizon: datetime
) -> Step | int:
    """Returns the row's step or, for a row that is processed here at once, the number of messages sent."""
    try:
        sweep = SweepText.read(row.sweep)
        decided = _decided(world, row, sweep, suspensions, now)
        if not isinstance(decided, WaitingRow):
            return decided or 0
        if decided is not row:
            row, sweep = decided, SweepText.read(decided.sweep)
        late = sweep.waits is Waits.OCCURRENCE and row.next_run_at < now - FRESH
        if late or sweep.waits is Waits.CATCH_UP:
            if sweep.waits is Waits.CATCH_UP:
                return catch_up.send_stretch(world, row, sweep, now)
            fresh = catch_up.split(world, row, sweep, now)
            if fresh is None or fresh.next_run_at > horizon:
                return 0
            row, sweep = fresh, SweepText.read(fresh.sweep)
        return plan_row(row, sweep, now, horizon)
    except UnknownKind as later:
        world.journal.warning("a row of a later version is left alone", kind=str(later))
    except Unavailable as unavailable:
        world.journal.warning("a row waits for the next tick", reason=unavailable.reason)
    except ValueError as unreadable:
        try:
            broken_rows.take_out(world, row, unreadable)
        except Unavailable as unavailable:
            world.journal.warning("a row waits for the next tick", reason=unavailable.reason)
    return 0


def _decided(
    world: World, row: WaitingRow, sweep: SweepText, suspensions: Suspensions | None, now: datetime
) -> WaitingRow | Step | None:
    """Returns the row if it may be sent; the step that moves it by newer zone data, or holds it; None to leave it."""
    if sweep.waits is Waits.OCCURRENCE and names_zone(sweep.packed):
        upcoming = moving.unsent_now(world, row, sweep, load(sweep.packed))
        if upcoming != row.next_run_at:
            return Step(Advance(row, upcoming), (moving.word_of(row, upcoming, sweep.lane, now),))
    if suspensions or sweep.waits is Waits.HELD:
        decided = holding.decide(world, row, sweep, suspensions, now)
        return Step(decided) if isinstance(decided, Advance) else decided
    return row
