"""Consumers of the native API: programs that receive events, and get the missed ones when they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.json_schema import one_of, or_null, whole
from sweephand.base.members import fields
from sweephand.domain.answers import Table, answered
from sweephand.domain.consumer import LEAST_LEASE_S, LONGEST_LEASE_S, USUAL_LEASE_S, Consumer, Phase
from sweephand.domain.instants import stamp, text
from sweephand.domain.schema_words import INSTANT, INSTANT_MS, TEXT
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import Context
from sweephand.server.flow.consumers import deletion, leases
from sweephand.server.store.views import resources as views

MOST_COUNTED = 1_000
LONGEST_HOLDER = 128


class _Shown(NamedTuple):
    """A consumer at the time of a request. held: the planned instants of the events that wait, up to MOST_COUNTED."""

    consumer: Consumer
    now: datetime
    held: Sequence[datetime]

    @property
    def leased(self) -> Consumer | None:
        """Returns the consumer while somebody holds it."""
        return self.consumer if self.consumer.is_held(self.now) else None


CONSUMER = Table(
    {
        "name": answered(TEXT, "consumer.name", says="The name of the consumer."),
        "state": answered(
            one_of(Phase),
            lambda shown: shown.consumer.phase_at(shown.now).value,
            "`AWAY`: events are held. `STARTING`: missed events are sent. `LIVE`: all are.",
        ),
        "holder": answered(
            or_null(TEXT), lambda shown: shown.leased and shown.leased.holder, "The process that holds the lease now."
        ),
        "leaseUntil": answered(
            or_null(INSTANT_MS),
            lambda shown: shown.leased and stamp(shown.leased.lease_until),
            "When its lease ends unless it is extended; null if nobody holds it.",
        ),
        "held": answered(
            whole(0, MOST_COUNTED),
            lambda shown: len(shown.held),
            "How many events wait for it, counted up to 1,000.",
        ),
        "oldestHeldAt": answered(
            or_null(INSTANT),
            lambda shown: text(shown.held[0]) if shown.held else None,
            "The planned instant of the oldest waiting event.",
        ),
    }
)


def _body(ctx: Context, consumer: Consumer) -> dict[str, Any]:
    held = views.held(ctx.world.table, ctx.tenant, consumer.name, MOST_COUNTED)
    return CONSUMER.show(_Shown(consumer, ctx.now, held))


def list_all(ctx: Context) -> Answer:
    def rows(last: str | None, limit: int) -> Any:
        listed = views.consumers(ctx.world.table, ctx.tenant, last, limit)
        return (each for each in listed if not leases.is_gone(ctx.world, each))

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
    members = fields.members(ctx.body(), "", ("holder", "seconds"), wrong)
    holder = wrong.of(_holder, members)
    seconds = wrong.of(fields.whole, members.get("seconds", USUAL_LEASE_S), "seconds", LEAST_LEASE_S, LONGEST_LEASE_S)
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
    members = fields.members(ctx.body(), "", ("holder",), wrong)
    holder = wrong.of(_holder, members)
    wrong.check()
    return Answer(200, _body(ctx, leases.start(ctx.world, ctx.tenant, ctx.plain("consumer"), holder)))


def _holder(members: Mapping[str, Any]) -> str:
    return fields.line(fields.required(members, "holder"), "holder", LONGEST_HOLDER)
