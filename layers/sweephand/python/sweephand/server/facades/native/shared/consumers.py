"""Consumers of the native API: programs that receive events, and get the missed ones when they return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.domain.consumer import LEAST_LEASE_S, LONGEST_LEASE_S, USUAL_LEASE_S, Consumer
from sweephand.domain.instants import text, text_ms
from sweephand.domain.members import fields
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import Context
from sweephand.server.flow.consumers import deletion, leases
from sweephand.server.store.views import resources as views

MOST_COUNTED = 1_000
LONGEST_HOLDER = 128


def list_all(ctx: Context) -> Answer:
    def rows(last: str | None, limit: int) -> Any:
        found = views.consumers(ctx.world.table, ctx.tenant, last, limit)
        return (each for each in found if not leases.is_gone(ctx.world, each))

    return ctx.page_of(rows, lambda each: _body(ctx, each), mark=lambda each: each.name, fits=shapes.is_plain)


def read(ctx: Context) -> Answer:
    return Answer(200, _body(ctx, leases.find(ctx.world, ctx.tenant, ctx.plain("consumer"))))


def delete(ctx: Context) -> Answer:
    force = ctx.choice("force", frozenset({"true", "false"})) == "true"
    deletion.delete(ctx.world, ctx.tenant, ctx.plain("consumer"), force=force)
    return Answer(204)


def take_lease(ctx: Context) -> Answer:
    """Takes the lease of a consumer, or extends it."""
    name = ctx.plain("consumer", made_as="consumer")
    wrong = Mistakes()
    given = fields.members(ctx.body(), "", ("holder", "seconds"), wrong)
    holder = wrong.of(_holder, given)
    seconds = wrong.of(fields.whole, given.get("seconds", USUAL_LEASE_S), "seconds", LEAST_LEASE_S, LONGEST_LEASE_S)
    wrong.check()
    return Answer(200, _body(ctx, leases.take(ctx.world, ctx.tenant, name, holder, seconds)))


def release_lease(ctx: Context) -> Answer:
    holder = ctx.text("holder", LONGEST_HOLDER)
    if holder is None:
        raise InvalidRequest("holder", "is required: name the holder of the lease", code="INVALID_QUERY")
    leases.release(ctx.world, ctx.tenant, ctx.plain("consumer"), holder)
    return Answer(204)


def start(ctx: Context) -> Answer:
    """Begins to send the held events. The consumer is LIVE once all of them have been sent."""
    wrong = Mistakes()
    given = fields.members(ctx.body(), "", ("holder",), wrong)
    holder = wrong.of(_holder, given)
    wrong.check()
    return Answer(200, _body(ctx, leases.start(ctx.world, ctx.tenant, ctx.plain("consumer"), holder)))


def _holder(given: Mapping[str, Any]) -> str:
    return fields.line(fields.required(given, "holder"), "holder", LONGEST_HOLDER)


def _body(ctx: Context, consumer: Consumer) -> dict[str, Any]:
    phase = consumer.phase_at(ctx.now)
    there = consumer.is_held(ctx.now)
    held = views.held(ctx.world.table, ctx.tenant, consumer.name, MOST_COUNTED)
    return {
        "name": consumer.name,
        "state": phase.value,
        "holder": consumer.holder if there else None,
        "leaseUntil": text_ms(consumer.lease_until) if there and consumer.lease_until else None,
        "held": len(held),
        "oldestHeldAt": text(held[0]) if held else None,
    }
