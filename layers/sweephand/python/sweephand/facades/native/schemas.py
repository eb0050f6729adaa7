"""The JSON of the native API as data: JSON Schema 2020-12, one schema a noun. What `openapi.json` is made of.

An answer has each member that its schema names, and no other. A request's schema is what every accepted body fits;
rules that a schema cannot say (a time zone that exists, a cron text that fires) stay with shapes.py and schedules.
`null` in a request is an absent member.

The service never imports this module: it serves the finished file.
"""

from __future__ import annotations

from collections.abc import Mapping

from sweephand.actions import certificates, headers, http_fields
from sweephand.domain import retry
from sweephand.domain.collection import LONGEST_CALLBACK_S, CollectionState, Events, TenantState
from sweephand.domain.job import SCHEDULES_AT_ONCE, JobState
from sweephand.domain.run import Kind, Reason, State, Status
from sweephand.domain.schedule import Lane, ScheduleState, StateReason
from sweephand.facades.native import action_schemas, calendar_schemas, collection_fields, defaults, last_audit, shapes
from sweephand.facades.native.calendar_schemas import SHOWN_USES, USES
from sweephand.facades.native.json_schema import (
    Members,
    Schema,
    answer,
    items,
    one_of,
    or_null,
    page,
    patch_of,
    ref,
    request,
    text,
    whole,
)
from sweephand.facades.native.problems import STATUS
from sweephand.facades.native.recurrence_schema import RECURRENCE
from sweephand.flow.history import Operation
from sweephand.schedules.cautions import CAUTIONS
from sweephand.schedules.localtime import Gap, MonthOverflow, Overlap
from sweephand.schedules.members import LONGEST_TEXT
from sweephand.schedules.notations.every import Align
from sweephand.schedules.reasons import REASON_CODES
from sweephand.schedules.standards import LONGEST_TEXT as LONGEST_WORDS
from sweephand.schedules.timing import MOST_COUNT, MOST_JITTER_S
from sweephand.security.caller import PROVIDER_SCOPES, TENANT_SCOPES

