"""Health, collections and tokens of the native API."""

from __future__ import annotations

from itertools import islice
from typing import Any
from urllib.parse import parse_qsl

from sweephand import __version__
from sweephand.domain.collection import Collection
from sweephand.domain.instants import text
from sweephand.errors import Forbidden, InvalidRequest, NotFound, Unauthenticated
from sweephand.facades.http import Answer, Request
from sweephand.facades.native import collection_fields, shapes
from sweephand.facades.native.context import Context
from sweephand.flow import tenancy
from sweephand.security.caller import (
    ClientSecret,
    client_id_parts,
    client_secret,
    parse_authorization,
)
from sweephand.store.views import tenants as views


def health(ctx: Context) -> Answer:
    """Open: the version, from memory. With the scope jobs:read: how far behind the sweep is; at provider level also
    what the run queues hold and what the last audit found, for both count over all tenants.
    """
    if "authorization" not in ctx.request.headers:
        return Answer(200, {"status": "ok", "version": __version__})
    caller = ctx.door().identify(ctx.request.headers["authorization"], ctx.now)
    caller.require("jobs:read")
    table = ctx.world.table
    oldest = views.oldest_due(table, ctx.world.settings.shards)
    late_s = max(0, int((ctx.now - oldest).total_seconds())) if oldest else 0
    told: dict[str, object] = {
        "status": "ok",
        "version": __version__,
        "oldestDueAt": text(oldest) if oldest else None,
        "behindSeconds": late_s,
    }
    if caller.provider:
        from sweephand.facades.native import last_audit  # noqa: PLC0415 - asked for now and then

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
        merged = shapes.merged(collection_fields.editable(before), body)
        return collection_fields.read(merged, before.tenant, ctx.guard, before)

    return _change(ctx, edit)


def _change(ctx: Context, edit: Any) -> Answer:
    return _collection(tenancy.change_collection(ctx.world, ctx.tenant, _name(ctx), edit, ctx.if_match(), ctx.actor))


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
    """OAuth 2.0 client credentials (RFC 6749, 4.4): by Basic, or by client_id and client_secret in the form.

    What is no secret may stand in the query: with clients of SAP's the whole of it does.
    """
    form = _form(ctx.request)
    query = ctx.request.query
    if query.keys() & (form.keys() | _ONLY_IN_FORM):
        form, query = {}, {}
    form = {**query, **form}
    if form.get("grant_type") != "client_credentials":
        return _refused("unsupported_grant_type" if "grant_type" in form else "invalid_request", 400)
    door = ctx.door()
    try:
        header = ctx.request.headers.get("authorization")
        if header is not None:
            caller = door.identify(header, ctx.now) if _is_basic(header) else None
        else:
            caller = door.by_secret(client_secret(form.get("client_id", ""), form.get("client_secret", "")), ctx.now)
        if caller is not None:
            caller = tenancy.admitted(ctx.world, caller)
    except Unauthenticated:
        caller = None
    except Forbidden:
        return _refused("unauthorized_client", 400)
    if caller is None:
        return _refused("invalid_client", 401, {"WWW-Authenticate": 'Basic realm="sweephand"'})
    token_id = ctx.world.chance.new_id(ctx.now).replace("-", "")
    try:
        issued, scopes = door.issue(caller, ctx.now, form.get("scope", "").split(), token_id)
    except (InvalidRequest, Forbidden):
        return _refused("invalid_scope", 400)
    body = {
        "access_token": issued,
        "token_type": "bearer",
        "expires_in": 3_600,
        "scope": " ".join(sorted(scopes)),
        "jti": token_id,
    }
    return Answer(200, body, {"Cache-Control": "no-store"})


_ONLY_IN_FORM = {"client_id", "client_secret"}
"""Addresses stand in logs (RFC 6749, 2.3.1)."""


def _form(request: Request) -> dict[str, str]:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/x-www-form-urlencoded" or len(request.body) > 16_384:
        return {}
    try:
        pairs = parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=20)
    except ValueError:
        return {}
    return dict(pairs) if len(dict(pairs)) == len(pairs) else {}


def named_client(request: Request) -> str | None:
    """Returns the client id that the form of a token request names, if it has the form of one."""
    named = _form(request).get("client_id", "")
    return named if client_id_parts(named) else None


def _is_basic(header: str) -> bool:
    return isinstance(parse_authorization(header), ClientSecret)


def _refused(error: str, status: int, headers: dict[str, str] | None = None) -> Answer:
    """The error form of OAuth."""
    return Answer(status, {"error": error}, {"Cache-Control": "no-store", **(headers or {})})
