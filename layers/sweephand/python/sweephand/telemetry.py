"""Log lines and metrics: JSON, one line a run, only members of the allow-list.

Never an event, a header, a payload or a URL.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from aws_lambda_powertools import Logger

from sweephand.sources import Clock

NAMESPACE = "Sweephand"
METRICS: Mapping[str, str] = {
    "AuditFindings": "Count",
    "Broken": "Count",
    "DeadLetters": "Count",
    "EventsUnsent": "Count",
    "Failed": "Count",
    "Lateness": "Milliseconds",
    "OldestDue": "Seconds",
    "Resent": "Count",
}
"""All metrics with their units. Each is paid for by the month, so there are at most eight, with one dimension."""
MOST_VALUES = 100
"""Of one metric in one line, by the specification of the embedded metric format."""

ALLOWED = frozenset(
    {
        "actor",
        "advanced",
        "agent",
        "attempt",
        "broken",
        "claimed",
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
        "source",
        "state",
        "status",
        "tenant",
        "took_ms",
        "where",
    }
)


class Telemetry:
    """The Journal of flow.world: Powertools' logger, and metrics embedded in lines of their own.

    stack: the only dimension, so that two stacks of an account stay apart; never a tenant or a job.
    """

    def __init__(self, stack: str, clock: Clock) -> None:
        for library in ("botocore", "pynamodb"):
            # What they say at INFO is the same at each cold start, and is billed as log data.
            logging.getLogger(library).setLevel(logging.WARNING)
        self._logger = Logger(
            log_record_order=["level", "message"],
            location=None,
            use_rfc3339=True,
            # By themselves they make an encoder a line, and try whether the message is JSON.
            json_serializer=json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str).encode,
            json_deserializer=str,
        )
        self._stack = stack
        self._clock = clock

    def info(self, message: str, /, **members: object) -> None:
        self._logger.info(message, extra=_allowed(members))

    def warning(self, message: str, /, **members: object) -> None:
        self._logger.warning(message, extra=_allowed(members))

    def error(self, message: str, /, **members: object) -> None:
        self._logger.error(message, extra=_allowed(members))

    def count(self, metric: str, amount: float = 1) -> None:
        self.measure(**{metric: amount})

    def measure(self, **values: float | Sequence[float]) -> None:
        """One line for CloudWatch, whatever the level of the log: written past the logger, which has one."""
        at_ms = int(self._clock.now().timestamp() * 1000)
        sys.stdout.write(json.dumps(embedded(self._stack, at_ms, values), separators=(",", ":")) + "\n")
        sys.stdout.flush()


def embedded(stack: str, at_ms: int, values: Mapping[str, float | Sequence[float]]) -> dict[str, Any]:
    """The embedded metric format (CloudWatch's specification). Raises KeyError for what is no metric of METRICS.

    values: of each metric, one or several; beyond 100 the rest is left out.
    """
    return {
        "_aws": {
            "Timestamp": at_ms,
            "CloudWatchMetrics": [
                {
                    "Namespace": NAMESPACE,
                    "Dimensions": [["stack"]],
                    "Metrics": [{"Name": name, "Unit": METRICS[name]} for name in values],
                }
            ],
        },
        "stack": stack,
        **{
            name: value if isinstance(value, int | float) else list(value)[:MOST_VALUES]
            for name, value in values.items()
        },
    }


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
