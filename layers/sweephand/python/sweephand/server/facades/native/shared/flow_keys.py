"""Flow keys of the native API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from sweephand.base import json_text
from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.json_schema import Members, answer, items, one_of, or_null, request, text, whole
from sweephand.base.members import fields
from sweephand.base.members.fields import below
from sweephand.domain.answers import Member, Table, answered
from sweephand.domain.flow_keys.circuits import Circuit, CircuitState
from sweephand.domain.flow_keys.flow_keys import (
    LONGEST_PERIOD_S,
    MOST_A_SECOND,
    MOST_PARALLEL,
    CircuitRule,
    FlowKey,
    Rate,
    Turnstile,
)
from sweephand.domain.instants import EPOCH, text_ms
from sweephand.domain.run import Reason
from sweephand.domain.schema_words import FLAG, INSTANT_MS, REVISION, TEXT
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.members.resource import CHANGED, NAMED, Resource, part
from sweephand.server.flow.flow_keys import flow_key_changes
from sweephand.server.flow.idempotency import made_once
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.views import resources as views
from sweephand.server.store.views.resources import MOST_CIRCUITS, MOST_COUNTED

RATE = Resource(
    Rate,
    {
        "limit": Member(whole(1, 1_000_000)),
        "periodSeconds": Member(
            whole(1, LONGEST_PERIOD_S), attribute="period_s", says="The period that the limit counts, in seconds."
        ),
    },
)
CIRCUIT = Resource(
    CircuitRule,
    {
        "failures": Member(
            whole(
                1,
                1_000,
                default=CircuitRule.failures,
                description="How many failures in a row open the circuit of a target.",
            )
        ),
        "probeSeconds": Member(
            whole(
                1,
                3_600,
                default=CircuitRule.probe_s,
                description="While the circuit is open, the seconds between two calls that test the target.",
            ),
            attribute="probe_s",
        ),
    },
)
_ENABLED: Members = {
    "enabled": {**FLAG, "default": True, "description": "Whether it is in effect. If false, all calls are allowed."}
}


def _rate(value: object, field: str, _: Any) -> Rate:
    rate: Rate = RATE.part(value, field)
    if rate.limit > MOST_A_SECOND * rate.period_s:
        most = f"must be at most {MOST_A_SECOND:,} per second"
        raise InvalidRequest(below(field, "limit"), f"{most}, not {rate.limit:,} in {rate.period_s:,} s")
    return rate


def _circuit(value: object, field: str, _: Any) -> tuple[CircuitRule | None, CircuitRule | None]:
    """Returns the rule of an enabled circuit, and the rule of a disabled one. One of them is None."""
    wrong = Mistakes()
    members = fields.members(value, field, (*_ENABLED, *CIRCUIT.sent), wrong)
    rule = CircuitRule(**CIRCUIT.read(members, field, None, wrong))
    enabled = wrong.of(fields.flag, members.get("enabled", True), below(field, "enabled"))
    wrong.check()
    return (rule, None) if enabled else (None, rule)


FLOW_KEY = Resource(
    FlowKey,
    {
        "name": NAMED,
        "description": Member(text(0, 1_000)),
        "rate": part(RATE, _rate, description="How many calls may begin in a period. They are evenly spaced."),
        "parallelism": Member(
            whole(
                1,
                MOST_PARALLEL,
                description="How many calls may be open at once. A run that waits for its result counts.",
            )
        ),
        "circuit": Member(
            request({**_ENABLED, **CIRCUIT.request()}),
            _circuit,
            answer({**_ENABLED, **CIRCUIT.answer()}),
            lambda key: {
                "enabled": key.circuit is not None,
                **CIRCUIT.show(key.circuit or key.resting or CircuitRule()),
            },
        ),
        "state": answered(one_of(("ACTIVE", "PAUSED")), lambda key: "ACTIVE" if key.pause is None else "PAUSED"),
        "pause": answered(
            or_null(answer({"since": INSTANT_MS, "note": or_null(TEXT)})),
            lambda key: key.pause and {"since": text_ms(key.pause.since), "note": key.pause.note},
        ),
        "usedBy": answered(whole(description="How many jobs and collections name it."), "users"),
        "revision": answered(REVISION),
        **CHANGED,
    },
    more=("live",),
)
CIRCUIT_NOW = Table(
    {
        "id": answered(text(pattern="^[0-9a-f]{16}$", description="The same id as `circuit` in events.")),
        "target": answered(
            text(description="The URL without its query; for other types, the type and the names of its target.")
        ),
        "state": answered(one_of(CircuitState)),
        "failures": answered(whole(description="How many calls in a row have failed.")),
        "since": answered(or_null(INSTANT_MS), "opened_at"),
        "lastFailureAt": answered(or_null(INSTANT_MS), "failed_at", says="When the last call failed."),
        "lastFailure": answered(or_null(one_of(Reason)), "reason", says="The outcome of the last failed call."),
        "nextProbeAt": answered(
            or_null(INSTANT_MS), "probe_at", says="When a single call tests whether the target works again."
        ),
    },
)


class Live(NamedTuple):
    """The calls under a flow key at the time of a request. waiting: how many runs wait."""

    turnstile: Turnstile
    waiting: int
    circuits: Iterable[Circuit]
    now: datetime

    @property
    def running(self) -> int | None:
        return None if self.turnstile.terms.parallelism is None else self.turnstile.running(self.now)

    @property
    def next_call_at(self) -> datetime | None:
        terms = self.turnstile.terms
        if terms.rate is None or terms.paused:
            return None
        return max(at for at in (self.now, self.turnstile.next_at, self.turnstile.called_to) if at is not None)


LIVE = Table(
    {
        "waiting": answered(whole(0, MOST_COUNTED), says=f"How many runs wait, counted up to {MOST_COUNTED:,}."),
        "running": answered(or_null(whole()), says="How many calls are open; null without `parallelism`."),
        "nextCallAt": answered(
            or_null(INSTANT_MS),
            says="When the rate allows the next call; null without a rate, or while the key is paused.",
        ),
        "circuits": answered(
            items(answer(CIRCUIT_NOW.answer()), maxItems=MOST_CIRCUITS),
            lambda live: CIRCUIT_NOW.show_all(live.circuits),
            "Circuits of targets whose last calls failed.",
        ),
    }
)


def _from_body(body: object, tenant: str, before: FlowKey | None = None) -> FlowKey:
    """Reads POST (name in the body); with `before`, PUT, and PATCH after its merge."""
    attributes = FLOW_KEY.named(body, before.name if before else None, circuit={})
    circuit, resting = attributes.pop("circuit")
    before = before or FlowKey(tenant, attributes["name"], EPOCH, EPOCH)
    return replace(before, **attributes, circuit=circuit, resting=resting)


def create(ctx: Context) -> Answer:
    wanted = _from_body(ctx.body(), ctx.tenant)
    tenancy.find_tenant(ctx.world, ctx.tenant)
    once = ctx.once()

    def make() -> FlowKey:
        return flow_key_changes.create(ctx.world, wanted, ctx.actor, once)

    return _answer(ctx, made_once(ctx.world, ctx.tenant, once, make, partial(_flow_key, ctx)), 201)


def _flow_key(ctx: Context, name: str) -> FlowKey:
    return flow_key_changes.find(ctx.world, ctx.tenant, name)


def list_all(ctx: Context) -> Answer:
    """Lists flow keys by name, without their queues."""
    rows = partial(views.flow_keys, ctx.world.table, ctx.tenant)
    return ctx.page_of(rows, FLOW_KEY.show, mark=attrgetter("name"), fits=shapes.is_plain)


def read(ctx: Context) -> Answer:
    return _answer(ctx, _flow_key(ctx, ctx.plain("flow_key")))


def put(ctx: Context) -> Answer:
    body = ctx.body()
    return _change(ctx, lambda before: _from_body(body, ctx.tenant, before))


def patch(ctx: Context) -> Answer:
    body = ctx.merge_patch("flow key")

    def edit(before: FlowKey) -> FlowKey:
        return _from_body(json_text.merged(FLOW_KEY.settable(before), body), ctx.tenant, before)

    return _change(ctx, edit)


def pause(ctx: Context) -> Answer:
    members = fields.members(ctx.body(), "", ("note",))
    note = fields.free(members["note"], "note", 0, 1_000) if "note" in members else None
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
    parts = views.live(ctx.world.table, key.tenant, key.name)
    live = LIVE.show(Live(parts.turnstile, parts.waiting, parts.circuits, ctx.now))
    return Answer(status, {**FLOW_KEY.show(key), "live": live}, headers)
