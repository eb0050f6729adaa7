"""Deletes collections together with their jobs."""

from __future__ import annotations

from dataclasses import replace

from sweephand.domain.collection import Collection, CollectionState
from sweephand.domain.operation import Operation, OperationKind
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.tenants import counts, tenants


def retire(world: World, collection: Collection, actor: str) -> bool:
    """Deletes a collection with its jobs. Its address is free at once; an operation deletes the rest.

    Returns False if another change came first.
    """
    now = world.clock.now()
    after = replace(
        collection,
        state=CollectionState.DELETING,
        revision=collection.revision + 1,
        modified_at=now,
        modified_by=actor,
        off_times=tenancy.off_times_switched(collection.off_times, now, on=False),
    )
    operation = Operation(
        collection.tenant,
        world.chance.new_id(now),
        OperationKind.DELETE_COLLECTION,
        {"collection": collection.name},
        now,
        total=tenants.job_counts(world.table, [collection])[0],
        actor=actor,
    )
    ops = [
        tenants.free_address_op(world.table, collection),
        tenants.change_collection_op(world.table, after, collection.revision),
        *tenancy.suspension_ops(world, collection.tenant, collection.name, now, on=False),
    ]
    begun = verbs.begin_with(world, operation, None, ops) is not None
    if begun:
        counts.void(world.table, tenants.counted(after))
    return begun
