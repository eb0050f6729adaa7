"""The keys that sign the calls of a collection's jobs."""

from __future__ import annotations

from typing import Any

from sweephand.domain.collection import SigningKey
from sweephand.domain.instants import text_ms
from sweephand.errors import NotFound
from sweephand.facades.http import Answer
from sweephand.facades.native import shapes
from sweephand.facades.native.context import Context
from sweephand.flow.tenants import signing, tenancy


def create_signing_key(ctx: Context) -> Answer:
    """The secret is shown this once."""
    ctx.no_members()
    name = _collection(ctx)
    key, secret = signing.create(ctx.world, ctx.tenant, name, ctx.actor)
    place = f"/v1/collections/{name}/signing-keys/{key.id}"
    return Answer(201, {**_body(key), "secret": secret}, {"Location": place})


def list_signing_keys(ctx: Context) -> Answer:
    keys = tenancy.find_collection(ctx.world, ctx.tenant, _collection(ctx)).signing
    return Answer(200, {"items": [_body(key) for key in keys], "nextCursor": None})


def delete_signing_key(ctx: Context) -> Answer:
    signing.delete(ctx.world, ctx.tenant, _collection(ctx), ctx.id("key"), ctx.actor)
    return Answer(204)


def _collection(ctx: Context) -> str:
    name = ctx.parameters["collection"]
    if not shapes.is_plain(name):
        raise NotFound("no such collection")
    return name


def _body(key: SigningKey) -> dict[str, Any]:
    return {"id": key.id, "createdAt": text_ms(key.created_at), "createdBy": key.by}
