"""Handles a batch from a run queue, and reports the messages that are not settled, so that they come back.

The rule that runs each minute for dead letters also calls it, with {"deadLetters": true}.
"""

from __future__ import annotations

from typing import Any

from sweephand.domain.instants import from_ms
from sweephand.server import cold_start, one_processor
from sweephand.server.flow.delivery import dead_letters, dispatch
from sweephand.server.flow.verdict import Delivered
from sweephand.server.wiring import build

world = build()
cold_start.over()
one_processor.stay()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    if event.get("deadLetters") is True:
        return {"taken": dead_letters.take(world)}
    now = world.clock.now()
    messages = [
        Delivered(
            message_id=record["messageId"],
            receipt=record["receiptHandle"],
            body=record["body"],
            received_at=now,
            sent_at=from_ms(int(record["attributes"]["SentTimestamp"])),
            receive_count=int(record["attributes"]["ApproximateReceiveCount"]),
        )
        for record in event["Records"]
    ]
    failed = dispatch.batch(world, world.settings.lane, context.aws_request_id, messages)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
