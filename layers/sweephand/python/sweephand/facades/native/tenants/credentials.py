"""Credentials of the native API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sweephand.domain.instants import text_ms
from sweephand.domain.members import fields
from sweephand.errors import InvalidRequest, Mistakes, NotFound
from sweephand.facades.http import Answer
from sweephand.facades.native import shapes
from sweephand.facades.native.context import TENANT_HEADER, Context
from sweephand.flow.tenants import access
from sweephand.flow.tenants.access import LONGEST_OVERLAP, USUAL_OVERLAP
from sweephand.security.caller import PROVIDER_SCOPES, TENANT_SCOPES, client_id_parts, is_credential_id
from sweephand.store.views import tenants as views
from sweephand.store.views.tenants import Listed


def create(ctx: Context) -> Answer:
    """For the caller's tenant, or for the one that a provider names; without a name, at provider level."""
    owner = _credential_owner(ctx)
    name, scopes = _draft(ctx.body(), provider=owner is None)
    return _issued(ctx, access.create_credential(ctx.world, owner, name, scopes, ctx.caller), 201)


def rotate(ctx: Context) -> Answer:
    """A new secret, which is shown this once; the former one is accepted for a while."""
    overlap = _overlap(ctx.body())
    assert ctx.caller is not None
    return _issued(ctx, access.rotate_credential(ctx.world, *_credential(ctx), overlap, ctx.caller), 200)


def _issued(ctx: Context, issued: access.Issued, status: int) -> Answer:
    place = {"Location": f"/v1/credentials/{issued.credential.client_id}"} if status == 201 else {}
    return Answer(status, {**_body(issued.listed, ctx.now), "secret": issued.secret}, place)


def list_all(ctx: Context) -> Answer:
    limit, mark = ctx.page(is_credential_id)
    found = views.credentials(ctx.world.table, _credential_owner(ctx), mark[0] if mark else None, limit + 1)
    page = list(islice(found, limit + 1))
    cursor = ctx.cursor(page[limit - 1].id) if len(page) > limit else None
    return Answer(200, {"items": [_body(each, ctx.now) for each in page[:limit]], "nextCursor": cursor})


def delete(ctx: Context) -> Answer:
    """It and its tokens are refused within a minute everywhere."""
    access.delete_credential(ctx.world, *_credential(ctx), ctx.caller)
    return Answer(204)


def _credential(ctx: Context) -> tuple[str | None, str]:
    """The owner and the id of the credential that the path names. Another owner's is unknown."""
    parts = client_id_parts(ctx.parameters["credential"])
    if parts is None or parts[0] != _credential_owner(ctx):
        raise NotFound("no such credential")
    return parts


def _credential_owner(ctx: Context) -> str | None:
    """A provider without the header Sweephand-Tenant works on the provider's own credentials."""
    assert ctx.caller is not None
    named = ctx.request.headers.get(TENANT_HEADER)
    if ctx.caller.provider and named is None:
        return None
    return ctx.caller.acting_for(named)


def _draft(body: object, *, provider: bool) -> tuple[str | None, frozenset[str] | None]:
    """The name of a credential, of a tenant or of provider level, and its scopes; None where they are left out."""
    wrong = Mistakes()
    given = fields.members(body, "", ("name", "scopes"), wrong)
    wanted = None
    if "scopes" in given:
        wanted = wrong.of(scopes, given["scopes"], "scopes", PROVIDER_SCOPES if provider else TENANT_SCOPES)
        if wanted == frozenset():
            wrong.add(InvalidRequest("scopes", "must be a list of at least one scope"))
    name = wrong.of(shapes.name_of, given)
    wrong.check()
    return name, wanted


def scopes(value: object, field: str, allowed: frozenset[str]) -> frozenset[str]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidRequest(field, f"must be a list of scopes, not {fields.shown(value)}")
    wrong = Mistakes()
    found = frozenset(wrong.of(fields.one_of, scope, f"{field}[{n}]", allowed) for n, scope in enumerate(value))
    wrong.check()
    return found


def _overlap(body: object) -> timedelta:
    """For how long the former secret of a credential is accepted too."""
    given = fields.members(body, "", ("overlapSeconds",))
    usual = int(USUAL_OVERLAP.total_seconds())
    most = int(LONGEST_OVERLAP.total_seconds())
    return timedelta(seconds=fields.whole(given.get("overlapSeconds", usual), "overlapSeconds", 0, most))


def _body(item: Listed, now: datetime) -> dict[str, Any]:
    """Never the secret: it was shown once."""
    until = item.former_until
    return {
        "clientId": f"{item.tenant or 'provider'}.{item.id}",
        "name": item.name,
        "scopes": list(item.scopes),
        "createdAt": text_ms(item.created_at),
        "createdBy": item.created_by,
        "rotatedAt": None if item.rotated_at is None else text_ms(item.rotated_at),
        "rotatedBy": item.rotated_by,
        "formerSecretUntil": text_ms(until) if until is not None and now < until else None,
    }
