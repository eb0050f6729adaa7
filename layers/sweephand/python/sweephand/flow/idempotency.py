"""Idempotency-Key: the first request writes a record in its transaction; a repetition finds the same result there."""

from __future__ import annotations

from datetime import timedelta

from sweephand.domain.instants import epoch_s
from sweephand.errors import Conflict, InvalidRequest
from sweephand.flow.world import World
from sweephand.records import dataclass
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Refused
from sweephand.store.dynamo.expressions import Condition
from sweephand.store.dynamo.table import IdempotencyItem

KEPT = timedelta(hours=24)


@dataclass(frozen=True)
class Once:
    """A request with an Idempotency-Key.

    key: hash of the caller's key and the route. digest: hash of the body, which tells a repetition from a reused key.
    """

    key: str
    digest: str


def once_op(world: World, tenant: str, once: Once, answer: str) -> Op:
    """Returns the operation that writes the record [absent, or over 24 h old].

    answer: the id of the resource that this request creates.
    """
    now = world.clock.now()
    item = IdempotencyItem(
        pk=keys.idempotency(tenant),
        sk=once.key,
        digest=once.digest,
        answer=answer,
        expires_at=epoch_s(now + KEPT),
    )
    free: Condition = IdempotencyItem.pk.does_not_exist() | (IdempotencyItem.expires_at <= epoch_s(now))
    return world.table.put_op("once", item, free)


def earlier_answer(refused: Refused, once: Once) -> str:
    """Returns the id that the earlier request created. Raises InvalidRequest(KEY_REUSED) if its body was different."""
    item = refused.read(IdempotencyItem)
    if item is None:
        raise Conflict("the request with this Idempotency-Key is under way")
    return _answer(item, once)


def earlier(world: World, tenant: str, once: Once) -> str | None:
    """Returns the id that an earlier request with this key created; None if there was none. Call it before planning."""
    item = world.table.get(IdempotencyItem, keys.idempotency(tenant), once.key)
    if item is None or (item.expires_at or 0) <= epoch_s(world.clock.now()):
        return None
    return _answer(item, once)


def _answer(item: IdempotencyItem, once: Once) -> str:
    if item.digest != once.digest:
        raise InvalidRequest("Idempotency-Key", "was used with another request", code="KEY_REUSED")
    answer: str = item.answer
    return answer
