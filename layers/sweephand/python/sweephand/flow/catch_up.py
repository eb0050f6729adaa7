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
from sweephand.domain.instants import epoch_s, from_s, up_to_second
from sweephand.domain.lateness import Policy
from sweephand.domain.message import occurrence
from sweephand.domain.misfire import Missed, Span
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.domain.waiting import SweepText, Waits
from sweephand.errors import Unavailable
from sweephand.flow import ranges
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.schedules.timing import Timing, between, load
from sweephand.store import jobs, keys
from sweephand.store.conditional import Op, Refused, Written
from sweephand.store.expressions import Condition, add, assign, every
from sweephand.store.table import CatchUpItem, ScheduleItem, StatsItem
from sweephand.store.views import runs as views
from sweephand.store.waiting import WaitingRow

STRETCH = timedelta(minutes=1)
"""What one look at a catch-up row sends ahead."""
SENT_FURTHER = timedelta(seconds=70)
"""By how much more than the look-ahead a request sends ahead what it plans, clocks that differ included."""


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
    if timing.actual_start_interval_s is not None:
        return _restarted(world, row, sweep, timing, now)
    found = misfire.missed(timing, Policy.read(sweep.misfire), row.next_run_at, now, row.planned_total)
    if found is None:
        return row
    there = _runs_left_out(world, row, found)
    planned_total = row.planned_total + len(there) + _runs_now(found)
    upcoming = timing.rule.next_after(found.span.last)
    over = upcoming is None or (timing.count is not None and planned_total >= timing.count)
    next_at = now + timedelta(minutes=15) if over or upcoming is None else upcoming
    lines = _lines(row, found, there, now)
    deliveries = [ranges.word_of(line, now, sweep.lane) for line in lines]
    if found.latest is not None:
        deliveries.insert(0, _delivery(row, found.latest, row.generation, sweep, now))
    if deliveries and world.queue.send(deliveries):
        raise Unavailable("the run queue did not take a message")
    ops = [_schedule_op(world, row, sweep, found, planned_total, next_at, over=over)]
    if found.caught_up is not None:
        ops.append(_row_op(world, row, sweep, found.caught_up, now))
    ops += _line_ops(world, row, lines, sweep.collection)
    if not isinstance(world.table.transact(ops), Written):
        return None
    world.journal.warning("missed", tenant=row.tenant, job=row.owner, schedule=row.own_id, rows=found.span.count)
    if over:
        sweep = replace(sweep, waits=Waits.END)
    return replace(row, next_run_at=next_at, planned_total=planned_total, sweep=str(sweep))


def _restarted(world: World, row: WaitingRow, sweep: SweepText, timing: Timing, now: datetime) -> WaitingRow | None:
    """Sends the late occurrence of an interval from the actual start, and lets its rhythm begin anew with it.

    Whoever planned the row may have sent some minutes of the old rhythm ahead. Of these the executor drops what lies
    before the next occurrence, which keeps to the old rhythm while they may still be out: no interval is too short.
    Returns the row as it is now, as it was where the series ends with it, None if somebody else changed it.
    """
    upcoming = series.following(timing, row.next_run_at, now)
    if upcoming is None or (timing.count is not None and row.planned_total + 1 >= timing.count):
        return row
    step = timedelta(seconds=timing.actual_start_interval_s or 0)
    if upcoming <= row.next_run_at + timedelta(seconds=world.settings.look_ahead_s) + SENT_FURTHER:
        upcoming = row.next_run_at - (row.next_run_at - upcoming) // step * step
        if upcoming > timing.ends_at:
            return row
    pointer = occurrence(row.tenant, row.owner, row.own_id, row.next_run_at, row.generation)
    if world.queue.send([Delivery(pointer, row.next_run_at, sweep.lane)]):
        raise Unavailable("the run queue did not take a message")
    actions = [
        assign(ScheduleItem.next_run_at, epoch_s(upcoming)),
        assign(ScheduleItem.planned_total, row.planned_total + 1),
        assign(ScheduleItem.missed_from, epoch_s(up_to_second(now))),
        assign(ScheduleItem.missed_to, epoch_s(upcoming) - 1),
    ]
    if isinstance(world.table.update(row.pk, row.sk, actions, _as_read(row)), Refused):
        return None
    return replace(row, next_run_at=upcoming, planned_total=row.planned_total + 1)


def _as_read(row: WaitingRow) -> Condition:
    return every(ScheduleItem.next_run_at == epoch_s(row.next_run_at), ScheduleItem.generation == row.generation)


def split_all(world: World, schedules: Sequence[Schedule]) -> None:
    """Before a change: what was missed of these is decided on as the next sweep would, by the policy that held."""
    now = world.clock.now()
    for schedule in schedules:
        row = WaitingRow.of(schedule, jobs.sweep_text(schedule))
        split(world, row, jobs.sweep_of(schedule), now)


