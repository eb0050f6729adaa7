"""The load forecast: how many runs are planned for each quarter of an hour of the next 24 hours."""

from __future__ import annotations

from typing import Any

from sweephand.domain.instants import text, text_ms
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.overview import pace
from sweephand.server.flow.jobs.load_ahead import SLOT_S, load_ahead


def read_load(ctx: Context) -> Answer:
    """Returns the load that this process last computed, and its age."""
    return pace.priced(ctx, pace.LOAD, _load)


def _load(ctx: Context) -> dict[str, Any]:
    found = load_ahead(ctx.world, ctx.tenant, ctx.now)
    return {
        "computedAt": text_ms(found.computed_at),
        "ageSeconds": int((ctx.now - found.computed_at).total_seconds()),
        "from": text(found.begin),
        "slotSeconds": SLOT_S,
        "slots": list(found.slots),
        "jobs": found.jobs,
        "jobsLeftOut": found.left_out,
    }
