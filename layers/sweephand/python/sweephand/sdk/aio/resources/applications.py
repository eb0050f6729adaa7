"""`applications`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.aio.caller import AsyncCaller
from sweephand.sdk.transport.request import ABSENT, Absent, Named, Request, part


class AsyncApplications:
    """The methods of `applications`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def register(self, application: Named, *, version: str | Absent | None = ABSENT) -> models.Application:
        """Creates the queue of an application unless it exists. Workers call this at each start.

        Args:
            application: The name of the application.
            version: The version of the worker.
        """
        return models.Application(
            await self._caller.json(
                Request("PUT", f"/v1/applications/{part(application)}", body={"version": version}, acting=True)
            )
        )
