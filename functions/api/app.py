"""One request of the HTTP API, for the native facade."""

from __future__ import annotations

from typing import Any

from sweephand import cold_start
from sweephand.facades.native.routes import NativeApi
from sweephand.wiring import Doorkeeper, build, guard_settings

world = build()
facade = NativeApi(world, guard_settings(world.settings), Doorkeeper(world).door)
cold_start.over()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return facade.handle(event, context.aws_request_id)
