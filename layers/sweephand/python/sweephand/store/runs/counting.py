"""Adds the end of a run to its schedule's statistics, in the transaction that makes it happen only once."""

from __future__ import annotations

from collections.abc import Sequence

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from sweephand.domain.instants import epoch_ms
from sweephand.domain.run import Run
from sweephand.errors import Unavailable
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Refused, Table, Written
from sweephand.store.dynamo.expressions import add
from sweephand.store.dynamo.table import AttemptItem, StatsItem

LATE_TRIES = 3


def write(table: Table, run: Run, op: Op, counts: dict[str, int], attempts: Sequence[AttemptItem]) -> Written | Refused:
    """Writes the run's own part, its counts and its attempts, all or none."""
    rest = [table.put_op(f"attempt {item.attempt}", item) for item in attempts]
    if run.ends_late:
        return _end_late(table, run, op, counts, rest)
    stats = [count_op(table, run, counts)] if counts else []
    if not stats and not rest:
        return table.carry_out(op)
    done = table.transact([op, *stats, *rest])
    return done if isinstance(done, Written) else done.refused["run"]


def _end_late(table: Table, run: Run, op: Op, counts: dict[str, int], rest: Sequence[Op]) -> Written | Refused:
    """Writes a late end, which totals may no longer find by counting rows, and counts it."""
    for _ in range(LATE_TRIES):
        late, same = late_ends(table, [run])
        done = table.transact([op, count_op(table, run, {**counts, **late}, same), *rest])
        if isinstance(done, Written):
            return done
        if "run" in done.refused:
            return done.refused["run"]
    raise Unavailable("too many concurrent changes to the statistics; try again")


def late_ends(table: Table, runs: Sequence[Run]) -> tuple[dict[str, int], Condition | None]:
    """Returns the counts of those runs (of one schedule) that end late, and the condition that settled_to is as read.

    settled_total: those within the settled part. late_ends always increases, so that an audit that saw one of them open
    cannot settle past it.
    """
    late = [run for run in runs if run.ends_late]
    if not late:
        return {}, None
    there = table.get(StatsItem, *_key(late[0]))
    settled_to = there.settled_to if there is not None else None
    if settled_to is None:
        return {"late_ends": len(late)}, StatsItem.settled_to.does_not_exist()
    behind = sum(epoch_ms(run.planned_at) <= settled_to for run in late)
    counts = {"late_ends": len(late), "settled_total": behind} if behind else {"late_ends": len(late)}
    return counts, StatsItem.settled_to == settled_to


def count_op(table: Table, run: Run, counts: dict[str, int], condition: Condition | None = None) -> Op:
    """Returns the part of a transaction that adds to the statistics; never use it without a part that happens once."""
    actions: list[Action] = [add(getattr(StatsItem, name), amount) for name, amount in counts.items()]
    return table.update_op("stats", *_key(run), actions, condition)


def _key(run: Run) -> tuple[str, str]:
    return keys.job(run.tenant, run.job_id), keys.stats(run.schedule_id or run.job_id)
