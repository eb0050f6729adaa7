"""Long work of the native API: how far it came, and its switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from sweephand.domain.instants import from_ms, text, text_ms
from sweephand.domain.operation import WAITS_FOR, Operation, OperationKind, OperationState
from sweephand.facades.http import Answer
from sweephand.facades.native.context import TENANT_HEADER, Context
from sweephand.flow.operations import verbs
from sweephand.flow.operations.verbs import KINDS
from sweephand.flow.world import World
from sweephand.ids import is_uuid
from sweephand.lazy import lazy
from sweephand.store.views import resources as views

with lazy():
    from sweephand.facades.native.operations import export_results

PROVIDER, READ = "provider:admin", "jobs:read"
LOOKED_AT_MOST = 5_000
INSTANTS = ("until", "archivedThrough")
"""Of what was asked for."""


def list_all(ctx: Context) -> Answer:
    """Newest first: all of them for who may read jobs, else those of the kinds that the caller may begin."""
    limit, mark = ctx.page(is_uuid)
    state, kind = ctx.choice("state", frozenset(OperationState)), ctx.choice("kind", frozenset(OperationKind))
    rows = views.operations(ctx.world.table, _whose(ctx), mark[0] if mark else None, limit + 1)
    kept = (each for each in islice(rows, LOOKED_AT_MOST) if not _expired(ctx, each))
    shown = (each for each in kept if _may_see(ctx, each))
    found = (each for each in shown if state in {None, each.state} and kind in {None, each.kind})
    page = list(islice(found, limit + 1))
    cursor = ctx.cursor(page[limit - 1].id) if len(page) > limit else None
    return Answer(200, {"items": [body(each) for each in page[:limit]], "nextCursor": cursor})


def _expired(ctx: Context, operation: Operation) -> bool:
    return operation.expires_at is not None and operation.expires_at <= ctx.now


def read(ctx: Context) -> Answer:
    """Of a file, with a link to it."""
    operation = _find(ctx)
    if operation.kind is not OperationKind.EXPORT_RUNS:
        return Answer(200, body(operation))
    return Answer(200, {**body(operation), "result": export_results.result_with_link(ctx, operation)})


def pause(ctx: Context) -> Answer:
    return _turn(ctx, verbs.pause)


def resume(ctx: Context) -> Answer:
    return _turn(ctx, verbs.resume)


def cancel(ctx: Context) -> Answer:
    return _turn(ctx, verbs.cancel)


def _turn(ctx: Context, verb: Callable[[World, Operation], Operation]) -> Answer:
    """By whoever may begin one of its kind."""
    ctx.no_members()
    operation = _find(ctx)
    assert ctx.caller is not None
    ctx.caller.require(KINDS[operation.kind].scope)
    return Answer(200, body(verb(ctx.world, operation)))


def _find(ctx: Context) -> Operation:
    """Raises Forbidden for who may neither read jobs nor begin one of its kind."""
    operation = verbs.find(ctx.world, _whose(ctx), ctx.id("operation"))
    if not _may_see(ctx, operation):
        assert ctx.caller is not None
        ctx.caller.require(KINDS[operation.kind].scope)
    return operation


def _may_see(ctx: Context, operation: Operation) -> bool:
    assert ctx.caller is not None
    return ctx.caller.allows(READ) or ctx.caller.allows(KINDS[operation.kind].scope)


def _whose(ctx: Context) -> str | None:
    """A provider without the header Sweephand-Tenant sees the provider's own. Raises Forbidden without its scope."""
    assert ctx.caller is not None
    named = ctx.request.headers.get(TENANT_HEADER)
    if ctx.caller.provider and named is None:
        ctx.caller.require(PROVIDER)
        return None
    return ctx.caller.acting_for(named)


def body(operation: Operation) -> dict[str, Any]:
    return {
        "id": operation.id,
        "kind": operation.kind.value,
        "state": operation.state.value,
        "progress": _progress(operation),
        "cause": operation.cause,
        "request": _request(operation),
        "result": _result(operation),
        "actor": operation.actor,
        "startedAt": text_ms(operation.started_at),
        "endedAt": None if operation.ended_at is None else text_ms(operation.ended_at),
        "expiresAt": None if operation.expires_at is None else text(operation.expires_at),
    }


def _progress(operation: Operation) -> dict[str, Any]:
    runs = operation.state is OperationState.RUNNING
    waits_for = operation.cursor.get(WAITS_FOR) if runs else None
    return {"done": operation.done, "total": operation.total, "failed": operation.failed, WAITS_FOR: waits_for}


def _request(operation: Operation) -> Mapping[str, Any]:
    """Instants are kept as numbers, and shown as everywhere."""
    instants = {name: text_ms(from_ms(int(operation.params[name]))) for name in INSTANTS if name in operation.params}
    return {**operation.params, **instants}


def _result(operation: Operation) -> Mapping[str, Any] | None:
    if operation.kind is not OperationKind.EXPORT_RUNS:
        return operation.result
    return export_results.result(operation)
