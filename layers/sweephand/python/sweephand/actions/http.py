"""The HTTP action: one guarded request, and what its answer means."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from sweephand import __version__
from sweephand.actions.call import Call
from sweephand.actions.http_fields import (
    AUTHORIZATION,
    MASK,
    PASSWORD,
    QUERY_METHODS,
    TOKEN,
    HttpParams,
    OutcomeRules,
    check_payload,
    from_json,
    kept_secrets,
    parse,
    to_json,
)
from sweephand.actions.payloads import BadPayloadError
from sweephand.domain.instants import text as instant_text
from sweephand.domain.json_text import Number, dumps
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.errors import InvalidRequest
from sweephand.security.guard import CallFailed, Deadline, Outbound, Target, check_url

if TYPE_CHECKING:
    from sweephand.security.outbound import Answer

__all__ = [
    "HttpParams",
    "OutcomeRules",
    "check_payload",
    "from_json",
    "kept_secrets",
    "parse",
    "perform",
    "to_json",
]

MAX_ANSWER = 16_384
MAX_RETRY_AFTER_S = 3_600
MAX_TARGET = 16_384
USER_AGENT = f"Sweephand/{__version__}"
TRANSIENT_STATUSES = frozenset({408, 425, 429})
GONE = 410
ACCEPTED = 202
_CHARSET = re.compile(r';\s*charset="?([A-Za-z0-9._-]{1,40})', re.ASCII)
_CHARSETS = {"us-ascii": "ascii", "iso-8859-1": "latin-1", "windows-1252": "cp1252"}
_HTTP_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT",
    re.ASCII,
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)


def perform(params: HttpParams, call: Call, outbound: Outbound) -> Outcome:
    """Make one request and say what came of it. Returns an Outcome whatever the network or the endpoint does."""
    limit_s = min(params.outcome.answer_timeout_s, call.deadline_s)
    deadline = Deadline(call.clock.monotonic() + limit_s, call.clock.monotonic)
    try:
        target = check_url(params.url, outbound.settings)
        target, content, content_type = _content(params, call, target)
        headers = _headers(params, call, content_type)
        answer = _exchange(params, call, target, headers, content, deadline, outbound)
    except InvalidRequest as refused:
        return _failed(Reason.GUARD, refused.reason, retryable=False)
    except BadPayloadError as wrong:
        return _failed(Reason.BAD_PAYLOAD, str(wrong), retryable=False)
    except CallFailed as failure:
        return _without_answer(failure, params.outcome.on_no_answer, limit_s)
    return _judge(params, call, answer, limit_s)


def _exchange(
    params: HttpParams,
    call: Call,
    target: Target,
    headers: list[tuple[str, str]],
    content: bytes | None,
    deadline: Deadline,
    outbound: Outbound,
) -> Answer:
    from sweephand.security.outbound import exchange  # noqa: PLC0415 - 70 ms that only the first HTTP call pays

    return exchange(
        target,
        params.method,
        headers,
        content,
        outbound,
        deadline,
        with_credentials=bool(params.secret_fields or call.callback_token),
    )


def _content(params: HttpParams, call: Call, target: Target) -> tuple[Target, bytes | None, str | None]:
    """The target with the payload as its query, or the body and its type."""
    if call.payload is None:
        return target, None, None
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
    """A JSON object as a query: lists repeat their name, null is left out, objects stay JSON; None for what is none."""
    members = json.loads(text, parse_float=Number)
    if not isinstance(members, dict):
        return None
    pairs = [
        (name, item if isinstance(item, str) else dumps(item))
        for name, member in members.items()
        for item in (member if isinstance(member, list) else [member])
        if item is not None
    ]
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs)


def _headers(params: HttpParams, call: Call, content_type: str | None) -> list[tuple[str, str]]:
    """The service's headers, then the caller's, which win where both name one."""
    theirs = {name.lower() for name, _ in params.headers}
    ours = {
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Content-Type": content_type,
        "webhook-id": call.run_id,
        "Idempotency-Key": call.run_id,
        "Sweephand-Job-Id": call.job_id,
        "Sweephand-Schedule-Id": call.schedule_id,
        "Sweephand-Run-Id": call.run_id,
        "Sweephand-Planned-At": instant_text(call.planned_at),
        "Sweephand-Attempt": str(call.attempt),
        "Sweephand-Callback-Url": call.callback_url,
        "Sweephand-Callback-Token": call.callback_token,
        "Sweephand-Hop": str(call.hop),
        "Authorization": _authorization(params, call.secrets),
    }
    headers = [(name, value) for name, value in ours.items() if value is not None and name.lower() not in theirs]
    for name, value in params.headers:
        secret = name.lower() == "authorization"
        headers.append((name, _secret(call.secrets, AUTHORIZATION) if secret else value))
    return headers


def _authorization(params: HttpParams, secrets: Mapping[str, str]) -> str | None:
    if params.authentication == "basic":
        both = f"{params.username or ''}:{_secret(secrets, PASSWORD)}"
        return "Basic " + base64.b64encode(both.encode()).decode()
    if params.authentication == "bearer":
        return "Bearer " + _secret(secrets, TOKEN)
    return None


def _secret(secrets: Mapping[str, str], field: str) -> str:
    if field not in secrets:
        raise CallFailed(Reason.GUARD, f"the secret {field} of this job is missing")
    return secrets[field]


def _judge(params: HttpParams, call: Call, answer: Answer, limit_s: float) -> Outcome:
    rules, status = params.outcome, answer.status
    text = _answer_text(answer, _sent_secrets(params, call))
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
        retryable=status in TRANSIENT_STATUSES or status >= 500,
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


def retry_after_s(value: str | None, now: datetime) -> int | None:
    """Seconds that a Retry-After header asks for, within 0..3,600; None if it has neither form of RFC 9110."""
    if value is None:
        return None
    if _SECONDS.fullmatch(value):
        return min(int(value), MAX_RETRY_AFTER_S)
    date = _HTTP_DATE.fullmatch(value)
    if not date or date[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(date[group]) for group in (1, 3, 4, 5, 6))
    try:
        at = datetime(year, _MONTHS.index(date[2]) + 1, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return max(0, min(math.ceil((at - now).total_seconds()), MAX_RETRY_AFTER_S))


def _answer_text(answer: Answer, secrets: list[str]) -> str | None:
    """The body as text of at most 16 KB in UTF-8, without the secrets that were sent (endpoints echo)."""
    if not answer.body:
        return None
    coding = (answer.header("content-encoding") or "identity").lower()
    if coding != "identity":
        # Decompressing is what a bomb waits for.
        return f"({len(answer.body):,} bytes, not decoded: {coding[:40]})"
    charset = _CHARSET.search(answer.header("content-type") or "")
    text = answer.body.decode(_CHARSETS.get(charset[1].lower() if charset else "", "utf-8"), "replace")
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text.encode()[:MAX_ANSWER].decode("utf-8", "ignore")


def _sent_secrets(params: HttpParams, call: Call) -> list[str]:
    """What the endpoint was told in confidence, the longest first; too short to hide is what every text may hold."""
    shortest = 4
    pair = (_authorization(params, call.secrets) or "").rpartition(" ")[2]
    sent = [*call.secrets.values(), call.callback_token or "", pair]
    return sorted((secret for secret in sent if len(secret) >= shortest), key=len, reverse=True)
