"""How far a job has come: its counters and its last execution."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from sweephand.domain.run import Kind, Run
from sweephand.facades.azure.bodies import Standing
from sweephand.flow.jobs.lookup import Planned
from sweephand.flow.world import World
from sweephand.store.views import runs as views
from sweephand.store.views.runs import Totals

EXECUTIONS = frozenset({Kind.SCHEDULED, Kind.MANUAL, Kind.BACKFILL})
LOOKED_AT = 20
"""Rows that are searched for the last execution: those before it never began."""


def standing(world: World, planned: Planned) -> Standing:
    """Returns counters and last execution. Costs two queries."""
    if not planned.schedules:
        return Standing(Totals(), None)
    schedule = planned.schedules[0]
    stats = views.stats_of(world.table, [schedule]).get(schedule.id)
    totals = views.totals_of(world.table, schedule, stats)
    runs = islice(views.runs_of(world.table, schedule.tenant, schedule.id, None, LOOKED_AT), LOOKED_AT)
    started = (began_at(run) for run in runs if run.kind in EXECUTIONS)
    return Standing(totals, next((at for at in started if at is not None), None))


def began_at(run: Run) -> datetime | None:
    return run.first_started_at or run.started_at
