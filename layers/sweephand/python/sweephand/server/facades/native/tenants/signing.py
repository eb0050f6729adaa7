"""The keys that sign the calls of a collection's jobs."""

from __future__ import annotations

from functools import partial

from sweephand.base.errors import Conflict
from sweephand.domain.answers import Table, answered
from sweephand.domain.collection import SigningKey
from sweephand.domain.schema_words import ACTOR, ID, INSTANT_MS
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.flow.idempotency import made_once
from sweephand.server.flow.tenants import signing, tenancy

SIGNING_KEY = Table(
    {"id": answered(ID), "createdAt": answered(INSTANT_MS), "createdBy": answered(ACTOR, "by")},
)


def create_signing_key(ctx: Context) -> Answer:
    """Creates a signing key. Only this answer shows its secret."""
    ctx.no_members()
    name = ctx.plain("collection")
    once = ctx.once()
    make = partial(signing.create, ctx.world, ctx.tenant, name, ctx.actor, once)
    key, secret = made_once(ctx.world, ctx.tenant, once, make, partial(_shown_once, name))
    place = f"/v1/collections/{name}/signing-keys/{key.id}"
    return Answer(201, {**SIGNING_KEY.show(key), "secret": secret}, {"Location": place})


def _shown_once(collection: str, key_id: str) -> tuple[SigningKey, str]:
    """Raises Conflict for a repeated request, because no answer can show the secret again."""
    raise Conflict(
        "an earlier request with this Idempotency-Key was carried out, and only its answer had the secret: "
        f"if it is lost, delete the key {key_id} of the collection {collection} and create a new one"
    )


def list_signing_keys(ctx: Context) -> Answer:
    keys = tenancy.find_collection(ctx.world, ctx.tenant, ctx.plain("collection")).signing
    return Answer(200, {"items": [SIGNING_KEY.show(key) for key in keys], "nextCursor": None})


def delete_signing_key(ctx: Context) -> Answer:
    signing.delete(ctx.world, ctx.tenant, ctx.plain("collection"), ctx.id("key"), ctx.actor)
    return Answer(204)
