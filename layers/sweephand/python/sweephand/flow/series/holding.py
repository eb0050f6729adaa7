"""Schedules of disabled collections and tenants: held without being sent, and let go once these are enabled.

The row of a held schedule stays in the next-run index, an hour or more ahead, with its earliest unsent occurrence
packed next to its kind. Letting it go is one transaction: what fell due meanwhile becomes one line of the ledger, and
the row goes on with its next occurrence. A held row that may run is let go by the first that meets it: the release
that enabling starts, the sweep, or a change of its job. The release only makes this happen sooner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand import ids
from sweephand.domain.collection import Events
from sweephand.domain.instants import epoch_s
from sweephand.domain.occurrences import series
from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.occurrences.suspension import Suspensions, looked_at_again
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.flow.series import ranges
from sweephand.flow.world import World
from sweephand.schedules.timing import Rule, load
from sweephand.store.dynamo.conditional import Op, Written
from sweephand.store.dynamo.expressions import assign, every
from sweephand.store.dynamo.table import ScheduleItem
from sweephand.store.index.next_run_index import Advance, WaitingRow
from sweephand.store.jobs import jobs
from sweephand.store.views import runs as views

SPREAD_PARTS = 3_600


def hold(row: WaitingRow, sweep: SweepText, now: datetime) -> Advance:
    """Returns the step for a row that must not be sent now."""
    spread = ids.shard_of(row.own_id, SPREAD_PARTS) / SPREAD_PARTS
    return Advance(row, looked_at_again(now, sweep, spread), held_from=sweep.since or row.next_run_at)


def decide(
    world: World, row: WaitingRow, sweep: SweepText, suspensions: Suspensions | None, now: datetime
) -> WaitingRow | Advance | None:
    """Decides on a due row. Returns the row if it may be sent (let go if it was held); the step that holds it; or None
    to leave it alone.

    suspensions: what is disabled; None if that is not known. Raises as `let_go`.
    """
    if sweep.waits not in {Waits.OCCURRENCE, Waits.HELD}:
        return row
    if suspensions is None:
        return None if sweep.waits is Waits.HELD else row
    if suspensions.holds(row.tenant, sweep):
        return hold(row, sweep, now)
    until = suspensions.ended_at(row.tenant, sweep, sweep.since or row.next_run_at, now)
    if until is None or (sweep.waits is Waits.OCCURRENCE and _is_newer(world, row, until)):
        return row
    gone_on = let_go(world, row, until)
    if gone_on is None or SweepText.read(gone_on.sweep).waits is not Waits.OCCURRENCE:
        return None
    return gone_on


def _is_newer(world: World, row: WaitingRow, until: datetime) -> bool:
    there = jobs.read_schedule(world.table, row.tenant, row.owner, row.own_id)
    return there is not None and planned_since(there, until)


def planned_since(schedule: Schedule, until: datetime) -> bool:
    """Returns whether a schedule was created or changed after its collection was enabled; then all it has due runs."""
    return schedule.held_from is None and schedule.modified_at > until


def row_of(schedule: Schedule) -> WaitingRow:
    """Returns a waiting schedule's row as the sweeper sees it."""
    return WaitingRow.of(schedule, jobs.sweep_text(schedule))


def let_go(world: World, row: WaitingRow, until: datetime) -> WaitingRow | None:
    """Leaves out what a schedule did not send up to `until`, in one line, and lets it go on after that.

    Occurrences of that time that have runs (sent before the schedule was held, and skipped by the executor) count as
    planned, not as left out. Returns the row as it is now; None if somebody else changed it.
    Raises ValueError if the row cannot be read, Unavailable.
    """
    sweep = SweepText.read(row.sweep)
    timing = load(sweep.packed)
    first = sweep.since or row.next_run_at
    actions = []
    ops: list[Op] = []
    planned_total = row.planned_total
    upcoming: datetime | None = first
    if first <= until:
        last = max(first, timing.rule.last_until(until) or first)
        there = _sent(world, row, first, last)
        planned_total += len(there)
        upcoming = timing.rule.next_after(max(until, last))
        begin = _first_unsent(timing.rule, first, there)
        actions = [
            assign(ScheduleItem.missed_from, epoch_s(begin)),
            assign(ScheduleItem.missed_to, epoch_s(last)),
            assign(ScheduleItem.left_out_to, epoch_s(last)),
            assign(ScheduleItem.planned_total, planned_total),
        ]
        extra = timing.rule.last_until(first) != first  # a first occurrence that the rule does not have
        count = series.count_within(timing, first, last) + extra - len(there)
        if count > 0:
            ops = [_line_op(world, row, sweep, begin, last, count)]
    over = upcoming is None or (timing.count is not None and planned_total >= timing.count)
    sweep = replace(sweep, waits=Waits.END if over else Waits.OCCURRENCE, since=None)
    next_at = world.clock.now() if over or upcoming is None else upcoming
    if over:
        actions += [
            assign(ScheduleItem.state, ScheduleState.ENDING.value),
            assign(ScheduleItem.last_planned_at, epoch_s(until)),
        ]
    actions += [assign(ScheduleItem.next_run_at, epoch_s(next_at)), assign(ScheduleItem.sweep, str(sweep))]
    as_read = every(ScheduleItem.next_run_at == epoch_s(row.next_run_at), ScheduleItem.generation == row.generation)
    ops.append(world.table.update_op("schedule", row.pk, row.sk, actions, as_read))
    if not isinstance(world.table.transact(ops), Written):
        return None
    return replace(row, next_run_at=next_at, planned_total=planned_total, sweep=str(sweep))


def let_all_go(world: World, held: Sequence[Schedule]) -> None:
    """Lets schedules go before a change, as if they were enabled now. If still disabled, they are held again later."""
    until = world.clock.now().replace(microsecond=0)
    for schedule in held:
        let_go(world, row_of(schedule), until)


def _sent(world: World, row: WaitingRow, first: datetime, last: datetime) -> frozenset[datetime]:
    """Returns the occurrences in that time that have runs: their messages were under way when it was disabled."""
    before = first - timedelta(seconds=1)
    found = views.planned_between(world.table, row.tenant, row.own_id, before, last)
    return frozenset(run.planned_at for run in found if run.range_count is None)


def _first_unsent(rule: Rule, first: datetime, sent: frozenset[datetime]) -> datetime:
    """Returns the first occurrence from `first` on that was not sent; `first` if there is none."""
    begin: datetime | None = first
    while begin in sent:
        begin = rule.next_after(begin)
    return first if begin is None else begin


def _line_op(world: World, row: WaitingRow, sweep: SweepText, first: datetime, last: datetime, count: int) -> Op:
    """Returns the operation that writes the line. If the collection publishes all events, announces the line first.

    Raises Unavailable if that message is not sent.
    """
    now = world.clock.now()
    line = ranges.line(
        row.tenant,
        row.owner,
        row.own_id,
        state=State.SKIPPED,
        reason=Reason.DISABLED,
        first=first,
        last=last,
        count=count,
        generation=row.generation,
        now=now,
        message="its collection or its tenant was disabled",
    )
    if sweep.collection is not None and world.standing.of(row.tenant, sweep.collection).events is Events.ALL:
        world.queue.send_one(ranges.word_of(line, now, sweep.lane))
    return ranges.op(world, line, sweep.collection)
