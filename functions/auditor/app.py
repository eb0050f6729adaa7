"""Hourly: what should have run against the ledger; repairs what it finds and reports it."""

from __future__ import annotations

from typing import Any

from sweephand import cold_start
from sweephand.flow.audit import audit
from sweephand.wiring import build

world = build()
cold_start.over()


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """event: {"all": true} for the whole audit at once, with "from" to go on where it left off;

    {"repeatEffects": {...}} as flow.audit.repeat_effects takes it; else this hour's 24th.
    """
    if "repeatEffects" in event:
        from sweephand.flow.audit import repeat_effects  # noqa: PLC0415 - by command only

        return vars(repeat_effects.repeat(world, event["repeatEffects"]))
    return vars(audit.audit(world, everything=event.get("all") is True, rest=event.get("from")))
