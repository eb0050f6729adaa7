"""The audit: what should have run against the ledger.

It repairs a series without a next time and a run without its message.

It never settles: it sends pointers, and the executor decides. Rolling: each hour takes a 24th of the schedules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sweephand import ids
from sweephand.domain import series
from sweephand.domain.instants import epoch_ms, epoch_s, from_ms, from_s
from sweephand.domain.message import Pointer, occurrence
from sweephand.domain.run import Kind, Run, State
from sweephand.domain.schedule import Schedule, ScheduleState
from sweephand.domain.waiting import SweepText, Waits
from sweephand.flow import endings
from sweephand.flow.drafts import PAST_GRACE
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
"""Of one schedule in one audit; what is left follows at the next."""


@dataclass
class Findings:
    """schedules: looked at. stopped: series without a next time, now repaired.

    lost: runs whose pointer was sent again. unreadable: schedules whose text nobody can read; the sweep takes them out.
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
            try:
                _audit_schedule(world, tenant, job_id, schedule_id, findings)
            except ValueError:
                findings.unreadable += 1
                world.journal.error("a schedule cannot be read", tenant=tenant, job=job_id, schedule=schedule_id)
    world.journal.info("audit", rows=findings.schedules, repaired=findings.stopped, findings=findings.lost)
    if findings.stopped or findings.lost:
        world.journal.count("AuditFindings", findings.stopped + findings.lost)
    return findings


FAR = from_s(253_402_300_799)


def _audit_schedule(world: World, tenant: str, job_id: str, schedule_id: str, findings: Findings) -> None:
    schedule = jobs.read_schedule(world.table, tenant, job_id, schedule_id)
    if schedule is None:
        return
    findings.schedules += 1
    timing = load(schedule.packed)
    if schedule.next_run_at is None and schedule.state in (ScheduleState.ACTIVE, ScheduleState.ENDING):
        _restart(world, schedule, timing)
        findings.stopped += 1
        _tell(world, "SERIES_STOPPED", schedule, 0)
        return
    if schedule.state is ScheduleState.ENDING:
        endings.complete_if_over(world, schedule)
    pointers = _lost(world, schedule, timing)
    if pointers:
        now = world.clock.now()
        world.queue.send([Delivery(pointer, now, schedule.lane) for pointer in pointers])
        findings.lost += len(pointers)
        _tell(world, "RUNS_LOST", schedule, len(pointers))


def _tell(world: World, finding: str, schedule: Schedule, count: int) -> None:
    from sweephand.domain.event import Finding  # noqa: PLC0415 - nothing is found while the service runs
    from sweephand.flow import announce  # noqa: PLC0415

    announce.found(world, Finding(finding), schedule, count)


@dataclass(frozen=True)
class Open:
    """What the ledger holds of a schedule behind settled_to (epoch ms; None: from its beginning).

    rows: by uuid, of occurrences that were sent. lines: each stands for many that were not.
    """

    settled_to: int | None
    settled_total: int
    since: datetime
    rows: Mapping[str, Run]
    lines: Sequence[Run]

    @property
    def newest(self) -> datetime:
        """The latest instant that is known to have been dealt with."""
        known = [run.planned_at for run in self.rows.values()]
        return max([self.since, *known, *(line.range_until or line.planned_at for line in self.lines)])

    def left_out(self, instant: datetime) -> bool:
        """The last of a MISSED line is the one that its policy runs."""
        for line in self.lines:
            until = line.range_until or line.planned_at
            if line.planned_at <= instant < until or (instant == until and line.state is not State.MISSED):
                return True
        return False


def _open(world: World, schedule: Schedule, timing: Timing) -> Open:
    stats = world.table.get(StatsItem, keys.job(schedule.tenant, schedule.job_id), keys.stats(schedule.id))
    settled_to = stats.settled_to if stats else None
    since = _began(schedule, timing) if settled_to is None else from_ms(settled_to)
    found = list(views.planned_between(world.table, schedule.tenant, schedule.id, since, FAR))
    return Open(
        settled_to,
        stats.settled_total if stats else 0,
        since,
        rows={run.uuid: run for run in found if run.range_count is None},
        lines=[run for run in found if run.range_count is not None],
    )


def _began(schedule: Schedule, timing: Timing) -> datetime:
    """Before the first occurrence that the schedule can have had: of a one-time instant also one just past."""
    before = series.before_first(schedule.created_at)
    return before if timing.recurring else before - PAST_GRACE


