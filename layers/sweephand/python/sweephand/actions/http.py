"""The HTTP action: one guarded request, and what its answer means."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from sweephand import __version__
from sweephand.actions import dialects
from sweephand.actions.authentication import certificate_out_of_time
from sweephand.actions.call import Call
from sweephand.actions.headers import MASK, is_secret, secret_field
from sweephand.actions.http_fields import (
    QUERY_METHODS,
    HttpParams,
    OutcomeRules,
    carried_over,
    check_payload,
    from_json,
    kept_secrets,
    opened_url,
    parse,
    to_json,
)
from sweephand.actions.payloads import BadPayloadError
from sweephand.actions.proof import NotProven, Proof, Sending, addressed, followed, prove
from sweephand.actions.proof import secret as secret_of
from sweephand.actions.redaction import hidden
from sweephand.domain.members.json_text import Number, dumps
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.runs.retry import is_transient, retry_after_s
from sweephand.errors import InvalidRequest
from sweephand.security.guard import CallFailed, Deadline, Outbound, Target, check_url

if TYPE_CHECKING:
    from sweephand.security.outbound import Answer

__all__ = [
    "HttpParams",
    "OutcomeRules",
    "carried_over",
    "check_payload",
    "from_json",
    "kept_secrets",
    "parse",
    "perform",
    "to_json",
]

MAX_ANSWER = 16_384
MAX_TARGET = 16_384
USER_AGENT = f"Sweephand/{__version__}"
GONE = 410
ACCEPTED = 202
UNAUTHORIZED = 401
_CHARSET = re.compile(r';\s*charset="?([A-Za-z0-9._-]{1,40})', re.ASCII)
_CHARSETS = {
    "us-ascii": "ascii",
    "iso-8859-1": "latin-1",
    "windows-1252": "cp1252",
    "utf-16": "utf-16",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
}


def perform(params: HttpParams, call: Call, outbound: Outbound) -> Outcome:
    """Make one request and say what came of it. Returns an Outcome whatever the network or the endpoint does."""
    outcome = _performed(params, call, outbound)
    if outcome.verdict is Verdict.FAILED and params.authentication.type == "clientCertificate":
        return _explained(outcome, params, call.clock.now())
    return outcome


def _explained(outcome: Outcome, params: HttpParams, now: datetime) -> Outcome:
    """Targets close the connection, or answer with a status of theirs: a certificate out of time may be why."""
    why = certificate_out_of_time(params.authentication, now)
    return outcome if why is None else replace(outcome, message="; ".join(filter(None, (outcome.message, why))))


def _performed(params: HttpParams, call: Call, outbound: Outbound) -> Outcome:
    limit_s = min(params.outcome.answer_timeout_s, call.deadline_s)
    deadline = Deadline(call.clock.monotonic() + limit_s, call.clock.monotonic)
    try:
        target = check_url(opened_url(params.url, partial(secret_of, call.secrets)), outbound.settings)
        params = replace(params, authentication=followed(params, target, outbound))
        target, content, content_type = _content(params, call, addressed(params.authentication, target))
        sending = Sending(params.method, target, _headers(params, call, content_type, content), content)
        answer, proof = _proven_exchange(params, call, sending, deadline, outbound)
    except NotProven as unproven:
        return unproven.outcome
    except InvalidRequest as refused:
        return _failed(Reason.GUARD, refused.reason, retryable=False)
    except BadPayloadError as wrong:
        return _failed(Reason.BAD_PAYLOAD, str(wrong), retryable=False)
    except CallFailed as failure:
        return _without_answer(failure, params.outcome.on_no_answer, limit_s)
    return _judge(params, call, answer, proof, limit_s)


def _proven_exchange(
    params: HttpParams, call: Call, sending: Sending, deadline: Deadline, outbound: Outbound
) -> tuple[Answer, Proof]:
    """The answer, and what was shown. A 401 to what was kept from an earlier call is asked once more with another."""
    proof = prove(params.authentication, sending, call, outbound, deadline, None)
    answer = _exchange(params, call, sending, proof, deadline, outbound)
    if answer.status == UNAUTHORIZED and proof.kept:
        proof = prove(params.authentication, sending, call, outbound, deadline, proof)
        answer = _exchange(params, call, sending, proof, deadline, outbound)
    return answer, proof


def _exchange(
    params: HttpParams, call: Call, sending: Sending, proof: Proof, deadline: Deadline, outbound: Outbound
) -> Answer:
    from sweephand.security.outbound import exchange  # noqa: PLC0415 - 70 ms that only the first HTTP call pays

    return exchange(
        sending.target,
        sending.method,
        [*sending.headers, *proof.headers],
        sending.content,
        outbound,
        deadline,
        with_credentials=params.confidential or call.callback_token is not None,
        ssl_context=proof.ssl_context,
    )


def _content(params: HttpParams, call: Call, target: Target) -> tuple[Target, bytes | None, str | None]:
    """The target with the payload as its query, or the body and its type."""
    if call.payload is None:
        has_body = params.method not in QUERY_METHODS
        return target, None, dialects.type_of_nothing(params.dialect) if has_body else None
    if params.method in QUERY_METHODS:
        query = _query(call.payload) if call.payload_is_json else None
        if query is None:
            raise BadPayloadError(f"with {params.method} the payload must be a JSON object")
        if query:
            path = target.target
            mark = "" if path.endswith(("?", "&")) else "&" if "?" in path else "?"
            target = replace(target, target=f"{path}{mark}{query}")
        if len(target.target) > MAX_TARGET:
            raise BadPayloadError(f"as a query the payload makes an address of more than {MAX_TARGET:,} characters")
        return target, None, None
    return target, call.payload.encode(), "application/json" if call.payload_is_json else "text/plain; charset=utf-8"


def _query(text: str) -> str | None:
    """A JSON object as a query: lists repeat their name, null is left out, objects stay JSON; None for what is none.

    Encoded as RFC 3986 and signatures of AWS have it, a blank as %20: every server reads that.
    """
    members = json.loads(text, parse_float=Number)
    if not isinstance(members, dict):
        return None
    pairs = [
        (name, item if isinstance(item, str) else dumps(item))
        for name, member in members.items()
        for item in (member if isinstance(member, list) else [member])
        if item is not None
    ]
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)


def _headers(params: HttpParams, call: Call, content_type: str | None, content: bytes | None) -> list[tuple[str, str]]:
    """The service's headers, then the caller's, which win where both name one; then the signature."""
    theirs = {name.lower() for name in (*dict(params.headers), *params.authentication.headers)}
    ours = {
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Content-Type": content_type,
        "webhook-id": call.run_id,
        "Idempotency-Key": call.run_id,
        **dialects.headers(params.dialect, call),
        "Sweephand-Hop": str(call.hop),
    }
    headers = [(name, value) for name, value in ours.items() if value is not None and name.lower() not in theirs]
    for name, value in params.headers:
        sealed = name.lower() == "authorization" or (value == MASK and is_secret(name))
        headers.append((name, secret_of(call.secrets, secret_field(name)) if sealed else value))
    if call.signing_secrets:
        from sweephand.security import signing  # noqa: PLC0415 - of collections that have keys

        headers += signing.headers(call.signing_secrets, call.run_id, call.clock.now(), content or b"")
    return headers


def _judge(params: HttpParams, call: Call, answer: Answer, proof: Proof, limit_s: float) -> Outcome:
    rules, status = params.outcome, answer.status
    text = _answer_text(answer, (*call.confidences, *proof.told))
    if status == ACCEPTED and (rules.on202 or call.on202) == "wait":
        return Outcome(Verdict.ACCEPTED, http_status=status, answer=text)
    if rules.is_success(status):
        if answer.failure is None:
            return Outcome(Verdict.SUCCEEDED, http_status=status, answer=text)
        # A server that streams while it works sends its status first: without its end, nobody knows how it went.
        return replace(
            _without_answer(answer.failure, rules.on_no_answer, limit_s),
            http_status=status,
            answer=text,
            message=f"status {status} came, but the answer has no end: {answer.failure.message}",
        )
    return Outcome(
        Verdict.FAILED,
        Reason.HTTP_STATUS,
        http_status=status,
        answer=text,
        message=f"the target answered with status {status}",
        retryable=is_transient(status),
        stop=status == GONE,
        retry_after_s=retry_after_s(answer.header("retry-after"), call.clock.now()),
    )


def _without_answer(failure: CallFailed, on_no_answer: str, limit_s: float) -> Outcome:
    if failure.timed_out:
        message = f"no answer within {limit_s:g} s"
        if on_no_answer == "wait":
            return Outcome(Verdict.SILENT, message=message)
        return _failed(Reason.NO_ANSWER, message, retryable=True)
    return _failed(failure.reason, failure.message, retryable=failure.reason is not Reason.GUARD)


def _failed(reason: Reason, message: str, *, retryable: bool) -> Outcome:
    return Outcome(Verdict.FAILED, reason, message=message, retryable=retryable)


def _answer_text(answer: Answer, secrets: Sequence[str]) -> str | None:
    """The body as text of at most 16 KB in UTF-8, without the secrets that were sent (endpoints echo)."""
    if not answer.body:
        return None
    coding = (answer.header("content-encoding") or "identity").lower()
    if coding != "identity":
        # Decompressing is what a bomb waits for.
        return f"({len(answer.body):,} bytes, not decoded: {coding[:40]})"
    charset = _CHARSET.search(answer.header("content-type") or "")
    text = answer.body.decode(_CHARSETS.get(charset[1].lower() if charset else "", "utf-8"), "replace")
    # Only what is kept is looked through: a long answer of nothing but escapes costs CPU.
    return hidden(text[:MAX_ANSWER], secrets).encode()[:MAX_ANSWER].decode("utf-8", "ignore")
