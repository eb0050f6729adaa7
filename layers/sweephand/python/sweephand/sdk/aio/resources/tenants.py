"""`tenants`. Made by .ci/sdk.py: change that, or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.sdk import models
from sweephand.sdk.aio.caller import AsyncCaller
from sweephand.sdk.aio.pages import AsyncPages
from sweephand.sdk.request import ABSENT, Absent, Json, Named, Request, part


class AsyncTenants:
    """The methods of `tenants`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(
        self,
        *,
        tenant: str | Absent | None = ABSENT,
        name: str | Absent | None = ABSENT,
        description: str | Absent | None = ABSENT,
        quota: Json | Absent | None = ABSENT,
        withheld_scopes: Sequence[str] | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.Tenant:
        """Creates a tenant: an owner of data, apart from all others. For providers."""
        return models.Tenant(
            await self._caller.json(
                Request(
                    "POST",
                    "/v1/tenants",
                    body={
                        "tenant": tenant,
                        "name": name,
                        "description": description,
                        "quota": quota,
                        "withheldScopes": withheld_scopes,
                    },
                    keyed=True,
                    key=idempotency_key,
                )
            )
        )

    def list(
        self, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Tenant]:
        """Lists the tenants. For providers."""
        return AsyncPages(
            self._caller,
            Request("GET", "/v1/tenants"),
            models.Tenant,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    async def get(self, tenant: Named) -> models.Tenant:
        """Reads a tenant with its quota and what it uses."""
        return models.Tenant(await self._caller.json(Request("GET", f"/v1/tenants/{part(tenant)}")))

    async def patch(
        self,
        tenant: Named,
        *,
        description: str | Absent | None = ABSENT,
        quota: Json | Absent | None = ABSENT,
        withheld_scopes: Sequence[str] | Absent | None = ABSENT,
    ) -> models.Tenant:
        """Changes by a merge patch (RFC 7396): members that are left out stay, null removes."""
        return models.Tenant(
            await self._caller.json(
                Request(
                    "PATCH",
                    f"/v1/tenants/{part(tenant)}",
                    body={"description": description, "quota": quota, "withheldScopes": withheld_scopes},
                )
            )
        )

    async def delete(self, tenant: Named) -> models.Operation:
        """Deletes the tenant with all that it has, as long work."""
        return models.Operation(await self._caller.json(Request("DELETE", f"/v1/tenants/{part(tenant)}")))

    async def enable(self, tenant: Named) -> models.Tenant:
        """Lets the tenant's jobs run and its credentials work again."""
        return models.Tenant(await self._caller.json(Request("POST", f"/v1/tenants/{part(tenant)}/enable")))

    async def disable(self, tenant: Named) -> models.Tenant:
        """Holds all jobs of the tenant and refuses its credentials."""
        return models.Tenant(await self._caller.json(Request("POST", f"/v1/tenants/{part(tenant)}/disable")))
