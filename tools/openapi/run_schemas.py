"""The schemas of occurrences, runs, reruns and operations."""

from __future__ import annotations

from sweephand.base.json_schema import Members, Schema, answer, items, one_of, or_null, ref, request, text, whole
from sweephand.domain.application import LEASE_S, LONGEST_LEASE_S, MOST_TASKS, SHORTEST_LEASE_S
from sweephand.domain.run import Kind, State
from sweephand.domain.runs.run_file import Format
from sweephand.domain.runs.run_members import ATTEMPT, GROUP_ID, OF_ITS_JOB, RUN
from sweephand.domain.schema_words import (
    FLAG,
    GIVEN_INSTANT,
    ID,
    IN_UTC,
    INSTANT,
    INSTANT_MS,
    JOB_FILTER,
    LOCAL_WITH_OFFSET,
    RUN_ID,
    TEXT,
)
from sweephand.schedules.explain.preview_warnings import CAUTIONS
from sweephand.server.actions.payloads import ANYTHING, MAX_PAYLOAD
from sweephand.server.facades.native.jobs.preview import EXPLANATION
from sweephand.server.facades.native.members.job_members import JOB
from sweephand.server.facades.native.members.schedule_members import MOVED_BY
from sweephand.server.facades.native.operations.operations import OPERATION
from sweephand.server.facades.native.runs.errors import ERROR_RUN, GROUP, REDIRECT, SUMMARY
from sweephand.server.facades.native.runs.occurrences import OCCURRENCE
from sweephand.server.facades.native.runs.report import MOST_ATTEMPTS
from sweephand.server.facades.native.runs.workers import APPLICATION, TASK, VERDICT
from sweephand.server.flow.bulk import redrive
from sweephand.server.flow.errors.summaries import By
from sweephand.server.flow.runs.follow_ups import FIELD, FURTHEST
from sweephand.server.flow.runs.workers import Ended
from tools.openapi.pages_and_patches import page
from tools.openapi.schedule_schemas import ONE_NOTATION, TIMING

OF_RUN: Members = {**RUN.answer(), **{name: each for name, each in JOB.answer().items() if name in OF_ITS_JOB}}
_GAPS = answer(
    {
        "smallestSeconds": whole(1, description="The smallest distance between two occurrences, in seconds."),
        "largestSeconds": whole(1, description="The largest distance between two occurrences, in seconds."),
        "until": INSTANT,
    },
    description="The gaps between the occurrences of the next 366 days, or up to `until`.",
)
_SEARCHED: Members = {"searchedUntil": {**INSTANT, "description": "Later instants were not searched."}}


EDIT: Members = {
    "payload": {**ANYTHING, "description": "JSON that this run sends instead of the job's payload."},
    "body": text(0, MAX_PAYLOAD, description="A string that is sent unchanged; excludes `payload`."),
    "headers": {
        "type": "object",
        "additionalProperties": or_null(TEXT),
        "description": "Headers that replace the action's headers of the same names; null leaves one out.",
    },
}
"""The members that one run sends instead of its job's."""

_OWNER = text(1, 200, description="Identifies the worker and the message. A repeated request has the same value.")
_LEASE = whole(
    SHORTEST_LEASE_S, LONGEST_LEASE_S, default=LEASE_S, description="How long the claim holds without a heartbeat."
)
_VERSION = text(1, 64, description="The version of the worker.")
_NO_OTHER = "Only with `failure`."
WORKERS: dict[str, Schema] = {
    "ApplicationRequest": request(
        {
            "version": _VERSION,
            "tasks": items(
                text(1, 128),
                maxItems=MOST_TASKS,
                description="The tasks that workers of this version know. A run that another worker returned as unknown"
                " goes to a version that knows its task.",
            ),
        }
    ),
    "Application": answer(APPLICATION.answer()),
    "ApplicationPage": page("Application"),
    "ClaimRequest": request(
        {
            "message": text(1, 4_096, description="The body of the message, unchanged."),
            "owner": _OWNER,
            "application": text(1, 64, description="The application whose queue the message came from."),
            "version": _VERSION,
            "leaseSeconds": _LEASE,
            "sentAt": {**GIVEN_INSTANT, "description": "When the queue accepted the message."},
        },
        ("message", "owner", "application"),
    ),
    "ClaimVerdict": answer(VERDICT.answer()),
    "Task": answer(TASK.answer()),
    "Heartbeat": request({"owner": _OWNER, "leaseSeconds": _LEASE}, ("owner",)),
    "LeaseEnd": answer({"leaseUntil": INSTANT_MS}),
    "TaskReport": request(
        {
            "owner": _OWNER,
            "attempt": whole(1, 50),
            "outcome": one_of(
                Ended,
                description="How the attempt ended. `unknown_task`: another worker may know it. "
                "`bad_payload`: no attempt follows. "
                "`discarded`: the run is cancelled.",
            ),
            "message": text(0, 1_000),
            "exception": text(0, 200, description="The type of the exception. Errors are grouped by it."),
            "details": text(
                0,
                16_384,
                description="More about the failure, such as a stack trace. Kept as the answer of the attempt.",
            ),
            "retry": {**FLAG, "default": True, "description": f"Whether another attempt may follow. {_NO_OTHER}"},
            "delaySeconds": whole(0, 3_600, description=f"The shortest wait before the next attempt. {_NO_OTHER}"),
            FIELD: {
                **or_null(ref("Reschedule")),
                "description": "When the job runs again; null: as its schedules say. Only with the outcome `success`.",
            },
        },
        ("owner", "attempt", "outcome"),
    ),
}

