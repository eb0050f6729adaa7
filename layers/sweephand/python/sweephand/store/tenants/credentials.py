"""Credentials: rows and records. Separate from tenants.py, which the executor's gate loads at each cold start."""

from __future__ import annotations

from datetime import datetime

from sweephand.domain.instants import epoch_ms, from_ms, from_ms_if_any
from sweephand.security.caller import Credential
from sweephand.store.dynamo import keys
from sweephand.store.dynamo.conditional import Op, Table
from sweephand.store.dynamo.expressions import assign
from sweephand.store.dynamo.table import CredentialItem

PROVIDER_PARTITION = "STACK#PROVIDER"


def credential_key(tenant: str | None, credential_id: str) -> tuple[str, str]:
    return (PROVIDER_PARTITION if tenant is None else keys.tenant(tenant)), keys.credential(credential_id)


def credential_of(item: CredentialItem) -> Credential:
    return Credential(
        item.tenant,
        item.credential_id,
        item.secret_hash,
        frozenset(item.scopes.split()),
        item.generation,
        from_ms(item.created_at),
        item.former_hash,
        from_ms_if_any(item.former_until),
    )


def find_credential(table: Table, tenant: str | None, credential_id: str) -> Credential | None:
    item = table.get(CredentialItem, *credential_key(tenant, credential_id))
    return credential_of(item) if item else None


def credential_item(
    credential: Credential, name: str | None, created_at: datetime, created_by: str | None = None
) -> CredentialItem:
    pk, sk = credential_key(credential.tenant, credential.id)
    return CredentialItem(
        pk=pk,
        sk=sk,
        tenant=credential.tenant,
        credential_id=credential.id,
        name=name,
        secret_hash=credential.secret_hash,
        scopes=" ".join(sorted(credential.scopes)),
        generation=credential.generation,
        created_at=epoch_ms(created_at),
        created_by=created_by,
    )


def rotate_op(table: Table, after: Credential, now: datetime, actor: str | None) -> Op:
    """Writes a new secret, if the row has the generation before it."""
    assert after.generation > 1
    actions = [
        assign(CredentialItem.secret_hash, after.secret_hash),
        assign(CredentialItem.generation, after.generation),
        assign(CredentialItem.former_hash, after.former_hash),
        assign(CredentialItem.former_until, None if after.former_until is None else epoch_ms(after.former_until)),
        assign(CredentialItem.rotated_at, epoch_ms(now)),
        assign(CredentialItem.rotated_by, actor),
    ]
    key = credential_key(after.tenant, after.id)
    return table.update_op("credential", *key, actions, CredentialItem.generation == after.generation - 1)
