"""Limits how often a page may poll, so that an open overview costs at most 60 read units a minute at any size.

The answers share the units of a minute: 40 for changes, 12 for what needs attention, 3 for the load. The rest is for
identifying the caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from sweephand.base.json_schema import whole
from sweephand.domain.answers import Table, answered
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.store.views.priced import Priced

CHANGES, ATTENTION, LOAD = 40, 12, 3
"""The read units a minute for each answer."""
SOONEST_S = {CHANGES: 30, ATTENTION: 300, LOAD: 900}


class Price(NamedTuple):
    """The cost of an answer in read units, and how soon the caller may ask again."""

    read_units: float
    again_s: int


PRICE = Table(
    {
        "readUnits": answered(
            {"type": "number", "minimum": 0}, says="How many read units of DynamoDB this answer cost."
        ),
        "askAgainAfterSeconds": answered(
            whole(1),
            "again_s",
            "The shortest interval for polling, with which an open overview reads at most 60 units a minute.",
        ),
    }
)


def priced(ctx: Context, share: int, body: Callable[[Context], dict[str, Any]]) -> Answer:
    """Returns a body with the cost of reading it, and with how soon the caller may ask again."""
    table = Priced(ctx.world.table)
    shown = body(replace(ctx, world=replace(ctx.world, table=table)))
    again = max(SOONEST_S[share], math.ceil(table.read_units * 60 / share))
    return Answer(200, {**shown, **PRICE.show(Price(table.read_units, again))})
