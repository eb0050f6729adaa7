"""A batch from a run queue, or from the dead-letter queue: what is not settled is reported, and comes back."""

from __future__ import annotations

from typing import Any

from sweephand import cold_start, one_processor
from sweephand.domain.instants import from_ms
from sweephand.flow import dead_letters, execute
from sweephand.flow.execute import Delivered
from sweephand.wiring import build

world = build()
cold_start.over()
one_processor.stay()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
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
    if dead_letters.is_source(world, event["Records"][0]["eventSourceARN"]):
        failed = dead_letters.batch(world, messages)
    else:
        failed = execute.batch(world, world.settings.lane, context.aws_request_id, messages)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
