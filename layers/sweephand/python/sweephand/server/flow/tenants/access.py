"""Credentials: create, rotate, end and delete them. None grants more than its creator holds (decision 0073)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from sweephand.base.errors import Conflict, Forbidden, NotFound, Unavailable
from sweephand.base.records import dataclass
from sweephand.domain.event import EventType
from sweephand.server.flow import events
from sweephand.server.flow.idempotency import Once, check_once, once_ops
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.security import caller
from sweephand.server.security.caller import PROVIDER_SCOPES, TENANT_SCOPES, Caller, Credential
from sweephand.server.store.dynamo.conditional import Cancelled
from sweephand.server.store.tenants import credentials, tenants
from sweephand.server.store.views import tenants as views
from sweephand.server.store.views.tenants import Listed

LONGEST_OVERLAP = timedelta(days=30)
USUAL_OVERLAP = timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A new secret of a credential. secret: shown only this once. listed: the credential as lists show it."""

    credential: Credential
    secret: str
    listed: Listed


def create_credential(
    world: World,
    tenant: str | None,
    name: str | None,
    scopes: Iterable[str] | None = None,
    by: Caller | None = None,
    once: Once | None = None,
) -> Issued:
    """Creates a credential with these scopes; by default, with all that `by` holds on the credential's level.

    by: the caller; None for the service, which holds all scopes. Raises NotFound for an unknown tenant, Forbidden for a
    scope that `by` does not hold, Conflict for one that the provider withholds from the tenant, and Unavailable if no
    free id was found.
    """
    granted = _granted(scopes, tenant, by, _withheld(world, tenant))
    now = world.clock.now()
    credential, secret = caller.new_credential(tenant, granted, world.chance)
    row = credentials.credential_item(credential, name, now, None if by is None else by.client_id)
    item = world.table.put_op("credential", row, tenants.ABSENT)
    remembered = once_ops(world, tenant, once, credential.client_id)
    done = world.table.transact([item, *tenancy.stays_ops(world, tenant), *remembered])
    if isinstance(done, Cancelled):
        stored = credentials.find_credential(world.table, tenant, credential.id)
        if stored != credential and tenant is not None and "tenant" in done.refused:
            raise tenants.leaving(world.table, tenant)
        if stored != credential:
            check_once(done, once)
            raise Unavailable("no free id was found: try again")
    events.credential_changed(world, EventType.CREDENTIAL_CREATED, credential, by, now)
    scopes_shown = tuple(sorted(granted))
    listed = Listed(tenant, credential.id, name, scopes_shown, now, None if by is None else by.client_id)
    return Issued(credential, secret, listed)


def _withheld(world: World, tenant: str | None) -> frozenset[str]:
    return frozenset() if tenant is None else tenancy.find_tenant(world, tenant).withheld


def _granted(
    wanted: Iterable[str] | None, tenant: str | None, by: Caller | None, withheld: frozenset[str]
) -> frozenset[str]:
    level = PROVIDER_SCOPES if tenant is None else TENANT_SCOPES
    held = frozenset(scope for scope in level - withheld if by is None or by.allows(scope))
    granted = held if wanted is None else frozenset(wanted)
    for scope in sorted(granted - held):
        if scope in withheld and (by is None or by.provider):
            raise Conflict(
                f'scopes: "{scope}" is one of the tenant\'s withheldScopes: leave it out, or take it out there'
            )
        raise Forbidden(
            f'scopes: "{scope}" cannot be granted, because the credential or token of this request does not hold it: '
            "leave it out"
        )
    if not granted:
        raise Forbidden("the credential or token of this request holds no scope that this credential could have")
    return granted


def rotate_credential(
    world: World,
    tenant: str | None,
    credential_id: str,
    overlap: timedelta,
    by: Caller,
    once: Once | None = None,
) -> Issued:
    """Gives a credential a new secret. The current secret and its tokens stay valid for `overlap`.

    At most two secrets are valid. While two are, only a rotation without overlap is possible, which ends both.
    Raises NotFound, Forbidden if the credential has a scope that `by` does not hold, Conflict.
    """
    before = credentials.find_credential(world.table, tenant, credential_id)
    listed = views.credential(world.table, tenant, credential_id)
    if before is None or listed is None:
        raise NotFound("no such credential")
    for scope in sorted(before.scopes - _withheld(world, tenant)):
        if not by.allows(scope):
            raise Forbidden(
                f'the credential has the scope "{scope}", which the credential or token of this request does not hold'
            )
    now = world.clock.now()
    if overlap and before.former_until is not None and before.has_former(now):
        raise Conflict(
            "two secrets of this credential are accepted until its formerSecretUntil: wait for that, end the former "
            f"one by DELETE /v1/credentials/{before.client_id}/former-secret, or both now by overlapSeconds 0"
        )
    after, secret = caller.new_secret(before, now + overlap if overlap else None, world.chance)
    remembered = once_ops(world, tenant, once, after.client_id)
    done = world.table.transact([credentials.rotate_op(world.table, after, now, by.client_id), *remembered])
    if isinstance(done, Cancelled):
        stored = credentials.find_credential(world.table, tenant, credential_id)
        if stored is None:
            raise NotFound("no such credential")
        if stored.secret_hash != after.secret_hash:
            check_once(done, once)
            raise Conflict("another rotation of this credential came first")
    events.credential_changed(world, EventType.CREDENTIAL_ROTATED, after, by, now)
    listed = replace(listed, rotated_at=now, rotated_by=by.client_id, former_until=after.former_until)
    return Issued(after, secret, listed)


def end_former_secret(world: World, tenant: str | None, credential_id: str, by: Caller | None = None) -> None:
    """Ends the secret before the last rotation, and its tokens, within a minute. The current secret stays.

    Does nothing if the overlap is over or if a rotation comes first. No rotation begins an overlap while two secrets
    are valid, so that rotation has ended the former secret. Raises NotFound.
    """
    before = credentials.find_credential(world.table, tenant, credential_id)
    if before is None:
        raise NotFound("no such credential")
    now = world.clock.now()
    if not before.has_former(now):
        return
    if isinstance(world.table.transact([credentials.end_former_op(world.table, before)]), Cancelled):
        return
    after = replace(before, former_hash=None, former_until=None)
    events.credential_changed(world, EventType.CREDENTIAL_FORMER_ENDED, after, by, now)


def delete_credential(world: World, tenant: str | None, credential_id: str, by: Caller | None = None) -> None:
    """Deletes a credential. Its tokens become invalid everywhere within a minute. Raises NotFound."""
    before = credentials.find_credential(world.table, tenant, credential_id)
    if before is None:
        raise NotFound("no such credential")
    world.table.delete(*credentials.credential_key(tenant, credential_id))
    events.credential_changed(world, EventType.CREDENTIAL_DELETED, before, by, world.clock.now())
