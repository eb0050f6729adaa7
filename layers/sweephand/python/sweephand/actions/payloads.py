"""The payload that a caller gives an action: JSON, or text that is sent as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.members.json_text import dumps
from sweephand.errors import InvalidRequest

MAX_PAYLOAD = 65_536
MAX_SAP_PAYLOAD = 102_400
"""What a body of SAP's API can hold: its documentation bounds nothing but the body."""
STRANGE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot write, and SQS does not take."""


class BadPayloadError(Exception):
    """The payload does not fit the action: it was stored under another form of it, or for another schedule."""


def parse_payload(given: Mapping[str, Any], field: str) -> tuple[str, Payload | None]:
    """The payload and the path of the member that brought it."""
    if "body" not in given:
        path = below(field, "payload")
        return path, json_payload(given["payload"], path) if "payload" in given else None
    path = below(field, "body")
    if "payload" in given:
        raise InvalidRequest(path, "stands beside payload; one of them is sent")
    return path, Payload(read.text(given["body"], path, 0, MAX_PAYLOAD), is_json=False)


def json_payload(value: object, field: str) -> Payload:
    """A JSON payload as it is stored and sent. Raises InvalidRequest for what JSON in UTF-8 cannot write."""
    try:
        text = dumps(value)
        text.encode()
    except (TypeError, ValueError, RecursionError) as wrong:
        raise InvalidRequest(field, "cannot be written as JSON in UTF-8") from wrong
    return Payload(text, is_json=True)


def check_size(payload: Payload, field: str, most: int = MAX_PAYLOAD) -> None:
    """Raises InvalidRequest for a payload of more than `most` bytes."""
    if len(payload.text.encode()) > most:
        raise InvalidRequest(field, f"must have at most {most:,} bytes")
