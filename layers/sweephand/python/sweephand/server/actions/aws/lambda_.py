"""The action `lambda`: invokes a function, and waits for its answer (`sync`) or not (`async`).

A repetition invokes it again, with the same run id. `sync` passes the id in `context.client_context.custom`. Both pass
it in the event itself if the job has no payload or requests an envelope.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any, final

from sweephand.base.json_text import dumps, loads
from sweephand.base.members import fields as read
from sweephand.base.records import dataclass
from sweephand.server.actions.aws.service import (
    MAX_ANSWER,
    MAX_MESSAGE,
    JsonAction,
    Sent,
    TargetFailedError,
    json_message,
)
from sweephand.server.actions.call import Call, run_as_payload
from sweephand.server.actions.kind import choice, member
from sweephand.server.actions.run_headers import facts, traceparent
from sweephand.server.security.aws_targets import Arn

INVOCATIONS = {"sync": "RequestResponse", "async": "Event"}


@final
@dataclass(frozen=True)
class Lambda(JsonAction):
    """An invocation of a function. envelope: whether it gets the run, with the payload as its member `payload`."""

    invocation: str = choice("invocation", INVOCATIONS, default="sync")
    envelope: bool = member(
        "envelope",
        {"type": "boolean", "description": "The function gets the run, with the payload as a member."},
        lambda value, path, _: read.flag(value, path),
        default=False,
    )

    kind = "lambda"

    def sends_callback(self, *, with_payload: bool) -> bool:
        """Returns whether the function learns of its run. An asynchronous one gets no client context (AWS, Invoke)."""
        return self.invocation == "sync" or self.envelope or not with_payload

    def send(self, call: Call, client: Any, target: Arn) -> Sent:
        context = json.dumps({"custom": {**facts(call), "traceparent": traceparent(call)}}).encode()
        answer = client.invoke(
            FunctionName=target.text,
            InvocationType=INVOCATIONS[self.invocation],
            ClientContext=base64.b64encode(context).decode(),
            Payload=self._event(call).encode(),
        )
        with closing(answer["Payload"]) as body:
            text = body.read(MAX_ANSWER).decode(errors="ignore") or None
        if "FunctionError" in answer:
            raise TargetFailedError(_error_of(text), answer=text)
        return Sent(text, answer["StatusCode"])

    def _event(self, call: Call) -> str:
        text = json_message(call)
        if not self.envelope or call.payload is None:
            return text
        return dumps({**run_as_payload(call), "payload": loads(text)})


def _error_of(text: str | None) -> str:
    """Returns the function's own description of its error: `type: message`."""
    try:
        said = json.loads(text or "")
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, Mapping):
        return "the function failed"
    parts = [str(said[name]) for name in ("errorType", "errorMessage") if said.get(name)]
    return (": ".join(parts) or "the function failed")[:MAX_MESSAGE]
