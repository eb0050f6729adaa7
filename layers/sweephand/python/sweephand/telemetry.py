"""Log lines and metrics: JSON, one line a run, only members of the allow-list.

Never an event, a header, a payload or a URL.
"""

from __future__ import annotations

import logging
import traceback
from enum import Enum

from aws_lambda_powertools import Logger

ALLOWED = frozenset(
    {
        "advanced",
        "attempt",
        "broken",
        "code",
        "error",
        "findings",
        "job",
        "kind",
        "lateness_ms",
        "left",
        "method",
        "operation",
        "reason",
        "repaired",
        "request",
        "resent",
        "route",
        "rows",
        "run",
        "schedule",
        "sent",
        "shard",
        "state",
        "status",
        "tenant",
        "took_ms",
        "where",
    }
)


class Telemetry:
    """The Journal of flow.world: Powertools' logger,
    and counts as embedded metrics without a tenant or job dimension.
    """

    def __init__(self) -> None:
        for library in ("botocore", "pynamodb"):
            # What they say at INFO is the same at each cold start, and is billed as log data.
            logging.getLogger(library).setLevel(logging.WARNING)
        self._logger = Logger(log_record_order=["level", "message"], location=None, use_rfc3339=True)

    def info(self, message: str, /, **members: object) -> None:
        self._logger.info(message, extra=_allowed(members))

    def warning(self, message: str, /, **members: object) -> None:
        self._logger.warning(message, extra=_allowed(members))

    def error(self, message: str, /, **members: object) -> None:
        self._logger.error(message, extra=_allowed(members))

    def count(self, metric: str, amount: float = 1) -> None:
        from aws_lambda_powertools.metrics import MetricUnit, single_metric  # noqa: PLC0415 - rare, and dear at a cold start

        with single_metric(name=metric, unit=MetricUnit.Count, value=amount):
            pass


def where(error: BaseException) -> str:
    """The innermost frame of an unexpected error: a place in the code, never the message, which may quote input."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""


def _allowed(members: dict[str, object]) -> dict[str, object]:
    """Raises KeyError for a member that is not on the list: the list is extended with thought, not by accident."""
    strangers = members.keys() - ALLOWED
    if strangers:
        raise KeyError(f"not on the allow-list of log members: {', '.join(sorted(strangers))}")
    return {
        name: value.value if isinstance(value, Enum) else value for name, value in members.items() if value is not None
    }
