"""Handles a tick of the rule that runs each minute: sweeps this worker's share of the shards."""

from __future__ import annotations

from typing import Any

from sweephand import cold_start
from sweephand.errors import Unavailable
from sweephand.flow.sweep import sweep
from sweephand.wiring import build

world = build()
cold_start.over()


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Sweeps the shards once. event: {"worker": n, "workers": m} from the rule's target; without them, all shards.

    Raises Unavailable after a tick that could not see all rows, so that Lambda counts it and keeps it as evidence.
    """
    workers = int(event.get("workers", 1))
    shards = range(int(event.get("worker", 0)), world.settings.shards, workers)
    tally = sweep.tick(world, shards)
    if tally.unseen:
        raise Unavailable("a shard could not be read to its end; the next tick reads it again")
    return vars(tally)
