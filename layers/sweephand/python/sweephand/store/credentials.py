"""Credentials: rows to nouns and back. Apart from tenants.py, which the executor's gate loads at each cold start."""

from __future__ import annotations

from datetime import datetime

from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.security.caller import Credential
from sweephand.store import keys
from sweephand.store.conditional import Table
from sweephand.store.table import CredentialItem

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
    )


def find_credential(table: Table, tenant: str | None, credential_id: str) -> Credential | None:
    item = table.get(CredentialItem, *credential_key(tenant, credential_id))
    return credential_of(item) if item else None


def credential_item(credential: Credential, name: str | None, created_at: datetime) -> CredentialItem:
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
    )
