"""The load forecast: how many runs are planned for each quarter of an hour of the next 24 hours."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sweephand.base.json_schema import items, whole
from sweephand.domain.answers import Table, answered
from sweephand.domain.schema_words import INSTANT, INSTANT_MS
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.overview import pace
from sweephand.server.flow.jobs.load_ahead import MOST_JOBS, SLOT_S, SLOTS, Kept, load_ahead


class LoadView(NamedTuple):
    """The load and the time of the request."""

    load: Kept
    now: datetime


LOAD = Table(
    {
        "computedAt": answered(INSTANT_MS, says="When it was computed."),
        "ageSeconds": answered(
            whole(),
            lambda view: int((view.now - view.load.computed_at).total_seconds()),
            "How old it is. It is kept in the memory of the function.",
        ),
        "from": answered(INSTANT, "begin", "The beginning of the first slot."),
        "slotSeconds": answered(whole(1), lambda _: SLOT_S, "How long each slot is."),
        "slots": answered(
            items(whole(), minItems=SLOTS, maxItems=SLOTS), says="How many runs the rules plan in each slot."
        ),
        "jobs": answered(whole(), says="How many jobs were counted."),
        "jobsLeftOut": answered(
            whole(),
            "left_out",
            f"How many were not: those after the first {MOST_JOBS:,}, and those whose occurrences take too long to "
            "compute.",
        ),
    },
    "load",
)


def read_load(ctx: Context) -> Answer:
    """Returns the load that this process last computed, and its age."""
    return pace.priced(ctx, pace.LOAD, _load)


def _load(ctx: Context) -> dict[str, Any]:
    return LOAD.show(LoadView(load_ahead(ctx.world, ctx.tenant, ctx.now), ctx.now))
