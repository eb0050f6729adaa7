"""Jobs of the SAP facade."""

from __future__ import annotations

from sweephand.facades.http import Answer
from sweephand.facades.sap.context import FACADE, Context
from sweephand.store.views import jobs as views


def count(ctx: Context) -> Answer:
    """How many jobs are active and how many are not: from the counts of the directory's blocks."""
    own = [block for block in views.blocks(ctx.world.table, ctx.tenant) if block.facade == FACADE]
    active = sum(block.active for block in own)
    return Answer(200, {"active": active, "inactive": sum(block.live for block in own) - active})
