"""Looks through what is due soon when the time-zone data are newer: an instant may have moved to an earlier time.

A worker does so in its first ticks under the new data, after all that is due. The audit looks at the rest in time.
(Decision 0178.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from sweephand.domain.occurrences.index_row import SweepText, Waits
from sweephand.domain.schedule import names_zone
from sweephand.server.flow.series import moving
from sweephand.server.flow.world import World
from sweephand.server.store.index import next_run_index
from sweephand.server.store.index.newer_zones import Look, write
from sweephand.server.store.index.next_run_index import WaitingRow
from sweephand.server.store.jobs import jobs

SLICES = (timedelta(), timedelta(hours=2), timedelta(days=2))
"""The nearest instants of all shards come first. Data move an instant by a day at most, mostly by an hour."""
AT_ONCE = 100
"""Schedules that one call reads."""


def begin(data: str, workers: int, now: datetime, others: Mapping[int, Look]) -> Look:
    """Returns the look that a worker without one for these data begins. In a new stack, nothing can have moved."""
    is_new = all(each.is_for(data, workers) for each in others.values())
    return Look(data, workers, now, step=None if is_new else 0)


def go_on(world: World, worker: int, look: Look, shards: Sequence[int], deadline: float) -> None:
    """Continues a look until it ends or the tick does, and keeps how far it came. Raises Unavailable."""
    windows = [(first, last, shard) for first, last in pairwise(SLICES) for shard in shards]
    step = len(windows) if look.step is None else look.step
    while step < len(windows):
        first, last, shard = windows[step]
        since, until = look.began_at + first, look.began_at + last
        start = None if look.after is None else json.loads(look.after)
        for page in next_run_index.due(world.table, shard, since, until, start):
            _follow(world, page)
            if world.clock.monotonic() > deadline:
                write(world.table, worker, replace(look, step=step, after=json.dumps(next_run_index.key_of(page[-1]))))
                return
        step, look = step + 1, replace(look, after=None)
    write(world.table, worker, replace(look, step=None, after=None))


def _follow(world: World, page: Sequence[WaitingRow]) -> None:
    """Moves what newer data have moved. Reads only schedules that name a zone."""
    keys = [(row.pk, row.sk) for row in page if _names_zone(row)]
    for start in range(0, len(keys), AT_ONCE):
        for schedule in jobs.schedules_at(world.table, keys[start : start + AT_ONCE]):
            moving.follow(world, schedule)


def _names_zone(row: WaitingRow) -> bool:
    try:
        sweep = SweepText.read(row.sweep)
    except (LookupError, ValueError):
        return False  # a later version wrote the row, or the sweep takes it out of service
    return sweep.waits is Waits.OCCURRENCE and names_zone(sweep.packed)
