"""Handles a tick of the rule that runs each minute: sweeps this worker's share of the shards."""

from __future__ import annotations

from typing import Any

from sweephand.server import cold_start
from sweephand.server.flow.sweep import sweep
from sweephand.server.wiring import build, report_subnets

world = build()
report_subnets(world)
cold_start.over()


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Sweeps the shards once. event: {"worker": n, "workers": m} from the rule's target; without them, all shards."""
    return vars(sweep.tick_or_fail(world, int(event.get("worker", 0)), int(event.get("workers", 1))))
