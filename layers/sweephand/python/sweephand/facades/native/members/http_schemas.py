"""Schemas of HTTP actions, their authentication, retries and policies."""

from __future__ import annotations

from sweephand.actions.auth import authentication
from sweephand.domain.runs import retry
from sweephand.facades.native.members.json_schema import (
    Members,
    Schema,
    answer,
    items,
    one_of,
    or_null,
    request,
    text,
    whole,
)

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
