"""Schedules of disabled collections and tenants: held without being sent, and let go once these are enabled.

The row of a held schedule stays in the next-run index, an hour or more ahead, with its earliest unsent occurrence
packed next to its kind. Letting it go is one transaction: the occurrences that fell due meanwhile become one line of
the ledger, and the row continues with its next occurrence. A held row that may run is let go by whatever reads it
first: the release that enabling starts, the sweep, or a change of its job. The release only makes this happen sooner.

With the policy `onEnable: run_now`, a one-time occurrence that fell due meanwhile is sent instead, under its own run
id. If it had been sent before its schedule was held, the executor puts it back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base import ids
from sweephand.domain.collection import CollectionState, Events
from sweephand.domain.instants import epoch_s, from_s
from sweephand.domain.message import Pointer, Subject, occurrence
from sweephand.domain.occurrences import series
from sweephand.domain.occurrences.index_row import WAKE, SweepText, Waits
from sweephand.domain.occurrences.suspension import HOLD, Suspensions, next_check, runs_when_enabled
from sweephand.domain.run import Reason, State
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import Lane, Schedule, ScheduleState
from sweephand.schedules.rule import Rule
from sweephand.schedules.timing import load
from sweephand.server.flow.concurrency import tolerated
from sweephand.server.flow.series import moving, ranges, replan
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Refused, Written
from sweephand.server.store.dynamo.expressions import assign, every
from sweephand.server.store.dynamo.table import ReleaseItem, ScheduleItem
from sweephand.server.store.index import suspended
from sweephand.server.store.index.next_run_index import Advance, WaitingRow
from sweephand.server.store.jobs import jobs
from sweephand.server.store.views import jobs as lists
from sweephand.server.store.views import runs as views
from sweephand.server.store.views import tenants

SPREAD_PARTS = 3_600


def hold(row: WaitingRow, sweep: SweepText, now: datetime) -> Advance:
    """Returns the step for a row that must not be sent now."""
    spread = ids.shard_of(row.own_id, SPREAD_PARTS) / SPREAD_PARTS
    return Advance(row, next_check(now, sweep, spread), held_from=sweep.since or row.next_run_at)


def decide(
    world: World, row: WaitingRow, sweep: SweepText, suspensions: Suspensions | None, now: datetime
) -> WaitingRow | Advance | None:
    """Decides about a due row.

    Returns the row if it may be sent, after releasing it if it was held; the step that holds it; or None to leave it
    alone. suspensions: what is disabled; None if that is not known. Raises as `release`.
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
    gone_on = release(world, row, until)
    if gone_on is None or SweepText.read(gone_on.sweep).waits is not Waits.OCCURRENCE:
        return None
    return gone_on


def _is_newer(world: World, row: WaitingRow, until: datetime) -> bool:
    schedule = jobs.read_schedule(world.table, row.tenant, row.owner, row.own_id)
    return schedule is not None and planned_since(schedule, until)


def planned_since(schedule: Schedule, until: datetime) -> bool:
    """Returns whether a schedule was created or changed after its collection was enabled. Then all that is due runs."""
    return schedule.held_from is None and schedule.modified_at > until


def row_of(schedule: Schedule) -> WaitingRow:
    """Returns a waiting schedule's row as the sweeper sees it."""
    return WaitingRow.of(schedule, jobs.sweep_text(schedule))


def put_back(world: World, schedule: Schedule, instant: datetime) -> bool:
    """Holds a schedule as if its one occurrence, which was sent, were unsent. Returns False if the row was changed."""
    if schedule.held_from is not None:
        return True
    looked_at = world.clock.now() + HOLD
    was_sent = schedule.state is ScheduleState.ENDING
    held = replace(
        schedule,
        state=ScheduleState.ACTIVE,
        held_from=instant,
        next_run_at=looked_at,
        planned_total=schedule.planned_total - was_sent,
        last_planned_at=None,
    )
    actions = jobs.schedule_update_actions(held, world.shards)
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    return not isinstance(world.table.update(*key, actions, jobs.as_read(schedule)), Refused)


