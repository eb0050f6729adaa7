"""Subscribes tenants to applications, and deletes a tenant when its last subscription ends.

The first write of the deletion disables the tenant for good: its jobs stop, its callers are refused, and nothing can be
added. The rest is an operation of the provider (server/flow/bulk/purge_tenant.py, decision 0037).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from sweephand.base.errors import Conflict, NotFound, QuotaExceeded
from sweephand.domain.collection import MOST_APPLICATIONS, Subscription, Tenant, TenantState
from sweephand.domain.operation import Operation, OperationKind, OperationState
from sweephand.server.flow import events
from sweephand.server.flow.concurrency import Moved, until_unmoved
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Cancelled
from sweephand.server.store.index import suspended
from sweephand.server.store.operations import operations
from sweephand.server.store.tenants import tenants
from sweephand.server.store.views import jobs as lists

GOING_ON = frozenset({OperationState.RUNNING, OperationState.PAUSED})


@until_unmoved("changes to this tenant")
def subscribe(world: World, name: str, application: str, actor: str | None = None) -> Subscription:
    """Subscribes a tenant; creates it if it does not exist. May be repeated.

    Raises QuotaExceeded for too many applications, and Conflict while the tenant is being deleted. The tenant can be
    created again once nothing of it is left.
    """
    before = tenants.read_tenant(world.table, name)
    if before is None:
        with suppress(Conflict):  # another request was first: the tenant is read again
            tenancy.create_tenant(world, name, None, application=application, actor=actor)
        raise Moved
    if before.purge is not None:
        raise before.being_purged()
    if application in before.applications:
        return before.applications[application]
    if len(before.applications) >= MOST_APPLICATIONS:
        raise QuotaExceeded(f"a tenant is subscribed to at most {MOST_APPLICATIONS} applications")
    subscription = Subscription(world.clock.now(), actor)
    after = replace(before, applications={**before.applications, application: subscription})
    if not isinstance(world.table.transact([tenants.subscribe_op(world.table, before, after)]), Cancelled):
        events.tenant_changed(world, "changed", after, actor)
    raise Moved


@until_unmoved("changes to this tenant")
def unsubscribe(world: World, name: str, application: str, actor: str | None) -> Operation | None:
    """Ends a subscription. Returns None if others are left, else the operation that deletes the tenant.

    Raises NotFound if there is no such subscription. May be repeated while the tenant is being deleted.
    """
    before = tenancy.find_tenant(world, name)
    if application not in before.applications:
        raise NotFound("no such subscription")
    if before.purge is not None or len(before.applications) == 1:
        return _purge(world, before, actor)
    rest = {other: each for other, each in before.applications.items() if other != application}
    after = replace(before, applications=rest)
    op = tenants.subscribe_op(world.table, before, after)
    if isinstance(world.table.transact([op]), Cancelled) and not _has_left(world, name, application):
        raise Moved
    events.tenant_changed(world, "changed", after, actor)
    return None


def _has_left(world: World, name: str, application: str) -> bool:
    """Returns whether the subscription has ended: the answer was lost, or another such request came first."""
    tenant = tenants.read_tenant(world.table, name)
    return tenant is not None and tenant.purge is None and application not in tenant.applications


@until_unmoved("changes to this tenant")
def delete_tenant(world: World, name: str, actor: str | None) -> Operation:
    """Begins the operation that deletes a tenant with everything it owns. Raises Conflict while it is subscribed."""
    before = tenancy.find_tenant(world, name)
    if before.applications and before.purge is None:
        raise Conflict(f"it is subscribed to {', '.join(sorted(before.applications)[:5])}: end these first")
    return _purge(world, before, actor)


def _purge(world: World, tenant: Tenant, actor: str | None) -> Operation:
    """Returns the operation in progress, resumed if it had failed, or a new one. Raises Moved.

    One transaction disables the tenant, names the operation that deletes it, and writes that operation.
    """
    begun = operations.read(world.table, None, tenant.purge) if tenant.purge is not None else None
    if begun is not None and begun.state in GOING_ON:
        return begun
    if begun is not None and begun.state is OperationState.FAILED:
        return verbs.resume(world, begun)
    now = world.clock.now()
    total = lists.count(world.table, tenant.name, lists.ALL)
    operation = Operation(
        tenant=None,
        id=world.chance.new_id(now),
        kind=OperationKind.PURGE_TENANT,
        params={"tenant": tenant.name},
        started_at=now,
        total=total,
        actor=actor,
    )
    done = world.table.transact(
        [
            *tenants.purge_ops(world.table, tenant, operation.id),
            *suspended.begin_ops(world.table, tenant.name, None, now),
            operations.begin_op(world.table, operation, world.shards),
        ]
    )
    if isinstance(done, Cancelled) and operations.read(world.table, None, operation.id) is None:
        raise Moved
    verbs.send(world, operation)
    purging = replace(tenant, state=TenantState.PURGING, purge=operation.id)
    events.tenant_changed(world, "deleted", purging, actor)
    return operation