SCHEMAS: dict[str, Schema] = {
    "RunRequest": request(
        {
            "scheduleId": {**ID, "description": "Starts a run of this schedule, with its payload."},
            "ifActive": one_of(
                ("start", "drop"),
                default="start",
                description="With `drop`, nothing starts while a run of the job (or of the schedule) is active.",
            ),
            "mode": one_of(
                ("run", "test"),
                default="run",
                description="With `test`, the run is not counted, does not wait for other runs, starts no "
                "hook and no error "
                "action, causes no error group, and switches nothing off. Its kind is `test`.",
            ),
            **EDIT,
        }
    ),
    "PreviewRequest": request(
        {
            **TIMING,
            "collection": text(1, 128, description="The collection whose defaults and quotas apply."),
            "after": {
                **GIVEN_INSTANT,
                "description": f"Shows occurrences after this instant; by default now. {IN_UTC}",
            },
            "limit": whole(1, 1_000, default=5),
            "explain": {**GIVEN_INSTANT, "description": "An instant to explain. " + GIVEN_INSTANT["description"]},
        },
        oneOf=ONE_NOTATION,
    ),
    **WORKERS,
    "Result": request(
        {
            "success": {**FLAG, "description": "Whether the run succeeded."},
            "message": text(0, 1_000),
            FIELD: {
                **or_null(ref("Reschedule")),
                "description": "When the job runs again; null: as its schedules say.",
            },
        },
        ("success",),
    ),
    "Nack": request(
        {"attempt": whole(1, MOST_ATTEMPTS, description="The number of the attempt whose result will not come.")},
        ("attempt",),
    ),
    "Reschedule": request(
        {
            "at": {**GIVEN_INSTANT, "description": f"The instant. {IN_UTC}"},
            "afterSeconds": whole(1, int(FURTHEST.total_seconds()), description="How long from now, instead of `at`."),
            **EDIT,
        },
        description="When the job runs again. The run is written together with the result, so a chain cannot break.",
    ),
    "Occurrence": answer(OCCURRENCE.answer()),
    "OccurrencePage": page("Occurrence", _SEARCHED),
    "Preview": answer(
        {
            "type": one_of(("recurring", "one-time")),
            "summary": {**TEXT, "description": "The schedule as a phrase in plain English."},
            "description": text(description="The summary with the window, limits and effects of clock changes."),
            "items": items(
                answer({"plannedAt": INSTANT, "localTime": LOCAL_WITH_OFFSET, "movedBy": MOVED_BY}),
                description="The next occurrences.",
            ),
            "dropped": items(
                answer({"at": INSTANT, "movedBy": MOVED_BY}),
                maxItems=100,
                description="Wall times that a change of the clock leaves out, because `dstGap` is `skip`.",
            ),
            "leftOut": items(
                answer(
                    {
                        "plannedAt": INSTANT,
                        "calendar": {**TEXT, "description": "The name of the calendar that excludes the instant."},
                    }
                ),
                maxItems=100,
            ),
            "gaps": or_null(_GAPS),
            "warnings": items(
                answer({"code": one_of(CAUTIONS), "message": TEXT}), description="Warnings about the schedule."
            ),
            "explained": or_null(ref("Explanation")),
            "nextCursor": {"type": "null"},
            **_SEARCHED,
            "ianaVersion": text(description="The version of the time-zone data."),
        }
    ),
    "Explanation": answer(EXPLANATION.answer()),
    "Run": answer(OF_RUN),
    "RunPage": page("Run"),
    "RunsFile": {
        "type": "string",
        "description": "CSV (RFC 4180) with a header line, or a Run as JSON on each line.",
    },
    "Attempt": answer(ATTEMPT.answer()),
    "RunStarted": answer(
        {
            "runId": RUN_ID,
            "started": {
                **FLAG,
                "description": "False: nothing was started; `runId` is the id of the active run.",
            },
        }
    ),
}

