"""Compares one schedule with its ledger: sends lost messages again, corrects counts and settles totals.

It ends no run, except for occurrences that are too old to run (write_off.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.collection import REMEMBERED
from sweephand.domain.instants import EPOCH, FAR, epoch_s, from_ms
from sweephand.domain.message import Pointer, occurrence
from sweephand.domain.occurrences import generations as plans
from sweephand.domain.occurrences import moved, series
from sweephand.domain.occurrences.account import Account
from sweephand.domain.occurrences.generations import Owed
from sweephand.domain.occurrences.index_row import WAKE_AGAIN, SweepText, Waits
from sweephand.domain.occurrences.misfire import Span
from sweephand.domain.run import Run, State
from sweephand.domain.runs.admission import MAX_AGE
from sweephand.domain.schedule import LIVE, Schedule, ScheduleState, names_zone
from sweephand.schedules.timing import Timing, load
from sweephand.server.flow.audit import write_off
from sweephand.server.flow.jobs import completion
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Refused, Written
from sweephand.server.store.dynamo.expressions import Action, add, assign
from sweephand.server.store.dynamo.table import RunItem, ScheduleItem, StatsItem
from sweephand.server.store.index import next_run_index
from sweephand.server.store.jobs import generations, jobs
from sweephand.server.store.runs import ledger, stats
from sweephand.server.store.views import runs as views

with lazy():
    from sweephand.server.flow.series import moving

SETTLED_AFTER = timedelta(minutes=10)
"""An instant that is older than this must have its row in the ledger."""
MOST_INSTANTS = 100_000
"""Instants of one schedule that one audit compares; the next audit does the rest."""
MOST_EARLIER = 2_000
"""Settled runs that are compared again. A schedule with more of them a day has hardly an instant that moves."""
WORTH_SETTLING = 24
SETTLES_AFTER = timedelta(days=5)
"""Rows are settled once there are this many, or once the oldest is this old.

