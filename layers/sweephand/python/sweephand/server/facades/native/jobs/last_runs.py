"""The last runs of the jobs of a page, read from the ledgers, so that writing a run does not cost more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import one_of, or_null, whole
from sweephand.domain.answers import Table, answered
from sweephand.domain.instants import EPOCH
from sweephand.domain.job import Job
from sweephand.domain.run import APART, Kind, Reason, Run, State
from sweephand.domain.schedule import Schedule
from sweephand.domain.schema_words import INSTANT_MS, RUN_ID
from sweephand.server import threads
from sweephand.server.facades.native import cursors
from sweephand.server.facades.native.context import Context
from sweephand.server.store.views import runs as views

MOST = 10
LARGEST_LIMIT = 50
"""The most jobs of a page with last runs. Each costs one read unit or a few."""
MOST_LEDGERS = 5
"""How many ledgers of a job are read: its own, and those of the schedules that were planned last."""


def _took_ms(run: Run) -> int | None:
    began, ended = run.started_at, run.finished_at
    return None if began is None or ended is None else int((ended - began).total_seconds() * 1000)


LAST_RUN = Table(
    {
        "runId": answered(RUN_ID, "id"),
        "plannedAt": answered(INSTANT_MS),
        "kind": answered(one_of(Kind)),
        "state": answered(one_of(State)),
        "reason": answered(or_null(one_of(Reason))),
        "durationMs": answered(or_null(whole()), _took_ms, says="How long the attempt took, in milliseconds."),
        "count": answered(whole(1), lambda run: run.range_count or 1, "How many occurrences it stands for."),
    }
)


def check(ctx: Context) -> None:
    """Raises InvalidRequest for a page that is too large."""
    if cursors.limit_of(ctx.query) > LARGEST_LIMIT:
        reason = f"must be at most {LARGEST_LIMIT} with `include=lastRuns`"
        raise InvalidRequest("limit", reason, code="INVALID_QUERY")


def of_jobs(ctx: Context, with_schedules: Sequence[tuple[Job, Sequence[Schedule]]]) -> list[list[dict[str, Any]]]:
    """Returns the last runs of each job, latest planned first; without hooks, error actions and tests."""
    return threads.at_once(partial(_of_job, ctx), with_schedules)


def _of_job(ctx: Context, planned: tuple[Job, Sequence[Schedule]]) -> list[dict[str, Any]]:
    job, schedules = planned
    latest = sorted(schedules, key=lambda each: each.last_planned_at or EPOCH, reverse=True)
    owners = [job.id] * job.own_runs + [each.id for each in latest]
    runs = views.merged_runs(ctx.world.table, ctx.tenant, owners[:MOST_LEDGERS], None, MOST, consistent=False)
    shown = (run for run in runs if run.kind not in APART and not run.is_gone(ctx.now))
    return LAST_RUN.show_all(islice(shown, MOST))
