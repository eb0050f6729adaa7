"""Flow keys of the native API."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter

from sweephand.base import json_text
from sweephand.base.members import fields
from sweephand.domain.flow_keys.flow_keys import FlowKey
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.shared import flow_key_members
from sweephand.server.facades.native.shared.flow_key_members import FLOW_KEY, LIVE, Live
from sweephand.server.flow.flow_keys import flow_key_changes
from sweephand.server.flow.idempotency import made_once
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.views import resources as views


def create(ctx: Context) -> Answer:
    wanted = flow_key_members.read(ctx.body(), ctx.tenant)
    tenancy.find_tenant(ctx.world, ctx.tenant)
    once = ctx.once()

    def make() -> FlowKey:
        return flow_key_changes.create(ctx.world, wanted, ctx.actor, once)

    return _answer(ctx, made_once(ctx.world, ctx.tenant, once, make, partial(_found, ctx)), 201)


def _found(ctx: Context, name: str) -> FlowKey:
    return flow_key_changes.find(ctx.world, ctx.tenant, name)


def list_all(ctx: Context) -> Answer:
    """Lists flow keys by name, without their queues."""
    rows = partial(views.flow_keys, ctx.world.table, ctx.tenant)
    return ctx.page_of(rows, FLOW_KEY.show, mark=attrgetter("name"), fits=shapes.is_plain)


def read(ctx: Context) -> Answer:
    return _answer(ctx, _found(ctx, ctx.plain("flow_key")))


def put(ctx: Context) -> Answer:
    body = ctx.body()
    return _change(ctx, lambda before: flow_key_members.read(body, ctx.tenant, before))


def patch(ctx: Context) -> Answer:
    body = ctx.merge_patch("flow key")

    def edit(before: FlowKey) -> FlowKey:
        return flow_key_members.read(json_text.merged(FLOW_KEY.settable(before), body), ctx.tenant, before)

    return _change(ctx, edit)


def pause(ctx: Context) -> Answer:
    given = fields.members(ctx.body(), "", ("note",))
    note = fields.free(given["note"], "note", 0, 1_000) if "note" in given else None
    return _change(ctx, lambda before: flow_key_changes.paused(before, ctx.now, note))


def resume(ctx: Context) -> Answer:
    ctx.no_members()
    return _change(ctx, flow_key_changes.resumed)


def delete(ctx: Context) -> Answer:
    flow_key_changes.delete(ctx.world, ctx.tenant, ctx.plain("flow_key"), ctx.if_match())
    return Answer(204)


def _change(ctx: Context, edit: Callable[[FlowKey], FlowKey]) -> Answer:
    changed = flow_key_changes.change(ctx.world, ctx.tenant, ctx.plain("flow_key"), edit, ctx.if_match(), ctx.actor)
    return _answer(ctx, changed)


def _answer(ctx: Context, key: FlowKey, status: int = 200) -> Answer:
    headers = {"ETag": f'"{key.revision}"'}
    if status == 201:
        headers["Location"] = f"/v1/flow-keys/{key.name}"
    found = views.live(ctx.world.table, key.tenant, key.name)
    live = LIVE.show(Live(found.turnstile, found.waiting, found.circuits, ctx.now))
    return Answer(status, {**FLOW_KEY.show(key), "live": live}, headers)
