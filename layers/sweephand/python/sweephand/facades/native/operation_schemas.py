"""The schemas of operations, and of running again what failed."""

from __future__ import annotations

from sweephand.actions.payloads import MAX_PAYLOAD
from sweephand.domain.operation import OperationKind, OperationState
from sweephand.facades.native.json_schema import (
    Members,
    Schema,
    answer,
    items,
    one_of,
    or_null,
    page,
    ref,
    request,
    text,
    whole,
)
from sweephand.facades.native.schema_words import ANYTHING, FLAG, ID, INSTANT, INSTANT_MS, RUN_ID, TEXT
from sweephand.flow.operations import redrive

_RATE = whole(1, redrive.MOST_RATE, default=redrive.USUAL_RATE, description="Runs a minute.")
_OBJECT: Schema = {"type": "object"}
_OPERATION: Members = {
    "id": ID,
    "kind": one_of(OperationKind),
    "state": one_of(OperationState),
    "progress": answer(
        {
            "done": whole(description="Things that were seen to."),
            "total": or_null(whole(description="null while it is not known.")),
            "failed": whole(description="Of those that were seen to."),
        }
    ),
    "cause": or_null(text(description="Why it failed.")),
    "request": {**_OBJECT, "description": "What was asked for; its members follow from `kind`."},
    "result": or_null({**_OBJECT, "description": "What came of it; its members follow from `kind`."}),
    "actor": or_null(text(description="The caller's client id.")),
    "startedAt": INSTANT_MS,
    "endedAt": or_null(INSTANT_MS),
    "expiresAt": or_null(INSTANT),
}
SCHEMAS: dict[str, Schema] = {
    "Operation": answer(_OPERATION),
    "OperationPage": page("Operation"),
    "RerunRequest": request(
        {
            "payload": {**ANYTHING, "description": "JSON, in the place of the job's payload."},
            "body": text(0, MAX_PAYLOAD, description="The same as text; not beside `payload`."),
            "headers": {
                "type": "object",
                "additionalProperties": or_null(TEXT),
                "description": "In the place of the action's headers of these names; null leaves one out.",
            },
        }
    ),
    "RedriveRequest": request(
        {
            "runs": items(RUN_ID, minItems=1, maxItems=redrive.MOST_RUNS),
            "ratePerMinute": _RATE,
            "dryRun": {**FLAG, "description": "Only says how many it would be."},
            "expectedCount": whole(0, 10**9, description="Refused (412) if it would be another number."),
        },
        ("runs",),
    ),
    "Redrive": answer({"count": whole(description="Runs that are run again."), "operation": or_null(ref("Operation"))}),
}