def _runs_now(found: Missed) -> int:
    """How many of the missed occurrences are sent after all."""
    return (found.caught_up.count if found.caught_up else 0) + (found.latest is not None)


def _runs_left_out(world: World, row: WaitingRow, found: Missed) -> list[Run]:
    """Those that an executor made although the series was not moved on (a crash between send and advance)."""
    spans = [each.span for each in found.left_out]
    if not spans:
        return []
    before = found.span.first - timedelta(seconds=1)
    runs = views.planned_between(world.table, row.tenant, row.own_id, before, spans[-1].last)
    return [run for run in runs if run.range_count is None and any(span.has(run.planned_at) for span in spans)]


def _schedule_op(
    world: World,
    row: WaitingRow,
    sweep: SweepText,
    missed: Missed,
    planned_total: int,
    next_at: datetime,
    *,
    over: bool,
) -> Op:
    actions = [
        assign(ScheduleItem.next_run_at, epoch_s(next_at)),
        assign(ScheduleItem.planned_total, planned_total),
        assign(ScheduleItem.missed_from, epoch_s(missed.span.first)),
        assign(ScheduleItem.missed_to, epoch_s(missed.span.last)),
        assign(ScheduleItem.left_out_to, epoch_s(missed.left_out[-1].span.last) if missed.left_out else None),
    ]
    if over:
        actions += [
            assign(ScheduleItem.state, ScheduleState.ENDING.value),
            assign(ScheduleItem.sweep, str(replace(sweep, waits=Waits.END))),
            assign(ScheduleItem.last_planned_at, epoch_s(missed.span.last)),
        ]
    return world.table.update_op("schedule", row.pk, row.sk, actions, _as_read(row))


def _row_op(world: World, row: WaitingRow, sweep: SweepText, span: Span, now: datetime) -> Op:
    rate = Policy.read(sweep.misfire).rate_per_minute
    catch_up = CatchUp(row.owner, row.generation, span.first, span.last, rate, sweep.packed)
    item = CatchUpItem(
        pk=keys.runs(row.tenant, row.own_id),
        sk=keys.catch_up(epoch_s(span.first)),
        shard=ids.shard_of(row.own_id, world.settings.shards),
        next_run_at=epoch_s(now),
        sweep=str(SweepText(Waits.CATCH_UP, sweep.lane, sweep.misfire, str(catch_up))),
    )
    return world.table.put_op("catch-up", item)


WHY = {
    State.EXPIRED: "were later than the policy lets any run be",
    State.MISSED: "were due while the service was out, and the policy does not run them",
}


def _lines(row: WaitingRow, found: Missed, there: Sequence[Run], now: datetime) -> list[Run]:
    """One for each stretch that the policy left out, less what has a row of its own."""
    lines = []
    for each in found.left_out:
        count = each.span.count - sum(each.span.has(run.planned_at) for run in there)
        if count:
            line = ranges.line(
                row.tenant,
                row.owner,
                row.own_id,
                state=each.state,
                reason=each.reason,
                first=each.span.first,
                last=each.span.last,
                count=count,
                generation=row.generation,
                now=now,
                message=f"{count} occurrences {WHY[each.state]}",
            )
            lines.append(line)
    return lines


def _line_ops(world: World, row: WaitingRow, lines: Sequence[Run], collection: str | None) -> list[Op]:
    missed = sum(line.range_count or 0 for line in lines)
    if not missed:
        return []
    stats_key = keys.job(row.tenant, row.owner), keys.stats(row.own_id)
    counted = world.table.update_op("stats", *stats_key, [add(StatsItem.missed, missed)])
    return [*(ranges.op(world, line, collection) for line in lines), counted]


def send_stretch(world: World, row: WaitingRow, sweep: SweepText, now: datetime) -> int:
    """One look at a catch-up row: a minute's worth goes out, evenly; then the cursor moves, or the row is done.

    Returns how many were sent. Raises Unavailable if one was not: the next look sends all of them again.
    """
    catch_up = CatchUp.read(sweep.packed)
    rule = load(catch_up.packed).rule
    later = between(rule, catch_up.cursor, catch_up.until, catch_up.rate_per_minute)
    instants = [catch_up.cursor, *later][: catch_up.rate_per_minute]
    begin = max(now, row.next_run_at)
    apart = STRETCH / catch_up.rate_per_minute
    owner = replace(row, pk=keys.job(row.tenant, catch_up.job_id), sk=keys.schedule(row.owner))
    deliveries = [
        _delivery(owner, instant, catch_up.generation, sweep, begin + n * apart) for n, instant in enumerate(instants)
    ]
    if world.queue.send(deliveries):
        return 0
    as_read = every(CatchUpItem.next_run_at == epoch_s(row.next_run_at), CatchUpItem.sweep == row.sweep)
    behind = rule.next_after(instants[-1])
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
