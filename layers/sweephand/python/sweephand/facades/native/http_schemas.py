"""Schemas of HTTP actions, their authentication, retries and policies."""

from __future__ import annotations

from sweephand.actions import http_fields
from sweephand.actions.auth import authentication
from sweephand.domain.job import HOOK_KINDS
from sweephand.domain.runs import deactivation, retry
from sweephand.facades.native import defaults, shapes
from sweephand.facades.native.json_schema import (
    Members,
    Schema,
    answer,
    items,
    one_of,
    or_null,
    ref,
    request,
    text,
    whole,
)
from sweephand.facades.native.schema_words import FLAG

OUTCOME = http_fields.OUTCOME
RETRY: Members = {
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
    "onNothingLeft": {
        **one_of(("refuse", "complete")),
        "description": "What becomes of a schedule without an instant left: it is refused, or completed without a run.",
    },
    "onUnreachable": {
        **one_of(deactivation.OnUnreachable),
        "description": "What becomes of a schedule whose target got no connection for 10 days on end.",
    },
    "afterEnd": {
        **one_of(("open", "final")),
        "description": "Of a job: whether one that is COMPLETED or FAULTED can still be changed and run. It can always"
        " be read and deleted.",
    },
    "onNoResult": {
        **one_of(("end", "retry")),
        "description": "What becomes of a run whose target took the work and reported no result in time: it ends as"
        " UNKNOWN, or the next attempt of its retry policy is made.",
    },
    "delivery": one_of(("at_least_once", "at_most_once")),
    "keepAnswer": one_of(("failures", "all", "none")),
    "hooks": items(
        one_of(HOOK_KINDS), uniqueItems=True, description="Which hooks of the job run; for a schedule, its own choice."
    ),
    "callbackToken": {**FLAG, "description": "The target is sent a token with which it reports the result."},
    "flowKey": text(1, 128, description="Of a job, not of a schedule: the flow key that its calls pass."),
}
POLICIES: Members = {name: _POLICIES[name] for name in defaults.POLICIES}
MISFIRE: Members = {
    "type": one_of(shapes.MISFIRES),
    "ratePerMinute": whole(1, 6_000),
    "maxLatenessSeconds": whole(shapes.LEAST_LATENESS_S, shapes.MOST_LATENESS_S),
}
SHOWN_MISFIRE: Members = {
    "type": MISFIRE["type"],
    **{name: or_null(MISFIRE[name]) for name in ("ratePerMinute", "maxLatenessSeconds")},
}
AUTHENTICATION = {name: request(*authentication.given(name)) for name in authentication.TYPES}


def shown_authentication() -> Schema:
    """Returns one form a type."""
    return {"oneOf": [answer(authentication.shown(name)) for name in authentication.TYPES]}


def retry_shown() -> Schema:
    """Returns one form a type, of the members that it uses."""
    always = {"type", "maxRetries", "immediate", "delayed"}
    shown = {name: each if name in always else or_null(each) for name, each in RETRY.items()}
    return {
        "oneOf": [
            answer({"type": {"const": kind.value}, **{name: shown[name] for name in names}})
            for kind, names in retry.USED.items()
        ]
    }
