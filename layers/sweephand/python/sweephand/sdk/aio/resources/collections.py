"""`collections`. Made by .ci/sdk.py: change that, or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.aio.caller import AsyncCaller
from sweephand.sdk.aio.pages import AsyncPages
from sweephand.sdk.request import ABSENT, Absent, Json, Named, Request, Revision, part


class AsyncCollections:
    """The methods of `collections`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def create(
        self,
        *,
        name: str,
        quota: Json | Absent | None = ABSENT,
        retention: Json | Absent | None = ABSENT,
        events: str | Absent | None = ABSENT,
        defaults: Json | Absent | None = ABSENT,
        callback_timeout_seconds: int | Absent | None = ABSENT,
        redirects: Json | Absent | None = ABSENT,
        flow_key: str | Absent | None = ABSENT,
        idempotency_key: str | None = None,
    ) -> models.Collection:
        """Creates a collection: a group of jobs with quotas, defaults and signing keys."""
        return models.Collection(
            await self._caller.json(
                Request(
                    "POST",
                    "/v1/collections",
                    body={
                        "name": name,
                        "quota": quota,
                        "retention": retention,
                        "events": events,
                        "defaults": defaults,
                        "callbackTimeoutSeconds": callback_timeout_seconds,
                        "redirects": redirects,
                        "flowKey": flow_key,
                    },
                    keyed=True,
                    key=idempotency_key,
                    acting=True,
                )
            )
        )

    def list(
        self, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Collection]:
        """Lists the tenant's collections."""
        return AsyncPages(
            self._caller,
            Request("GET", "/v1/collections", acting=True),
            models.Collection,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    async def get(self, collection: Named) -> models.Collection:
        """Returns a collection with its quotas and its number of jobs."""
        return models.Collection(
            await self._caller.json(Request("GET", f"/v1/collections/{part(collection)}", acting=True))
        )

    async def put(
        self,
        collection: Named,
        *,
        name: str | Absent | None = ABSENT,
        quota: Json | Absent | None = ABSENT,
        retention: Json | Absent | None = ABSENT,
        events: str | Absent | None = ABSENT,
        defaults: Json | Absent | None = ABSENT,
        callback_timeout_seconds: int | Absent | None = ABSENT,
        redirects: Json | Absent | None = ABSENT,
        flow_key: str | Absent | None = ABSENT,
        if_match: Revision | None = None,
    ) -> models.Collection:
        """Replaces a collection. Members that are left out get their defaults."""
        return models.Collection(
            await self._caller.json(
                Request(
                    "PUT",
                    f"/v1/collections/{part(collection)}",
                    body={
                        "name": name,
                        "quota": quota,
                        "retention": retention,
                        "events": events,
                        "defaults": defaults,
                        "callbackTimeoutSeconds": callback_timeout_seconds,
                        "redirects": redirects,
                        "flowKey": flow_key,
                    },
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    async def patch(
        self,
        collection: Named,
        *,
        name: str | Absent | None = ABSENT,
        quota: Json | Absent | None = ABSENT,
        retention: Json | Absent | None = ABSENT,
        events: str | Absent | None = ABSENT,
        defaults: Json | Absent | None = ABSENT,
        callback_timeout_seconds: int | Absent | None = ABSENT,
        redirects: Json | Absent | None = ABSENT,
        flow_key: str | Absent | None = ABSENT,
        if_match: Revision | None = None,
    ) -> models.Collection:
        """Changes the given members of a collection (merge patch, RFC 7396); null removes a member."""
        return models.Collection(
            await self._caller.json(
                Request(
                    "PATCH",
                    f"/v1/collections/{part(collection)}",
                    body={
                        "name": name,
                        "quota": quota,
                        "retention": retention,
                        "events": events,
                        "defaults": defaults,
                        "callbackTimeoutSeconds": callback_timeout_seconds,
                        "redirects": redirects,
                        "flowKey": flow_key,
                    },
                    if_match=if_match,
                    acting=True,
                )
            )
        )

    async def delete(self, collection: Named, *, if_match: Revision | None = None) -> None:
        """Deletes a collection that contains no jobs."""
        await self._caller.json(
            Request("DELETE", f"/v1/collections/{part(collection)}", if_match=if_match, acting=True)
        )

    async def enable(self, collection: Named, *, if_match: Revision | None = None) -> models.Collection:
        """Enables a collection: its jobs run again."""
        return models.Collection(
            await self._caller.json(
                Request("POST", f"/v1/collections/{part(collection)}/enable", if_match=if_match, acting=True)
            )
        )

    async def disable(self, collection: Named, *, if_match: Revision | None = None) -> models.Collection:
        """Disables a collection. Its occurrences that fall due in the meantime do not run."""
        return models.Collection(
            await self._caller.json(
                Request("POST", f"/v1/collections/{part(collection)}/disable", if_match=if_match, acting=True)
            )
        )
