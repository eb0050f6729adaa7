"""The JSON Schemas (2020-12) of the native API, one for each noun. They are the source of `openapi.json`.

An answer has exactly the members of its schema. Every accepted body fits its request schema. Rules that a schema cannot
express, such as a time zone that exists or a cron string that fires, are in shapes.py and the schedules. `null` in a
request means an absent member.
"""

from __future__ import annotations

from sweephand.base.json_schema import Members, Schema, answer, items, one_of, or_null, ref, request, text, whole
from sweephand.domain.consumer import LEAST_LEASE_S, LONGEST_LEASE_S, USUAL_LEASE_S
from sweephand.domain.job import HOOK_KINDS, SCHEDULES_AT_ONCE
from sweephand.domain.job_set import MOST_JOBS
from sweephand.domain.jobs import policies
from sweephand.domain.schema_words import (
    FLAG,
    GIVEN_INSTANT,
    ID,
    IN_UTC,
    INSTANT,
    NAME,
    PASSED_OVER,
    TEXT,
)
from sweephand.server.actions.http import Http
from sweephand.server.actions.http_fields import OutcomeRules
from sweephand.server.actions.outcome import schemas as outcome_schemas
from sweephand.server.actions.payloads import ANYTHING
from sweephand.server.facades.native.jobs import last_runs
from sweephand.server.facades.native.jobs.changes import CHANGE
from sweephand.server.facades.native.jobs.job_sets import LISTED
from sweephand.server.facades.native.jobs.set_figures import FIGURES
from sweephand.server.facades.native.members.job_members import JOB
from sweephand.server.facades.native.members.schedule_members import TOTALS
from sweephand.server.facades.native.shared.collection_members import COLLECTION
from sweephand.server.facades.native.shared.consumers import CONSUMER
from sweephand.server.facades.native.tenants.credentials import CREDENTIAL, OVERLAP, SCOPES
from sweephand.server.facades.native.tenants.signing import SIGNING_KEY
from tools.openapi import (
    action_schemas,
    message_schemas,
    resource_schemas,
    run_schemas,
    schedule_schemas,
    service_schemas,
)
from tools.openapi.action_schemas import (
    AUTHENTICATION,
    RETRY,
    retry_shown,
    shown_authentication,
)
from tools.openapi.pages_and_patches import page, patch_of
from tools.openapi.schedule_schemas import (
    OF_SOME_NOTATIONS,
    ONE_NOTATION,
    SCHEDULE,
    SCHEDULE_DRAFT,
    SCHEDULE_REPLACEMENT,
    TIMING,
)

# Jobs

_JOB_DRAFT: Members = {**JOB.request(), "schedules": items(ref("ScheduleDraft"), maxItems=SCHEDULES_AT_ONCE)}
_JOB_REPLACEMENT: Members = {
    **JOB.request(),
    "schedules": items(
        ref("ScheduleReplacement"),
        maxItems=1_000,
        description="If left out, they stay. Schedules are matched by `id`, else by `name`; those not "
        "listed are deleted.",
    ),
    **dict.fromkeys(JOB.read_only, PASSED_OVER),
}
_JOB: Members = {**JOB.answer(), "totals": ref("Totals"), "schedules": items(ref("Schedule"))}
_UNTIL: Schema = {**GIVEN_INSTANT, "description": f"The job resumes at this instant. {IN_UTC}"}
_LISTED_JOB: Members = {
    **_JOB,
    "action": ref("ListedAction"),
    "errorAction": or_null(ref("ListedAction")),
    "hooks": answer(dict.fromkeys(HOOK_KINDS, ref("ListedAction")), HOOK_KINDS),
    "schedules": items(ref("ListedSchedule")),
    "lastRuns": items(
        ref("LastRun"),
        maxItems=last_runs.MOST,
        description="With `include=lastRuns`: its last runs, latest planned first, without hooks and tests.",
    ),
}
_WITH_SCHEDULES = {"dependentRequired": {"schedules": ["totals"], "totals": ["schedules"]}}

_COLLECTION_DRAFT: Members = {**COLLECTION.request(), "redirects": action_schemas.REDIRECTS}
_COLLECTION_PASSED_OVER = dict.fromkeys(
    ("facade", "attributes", "state", "revision", *COLLECTION.read_only), PASSED_OVER
)
_CREDENTIAL, _SIGNING_KEY = CREDENTIAL.answer(), SIGNING_KEY.answer()

# Job sets

