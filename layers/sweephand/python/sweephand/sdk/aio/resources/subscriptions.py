"""`subscriptions`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.aio.caller import AsyncCaller
from sweephand.sdk.aio.pages import AsyncPages
from sweephand.sdk.transport.request import Named, Request, part


class AsyncSubscriptions:
    """The methods of `subscriptions`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self, tenant: Named, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Subscription]:
        """Lists the applications to which a tenant is subscribed.

        Args:
            tenant: The name of the tenant.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return AsyncPages(
            self._caller,
            Request("GET", f"/v1/tenants/{part(tenant)}/subscriptions"),
            models.Subscription,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    async def subscribe(self, tenant: Named, application: Named) -> models.Subscription:
        """Subscribes a tenant to an application, and creates the tenant if it is new.

        Args:
            tenant: The name of the tenant.
            application: The name of the application.
        """
        return models.Subscription(
            await self._caller.json(Request("PUT", f"/v1/tenants/{part(tenant)}/subscriptions/{part(application)}"))
        )

    async def unsubscribe(self, tenant: Named, application: Named) -> models.Operation | None:
        """Ends a subscription. Ending the last one deletes the tenant, as an operation.

        Args:
            tenant: The name of the tenant.
            application: The name of the application.
        """
        return models.Operation.of(
            await self._caller.json(Request("DELETE", f"/v1/tenants/{part(tenant)}/subscriptions/{part(application)}"))
        )