def _restart(world: World, schedule: Schedule, timing: Timing) -> None:
    """A series that lost its next time goes on behind the last occurrence in the ledger [as read], and the sweep
    finds missed what lies between. Up to there planned_total is counted anew. An ENDING one gets its wake again.
    """
    now = world.clock.now()
    actions = [assign(ScheduleItem.next_run_at, epoch_s(now + WAKE_AGAIN))]
    if schedule.state is ScheduleState.ACTIVE:
        there = _open(world, schedule, timing)
        newest = there.newest
        instants = _planned(schedule, timing, there, newest, series.MOST_COUNTED)
        planned = there.settled_total + len(there.rows) + len(_without_row(schedule, there, instants))
        upcoming = None
        if timing.count is None or planned < timing.count:
            upcoming = series.following(timing, newest, newest)
        actions.append(assign(ScheduleItem.planned_total, planned))
        if upcoming is not None:
            actions[0] = assign(ScheduleItem.next_run_at, epoch_s(upcoming))
        else:
            sweep = replace(SweepText.read(jobs.sweep_text(schedule)), waits=Waits.END)
            actions += [
                assign(ScheduleItem.state, ScheduleState.ENDING.value),
                assign(ScheduleItem.sweep, str(sweep)),
                assign(ScheduleItem.last_planned_at, epoch_s(newest)),
            ]
    key = keys.job(schedule.tenant, schedule.job_id), keys.schedule(schedule.id)
    result = world.table.update(*key, actions, jobs.as_read(schedule))
    if not isinstance(result, Refused):
        world.journal.error("a series had lost its next time", tenant=schedule.tenant, schedule=schedule.id)


def _lost(world: World, schedule: Schedule, timing: Timing) -> list[Pointer]:
    """Pointers of occurrences that were advanced over and have no row, and of rows that nobody holds.

    Where nothing is open, settled_to moves on: totals need not count these rows again.
    """
    now = world.clock.now()
    there = _open(world, schedule, timing)
    until = _judged_until(world, schedule, there, now - SETTLED_AFTER)
    if until <= there.since:
        return []
    planned = _planned(schedule, timing, there, until, MOST_INSTANTS)
    if len(planned) == MOST_INSTANTS:
        until = planned[-1]
    rows = [run for run in there.rows.values() if run.planned_at <= until]
    open_runs = [run for run in rows if not run.finished]
    missing = _without_row(schedule, there, planned)
    if not missing and not open_runs:
        _settle_up(world, schedule, there.settled_to, until, there.settled_total + len(rows))
    return missing + [ledger.pointer_to(run) for run in open_runs if _nobody_holds(run, now)]


def _judged_until(world: World, schedule: Schedule, there: Open, latest: datetime) -> datetime:
    """The last instant that must have its row by now: sent, old enough, and before any catch-up that is under way.

    Never within a line: the next audit would not see it.
    """
    until = latest
    if schedule.state is ScheduleState.ENDING:
        until = min(until, schedule.last_planned_at or until)
    elif schedule.next_run_at is not None:
        until = min(until, schedule.next_run_at - timedelta(seconds=1))
    if schedule.missed_to is not None and schedule.missed_to > there.since:
        first = waiting.first_catch_up(world.table, schedule.tenant, schedule.id)
        until = until if first is None else min(until, first - timedelta(seconds=1))
    for line in sorted(there.lines, key=lambda line: line.planned_at, reverse=True):
        if line.planned_at <= until < (line.range_until or line.planned_at):
            until = line.planned_at - timedelta(seconds=1)
    return until


def _planned(schedule: Schedule, timing: Timing, there: Open, until: datetime, limit: int) -> list[datetime]:
    """Of the generation in force: what an earlier one owed was sent when the change was made.

    Instants that follow from actual starts are facts of the rows: nothing is computed for them.
    """
    if timing.actual_start_interval_s is not None:
        return []
    began = schedule.ended_at.get(schedule.generation - 1)
    since = there.since if began is None else max(there.since, from_s(began))
    return between(timing.rule, since, until, limit)


def _without_row(schedule: Schedule, there: Open, planned: Sequence[datetime]) -> list[Pointer]:
    found = []
    for instant in planned:
        uuid = ids.run_uuid(schedule.tenant, schedule.id, epoch_ms(instant), Kind.SCHEDULED.value)
        if uuid not in there.rows and not there.left_out(instant):
            pointer = occurrence(schedule.tenant, schedule.job_id, schedule.id, instant, schedule.generation)
            found.append(replace(pointer, decided=True))
    return found


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
