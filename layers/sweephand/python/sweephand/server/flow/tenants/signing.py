"""The keys that sign a collection's calls: create and delete them. A collection has at most two, for a rotation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from sweephand.base.errors import Conflict, NotFound
from sweephand.base.ids import uuid7
from sweephand.base.lazy import lazy
from sweephand.domain.collection import SigningKey
from sweephand.domain.event import EventType
from sweephand.domain.instants import epoch_ms
from sweephand.server.flow.concurrency import TRIES, too_many
from sweephand.server.flow.idempotency import Once, check_once, once_ops
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.security import signing
from sweephand.server.store.dynamo.conditional import Cancelled
from sweephand.server.store.tenants import tenants

with lazy():
    from sweephand.server.flow import events

MOST = 2


def create(
    world: World, tenant: str, name: str, actor: str | None = None, once: Once | None = None
) -> tuple[SigningKey, str]:
    """Creates a key and returns it with its secret, shown only once. Raises NotFound; Conflict for a third key."""
    now = world.clock.now()
    key_id = uuid7(epoch_ms(now), world.chance.token(10))
    secret = signing.new_secret(world.chance.token(signing.SECRET_BYTES))
    tenancy.find_collection(world, tenant, name)
    key = SigningKey(key_id, now, world.secrets.encrypt(tenant, owner_of(name), field_of(key_id), secret), actor)

    def with_one_more(keys: Sequence[SigningKey]) -> Sequence[SigningKey]:
        if len(keys) >= MOST:
            raise Conflict(f"the collection has {MOST} keys already: delete one that is no longer needed")
        return (*keys, key)

    _change(world, tenant, name, with_one_more, lambda keys: key_id in keys, (once, key_id))
    events.signing_key_changed(world, EventType.SIGNING_KEY_CREATED, tenant, name, key_id, actor)
    return key, secret


def delete(world: World, tenant: str, name: str, key_id: str, actor: str | None = None) -> None:
    """Deletes a key. Later calls are not signed with it. Raises NotFound."""

    def without_it(keys: Sequence[SigningKey]) -> Sequence[SigningKey]:
        left = tuple(key for key in keys if key.id != key_id)
        if len(left) == len(keys):
            raise NotFound("no such key")
        return left

    _change(world, tenant, name, without_it, lambda keys: key_id not in keys)
    events.signing_key_changed(world, EventType.SIGNING_KEY_DELETED, tenant, name, key_id, actor)


def opened(world: World, tenant: str, collection: str) -> tuple[str, ...]:
    """Returns the secrets that sign the calls of a collection's jobs, at most two seconds old.

    Leaves out a secret that cannot be opened. Then the receiver refuses the call because of the missing signature.
    """
    secrets = []
    for key in world.terms.of(tenant, collection).signing:
        with suppress(NotFound):
            secrets.append(world.secrets.decrypt(tenant, owner_of(collection), field_of(key.id), key.sealed))
    return tuple(secrets)


def owner_of(collection: str) -> str:
    """Returns the owner under which a secret is sealed. It takes the place of a job's id, which is a UUID."""
    return f"collection/{collection}"


def field_of(key_id: str) -> str:
    return f"signing.{key_id}"


Edit = Callable[[Sequence[SigningKey]], Sequence[SigningKey]]


def _change(
    world: World,
    tenant: str,
    name: str,
    edit: Edit,
    done: Callable[[Collection[str]], bool],
    once: tuple[Once | None, str] = (None, ""),
) -> None:
    """Changes the keys.

    done: decides from the keys' ids whether a refused try was written and only its answer was lost. once: the request's
    Idempotency-Key, and the id of what it creates.
    """
    remembered = once_ops(world, tenant, *once)
    for tries in range(TRIES):
        before = tenancy.find_collection(world, tenant, name)
        if tries and done([key.id for key in before.signing]):
            return
        op = tenants.change_signing_op(world.table, before, edit(before.signing))
        written = world.table.transact([op, *remembered])
        if not isinstance(written, Cancelled):
            return
        if not done([key.id for key in tenancy.find_collection(world, tenant, name).signing]):
            check_once(written, once[0])
    raise too_many("changes to the keys of this collection")
