"""Deletes a consumer: the runs that are held for it end, and events report which ones its jobs will not deliver."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sweephand.base.errors import Conflict
from sweephand.domain.consumer import consumer_of
from sweephand.domain.occurrences.index_row import WAKE_AGAIN
from sweephand.server.flow.concurrency import Moved, until_unmoved
from sweephand.server.flow.consumers import leases
from sweephand.server.flow.tenants import absence
from sweephand.server.flow.tenants.absence import Back
from sweephand.server.flow.world import World
from sweephand.server.store.consumers import consumers as store
from sweephand.server.store.dynamo.conditional import Refused
from sweephand.server.store.views import jobs as lists

MOST_JOBS = 10_000
"""Jobs that one request looks through, some 5,000 read units."""
AT_ONCE = 500
NAMED_FIRST = 5


@until_unmoved(leases.CHANGES)
def delete(world: World, tenant: str, name: str, *, force: bool) -> None:
    """Deletes a consumer; executors end the runs that are held for it. A repetition changes nothing.

    The wake is written first, so that a delete whose message is lost still continues. Raises NotFound. Unless force is
    set, raises Conflict(CONSUMER_TAKEN) while somebody holds the lease, and Conflict while jobs name the consumer.
    """
    consumer = leases.find(world, tenant, name, deleted_too=True)
    now = world.clock.now()
    if not leases.is_gone(world, consumer):
        if not force:
            leases.check_free(consumer, now)
            _check_unnamed(world, tenant, name)
        store.watch(world.table, tenant, name, now + WAKE_AGAIN, world.shards)
        if isinstance(store.end(world.table, tenant, name, now, even_if_held=force), Refused):
            raise Moved
        absence.end(world, consumer, Back.DELETED)
    leases.send_on(world, consumer)


def _check_unnamed(world: World, tenant: str, name: str) -> None:
    rows = lists.listed(world.table, tenant, lists.ALL, None, MOST_JOBS + 1)
    ids = [row.job_id for row in islice(rows, MOST_JOBS + 1)]
    if len(ids) > MOST_JOBS:
        reason = f"the tenant has more than {MOST_JOBS:,} jobs, too many to see which of them name the consumer {name}"
        raise Conflict(f"{reason}: send force=true to delete it all the same")
    job_ids = list(_naming(world, tenant, name, ids))
    if job_ids:
        who = f"{len(job_ids):,} jobs name" if len(job_ids) > 1 else "1 job names"
        first = ", ".join(job_ids[:NAMED_FIRST]) + (", ..." if len(job_ids) > NAMED_FIRST else "")
        raise Conflict(f"{who} the consumer {name}: {first}. Change or delete them first, or send force=true")


def _naming(world: World, tenant: str, name: str, ids: list[str]) -> Iterator[str]:
    for begin in range(0, len(ids), AT_ONCE):
        some = ids[begin : begin + AT_ONCE]
        named = lists.named_jobs(world.table, tenant, some)
        yield from (job_id for job_id in some if job_id in named and consumer_of(named[job_id]) == name)
