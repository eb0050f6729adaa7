"""`service`. Made by .ci/sdk.py. Edit that file or its source, and run `make sdk`."""

from __future__ import annotations

from sweephand.sdk import models
from sweephand.sdk.aio.caller import AsyncCaller
from sweephand.sdk.transport.request import Request


class AsyncService:
    """The methods of `service`."""

    def __init__(self, caller: AsyncCaller) -> None:
        self._caller = caller

    async def health(self) -> models.Health:
        """Returns the version to everyone. A provider with the scope `jobs:read` also sees how late the sweep is."""
        return models.Health(await self._caller.json(Request("GET", "/v1/health")))
