"""Operations (long work) of the native API: their progress, and pause, resume and cancel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sweephand.base.ids import is_uuid
from sweephand.base.json_schema import Schema, answer, one_of, or_null, text, whole
from sweephand.base.lazy import lazy
from sweephand.domain.answers import Table, answered
from sweephand.domain.instants import from_ms, text_ms
from sweephand.domain.instants import text as text_of
from sweephand.domain.operation import WAITS_FOR, Operation, OperationKind, OperationState
from sweephand.domain.schema_words import ID, INSTANT, INSTANT_MS
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import cursors
from sweephand.server.facades.native.context import Context
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.operations.verbs import KINDS
from sweephand.server.flow.world import World
from sweephand.server.store.views import resources as views

if TYPE_CHECKING:
    from sweephand.server.flow.bulk.export_runs import Link

with lazy():
    from sweephand.server.flow.bulk import export_runs

PROVIDER, READ = "provider:admin", "jobs:read"
LOOKED_AT_MOST = 5_000
EXPORT_PATH = "/v1/runs:export"
INSTANTS = ("until", "archivedThrough")
"""The members of `request` that are instants."""


def _progress(operation: Operation) -> dict[str, Any]:
    runs = operation.state is OperationState.RUNNING
    waits_for = operation.cursor.get(WAITS_FOR) if runs else None
    return {"done": operation.done, "total": operation.total, "failed": operation.failed, WAITS_FOR: waits_for}


def _request(operation: Operation) -> Mapping[str, Any]:
    """Returns the request of an operation. Its instants are stored as numbers, and shown as strings."""
    instants = {name: text_ms(from_ms(int(operation.params[name]))) for name in INSTANTS if name in operation.params}
    return {name: value for name, value in {**operation.params, **instants}.items() if name != "closed"}


def _result(operation: Operation, link: Link | None = None) -> Mapping[str, Any] | None:
    """Returns the result; None for an export of runs without a file. link: only if a single operation is read."""
    result = operation.result
    if operation.kind is not OperationKind.EXPORT_RUNS or result is None:
        return result
    expires_at = export_runs.file_expires_at(operation)
    if expires_at is None:
        return None
    after, next_cursor = result["behind"], None
    if after is not None:
        place = " ".join((operation.tenant or "", *EXPORT_PATH.split("/")[1:]))
        next_cursor = cursors.write(place, operation.params, tuple(after))
    return {
        "runs": operation.done,
        "bytes": result["bytes"],
        "link": None if link is None else {"url": link.url, "expiresAt": text_ms(link.expires_at)},
        "fileExpiresAt": text_of(expires_at),
        "nextCursor": next_cursor,
    }


_OBJECT: Schema = {"type": "object"}
_RESULT = (
    "The outcome; its members follow from `kind`. For `export_runs`: `runs`, `bytes`, `fileExpiresAt`, `nextCursor` "
    "(null, unless more runs follow the last one), and `link` with `url` and `expiresAt`, which is null in lists, "
    "and once the file is gone."
)
OPERATION = Table(
    {
        "id": answered(ID),
        "kind": answered(one_of(OperationKind)),
        "state": answered(one_of(OperationState)),
        "progress": answered(
            answer(
                {
                    "done": whole(description="How many items were processed."),
                    "total": or_null(whole(description="How many items there are; null while unknown.")),
                    "failed": whole(description="How many of the processed items failed."),
                    "waitsFor": or_null(
                        text(description="Why it makes no progress now, unless its rate is the reason.")
                    ),
                }
            ),
            _progress,
            says="How far it has come.",
        ),
        "cause": answered(or_null(text(description="Why it failed."))),
        "request": answered({**_OBJECT, "description": "The request; its members follow from `kind`."}, _request),
        "result": answered(
            or_null({**_OBJECT, "description": _RESULT}),
            _result,
        ),
        "actor": answered(or_null(text(description="The caller's client id."))),
        "startedAt": answered(INSTANT_MS),
        "endedAt": answered(or_null(INSTANT_MS), says="When it ended."),
        "expiresAt": answered(or_null(INSTANT)),
    },
)


def list_all(ctx: Context) -> Answer:
    """Lists operations, newest first: all for readers of jobs, else only the kinds that the caller may start."""
    state, kind = ctx.choice("state", frozenset(OperationState)), ctx.choice("kind", frozenset(OperationKind))
    owner = _whose(ctx)

    def rows(last: str | None, limit: int) -> Iterator[Operation]:
        for each in islice(views.operations(ctx.world.table, owner, last, limit), LOOKED_AT_MOST):
            gone = each.expires_at is not None and each.expires_at <= ctx.now
            if not gone and may_see(ctx, each) and state in {None, each.state} and kind in {None, each.kind}:
                yield each

    return ctx.page_of(rows, body, mark=attrgetter("id"), fits=is_uuid)


def read(ctx: Context) -> Answer:
    """Returns an operation, with a new link to its file, which is neither stored nor logged."""
    operation = _find(ctx)
    if operation.kind is not OperationKind.EXPORT_RUNS:
        return Answer(200, body(operation))
    return Answer(200, {**body(operation), "result": _result(operation, export_runs.link(ctx.world, operation))})


def pause(ctx: Context) -> Answer:
    return _turn(ctx, verbs.pause)


def resume(ctx: Context) -> Answer:
    return _turn(ctx, verbs.resume)


def cancel(ctx: Context) -> Answer:
    return _turn(ctx, verbs.cancel)


def _turn(ctx: Context, verb: Callable[[World, Operation], Operation]) -> Answer:
    """Applies a verb to an operation. Raises Forbidden for callers that may not start one of its kind."""
    ctx.no_members()
    operation = _find(ctx)
    ctx.require(KINDS[operation.kind].scope)
    return Answer(200, body(verb(ctx.world, operation)))


def _find(ctx: Context) -> Operation:
    """Returns the operation of the path. Raises Forbidden for callers without a scope to read jobs or to start one."""
    operation = verbs.find(ctx.world, _whose(ctx), ctx.id("operation"))
    if not may_see(ctx, operation):
        ctx.require(KINDS[operation.kind].scope)
    return operation


def may_see(ctx: Context, operation: Operation) -> bool:
    return ctx.allows(READ) or ctx.allows(KINDS[operation.kind].scope)


def _whose(ctx: Context) -> str | None:
    """Returns the tenant; None, the provider's own namespace, without Sweephand-Tenant. Raises Forbidden."""
    owner = ctx.owner()
    if owner is None:
        ctx.require(PROVIDER)
    return owner


def begun(operation: Operation, shown: dict[str, Any] | None = None) -> Answer:
    """Returns the 202 for a started operation. shown: the body, if it is not the operation's own."""
    return Answer(202, shown or body(operation), {"Location": f"/v1/operations/{operation.id}"})


def body(operation: Operation) -> dict[str, Any]:
    return OPERATION.show(operation)
