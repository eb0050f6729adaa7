"""The names of the SDK's methods, by their operations in openapi.json. Written by hand."""

from __future__ import annotations

from collections.abc import Mapping

METHODS: Mapping[str, Mapping[str, str]] = {
    "applications": {
        "listApplications": "list",
        "readApplication": "get",
        "deleteApplication": "delete",
        "registerApplication": "register",
    },
    "jobs": {
        "createJob": "create",
        "listJobs": "list",
        "readJob": "get",
        "putJob": "put",
        "putNamedJob": "upsert",
        "patchJob": "patch",
        "deleteJob": "delete",
        "deleteJobs": "delete_matching",
        "runJob": "run",
        "pauseJob": "pause",
        "resumeJob": "resume",
        "activateJob": "activate",
        "deactivateJob": "deactivate",
        "activateJobs": "activate_matching",
        "deactivateJobs": "deactivate_matching",
        "pauseJobs": "pause_matching",
        "resumeJobs": "resume_matching",
        "nextRun": "next",
        "occurrences": "occurrences",
        "listChanges": "changes",
    },
    "schedules": {
        "createSchedule": "create",
        "listSchedules": "list",
        "readSchedule": "get",
        "putSchedule": "put",
        "patchSchedule": "patch",
        "deleteSchedule": "delete",
        "activateSchedule": "activate",
        "deactivateSchedule": "deactivate",
        "explainSchedule": "explain",
        "previewSchedule": "preview",
    },
    "runs": {
        "listRuns": "list",
        "readRun": "get",
        "putResult": "report",
        "giveBack": "nack",
        "cancelRun": "cancel",
        "rerunRun": "rerun",
        "beginExportFiles": "export",
        "claimRun": "claim",
        "heartbeatRun": "heartbeat",
        "settleRun": "settle",
    },
    "messages": {
        "createMessage": "send",
        "listMessages": "list",
        "readMessage": "get",
        "deleteMessage": "revoke",
    },
    "errors": {
        "listErrors": "list",
        "readError": "get",
        "listErrorRuns": "runs",
        "readErrorSummary": "summary",
        "addNote": "add_note",
        "archiveError": "archive",
        "restoreError": "restore",
        "archiveErrorRun": "archive_run",
        "restoreErrorRun": "restore_run",
        "redriveErrors": "redrive",
    },
    "error_redirects": {"listRedirects": "list", "putRedirect": "put", "deleteRedirect": "delete"},
    "operations": {
        "listOperations": "list",
        "readOperation": "get",
        "pauseOperation": "pause",
        "resumeOperation": "resume",
        "cancelOperation": "cancel",
    },
    "collections": {
        "createCollection": "create",
        "listCollections": "list",
        "readCollection": "get",
        "putCollection": "put",
        "patchCollection": "patch",
        "deleteCollection": "delete",
        "enableCollection": "enable",
        "disableCollection": "disable",
    },
    "overview": {
        "readTimeline": "timeline",
        "readTimelineChanges": "changes",
        "readLoad": "load",
        "listAttention": "attention",
    },
    "signing_keys": {"createSigningKey": "create", "listSigningKeys": "list", "deleteSigningKey": "delete"},
    "job_sets": {
        "listJobSets": "list",
        "readJobSet": "get",
        "putJobSet": "put",
        "deleteJobSet": "delete",
        "releaseJobSet": "release",
    },
    "consumers": {
        "listConsumers": "list",
        "readConsumer": "get",
        "deleteConsumer": "delete",
        "takeLease": "take_lease",
        "releaseLease": "release_lease",
        "startConsumer": "start",
    },
    "calendars": {
        "createCalendars": "create",
        "listCalendars": "list",
        "readCalendars": "get",
        "putCalendars": "put",
        "deleteCalendars": "delete",
        "listVersions": "versions",
        "readVersion": "get_version",
    },
    "flow_keys": {
        "createFlowKeys": "create",
        "listFlowKeys": "list",
        "readFlowKeys": "get",
        "putFlowKeys": "put",
        "patchFlowKeys": "patch",
        "deleteFlowKeys": "delete",
        "pauseFlowKeys": "pause",
        "resumeFlowKeys": "resume",
    },
    "credentials": {
        "createCredentials": "create",
        "listCredentials": "list",
        "rotateCredentials": "rotate",
        "endFormerSecret": "end_former_secret",
        "deleteCredentials": "delete",
    },
    "tenants": {
        "createTenant": "create",
        "listTenants": "list",
        "readTenant": "get",
        "patchTenant": "patch",
        "deleteTenant": "delete",
        "enableTenant": "enable",
        "disableTenant": "disable",
    },
    "subscriptions": {
        "listSubscriptions": "list",
        "subscribeTenant": "subscribe",
        "unsubscribeTenant": "unsubscribe",
    },
    "service": {"health": "health"},
}
"""The names of methods: resource -> operation -> name."""

LEFT_OUT = {
    "readDocument": "the SDK is made from it",
    "exportRuns": "runs.list returns the same rows, and runs.export writes them to a file",
    "readKeys": "for programs that verify the stack's tokens",
    "readConfiguration": "for programs that verify the stack's tokens",
    "listProblems": "pages for people; ApiError.help leads to them",
    "readProblem": "pages for people; ApiError.help leads to them",
    "token": "the SDK uses Basic authentication",
}
"""Operations without a method, with the reasons."""

SEVERAL = {"createMessage": ("messages", "send_many", "Sends up to 25 messages, each of which has its own answer.")}
"""Operations that take one thing or, in a member, several: the member, the second method and its text."""
FIRST = {
    **dict.fromkeys(("createJob", "putNamedJob"), ("name", "action", "schedules")),
    "createMessage": ("action",),
    "sendMany": ("messages",),
    "addNote": ("text",),
    "putRedirect": ("to",),
}
"""Members of a body, and required parameters, that become positional arguments."""
ONE_OR_MORE = {"schedules"}
"""Members that take an array or a single element."""

OWN_IDS: Mapping[str, str] = {
    "job": "jobId",
    "run": "runId",
    "message": "id",
    "failed_run": "runId",
    "schedule": "scheduleId",
}
"""For each path parameter, the member of an answer that contains the id of such a resource."""
