"""The schemas of flow keys."""

from __future__ import annotations

from sweephand.domain.flow_keys.circuits import CircuitState
from sweephand.domain.flow_keys.flow_keys import LONGEST_PERIOD_S, MOST_PARALLEL, CircuitRule
from sweephand.domain.run import Reason
from sweephand.facades.native.members.json_schema import (
    Members,
    Schema,
    answer,
    items,
    one_of,
    or_null,
    page,
    request,
    text,
    whole,
)
from sweephand.facades.native.members.schema_words import (
    ACTOR,
    FLAG,
    INSTANT_MS,
    PASSED_OVER,
    PLAIN_NAME,
    REVISION,
    TEXT,
)
from sweephand.facades.native.shared import flow_key_fields as fields
from sweephand.store.views.resources import MOST_CIRCUITS, MOST_COUNTED

_RATE: Members = {
    "limit": whole(1, fields.MOST_CALLS),
    "periodSeconds": whole(1, LONGEST_PERIOD_S),
}
_CIRCUIT: Members = {
    "enabled": {**FLAG, "default": True},
    "failures": whole(
        1, fields.MOST_FAILURES, default=CircuitRule.failures, description="In a row, after which a target's opens."
    ),
    "probeSeconds": whole(
        1, fields.LONGEST_PROBE_S, default=CircuitRule.probe_s, description="While it is open, one call in so many."
    ),
}
_PARALLELISM: Schema = whole(
    1, MOST_PARALLEL, description="Calls at once; a run that waits for its target's result counts."
)
_DRAFT: Members = {
    "name": PLAIN_NAME,
    "description": text(0, 1_000),
    "rate": request(_RATE, ("limit", "periodSeconds"), description="Calls, evenly spaced."),
    "parallelism": _PARALLELISM,
    "circuit": request(_CIRCUIT),
}
_LISTED: Members = {
    "name": TEXT,
    "description": or_null(TEXT),
    "rate": or_null(answer(_RATE)),
    "parallelism": or_null(_PARALLELISM),
    "circuit": answer(_CIRCUIT),
    "state": one_of(("ACTIVE", "PAUSED")),
    "pause": or_null(answer({"since": INSTANT_MS, "note": or_null(TEXT)})),
    "usedBy": whole(description="Jobs and collections that name it."),
    "revision": REVISION,
    "createdAt": INSTANT_MS,
    "createdBy": ACTOR,
    "modifiedAt": INSTANT_MS,
    "modifiedBy": ACTOR,
}
_LIVE: Members = {
    "waiting": whole(0, MOST_COUNTED, description=f"Runs in its line, counted up to {MOST_COUNTED:,}."),
    "running": or_null(whole(description="Places that are taken; null without `parallelism`.")),
    "nextCallAt": or_null(
        {**INSTANT_MS, "description": "When the rate allows a call that comes now; null without a rate, or paused."}
    ),
    "circuits": items(
        answer(
            {
                "id": text(pattern="^[0-9a-f]{16}$", description="As `circuit` in events."),
                "target": text(description="The address without its query; of other kinds, the kind and its names."),
                "state": one_of(CircuitState),
                "failures": whole(description="In a row."),
                "since": or_null(INSTANT_MS),
                "lastFailureAt": or_null(INSTANT_MS),
                "lastFailure": or_null(one_of(Reason)),
                "nextProbeAt": or_null(INSTANT_MS),
            }
        ),
        maxItems=MOST_CIRCUITS,
        description="Of targets whose last calls failed.",
    ),
}

SCHEMAS: dict[str, Schema] = {
    "FlowKeyDraft": request(_DRAFT, ("name",)),
    "FlowKeyReplacement": request({**_DRAFT, **dict.fromkeys(fields.READ_ONLY, PASSED_OVER)}),
    "FlowKeyPause": request({"note": text(0, 1_000)}),
    "FlowKey": answer({**_LISTED, "live": answer(_LIVE)}),
    "ListedFlowKey": answer(_LISTED),
    "FlowKeyPage": page("ListedFlowKey"),
}