def release(world: World, row: WaitingRow, until: datetime, *, enabled: bool = True) -> WaitingRow | None:
    """Lets a schedule continue after `until`, and records in one line what it did not send up to then.

    Occurrences of that time that have runs (sent before the schedule was held, and skipped by the executor) count as
    planned, not as left out. enabled: whether to send what `onEnable` allows, before the row is written. Returns the
    row as it is now; None if somebody else changed it. Raises ValueError if the row cannot be read, and Unavailable.
    """
    sweep = SweepText.read(row.sweep)
    timing = load(sweep.packed)
    first = moving.unsent_now(world, row, sweep, timing)
    actions = []
    ops: list[Op] = []
    planned_total = row.planned_total
    upcoming: datetime | None = first
    if first <= until:
        last = max(first, timing.rule.last_until(until) or first)
        sent = _sent(world, row, first, last)
        upcoming = timing.rule.next_after(max(until, last))
        begin = _first_unsent(timing.rule, first, sent)
        extra = timing.rule.last_until(first) != first  # the rule does not have this first occurrence
        count = series.count_within(timing, first, last) + extra - len(sent)
        late = enabled and not sent and _runs_late(world, row, sweep)
        if late:
            _send_late(world, row, sweep, first)
        elif count > 0:
            ops = [_line_op(world, row, sweep, begin, last, count)]
        planned_total += len(sent) + late
        actions = [assign(ScheduleItem.planned_total, planned_total)]
        if not late:
            actions += [
                assign(ScheduleItem.missed_from, epoch_s(begin)),
                assign(ScheduleItem.missed_to, epoch_s(last)),
                assign(ScheduleItem.left_out_to, epoch_s(last)),
            ]
    over = upcoming is None or (timing.count is not None and planned_total >= timing.count)
    sweep = replace(sweep, waits=Waits.END if over else Waits.OCCURRENCE, since=None)
    next_at = world.clock.now() if over or upcoming is None else upcoming
    if over:
        actions += [
            assign(ScheduleItem.state, ScheduleState.ENDING.value),
            assign(ScheduleItem.last_planned_at, epoch_s(until)),
        ]
    actions += [*jobs.next_at_actions(sweep.packed, next_at), assign(ScheduleItem.sweep, str(sweep))]
    as_read = every(ScheduleItem.next_run_at == epoch_s(row.next_run_at), ScheduleItem.generation == row.generation)
    ops.append(world.table.update_op("schedule", row.pk, row.sk, actions, as_read))
    if not isinstance(world.table.transact(ops), Written):
        return None
    return replace(row, next_run_at=next_at, planned_total=planned_total, sweep=str(sweep))


def release_all(world: World, held: Sequence[Schedule], now: datetime) -> None:
    """Releases schedules before a change, as if they were enabled at `now`. If still disabled, they are held again.

    Sends nothing, because the change plans again what `onEnable` allows to run late.
    """
    until = now.replace(microsecond=0)
    for schedule in held:
        release(world, row_of(schedule), until, enabled=False)


def _runs_late(world: World, row: WaitingRow, sweep: SweepText) -> bool:
    """Returns whether the row's occurrence runs although it fell due while it was held."""
    if load(sweep.packed).recurring:
        return False
    job = jobs.read_job(world.table, row.tenant, row.owner)
    schedule = jobs.read_schedule(world.table, row.tenant, row.owner, row.own_id)
    if job is None or schedule is None:
        return False
    return runs_when_enabled(policies_of(job, schedule), sweep.packed)


def _send_late(world: World, row: WaitingRow, sweep: SweepText, instant: datetime) -> None:
    """Sends an occurrence that runs however late it is. Raises Unavailable if that message is not sent."""
    pointer = occurrence(row.tenant, row.owner, row.own_id, instant, row.generation)
    world.queue.send_one(Delivery(replace(pointer, decided=True), world.clock.now(), sweep.lane))


def _sent(world: World, row: WaitingRow, first: datetime, last: datetime) -> frozenset[datetime]:
    """Returns the occurrences in that time that have runs: their messages were on their way when it was disabled."""
    before = first - timedelta(seconds=1)
    recorded = views.planned_between(world.table, row.tenant, row.own_id, before, last)
    return frozenset(run.planned_at for run in recorded if run.range_count is None)


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
    end = State.SKIPPED, Reason.DISABLED, "its collection or its tenant was disabled"
    owner = row.tenant, row.owner, row.own_id
    line = ranges.line(owner, end, (first, last, count), row.generation, now, sweep.packed)
    if sweep.collection is not None and world.terms.of(row.tenant, sweep.collection).events is Events.ALL:
        world.queue.send_one(ranges.word_of(line, now, sweep.lane))
    return ranges.op(world, line, sweep.collection)


