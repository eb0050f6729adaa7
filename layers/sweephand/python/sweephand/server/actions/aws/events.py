"""The action `events`: an event to another EventBridge bus.

A repeat puts a second event with the same `resources` and `time`.
"""

from __future__ import annotations

import re
from typing import Any, final

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import text
from sweephand.base.members import fields as read
from sweephand.base.records import dataclass
from sweephand.domain.job import Payload
from sweephand.server.actions.aws.service import MAX_MESSAGE, PASSING, JsonAction, Sent, TargetFailedError, json_message
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import Reading, member, string
from sweephand.server.actions.run_headers import trace_header
from sweephand.server.security.aws_targets import Arn

MAX_SOURCE, MAX_DETAIL_TYPE = 256, 128
_VISIBLE = re.compile(r"[!-~]+", re.ASCII)
_PASSING = PASSING | {"InternalFailure", "InternalException", "ServiceUnavailable"}


def _source(value: Any, path: str, _: Reading) -> str:
    source = read.text(value, path, 1, MAX_SOURCE)
    if not _VISIBLE.fullmatch(source):
        raise InvalidRequest(path, "must be visible ASCII without spaces")
    if source.startswith("aws."):
        raise InvalidRequest(path, "begins with aws., which is reserved for AWS")
    return source


@final
@dataclass(frozen=True)
class Events(JsonAction):
    """An event on a bus of EventBridge; its detail is the payload."""

    source: str = member("source", text(1, MAX_SOURCE, pattern="^[!-~]+$"), _source)
    detail_type: str = string("detailType", 1, MAX_DETAIL_TYPE)

    kind = "events"

    def check_payload(self, payload: Payload, field: str) -> None:
        """Raises InvalidRequest for JSON that is not an object."""
        super().check_payload(payload, field)
        if not payload.text.startswith("{"):
            raise InvalidRequest(field, "must be a JSON object: this target accepts nothing else")

    def send(self, call: Call, client: Any, target: Arn) -> Sent:
        entry = {
            "EventBusName": target.text,
            "Source": self.source,
            "DetailType": self.detail_type,
            "Detail": json_message(call),
            "Time": call.planned_at,
            "Resources": [call.run_id],
            "TraceHeader": trace_header(call),
        }
        answer = client.put_events(Entries=[entry])
        (said,) = answer["Entries"]
        if "ErrorCode" in said:
            code = str(said["ErrorCode"])
            message = f"{code}: {said.get('ErrorMessage', '')}"[:MAX_MESSAGE]
            raise TargetFailedError(message, retryable=code in _PASSING)
        return Sent(said["EventId"], answer.get("ResponseMetadata", {}).get("HTTPStatusCode"))
