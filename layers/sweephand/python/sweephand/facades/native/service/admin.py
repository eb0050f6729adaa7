"""Health, collections and tokens of the native API."""

from __future__ import annotations

from itertools import islice
from typing import Any

from sweephand import __version__
from sweephand.domain.collection import Collection
from sweephand.domain.instants import text
from sweephand.errors import InvalidRequest, NotFound
from sweephand.facades.http import Answer
from sweephand.facades.native import shapes
from sweephand.facades.native.context import Context
from sweephand.facades.native.shared import collection_fields
from sweephand.flow.tenants import tenancy
from sweephand.lazy import lazy
from sweephand.store.views import tenants as views

with lazy():
    from sweephand.facades.native.service import last_audit
    from sweephand.facades.native.shared import facade_limits
    from sweephand.facades.native.tenants import oauth


def health(ctx: Context) -> Answer:
    """Open: the version, from memory. At provider level, with the scope jobs:read: how far behind the sweep is, what
    the run queues hold, and what the last audit found. All of these count over all tenants, so a tenant sees none.
    """
    told: dict[str, object] = {"status": "ok", "version": __version__}
    if "authorization" not in ctx.request.headers:
        return Answer(200, told)
    caller = ctx.door().identify(ctx.request.headers["authorization"], ctx.now)
    caller.require("jobs:read")
    if caller.provider:
        table = ctx.world.table
        oldest = views.oldest_due(table, ctx.world.settings.shards)
        told["oldestDueAt"] = text(oldest) if oldest else None
        told["behindSeconds"] = max(0, int((ctx.now - oldest).total_seconds())) if oldest else 0
        told["backlog"] = {
            lane.value: {"ready": held.ready, "delayed": held.delayed, "inFlight": held.in_flight}
            for lane, held in ctx.world.queue.backlog().items()
        }
        told["lastAudit"] = last_audit.body(views.last_audit(table))
    return Answer(200, told)


# Collections


def create_collection(ctx: Context) -> Answer:
    wanted = collection_fields.read(ctx.body(), ctx.tenant, ctx.guard)
    tenancy.find_tenant(ctx.world, ctx.tenant)
    return _collection(tenancy.create_collection(ctx.world, wanted, ctx.actor), 201)


def list_collections(ctx: Context) -> Answer:
    limit, mark = ctx.page(shapes.is_plain)
    found = views.collections(ctx.world.table, ctx.tenant, mark[0] if mark else None, limit + 1)
    page = list(islice(found, limit + 1))
    cursor = ctx.cursor(page[limit - 1].name) if len(page) > limit else None
    return Answer(200, {"items": [collection_fields.body(each) for each in page[:limit]], "nextCursor": cursor})


def read_collection(ctx: Context) -> Answer:
    return _collection(tenancy.find_collection(ctx.world, ctx.tenant, _name(ctx)))


def _name(ctx: Context) -> str:
    """The collection that the path names. An impossible name is unknown, like any other."""
    name = ctx.parameters["collection"]
    if not shapes.is_plain(name):
        raise NotFound("no such collection")
    return name


def put_collection(ctx: Context) -> Answer:
    body = ctx.body()
    return _change(ctx, lambda before: collection_fields.read(body, before.tenant, ctx.guard, before))


def patch_collection(ctx: Context) -> Answer:
    body = ctx.body()
    if not isinstance(body, dict):
        raise InvalidRequest(None, "a merge patch of a collection must be an object", code="INVALID_FIELD")

    def edit(before: Collection) -> Collection:
        merged = shapes.patched(collection_fields.editable(before), body)
        return collection_fields.read(merged, before.tenant, ctx.guard, before)

    return _change(ctx, edit)


def _change(ctx: Context, edit: Any) -> Answer:
    def checked(before: Collection) -> Collection:
        after: Collection = edit(before)
        facade_limits.check_collection(before, after)
        return after

    return _collection(tenancy.change_collection(ctx.world, ctx.tenant, _name(ctx), checked, ctx.if_match(), ctx.actor))


def enable_collection(ctx: Context) -> Answer:
    return _switch(ctx, on=True)


def disable_collection(ctx: Context) -> Answer:
    return _switch(ctx, on=False)


def _switch(ctx: Context, *, on: bool) -> Answer:
    ctx.no_members()
    changed = tenancy.change_collection(
        ctx.world, ctx.tenant, _name(ctx), lambda before: tenancy.enabled(before, on=on), ctx.if_match(), ctx.actor
    )
    return _collection(changed)


def delete_collection(ctx: Context) -> Answer:
    tenancy.delete_collection(ctx.world, ctx.tenant, _name(ctx), ctx.if_match())
    return Answer(204)


def _collection(collection: Collection, status: int = 200) -> Answer:
    headers = {"ETag": f'"{collection.revision}"'}
    if status == 201:
        headers["Location"] = f"/v1/collections/{collection.name}"
    return Answer(status, collection_fields.body(collection), headers)


# Tokens


def token(ctx: Context) -> Answer:
    return oauth.token(ctx)
