"""Flow keys of the native API."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from sweephand.domain.flow_keys.flow_keys import FlowKey
from sweephand.errors import InvalidRequest, NotFound
from sweephand.facades.http import Answer
from sweephand.facades.native import shapes
from sweephand.facades.native.context import Context
from sweephand.facades.native.shared import flow_key_fields
from sweephand.flow.flow_keys import flow_key_changes
from sweephand.flow.tenants import tenancy
from sweephand.store.views import resources as views


def create(ctx: Context) -> Answer:
    wanted = flow_key_fields.read(ctx.body(), ctx.tenant)
    tenancy.find_tenant(ctx.world, ctx.tenant)
    return _answer(ctx, flow_key_changes.create(ctx.world, wanted, ctx.actor), 201)


def list_all(ctx: Context) -> Answer:
    """By name, without how things stand under them."""
    limit, mark = ctx.page(shapes.is_plain)
    page = list(islice(views.flow_keys(ctx.world.table, ctx.tenant, mark[0] if mark else None, limit + 1), limit + 1))
    cursor = ctx.cursor(page[limit - 1].name) if len(page) > limit else None
    return Answer(200, {"items": [flow_key_fields.listed(each) for each in page[:limit]], "nextCursor": cursor})


def read(ctx: Context) -> Answer:
    return _answer(ctx, flow_key_changes.find(ctx.world, ctx.tenant, _name(ctx)))


def put(ctx: Context) -> Answer:
    body = ctx.body()
    return _change(ctx, lambda before: flow_key_fields.read(body, ctx.tenant, before))


def patch(ctx: Context) -> Answer:
    body = ctx.body()
    if not isinstance(body, dict):
        raise InvalidRequest(None, "a merge patch of a flow key must be an object", code="INVALID_FIELD")

    def edit(before: FlowKey) -> FlowKey:
        return flow_key_fields.read(shapes.merged(flow_key_fields.editable(before), body), ctx.tenant, before)

    return _change(ctx, edit)


def pause(ctx: Context) -> Answer:
    note = flow_key_fields.note(ctx.body())
    return _change(ctx, lambda before: flow_key_changes.paused(before, ctx.now, note))


def resume(ctx: Context) -> Answer:
    flow_key_fields.nothing(ctx.body())
    return _change(ctx, flow_key_changes.resumed)


def delete(ctx: Context) -> Answer:
    flow_key_changes.delete(ctx.world, ctx.tenant, _name(ctx), ctx.if_match())
    return Answer(204)


def _change(ctx: Context, edit: Callable[[FlowKey], FlowKey]) -> Answer:
    changed = flow_key_changes.change(ctx.world, ctx.tenant, _name(ctx), edit, ctx.if_match(), ctx.actor)
    return _answer(ctx, changed)


def _name(ctx: Context) -> str:
    """The key that the path names. An impossible name is unknown, like any other."""
    name = ctx.parameters["flow_key"]
    if not shapes.is_plain(name):
        raise NotFound("no such flow key")
    return name


def _answer(ctx: Context, key: FlowKey, status: int = 200) -> Answer:
    headers = {"ETag": f'"{key.revision}"'}
    if status == 201:
        headers["Location"] = f"/v1/flow-keys/{key.name}"
    seen = views.live(ctx.world.table, key.tenant, key.name)
    stands = flow_key_fields.live(seen.stile, seen.waiting, seen.circuits, ctx.now)
    return Answer(status, {**flow_key_fields.listed(key), "live": stands}, headers)
