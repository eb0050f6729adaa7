"""The payload that a caller gives an action: JSON, or a string that is sent as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_text import dumps
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.domain.job import Payload, json_payload
from sweephand.server.actions.call import Call, run_as_payload

MAX_PAYLOAD = 65_536
MAX_SAP_PAYLOAD = 102_400
"""The most bytes of a payload in SAP's API, whose documentation limits only the body of the request."""
STRANGE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot contain and SQS does not accept."""
ANYTHING: dict[str, Any] = {"description": "Any JSON, up to 64 KB."}
TEXT_BODY: dict[str, Any] = {
    "type": "string",
    "maxLength": MAX_PAYLOAD,
    "description": "Instead of `payload`: sent as it is.",
}
JSON_ONLY: dict[str, Any] = {"type": "null", "description": "This target takes JSON only."}
NOTHING: dict[str, Any] = {"type": "null"}
"""Schemas of the members `payload` and `body`, written out because the API's start loads this module."""


class BadPayloadError(Exception):
    """A payload that does not fit the action: it was stored for another form of it, or for another schedule."""


def parse_payload(members: Mapping[str, Any], field: str) -> tuple[str, Payload | None]:
    """Returns the path of the member that contains the payload, and the payload. Raises InvalidRequest."""
    if "body" not in members:
        path = below(field, "payload")
        return path, json_payload(members["payload"], path) if "payload" in members else None
    path = below(field, "body")
    if "payload" in members:
        raise InvalidRequest(path, "is given in addition to `payload`: leave out one of them")
    return path, Payload(read.text(members["body"], path, 0, MAX_PAYLOAD), is_json=False)


def check_size(payload: Payload, field: str, most: int = MAX_PAYLOAD) -> None:
    """Raises InvalidRequest for a payload of more than `most` bytes."""
    if len(payload.text.encode()) > most:
        raise InvalidRequest(field, f"must have at most {most:,} bytes")


def message(call: Call) -> str:
    """Returns the string that is sent: the payload or, without one, the run."""
    return dumps(run_as_payload(call)) if call.payload is None else call.payload
