"""Credentials: rows and records. Separate from tenants.py, which the executor's gate loads at each cold start."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sweephand.domain.instants import epoch_ms
from sweephand.server.security.caller import Credential
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Op, Table, if_any
from sweephand.server.store.dynamo.expressions import changes, removal
from sweephand.server.store.dynamo.flat_models import MILLISECONDS, Codec, Column, named
from sweephand.server.store.dynamo.table import CredentialItem

PROVIDER_PARTITION = "STACK#PROVIDER"


def credential_key(tenant: str | None, credential_id: str) -> tuple[str, str]:
    return (PROVIDER_PARTITION if tenant is None else keys.tenant(tenant)), keys.credential(credential_id)


_CREDENTIALS = Codec(
    Credential,
    CredentialItem,
    {
        "id": named("credential_id"),
        "scopes": Column(lambda text: frozenset(text.split()), lambda scopes: " ".join(sorted(scopes))),
        "since": named("created_at", MILLISECONDS),
    },
)


def find_credential(table: Table, tenant: str | None, credential_id: str) -> Credential | None:
    return if_any(_CREDENTIALS.read, table.get(CredentialItem, *credential_key(tenant, credential_id)))


def credential_item(
    credential: Credential, name: str | None, created_at: datetime, created_by: str | None = None
) -> CredentialItem:
    key = credential_key(credential.tenant, credential.id)
    return _CREDENTIALS.item(key, replace(credential, since=created_at), name=name, created_by=created_by)


def rotate_op(table: Table, after: Credential, now: datetime, actor: str | None) -> Op:
    """Returns the operation that writes a new secret, if the row has the generation before it."""
    assert after.generation > 1
    key = credential_key(after.tenant, after.id)
    item = _CREDENTIALS.item(key, after, rotated_at=epoch_ms(now), rotated_by=actor)
    actions = changes(item, "secret_hash generation former_hash former_until rotated_at rotated_by")
    return table.update_op("credential", *key, actions, CredentialItem.generation == after.generation - 1)


def end_former_op(table: Table, credential: Credential) -> Op:
    """Returns the operation that removes the secret before the last rotation, if no rotation has followed."""
    key = credential_key(credential.tenant, credential.id)
    actions = removal(CredentialItem, "former_hash former_until")
    return table.update_op("credential", *key, actions, CredentialItem.generation == credential.generation)
