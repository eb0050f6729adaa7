"""Prints the log lines of the functions on the local stack, from the embedded CloudWatch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sweephand.local.aws.deploy import Aws
from sweephand.local.failures import LocalFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sweephand.base.sources import Clock
    from sweephand.local.stack_file import StackFile

POLL_EVERY_S = 1.0
FRAMES = ("START RequestId", "END RequestId", "REPORT RequestId", "INIT_START")
"""The lines that the runtime itself writes around each call."""


def show(
    stack: StackFile, clock: Clock, say: Callable[[str], None], *, function: str | None, minutes: float, follow: bool
) -> None:
    """Prints each line as `time role line`, oldest first. function: its role in stack.json; None for all.

    Raises LocalFailure for a role that the stack does not have.
    """
    if function is not None and function not in stack.functions:
        raise LocalFailure(f"There is no function {function}; there are {', '.join(sorted(stack.functions))}.")
    aws = Aws(stack.aws_endpoint_url, stack.region)
    groups = {_group(aws, name): role for role, name in stack.functions.items() if function in {None, role}}
    since_ms = round((clock.now().timestamp() - minutes * 60) * 1000)
    shown: set[tuple[int, str, str]] = set()
    while True:
        lines = sorted({line for group, role in groups.items() for line in _lines(aws, group, role, since_ms)})
        for at_ms, role, text in lines:
            if (at_ms, role, text) not in shown:
                say(f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S.%f}"[:12] + f" {role:<12} {text}")
        shown.update(lines)
        if not follow:
            return
        since_ms = max(since_ms, max((line[0] for line in lines), default=0) - 60_000)
        shown = {line for line in shown if line[0] >= since_ms}
        clock.sleep(POLL_EVERY_S)


def _group(aws: Aws, function: str) -> str:
    """Returns the log group that the template gives a function, or Lambda's own."""
    logging = aws.client("lambda").get_function_configuration(FunctionName=function).get("LoggingConfig", {})
    return str(logging.get("LogGroup", f"/aws/lambda/{function}"))


def _lines(aws: Aws, group: str, role: str, since_ms: int) -> Iterator[tuple[int, str, str]]:
    client = aws.client("logs")
    try:
        for page in client.get_paginator("filter_log_events").paginate(logGroupName=group, startTime=since_ms):
            for event in page["events"]:
                if not event["message"].startswith(FRAMES):
                    yield event["timestamp"], role, event["message"].rstrip()
    except client.exceptions.ResourceNotFoundException:
        return  # it has not run yet