_OF_SET = {
    "key": text(1, 128, description="The job's key in the set, under which it keeps its runs and its rhythm."),
    "was": text(1, 128, description="The key that it had before."),
}
_ACTIONS_OF_SET = {"action": ref("ActionOfSet"), "errorAction": or_null(ref("ActionOfSet"))} | {
    "hooks": request(dict.fromkeys(HOOK_KINDS, ref("ActionOfSet")))
}
_LIST_OF_SET: Schema = items(ref("JobSetChange"))

# Consumers

_HOLDER = {"holder": text(1, 128, description="A unique name of the process.")}

_OUTCOME = outcome_schemas("Outcome", OutcomeRules)

SCHEMAS: dict[str, Schema] = {
    "JobDraft": request(_JOB_DRAFT, ("action",)),
    "JobReplacement": request(_JOB_REPLACEMENT, ("action",)),
    "ScheduleDraft": request(SCHEDULE_DRAFT, oneOf=ONE_NOTATION),
    "ScheduleReplacement": request(SCHEDULE_REPLACEMENT, oneOf=ONE_NOTATION),
    "Action": {"oneOf": action_schemas.names()},
    **action_schemas.schemas(),
    "HttpAction": action_schemas.given(Http),
    "Authentication": {"oneOf": list(AUTHENTICATION.values())},
    "Outcome": _OUTCOME["Outcome"],
    "Retry": request(RETRY),
    "Policies": request(policies.SCHEMA),
    "SchedulePolicies": request(policies.SCHEDULE_SCHEMA),
    "Misfire": request(policies.MISFIRE),
    "PauseRequest": request({"note": text(0, 1_000), "until": _UNTIL}),
    "Nothing": request({}),
    "CollectionDraft": request(_COLLECTION_DRAFT, ("name",)),
    "CollectionReplacement": request({**_COLLECTION_DRAFT, **_COLLECTION_PASSED_OVER}),
    "CredentialDraft": request({"name": NAME, "scopes": SCOPES}),
    "CredentialRotation": request({"overlapSeconds": OVERLAP}),
    "TokenRequest": {
        "type": "object",
        "properties": {
            "grant_type": {"const": "client_credentials", "description": "`client_credentials`."},
            "scope": text(description="Some of the client's scopes, separated by spaces; by default all."),
            "client_id": text(description="With `client_secret`, instead of Basic."),
            "client_secret": text(description="The secret of the client."),
        },
        "required": ["grant_type"],
    },
    "Job": answer(_JOB, ("schedules",)),
    "ListedJob": answer(_LISTED_JOB, ("totals", "schedules", "lastRuns"), **_WITH_SCHEDULES),
    "JobPage": page("ListedJob", {"total": whole(description="With `include=total`.")}, ("total",)),
    **schedule_schemas.SCHEMAS,
    "Schedule": answer(SCHEDULE, OF_SOME_NOTATIONS, oneOf=ONE_NOTATION),
    "ListedSchedule": answer(
        {name: each for name, each in SCHEDULE.items() if name not in {"payload", "hooks"}},
        OF_SOME_NOTATIONS,
        oneOf=ONE_NOTATION,
    ),
    "SchedulePage": page("Schedule"),
    "ShownAction": {"oneOf": action_schemas.names("Shown")},
    "ShownHttpAction": action_schemas.shown(Http),
    "ListedAction": {"oneOf": action_schemas.names("Listed")},
    "ListedHttpAction": action_schemas.listed(Http),
    "ShownAuthentication": shown_authentication(),
    "ShownOutcome": _OUTCOME["ShownOutcome"],
    "ShownRetry": retry_shown(),
    "ShownPolicies": answer(
        {**policies.SCHEMA, "misfire": answer(policies.SHOWN_MISFIRE), "flowKey": or_null(policies.SCHEMA["flowKey"])}
    ),
    "OwnPolicies": answer({**policies.SCHEMA, "misfire": answer(policies.MISFIRE, policies.MISFIRE)}, policies.SCHEMA),
    "Totals": answer(TOTALS.answer()),
    "Change": answer(
        {
            **CHANGE.answer(),
            "before": {**or_null(ref("JobBefore")), "description": "The values before the change."},
        },
        ("before",),
    ),
    "ChangedMember": answer(
        {
            "scheduleId": or_null(ID),
            "path": or_null(
                text(description="The path, such as `action.url`. Null: the whole schedule is new or was removed.")
            ),
            "old": {"description": "The former value; null: it did not exist."},
            "new": {"description": "The new value; null: it no longer exists."},
            "cut": {
                **FLAG,
                "description": "True: a value has over 4,000 characters, and only the beginning of its JSON is shown.",
            },
        }
    ),
    "JobBefore": answer(
        {
            **{name: each for name, each in _JOB.items() if name in {*JOB.sent, "schedules"}},
            "pause": _JOB["pause"],
            "schedules": items(ref("ScheduleBefore"), description="The schedules that the change affected."),
        },
        ("name", "collection", "hooks", *JOB.nullable),
    ),
    "ScheduleBefore": answer(
        {"id": ID, "name": TEXT, "active": FLAG, "payload": ANYTHING, "hooks": SCHEDULE["hooks"]}
        | {"policies": ref("OwnPolicies"), **TIMING},
        ("payload", "hooks", *TIMING),
    ),
    "ChangePage": page("Change"),
    "JobSetDraft": request(
        {
            "jobs": items(
                request({**_OF_SET, **_JOB_DRAFT, **_ACTIONS_OF_SET}, ("key", "action")),
                maxItems=MOST_JOBS,
                description="All jobs of the set. Jobs that are not in the list are deleted.",
            )
        },
        ("jobs",),
    ),
    "ActionOfSet": {"oneOf": [*action_schemas.names(), ref("JobByKeyAction")]},
    "JobByKeyAction": action_schemas.job_by_key(),
    "JobSet": answer(
        {
            **LISTED.answer(),
            "jobs": items(
                answer(
                    {
                        "key": {**TEXT, "description": "The key of the job in the set."},
                        "jobId": ID,
                        "state": one_of(
                            ("applied", "changed", "deleted"),
                            description="Whether others have changed or deleted the job since the set was applied.",
                        ),
                        "changes": or_null(
                            items(ref("Change"), description="Newest first; null for all but the first 50 jobs.")
                        ),
                    }
                ),
                description="The jobs of the set, by key.",
            ),
            "figures": {
                **ref("RunFigures"),
                "description": "With `include=figures`: how the latest runs of its jobs did.",
            },
        },
        ("figures",),
    ),
    "RunFigures": answer(FIGURES.answer(), description="Figures of the runs."),
    "JobSetPage": page("ListedJobSet"),
    "ListedJobSet": answer(LISTED.answer()),
    "JobSetChange": answer(
        {
            "key": {**TEXT, "description": "The key of the job in the set."},
            "jobId": or_null({**ID, "description": "The id of the job; null if it is new."}),
            "name": or_null({**TEXT, "description": "The name of the job; null if it is new."}),
            "was": {**TEXT, "description": "The key that the job had before."},
            "runs": or_null(
                whole(description="How many occurrences of a deleted job were sent; null if they were not counted.")
            ),
            "openRuns": or_null(whole(description="How many of these have not ended.")),
            "changes": or_null(
                items(
                    ref("PlannedMember"),
                    description="In a plan: the members of the job that change; null after the first 500.",
                )
            ),
            "nextRunAtBefore": or_null(
                {**INSTANT, "description": "In a plan: when the job runs next without the change; null if it does not."}
            ),
            "nextRunAt": or_null(
                {
                    **INSTANT,
                    "description": "In a plan: when the job runs next if the plan is applied now; null if it does not.",
                }
            ),
            "nextRunExact": FLAG,
        },
        ("was", "runs", "openRuns", "changes", "nextRunAtBefore", "nextRunAt", "nextRunExact"),
    ),
    "PlannedMember": answer(
        {
            "schedule": or_null(text(description="The name of the schedule; null: a member of the job.")),
            "path": or_null(
                text(description="The path, such as `action.url`. Null: the whole schedule is new or was removed.")
            ),
            "old": {"description": "The current value; null: it does not exist."},
            "new": {"description": "The planned value; null: it will no longer exist."},
            "cut": {
                **FLAG,
                "description": "True: a value has over 400 characters, and only the beginning of its JSON is shown.",
            },
        }
    ),
    "JobSetPlan": answer(
        {
            "set": {**TEXT, "description": "The name of the set."},
            "created": {**_LIST_OF_SET, "description": "The jobs that are new."},
            "updated": {**_LIST_OF_SET, "description": "The jobs whose entry in the list has changed."},
            "repaired": {**_LIST_OF_SET, "description": "The jobs that others had changed or deleted."},
            "deleted": {**_LIST_OF_SET, "description": "The jobs that the list no longer contains, with what is lost."},
            "unchanged": whole(description="How many jobs stay unchanged."),
            "failed": items(
                answer(
                    {
                        "key": {**TEXT, "description": "The key of the job in the set."},
                        "code": TEXT,
                        "reason": {**TEXT, "description": "Why it was refused."},
                    }
                ),
                description="The changes that were refused after others had been made.",
            ),
            "remaining": whole(
                description="How many changes remain, for lack of time or by a concurrent list: send the request again."
            ),
            "token": or_null(
                text(
                    description="Identifies a plan, or the remaining changes."
                    " If you send it as `token`, exactly these are applied."
                )
            ),
        }
    ),
    "Consumer": answer(CONSUMER.answer()),
    "ConsumerPage": page("Consumer"),
    "LeaseRequest": request(
        {
            **_HOLDER,
            "seconds": whole(
                LEAST_LEASE_S,
                LONGEST_LEASE_S,
                default=USUAL_LEASE_S,
                description="How long the lease lasts unless it is extended.",
            ),
        },
        ("holder",),
    ),
    "StartRequest": request(_HOLDER, ("holder",)),
    "NextRun": answer({"nextRunAt": or_null(INSTANT), "scheduleId": or_null(ID), "nextRunExact": FLAG}),
    "Collection": answer({**COLLECTION.answer(), "redirects": action_schemas.SHOWN_REDIRECTS}),
    "CollectionPage": page("Collection"),
    "SigningKey": answer(_SIGNING_KEY),
    "IssuedSigningKey": answer(
        {
            **_SIGNING_KEY,
            "secret": text(pattern="^whsec_", description="A secret of Standard Webhooks. Only this answer shows it."),
        }
    ),
    "SigningKeyPage": page("SigningKey"),
    "KeySet": answer(
        {
            "keys": items(
                answer(
                    {
                        "kty": {"const": "RSA", "description": "The type of the key."},
                        "use": {"const": "sig", "description": "The purpose of the key."},
                        "alg": {"const": "RS256", "description": "The algorithm of the key."},
                    }
                    | {
                        "kid": {**TEXT, "description": "The id of the key."},
                        "n": {**TEXT, "description": "The modulus of the RSA key."},
                        "e": {**TEXT, "description": "The exponent of the RSA key."},
                    }
                )
            )
        },
        description="A JSON Web Key Set (RFC 7517).",
    ),
    "IssuerConfiguration": answer(
        {
            "issuer": text(description="The `iss` of the tokens."),
            "jwks_uri": text(format="uri", description="The address of the keys."),
            **{
                name: items(TEXT)
                for name in (
                    *("response_types_supported", "subject_types_supported"),
                    "id_token_signing_alg_values_supported",
                )
            },
        },
        description="The configuration by OpenID Connect Discovery 1.0.",
    ),
    "Credential": answer(_CREDENTIAL),
    "IssuedCredential": answer(
        {
            **_CREDENTIAL,
            "secret": text(
                description="The secret, which only this answer shows. It is accepted everywhere within ten seconds."
            ),
        }
    ),
    "CredentialPage": page("Credential"),
    **resource_schemas.CALENDARS,
    **run_schemas.OPERATIONS,
    **resource_schemas.FLOW_KEYS,
    **run_schemas.SCHEMAS,
    **message_schemas.SCHEMAS,
    **resource_schemas.OVERVIEWS,
    **resource_schemas.TENANTS,
    **service_schemas.SCHEMAS,
}
SCHEMAS |= {
    f"{noun}Patch": patch_of(SCHEMAS[f"{noun}Replacement"], SCHEMAS, removable=False)
    for noun in ("Job", "Schedule", "Collection", "FlowKey")
}
SCHEMAS["ActionPatch"] = patch_of(ref("Action"), SCHEMAS, removable=False)
_OF_JOB = SCHEMAS["JobPatch"]["properties"]
_OF_JOB["action"] = ref("ActionPatch")
_OF_JOB["errorAction"] = or_null(ref("ActionPatch"))
_OF_SCHEDULE = SCHEMAS["SchedulePatch"]["properties"]
for _of in (_OF_JOB, _OF_SCHEDULE):
    _of["hooks"]["properties"] = dict.fromkeys(HOOK_KINDS, or_null(ref("ActionPatch")))
"""Schemas with a name of their own, because a job refers to them up to five times, and its schedules more."""
