"""The schemas of operations, and of running again what failed."""

from __future__ import annotations

from sweephand.domain.job import HOOK_KINDS, hook_owner
from sweephand.domain.operation import OperationKind, OperationState
from sweephand.domain.run import FAILED, Kind, Reason, State
from sweephand.domain.runs.run_file import Format
from sweephand.facades.native.members.json_schema import (
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
from sweephand.facades.native.members.run_schemas import EDIT
from sweephand.facades.native.members.schema_words import (
    FLAG,
    GIVEN_INSTANT,
    ID,
    INSTANT,
    INSTANT_MS,
    JOB_FILTER,
    RUN_ID,
    TEXT,
)
from sweephand.flow.bulk import redrive

_RATE = whole(1, redrive.MOST_RATE, default=redrive.USUAL_RATE, description="Runs a minute.")
_OBJECT: Schema = {"type": "object"}
_RESULT = (
    "What came of it; its members follow from `kind`. Of `export_runs`: `runs`, `bytes`, `fileExpiresAt`, `nextCursor` "
    "(null, unless more runs lie behind the last one), and `link` with `url` and `expiresAt`, which is null in lists, "
    "and once the file is gone."
)
_OPERATION: Members = {
    "id": ID,
    "kind": one_of(OperationKind),
    "state": one_of(OperationState),
    "progress": answer(
        {
            "done": whole(description="Things that were seen to."),
            "total": or_null(whole(description="null while it is not known.")),
            "failed": whole(description="Of those that were seen to."),
            "waitsFor": or_null(text(description="Why nothing begins now, where that is more than its pace.")),
        }
    ),
    "cause": or_null(text(description="Why it failed.")),
    "request": {**_OBJECT, "description": "What was asked for; its members follow from `kind`."},
    "result": or_null({**_OBJECT, "description": _RESULT}),
    "actor": or_null(text(description="The caller's client id.")),
    "startedAt": INSTANT_MS,
    "endedAt": or_null(INSTANT_MS),
    "expiresAt": or_null(INSTANT),
}
GROUP_ID = text(pattern="^[0-9a-f]{32}$")
_ARCHIVED: Schema = answer({"at": INSTANT_MS, "by": or_null(TEXT), "reason": or_null(TEXT)})
_GROUP: Members = {
    "id": GROUP_ID,
    "state": one_of(
        ("OPEN", "ARCHIVED", "RESOLVED"),
        description="OPEN: it has runs that nobody has seen to. RESOLVED: each was run again, archived or is gone.",
    ),
    "jobId": ID,
    "jobName": or_null(
        {
            **TEXT,
            "description": "The job's name as it is now; of a job that is gone, as at the first of these failures.",
        }
    ),
    "action": one_of(
        ("action", "errorAction", *map(hook_owner, HOOK_KINDS)), description="Which of the job's actions failed."
    ),
    "runState": one_of(state for state in State if state in FAILED),
    "reason": or_null(one_of(Reason)),
    "httpStatus": or_null(whole(100, 599)),
    "message": text(description="`#` stands for what differs from run to run."),
    "count": whole(description="Failed runs that nobody has seen to."),
    "countIsLeast": {**FLAG, "description": "Lists look at 1,000 runs of a group."},
    "firstSeenAt": INSTANT_MS,
    "lastSeenAt": {**INSTANT_MS, "description": "To within half a minute."},
    "lastRunId": RUN_ID,
    "expiresAt": or_null({**INSTANT, "description": "When the first of the open ones goes with its retention."}),
    "notes": items(answer({"text": TEXT, "by": or_null(TEXT), "at": INSTANT_MS})),
    "archived": or_null(_ARCHIVED),
}
_ERROR_RUN: Members = {
    "runId": RUN_ID,
    "open": {**FLAG, "description": "Nobody has seen to it."},
    "seenAt": or_null(INSTANT_MS),
    "rerunBy": or_null(RUN_ID),
    "actor": or_null(text(description="Who had it run again.")),
    "operationId": or_null(ID),
    "archived": or_null({**_ARCHIVED, "description": "Of this run alone; its group may be archived beside."}),
    "expiresAt": or_null(INSTANT),
}
SCHEMAS: dict[str, Schema] = {
    "Operation": answer(_OPERATION),
    "OperationPage": page("Operation"),
    "BulkDelete": answer(
        {
            "count": whole(description="Jobs that the filters let through."),
            "deleted": whole(description="Of these, gone with this answer."),
            "operation": or_null(ref("Operation")),
        }
    ),
    "ExportRequest": request(
        {
            "format": one_of(Format, default="csv"),
            "jobId": JOB_FILTER,
            "scheduleId": ID,
            "collection": text(1, 128, description="Runs of the jobs of this collection."),
            "tag": text(1, 128, description="Runs of the jobs that have this tag."),
            "resourceId": text(1, 256, description="Runs of the jobs of this resource."),
            "from": {**GIVEN_INSTANT, "description": "Runs planned at or after this instant."},
            "until": {**GIVEN_INSTANT, "description": "Runs planned at or before this instant."},
            "state": one_of(state for state in State if state is not State.SCHEDULED),
            "kind": one_of(Kind),
            "cursor": text(
                1,
                1_024,
                description="`nextCursor` of the file before, with the same other members; or of a page of this list.",
            ),
        }
    ),
    "RerunRequest": request(EDIT),
    "RedriveRequest": request(
        {
            "runs": items(RUN_ID, minItems=1, maxItems=redrive.MOST_RUNS, description="Or `group`."),
            "group": {**GROUP_ID, "description": "What nobody has seen to in it; in the place of `runs`."},
            "ratePerMinute": _RATE,
            "dryRun": {**FLAG, "description": "Only says how many it would be."},
            "expectedCount": whole(0, 10**9, description="Refused (412) if it would be another number."),
        },
    ),
    "ErrorGroup": answer(_GROUP),
    "ErrorGroupPage": page("ErrorGroup"),
    "ErrorRun": answer(_ERROR_RUN),
    "ErrorRunPage": page("ErrorRun"),
    "NoteDraft": request({"text": text(1, 2_000)}, ("text",)),
    "ArchiveRequest": request({"reason": text(0, 1_000)}),
    "RedirectDraft": request({"to": {**ID, "description": "A job, which is not redirected itself."}}, ("to",)),
    "Redirect": answer({"from": ID, "to": ID, "actor": or_null(TEXT), "createdAt": INSTANT_MS}),
    "RedirectPage": page("Redirect"),
    "Redrive": answer(
        {
            "count": whole(description="Runs that can be run again, as it looks now."),
            "operation": or_null(ref("Operation")),
        }
    ),
}
