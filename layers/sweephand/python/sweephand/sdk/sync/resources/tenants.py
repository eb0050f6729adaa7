"""`tenants`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.sync.pages import Pages
from sweephand.sdk.transport.request import ABSENT, Absent, Json, Named, Request, part


class Tenants:
    """The methods of `tenants`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create(
        self,
        *,
        tenant: str | Absent | None = ABSENT,
        name: str | Absent | None = ABSENT,
        description: str | Absent | None = ABSENT,
        quota: Json | Absent | None = ABSENT,
        withheld_scopes: Sequence[str] | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.Tenant:
        """Creates a tenant, whose data no other tenant can see. For providers.

        Args:
            tenant: The name of the tenant.
            name: Its name, for people and for filters.
            description: Free text for people.
            quota: Limits on what it may have and run.
            withheld_scopes: Scopes that no caller of the tenant has, even if its credential or token has
                them. Values: `admin`, `errors:edit`, `jobs:read`, `jobs:write`, `runs:write`, `tasks:write`.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
        return models.Tenant(
            self._caller.json(
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
    ) -> Pages[models.Tenant]:
        """Lists the tenants. For providers.

        Args:
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return Pages(
            self._caller,
            Request("GET", "/v1/tenants"),
            models.Tenant,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    def get(self, tenant: Named) -> models.Tenant:
        """Returns a tenant with its quotas and usage.

        Args:
            tenant: The name of the tenant.
        """
        return models.Tenant(self._caller.json(Request("GET", f"/v1/tenants/{part(tenant)}")))

    def patch(
        self,
        tenant: Named,
        *,
        description: str | Absent | None = ABSENT,
        quota: Json | Absent | None = ABSENT,
        withheld_scopes: Sequence[str] | Absent | None = ABSENT,
    ) -> models.Tenant:
        """Changes the given members of a tenant (merge patch, RFC 7396); null removes a member.

        Args:
            tenant: The name of the tenant.
            description: Free text for people.
            quota: Limits on what it may have and run.
            withheld_scopes: Scopes that no caller of the tenant has, even if its credential or token has
                them. Values: `admin`, `errors:edit`, `jobs:read`, `jobs:write`, `runs:write`, `tasks:write`.
        """
        return models.Tenant(
            self._caller.json(
                Request(
                    "PATCH",
                    f"/v1/tenants/{part(tenant)}",
                    body={"description": description, "quota": quota, "withheldScopes": withheld_scopes},
                )
            )
        )

    def delete(self, tenant: Named) -> models.Operation:
        """Deletes a tenant with all its data, as an operation.

        Args:
            tenant: The name of the tenant.
        """
        return models.Operation(self._caller.json(Request("DELETE", f"/v1/tenants/{part(tenant)}")))

    def enable(self, tenant: Named) -> models.Tenant:
        """Enables a tenant: its jobs run and its credentials work again.

        Args:
            tenant: The name of the tenant.
        """
        return models.Tenant(self._caller.json(Request("POST", f"/v1/tenants/{part(tenant)}/enable")))

    def disable(self, tenant: Named) -> models.Tenant:
        """Disables a tenant: its jobs do not run and its credentials are refused.

        Args:
            tenant: The name of the tenant.
        """
        return models.Tenant(self._caller.json(Request("POST", f"/v1/tenants/{part(tenant)}/disable")))
