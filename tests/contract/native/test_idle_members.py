"""Nothing is accepted and ignored: every member of every request acts, or is refused by its name with the reason.

The members come from the schemas. One without an entry here fails the first test.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sweephand.server.facades.native.members import message_members
from sweephand.server.facades.native.members.job_members import JOB as JOB_MEMBERS
from tests.contract.native.api import JOB
from tests.contract.native.members import all_members

ARN, ROLE = "arn:aws:sqs:eu-central-1:210987654321:orders", "arn:aws:iam::210987654321:role/jobs"
URL = "https://example.org/run"
AT, EVERY, CRON = {"at": "2027-04-01T09:00:00Z"}, {"every": "PT1H"}, {"cron": "0 9 * * *"}


def action(**members: Any) -> dict[str, Any]:
    return {"action": {"type": "http", "url": URL, **members}}


def schedule(**members: Any) -> dict[str, Any]:
    return {**action(), "schedules": [members]}


def retry(**members: Any) -> dict[str, Any]:
    return action(retry=members)


def policies(**members: Any) -> dict[str, Any]:
    return {**JOB, "policies": members}


def authentication(**members: Any) -> dict[str, Any]:
    return action(authentication=members)


OF_RETRY, OF_AUTH = "action.retry", "action.authentication"
IDLE: dict[str, list[tuple[dict[str, Any], str]]] = {
    "EventAction[event].missed": [({"action": {"type": "event", "missed": {"limit": 5}}}, "action.missed")],
    "Retry.type": [(retry(maxRetries=3), f"{OF_RETRY}.maxRetries")],
    "Retry.maxRetries": [
        (retry(maxRetries=3, delaySeconds=1), f"{OF_RETRY}.maxRetries"),
        (retry(type="none", maxRetries=5), f"{OF_RETRY}.maxRetries"),
        (retry(type="two_level", maxRetries=5), f"{OF_RETRY}.maxRetries"),
        (
            {**action(), "errorAction": {"type": "http", "url": URL, "retry": {"maxRetries": 3}}},
            "errorAction.retry.maxRetries",
        ),
        (
            {**action(), "hooks": {"onMissed": {"type": "event", "retry": {"maxRetries": 3}}}},
            "hooks.onMissed.retry.maxRetries",
        ),
    ],
    "Retry.delaySeconds": [
        (retry(type="none", delaySeconds=1), f"{OF_RETRY}.delaySeconds"),
        (retry(type="two_level", delaySeconds=1), f"{OF_RETRY}.delaySeconds"),
        (retry(type="fixed", maxRetries=0, delaySeconds=1), f"{OF_RETRY}.delaySeconds"),
    ],
    "Retry.maxDelaySeconds": [
        (retry(type="fixed", maxDelaySeconds=60), f"{OF_RETRY}.maxDelaySeconds"),
        (retry(type="none", maxDelaySeconds=60), f"{OF_RETRY}.maxDelaySeconds"),
        (retry(type="exponential", maxRetries=0, maxDelaySeconds=60), f"{OF_RETRY}.maxDelaySeconds"),
    ],
    "Retry.immediate": [(retry(type="fixed", immediate=5), f"{OF_RETRY}.immediate")],
    "Retry.delayed": [(retry(type="exponential", delayed=3), f"{OF_RETRY}.delayed")],
    "Retry.increaseSeconds": [
        (retry(type="fixed", increaseSeconds=3), f"{OF_RETRY}.increaseSeconds"),
        (retry(type="two_level", delayed=0, increaseSeconds=3), f"{OF_RETRY}.increaseSeconds"),
    ],
    "Retry.retryOn": [
        (retry(retryOn="any"), f"{OF_RETRY}.retryOn"),
        (retry(type="fixed", maxRetries=0, retryOn="any"), f"{OF_RETRY}.retryOn"),
    ],
    "Retry.neverOn": [(retry(type="none", neverOn=["4xx"]), f"{OF_RETRY}.neverOn")],
    "Retry.maxAgeSeconds": [
        (retry(type="none", maxAgeSeconds=60), f"{OF_RETRY}.maxAgeSeconds"),
        (retry(type="two_level", immediate=0, delayed=0, maxAgeSeconds=60), f"{OF_RETRY}.maxAgeSeconds"),
    ],
    "Misfire.ratePerMinute": [
        (policies(misfire={"type": "latest", "ratePerMinute": 60}), "policies.misfire.ratePerMinute"),
        (policies(misfire={"type": "skip", "ratePerMinute": 5}), "policies.misfire.ratePerMinute"),
        (
            schedule(**AT, policies={"misfire": {"type": "all", "ratePerMinute": 5}}),
            "schedules[0].policies.misfire.ratePerMinute",
        ),
    ],
    "Policies.flowKey": [(schedule(**EVERY, policies={"flowKey": "x"}), "schedules[0].policies.flowKey")],
    "Policies.afterEnd": [(schedule(**EVERY, policies={"afterEnd": "final"}), "schedules[0].policies.afterEnd")],
    "Policies.onNoResult": [
        (policies(onNoResult="retry"), "policies.onNoResult"),
        (schedule(**EVERY, policies={"onNoResult": "retry"}), "schedules[0].policies.onNoResult"),
    ],
    "Policies.onPastStart": [
        (schedule(**each, policies={"onPastStart": value}), "schedules[0].policies.onPastStart")
        for each in (EVERY, CRON, {"eventBridge": "rate(5 minutes)"}, {"rrule": "FREQ=DAILY"})
        for value in ("run_now", "refuse")
    ],
    "Policies.onEnable": [
        (schedule(**each, policies={"onEnable": "run_now"}), "schedules[0].policies.onEnable") for each in (EVERY, CRON)
    ],
    "Policies.onCreate": [
        (schedule(**each, policies={"onCreate": "run_now"}), "schedules[0].policies.onCreate")
        for each in (AT, {"time": "in 5 minutes"}, {"eventBridge": "at(2027-04-01T09:00:00)"})
    ],
    "Schedule.align": [(schedule(**each, align="clock"), "schedules[0].align") for each in (CRON, AT)],
    "Schedule.count": [(schedule(**each, count=3), "schedules[0].count") for each in (AT, {"time": "in 5 minutes"})],
    "Schedule.startTime": [(schedule(time="in 5 minutes", startTime="2027-03-02T00:00:00Z"), "schedules[0].startTime")],
    "Schedule.monthOverflow": [(schedule(**AT, monthOverflow="clamp"), "schedules[0].monthOverflow")],
    "Schedule.at": [(schedule(**AT, **EVERY), "schedules[0].every")],
    "Schedule.every": [(schedule(**EVERY, **CRON), "schedules[0].cron")],
    "Authentication[none].type": [(authentication(type="none", token="x"), f"{OF_AUTH}.token")],
    "Authentication[basic].username": [(authentication(type="bearer", token="x", username="x"), f"{OF_AUTH}.username")],
    "Authentication[basic].password": [(authentication(type="bearer", token="x", password="x"), f"{OF_AUTH}.password")],
    "Authentication[bearer].token": [
        (authentication(type="basic", username="x", password="x", token="x"), f"{OF_AUTH}.token")
    ],
    "Authentication[apiKey].header": [(authentication(type="bearer", token="x", header="X-A"), f"{OF_AUTH}.header")],
    "Authentication[apiKey].value": [(authentication(type="bearer", token="x", value="x"), f"{OF_AUTH}.value")],
    "Authentication[oauth2].scope": [(authentication(type="bearer", token="x", scope="x"), f"{OF_AUTH}.scope")],
    "HttpAction[http].body": [
        (action(method="GET", body="x"), "action.body"),
        (action(body="x", payload={"a": 1}), "action.body"),
    ],
    "HttpAction[http].payload": [(action(method="DELETE", payload=[1]), "action.payload")],
    "JobAction[job].payload": [
        (
            {
                **action(),
                "errorAction": {"type": "job", "jobId": "01a400f6-36fa-71e9-9550-323b38da5e82", "payload": {"a": 1}},
            },
            "errorAction.payload",
        )
    ],
    "SqsAction[sqs].messageGroupId": [
        ({"action": {"type": "sqs", "targetArn": ARN, "roleArn": ROLE, "messageGroupId": "g"}}, "action.messageGroupId")
    ],
}
"""For each member: bodies of `POST /v1/jobs` in which something does not act, and the field that is blamed."""

ACTS: dict[str, list[str]] = {
    "it is required, or says what the thing is": [
        *(
            f"Authentication[{kind}].type"
            for kind in ("apiKey", "basic", "bearer", "clientCertificate", "oauth2", "sigv4", "sweephand")
        ),
        *("Authentication[oauth2].clientId", "Authentication[oauth2].secret", "Authentication[oauth2].tokenUrl"),
        *("Authentication[sigv4].region", "Authentication[sigv4].roleArn", "Authentication[sigv4].service"),
        *("Authentication[clientCertificate].pem", "Authentication[clientCertificate].pfx"),
        *("Calendar.name", "Collection.name", "Credential.name", "FlowKey.name", "Tenant.name", "Tenant.tenant"),
        *(
            "Note.text",
            "Redirect.to",
            "Result.success",
            "Nack.attempt",
            "FlowKey.rate",
            "FlowKey.rate.limit",
            "FlowKey.rate.periodSeconds",
        ),
        *("Job.action", "Job.name", "Schedule.name", "Schedule.id", "HttpAction[http].type", "HttpAction[http].url"),
        *(
            "JobAction[job].type",
            "JobAction[job].jobId",
            "Misfire.type",
            "Policies.misfire",
            "Calendar.ranges.from",
            "Calendar.ranges.to",
        ),
        *(
            "SharedAccessKey[sharedAccessKey].sasKey",
            "SharedAccessKey[sharedAccessKey].sasKeyName",
            "SharedAccessKey[sharedAccessKey].type",
        ),
        *("TokenRequest.grant_type", "TokenRequest.client_id", "TokenRequest.client_secret", "TokenRequest.scope"),
    ],
    "it is shown, listed or filtered by": [
        *(
            "Job.description",
            "Job.collection",
            "Job.resourceId",
            "Job.tags",
            "Calendar.description",
            "FlowKey.description",
        ),
        *("Tenant.description", "ArchiveRequest.reason", "PauseRequest.note", "FlowKeyPause.note", "Result.message"),
        *(
            f"ExportRequest.{name}"
            for name in (
                "collection",
                "cursor",
                "format",
                "from",
                "jobId",
                "kind",
                "resourceId",
                "scheduleId",
                "state",
                "tag",
                "until",
            )
        ),
    ],
    "an entry of a set is a job: what does not act is refused as for POST /v1/jobs": [
        *("JobSet.jobs", "JobSet.jobs.key", "JobSet.jobs.was"),
        *(f"JobSet.jobs.{name}" for name in (*JOB_MEMBERS.sent, "schedules")),
        *(f"JobSet.jobs.hooks.{name}" for name in ("onFailure", "onMissed", "onSuccess")),
    ],
    "it holds for what follows, also for schedules and jobs that are added later": [
        *(
            "Job.active",
            "Job.startTime",
            "Job.endTime",
            "Job.errorAction",
            "Job.hooks",
            "Job.policies",
            "Job.schedules",
        ),
        *(f"{owner}.hooks.{name}" for owner in ("Job", "Schedule") for name in ("onFailure", "onMissed", "onSuccess")),
        *("Schedule.active", "Schedule.hooks", "Schedule.policies", "Schedule.payload"),
        *(
            "Policies.delivery",
            "Policies.keepAnswer",
            "Policies.totals",
            "Policies.onNothingLeft",
            "Policies.onUnreachable",
            "Policies.overlap",
        ),
        *("Policies.callbackToken", "Misfire.maxLatenessSeconds"),
        *(
            "Collection.callbackTimeoutSeconds",
            "Collection.defaults",
            "Collection.defaults.policies",
            "Collection.defaults.retry",
        ),
        *(
            "Collection.defaults.timezone",
            "Collection.events",
            "Collection.flowKey",
            "Collection.quota",
            "Collection.redirects",
        ),
        *(f"Collection.quota.{name}" for name in ("maxJobs", "maxRunsPerJob", "minIntervalSeconds")),
        *("Collection.retention", "Collection.retention.endedJobDays", "Collection.retention.runDays"),
        *("Tenant.quota", "Tenant.withheldScopes", "Credential.scopes", "CredentialRotation.overlapSeconds"),
        *(
            f"Tenant.quota.{name}"
            for name in ("maxDescendants", "maxJobs", "maxSchedules", "minIntervalSeconds", "runsPerMinute")
        ),
        *("PauseRequest.until", "FlowKey.parallelism", "FlowKey.circuit", "FlowKey.circuit.enabled"),
    ],
    "a switch turns it off for a while, and it is kept until it is on again": [
        *("FlowKey.circuit.failures", "FlowKey.circuit.probeSeconds"),
    ],
    "it is a filter, which may name more than there is": ["Policies.hooks", "Outcome.successStatuses"],
    "every answer of the target, or its silence, is judged by it": [
        *("HttpAction[http].outcome", "Outcome.answerTimeoutSeconds", "Outcome.on202", "Outcome.onNoAnswer"),
        *("TakenOutcome.answerTimeoutSeconds", "TakenOutcome.onAccepted", "TaskOutcome.answerTimeoutSeconds"),
    ],
    "a schedule's own callbackToken makes its runs wait by it": [
        *(
            "Outcome.callbackTimeoutSeconds",
            "TakenOutcome.callbackTimeoutSeconds",
            "TaskOutcome.callbackTimeoutSeconds",
        ),
    ],
    "it goes to the target as it is": [
        *(
            "HttpAction[http].authentication",
            "HttpAction[http].headers",
            "HttpAction[http].method",
            "HttpAction[http].retry",
        ),
        *("Authentication[oauth2].audience", "Authentication[oauth2].resource", "Authentication[oauth2].credentialsIn"),
        *("Authentication[clientCertificate].password", "JobAction[job].retry", "JobAction[job].body"),
        *("RerunRequest.body", "RerunRequest.headers", "RerunRequest.payload"),
        *("Result.reschedule", "TaskReport.reschedule", *(f"Reschedule.{each}" for each in ("at", "afterSeconds"))),
        *(f"Reschedule.{each}" for each in ("body", "headers", "payload")),
        *(
            "RunRequest.body",
            "RunRequest.headers",
            "RunRequest.payload",
            "RunRequest.ifActive",
            "RunRequest.mode",
            "RunRequest.scheduleId",
        ),
    ],
    "a dry run is the same request that changes nothing, and checks the same": [
        *("RedriveRequest.dryRun", "RedriveRequest.expectedCount", "RedriveRequest.group"),
        *("RedriveRequest.filter", *(f"RedriveRequest.filter.{each}" for each in ("jobId", "collection", "tag"))),
        *(f"RedriveRequest.filter.{each}" for each in ("resourceId", "from", "until")),
        *("RedriveRequest.ratePerMinute", "RedriveRequest.runs"),
    ],
    "its notation reads it, and refuses what does not act (tests/unit/schedules)": [
        *(
            f"{owner}.{name}"
            for owner in ("Schedule", "PreviewRequest")
            for name in (
                *("cron", "eventBridge", "repeatAt", "rrule", "sapCron", "time", "recurrence", "dstGap", "dstOverlap"),
                *("calendars", "endTime", "jitterSeconds"),
            )
        ),
        *("Time.date", "Time.format", "CalendarUses.mode", "CalendarUses.name", "CalendarUses.roll"),
        *("Recurrence.frequency", "Recurrence.interval", "Recurrence.schedule"),
        *(
            f"Recurrence.schedule.{name}"
            for name in (
                *("hours", "minutes", "monthDays", "monthlyOccurrences", "monthlyOccurrences.day"),
                *("monthlyOccurrences.occurrence", "weekDays"),
            )
        ),
    ],
    "it says who the worker is and how its task ended; what goes with other outcomes only is refused": [
        *("ApplicationRequest.version", "ApplicationRequest.tasks"),
        *(f"ClaimRequest.{name}" for name in ("message", "owner", "application", "version", "leaseSeconds", "sentAt")),
        *("Heartbeat.owner", "Heartbeat.leaseSeconds", "TaskReport.retry", "TaskReport.delaySeconds"),
        *(f"TaskReport.{name}" for name in ("owner", "attempt", "outcome", "message", "exception", "details")),
    ],
    "local times are read and shown in it": ["Schedule.timezone", "PreviewRequest.timezone", "Calendar.timezone"],
    "it says what a calendar holds": [
        *("Calendar.dates", "Calendar.iCalendar", "Calendar.ranges", "Calendar.weekly", "Calendar.weekly.days"),
        *("Calendar.weekly.from", "Calendar.weekly.to"),
    ],
    "while the consumer is away, or at its start, runs are held, kept and chosen by it": [
        *("EventAction[event].consumer", "Missed.keepSeconds", "Missed.limit", "Missed.mode"),
    ],
    "it says whose lease it is, and how long": ["LeaseRequest.holder", "LeaseRequest.seconds", "StartRequest.holder"],
    "it says what a message sends and when; test_posted.py has the company in which it is refused": [
        *(f"{noun}.{name}" for noun in ("Message", "MessageRequest") for name in message_members.REQUEST),
        *(f"Message.policies.{name}" for name in message_members.OWN_POLICIES),
        *(f"MessageRequest.policies.{name}" for name in message_members.OWN_POLICIES),
        "MessageRequest.messages",
    ],
    "it says what a preview shows": [
        *(f"PreviewRequest.{name}" for name in ("after", "limit", "explain", "collection", "at", "every")),
    ],
}
"""For each reason: members that act in any company."""
OF_PREVIEWS = {f"PreviewRequest.{name}" for name in ("align", "count", "startTime", "monthOverflow")}
"""Refused as of a schedule: see the test of previews."""
KINDS = (
    "Azure",
    "Brokered",
    "Ecs",
    "EventAction",
    "Events",
    "JobByKey",
    "Lambda",
    "QueueAction",
    "Sns",
    "Sqs",
    "States",
)
OF_TARGETS = {
    *("type", "payload", "body", "outcome", "retry", "targetArn", "roleArn", "authentication"),
    *("brokeredMessageProperties", "customMessageProperties", "namespace", "queueName", "topicPath", "transportType"),
    *(
        "application",
        "task",
        "version",
        "region",
        "sasToken",
        "storageAccount",
        "command",
        "container",
        "cpuUnits",
        "diskGiB",
        "environment",
        "jobKey",
    ),
    *("memoryMiB", "taskDefinition", "detailType", "source", "envelope", "invocation", "subject", "messageGroupId"),
    *("contentType", "correlationId", "forcePersistence", "label", "messageId", "partitionKey", "replyTo"),
    *("replyToSessionId", "scheduledEnqueueTimeUtc", "sessionId", "timeToLiveSeconds", "to", "viaPartitionKey"),
}
"""Members of those kinds of actions: each goes to its target. Members that act only in some company stand in IDLE."""


def _known() -> set[str]:
    return {*IDLE, *OF_PREVIEWS, *(name for names in ACTS.values() for name in names)}


def test_every_member_of_every_request_has_an_entry():
    members = all_members()
    of_targets = {name for name in members if name.startswith(KINDS) and name.rpartition(".")[2] in OF_TARGETS}

    assert members - of_targets - _known() == set(), "add what it does, or the company in which it does not act"
    assert _known() - members == set(), "gone from the schemas"


@pytest.mark.parametrize(
    ("body", "field"),
    [pytest.param(*each, id=f"{name}-{n}") for name, found in IDLE.items() for n, each in enumerate(found)],
)
def test_a_member_without_effect_is_refused_by_name(shared, body, field):
    reply = shared("POST", "/v1/jobs", body)

    assert reply.status == 422, reply.text
    assert field in reply.fields, reply.text


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({**CRON, "align": "clock"}, "align"),
        ({**AT, "count": 2}, "count"),
        ({"time": "in 5 minutes", "startTime": "2027-03-02T00:00:00Z"}, "startTime"),
        ({**AT, "monthOverflow": "clamp"}, "monthOverflow"),
    ],
)
def test_a_preview_refuses_the_same_members_as_a_schedule(shared, members, field):
    reply = shared("POST", "/v1/schedules:preview", members)

    assert (reply.status, reply.fields) == (422, [field]), reply.text


@pytest.mark.parametrize("member", ["retry", "policies"])
def test_the_defaults_of_a_collection_follow_the_same_rules(shared, member):
    idle = {"retry": {"maxRetries": 3}, "policies": {"misfire": {"type": "skip", "ratePerMinute": 5}}}

    reply = shared("POST", "/v1/collections", {"name": "c", "defaults": {member: idle[member]}})

    assert reply.status == 422
    assert reply.fields[0].startswith(f"defaults.{member}.")


# A body that was read can be sent back, and a patch changes only the members that it names


@pytest.mark.parametrize(
    "given",
    [
        {"type": "none"},
        {"type": "fixed", "maxRetries": 0},
        {"type": "exponential", "maxRetries": 2, "delaySeconds": 1},
        {"type": "two_level", "immediate": 1, "delayed": 0},
        {"type": "two_level", "immediate": 0, "delayed": 0},
    ],
)
def test_a_retry_can_be_sent_back_as_shown(shared, given):
    made = shared.create(retry(**given))
    body = shared.get(f"/v1/jobs/{made['id']}").json

    again = shared("PUT", f"/v1/jobs/{made['id']}", body)

    assert again.status == 200, again.text
    assert again.json["action"]["retry"] == body["action"]["retry"]
    assert again.json["revision"] == body["revision"]


def test_misfire_policies_of_every_type_can_be_sent_back_as_shown(shared):
    for kind in ("sap", "all", "latest", "skip"):
        made = shared.create(policies(misfire={"type": kind}))
        body = shared.get(f"/v1/jobs/{made['id']}").json

        assert shared("PUT", f"/v1/jobs/{made['id']}", body).status == 200
        shown = body["policies"]["misfire"]["ratePerMinute"]
        assert shown == (60 if kind in {"sap", "all"} else None)


def test_a_patch_of_only_the_type_drops_members_that_lose_their_effect(shared):
    made = shared.create(retry(type="exponential", maxRetries=7, delaySeconds=3, maxDelaySeconds=90))
    path = f"/v1/jobs/{made['id']}"

    fixed = shared("PATCH", path, {"action": {"retry": {"type": "fixed"}}})
    none = shared("PATCH", path, {"action": {"retry": {"type": "none"}}})

    kept = copy.deepcopy(fixed.json["action"]["retry"])
    assert (kept["maxRetries"], kept["delaySeconds"], "maxDelaySeconds" in kept) == (7, 3, False)
    assert none.json["action"]["retry"] == {"type": "none"}


def test_a_patch_that_names_a_member_without_effect_is_refused(shared):
    made = shared.create(retry(type="fixed"))
    path = f"/v1/jobs/{made['id']}"

    for patch, field in (
        ({"action": {"retry": {"type": "none", "maxRetries": 3}}}, "action.retry.maxRetries"),
        ({"action": {"retry": {"maxDelaySeconds": 9}}}, "action.retry.maxDelaySeconds"),
        ({"policies": {"misfire": {"type": "skip", "ratePerMinute": 9}}}, "policies.misfire.ratePerMinute"),
    ):
        reply = shared("PATCH", path, patch)
        assert (reply.status, reply.fields) == (422, [field])


def test_a_payload_may_contain_members_with_these_names(shared):
    payload = {"retry": {"type": "none", "maxRetries": 3}, "misfire": {"ratePerMinute": 5, "type": "skip"}}
    made = shared.create(action(payload=payload))

    patched = shared("PATCH", f"/v1/jobs/{made['id']}", {"description": "x"})

    assert patched.json["action"]["payload"] == payload


# Parameters and headers


@pytest.mark.parametrize(
    ("method", "path", "header"),
    [
        ("POST", "/v1/jobs", "If-Match"),
        ("POST", "/v1/jobs/{job}/run", "If-Match"),
        ("POST", "/v1/jobs", "If-None-Match"),
        ("PUT", "/v1/jobs/{job}", "If-None-Match"),
    ],
)
def test_a_header_that_would_be_ignored_is_refused(shared, method, path, header):
    made = shared.create()

    with shared.unchanged():
        reply = shared(method, path.format(job=made["id"]), {**JOB}, headers={header.lower(): '"1"'})

    assert (reply.status, reply.fields) == (400, [header])
    assert "has no effect on this path" in reply.json["detail"]


def test_a_preview_applies_the_defaults_and_quotas_of_its_collection(shared):
    defaults = {"timezone": "America/New_York"}
    shared("POST", "/v1/collections", {"name": "ny", "defaults": defaults, "quota": {"minIntervalSeconds": 3_600}})

    here = shared("POST", "/v1/schedules:preview", {"cron": "0 9 * * 1-5", "collection": "ny"})
    own = shared("POST", "/v1/schedules:preview", {"cron": "0 9 * * 1-5", "collection": "ny", "timezone": "UTC"})
    often = shared("POST", "/v1/schedules:preview", {"every": "PT1M", "collection": "ny"})
    unknown = shared("POST", "/v1/schedules:preview", {"every": "PT1M", "collection": "nz"})
    made = shared.create({**JOB, "collection": "ny", "schedules": [{"cron": "0 9 * * 1-5"}]})

    assert here.json["items"][0]["localTime"].endswith("09:00:00-05:00")
    assert own.json["items"][0]["localTime"].endswith("09:00:00+00:00")
    assert here.json["items"][0]["plannedAt"] == made["schedules"][0]["nextRunAt"]
    assert (often.status, often.code) == (409, "QUOTA_EXCEEDED")
    assert (unknown.status, unknown.fields) == (422, ["collection"])
