"""The credentials of the local stack: the provider's, and those of two tenants, created through the public API.

They are stored in the state folder, so that they stay the same after restarts.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweephand.local.api import Api, Refused
from sweephand.local.folder import read_json, write_private
from sweephand.local.stack_file import PROVIDER_CLIENT, Credential

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sweephand.local.folder import StateFolder
    from sweephand.sources import Chance

TENANTS = ("acme", "globex")
TENANT_SCOPES = ("jobs:read", "jobs:write", "runs:write", "tasks:write", "errors:edit", "admin")
CREDENTIAL_NAME = "local stack"


@dataclass(frozen=True)
class Kept:
    """The stored credentials. tenants: those that exist already."""

    provider: Credential
    tenants: Mapping[str, Credential]


def kept(folder: StateFolder, chance: Chance) -> Kept:
    """Returns the stored credentials. Creates the provider's secret in a new folder, fit for a curl command."""
    stored = read_json(folder.secrets_file) or {}
    if "provider" not in stored:
        stored = {"provider": chance.token(32).hex(), "tenants": {}}
        write_private(folder.secrets_file, stored)
    return Kept(
        provider=Credential(PROVIDER_CLIENT, stored["provider"]),
        tenants={tenant: Credential(*pair) for tenant, pair in stored["tenants"].items()},
    )


def _store(folder: StateFolder, known: Kept) -> None:
    tenants = {tenant: [credential.client_id, credential.secret] for tenant, credential in known.tenants.items()}
    write_private(folder.secrets_file, {"provider": known.provider.secret, "tenants": tenants})


def ensure(folder: StateFolder, base_url: str, known: Kept) -> Kept:
    """Returns working credentials of both tenants, and creates missing ones. Raises Refused, Unreachable."""
    made = dict(known.tenants)
    for tenant in TENANTS:
        if tenant not in made or not _works(base_url, made[tenant]):
            made[tenant] = _make(base_url, known.provider, tenant)
            _store(folder, Kept(known.provider, made))
    return Kept(known.provider, {tenant: made[tenant] for tenant in TENANTS})


def _works(base_url: str, credential: Credential) -> bool:
    api = Api(base_url, credential)
    try:
        api.call("GET", "/v1/jobs", query={"limit": 1})
    except Refused as refused:
        if refused.status in {401, 403}:
            return False
        raise
    else:
        return True
    finally:
        api.close()


def _make(base_url: str, provider: Credential, tenant: str) -> Credential:
    with closing(Api(base_url, provider)) as api:
        try:
            api.call("POST", "/v1/tenants", {"tenant": tenant})
        except Refused as refused:
            if refused.status != 409:  # there already
                raise
    with closing(Api(base_url, provider, for_tenant=tenant)) as acting:
        made = acting.call("POST", "/v1/credentials", {"name": CREDENTIAL_NAME, "scopes": list(TENANT_SCOPES)})
    return Credential(made["clientId"], made["secret"])
