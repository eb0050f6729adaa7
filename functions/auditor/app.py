"""Compares the planned occurrences with the ledger each hour, repairs differences and reports them."""

from __future__ import annotations

from typing import Any

from sweephand.server import cold_start
from sweephand.server.flow.audit import audit
from sweephand.server.wiring import build

world = build()
cold_start.over()


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Audits this worker's share of the schedules, as far as their turn has come.

    event: {"worker": n, "workers": m} from the rule's target; {"all": true} for the whole audit at once, with "from" to
    continue it; {"repeatEffects": {...}} for flow.audit.repeat_effects.
    """
    if "repeatEffects" in event:
        from sweephand.server.flow.audit import repeat_effects  # noqa: PLC0415 - only on demand

        return vars(repeat_effects.repeat(world, event["repeatEffects"]))
    share = {name: int(event[name]) for name in ("worker", "workers") if name in event}
    return vars(audit.audit(world, **share, everything=event.get("all") is True, rest=event.get("from")))
