"""The members of every answer, as the description of the API lists them: no more, no fewer."""

from __future__ import annotations

import re
from typing import Any

from sweephand.domain.run import Kind

ID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
RUN_ID = rf"{ID.replace('-7', '-[78]')}_[0-9a-f]{{8}}-[0-9a-f]{{4}}-8[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}"
SECONDS = r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z"
MILLISECONDS = SECONDS.replace("Z", r"\.[0-9]{3}Z")

TOTALS = {"planned", "open", "succeeded", "failed", "failedAttempts", "skipped", "missed", "exact"}
LISTED_JOB = {
    *(
        "id",
        "name",
        "description",
        "collection",
        "facade",
        "jobSet",
        "key",
        "revision",
        "createdAt",
        "modifiedAt",
        "active",
        "state",
    ),
    *(
        "stateReason",
        "pause",
        "held",
        "pendingChange",
        "resourceId",
        "tags",
        "startTime",
        "endTime",
        "nextRunAt",
        "nextRunExact",
        "action",
        "errorAction",
    ),
    "hooks",
    "policies",
}
JOB = LISTED_JOB | {"totals"}
LISTED_ACTION = {"type", "method", "url", "headers", "authentication", "outcome", "retry"}
ACTION = LISTED_ACTION | {"payload", "body"}
OUTCOME = {"answerTimeoutSeconds", "successStatuses", "on202", "onNoAnswer", "callbackTimeoutSeconds"}
POLICIES = {
    *(
        "misfire",
        "overlap",
        "onPastStart",
        "onEnable",
        "onCreate",
        "onNothingLeft",
        "onUnreachable",
        "onNoResult",
        "afterEnd",
        "delivery",
        "keepAnswer",
        "callbackToken",
        "totals",
    ),
    "hooks",
    "flowKey",
}
MISFIRE = {"type", "ratePerMinute", "maxLatenessSeconds"}
SCHEDULE = {
    *("id", "jobId", "name", "active", "state", "stateReason", "held", "type", "summary", "timezone", "startTime"),
    "endTime",
    *(
        "calendars",
        "count",
        "jitterSeconds",
        "payload",
        "hooks",
        "policies",
        "createdAt",
        "modifiedAt",
        "nextRunAt",
        "nextRuns",
        "nextRunsExact",
        "lastRun",
    ),
    "totals",
}
OF_NOTATION = {
    "at": {"at"},
    "every": {"every", "align", "dstGap", "dstOverlap", "monthOverflow"},
    "cron": {"cron", "dstGap", "dstOverlap", "monthOverflow"},
    "eventBridge": {"eventBridge", "dstGap", "dstOverlap", "monthOverflow"},
    "sapCron": {"sapCron", "dstGap", "dstOverlap", "monthOverflow"},
    "time": {"time"},
    "rrule": {"rrule", "dstGap", "dstOverlap", "monthOverflow"},
    "repeatAt": {"repeatAt", "dstGap", "dstOverlap", "monthOverflow"},
    "recurrence": {"recurrence", "dstGap", "dstOverlap", "monthOverflow"},
}
RUN = {
    *("id", "jobId", "jobName", "scheduleId", "kind", "status", "state", "reason", "httpStatus", "plannedAt"),
    *("enqueuedAt", "startedAt", "finishedAt", "latenessMs", "attempt", "maxAttempts", "nextAttemptAt"),
    *(
        "callbackDeadlineAt",
        "answer",
        "message",
        "parentRunId",
        "rerunOf",
        "rerunBy",
        "reportedBy",
        "range",
        "attempts",
        "errorGroupId",
    ),
    *("notes", "expiresAt"),
}
ATTEMPT = {
    *("attempt", "state", "plannedAt", "enqueuedAt", "startedAt", "finishedAt", "durationMs"),
    *("reason", "httpStatus", "message", "answer"),
}
OCCURRENCE = {"scheduleId", "plannedAt", "state", "reason", "runId", "movedBy", "calendar"}
COLLECTION = {
    *(
        "name",
        "facade",
        "attributes",
        "state",
        "quota",
        "retention",
        "events",
        "defaults",
        "callbackTimeoutSeconds",
        "redirects",
        "flowKey",
        "jobCount",
        "revision",
        "createdAt",
        "createdBy",
        "modifiedAt",
        "modifiedBy",
    ),
}
QUOTA = {"maxJobs", "maxRunsPerJob", "minIntervalSeconds"}
TENANT = {
    *("tenant", "description", "state", "quota", "usage", "withheldScopes", "deletedBy"),
    *("createdAt", "createdBy", "modifiedAt", "modifiedBy"),
}
CREDENTIAL = {"clientId", "name", "scopes", "createdAt", "createdBy", "rotatedAt", "rotatedBy", "formerSecretUntil"}


