"""Flow keys: create, change, pause and delete them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from sweephand.base.errors import Conflict, NotFound, name_taken
from sweephand.domain.flow_keys.flow_keys import FlowKey
from sweephand.domain.job import Pause
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.schedule import Lane
from sweephand.server.flow.concurrency import Moved, require_revision, tolerated, until_unmoved
from sweephand.server.flow.flow_keys import turnstiles
from sweephand.server.flow.idempotency import Once, check_once, once_ops
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo.conditional import Cancelled
from sweephand.server.store.flow_keys import circuits
from sweephand.server.store.flow_keys import flow_keys as store


def create(world: World, wanted: FlowKey, actor: str | None = None, once: Once | None = None) -> FlowKey:
    """Creates a flow key. Raises Conflict(NAME_TAKEN)."""
    now = world.clock.now()
    key = replace(wanted, created_at=now, created_by=actor, modified_at=now)
    ops = store.create_ops(world.table, key, turnstiles.new_turn(world))
    done = world.table.transact([*ops, *once_ops(world, key.tenant, once, key.name)])
    if isinstance(done, Cancelled) and store.find(world.table, key.tenant, key.name) != key:
        check_once(done, once)
        raise name_taken("flow key", key.name)
    return key


def find(world: World, tenant: str, name: str) -> FlowKey:
    """Returns the flow key. Raises NotFound."""
    key = store.find(world.table, tenant, name)
    if key is None:
        raise NotFound("no such flow key")
    return store.with_users(world.table, [key])[0]


@until_unmoved("changes to this flow key")
def change(
    world: World,
    tenant: str,
    name: str,
    edit: Callable[[FlowKey], FlowKey],
    if_match: int | None,
    actor: str | None = None,
) -> FlowKey:
    """Changes a flow key from the next call on. Waiting runs are called again under the new terms."""
    before = find(world, tenant, name)
    require_revision(if_match, before.revision, "the flow key is at revision")
    wanted = edit(before)
    if wanted == before:
        return before
    after = replace(wanted, revision=before.revision + 1, modified_at=world.clock.now(), modified_by=actor)
    ops = store.change_ops(world.table, before, after, turnstiles.new_turn(world))
    if isinstance(world.table.transact(ops), Cancelled) and not _is_written(world, after):
        raise Moved
    if before.circuit is not None and after.circuit is None:
        circuits.forget_circuits(world.table, tenant, name)
    _call(world, tenant, name)
    return after


def _is_written(world: World, after: FlowKey) -> bool:
    """Returns whether this write succeeded although its answer was lost. `users` may have changed since."""
    stored = store.find(world.table, after.tenant, after.name)
    return stored is not None and replace(stored, users=after.users) == after


def _call(world: World, tenant: str, name: str) -> None:
    """Sends a message that calls the waiting runs; if it is lost, the key's row in the index calls them."""
    now = world.clock.now()
    pointer = Pointer(tenant, name, None, name, now, subject=Subject.FLOW)
    with tolerated(world, "runs that wait under a flow key are called after the next tick", tenant=tenant):
        world.queue.send_one(Delivery(pointer, now, Lane.FAST))


def paused(key: FlowKey, now: datetime, note: str | None) -> FlowKey:
    """Returns the paused key. A key that was already paused keeps the instant of its pause; its note may change."""
    since = key.pause.since if key.pause else now
    return replace(key, pause=Pause(since, note))


def resumed(key: FlowKey) -> FlowKey:
    return replace(key, pause=None)


def delete(world: World, tenant: str, name: str, if_match: int | None) -> None:
    """Deletes a flow key. Raises Conflict while jobs or collections name it, or runs wait under it."""
    before = find(world, tenant, name)
    require_revision(if_match, before.revision, "the flow key is at revision")
    if not before.users:
        if _still_waited(world, tenant, name):
            raise Conflict("runs still wait under it: try again in a minute, and resume it if it is paused")
        done = world.table.transact(store.delete_ops(world.table, before))
        if not isinstance(done, Cancelled) or store.find(world.table, tenant, name) is None:
            store.forget(world.table, tenant, name)
            return
        before = find(world, tenant, name)
    raise Conflict(f"named by {before.users} jobs or collections" if before.users else "it was changed meanwhile")


def _still_waited(world: World, tenant: str, name: str) -> bool:
    """Returns whether runs still wait whose jobs no longer name the key. Calls them, so that they leave the line."""
    turnstile = store.read_stile(world.table, tenant, name)
    if turnstile is None or turnstile.wake_at is None:
        return False
    _call(world, tenant, name)
    return True
