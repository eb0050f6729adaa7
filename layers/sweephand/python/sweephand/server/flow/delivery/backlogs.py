"""Measures the backlogs of applications that have metrics of their own. An executor does so each minute."""

from __future__ import annotations

from sweephand.domain import watched
from sweephand.server.flow.concurrency import tolerated
from sweephand.server.flow.world import World
from sweephand.server.store.tenants import applications


def measure(world: World) -> None:
    """Writes how many runs of each listed application wait for a worker or are with one. Writes nothing for none."""
    for part in watched.parts(world.settings.metrics_of):
        if part.kind == watched.APPLICATION:
            with tolerated(world, "the backlog of an application is measured again in a minute"):
                _write(world, part)


def _write(world: World, part: watched.Part) -> None:
    versions = [each for each in applications.of_tenant(world.table, part.tenant) if each.name == part.name]
    backlogs = [world.queue.backlog_of(each.lane) for each in versions]
    if count := sum(each.ready + each.in_flight for each in backlogs):
        world.journal.measure({part.kind: part.value}, Open=count)