_HEX = "[0-9a-f]"
_UUID = "-".join(f"{_HEX}{{{size}}}" for size in (8, 4, 4, 4, 12))
_DAY_AND_TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
ID = text(format="uuid", pattern=f"^{_UUID}$")
RUN_ID = text(pattern=f"^{_UUID}_{_UUID}$", description="`<scheduleId>_<uuid>`; without a schedule `<jobId>_<uuid>`.")
INSTANT = text(format="date-time", pattern=f"^{_DAY_AND_TIME}Z$")
INSTANT_MS = text(format="date-time", pattern=rf"^{_DAY_AND_TIME}\.[0-9]{{3}}Z$")
LOCAL = text(pattern=f"^{_DAY_AND_TIME}$", description="A wall time in the schedule's zone.")
LOCAL_WITH_OFFSET = text(
    pattern=f"^{_DAY_AND_TIME}[+-][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}})?$",
    description="What the clock of the schedule's zone reads, and its offset.",
)
GIVEN_INSTANT = text(
    pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})?$",
    longest=LONGEST_TEXT,
    description="RFC 3339, years 1970 to 2199; without an offset wall time in `timezone`. Fractions round up.",
)
TEXT = text()
FLAG: Schema = {"type": "boolean"}
ANYTHING = action_schemas.ANYTHING
NOT_YET: Schema = {"type": "null", "description": "Not available yet."}
PASSED_OVER: Schema = {"readOnly": True, "description": "Of answers; passed over, so that what was read can be sent."}
MASKED = {"const": headers.MASK}
NAME = text(1, 128)
REVISION = whole(1)
STATUS_CODE = whole(100, 599)
PLAIN_NAME = text(1, 128, pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$")
TENANT_NAME = text(1, 64, pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$")
SCOPES = items(one_of(sorted(TENANT_SCOPES | PROVIDER_SCOPES)), minItems=1)

# Schedules


DST_RULES: Members = {
    "dstGap": one_of(Gap, description="A wall time that the clock jumps over."),
    "dstOverlap": one_of(Overlap, description="A wall time that the clock shows twice."),
    "monthOverflow": one_of(MonthOverflow, description="A day that its month does not have."),
}
NOTATIONS: Members = {
    "at": {**GIVEN_INSTANT, "description": "Once. " + GIVEN_INSTANT["description"]},
    "every": text(
        1,
        LONGEST_TEXT,
        description="`PT10S`, `10 seconds`, `P1M`, `R5/2027-01-01T00:00Z/PT1H`: to 548 days, or 18 months.",
    ),
    "cron": text(1, LONGEST_TEXT, description="Five fields, or `@daily` and its kin."),
    "eventBridge": text(
        1,
        LONGEST_TEXT,
        description="EventBridge Scheduler's `cron(30 2 ? * MON-FRI *)`, `rate(5 minutes)`, `at(...)`.",
    ),
    "sapCron": text(
        1, LONGEST_TEXT, description="SAP's seven fields: year, month, day, weekday, hour, minute, second."
    ),
    "time": {
        "oneOf": [
            text(1, LONGEST_WORDS, description="`tomorrow at 4pm`, `in 2 hours`, ISO 8601 or RFC 2822."),
            request({"date": text(1, LONGEST_WORDS), "format": text(1, LONGEST_WORDS)}, ("date",)),
        ],
        "description": "Once, as SAP's callers write it; words are read when the schedule is created.",
    },
    "rrule": text(
        1,
        LONGEST_TEXT,
        description="A rule of RFC 5545, `FREQ=WEEKLY;BYDAY=MO,FR`, or lines DTSTART, RRULE, RDATE, EXDATE.",
    ),
    "repeatAt": text(1, LONGEST_WORDS, description="Daily: `4.40pm`, `18.40`, `17.20:30`."),
    "recurrence": RECURRENCE,
}
ALIGN = one_of(Align, description="Of `every`: where the grid of the steps lies.")
ZONE = text(1, LONGEST_TEXT, description="IANA, such as `Europe/Berlin`.")
ONE_NOTATION = [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in NOTATIONS]
TIMING: Members = {
    **NOTATIONS,
    "align": ALIGN,
    "timezone": ZONE,
    **DST_RULES,
    "startTime": GIVEN_INSTANT,
    "endTime": {**GIVEN_INSTANT, "description": "Included. " + GIVEN_INSTANT["description"]},
    "count": whole(1, MOST_COUNT, description="Occurrences in all."),
    "jitterSeconds": whole(0, MOST_JITTER_S),
    "calendars": USES,
}
_SCHEDULE_DRAFT: Members = {
    "name": NAME,
    "active": FLAG,
    "payload": {**ANYTHING, "description": "In the place of the action's. " + ANYTHING["description"]},
    "policies": ref("Policies"),
    **TIMING,
}
_SCHEDULE_REPLACEMENT: Members = {
    "id": text(1, 64, description="Of a schedule that is there."),
    **_SCHEDULE_DRAFT,
    **dict.fromkeys(shapes.READ_ONLY_OF_SCHEDULE, PASSED_OVER),
}
_SCHEDULE: Members = {
    "id": ID,
    "jobId": ID,
    "name": TEXT,
    "active": FLAG,
    "state": one_of(ScheduleState),
    "stateReason": or_null(one_of(StateReason)),
    "type": one_of(("recurring", "one-time")),
    "summary": text(description="In plain English."),
    **TIMING,
    "timezone": ZONE,
    **{name: or_null(TIMING[name]) for name in ("startTime", "endTime", "count")},
    "calendars": SHOWN_USES,
    "payload": ANYTHING,
    "policies": ref("OwnPolicies"),
    "createdAt": INSTANT_MS,
    "modifiedAt": INSTANT_MS,
    "nextRunAt": or_null(INSTANT),
    "nextRuns": items(INSTANT, maxItems=5),
    "lastRun": or_null(answer({"id": RUN_ID, "state": one_of(State)})),
    "totals": ref("Totals"),
}
_OF_SOME_NOTATIONS = (*NOTATIONS, "align", *DST_RULES)

# Actions and policies

_OUTCOME: Members = {
    "answerTimeoutSeconds": whole(1, 60),
    "successStatuses": items(text(pattern="^([1-5]xx|[1-5][0-9]{2}(-[1-5][0-9]{2})?)$"), minItems=1, maxItems=20),
    "on202": one_of(("success", "wait")),
    "onNoAnswer": one_of(("fail", "wait")),
    "callbackTimeoutSeconds": whole(1, LONGEST_CALLBACK_S),
}
_RETRY: Members = {
    "type": one_of(retry.RetryType),
    "maxRetries": whole(0, retry.MOST_RETRIES),
    "delaySeconds": whole(0, retry.LONGEST_S),
    "maxDelaySeconds": whole(0, retry.LONGEST_S),
    "immediate": whole(0, retry.MOST_RETRIES),
    "delayed": whole(0, retry.MOST_RETRIES),
    "increaseSeconds": whole(0, retry.LONGEST_S),
    "retryOn": one_of(retry.RetryOn),
    "neverOn": items(
        text(pattern=f"^([1-5]xx|[1-5][0-9]{{2}}(-[1-5][0-9]{{2}})?|{'|'.join(sorted(retry.OF_FAILURES))})$"),
        maxItems=retry.MOST_NEVER_ON,
        description="Statuses and reasons of failures that end the run at once.",
    ),
    "maxAgeSeconds": whole(1, retry.LONGEST_S),
}
_POLICIES: Members = {
    "misfire": ref("Misfire"),
    "overlap": one_of(("allow", "skip", "queue_one", "replace")),
    "onPastStart": one_of(("refuse", "run_now")),
    "onCreate": one_of(("schedule", "run_now")),
    "delivery": one_of(("at_least_once", "at_most_once")),
    "keepAnswer": one_of(("failures", "all", "none")),
    "callbackToken": {**FLAG, "description": "The target is sent a token with which it reports the result."},
}
POLICIES: Members = {name: _POLICIES[name] for name in defaults.POLICIES}
MISFIRE: Members = {
    "type": one_of(shapes.MISFIRES),
    "ratePerMinute": whole(1, 6_000),
    "maxLatenessSeconds": whole(shapes.LEAST_LATENESS_S, shapes.MOST_LATENESS_S),
}
_SHOWN_MISFIRE: Members = {**MISFIRE, "maxLatenessSeconds": or_null(MISFIRE["maxLatenessSeconds"])}
_ACTION: Members = {
    "type": {"const": "http"},
    "method": one_of(http_fields.METHODS),
    "url": text(1, 2_048),
    "headers": {"type": "object", "additionalProperties": TEXT, "maxProperties": headers.MAX_HEADERS},
}
_PAYLOADS: Members = {
    "payload": ANYTHING,
    "body": action_schemas.TEXT_BODY,
}
_SECRET = text(longest=headers.MAX_SECRET, description="Encrypted; absent or `***` in a change: the stored one.")
_SHOWN_ACTION: Members = {
    **_ACTION,
    "authentication": ref("ShownAuthentication"),
    "outcome": ref("ShownOutcome"),
    "retry": ref("ShownRetry"),
}


_CERTIFICATE = answer(
    {
        "subject": TEXT,
        "notAfter": INSTANT,
        "thumbprint": text(pattern="^[0-9A-F]{40}$", description="SHA-1 of the certificate."),
    }
)
_AWS_NAME = "^[a-z0-9-]+$"
_OAUTH: Members = {
    "tokenUrl": text(1, 2_048),
    "clientId": text(1, 1_024),
    "secret": _SECRET,
    **{name: text(1, 2_048) for name in ("scope", "audience", "resource")},
    "credentialsIn": one_of(("header", "body"), description="Where the token endpoint expects id and secret."),
}
AUTHENTICATION = {
    "none": request({"type": {"const": "none"}}, ("type",)),
    "basic": request({"type": {"const": "basic"}, "username": text(0, 256), "password": _SECRET}, ("type", "username")),
    "bearer": request({"type": {"const": "bearer"}, "token": _SECRET}, ("type",)),
    "apiKey": request({"type": {"const": "apiKey"}, "header": text(1, 256), "value": _SECRET}, ("type", "header")),
    "oauth2": request({"type": {"const": "oauth2"}, **_OAUTH}, ("type", "tokenUrl", "clientId")),
    "sigv4": request(
        {
            "type": {"const": "sigv4"},
            "service": text(
                1, 64, pattern=_AWS_NAME, description="As endpoints sign it: `execute-api`, `lambda`, `s3`."
            ),
            "region": text(1, 64, pattern=_AWS_NAME),
            "roleArn": text(description="By whose credentials it is signed; one of the parameter TargetRoleArns."),
        },
        ("type", "service", "region", "roleArn"),
    ),
    "sweephand": request({"type": {"const": "sweephand"}}, ("type",)),
    "clientCertificate": request(
        {
            "type": {"const": "clientCertificate"},
            "pfx": text(longest=certificates.MAX_GIVEN, description="PKCS#12 in Base64."),
            "pem": text(
                longest=certificates.MAX_GIVEN,
                description="Instead of `pfx`: key, certificate, chain. Without both in a change: the stored ones.",
            ),
            "password": text(longest=1_024, description="Of the PKCS#12, or of the private key; not stored."),
            "certificate": PASSED_OVER,
        },
        ("type",),
    ),
}


def _shown_authentication() -> Schema:
    """One form a type."""
    forms: Mapping[str, Members] = {
        "none": {},
        "basic": {"username": TEXT, "password": MASKED},
        "bearer": {"token": MASKED},
        "apiKey": {"header": TEXT, "value": MASKED},
        "oauth2": {
            **dict.fromkeys(("tokenUrl", "clientId"), TEXT),
            "secret": MASKED,
            **{name: or_null(_OAUTH[name]) for name in ("scope", "audience", "resource", "credentialsIn")},
        },
        "sigv4": dict.fromkeys(("service", "region", "roleArn"), TEXT),
        "sweephand": {},
        "clientCertificate": {"pem": MASKED, "certificate": _CERTIFICATE},
    }
    return {"oneOf": [answer({"type": {"const": kind}, **members}) for kind, members in forms.items()]}


def _retry_shown() -> Schema:
    """By type, the members that it uses."""
    last = ("retryOn", "neverOn", "maxAgeSeconds")
    used: Mapping[str, tuple[str, ...]] = {
        "none": (),
        "fixed": ("maxRetries", "delaySeconds", *last),
        "exponential": ("maxRetries", "delaySeconds", "maxDelaySeconds", *last),
        "two_level": ("immediate", "delayed", "increaseSeconds", *last),
    }
    shown = {**_RETRY, "maxAgeSeconds": or_null(_RETRY["maxAgeSeconds"])}
    return {
        "oneOf": [
            answer({"type": {"const": kind}, **{name: shown[name] for name in names}}) for kind, names in used.items()
        ]
    }


# Jobs

_JOB_DRAFT: Members = {
    "name": {**NAME, "description": "Unique in its collection; without one, the id."},
    "description": text(0, 1_000),
    "collection": NAME,
    "active": FLAG,
    "resourceId": text(1, 256),
    "tags": items(text(1, 128), maxItems=shapes.MOST_TAGS, uniqueItems=True),
    "startTime": GIVEN_INSTANT,
    "endTime": GIVEN_INSTANT,
    "action": ref("Action"),
    "errorAction": ref("Action"),
    "policies": ref("Policies"),
    "schedules": items(ref("ScheduleDraft"), maxItems=SCHEDULES_AT_ONCE),
}
_JOB_REPLACEMENT: Members = {
    **_JOB_DRAFT,
    "schedules": items(
        ref("ScheduleReplacement"),
        maxItems=1_000,
        description="Absent: they stay. Matched by `id`, else by `name`; the others are deleted.",
    ),
    **dict.fromkeys(shapes.READ_ONLY_OF_JOB, PASSED_OVER),
}
_JOB: Members = {
    "id": ID,
    "name": TEXT,
    "description": or_null(TEXT),
    "collection": TEXT,
    "facade": one_of(("native", "sap")),
    "revision": REVISION,
    "createdAt": INSTANT_MS,
    "modifiedAt": INSTANT_MS,
    "active": FLAG,
    "state": one_of(JobState),
    "stateReason": or_null(one_of(StateReason)),
    "pause": or_null(answer({"since": INSTANT_MS, "note": or_null(TEXT), "until": or_null(INSTANT)})),
    "resourceId": or_null(TEXT),
    "tags": items(TEXT),
    "startTime": or_null(INSTANT),
    "endTime": or_null(INSTANT),
    "nextRunAt": or_null(INSTANT),
    "action": ref("ShownAction"),
    "errorAction": or_null(ref("ShownAction")),
    "policies": ref("ShownPolicies"),
    "totals": ref("Totals"),
    "schedules": items(ref("Schedule")),
}
_UNTIL: Schema = {**GIVEN_INSTANT, "description": "The job resumes by itself then. " + GIVEN_INSTANT["description"]}
_LISTED_JOB: Members = {
    **_JOB,
    "action": ref("ListedAction"),
    "errorAction": or_null(ref("ListedAction")),
    "schedules": items(ref("ListedSchedule")),
}
_WITH_SCHEDULES = {"dependentRequired": {"schedules": ["totals"], "totals": ["schedules"]}}

# Runs

_ATTEMPT: Members = {
    "attempt": whole(1),
    "startedAt": INSTANT_MS,
    "finishedAt": or_null(INSTANT_MS),
    "reason": or_null(one_of(Reason)),
    "httpStatus": or_null(STATUS_CODE),
    "message": or_null(TEXT),
    "answer": or_null(TEXT),
}
_RUN: Members = {
    "id": RUN_ID,
    "jobId": ID,
    "scheduleId": or_null(ID),
    "kind": one_of(Kind),
    "status": one_of(Status),
    "state": one_of(State),
    "reason": or_null(one_of(Reason)),
    "httpStatus": or_null(STATUS_CODE),
    "plannedAt": INSTANT_MS,
    "enqueuedAt": or_null(INSTANT_MS),
    "startedAt": or_null(INSTANT_MS),
    "finishedAt": or_null(INSTANT_MS),
    "latenessMs": or_null(whole()),
    "attempt": whole(1),
    "maxAttempts": whole(1),
    "nextAttemptAt": or_null(INSTANT_MS),
    "callbackDeadlineAt": or_null(INSTANT_MS),
    "answer": or_null(TEXT),
    "message": or_null(TEXT),
    "parentRunId": or_null(RUN_ID),
    "range": or_null(answer({"until": INSTANT_MS, "count": whole(1)}, description="It stands for many occurrences.")),
    "attempts": items(ref("Attempt")),
    "notes": items(TEXT),
    "expiresAt": or_null(INSTANT),
}
_MOVED_BY = or_null(
    answer(
        {
            "rule": one_of(("dstGap", "dstOverlap", "calendar")),
            "localTime": LOCAL,
            "effect": one_of(
                ("moved", "skipped", "doubled", "once"),
                description="`doubled`: both copies of a time that comes twice run; `once`: this one only.",
            ),
        }
    )
)
_GAPS = answer(
    {"smallestSeconds": whole(1), "largestSeconds": whole(1), "until": INSTANT},
    description="The distances between the occurrences of the next 366 days, or of those up to `until`.",
)
_CALENDAR = or_null(text(description="Of what a calendar leaves out: its name."))
_SEARCHED: Members = {"searchedUntil": {**INSTANT, "description": "What lies behind was not looked at."}}

# Collections, tenants, credentials

_QUOTA: Members = {
    "maxJobs": whole(1, collection_fields.MOST_JOBS),
    "maxRunsPerJob": whole(
        1, collection_fields.MOST_RUNS, description="Occurrences of each schedule of a job, in all; manual runs apart."
    ),
    "minIntervalSeconds": whole(1, collection_fields.LONGEST_INTERVAL_S),
}
_RETENTION: Members = {
    "runDays": whole(
        collection_fields.LEAST_RUN_DAYS, collection_fields.MOST_DAYS, description="Of a run, from its end."
    ),
    "endedJobDays": whole(
        0, collection_fields.MOST_DAYS, description="Of a job whose schedules are all COMPLETED; 0: it stays."
    ),
}
_CALLBACK = whole(
    1,
    LONGEST_CALLBACK_S,
    description="How long a run waits for its result where its job does not say; null: as the stack has it.",
)
_EVENTS = one_of(Events, description="What goes to the event bus.")
_COLLECTION: Members = {
    "name": TEXT,
    "state": one_of(CollectionState),
    "quota": answer({name: or_null(each) for name, each in _QUOTA.items()}),
    "retention": answer(_RETENTION),
    "events": _EVENTS,
    "defaults": answer(
        {"timezone": or_null(ZONE), "retry": or_null(ref("ShownRetry")), "policies": ref("OwnPolicies")}
    ),
    "callbackTimeoutSeconds": or_null(_CALLBACK),
    "redirects": action_schemas.SHOWN_REDIRECTS,
    "jobCount": whole(),
    "revision": REVISION,
    "createdAt": INSTANT_MS,
    "modifiedAt": INSTANT_MS,
}
_COLLECTION_DRAFT: Members = {
    "name": PLAIN_NAME,
    "quota": request(_QUOTA),
    "retention": request(_RETENTION),
    "events": _EVENTS,
    "defaults": request({"timezone": ZONE, "retry": ref("Retry"), "policies": ref("Policies")}),
    "callbackTimeoutSeconds": _CALLBACK,
    "redirects": action_schemas.REDIRECTS,
}
_COLLECTION_REPLACEMENT: Members = {
    **_COLLECTION_DRAFT,
    **dict.fromkeys(collection_fields.READ_ONLY, PASSED_OVER),
}
_SIGNING_KEY: Members = {"id": ID, "createdAt": INSTANT_MS}
_TENANT_DRAFT: Members = {"tenant": TENANT_NAME, "name": TENANT_NAME, "description": text(0, 1_000)}
_TENANT: Members = {
    "tenant": TENANT_NAME,
    "description": or_null(TEXT),
    "state": one_of(TenantState),
    "createdAt": INSTANT_MS,
}
_CREDENTIAL: Members = {"clientId": TEXT, "name": or_null(TEXT), "scopes": SCOPES, "createdAt": INSTANT_MS}

# Problems

_PROBLEM: Members = {
    "type": text(format="uri-reference", pattern="^/problems/"),
    "title": TEXT,
    "status": STATUS_CODE,
    "code": one_of(STATUS, description="Stable; the texts may change."),
    "detail": TEXT,
    "requestId": TEXT,
    "errors": items(ref("FieldProblem")),
}
_FIELD_PROBLEM: Members = {
    "field": or_null(text(description="A path, as `schedules[0].cron`; null: the request as a whole.")),
    "reason": TEXT,
    "position": whole(description="Index into the text of the field."),
}


SCHEMAS: dict[str, Schema] = {
    "JobDraft": request(_JOB_DRAFT, ("action",)),
    "JobReplacement": request(_JOB_REPLACEMENT, ("action",)),
    "ScheduleDraft": request(_SCHEDULE_DRAFT, oneOf=ONE_NOTATION),
    "ScheduleReplacement": request(_SCHEDULE_REPLACEMENT, oneOf=ONE_NOTATION),
    "Action": {"oneOf": [ref("HttpAction"), *action_schemas.names()]},
    **action_schemas.schemas(),
    "HttpAction": request(
        {
            **_ACTION,
            **_PAYLOADS,
            "authentication": ref("Authentication"),
            "outcome": ref("Outcome"),
            "retry": ref("Retry"),
        },
        ("type", "url"),
    ),
    "Authentication": {"oneOf": list(AUTHENTICATION.values())},
    "Outcome": request(_OUTCOME),
    "Retry": request(_RETRY),
    "Policies": request(POLICIES),
    "Misfire": request(MISFIRE),
    "RunRequest": request({"scheduleId": ID}),
    "PauseRequest": request({"note": text(0, 1_000), "until": _UNTIL}),
    "Nothing": request({}),
    "PreviewRequest": request(
        {
            **TIMING,
            "after": {**GIVEN_INSTANT, "description": "By default now."},
            "limit": whole(1, 1_000, default=5),
            "explain": {**GIVEN_INSTANT, "description": "An instant to be explained. " + GIVEN_INSTANT["description"]},
        },
        oneOf=ONE_NOTATION,
    ),
    "Result": request({"success": FLAG, "message": text(0, 1_000)}, ("success",)),
    "CollectionDraft": request(_COLLECTION_DRAFT, ("name",)),
    "CollectionReplacement": request(_COLLECTION_REPLACEMENT),
    "CredentialDraft": request({"name": NAME, "scopes": SCOPES}),
    "TenantDraft": request(_TENANT_DRAFT),
    "TokenRequest": {
        "type": "object",
        "properties": {
            "grant_type": {"const": "client_credentials"},
            "scope": text(description="A part of the client's scopes, parted by blanks; by default all."),
            "client_id": text(description="With `client_secret`, instead of Basic."),
            "client_secret": text(),
        },
        "required": ["grant_type"],
    },
    "Job": answer(_JOB, ("schedules",)),
    "ListedJob": answer(_LISTED_JOB, ("totals", "schedules"), **_WITH_SCHEDULES),
    "JobPage": page("ListedJob", {"total": whole(description="With `include=total`.")}, ("total",)),
    "Schedule": answer(_SCHEDULE, _OF_SOME_NOTATIONS, oneOf=ONE_NOTATION),
    "ListedSchedule": answer(
        {name: each for name, each in _SCHEDULE.items() if name != "payload"}, _OF_SOME_NOTATIONS, oneOf=ONE_NOTATION
    ),
    "SchedulePage": page("Schedule"),
    "ShownAction": {"oneOf": [ref("ShownHttpAction"), *action_schemas.names("Shown")]},
    "ShownHttpAction": answer({**_SHOWN_ACTION, "payload": ANYTHING, "body": or_null(_PAYLOADS["body"])}),
    "ListedAction": {"oneOf": [ref("ListedHttpAction"), *action_schemas.names("Listed")]},
    "ListedHttpAction": answer(_SHOWN_ACTION),
    "ShownAuthentication": _shown_authentication(),
    "ShownOutcome": answer(
        {
            **_OUTCOME,
            "callbackTimeoutSeconds": or_null(
                whole(1, LONGEST_CALLBACK_S, description="null: as the collection has it, whenever that changes.")
            ),
        }
    ),
    "ShownRetry": _retry_shown(),
    "ShownPolicies": answer({**POLICIES, "misfire": answer(_SHOWN_MISFIRE)}),
    "OwnPolicies": answer({**POLICIES, "misfire": answer(MISFIRE, MISFIRE)}, POLICIES),
    "Totals": answer(
        dict.fromkeys(("planned", "open", "succeeded", "failed", "failedAttempts", "skipped", "missed"), whole())
    ),
    "Change": answer(
        {
            "revision": {**REVISION, "description": "That the job had afterwards."},
            "at": INSTANT_MS,
            "actor": or_null(text(description="The caller's client id; null: the service itself.")),
            "operation": one_of(Operation),
            "changes": items(ref("ChangedMember"), description="Empty where the job was created."),
            "omittedSchedules": whole(description="Changed schedules that the entry could not hold."),
            "before": or_null(ref("JobBefore")),
        },
        ("before",),
    ),
    "ChangedMember": answer(
        {
            "scheduleId": or_null(ID),
            "path": or_null(text(description="As `action.url`; null: the schedule as a whole is new or gone.")),
            "old": {"description": "Null: it was not there."},
            "new": {"description": "Null: it is not there any more."},
            "cut": {**FLAG, "description": "A value of over 4,000 characters is shown by the beginning of its JSON."},
        }
    ),
    "JobBefore": answer(
        {
            **{name: each for name, each in _JOB.items() if name in shapes.JOB_MEMBERS},
            "pause": _JOB["pause"],
            "schedules": items(ref("ScheduleBefore"), description="Those that the change touched."),
        },
        ("name", "description", "collection", "resourceId", "startTime", "endTime", "errorAction"),
    ),
    "ScheduleBefore": answer(
        {"id": ID, "name": TEXT, "active": FLAG, "payload": ANYTHING, "policies": ref("OwnPolicies"), **TIMING},
        ("payload", *TIMING),
    ),
    "ChangePage": page("Change"),
    "NextRun": answer({"nextRunAt": or_null(INSTANT), "scheduleId": or_null(ID)}),
    "Occurrence": answer(
        {
            "scheduleId": ID,
            "plannedAt": INSTANT,
            "state": one_of(State),
            "reason": or_null(one_of(Reason)),
            "runId": or_null({**RUN_ID, "description": "Null: a calendar leaves it out."}),
            "movedBy": _MOVED_BY,
            "calendar": _CALENDAR,
        }
    ),
    "OccurrencePage": page("Occurrence", _SEARCHED),
    "Preview": answer(
        {
            "type": one_of(("recurring", "one-time")),
            "summary": TEXT,
            "description": text(description="The summary with its window, its limits and what clock changes do."),
            "items": items(answer({"plannedAt": INSTANT, "localTime": LOCAL_WITH_OFFSET, "movedBy": _MOVED_BY})),
            "dropped": items(answer({"at": INSTANT, "movedBy": _MOVED_BY}), maxItems=100),
            "leftOut": items(answer({"plannedAt": INSTANT, "calendar": TEXT}), maxItems=100),
            "gaps": or_null(_GAPS),
            "warnings": items(answer({"code": one_of(CAUTIONS), "message": TEXT})),
            "explained": or_null(ref("Explanation")),
            "nextCursor": {"type": "null"},
            **_SEARCHED,
            "ianaVersion": text(description="Of the time-zone data."),
        }
    ),
    "Explanation": answer(
        {
            "at": INSTANT,
            "localTime": LOCAL_WITH_OFFSET,
            "occurs": FLAG,
            "reasons": items(
                answer(
                    {
                        "code": one_of(REASON_CODES),
                        "message": TEXT,
                        "field": or_null(text(description="Of the clock, where it does not match.")),
                    }
                ),
                minItems=1,
            ),
            "movedBy": _MOVED_BY,
            "previous": or_null(INSTANT),
            "next": or_null(INSTANT),
            "runId": or_null(
                {**RUN_ID, "description": "Of an occurrence of a stored schedule: under it the ledger has it."}
            ),
        }
    ),
    "Run": answer(_RUN),
    "RunPage": page("Run"),
    "RunsFile": {
        "type": "string",
        "description": "CSV (RFC 4180) with a line of names, or a Run as JSON in each line.",
    },
    "Attempt": answer(_ATTEMPT),
    "RunStarted": answer({"runId": RUN_ID}),
    "Collection": answer(_COLLECTION),
    "CollectionPage": page("Collection"),
    "SigningKey": answer(_SIGNING_KEY),
    "IssuedSigningKey": answer(
        {**_SIGNING_KEY, "secret": text(pattern="^whsec_", description="Of Standard Webhooks; shown this once.")}
    ),
    "SigningKeyPage": page("SigningKey"),
    "KeySet": answer(
        {
            "keys": items(
                answer(
                    {"kty": {"const": "RSA"}, "use": {"const": "sig"}, "alg": {"const": "RS256"}}
                    | {"kid": TEXT, "n": TEXT, "e": TEXT}
                )
            )
        },
        description="RFC 7517.",
    ),
    "IssuerConfiguration": answer(
        {
            "issuer": text(description="`iss` of the tokens."),
            "jwks_uri": text(format="uri"),
            **{
                name: items(TEXT)
                for name in (
                    *("response_types_supported", "subject_types_supported"),
                    "id_token_signing_alg_values_supported",
                )
            },
        },
        description="OpenID Connect Discovery 1.0.",
    ),
    "Tenant": answer(
        {"tenant": TENANT_NAME, "description": or_null(TEXT), "state": one_of(TenantState), "createdAt": INSTANT_MS}
    ),
    "TenantPage": page("Tenant"),
    "Credential": answer(_CREDENTIAL),
    "IssuedCredential": answer({**_CREDENTIAL, "secret": text(description="Shown this once.")}),
    "CredentialPage": page("Credential"),
    **calendar_schemas.SCHEMAS,
    "Token": answer(
        {
            "access_token": TEXT,
            "token_type": {"const": "bearer"},
            "expires_in": whole(1, description="Seconds."),
            "scope": TEXT,
        }
    ),
    "OAuthError": answer(
        {
            "error": one_of(
                ("invalid_request", "invalid_client", "invalid_scope", "unauthorized_client", "unsupported_grant_type")
            )
        }
    ),
    "Health": answer(
        {
            "status": {"const": "ok"},
            "version": TEXT,
            "oldestDueAt": or_null(INSTANT),
            "behindSeconds": whole(),
            "backlog": answer({lane.value: ref("Backlog") for lane in Lane}),
            "lastAudit": or_null(ref("LastAudit")),
        },
        ("oldestDueAt", "behindSeconds", "backlog", "lastAudit"),
        dependentRequired={"oldestDueAt": ["behindSeconds"], "behindSeconds": ["oldestDueAt"]},
    ),
    "Backlog": answer({"ready": whole(), "delayed": whole(), "inFlight": whole()}),
    "LastAudit": answer(
        {"at": INSTANT, "everything": {"type": "boolean"}, "finished": {"type": "boolean"}}
        | {name: whole() for name in last_audit.COUNTS}
    ),
    "GatewayRefusal": {"type": "object", "properties": {"message": TEXT}},
    "Document": {"type": "object", "required": ["openapi", "info", "paths", "components"]},
    "Problem": answer(_PROBLEM, ("errors",)),
    "FieldProblem": answer(_FIELD_PROBLEM, ("position",)),
}
SCHEMAS |= {
    f"{noun}Patch": patch_of(SCHEMAS[f"{noun}Replacement"], SCHEMAS, removable=False)
    for noun in ("Job", "Schedule", "Collection")
}
