"""Handles a message from the operations queue: does some pages of an operation. An unfinished message comes back."""

from __future__ import annotations

from typing import Any

from sweephand.domain.instants import from_ms
from sweephand.server import cold_start
from sweephand.server.flow.bulk import carry_on
from sweephand.server.flow.verdict import Delivered
from sweephand.server.wiring import build

world = build()
cold_start.over()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    messages = [
        Delivered(
            message_id=record["messageId"],
            receipt=record["receiptHandle"],
            body=record["body"],
            received_at=world.clock.now(),
            sent_at=from_ms(int(record["attributes"]["SentTimestamp"])),
            receive_count=int(record["attributes"]["ApproximateReceiveCount"]),
        )
        for record in event["Records"]
    ]
    failed = carry_on.batch(world, context.aws_request_id, messages)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