STRETCH_S = 10.0
"""How long one message may work: well within an executor's lease."""

LONGEST_TICK = timedelta(minutes=2)
"""After this long, a sweep that began before the list of disabled collections changed has ended."""

ROUNDS = 2

PAGE = 25


def pointer(tenant: str, collection: str | None, at: datetime) -> Pointer:
    return Pointer(tenant, "", None, collection or "", at, subject=Subject.RELEASE)


def begin(world: World, tenant: str, collection: str | None) -> None:
    """Sends the first message of a release, right after the write that enabled it. If lost, the next sweep sends it."""
    now = world.clock.now()
    with tolerated(world, "held schedules will continue after the next tick", tenant=tenant):
        world.queue.send_one(Delivery(pointer(tenant, collection, now), now, Lane.FAST))


def go_on(world: World, asked: Pointer) -> None:
    """Carries out one stretch of a release. Another message does the rest or, if that is lost, the wake row."""
    tenant, collection = asked.tenant, asked.run or None
    item = suspended.read_release(world.table, tenant, collection)
    now = world.clock.now()
    if item is None or (item.round == ROUNDS and now < from_s(item.until) + LONGEST_TICK):
        return
    deadline = world.clock.monotonic() + STRETCH_S
    for cursor, schedules in _pages(world, tenant, collection, item):
        _release_held(world, schedules, from_s(item.until))
        if world.clock.monotonic() > deadline:
            again = world.clock.now()
            saved = suspended.go_on(world.table, item, number=item.round, cursor=cursor, at=again + WAKE)
            if not isinstance(saved, Refused):
                world.queue.send_one(Delivery(pointer(tenant, collection, again), again, Lane.FAST))
            return
    if item.round < ROUNDS:
        at = max(world.clock.now(), from_s(item.until) + LONGEST_TICK)
        suspended.go_on(world.table, item, number=item.round + 1, cursor=None, at=at)
    else:
        suspended.finish(world.table, tenant, collection, item)


Mark = tuple[str, str]
"""A collection, and the name of its last job that is done."""


def _pages(
    world: World, tenant: str, collection: str | None, item: ReleaseItem
) -> Iterator[tuple[Mark, Sequence[Schedule]]]:
    """Yields the schedules of one page of jobs at a time, from the row's cursor on, each with the cursor after it."""
    begun, name = suspended.cursor_of(item)
    for each in _collections(world, tenant, collection, begun):
        entries = lists.by_name(world.table, tenant, each, name if each == begun else None, PAGE)
        page: list[lists.Row] = []
        for entry in entries:
            page.append(entry)
            if len(page) == PAGE:
                yield (each, entry.place), _schedules(world, tenant, page)
                page = []
        if page:
            yield (each, page[-1].place), _schedules(world, tenant, page)


def _collections(world: World, tenant: str, collection: str | None, begun: str | None) -> Iterator[str]:
    """Yields the collections to release. For a tenant these are its enabled ones; schedules of others stay held."""
    if collection is not None:
        yield collection
        return
    for each in tenants.collections(world.table, tenant, None, PAGE):
        if each.state is CollectionState.ENABLED and (begun is None or each.name >= begun):
            yield each.name


def _schedules(world: World, tenant: str, entries: Sequence[lists.Row]) -> list[Schedule]:
    with_schedules = lists.jobs_with_schedules(world.table, tenant, [entry.job_id for entry in entries])
    return [schedule for _, schedules in with_schedules for schedule in schedules]


def _release_held(world: World, schedules: Sequence[Schedule], until: datetime) -> None:
    """Releases the schedules that are held, and those that fell due without having been held yet."""
    going: list[Schedule] = []
    for schedule in schedules:
        first = schedule.unsent_from
        if schedule.state is not ScheduleState.ACTIVE or first is None:
            continue
        if schedule.held_from is None and (first > until or planned_since(schedule, until)):
            continue
        try:
            row = release(world, row_of(schedule), until)
        except ValueError:
            continue  # the sweep takes a schedule that cannot be read out of service
        if row is not None:
            current = jobs.read_schedule(world.table, schedule.tenant, schedule.job_id, schedule.id)
            going += [current] if current is not None else []
    replan.send_ahead(world, going)
