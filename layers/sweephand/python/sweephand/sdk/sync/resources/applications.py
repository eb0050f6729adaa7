"""`applications`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.sync.caller import Caller
from sweephand.sdk.transport.request import ABSENT, Absent, Named, Request, part


class Applications:
    """The methods of `applications`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def register(self, application: Named, *, version: str | Absent | None = ABSENT) -> models.Application:
        """Creates the queue of an application unless it exists. Workers call this at each start.

        Args:
            application: The name of the application.
            version: The version of the worker.
        """
        return models.Application(
            self._caller.json(
                Request("PUT", f"/v1/applications/{part(application)}", body={"version": version}, acting=True)
            )
        )
