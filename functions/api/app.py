"""Handles a request to the HTTP API with the facade that this deployment serves."""

from __future__ import annotations

from typing import Any

from sweephand.server import cold_start
from sweephand.server.wiring import Doorkeeper, build, guard_settings

world = build()
# Each deployment loads only the facade that it serves.
if world.settings.facade == "sap":
    from sweephand.server.facades.sap.routes import SapApi as Facade
elif world.settings.facade == "azure":
    from sweephand.server.facades.azure.routes import AzureApi as Facade  # type: ignore[assignment]
else:
    from sweephand.server.facades.native.api import NativeApi as Facade  # type: ignore[assignment]

keeper = Doorkeeper(world)
facade = Facade(world, guard_settings(world.settings, keeper.settings), keeper.door)
cold_start.over()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return facade.handle(event, context.aws_request_id)