A write costs as much as reading about twenty rows again, and rows must be settled long before they expire.
"""


@dataclass(frozen=True)
class Repairs:
    """The repairs to one schedule.

    lost: occurrences and runs whose pointer was sent again. expired: occurrences too old to run. corrected: counts that
    were wrong.
    """

    lost: int = 0
    expired: int = 0
    corrected: int = 0


def read(
    world: World, places: Sequence[tuple[str, str]], *, consistent: bool
) -> dict[tuple[str, str], tuple[ScheduleItem, StatsItem]]:
    """Reads schedules and their statistics in one call, up to 50 of them. Returns those that exist, by their keys."""
    of_stats = {place: (place[0], keys.stats(keys.parts(place[1])[1])) for place in places}
    rows = world.table.batch_get([*places, *of_stats.values()], consistent=consistent)
    pairs = {}
    for place, (pk, sk) in of_stats.items():
        if place in rows:
            before = StatsItem.from_raw_data(rows[pk, sk]) if (pk, sk) in rows else StatsItem(pk=pk, sk=sk)
            pairs[place] = ScheduleItem.from_raw_data(rows[place]), before
    return pairs


def repair(world: World, schedule: Schedule, before: StatsItem, *, at_once: bool) -> Repairs:
    """Compares a schedule with its ledger and repairs it. at_once: settles now, even if this is not worth a write yet.

    The first read is cheap and may be slightly stale, so it is repeated consistently before anything is changed.
    Raises ValueError for a schedule that cannot be read and is not known to be broken.
    """
    if schedule.state is not ScheduleState.BROKEN:
        load(schedule.packed)
    if names_zone(schedule.packed) and moving.follow(world, schedule):
        return Repairs()  # the next audit compares it
    now = world.clock.now()
    compared = _compare(world, schedule, before, now, consistent=False)
    if not (compared.anything or _worth_settling(schedule, compared, now, at_once=at_once)):
        return Repairs()
    current = _reread(world, schedule)
    if current is None:
        return Repairs()
    schedule, before = current
    compared = _compare(world, schedule, before, now, consistent=True)
    expired = compared.too_old
    if expired:
        _write_off(world, schedule, compared)
        before = stats.read(world.table, schedule)
        compared = _compare(world, schedule, before, now, consistent=True)
    corrected = _correct(world, schedule, compared)
    _send(world, schedule, compared.pointers)
    if _worth_settling(schedule, compared, now, at_once=at_once):
        _settle(world, schedule, compared)
    if schedule.state is ScheduleState.ENDING:
        completion.complete_if_over(world, schedule)
    # Runs that wait for a worker are not findings: their messages may still be in its queue.
    repaired = 0 if schedule.lane.of_application else len(compared.pointers)
    return Repairs(repaired, expired, corrected)


def _reread(world: World, schedule: Schedule) -> tuple[Schedule, StatsItem] | None:
    """Returns the schedule and its statistics as they are now; None if it was deleted or switched."""
    place = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    rows = read(world, [place], consistent=True)
    if place not in rows:
        return None
    item, before = rows[place]
    (current,) = jobs.schedules_of(world.table, [item])
    return (current, before) if current.state is schedule.state else None


@dataclass(frozen=True)
class _Comparison:
    """The result of one comparison.

    pointers: to send. forgotten: occurrences whose rows have probably expired. expired: lost occurrences that are too
    old to run. settles_to: the instant up to which totals can be settled. planned: the correct planned_total; None
    where it is unknown.
    """

    account: Account
    before: StatsItem
    pointers: Sequence[Pointer]
    forgotten: Span | None
    expired: Sequence[Owed]
    settles_to: datetime
    planned: int | None
    miscounted: bool

    @property
    def anything(self) -> bool:
        return bool(self.pointers or self.too_old or self.miscounted)

    @property
    def too_old(self) -> int:
        """Returns how many occurrences must be written off."""
        return len(self.expired) + (self.forgotten.count if self.forgotten else 0)


def _compare(world: World, schedule: Schedule, before: StatsItem, now: datetime, *, consistent: bool) -> _Comparison:
    recorded = account(world, schedule, before, consistent=consistent)
    until = _judged_until(world, schedule, recorded, now - SETTLED_AFTER)
    recorded = replace(recorded, remembered_from=min(recorded.remembered_from, until))
    missing = recorded.missing(until, MOST_INSTANTS)
    if len(missing) == MOST_INSTANTS:
        until = missing[-1].instant
    lost = [run for run in recorded.rows.values() if not run.finished and _has_lost_its_message(run, now)]
    forgotten = _forgotten(schedule, recorded, before)
    planned = None if forgotten else _planned(schedule, recorded, before)
    oldest = now - MAX_AGE
    return _Comparison(
        account=recorded,
        before=before,
        pointers=[
            *(_pointer(schedule, owed) for owed in missing if owed.instant > oldest),
            *(replace(ledger.pointer_to(run), not_after=now + MAX_AGE) for run in lost),
        ],
        forgotten=forgotten,
        expired=[owed for owed in missing if owed.instant <= oldest],
        settles_to=recorded.settles_to(until, missing, now),
        planned=planned,
        miscounted=bool(recorded.miscounted()) or planned not in (None, schedule.planned_total),
    )


def account(world: World, schedule: Schedule, before: StatsItem, *, consistent: bool = True) -> Account:
    """Reads what the schedule planned and what its ledger holds, both since the settled part.

    before: the statistics of the schedule. Without a settled part, begins with the creation of the schedule, because
    earlier plans may have expired.
    """
    settled_to = before.settled_to
    force = plans.in_force(schedule)
    since = EPOCH if settled_to is None else from_ms(settled_to)
    left = list(generations.left_since(world.table, schedule, since))
    if settled_to is None:
        since = min(series.before_first(schedule.created_at), *(each.since for each in (force, *left)))
    recorded = views.planned_between(world.table, schedule.tenant, schedule.id, since, FAR, consistent=consistent)
    runs = list(islice(recorded, MOST_INSTANTS))
    return Account(
        since=since,
        rows={run.uuid: run for run in runs if run.range_count is None},
        lines=[run for run in runs if run.range_count is not None],
        generations=[*sorted(left, key=lambda each: each.number), force],
        next_at=_next_at(schedule, force.interval),
        whole=len(runs) < MOST_INSTANTS,
        remembered_from=_remembered_from(schedule, world.clock.now()),
        earlier=_earlier(world, schedule, since) if consistent and settled_to is not None else (),
    )


def _next_at(schedule: Schedule, interval: timedelta | None) -> datetime | None:
    """Returns the instant after the last one sent; None if the series does not go on.

    An ending series whose intervals follow actual starts has one as well, because only the next link of such a chain
    tells which links were sent before it.
    """
    if schedule.state is ScheduleState.ACTIVE:
        return schedule.unsent_from
    if interval is None or schedule.state is not ScheduleState.ENDING or schedule.last_planned_at is None:
        return None
    return schedule.last_planned_at + interval


def _remembered_from(schedule: Schedule, now: datetime) -> datetime:
    """Returns the instant up to which rows may have expired.

    If occurrences were found missed later than that, the rows of the whole span were written later too.
    """
    at = (now - REMEMBERED).replace(microsecond=0)
    if schedule.missed_to is None or schedule.missed_to <= at:
        return at
    return EPOCH if schedule.missed_from is None else min(at, schedule.missed_from - timedelta(seconds=1))


def _forgotten(schedule: Schedule, recorded: Account, before: StatsItem) -> Span | None:
    """Returns the occurrences that were sent and whose rows have probably expired."""
    planned = schedule.planned_total - before.settled_planned
    interval = recorded.generations[-1].interval
    if interval is not None and recorded.next_at is not None and not recorded.rows:
        planned -= recorded.next_at - interval > recorded.remembered_from  # the last link, which may still be under way
    until = max([plans.sent_until(schedule) or recorded.newest, *schedule.still_due])
    return recorded.forgotten(planned, until, MOST_INSTANTS)


def _write_off(world: World, schedule: Schedule, compared: _Comparison) -> None:
    if compared.forgotten is not None:
        write_off.forget(world, schedule, compared.before, compared.account, compared.forgotten)
    write_off.expire(world, schedule, compared.account, compared.expired)


def _earlier(world: World, schedule: Schedule, since: datetime) -> Sequence[Run]:
    """Returns the runs of the last day of the settled part, which newer zone data may move out of it."""
    if not names_zone(schedule.packed):
        return ()
    recorded = views.planned_between(world.table, schedule.tenant, schedule.id, since - moved.FURTHEST, since)
    return [run for run in islice(recorded, MOST_EARLIER) if run.range_count is None]


def _judged_until(world: World, schedule: Schedule, recorded: Account, latest: datetime) -> datetime:
    """Returns the last instant that must have its row: sent, old enough, and before any catch-up in progress."""
    until = min(latest, recorded.newest) if not recorded.whole else latest
    sent = plans.sent_until(schedule)
    # A plan that is off has sent nothing, but a pause that ends late may still plan occurrences after its end.
    until = min(until, plans.in_force(schedule).since if sent is None else sent)
    if schedule.missed_to is not None and schedule.missed_to > recorded.since:
        first = next_run_index.first_catch_up(world.table, schedule.tenant, schedule.id)
        until = until if first is None else min(until, first - timedelta(seconds=1))
    return max(until, recorded.since)


def _planned(schedule: Schedule, recorded: Account, before: StatsItem) -> int | None:
    """Returns how many occurrences were planned; None if the ledger does not tell."""
    sent, force = plans.sent_until(schedule), recorded.generations[-1]
    if sent is None or not recorded.whole or any(each > sent for each in schedule.still_due):
        return None
    if force.interval is not None and not any(force.has(run.planned_at) for run in recorded.rows.values()):
        return None  # the links of a chain are known only from its first row on
    return before.settled_planned + recorded.planned(sent, MOST_INSTANTS)


def _pointer(schedule: Schedule, owed: Owed) -> Pointer:
    """Returns the pointer of an occurrence, in the generation that owes it. It may act for as long as it may be sent.

    The pointer is decided, because the service itself caused the delay. In the lane of a worker it is not decided: the
    worker may have caused the delay, so the gate applies the misfire policy.
    """
    pointer = occurrence(schedule.tenant, schedule.job_id, schedule.id, owed.instant, owed.generation)
    return replace(pointer, decided=not schedule.lane.of_application, not_after=owed.instant + MAX_AGE)


def _has_lost_its_message(run: Run, now: datetime) -> bool:
    """Returns whether the run still waits, long after its lease, its next attempt or its deadline."""
    long_ago = now - SETTLED_AFTER
    if run.deadline_at is not None and run.deadline_at < long_ago:
        return True
    if run.state is State.HELD and run.consumer is None:  # its wake sends nothing to workers
        return run.planned_at < long_ago
    if run.wake_at is not None or run.in_line:  # its own row, or its flow key's, sends its pointer
        return False
    if run.state is State.TRIGGERED:
        return run.lease_until is None or run.lease_until < now
    return run.not_before is None or run.not_before < long_ago


def _send(world: World, schedule: Schedule, pointers: Sequence[Pointer]) -> None:
    if not pointers:
        return
    now = world.clock.now()
    unsent = world.queue.send([Delivery(pointer, now, schedule.lane) for pointer in pointers])
    where = {"tenant": schedule.tenant, "job": schedule.job_id, "schedule": schedule.id}
    world.journal.warning("runs had lost their messages", rows=len(pointers), left=len(unsent), **where)


# Counts


def _correct(world: World, schedule: Schedule, compared: _Comparison) -> int:
    """Corrects planned_total and the counts of lines from which a run got its own row. Returns how many were wrong."""
    corrected = 0
    for line, count in compared.account.miscounted():
        corrected += isinstance(_recount(world, line, count), Written)
    if compared.planned is not None and compared.planned != schedule.planned_total:
        key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
        actions = [assign(ScheduleItem.planned_total, compared.planned)]
        same = jobs.as_read(schedule) & (ScheduleItem.planned_total == schedule.planned_total)
        corrected += isinstance(world.table.update(*key, actions, same), Written)
    if corrected:
        world.journal.warning("counts were corrected", tenant=schedule.tenant, schedule=schedule.id, rows=corrected)
    return corrected


def _recount(world: World, line: Run, count: int) -> object:
    """Corrects the count of a line and the statistics in one write, if the count is still as read."""
    assert line.range_count is not None
    pk, sk = keys.runs(line.tenant, line.schedule_id or line.job_id), keys.run(line.uuid)
    same = RunItem.range_count == line.range_count
    actions = [assign(RunItem.range_count, count)]
    op = world.table.update_op("line", pk, sk, actions, same)
    stats_key = keys.job(line.tenant, line.job_id), keys.stats(line.schedule_id or line.job_id)
    missed = world.table.update_op("stats", *stats_key, [add(StatsItem.missed, count - line.range_count)])
    return world.table.transact([op, missed])


def _worth_settling(schedule: Schedule, compared: _Comparison, now: datetime, *, at_once: bool) -> bool:
    recorded = compared.account
    rows = [run.planned_at for run in recorded.rows.values() if run.planned_at <= compared.settles_to]
    if schedule.state not in LIVE:
        return True
    if not rows:
        return False
    return at_once or len(rows) >= WORTH_SETTLING or min(rows) < now - SETTLES_AFTER


def _settle(world: World, schedule: Schedule, compared: _Comparison) -> None:
    """Writes settled_to and the totals up to it. A schedule that is off leaves the catalogue once all is settled."""
    recorded, until = compared.account, compared.settles_to
    rows = [run for run in recorded.rows.values() if run.planned_at <= until]
    if rows and until > recorded.since:
        ended = sum(run.finished for run in rows)
        settled = stats.settle(world.table, compared.before, until, ended=ended, planned=len(rows))
        if isinstance(settled, Refused):
            return
    if schedule.state in LIVE or until < plans.began(schedule):
        return
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    same = (ScheduleItem.generation == schedule.generation) & (ScheduleItem.state == schedule.state.value)
    world.table.update(*key, [assign(ScheduleItem.schedule_id, None)], same)


# A series without a next time


def restart(world: World, schedule: Schedule) -> bool:
    """Restarts a series after its last occurrence in the ledger; the sweep treats later occurrences as missed.

    Occurrences whose rows have probably expired are written off first.

    Recounts planned_total up to that occurrence. Restores the wake of an ENDING schedule. Returns False if somebody
    changed the schedule first. Raises ValueError if its timing cannot be read.
    """
    actions = [assign(ScheduleItem.next_run_at, epoch_s(world.clock.now() + WAKE_AGAIN))]
    if schedule.state is ScheduleState.ACTIVE:
        actions = _goes_on(world, schedule)
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    if isinstance(world.table.update(*key, actions, jobs.as_read(schedule)), Refused):
        return False
    where = {"tenant": schedule.tenant, "job": schedule.job_id, "schedule": schedule.id}
    world.journal.error("a series had lost its next time", **where)
    return True


def _goes_on(world: World, schedule: Schedule) -> list[Action]:
    timing = load(schedule.packed)
    before, recorded = _account(world, schedule)
    forgotten = _forgotten(schedule, recorded, before)
    if forgotten is not None:
        write_off.forget(world, schedule, before, recorded, forgotten)
        before, recorded = _account(world, schedule)
    newest = max([recorded.newest, schedule.missed_to or recorded.newest, *schedule.still_due])
    planned = before.settled_planned + recorded.planned(newest, MOST_INSTANTS)
    upcoming = None
    if timing.count is None or planned < timing.count:
        upcoming = _following(schedule, timing, newest)
    if upcoming is not None:
        return [assign(ScheduleItem.planned_total, planned), *jobs.next_at_actions(schedule.packed, upcoming)]
    sweep = replace(SweepText.read(jobs.sweep_text(schedule)), waits=Waits.END)
    return [
        assign(ScheduleItem.planned_total, planned),
        assign(ScheduleItem.next_run_at, epoch_s(world.clock.now() + WAKE_AGAIN)),
        assign(ScheduleItem.state, ScheduleState.ENDING.value),
        assign(ScheduleItem.sweep, str(sweep)),
        assign(ScheduleItem.last_planned_at, epoch_s(newest)),
    ]


def _account(world: World, schedule: Schedule) -> tuple[StatsItem, Account]:
    before = stats.read(world.table, schedule)
    return before, account(world, schedule, before)


def _following(schedule: Schedule, timing: Timing, newest: datetime) -> datetime | None:
    if schedule.first_at is not None and schedule.first_at > newest:
        return schedule.first_at
    return series.following(timing, newest, newest)
