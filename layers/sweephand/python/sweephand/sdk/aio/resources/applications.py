"""`applications`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from collections.abc import Sequence

from sweephand.sdk import models
from sweephand.sdk.aio.caller import AsyncCaller
from sweephand.sdk.aio.pages import AsyncPages
from sweephand.sdk.transport.request import ABSENT, Absent, Named, Request, part


class AsyncApplications:
    """The methods of `applications`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    def list(
        self, *, page_size: int | None = None, max_items: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Application]:
        """Lists the applications of workers, and which of them are away.

        Args:
            page_size: How many entries one request reads.
            max_items: The most entries to return; all by default.
            cursor: The `cursor` of a page, to continue after it.
        """
        return AsyncPages(
            self._caller,
            Request("GET", "/v1/applications", acting=True),
            models.Application,
            page_size=page_size,
            max_items=max_items,
            cursor=cursor,
        )

    async def get(self, application: Named, *, version: str | None = None) -> models.Application:
        """Returns an application, or one of its versions.

        Args:
            application: The name of the application.
            version: The version of the application; without it, the queue that all versions read.
        """
        return models.Application(
            await self._caller.json(
                Request("GET", f"/v1/applications/{part(application)}", query={"version": version}, acting=True)
            )
        )

    async def delete(self, application: Named, *, version: str | None = None) -> None:
        """Deletes an application that no job names, with its queue. Ends the report that it is away.

        Args:
            application: The name of the application.
            version: The version of the application; without it, the queue that all versions read.
        """
        await self._caller.json(
            Request("DELETE", f"/v1/applications/{part(application)}", query={"version": version}, acting=True)
        )

    async def register(
        self,
        application: Named,
        *,
        version: str | Absent | None = ABSENT,
        tasks: Sequence[str] | Absent | None = ABSENT,
    ) -> models.Application:
        """Creates the queue of an application unless it exists. Workers call this at each start.

        Args:
            application: The name of the application.
            version: The version of the worker.
            tasks: The tasks that workers of this version know. A run that another worker returned as unknown
                goes to a version that knows its task.
        """
        return models.Application(
            await self._caller.json(
                Request(
                    "PUT",
                    f"/v1/applications/{part(application)}",
                    body={"version": version, "tasks": tasks},
                    acting=True,
                )
            )
        )
