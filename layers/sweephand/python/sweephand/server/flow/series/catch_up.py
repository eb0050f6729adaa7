"""Splits schedules with missed occurrences, so that fresh occurrences never wait for missed ones.

The split is one transaction. The schedule advances to its next fresh instant. The missed occurrences become either a
catch-up row, which sends them at a limited rate, or a line in the ledger that counts them as left out. The misfire
policy is applied once, at the split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base import ids
from sweephand.base.errors import Unavailable
from sweephand.base.records import dataclass
from sweephand.domain.collection import REMEMBERED
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.message import occurrence
from sweephand.domain.occurrences import misfire, moved, series
from sweephand.domain.occurrences.index_row import WAKE_AGAIN, SweepText, Waits
from sweephand.domain.occurrences.lateness import Policy
from sweephand.domain.occurrences.misfire import LeftOut, Missed, Span
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.schedules.rule import between
from sweephand.schedules.timing import Timing, load
from sweephand.server.flow.series import ranges
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Written
from sweephand.server.store.dynamo.expressions import Action, Condition, assign, every
from sweephand.server.store.dynamo.table import CatchUpItem, ScheduleItem
from sweephand.server.store.index.next_run_index import WaitingRow
from sweephand.server.store.jobs import jobs
from sweephand.server.store.views import runs as views

STRETCH = timedelta(minutes=1)
"""The span of occurrences that one visit to a catch-up row sends."""
SENT_FURTHER = timedelta(seconds=70)
"""How far beyond the look-ahead a request sends the occurrences that it plans, including differences between clocks."""


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
    """Splits missed occurrences off an overdue row. Returns the row as it is now; None if somebody else changed it.

    Returns the same row if nothing was missed. Raises Unavailable if the kept occurrence was not sent.
    """
    timing = load(sweep.packed)
    if timing.actual_start_interval_s is not None:
        return _restarted(world, row, sweep, timing, now)
    ahead = timedelta(seconds=world.settings.look_ahead_s) + SENT_FURTHER
    missed = misfire.missed(timing, Policy.read(sweep.misfire), row.next_run_at, now, row.planned_total, ahead)
    if missed is None:
        return row
    recorded = _runs_left_out(world, row, missed)
    planned_total = row.planned_total + len(recorded) + _runs_now(missed)
    upcoming = timing.rule.next_after(missed.span.last)
    over = upcoming is None or (timing.count is not None and planned_total >= timing.count)
    next_at = now + WAKE_AGAIN if over or upcoming is None else upcoming
    lines = _lines(row, sweep, missed.left_out, recorded, now)
    deliveries = [ranges.word_of(line, now, sweep.lane) for line in lines]
    if missed.latest is not None:
        deliveries.insert(0, _delivery(row, missed.latest, row.generation, sweep, now))
    if deliveries and world.queue.send(deliveries):
        raise Unavailable("the run queue did not accept a message")
    ops = [_schedule_op(world, row, sweep, missed, planned_total, next_at, over=over)]
    if missed.caught_up is not None:
        ops.append(_row_op(world, row, sweep, missed.caught_up, now))
    ops += ranges.missed_ops(world, lines, sweep.collection)
    if not isinstance(world.table.transact(ops), Written):
        return None
    world.journal.warning("missed", tenant=row.tenant, job=row.owner, schedule=row.own_id, rows=missed.span.count)
    if over:
        sweep = replace(sweep, waits=Waits.END)
    return replace(row, next_run_at=next_at, planned_total=planned_total, sweep=str(sweep))


def _restarted(world: World, row: WaitingRow, sweep: SweepText, timing: Timing, now: datetime) -> WaitingRow | None:
    """Sends the late occurrence of an interval that follows actual starts, and restarts the rhythm from it.

    The next few minutes' occurrences of the old rhythm may have been sent ahead when the row was planned. While they
    may still be on their way, the next occurrence keeps the old rhythm, so that no interval is too short. Earlier
    occurrences of the old rhythm that nobody has begun are left out: the executor drops them, and a range in the ledger
    records them. Returns the row as it is now, unchanged if the series ends with it; None if somebody else changed it.
    """
    upcoming = _next_of_rhythm(world, row, timing, now)
    gone = _left_of_rhythm(row, timing, upcoming)
    recorded = [] if gone is None else _runs_within(world, row, gone.first, gone.last)
    planned_total = row.planned_total + 1 + len(recorded)
    over = upcoming is None or (timing.count is not None and planned_total >= timing.count)
    if over and gone is None:
        return row
    lines = (
        [] if gone is None else _lines(row, sweep, [LeftOut(gone, State.MISSED, Reason.SERVICE_OUTAGE)], recorded, now)
    )
    pointer = occurrence(row.tenant, row.owner, row.own_id, row.next_run_at, row.generation)
    deliveries = [
        Delivery(pointer, row.next_run_at, sweep.lane),
        *(ranges.word_of(each, now, sweep.lane) for each in lines),
    ]
    if world.queue.send(deliveries):
        raise Unavailable("the run queue did not accept a message")
    next_at = now + WAKE_AGAIN if over or upcoming is None else upcoming
    actions = [
        assign(ScheduleItem.next_run_at, epoch_s(next_at)),
        assign(ScheduleItem.planned_total, planned_total),
    ]
    if gone is not None:
        actions += [
            assign(ScheduleItem.missed_from, epoch_s(gone.first)),
            assign(ScheduleItem.missed_to, epoch_s(gone.last)),
        ]
    if over:
        sweep = replace(sweep, waits=Waits.END)
        actions += _ending(sweep, max([row.next_run_at, *(run.planned_at for run in recorded)]))
    ops = [world.table.update_op("schedule", row.pk, row.sk, actions, _as_read(row))]
    ops += ranges.missed_ops(world, lines, sweep.collection)
    if not isinstance(world.table.transact(ops), Written):
        return None
    return replace(row, next_run_at=next_at, planned_total=planned_total, sweep=str(sweep))


def _next_of_rhythm(world: World, row: WaitingRow, timing: Timing, now: datetime) -> datetime | None:
    """Returns the occurrence after the late one: one interval from now, or in the old rhythm if that was sent."""
    upcoming = series.following(timing, row.next_run_at, now)
    sent_to = row.next_run_at + timedelta(seconds=world.settings.look_ahead_s) + SENT_FURTHER
    if upcoming is None or upcoming > sent_to:
        return upcoming
    step = timedelta(seconds=timing.actual_start_interval_s or 0)
    kept = row.next_run_at - (row.next_run_at - upcoming) // step * step
    return kept if kept <= timing.ends_at else upcoming


def _left_of_rhythm(row: WaitingRow, timing: Timing, upcoming: datetime | None) -> Span | None:
    """Returns the span of the old rhythm between the late occurrence and the next, within the count; None if empty."""
    step = timedelta(seconds=timing.actual_start_interval_s or 0)
    last = timing.ends_at if upcoming is None else upcoming - timedelta(seconds=1)
    count = (last - row.next_run_at) // step
    if timing.count is not None:
        count = min(count, timing.count - row.planned_total - 1)
    return Span(row.next_run_at + step, row.next_run_at + count * step, count) if count > 0 else None


def _as_read(row: WaitingRow) -> Condition:
    return every(ScheduleItem.next_run_at == epoch_s(row.next_run_at), ScheduleItem.generation == row.generation)


def split_all(world: World, schedules: Sequence[Schedule], now: datetime) -> None:
    """Splits missed occurrences off these schedules before a change, by the old policy, as a sweep at `now` would."""
    for schedule in schedules:
        row = WaitingRow.of(schedule, jobs.sweep_text(schedule))
        split(world, row, jobs.sweep_of(schedule), now)


def _runs_now(missed: Missed) -> int:
    """Returns how many of the missed occurrences are still sent."""
    return (missed.caught_up.count if missed.caught_up else 0) + (missed.latest is not None)


def _runs_left_out(world: World, row: WaitingRow, missed: Missed) -> list[Run]:
    """Returns the runs of left-out occurrences. A sweep that crashed between send and advance has sent them."""
    spans = [each.span for each in missed.left_out]
    if not spans:
        return []
    runs = _runs_within(world, row, missed.span.first, spans[-1].last)
    return [run for run in runs if any(span.has(run.planned_at) for span in spans)]


def _runs_within(world: World, row: WaitingRow, first: datetime, last: datetime) -> list[Run]:
    runs = views.planned_between(world.table, row.tenant, row.own_id, first - timedelta(seconds=1), last)
    return [run for run in runs if run.range_count is None]


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
        *jobs.next_at_actions(sweep.packed, next_at),
        assign(ScheduleItem.planned_total, planned_total),
        assign(ScheduleItem.missed_from, epoch_s(missed.span.first)),
        assign(ScheduleItem.missed_to, epoch_s(missed.span.last)),
        assign(ScheduleItem.left_out_to, epoch_s(missed.left_out[-1].span.last) if missed.left_out else None),
    ]
    if over:
        actions += _ending(replace(sweep, waits=Waits.END), missed.span.last)
    return world.table.update_op("schedule", row.pk, row.sk, actions, _as_read(row))


def _ending(sweep: SweepText, last: datetime) -> list[Action]:
    return [
        assign(ScheduleItem.state, ScheduleState.ENDING.value),
        assign(ScheduleItem.sweep, str(sweep)),
        assign(ScheduleItem.last_planned_at, epoch_s(last)),
    ]


def _row_op(world: World, row: WaitingRow, sweep: SweepText, span: Span, now: datetime) -> Op:
    rate = Policy.read(sweep.misfire).rate_per_minute
    catch_up = CatchUp(row.owner, row.generation, span.first, span.last, rate, sweep.packed)
    item = CatchUpItem(
        pk=keys.runs(row.tenant, row.own_id),
        sk=keys.catch_up(epoch_s(span.first)),
        shard=ids.shard_of(row.own_id, world.shards),
        next_run_at=epoch_s(now),
        sweep=str(SweepText(Waits.CATCH_UP, sweep.lane, sweep.misfire, str(catch_up))),
    )
    return world.table.put_op("catch-up", item)


WHY = {
    State.EXPIRED: "were later than the policy allows",
    State.MISSED: "were due during an outage of the service, and the policy does not run them",
}


def _lines(
    row: WaitingRow, sweep: SweepText, left_out: Sequence[LeftOut], recorded: Sequence[Run], now: datetime
) -> list[Run]:
    """Returns a line for each span that the policy left out, not counting occurrences that have runs."""
    lines = []
    for each in left_out:
        count = each.span.count - sum(each.span.has(run.planned_at) for run in recorded)
        if count:
            end = each.state, each.reason, f"{count} occurrences {WHY[each.state]}"
            span = each.span.first, each.span.last, count
            owner = row.tenant, row.owner, row.own_id
            lines.append(ranges.line(owner, end, span, row.generation, now, sweep.packed))
    return lines


def send_stretch(world: World, row: WaitingRow, sweep: SweepText, now: datetime) -> int:
    """Sends one minute of a catch-up row, evenly spaced. Then advances the cursor, or deletes a finished row.

    Leaves out a minute that an interrupted sweep may have sent long ago, because rows may have expired since. The audit
    records it.
    Returns how many were sent. If any of them was not, returns 0, and the next visit sends all of them again.
    """
    catch_up = _by_zone_data(CatchUp.read(sweep.packed))
    rule = load(catch_up.packed).rule
    later = between(rule, catch_up.cursor, catch_up.until, catch_up.rate_per_minute)
    instants = [catch_up.cursor, *later][: catch_up.rate_per_minute]
    begin = max(now, row.next_run_at)
    apart = STRETCH / catch_up.rate_per_minute
    owner = replace(row, pk=keys.job(row.tenant, catch_up.job_id), sk=keys.schedule(row.owner))
    deliveries = [
        _delivery(owner, instant, catch_up.generation, sweep, begin + n * apart) for n, instant in enumerate(instants)
    ]
    if now - row.next_run_at > REMEMBERED:
        deliveries = []
    if world.queue.send(deliveries):
        return 0
    as_read = every(CatchUpItem.next_run_at == epoch_s(row.next_run_at), CatchUpItem.sweep == row.sweep)
    upcoming = rule.next_after(instants[-1])
    if upcoming is None or upcoming > catch_up.until:
        world.table.delete(row.pk, row.sk, as_read)
    else:
        moved = replace(sweep, packed=str(replace(catch_up, cursor=upcoming)))
        actions = [
            assign(CatchUpItem.sweep, str(moved)),
            assign(CatchUpItem.next_run_at, epoch_s(begin + STRETCH)),
        ]
        world.table.update(row.pk, row.sk, actions, as_read)
    return len(deliveries)


def _by_zone_data(catch_up: CatchUp) -> CatchUp:
    """Returns a catch-up whose span newer zone data has moved, with the instants that stand for its ends now.

    Only the first instant of a plan may differ from its rule without that, so the last one shows it.
    """
    timing = load(catch_up.packed)
    if catch_up.cursor == catch_up.until or not moved.is_moved(timing, catch_up.until):
        return catch_up
    until = moved.nearest(timing, catch_up.until) or catch_up.until
    if not moved.is_moved(timing, catch_up.cursor):
        return replace(catch_up, until=until)
    return replace(catch_up, cursor=moved.nearest(timing, catch_up.cursor) or catch_up.cursor, until=until)


def _delivery(row: WaitingRow, instant: datetime, generation: int, sweep: SweepText, at: datetime) -> Delivery:
    pointer = occurrence(row.tenant, row.owner, row.own_id, instant, generation)
    return Delivery(replace(pointer, decided=True), at, sweep.lane)
