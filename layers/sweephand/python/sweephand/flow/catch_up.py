"""Catch-up: a schedule with missed occurrences is split, so that fresh ones never wait behind them.

The split is one transaction: the schedule goes on to its next fresh instant, and what was missed becomes either a row
that sends it paced, or a line in the ledger that says how many were left out. Its policy is judged once, there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sweephand import ids
from sweephand.domain import misfire, series
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.message import occurrence
from sweephand.domain.misfire import Missed, Policy
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import ScheduleState
from sweephand.domain.waiting import SweepText, Waits
from sweephand.errors import Unavailable
from sweephand.flow import ranges
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.schedules.timing import Timing, load
from sweephand.store import keys
from sweephand.store.conditional import Op, Written, add, assign, every
from sweephand.store.table import CatchUpItem, ScheduleItem, StatsItem
from sweephand.store.views import runs as views
from sweephand.store.waiting import WaitingRow

STRETCH = timedelta(minutes=1)
"""What one look at a catch-up row sends ahead."""


@dataclass(frozen=True)
class CatchUp:
    """The packed text of a catch-up row. cursor: the next occurrence to send; until: the last."""

    job_id: str
    generation: int
    cursor: datetime
    until: datetime
    rate_per_minute: int
    packed: str

    def __str__(self) -> str:
        numbers = f"{self.generation},{epoch_s(self.cursor)},{epoch_s(self.until)},{self.rate_per_minute}"
        return f"{self.job_id},{numbers};{self.packed}"

    @classmethod
    def read(cls, text: str) -> CatchUp:
        head, packed = text.split(";", 1)
        job_id, generation, cursor, until, rate = head.split(",")
        return cls(job_id, int(generation), from_s(int(cursor)), from_s(int(until)), int(rate), packed)


def split(world: World, row: WaitingRow, sweep: SweepText, now: datetime) -> WaitingRow | None:
    """Takes what was missed out of an overdue row. Returns the row as it is now; None if somebody else changed it.

    The same row comes back where nothing is missed. Raises Unavailable if the kept occurrence was not sent.
    """
    timing = load(sweep.packed)
    left = None if timing.count is None else timing.count - row.planned_total
    found = misfire.missed(timing, Policy.read(sweep.misfire), row.next_run_at, now, left)
    if found is None:
        return row
    there = _runs_within(world, row, found)
    kept = found.count if found.all_run else 1 + sum(1 for run in there if run.planned_at != found.last)
    planned_total = row.planned_total + kept
    upcoming = timing.rule.next_after(found.last)
    over = upcoming is None or (timing.count is not None and planned_total >= timing.count)
    next_at = now + timedelta(minutes=15) if over or upcoming is None else upcoming
    line = _missed_line(row, found, found.count - kept, now) if found.count > kept else None
    if not found.all_run:
        _send_before(world, row, found, sweep, line, now)
    ops = [_schedule_op(world, row, sweep, found, planned_total, next_at, over=over)]
    if found.all_run:
        ops.append(_row_op(world, row, sweep, found, now))
    elif line is not None:
        ops += _missed_ops(world, row, line)
    if not isinstance(world.table.transact(ops), Written):
        return None
    world.journal.warning("missed", tenant=row.tenant, job=row.owner, schedule=row.own_id, rows=found.count)
    if over:
        sweep = replace(sweep, waits=Waits.END)
    return replace(row, next_run_at=next_at, planned_total=planned_total, sweep=str(sweep))


def _send_before(
    world: World, row: WaitingRow, found: Missed, sweep: SweepText, line: Run | None, now: datetime
) -> None:
    """The occurrence that the policy runs, and word of the line for the rest."""
    deliveries = [_delivery(row, found.last, row.generation, sweep, now)]
    if line is not None:
        deliveries.append(ranges.word_of(line, now, sweep.lane))
    if world.queue.send(deliveries):
        raise Unavailable("the run queue did not take a message")


def _runs_within(world: World, row: WaitingRow, found: Missed) -> list[Run]:
    """Those that an executor made although the series was not moved on (a crash between send and advance)."""
    if found.all_run:
        return []
    before = found.first - timedelta(seconds=1)
    return [
        run
        for run in views.planned_between(world.table, row.tenant, row.own_id, before, found.last)
        if run.range_count is None
    ]


def _schedule_op(
    world: World, row: WaitingRow, sweep: SweepText, found: Missed, planned_total: int, next_at: datetime, *, over: bool
) -> Op:
    actions = [
        assign(ScheduleItem.next_run_at, epoch_s(next_at)),
        assign(ScheduleItem.planned_total, planned_total),
        assign(ScheduleItem.missed_to, epoch_s(found.last)),
    ]
    if over:
        actions += [
            assign(ScheduleItem.state, ScheduleState.ENDING.value),
            assign(ScheduleItem.sweep, str(replace(sweep, waits=Waits.END))),
            assign(ScheduleItem.last_planned_at, epoch_s(found.last)),
        ]
    as_read = every(ScheduleItem.next_run_at == epoch_s(row.next_run_at), ScheduleItem.generation == row.generation)
    return world.table.update_op("schedule", row.pk, row.sk, actions, as_read)


def _row_op(world: World, row: WaitingRow, sweep: SweepText, found: Missed, now: datetime) -> Op:
    rate = Policy.read(sweep.misfire).rate_per_minute
    catch_up = CatchUp(row.owner, row.generation, found.first, found.last, rate, sweep.packed)
    item = CatchUpItem(
        pk=keys.runs(row.tenant, row.own_id),
        sk=keys.catch_up(epoch_s(found.first)),
        shard=ids.shard_of(row.own_id, world.settings.shards),
        next_run_at=epoch_s(now),
        sweep=str(SweepText(Waits.CATCH_UP, sweep.lane, sweep.misfire, str(catch_up))),
    )
    return world.table.put_op("catch-up", item)


def _missed_line(row: WaitingRow, found: Missed, count: int, now: datetime) -> Run:
    """One line for all that the policy left out."""
    return ranges.line(
        row.tenant,
        row.owner,
        row.own_id,
        state=State.MISSED,
        reason=Reason.SERVICE_OUTAGE,
        first=found.first,
        last=found.last,
        count=count,
        generation=row.generation,
        now=now,
        message=f"{count} occurrences were due while the service was out; the policy runs the last one",
    )


def _missed_ops(world: World, row: WaitingRow, line: Run) -> Sequence[Op]:
    assert line.range_count is not None
    stats_key = keys.job(row.tenant, row.owner), keys.stats(row.own_id)
    counted = [add(StatsItem.missed, line.range_count)]
    return [ranges.op(world, line), world.table.update_op("stats", *stats_key, counted)]


def send_stretch(world: World, row: WaitingRow, sweep: SweepText, now: datetime) -> int:
    """One look at a catch-up row: a minute's worth goes out, evenly; then the cursor moves, or the row is done.

    Returns how many were sent. Raises Unavailable if one was not: the next look sends all of them again.
    """
    catch_up = CatchUp.read(sweep.packed)
    timing: Timing = replace(load(catch_up.packed), count=None)
    stretch = series.due(timing, catch_up.cursor, catch_up.until, 0, now)
    instants = stretch.instants[: catch_up.rate_per_minute]
    begin = max(now, row.next_run_at)
    apart = STRETCH / catch_up.rate_per_minute
    owner = replace(row, pk=keys.job(row.tenant, catch_up.job_id), sk=keys.schedule(row.owner))
    deliveries = [
        _delivery(owner, instant, catch_up.generation, sweep, begin + n * apart) for n, instant in enumerate(instants)
    ]
    if world.queue.send(deliveries):
        return 0
    as_read = every(CatchUpItem.next_run_at == epoch_s(row.next_run_at), CatchUpItem.sweep == row.sweep)
    behind = timing.rule.next_after(instants[-1]) if instants else None
    if behind is None or behind > catch_up.until:
        world.table.delete(row.pk, row.sk, as_read)
    else:
        moved = replace(sweep, packed=str(replace(catch_up, cursor=behind)))
        actions = [
            assign(CatchUpItem.sweep, str(moved)),
            assign(CatchUpItem.next_run_at, epoch_s(begin + STRETCH)),
        ]
        world.table.update(row.pk, row.sk, actions, as_read)
    return len(deliveries)


def _delivery(row: WaitingRow, instant: datetime, generation: int, sweep: SweepText, at: datetime) -> Delivery:
    pointer = occurrence(row.tenant, row.owner, row.own_id, instant, generation)
    return Delivery(replace(pointer, decided=True), at, sweep.lane)
