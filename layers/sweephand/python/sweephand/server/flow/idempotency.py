"""Idempotency-Key: the first request writes a record in its transaction; a repetition finds the same result there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from sweephand.base.errors import Conflict, InvalidRequest
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s
from sweephand.server.flow.world import World
from sweephand.server.security.caller import PROVIDER
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Op, Refused
from sweephand.server.store.dynamo.expressions import Condition
from sweephand.server.store.dynamo.table import IdempotencyItem

KEPT = timedelta(hours=24)
T = TypeVar("T")


class Repeated(Exception):
    """A write that found the record of an earlier request. answer: the id of what that request created."""

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self.answer = answer


@dataclass(frozen=True)
class Once:
    """A request with an Idempotency-Key.

    key: hash of the caller's key and the route. digest: hash of the body, which tells a repetition from a reused key.
    """

    key: str
    digest: str


def made_once(
    world: World, tenant: str | None, once: Once | None, make: Callable[[], T], find: Callable[[str], T]
) -> T:
    """Makes something, or finds what an earlier request with the same key made.

    tenant: None for a request of the provider. make: has `once_ops` in its transaction, and calls `check_once` if the
    transaction is refused. find: returns the present state of what the record names.
    """
    answer = None if once is None else earlier(world, tenant, once)
    if answer is None:
        try:
            return make()
        except Repeated as repeated:
            answer = repeated.answer
    return find(answer)


def once_ops(world: World, tenant: str | None, once: Once | None, answer: str) -> list[Op]:
    """Returns the operation `once`, or none for a request without a key."""
    return [] if once is None else [once_op(world, tenant, once, answer)]


def check_once(refused: Cancelled, once: Once | None) -> None:
    """Raises Repeated if the transaction was refused because an earlier request with this key was carried out."""
    if once is not None and "once" in refused.refused:
        raise Repeated(earlier_answer(refused.refused["once"], once))


def once_op(world: World, tenant: str | None, once: Once, answer: str, kept: timedelta = KEPT) -> Op:
    """Returns the operation that writes the record [absent, or expired].

    answer: the id of the resource that this request creates. kept: how long the record counts.
    """
    now = world.clock.now()
    item = IdempotencyItem(
        pk=keys.idempotency(tenant or PROVIDER, once.key),
        sk=once.key,
        digest=once.digest,
        answer=answer,
        expires_at=epoch_s(now + kept),
    )
    free: Condition = IdempotencyItem.pk.does_not_exist() | (IdempotencyItem.expires_at <= epoch_s(now))
    return world.table.put_op("once", item, free)


def note_deleted(world: World, tenant: str, what: str) -> None:
    """Notes for 24 hours that something was deleted. Call it before the delete. what: its kind and name."""
    expires_at = epoch_s(world.clock.now() + KEPT)
    sk = _deleted(what)
    item = IdempotencyItem(pk=keys.idempotency(tenant, sk), sk=sk, digest="", answer=what, expires_at=expires_at)
    world.table.put(item)


def was_deleted(world: World, tenant: str, what: str) -> bool:
    """Returns whether it was deleted in the last 24 hours, so that a repeated delete gets the answer of the first."""
    sk = _deleted(what)
    item = world.table.get(IdempotencyItem, keys.idempotency(tenant, sk), sk)
    return item is not None and item.expires_at > epoch_s(world.clock.now())


def _deleted(what: str) -> str:
    return f"DELETED#{keys.part(what)}"


def earlier_answer(refused: Refused, once: Once) -> str:
    """Returns the id that the earlier request created.

    Raises InvalidRequest(KEY_REUSED) if its body was different, and Conflict if it is still in progress.
    """
    item = refused.read(IdempotencyItem)
    if item is None:
        raise Conflict("an earlier request with this Idempotency-Key is still in progress: try again in a moment")
    return _answer(item, once)


def earlier(world: World, tenant: str | None, once: Once) -> str | None:
    """Returns the id that an earlier request with this key created; None if there was none. Call it before planning."""
    item = world.table.get(IdempotencyItem, keys.idempotency(tenant or PROVIDER, once.key), once.key)
    if item is None or (item.expires_at or 0) <= epoch_s(world.clock.now()):
        return None
    return _answer(item, once)


def is_used(world: World, tenant: str, once: Once) -> bool:
    """Returns whether another request has a record under this key."""
    item = world.table.get(IdempotencyItem, keys.idempotency(tenant, once.key), once.key)
    return item is not None and (item.expires_at or 0) > epoch_s(world.clock.now()) and item.digest != once.digest


def _answer(item: IdempotencyItem, once: Once) -> str:
    if item.digest != once.digest:
        raise InvalidRequest("Idempotency-Key", "was used with another request", code="KEY_REUSED")
    answer: str = item.answer
    return answer
