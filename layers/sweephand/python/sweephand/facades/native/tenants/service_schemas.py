"""Schemas of collections and credentials."""

from __future__ import annotations

from sweephand.domain.collection import LONGEST_CALLBACK_S, CollectionState, Events
from sweephand.facades.native.members import action_schemas
from sweephand.facades.native.members.json_schema import Members, answer, one_of, or_null, ref, request, text, whole
from sweephand.facades.native.members.schedule_schemas import ZONE
from sweephand.facades.native.members.schema_words import (
    ACTOR,
    FACADE,
    ID,
    INSTANT_MS,
    PASSED_OVER,
    PLAIN_NAME,
    REVISION,
    SCOPES,
    TEXT,
)
from sweephand.facades.native.shared import collection_fields
from sweephand.flow.tenants.access import LONGEST_OVERLAP, USUAL_OVERLAP

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
_FLOW_KEY = text(1, 128, description="The flow key that the calls of all its jobs pass which name none themselves.")
COLLECTION: Members = {
    "name": TEXT,
    "facade": FACADE,
    "attributes": {"type": "object", "description": "What only its facade reads, such as the names that it shows."},
    "state": one_of(CollectionState),
    "quota": answer({name: or_null(each) for name, each in _QUOTA.items()}),
    "retention": answer(_RETENTION),
    "events": _EVENTS,
    "defaults": answer(
        {"timezone": or_null(ZONE), "retry": or_null(ref("ShownRetry")), "policies": ref("OwnPolicies")}
    ),
    "callbackTimeoutSeconds": or_null(_CALLBACK),
    "redirects": action_schemas.SHOWN_REDIRECTS,
    "flowKey": or_null(_FLOW_KEY),
    "jobCount": whole(),
    "revision": REVISION,
    "createdAt": INSTANT_MS,
    "createdBy": ACTOR,
    "modifiedAt": INSTANT_MS,
    "modifiedBy": ACTOR,
}
COLLECTION_DRAFT: Members = {
    "name": PLAIN_NAME,
    "quota": request(_QUOTA),
    "retention": request(_RETENTION),
    "events": _EVENTS,
    "defaults": request({"timezone": ZONE, "retry": ref("Retry"), "policies": ref("Policies")}),
    "callbackTimeoutSeconds": _CALLBACK,
    "redirects": action_schemas.REDIRECTS,
    "flowKey": _FLOW_KEY,
}
COLLECTION_REPLACEMENT: Members = {
    **COLLECTION_DRAFT,
    **dict.fromkeys(collection_fields.READ_ONLY, PASSED_OVER),
}
SIGNING_KEY: Members = {"id": ID, "createdAt": INSTANT_MS, "createdBy": ACTOR}
CREDENTIAL: Members = {
    "clientId": TEXT,
    "name": or_null(TEXT),
    "scopes": SCOPES,
    "createdAt": INSTANT_MS,
    "createdBy": ACTOR,
    "rotatedAt": or_null({**INSTANT_MS, "description": "When it got its present secret by a rotation."}),
    "rotatedBy": ACTOR,
    "formerSecretUntil": or_null(
        {**INSTANT_MS, "description": "Until when the secret before the last rotation is accepted too."}
    ),
}
ROTATION: Members = {
    "overlapSeconds": whole(
        0,
        int(LONGEST_OVERLAP.total_seconds()),
        default=int(USUAL_OVERLAP.total_seconds()),
        description="How long the present secret and its tokens are accepted after the rotation; 0 ends them at once.",
    )
}
