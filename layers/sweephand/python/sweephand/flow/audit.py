"""The audit: what should have run against the ledger.

It repairs a series without a next time and a run without its message.

It never settles: it sends pointers, and the executor decides. Rolling: each hour takes a 24th of the schedules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sweephand import ids
from sweephand.domain import series
from sweephand.domain.instants import epoch_ms, epoch_s, from_ms, from_s
from sweephand.domain.message import Pointer, occurrence
from sweephand.domain.run import Kind, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.flow import endings
from sweephand.flow.sweep import WAKE_AGAIN
from sweephand.flow.world import World
from sweephand.messaging.run_queue import Delivery
from sweephand.schedules.timing import Timing, between, load
from sweephand.store import jobs, keys, ledger, waiting
from sweephand.store.conditional import Refused, assign
from sweephand.store.table import ScheduleItem, StatsItem
from sweephand.store.views import runs as views

PARTS = 24
SETTLED_AFTER = timedelta(minutes=10)
"""Instants this old have had the time to reach their ledger row."""
MOST_INSTANTS = 100_000


@dataclass
class Findings:
    """schedules: looked at. stopped: series without a next time, now repaired.

    lost: runs whose pointer was sent again.
    """

    schedules: int = 0
    stopped: int = 0
    lost: int = 0
    unreadable: int = 0


def audit(world: World, *, everything: bool = False) -> Findings:
    """One pass over the catalogue; `everything`: all schedules in depth, not this hour's part."""
    findings = Findings()
    part = int(world.clock.now().timestamp()) // 3_600 % PARTS
    for shard in range(world.settings.shards):
        waits = {(row.pk, row.sk) for page in waiting.due(world.table, shard, None, FAR) for row in page}
        for pk, sk in waiting.catalogue(world.table, shard):
            _, tenant, _, job_id = keys.parts(pk)
            schedule_id = keys.parts(sk)[1]
            in_turn = everything or ids.shard_of(schedule_id, PARTS) == part
            if (pk, sk) in waits and not in_turn:
                continue
            schedule = jobs.read_schedule(world.table, tenant, job_id, schedule_id)
            if schedule is None:
                continue
            findings.schedules += 1
            try:
                _audit_schedule(world, schedule, findings)
            except ValueError:
                findings.unreadable += 1
                world.journal.error("a schedule cannot be read", tenant=tenant, job=job_id, schedule=schedule_id)
    world.journal.info("audit", rows=findings.schedules, repaired=findings.stopped, findings=findings.lost)
    if findings.stopped or findings.lost:
        world.journal.count("AuditFindings", findings.stopped + findings.lost)
    return findings


FAR = from_s(253_402_300_799)


def _audit_schedule(world: World, schedule: Schedule, findings: Findings) -> None:
    timing = load(schedule.packed)
    if schedule.next_run_at is None and schedule.state in (ScheduleState.ACTIVE, ScheduleState.ENDING):
        _restart(world, schedule, timing)
        findings.stopped += 1
        return
    if schedule.state is ScheduleState.ENDING:
        endings.complete_if_over(world, schedule)
    pointers = list(_lost(world, schedule, timing))
    if pointers:
        now = world.clock.now()
        world.queue.send([Delivery(pointer, now, schedule.lane) for pointer in pointers])
        findings.lost += len(pointers)


def _restart(world: World, schedule: Schedule, timing: Timing) -> None:
    """A series that lost its next time gets the first after now [as read]; an ENDING one its wake."""
    now = world.clock.now()
    upcoming = series.first(timing, now) if schedule.state is ScheduleState.ACTIVE else None
    actions = [assign(ScheduleItem.next_run_at, epoch_s(upcoming or now + WAKE_AGAIN))]
    if upcoming is None:
        actions.append(assign(ScheduleItem.state, ScheduleState.ENDING.value))
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    result = world.table.update(*key, actions, jobs.as_read(schedule))
    if not isinstance(result, Refused):
        world.journal.error("a series had lost its next time", tenant=schedule.tenant, schedule=schedule.id)


def _lost(world: World, schedule: Schedule, timing: Timing) -> Iterator[Pointer]:
    """Pointers of occurrences that were advanced over and have no row, and of rows that nobody holds.

    Where nothing is open, settled_to moves on: totals need not count these rows again.
    """
    now = world.clock.now()
    stats = world.table.get(StatsItem, keys.job(schedule.tenant, schedule.job_id), keys.stats(schedule.id))
    settled_to = stats.settled_to if stats else None
    since = from_ms(settled_to) if settled_to is not None else schedule.created_at - timedelta(seconds=1)
    until = _advanced_until(schedule, now - SETTLED_AFTER)
    if until <= since:
        return
    rows = {run.uuid: run for run in views.planned_between(world.table, schedule.tenant, schedule.id, since, until)}
    open_runs = [run for run in rows.values() if not run.finished]
    missing = [] if timing.actual_start_interval_s else list(_without_row(schedule, timing, since, until, rows))
    yield from missing
    yield from (ledger.pointer_to(run) for run in open_runs if _nobody_holds(run, now))
    if not missing and not open_runs:
        settled = (stats.settled_total if stats else 0) + sum(1 for run in rows.values() if run.range_count is None)
        _settle_up(world, schedule, settled_to, until, settled)


def _advanced_until(schedule: Schedule, latest: datetime) -> datetime:
    """The last instant that must have its row by now: sent, and old enough."""
    if schedule.state is ScheduleState.ENDING:
        return min(latest, schedule.last_planned_at or latest)
    if schedule.next_run_at is None:
        return latest
    return min(latest, schedule.next_run_at - timedelta(seconds=1))


def _without_row(
    schedule: Schedule, timing: Timing, since: datetime, until: datetime, rows: dict[str, Run]
) -> Iterator[Pointer]:
    """Of the generation in force: what an earlier one owed was sent when the change was made."""
    began = schedule.ended_at.get(schedule.generation - 1)
    if began is not None:
        since = max(since, from_s(began))
    for instant in between(timing.rule, since, until, MOST_INSTANTS):
        if schedule.missed_to is not None and instant <= schedule.missed_to:
            continue
        if ids.run_uuid(schedule.tenant, schedule.id, epoch_ms(instant), Kind.SCHEDULED.value) not in rows:
            pointer = occurrence(schedule.tenant, schedule.job_id, schedule.id, instant, schedule.generation)
            yield replace(pointer, decided=True)


def _nobody_holds(run: Run, now: datetime) -> bool:
    if run.wake_at is not None:
        return False
    if run.state is State.TRIGGERED:
        return run.lease_until is None or run.lease_until < now
    return run.not_before is None or run.not_before < now - SETTLED_AFTER


def _settle_up(world: World, schedule: Schedule, before: int | None, until: datetime, total: int) -> None:
    """settled_to and settled_total, absolute [settled_to as read]."""
    same = StatsItem.settled_to.does_not_exist() if before is None else StatsItem.settled_to == before
    actions = [assign(StatsItem.settled_to, epoch_ms(until)), assign(StatsItem.settled_total, total)]
    world.table.update(keys.job(schedule.tenant, schedule.job_id), keys.stats(schedule.id), actions, same)
