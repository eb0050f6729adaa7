"""Log lines and metrics in JSON: one line per run, only members of the allow-list.

They never contain events, headers, payloads or URLs.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Mapping, Sequence
from enum import Enum

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics

NAMESPACE = "Sweephand"
METRICS: Mapping[str, str] = {
    "Away": "Count",
    "AuditFindings": "Count",
    "Broken": "Count",
    "DeadLetters": "Count",
    "EventsUnsent": "Count",
    "Failed": "Count",
    "Lateness": "Milliseconds",
    "OldestDue": "Seconds",
    "Resent": "Count",
    "Throttled": "Count",
}
"""All metrics with their units. Each one costs money per month, so there are at most ten, with one dimension."""
UNITS: Mapping[str, str] = {**METRICS, "Open": "Count"}
"""The same, and the one that only applications with metrics of their own have (domain/watched.py)."""

MEMBERS = (
    "actor advanced agent attempt broken claimed code consumer error findings job kind lateness_ms left method"
    " operation reason repaired request resent returns route rows run schedule sent shard source state status tenant"
    " took_ms where"
)
ALLOWED = frozenset(MEMBERS.split())


class Telemetry:
    """The Journal of flow.world: Powertools' logger, and its metrics in separate lines.

    stack: the dimension that separates the stacks of an account, and the only one of the stack's own metrics.
    """

    def __init__(self, stack: str) -> None:
        for library in ("botocore", "pynamodb"):
            # Their INFO messages are the same at each cold start, and are billed as log data.
            logging.getLogger(library).setLevel(logging.WARNING)
        self._logger = Logger(
            log_record_order=["level", "message"],
            location=None,
            use_rfc3339=True,
            # Otherwise an encoder is created for each line, and each message is parsed as JSON first.
            json_serializer=json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str).encode,
            json_deserializer=str,
        )
        self._stack = stack

    def info(self, message: str, /, **members: object) -> None:
        self._logger.info(message, extra=_allowed(members))

    def warning(self, message: str, /, **members: object) -> None:
        self._logger.warning(message, extra=_allowed(members))

    def error(self, message: str, /, **members: object) -> None:
        self._logger.error(message, extra=_allowed(members))

    def count(self, metric: str, amount: float = 1) -> None:
        self.measure(**{metric: amount})

    def measure(self, part: Mapping[str, str] | None = None, /, **values: float | Sequence[float]) -> None:
        """Writes one line for CloudWatch, whatever the level of the log. Raises KeyError for a metric not in UNITS.

        part: a further dimension, for a collection or an application that the operator has listed. values: one or
        several per metric. Powertools starts a new line after 100 values of one metric.
        """
        # Without this argument, the service from the environment would become a second dimension.
        metrics = EphemeralMetrics(namespace=NAMESPACE, service="")
        for dimension, value in {"stack": self._stack, **(part or {})}.items():
            metrics.add_dimension(name=dimension, value=value)
        for name, measured in values.items():
            for each in measured if isinstance(measured, Sequence) else (measured,):
                metrics.add_metric(name=name, unit=UNITS[name], value=each)
        if metrics.metric_set:
            # In one piece: Powertools prints a line and its end separately, and Lambda sends each at once. Another
            # thread's line in between would corrupt both.
            sys.stdout.write(json.dumps(metrics.serialize_metric_set(), separators=(",", ":")) + "\n")
            sys.stdout.flush()


def where(error: BaseException) -> str:
    """Returns the innermost frame of an unexpected error, never its message, which may quote input."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""


def _allowed(members: dict[str, object]) -> dict[str, object]:
    """Returns the members for a log line. Raises KeyError for one that is not on the list, to prevent accidents."""
    strangers = members.keys() - ALLOWED
    if strangers:
        raise KeyError(f"not on the allow-list of log members: {', '.join(sorted(strangers))}")
    return {
        name: value.value if isinstance(value, Enum) else value for name, value in members.items() if value is not None
    }
