"""`operations`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.aio.operations import AsyncWaiting
from sweephand.sdk.aio.pages import AsyncPages
from sweephand.sdk.transport.request import Named, Request, part


class AsyncOperations(AsyncWaiting):
    """The methods of `operations`."""

    def list(
        self,
        *,
        state: str | None = None,
        kind: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Operation]:
        """Lists operations (long-running work), newest first.

        Args:
            state: Only resources in this state. Values: `RUNNING`, `PAUSED`, `DONE`, `FAILED`, `CANCELLED`.
            kind: Only entries of this kind. Values: `redrive`, `delete_jobs`, `switch_jobs`,
                `delete_collection`, `purge_tenant`, `export_runs`.
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return AsyncPages(
            self._caller,
            Request("GET", "/v1/operations", query={"state": state, "kind": kind}, acting=True),
            models.Operation,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    async def get(self, operation: Named) -> models.Operation:
        """Returns an operation with its progress, and what it waits for.

        Args:
            operation: The id of the operation.
        """
        return models.Operation(
            await self._caller.json(Request("GET", f"/v1/operations/{part(operation)}", acting=True))
        )

    async def pause(self, operation: Named) -> models.Operation:
        """Pauses an operation before its next page.

        Args:
            operation: The id of the operation.
        """
        return models.Operation(
            await self._caller.json(Request("POST", f"/v1/operations/{part(operation)}/pause", acting=True))
        )

    async def resume(self, operation: Named) -> models.Operation:
        """Resumes an operation where it stopped, including one that failed.

        Args:
            operation: The id of the operation.
        """
        return models.Operation(
            await self._caller.json(Request("POST", f"/v1/operations/{part(operation)}/resume", acting=True))
        )

    async def cancel(self, operation: Named) -> models.Operation:
        """Cancels an operation. Work that is already done stays done.

        Args:
            operation: The id of the operation.
        """
        return models.Operation(
            await self._caller.json(Request("POST", f"/v1/operations/{part(operation)}/cancel", acting=True))
        )