def check_job(body: dict[str, Any], *, listed: bool = False, schedules: bool = False) -> None:
    members = (LISTED_JOB if listed and not schedules else JOB) | ({"schedules"} if schedules else set())
    assert body.keys() == members
    assert re.fullmatch(ID, body["id"])
    assert body["facade"] == "native"
    assert body["state"] in {"ACTIVE", "INACTIVE", "PAUSED", "COMPLETED", "FAULTED"}
    for name in ("createdAt", "modifiedAt"):
        assert re.fullmatch(MILLISECONDS, body[name])
    for name in ("startTime", "endTime", "nextRunAt"):
        assert body[name] is None or re.fullmatch(SECONDS, body[name])
    for name in ("action", "errorAction"):
        if body[name] is not None:
            check_action(body[name], listed=listed)
    assert body["policies"].keys() == POLICIES
    assert body["policies"]["misfire"].keys() == MISFIRE
    if "totals" in members:
        check_totals(body["totals"])
    for schedule in body.get("schedules", ()):
        check_schedule(schedule, listed=listed)
        assert schedule["jobId"] == body["id"]


def check_action(body: dict[str, Any], *, listed: bool) -> None:
    assert body.keys() == (LISTED_ACTION if listed else ACTION)
    assert body["outcome"].keys() == OUTCOME
    assert body["outcome"]["on202"] in {"success", "wait"}


def check_schedule(body: dict[str, Any], *, listed: bool = False) -> None:
    (notation,) = OF_NOTATION.keys() & body.keys()
    assert body.keys() == (SCHEDULE | OF_NOTATION[notation]) - ({"payload", "hooks"} if listed else set())
    assert re.fullmatch(ID, body["id"])
    assert body["state"] in {"ACTIVE", "INACTIVE", "PAUSED", "ENDING", "COMPLETED", "BROKEN"}
    assert body["type"] == ("one-time" if notation in ("at", "time") else "recurring")
    assert len(body["nextRuns"]) <= 5
    assert all(re.fullmatch(SECONDS, instant) for instant in body["nextRuns"])
    assert body["nextRuns"] == sorted(set(body["nextRuns"]))
    assert body["lastRun"] is None or body["lastRun"].keys() == {"id", "state"}
    check_totals(body["totals"])


def check_totals(body: dict[str, int]) -> None:
    assert body.keys() == TOTALS
    assert isinstance(body["exact"], bool)
    assert all(isinstance(number, int) and number >= 0 for number in body.values())


def check_run(body: dict[str, Any]) -> None:
    assert body.keys() == RUN
    assert re.fullmatch(RUN_ID, body["id"])
    for name in ("plannedAt", "enqueuedAt", "startedAt", "finishedAt", "nextAttemptAt", "callbackDeadlineAt"):
        assert body[name] is None or re.fullmatch(MILLISECONDS, body[name])
    assert body["kind"] in {kind.value for kind in Kind}
    assert body["status"] in {"SCHEDULED", "RUNNING", "COMPLETED"}
    for attempt in body["attempts"]:
        assert attempt.keys() == ATTEMPT


def check_page(body: dict[str, Any], *more: str) -> None:
    assert body.keys() == {"items", "nextCursor", *more}
    assert isinstance(body["nextCursor"], str | None)
