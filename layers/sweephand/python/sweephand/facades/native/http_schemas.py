"""Schemas of HTTP actions, their authentication, retries and policies."""

from __future__ import annotations

from collections.abc import Mapping

from sweephand.actions import certificates, headers, http_fields
from sweephand.domain.collection import LONGEST_CALLBACK_S
from sweephand.domain.job import HOOK_KINDS
from sweephand.domain.runs import deactivation, retry
from sweephand.facades.native import action_schemas, defaults, shapes
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
from sweephand.facades.native.schema_words import ANYTHING, FLAG, INSTANT, MASKED, PASSED_OVER, TEXT

OUTCOME: Members = {
    "answerTimeoutSeconds": whole(1, 60),
    "successStatuses": items(text(pattern="^([1-5]xx|[1-5][0-9]{2}(-[1-5][0-9]{2})?)$"), minItems=1, maxItems=20),
    "on202": one_of(("success", "wait")),
    "onNoAnswer": one_of(("fail", "wait")),
    "callbackTimeoutSeconds": whole(1, LONGEST_CALLBACK_S),
}
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
ACTION: Members = {
    "type": {"const": "http"},
    "method": one_of(http_fields.METHODS),
    "url": text(1, 2_048, description="Secrets in its query (`sig`, `api_key`, long `code` and `key`) are sealed."),
    "headers": {
        "type": "object",
        "additionalProperties": TEXT,
        "maxProperties": headers.MAX_HEADERS,
        "description": "`Authorization`, `Cookie`, `X-Api-Key` and other names of secrets are sealed, shown as `***`.",
    },
}
PAYLOADS: Members = {
    "payload": ANYTHING,
    "body": action_schemas.TEXT_BODY,
}
_SECRET = text(longest=headers.MAX_SECRET, description="Encrypted; absent or `***` in a change: the stored one.")
SHOWN_ACTION: Members = {
    **ACTION,
    "authentication": ref("ShownAuthentication"),
    "outcome": ref("ShownOutcome"),
    "retry": ref("ShownRetry"),
}


_CERTIFICATE = answer(
    {
        "subject": TEXT,
        "notBefore": INSTANT,
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


def shown_authentication() -> Schema:
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


def retry_shown() -> Schema:
    """By type, the members that it uses."""
    always = {"type", "maxRetries", "immediate", "delayed"}
    shown = {name: each if name in always else or_null(each) for name, each in RETRY.items()}
    return {
        "oneOf": [
            answer({"type": {"const": kind.value}, **{name: shown[name] for name in names}})
            for kind, names in retry.USED.items()
        ]
    }
