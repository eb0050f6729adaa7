"""Durable tasks: functions that Sweephand runs on time, to the second, in any process that calls `run()`.

Needs the extra `sweephand[worker]`. See docs/guide/worker.md.
"""

from __future__ import annotations

from sweephand.sdk.worker.dedupe import Dedupe, InProgress, Unsure
from sweephand.sdk.worker.marks import DynamoMarks, MemoryMarks
from sweephand.sdk.worker.tasks import BadPayload, BadReschedule, TaskRun
from sweephand.sdk.worker.verdicts import Delay, Discard, MoveTo, Retry
from sweephand.sdk.worker.worker import Worker

__all__ = [
    "BadPayload",
    "BadReschedule",
    "Dedupe",
    "Delay",
    "Discard",
    "DynamoMarks",
    "InProgress",
    "MemoryMarks",
    "MoveTo",
    "Retry",
    "TaskRun",
    "Unsure",
    "Worker",
]
