"""Credentials of the native API."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from sweephand.base.errors import Conflict, InvalidRequest, Mistakes, NotFound
from sweephand.base.json_schema import items, one_of, or_null, whole
from sweephand.base.members import fields
from sweephand.domain.answers import Table, answered
from sweephand.domain.schema_words import ACTOR, INSTANT_MS, TEXT
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.flow.idempotency import made_once
from sweephand.server.flow.tenants import access
from sweephand.server.flow.tenants.access import LONGEST_OVERLAP, USUAL_OVERLAP
from sweephand.server.security.caller import PROVIDER_SCOPES, TENANT_SCOPES, client_id_parts, is_credential_id
from sweephand.server.store.views import tenants as views
from sweephand.server.store.views.tenants import Listed

SCOPES = items(one_of(sorted(TENANT_SCOPES | PROVIDER_SCOPES)), minItems=1)
CREDENTIAL = Table(
    {
        "clientId": answered(TEXT, lambda item: f"{item.tenant or 'provider'}.{item.id}"),
        "name": answered(or_null(TEXT)),
        "scopes": answered(SCOPES),
        "createdAt": answered(INSTANT_MS),
        "createdBy": answered(ACTOR),
        "rotatedAt": answered(or_null({**INSTANT_MS, "description": "When its secret was last rotated."})),
        "rotatedBy": answered(ACTOR),
        "formerSecretUntil": answered(
            or_null({**INSTANT_MS, "description": "Until when the previous secret is still accepted."}),
            "former_until",
        ),
    },
)
"""The members without the secret, which is shown only once."""
OVERLAP = whole(
    0,
    int(LONGEST_OVERLAP.total_seconds()),
    default=int(USUAL_OVERLAP.total_seconds()),
    description="How long the current secret and its tokens remain valid after the rotation; 0 ends them at once.",
)


def create(ctx: Context) -> Answer:
    """Creates a credential for the caller's tenant, for the tenant that a provider names, or at provider level."""
    owner = ctx.owner()
    name, scopes = _draft(ctx.body(), provider=owner is None)
    once = ctx.once()
    make = partial(access.create_credential, ctx.world, owner, name, scopes, ctx.caller, once)
    return _issued(ctx, made_once(ctx.world, owner, once, make, _shown_once), 201)


def rotate(ctx: Context) -> Answer:
    """Creates a new secret, which only this answer shows. The former one is accepted for a while."""
    overlap = _overlap(ctx.body())
    assert ctx.caller is not None
    owner, credential_id = _credential(ctx)
    once = ctx.once()
    make = partial(access.rotate_credential, ctx.world, owner, credential_id, overlap, ctx.caller, once)
    return _issued(ctx, made_once(ctx.world, owner, once, make, _shown_once), 200)


def _shown_once(client_id: str) -> access.Issued:
    """Raises Conflict for a repeated request: secrets are stored as hashes, so no answer can show one again."""
    raise Conflict(
        "an earlier request with this Idempotency-Key was carried out, and only its answer had the secret of "
        f"{client_id}: if it is lost, get a new one by POST /v1/credentials/{client_id}/rotate with overlapSeconds 0"
    )


def _issued(ctx: Context, issued: access.Issued, status: int) -> Answer:
    place = {"Location": f"/v1/credentials/{issued.credential.client_id}"} if status == 201 else {}
    return Answer(status, {**_body(ctx.now, issued.listed), "secret": issued.secret}, place)


def list_all(ctx: Context) -> Answer:
    rows = partial(views.credentials, ctx.world.table, ctx.owner())
    return ctx.page_of(rows, partial(_body, ctx.now), mark=attrgetter("id"), fits=is_credential_id)


def end_former_secret(ctx: Context) -> Answer:
    """Ends the secret before the last rotation. The secret and its tokens are refused everywhere within a minute."""
    access.end_former_secret(ctx.world, *_credential(ctx), ctx.caller)
    return Answer(204)


def delete(ctx: Context) -> Answer:
    """Deletes a credential. The credential and its tokens are refused everywhere within a minute."""
    access.delete_credential(ctx.world, *_credential(ctx), ctx.caller)
    return Answer(204)


def _credential(ctx: Context) -> tuple[str | None, str]:
    """Returns the owner and the id of the credential in the path. Raises NotFound for others' credentials."""
    parts = client_id_parts(ctx.parameters["credential"])
    if parts is None or parts[0] != ctx.owner():
        raise NotFound("no such credential")
    return parts


def _draft(body: object, *, provider: bool) -> tuple[str | None, frozenset[str] | None]:
    """Reads the name and the scopes of a credential; scopes is None if they are left out."""
    wrong = Mistakes()
    members = fields.members(body, "", ("name", "scopes"), wrong)
    wanted = None
    if "scopes" in members:
        wanted = wrong.of(scopes, members["scopes"], "scopes", PROVIDER_SCOPES if provider else TENANT_SCOPES)
        if wanted == frozenset():
            wrong.add(InvalidRequest("scopes", "must be a list of at least one scope"))
    name = wrong.of(fields.name, members["name"], "name") if "name" in members else None
    wrong.check()
    return name, wanted


def scopes(value: object, field: str, allowed: frozenset[str]) -> frozenset[str]:
    wrong, listed = Mistakes(), fields.listed(value, field, wanted="a list of scopes")
    checked = frozenset(wrong.of(fields.one_of, scope, f"{field}[{n}]", allowed) for n, scope in enumerate(listed))
    wrong.check()
    return checked


def _overlap(body: object) -> timedelta:
    """Reads how long the former secret of a credential is also accepted."""
    members = fields.members(body, "", ("overlapSeconds",))
    wanted = members.get("overlapSeconds", OVERLAP["default"])
    return timedelta(seconds=fields.whole(wanted, "overlapSeconds", 0, OVERLAP["maximum"]))


def _body(now: datetime, item: Listed) -> dict[str, Any]:
    over = item.former_until is None or now >= item.former_until
    return CREDENTIAL.show(replace(item, former_until=None) if over else item)