_RATE = whole(1, redrive.MOST_RATE, default=redrive.USUAL_RATE, description="How many runs begin per minute.")

OPERATIONS: dict[str, Schema] = {
    "Operation": answer(OPERATION.answer()),
    "OperationPage": page("Operation"),
    "BulkDelete": answer(
        {
            "count": whole(description="How many jobs match the filters."),
            "deleted": whole(description="How many were deleted by this request."),
            "operation": or_null(ref("Operation")),
        }
    ),
    "BulkSwitch": answer(
        {
            "count": whole(description="How many jobs match the filters."),
            "changed": whole(description="How many now have the requested state, including those that had it before."),
            "refused": whole(description="How many cannot be switched; they are unchanged."),
            "operation": or_null(ref("Operation")),
        }
    ),
    "ExportRequest": request(
        {
            "format": one_of(Format, default="csv", description="The format of the file."),
            "jobId": JOB_FILTER,
            "scheduleId": {**ID, "description": "Only runs of this schedule."},
            "collection": text(1, 128, description="Only runs of jobs in this collection."),
            "tag": text(1, 128, description="Only runs of jobs with this tag."),
            "resourceId": text(1, 256, description="Only runs of jobs with this resource id."),
            "from": {**GIVEN_INSTANT, "description": f"Only runs planned at or after this instant. {IN_UTC}"},
            "until": {**GIVEN_INSTANT, "description": f"Only runs planned at or before this instant. {IN_UTC}"},
            "state": one_of(
                (state for state in State if state is not State.SCHEDULED), description="Only runs in this state."
            ),
            "kind": one_of(Kind, description="Only runs of this kind."),
            "cursor": text(
                1,
                1_024,
                description="`nextCursor` of the previous file, with the same other members, or of a page "
                "of `GET /v1/runs`.",
            ),
        }
    ),
    "RerunRequest": request(EDIT),
    "RedriveRequest": request(
        {
            "runs": items(
                RUN_ID,
                minItems=1,
                maxItems=redrive.MOST_RUNS,
                description="The runs to run again, instead of `group` or `filter`.",
            ),
            "group": {
                **GROUP_ID,
                "description": "The group whose unresolved runs are run again, instead of `runs` or `filter`.",
            },
            "filter": {
                **request(
                    {
                        "jobId": JOB_FILTER,
                        "collection": text(1, 128),
                        "tag": text(1, 128, description="Only groups of jobs with this tag."),
                        "resourceId": text(1, 256),
                        "from": GIVEN_INSTANT,
                        "until": GIVEN_INSTANT,
                    }
                ),
                "description": "Reruns the unresolved runs of all groups that `GET /v1/errors` lists with these "
                f"parameters, up to {redrive.MOST_GROUPS} groups. Takes the place of `runs` and `group`.",
            },
            "ratePerMinute": _RATE,
            "dryRun": {**FLAG, "description": "Only counts; changes nothing."},
            "expectedCount": whole(0, 10**9, description="Refused (412) if another number matches."),
        },
    ),
    "ErrorGroup": answer(GROUP.answer()),
    "ErrorGroupPage": page("ErrorGroup"),
    "ErrorSummary": answer(
        {
            "groupBy": one_of(By, description="The value that the errors of a sum share, as in the query."),
            "items": items(ref("ErrorSum"), description="Most runs first."),
            "complete": {**FLAG, "description": "True: all groups are summed up. False: only the latest 500."},
        }
    ),
    "ErrorSum": answer(SUMMARY.answer()),
    "ErrorRun": answer(ERROR_RUN.answer()),
    "ErrorRunPage": page("ErrorRun"),
    "NoteDraft": request({"text": text(1, 2_000)}, ("text",)),
    "ArchiveRequest": request({"reason": text(0, 1_000, description="Why it is archived, for people.")}),
    "RedirectDraft": request(
        {"to": {**ID, "description": "The job that runs them. It must not be redirected itself."}}, ("to",)
    ),
    "Redirect": answer(REDIRECT.answer()),
    "RedirectPage": page("Redirect"),
    "Redrive": answer(
        {
            "count": whole(description="How many runs can currently be run again."),
            "operation": or_null(ref("Operation")),
        }
    ),
}
