"""Writes off occurrences that the audit must not send: one range in the ledger for all that are too old.

An occurrence whose row may have expired may have run: its range has the reason RETENTION, and the plan settles the
totals. A younger one has certainly not run: its range has the reason MAX_AGE, and it counts as missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from sweephand.domain.occurrences.account import Account, last_of
from sweephand.domain.occurrences.generations import Owed
from sweephand.domain.occurrences.misfire import Span
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.schedule import Schedule
from sweephand.server.flow.series import ranges
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.table import StatsItem
from sweephand.server.store.runs import ledger, stats


def forget(world: World, schedule: Schedule, before: StatsItem, recorded: Account, span: Span) -> None:
    """Records occurrences whose rows have probably expired, and settles the totals up to there by the plan.

    Writes nothing if another audit has settled since. Open runs of that time count themselves when they end.
    """
    now = world.clock.now()
    until = max(recorded.since, recorded.settles_to(recorded.remembered_from, (), now))
    rows = [run for run in recorded.rows.values() if run.planned_at <= until]
    message = f"{span.count} occurrences had no row when the audit came; their retention could have ended"
    line = _line(schedule, (State.EXPIRED, Reason.RETENTION, message), span, schedule.generation, now)
    settled = stats.settle_op(
        world.table,
        before,
        until,
        ended=span.count + sum(run.finished for run in rows),
        planned=span.count + len(rows),
    )
    world.table.transact([ranges.op(world, line, schedule.collection), settled])
    _report(world, schedule, span.count)


def expire(world: World, schedule: Schedule, recorded: Account, lost: Sequence[Owed]) -> None:
    """Records occurrences that were lost and are too old to run, with the effects of their end.

    Another audit may do so at the same time. Raises Unavailable.
    """
    now = world.clock.now()
    for generation, span in _spans(recorded, lost):
        message = f"{span.count} occurrences had no row after more than 4 days, so they are not run any more"
        line = _line(schedule, (State.EXPIRED, Reason.MAX_AGE, message), span, generation, now)
        world.queue.send_one(ranges.word_of(line, now, schedule.lane))
        world.table.transact(ranges.missed_ops(world, [line], schedule.collection, ledger.ABSENT))
        _report(world, schedule, span.count)


def _spans(recorded: Account, lost: Sequence[Owed]) -> list[tuple[int, Span]]:
    """Returns the lost occurrences as spans of one generation each, between the ranges that the ledger has."""
    ends = sorted(last_of(line) for line in recorded.lines)
    groups = groupby(lost, key=lambda each: (each.generation, sum(end < each.instant for end in ends)))
    stretches = [(generation, [each.instant for each in owed]) for (generation, _), owed in groups]
    return [(generation, Span(instants[0], instants[-1], len(instants))) for generation, instants in stretches]


def _line(schedule: Schedule, end: tuple[State, Reason, str], span: Span, generation: int, now: datetime) -> Run:
    owner = schedule.tenant, schedule.job_id, schedule.id
    return ranges.line(owner, end, (span.first, span.last, span.count), generation, now)


def _report(world: World, schedule: Schedule, count: int) -> None:
    where = {"tenant": schedule.tenant, "job": schedule.job_id, "schedule": schedule.id}
    world.journal.warning("occurrences were too old to run", rows=count, **where)
