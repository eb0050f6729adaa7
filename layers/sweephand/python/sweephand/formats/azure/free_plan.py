"""The limits of the Free plan for a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.base.errors import QuotaExceeded
from sweephand.domain.collection import Collection
from sweephand.formats.azure import collection_fields as fields
from sweephand.formats.azure.shapes import seconds_of

LEAST_RETRY_S = 3_600


def check_job(collection: Collection, properties: Mapping[str, Any]) -> None:
    """Raises QuotaExceeded for a job that a collection of the Free plan does not accept."""
    if fields.plan_name(collection) != fields.FREE:
        return
    action = properties["action"]
    for path, each in (("action", action), ("action.errorAction", action.get("errorAction", {}))):
        if "authentication" in each.get("request", {}):
            raise QuotaExceeded(f"properties.{path}.request.authentication: not allowed in the plan Free")
        interval = each.get("retryPolicy", {}).get("retryInterval")
        if interval is not None and seconds_of(interval) < LEAST_RETRY_S:
            raise QuotaExceeded(f"properties.{path}.retryPolicy.retryInterval: must be at least 1 h in the plan Free")
