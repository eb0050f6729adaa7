"""One request of the HTTP API: mounts the facade that the environment names."""

from __future__ import annotations

from typing import Any

from sweephand.wiring import api

facade = api()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return facade.handle(event, context.aws_request_id)
