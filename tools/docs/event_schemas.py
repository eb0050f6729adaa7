"""Writes events/schemas for `make docs`: one JSON Schema (2020-12) for each event on the bus.

A schema describes an event as a target gets it: `source`, `detail-type`, `detail`, and the members that EventBridge
adds. States and reasons come from the code. tests/unit/domain/test_event.py fails if a file differs from the generated
one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sweephand.base.json_schema import Members, Schema, answer, items, one_of, or_null, text, whole
from sweephand.domain.alerts import JOB_EXECUTION
from sweephand.domain.collection import CollectionState, TenantState
from sweephand.domain.event import OF_LINE, OF_STATE, SOURCE, VERSION, EventType, Finding
from sweephand.domain.operation import OperationKind, OperationState
from sweephand.domain.run import FAILED, UNREACHABLE, Kind, Reason, State
from sweephand.domain.schedule import ScheduleState, StateReason
from sweephand.server.actions import event as event_action
from sweephand.server.flow.runs import replay
from sweephand.server.flow.runs.perform import JOBS_SPEAK_AS
from sweephand.server.flow.tenants.absence import Back
from sweephand.server.security.caller import SCOPES, TENANT_SCOPES

FOLDER = Path(__file__).resolve().parents[2] / "events" / "schemas"

# The meaning of each type, as one sentence. An event without a line here is an error.
MEANING: Mapping[EventType, str] = {
    EventType.RUN_SUCCEEDED: "A run ended as `SUCCESS`.",
    EventType.RUN_FAILED: "A run failed for good. There is one event for the run, not one for each attempt.",
    EventType.RUN_RETRYING: "An attempt of a run failed, and another one follows.",
    EventType.RUN_SKIPPED: "An occurrence was due and did not run, because of a setting or a request of its owner.",
    EventType.RUN_MISSED: "One occurrence was too late for its misfire policy.",
    EventType.RUN_EXPIRED: "A run would have begun too late.",
    EventType.RUN_CANCELLED: "A run was ended before it finished.",
    EventType.OCCURRENCES_MISSED: "Many occurrences were due during an outage, and their misfire policy dropped them.",
    EventType.OCCURRENCES_EXPIRED: "Many occurrences were found too late to run.",
    EventType.OCCURRENCES_SKIPPED: "A schedule continues after it left out occurrences while it was off.",
    EventType.OCCURRENCES_CANCELLED: "Many occurrences were due when their job or schedule was deleted.",
    EventType.SCHEDULE_COMPLETED: "All runs of a schedule have ended, and no more will follow.",
    EventType.SCHEDULE_BROKEN: "The stored text of a schedule can no longer be read. The schedule was taken "
    "out of service.",
    EventType.SCHEDULE_DEACTIVATED: (
        "The service switched a schedule off, because its target could not be reached for ten days."
    ),
    EventType.SCHEDULE_MOVED: "Newer time-zone data moved the next occurrence of a schedule to another instant.",
    EventType.JOB_CREATED: "A job was created.",
    EventType.JOB_CHANGED: "A job or its schedules were changed in a way that has no event of its own.",
    EventType.JOB_DELETED: "A job was deleted, with its schedules.",
    EventType.JOB_ACTIVATED: "A job was activated.",
    EventType.JOB_DEACTIVATED: "A job was deactivated.",
    EventType.JOB_PAUSED: "A job was paused, or its pause was changed.",
    EventType.JOB_RESUMED: "A job was resumed after a pause.",
    EventType.COLLECTION_ENABLED: "A collection was enabled.",
    EventType.COLLECTION_DISABLED: "A collection was disabled.",
    EventType.AUDIT_FINDING: "The audit found something that should never happen, and repaired it.",
    EventType.ERRORS_EXPIRING: "Unresolved failed runs will be removed within three days.",
    EventType.ERRORS_ARCHIVED: "A group of errors, or one failed run of it, was archived.",
    EventType.ERRORS_RESTORED: "A group of errors, or one failed run of it, was restored from the archive.",
    EventType.ERRORS_EDITED: "A failed run was started again with another payload or other headers.",
    EventType.ERRORS_RESOLVED: "The rerun of a failed run succeeded.",
    EventType.CIRCUIT_OPENED: "A target failed so often in a row that its calls under a flow key now wait.",
    EventType.CIRCUIT_CLOSED: "A target with an open circuit answered again. Its waiting calls continue.",
    EventType.APPLICATION_AWAY: "Messages wait in the queue of an application, and no worker takes a run from them.",
    EventType.APPLICATION_BACK: "An application is no longer away.",
    EventType.CONSUMER_AWAY: "Runs are held for a consumer, and its program does not run.",
    EventType.CONSUMER_BACK: "A consumer is no longer away.",
    EventType.TARGET_AWAY: "A target has not answered since its first call without an answer.",
    EventType.TARGET_BACK: "A target is no longer away.",
    EventType.OPERATION_FAILED: "An operation (long work) could not continue. It can be resumed.",
    EventType.CREDENTIAL_CREATED: "A credential was created.",
    EventType.CREDENTIAL_ROTATED: "A credential got a new secret.",
    EventType.CREDENTIAL_FORMER_ENDED: "The previous secret of a credential was ended before its overlap ended.",
    EventType.CREDENTIAL_DELETED: "A credential was deleted, and its tokens with it.",
    EventType.SIGNING_KEY_CREATED: "A key that signs the calls of a collection's jobs was created.",
    EventType.SIGNING_KEY_DELETED: "A key that signs the calls of a collection's jobs was deleted.",
    EventType.TENANT_CREATED: "A tenant was created.",
    EventType.TENANT_CHANGED: "A tenant's description, quota, withheld scopes or subscriptions were changed.",
    EventType.TENANT_ENABLED: "A tenant was enabled.",
    EventType.TENANT_DISABLED: "A tenant was disabled.",
    EventType.TENANT_DELETED: "The deletion of a tenant began.",
    EventType.ALERT_RAISED: "A run of a job of the SAP facade met a condition of its `ansConfig`.",
    EventType.ALERT_STATUS: "A run of a job of the SAP facade with an enabled `calmConfig` ended.",
}

STATE = "The state after the event."
REASON = "The reason for the state."
ID = text(1, 36, description="A UUID.")
RUN_ID = text(
    1, 73, pattern="^[0-9a-f-]{36}_[0-9a-f-]{36}$", description="The id of the run, as in `GET /v1/runs/{id}`."
)
INSTANT = text(format="date-time", pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$")
REVISION = whole(
    1, description="The number of the version. Each change adds one, so a gap means that an event is missing."
)

JOB: Members = {
    "jobId": or_null({**ID, "description": "The id of the job, a UUID; null for a message, which has none."}),
    "jobName": or_null(
        text(1, 255, description="The name of the job when the event was sent; null if there is none any more.")
    ),
    "resourceId": or_null(text(1, 256, description="The resource id of the job.")),
    "tags": items(text(1, 128), maxItems=10, description="The tags of the job."),
}
RUN: Members = {
    "runId": RUN_ID,
    "scheduleId": or_null({**ID, "description": "The schedule of the run; null for a run of the job itself."}),
    "kind": one_of(Kind, description="The kind of the run."),
    "plannedAt": {**INSTANT, "description": "The instant that the schedule gives."},
    "startedAt": or_null({**INSTANT, "description": "When it began; null if it did not begin."}),
    "finishedAt": {**INSTANT, "description": "When it ended."},
    "latenessMs": or_null(whole(description="The time from the planned instant to the start, in milliseconds.")),
    "attempt": whole(1, description="The number of the last attempt."),
    "maxAttempts": whole(1, description="How many attempts the run may have."),
    "httpStatus": or_null(whole(100, 599, description="The status of the last answer.")),
    "parentRunId": or_null({**RUN_ID, "description": "For an error action or a hook, the run that ended."}),
}
LINE: Members = {
    "runId": {**RUN_ID, "description": "The row in the ledger that stands for the occurrences."},
    "scheduleId": {**ID, "description": "The id of the schedule, a UUID."},
    "plannedAt": {**INSTANT, "description": "The first of the occurrences."},
    "range": answer(
        {
            "until": {**INSTANT, "description": "The last of the occurrences."},
            "count": whole(1, description="How many occurrences there are."),
        },
        description="The occurrences that the row stands for.",
    ),
}
SCHEDULE: Members = {
    "scheduleId": {**ID, "description": "The id of the schedule, a UUID."},
    "scheduleName": text(1, 128, description="The name of the schedule."),
    "generation": whole(1, description="A number that increases with each change of timing or state."),
    "plannedTotal": whole(description="How many occurrences it has sent in all."),
}
CHANGE: Members = {
    "revision": REVISION,
    "active": {"type": "boolean", "description": "Whether it is active after the change."},
    "paused": {"type": "boolean", "description": "Whether it is paused after the change."},
    "facade": text(description="The API through which the job was created."),
    "actor": or_null(text(description="The client id of the caller; null: the service itself made the change.")),
    "reason": or_null(text(1, 500, description="The caller's reason, from the header Sweephand-Reason.")),
}
FINDING: Members = {
    "scheduleId": {**ID, "description": "The id of the schedule, a UUID."},
    "finding": one_of(
        Finding,
        description="`SERIES_STOPPED`: a schedule had lost its next time. `RUNS_LOST`: lost messages were sent again.",
    ),
    "count": whole(description="How many runs it concerns."),
}
CIRCUIT: Members = {
    "flowKey": text(1, 128, description="The name of the flow key."),
    "circuit": text(
        16, 16, description="The `id` of the circuit in the answer for the flow key, which also names the target."
    ),
    "openedAt": {**INSTANT, "description": "When the circuit opened."},
    "failures": whole(1, description="How many calls in a row have failed."),
    "reason": or_null(one_of(Reason, description="The reason of the last failure.")),
}
ALERTED: Members = {
    **JOB,
    "runId": RUN_ID,
    "scheduleId": RUN["scheduleId"],
    "integerJobId": or_null(whole(1, description="`_id` of the job in SAP's API.")),
    "plannedAt": RUN["plannedAt"],
    "latenessMs": RUN["latenessMs"],
}
ENDS = [state for state in State if state in FAILED | {State.SUCCESS}]
ALERT = answer(
    {
        "eventType": {"const": JOB_EXECUTION, "description": "The same in every alert."},
        "severity": {"enum": ["INFO", "ERROR"], "description": "`ERROR` if the run failed, otherwise `INFO`."},
        "category": {
            "enum": ["NOTIFICATION", "ALERT"],
            "description": "`ALERT` if the run failed, otherwise `NOTIFICATION`.",
        },
        "subject": text(1, 300, description="The name of the job and the state of the run, as one line."),
        "body": text(1, 600, description="One sentence: the run, its job, its planned instant, and how it ended."),
        "resource": answer(
            {
                "resourceName": text(1, 255, description="The name of the job."),
                "resourceType": {"const": "job", "description": "The same in every alert."},
            },
            description="The resource that the alert is about.",
        ),
        "tags": answer(
            {
                "runStatus": {
                    "const": "COMPLETED",
                    "description": "SAP's runStatus. An alert follows the end of a run.",
                },
                "runState": one_of(ENDS, description="SAP's runState."),
                "scheduleDescription": text(
                    0, 1_000, description="The description of the schedule; empty for a run of the job itself."
                ),
            },
            description="Further facts about the run.",
        ),
    },
    description="The event in the form of SAP Alert Notification.",
)
NO_COLLECTION: Schema = {"type": "null", "description": "Always null: no collection is concerned."}
ACTOR = or_null(text(1, 330, description="The client id of the caller; null for the service itself."))
ERRORS: Members = {
    **JOB,
    "errorGroup": text(32, 32, description="The id of the group, as in `GET /v1/errors/{group}`."),
    "state": one_of([state for state in State if state in FAILED], description="The state of the failed runs."),
    "reason": or_null(one_of(Reason, description="The reason of the failed runs.")),
}
ARCHIVING: Members = {
    **ERRORS,
    "runId": or_null({**RUN_ID, "description": "The failed run; null for the whole group."}),
    "actor": ACTOR,
}
RERUN: Members = {
    **ERRORS,
    "runId": {**RUN_ID, "description": "The failed run."},
    "rerunId": {**RUN_ID, "description": "The run that repeats it."},
    "actor": or_null(text(1, 330, description="For `errors.edited`, the client id of the caller.")),
}
SINCE = "Since when the first message or run waits that nobody takes, or the target does not answer."
APPLICATION: Members = {
    "collection": NO_COLLECTION,
    "application": text(1, 64, description="The name of the application."),
    "applicationVersion": or_null(
        text(1, 64, description="The version whose workers alone read the queue; null if all workers do.")
    ),
    "since": {**INSTANT, "description": SINCE},
}
CONSUMER: Members = {
    "collection": NO_COLLECTION,
    "consumer": text(1, 64, description="The name of the consumer."),
    "since": {**INSTANT, "description": SINCE},
}
TARGET: Members = {
    "collection": NO_COLLECTION,
    "host": text(
        1,
        512,
        description="The scheme, host and port of an address, nothing else of it; or the ARN, task definition,"
        " namespace or storage account that does not answer.",
    ),
    "wholeHost": {
        "type": "boolean",
        "description": "Whether the host does not answer at all; false if only one of its addresses does not.",
    },
    "since": {**INSTANT, "description": SINCE},
}
WAITING: Members = {
    "waiting": whole(1, description="How many wait: messages, as SQS estimates, or held runs, counted up to 100."),
}
BACK: Members = {
    "awayAt": {**INSTANT, "description": "When the event ending in `.away` was published."},
    "reason": one_of(
        Back,
        description=(
            "`RECEIVED`: a worker came, the consumer's program started, or the target answered. `NOTHING_WAITS`: "
            "nothing waits any more, or no call failed for an hour. "
            "`DELETED`: it was deleted."
        ),
    ),
}
CREDENTIAL: Members = {
    "tenant": or_null(text(1, 64, description="The name of the tenant; null for the provider.")),
    "collection": NO_COLLECTION,
    "actor": ACTOR,
    "clientId": text(1, 97, description="The client id of the credential. Its secret is never in an event."),
    "scopes": items(one_of(sorted(SCOPES)), description="The scopes of the credential."),
    "formerSecretUntil": or_null(
        {**INSTANT, "description": "The instant until which the previous secret is accepted."}
    ),
}
SIGNING_KEY: Members = {
    "actor": ACTOR,
    "signingKey": {**ID, "description": "The id of the key. Its secret is never in an event."},
}
TENANT: Members = {
    "collection": NO_COLLECTION,
    "actor": ACTOR,
    "state": one_of(TenantState, description=STATE),
    "withheldScopes": items(
        one_of(sorted(TENANT_SCOPES)), description="The scopes that the provider withholds from the tenant."
    ),
    "applications": items(text(1, 128), description="The applications to which it is subscribed."),
}
OF_JOBS, OF_MISSED = "job", "job.missed"
"""The files of the events that jobs publish."""
BEST_EFFORT = (
    "job.",
    "errors.archived",
    "errors.restored",
    "errors.edited",
    "collection.",
    "audit.",
    "circuit.",
    "credential.",
    "signing-key.",
    "tenant.",
)
"""Events that are sent after the fact, and not repeated if the function dies in between."""
COMPLETIONS = (
    StateReason.ONE_TIME_DONE,
    StateReason.NO_FUTURE_DATES,
    StateReason.END_REACHED,
    StateReason.COUNT_REACHED,
)


OTHERS: Mapping[EventType, Members] = {
    EventType.RUN_RETRYING: {
        **JOB,
        **RUN,
        "state": one_of([State.RETRY_WAIT], description=STATE),
        "reason": one_of(Reason, description="Why the attempt failed."),
        "finishedAt": {**INSTANT, "description": "When the failed attempt ended."},
        "attempt": whole(1, description="The number of the failed attempt."),
        "nextAttemptAt": {**INSTANT, "description": "When the next attempt begins, at the earliest."},
    },
    EventType.SCHEDULE_COMPLETED: {
        **JOB,
        **SCHEDULE,
        "state": one_of([ScheduleState.COMPLETED, ScheduleState.FAULTED], description=STATE),
        "reason": one_of(COMPLETIONS, description=REASON),
    },
    EventType.SCHEDULE_BROKEN: {
        **JOB,
        **SCHEDULE,
        "state": one_of([ScheduleState.BROKEN], description=STATE),
        "reason": one_of([StateReason.UNREADABLE], description=REASON),
    },
    EventType.SCHEDULE_DEACTIVATED: {
        **JOB,
        **SCHEDULE,
        "state": one_of([ScheduleState.INACTIVE], description=STATE),
        "reason": one_of([StateReason.UNREACHABLE], description=REASON),
    },
    EventType.SCHEDULE_MOVED: {
        **JOB,
        "scheduleId": {**ID, "description": "The id of the schedule, a UUID."},
        "scheduleName": SCHEDULE["scheduleName"],
        "from": {**INSTANT, "description": "When the occurrence was due by the earlier data."},
        "to": {**INSTANT, "description": "When it is due now, at the same wall time."},
    },
    EventType.COLLECTION_ENABLED: {"revision": REVISION, "state": one_of([CollectionState.ENABLED], description=STATE)},
    EventType.COLLECTION_DISABLED: {
        "revision": REVISION,
        "state": one_of([CollectionState.DISABLED], description=STATE),
    },
    EventType.AUDIT_FINDING: {**JOB, **FINDING},
    EventType.ERRORS_EXPIRING: {
        **ERRORS,
        "count": whole(1, description="How many failed runs will be removed."),
        "expiresAt": {**INSTANT, "description": "When the first of them is removed."},
    },
    EventType.ERRORS_ARCHIVED: ARCHIVING,
    EventType.ERRORS_RESTORED: ARCHIVING,
    EventType.ERRORS_EDITED: RERUN,
    EventType.ERRORS_RESOLVED: RERUN,
    EventType.CIRCUIT_OPENED: {**JOB, **CIRCUIT},
    EventType.CIRCUIT_CLOSED: {**JOB, **CIRCUIT},
    EventType.APPLICATION_AWAY: {**APPLICATION, **WAITING},
    EventType.APPLICATION_BACK: {**APPLICATION, **BACK},
    EventType.CONSUMER_AWAY: {**CONSUMER, **WAITING},
    EventType.CONSUMER_BACK: {**CONSUMER, **BACK},
    EventType.TARGET_AWAY: {
        **TARGET,
        "reason": one_of(
            sorted({Reason.NO_ANSWER, *UNREACHABLE}), description="Why the first call without an answer failed."
        ),
    },
    EventType.TARGET_BACK: {**TARGET, **BACK},
    EventType.OPERATION_FAILED: {
        "tenant": or_null(text(1, 64, description="The name of the tenant; null for the provider.")),
        "collection": NO_COLLECTION,
        "operationId": {**ID, "description": "The id of the operation, as in `GET /v1/operations/{operation}`."},
        "kind": one_of(OperationKind, description="The kind of the operation."),
        "state": one_of([OperationState.FAILED], description=STATE),
        "cause": text(1, description="Why it failed, in words."),
        "done": whole(description="How many entries are done, including failed ones."),
        "failed": whole(description="How many entries failed."),
        "total": or_null(whole(description="How many entries there are; null while this is not known.")),
        "startedAt": {**INSTANT, "description": "When it began."},
    },
    EventType.CREDENTIAL_CREATED: CREDENTIAL,
    EventType.CREDENTIAL_ROTATED: CREDENTIAL,
    EventType.CREDENTIAL_FORMER_ENDED: CREDENTIAL,
    EventType.CREDENTIAL_DELETED: CREDENTIAL,
    EventType.SIGNING_KEY_CREATED: SIGNING_KEY,
    EventType.SIGNING_KEY_DELETED: SIGNING_KEY,
    EventType.TENANT_CREATED: TENANT,
    EventType.TENANT_CHANGED: TENANT,
    EventType.TENANT_ENABLED: TENANT,
    EventType.TENANT_DISABLED: TENANT,
    EventType.TENANT_DELETED: TENANT,
    EventType.ALERT_RAISED: {
        **ALERTED,
        "occasions": items(
            {"enum": ["onSuccess", "onError", "onDelay"]},
            minItems=1,
            maxItems=3,
            description="Members of `ansConfig`. `onDelay`: it began more than 20 minutes late.",
        ),
        "alert": ALERT,
    },
    EventType.ALERT_STATUS: {
        **ALERTED,
        "executionStatus": {"const": "COMPLETED", "description": "SAP's runStatus."},
        "applicationStatus": one_of(ENDS, description="SAP's runState."),
    },
}


def states_of(kind: EventType, table: Mapping[State, EventType]) -> list[State]:
    """Returns the schemas in the order of the closed table."""
    return [state for state in State if table.get(state) is kind]


def members_of(kind: EventType) -> Members:
    """Returns the members of the detail that not every event has."""
    for table, members in ((OF_STATE, RUN), (OF_LINE, LINE)):
        if states := states_of(kind, table):
            facts = {
                "state": one_of(states, description=STATE),
                "reason": one_of(Reason, description=REASON),
            }
            return {**JOB, **members, **facts}
    return OTHERS.get(kind, {**JOB, **CHANGE})


def of_all(kind: EventType) -> Members:
    """Returns the members that the detail of every event has."""
    return {
        "version": {
            "const": VERSION,
            "description": "The version of the detail. New members may be added without a new version.",
        },
        "id": text(
            1,
            300,
            pattern=f"^{kind.value.replace('.', '[.]')}:",
            description="The id of the event. It stays the same if the event is sent again.",
        ),
        "tenant": text(1, 64, description="The name of the tenant."),
        "collection": text(1, 128, description="The name of the collection."),
        "occurredAt": {**INSTANT, "description": "When it happened."},
    }


def schema(kind: EventType) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind.value,
        "description": MEANING[kind],
        "type": "object",
        "properties": {
            "source": {"const": SOURCE},
            "detail-type": {"const": kind.value},
            # Not closed, so that members that are added later are also valid.
            "detail": {**answer({**of_all(kind), **members_of(kind)}), "additionalProperties": True},
        },
        "required": ["source", "detail-type", "detail"],
    }


def of_jobs() -> Schema:
    """Returns the schema of events sent by the action `event`; each job chooses its `detail-type`."""
    return _of_jobs(
        OF_JOBS,
        "The event that a job with the action `event` publishes at its instant.",
        text(1, event_action.MAX_DETAIL_TYPE, description=f"`{event_action.USUAL_TYPE}` by default."),
        _of_occurrence(),
    )


def _of_occurrence() -> Members:
    return {
        "id": {**RUN_ID, "description": "The id of the run. It stays the same if the event is sent again."},
        "tenant": text(1, 64, description="The name of the tenant."),
        "jobId": or_null({**ID, "description": "The id of the job, a UUID; null for a message, which has none."}),
        "jobScheduleId": or_null({**ID, "description": "The same id as `jobId`."}),
        "scheduleId": or_null(
            {**ID, "description": "The schedule of the run; null for a run of the job itself, such as a manual one."}
        ),
        "resourceId": JOB["resourceId"],
        "tag": or_null(text(1, 128, description="The first of `tags`.")),
        "tags": JOB["tags"],
        "jobTime": text(
            format="date-time",
            pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
            description="The planned instant.",
        ),
        "firedAt": {**INSTANT, "description": "When this attempt was made."},
        "attempt": whole(1, description="The number of the attempt."),
        "payload": {
            "description": "The payload of the action or the schedule: JSON or a string; null if there is none."
        },
        "traceparent": text(
            pattern="^00-[0-9a-f]{32}-[0-9a-f]{16}-01$", description="The trace context, as the W3C defines it."
        ),
    }


def _of_jobs(title: str, description: str, kind: Schema, detail: Members) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": description,
        "type": "object",
        "properties": {
            "source": text(pattern=f"^{JOBS_SPEAK_AS}[.]", description="The source: it ends with the tenant."),
            "detail-type": kind,
            "detail": {**answer(detail), "additionalProperties": True},
        },
        "required": ["source", "detail-type", "detail"],
    }


SECOND = text(format="date-time", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")
SPAN: Members = {
    "count": whole(1, description="How many occurrences there are."),
    "from": {**SECOND, "description": "The planned instant of the first."},
    "until": {**SECOND, "description": "The planned instant of the last."},
}


def of_missed() -> Schema:
    """Returns the schema of events that were held until their consumer started."""
    missed = {
        **answer(SPAN),
        "description": "The occurrences that the event stands for: one, unless `mode` is `count`.",
    }
    usual = event_action.USUAL_TYPE + event_action.MISSED_SUFFIX
    return _of_jobs(
        OF_MISSED,
        "The event that a job publishes, once its consumer starts, for an occurrence that the consumer missed.",
        text(1, event_action.MAX_DETAIL_TYPE, pattern="[.]missed$", description=f"`{usual}` by default."),
        {**_of_occurrence(), "missed": missed},
    )


def of_dropped() -> Schema:
    """Returns the schema of the event about occurrences that a consumer will not get."""
    detail: Members = {
        "id": text(1, 200, description="The id of the event. It stays the same if the event is sent again."),
        "tenant": text(1, 64, description="The name of the tenant."),
        "consumer": text(1, 128, description="The name of the consumer."),
        "jobId": or_null({**ID, "description": "The id of the job, a UUID; null for a message, which has none."}),
        "jobScheduleId": or_null({**ID, "description": "The same id as `jobId`."}),
        "resourceId": JOB["resourceId"],
        "tag": or_null(text(1, 128, description="The first of `tags`.")),
        "tags": JOB["tags"],
        **SPAN,
        "reason": one_of([Reason.CONSUMER_AWAY], description="Why they are dropped."),
    }
    return _of_jobs(
        replay.DROPPED_TYPE,
        "Occurrences of a job that its consumer missed and will not get: too old, too many, or left out by `mode`.",
        {"const": replay.DROPPED_TYPE},
        detail,
    )


SIGN = {"$comment": "Generated by `make docs`. Do not edit."}


def files() -> dict[Path, str]:
    """Returns the text of each file, by its path."""
    told = {kind.value: schema(kind) for kind in EventType} | {
        OF_JOBS: of_jobs(),
        OF_MISSED: of_missed(),
        replay.DROPPED_TYPE: of_dropped(),
    }
    return {FOLDER / f"{name}.json": _written(SIGN | each) for name, each in told.items()}


def _written(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def write(*, check: bool) -> list[Path]:
    """Returns the files that differ from the generated ones. Without `check`, writes them and deletes unknown files."""
    wanted = files()
    differ = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    strangers = [path for path in FOLDER.glob("*") if path not in wanted]
    if not check:
        FOLDER.mkdir(exist_ok=True)
        for path in differ:
            path.write_text(wanted[path])
        for path in strangers:
            path.unlink()
    return differ + strangers
