"""The keys that sign the calls of a collection's jobs."""

from __future__ import annotations

from sweephand.domain.collection import SigningKey
from sweephand.facades.http import Answer
from sweephand.facades.native.context import Context
from sweephand.facades.native.members.resource import Resource, answered
from sweephand.facades.native.members.schema_words import ACTOR, ID, INSTANT_MS
from sweephand.flow.tenants import signing, tenancy

SIGNING_KEY = Resource(
    SigningKey,
    {"id": answered(ID), "createdAt": answered(INSTANT_MS), "createdBy": answered(ACTOR, "by")},
)


def create_signing_key(ctx: Context) -> Answer:
    """Creates a signing key. Its secret is shown this once."""
    ctx.no_members()
    name = ctx.plain("collection")
    key, secret = signing.create(ctx.world, ctx.tenant, name, ctx.actor)
    place = f"/v1/collections/{name}/signing-keys/{key.id}"
    return Answer(201, {**SIGNING_KEY.show(key), "secret": secret}, {"Location": place})


def list_signing_keys(ctx: Context) -> Answer:
    keys = tenancy.find_collection(ctx.world, ctx.tenant, ctx.plain("collection")).signing
    return Answer(200, {"items": [SIGNING_KEY.show(key) for key in keys], "nextCursor": None})


def delete_signing_key(ctx: Context) -> Answer:
    signing.delete(ctx.world, ctx.tenant, ctx.plain("collection"), ctx.id("key"), ctx.actor)
    return Answer(204)
