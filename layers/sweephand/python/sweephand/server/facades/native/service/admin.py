"""Health and collections of the native API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sweephand import __version__
from sweephand.base.lazy import lazy
from sweephand.domain.collection import Collection
from sweephand.domain.instants import stamp, text
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.shared import collection_members
from sweephand.server.facades.native.shared.collection_members import COLLECTION
from sweephand.server.flow.idempotency import made_once
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.views import tenants as views

if TYPE_CHECKING:
    from sweephand.domain.absence import Watched

with lazy():
    from sweephand.server.facades.native.members import idle
    from sweephand.server.facades.native.shared import facade_limits


MOST_AWAY = 20
"""How many of those that are away are shown."""
KINDS_AWAY = ("application", "consumer", "target")
COUNTS = ("schedules", "stopped", "lost", "expired", "corrected", "unreadable", "waiting")


def health(ctx: Context) -> Answer:
    """Returns the version to everybody, without a read.

    At provider level, with the scope jobs:read, adds the lag of the sweep, the run queues, the applications,
    consumers and targets that are away, and the last audit. These cover all tenants, so a tenant sees none.
    """
    body: dict[str, object] = {"status": "ok", "version": __version__}
    if "authorization" not in ctx.request.headers:
        return Answer(200, body)
    caller = ctx.door().identify(ctx.request.headers["authorization"], ctx.now)
    caller.require("jobs:read")
    if caller.provider:
        table, shards = ctx.world.table, ctx.world.shards.read()
        oldest = views.oldest_due(table, shards)
        body["oldestDueAt"] = text(oldest) if oldest else None
        body["behindSeconds"] = max(0, int((ctx.now - oldest).total_seconds())) if oldest else 0
        body["backlog"] = {lane.value: _backlog(held) for lane, held in ctx.world.queue.backlog().items()}
        body["away"] = [_away(each) for each in views.away(table, MOST_AWAY)]
        body["lastAudit"] = _last_audit(views.last_audit(table))
        since, body["unaudited"] = views.audited(table, shards, ctx.now)
        body["auditedSince"] = text(since) if since else None
    return Answer(200, body)


def _backlog(held: Any) -> dict[str, int]:
    return {"ready": held.ready, "delayed": held.delayed, "inFlight": held.in_flight}


def _away(away: Watched) -> dict[str, Any]:
    times = {"since": stamp(away.watched_since), "awayAt": stamp(away.away_at)}
    return {"tenant": away.tenant, **times, "kind": away.noun, **away.in_lists}


def _last_audit(last: views.LastAudit | None) -> dict[str, Any] | None:
    """Returns what the last audit found. finished: False if the next audit continues where it stopped."""
    if last is None:
        return None
    counts = {name: last.findings.get(name, 0) for name in COUNTS}
    return {"at": text(last.at), "everything": last.everything, "finished": last.finished, **counts}


# Collections


def create_collection(ctx: Context) -> Answer:
    wanted = collection_members.read(ctx.body(), ctx.tenant, ctx.guard)
    tenancy.find_tenant(ctx.world, ctx.tenant)
    once = ctx.once()

    def make() -> Collection:
        return tenancy.create_collection(ctx.world, wanted, ctx.actor, once=once)

    find = partial(tenancy.find_collection, ctx.world, ctx.tenant)
    return _collection(ctx, made_once(ctx.world, ctx.tenant, once, make, find), 201)


def list_collections(ctx: Context) -> Answer:
    def rows(after: str | None, page: int) -> Iterable[Collection]:
        listed = list(islice(views.collections(ctx.world.table, ctx.tenant, after, page), page))
        return views.with_job_counts(ctx.world.table, listed)

    return ctx.page_of(rows, COLLECTION.show, mark=attrgetter("name"), fits=shapes.is_plain)


def read_collection(ctx: Context) -> Answer:
    return _collection(ctx, tenancy.find_collection(ctx.world, ctx.tenant, ctx.plain("collection")))


def put_collection(ctx: Context) -> Answer:
    body = ctx.body()
    return _change(ctx, lambda before: collection_members.read(body, before.tenant, ctx.guard, before))


def patch_collection(ctx: Context) -> Answer:
    body = ctx.merge_patch("collection")

    def edit(before: Collection) -> Collection:
        merged = idle.patched(COLLECTION.settable(before), body)
        return collection_members.read(merged, before.tenant, ctx.guard, before)

    return _change(ctx, edit)


def _change(ctx: Context, edit: Callable[[Collection], Collection]) -> Answer:
    def checked(before: Collection) -> Collection:
        after = edit(before)
        facade_limits.check_collection(before, after)
        return after

    name, revision = ctx.plain("collection"), ctx.if_match()
    return _collection(ctx, tenancy.change_collection(ctx.world, ctx.tenant, name, checked, revision, ctx.actor))


def enable_collection(ctx: Context) -> Answer:
    return _switch(ctx, on=True)


def disable_collection(ctx: Context) -> Answer:
    return _switch(ctx, on=False)


def _switch(ctx: Context, *, on: bool) -> Answer:
    ctx.no_members()
    return _change(ctx, lambda before: tenancy.enabled(before, on=on))


def delete_collection(ctx: Context) -> Answer:
    tenancy.delete_collection(ctx.world, ctx.tenant, ctx.plain("collection"), ctx.if_match())
    return Answer(204)


def _collection(ctx: Context, collection: Collection, status: int = 200) -> Answer:
    headers = {"ETag": f'"{collection.revision}"'}
    if status == 201:
        headers["Location"] = f"/v1/collections/{collection.name}"
    (shown,) = views.with_job_counts(ctx.world.table, [collection])
    return Answer(status, COLLECTION.show(shown), headers)
