"""`collections`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.aio.caller import AsyncCaller
from sweephand.sdk.aio.pages import AsyncPages
from sweephand.sdk.transport.request import ABSENT, Absent, Json, Named, Request, Revision, part


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
        """Creates a collection: a group of jobs with quotas, defaults and signing keys.

        Args:
            name: Its name, for people and for filters.
            quota: Limits on what it may have and run.
            retention: How long runs are kept.
            events: Which events go to the event bus. Values: `failures`, `all`, `none`.
            defaults: Default values for jobs of the collection.
            callback_timeout_seconds: How long a run waits for its result unless its job says otherwise; null
                means the default of the stack.
            redirects: Maps Azure queues and topics (`account/queue`, `namespace/entity`) to SQS queues and
                SNS topics.
            flow_key: The flow key for jobs of the collection that name none.
            idempotency_key: A repetition with the same key within 24 hours has no further effect.
        """
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
        """Lists the tenant's collections.

        Args:
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return AsyncPages(
            self._caller,
            Request("GET", "/v1/collections", acting=True),
            models.Collection,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    async def get(self, collection: Named) -> models.Collection:
        """Returns a collection with its quotas and its number of jobs.

        Args:
            collection: The name of the collection.
        """
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
        """Replaces a collection. Members that are left out get their defaults.

        Args:
            collection: The name of the collection.
            name: Its name, for people and for filters.
            quota: Limits on what it may have and run.
            retention: How long runs are kept.
            events: Which events go to the event bus. Values: `failures`, `all`, `none`.
            defaults: Default values for jobs of the collection.
            callback_timeout_seconds: How long a run waits for its result unless its job says otherwise; null
                means the default of the stack.
            redirects: Maps Azure queues and topics (`account/queue`, `namespace/entity`) to SQS queues and
                SNS topics.
            flow_key: The flow key for jobs of the collection that name none.
            if_match: Changes it only if this is still its revision.
        """
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
        """Changes the given members of a collection (merge patch, RFC 7396); null removes a member.

        Args:
            collection: The name of the collection.
            name: Its name, for people and for filters.
            quota: Limits on what it may have and run.
            retention: How long runs are kept.
            events: Which events go to the event bus. Values: `failures`, `all`, `none`.
            defaults: Default values for jobs of the collection.
            callback_timeout_seconds: How long a run waits for its result unless its job says otherwise; null
                means the default of the stack.
            redirects: Maps Azure queues and topics (`account/queue`, `namespace/entity`) to SQS queues and
                SNS topics.
            flow_key: The flow key for jobs of the collection that name none.
            if_match: Changes it only if this is still its revision.
        """
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
        """Deletes a collection that contains no jobs.

        Args:
            collection: The name of the collection.
            if_match: Changes it only if this is still its revision.
        """
        await self._caller.json(
            Request("DELETE", f"/v1/collections/{part(collection)}", if_match=if_match, acting=True)
        )

    async def enable(self, collection: Named, *, if_match: Revision | None = None) -> models.Collection:
        """Enables a collection: its jobs run again.

        Args:
            collection: The name of the collection.
            if_match: Changes it only if this is still its revision.
        """
        return models.Collection(
            await self._caller.json(
                Request("POST", f"/v1/collections/{part(collection)}/enable", if_match=if_match, acting=True)
            )
        )

    async def disable(self, collection: Named, *, if_match: Revision | None = None) -> models.Collection:
        """Disables a collection. Its occurrences that fall due in the meantime do not run.

        Args:
            collection: The name of the collection.
            if_match: Changes it only if this is still its revision.
        """
        return models.Collection(
            await self._caller.json(
                Request("POST", f"/v1/collections/{part(collection)}/disable", if_match=if_match, acting=True)
            )
        )
