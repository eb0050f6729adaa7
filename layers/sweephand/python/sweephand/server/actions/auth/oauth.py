"""OAuth 2.0 client credentials (RFC 6749, 4.4): a token, fetched through the guard, cached until it nearly expires."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode

from sweephand.base.errors import InvalidRequest
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.runs.reasons import ISSUER
from sweephand.domain.runs.retry import is_transient, retry_after_s
from sweephand.server.actions.auth import authentication as auth
from sweephand.server.actions.auth.authentication import Authentication
from sweephand.server.actions.auth.request_auth import NotAuthenticated, RequestAuth, bearer
from sweephand.server.actions.call import Call
from sweephand.server.actions.redaction import hidden
from sweephand.server.security.guard import CallFailed, Deadline, Outbound, check_url
from sweephand.server.security.token_cache import CachedToken

if TYPE_CHECKING:
    from sweephand.server.security.outbound import Answer

USUAL_LIFE_S = 300
"""The lifetime of a token whose endpoint does not state one."""
LONGEST_LIFE_S = 86_400
_ERROR = re.compile(r"[A-Za-z0-9_.-]{1,60}", re.ASCII)
_TOKEN = re.compile(r"[!-~]{1,8192}", re.ASCII)


def authenticate(
    how: Authentication, call: Call, outbound: Outbound, deadline: Deadline, refused: RequestAuth | None
) -> RequestAuth:
    """Returns a token, from the cache while it is valid. refused: a token that the target refused, to be replaced."""
    members, client_secret = how.members, call.secret(auth.SECRET)
    asked = tuple(members.get(name) for name in ("tokenUrl", "clientId", "scope", "audience", "resource"))
    # The key contains the secret, not its version: a token is valid as long as its secret, whatever else changes.
    key = ("oauth2", call.tenant, call.job_id, *asked, hashlib.sha256(client_secret.encode()).digest())
    token, kept = outbound.tokens.get(
        key,
        call.clock.now(),
        lambda: _fetched(members, client_secret, call, outbound, deadline),
        wait_s=deadline.left(),
        not_this=refused.sent_secrets[0] if refused else None,
    )
    return bearer(token, kept=kept)


def _fetched(
    members: Mapping[str, Any], client_secret: str, call: Call, outbound: Outbound, deadline: Deadline
) -> CachedToken:
    from sweephand.server.security.outbound import exchange  # noqa: PLC0415 - as in http.py

    headers, form = _request(members, client_secret)
    try:
        target = check_url(members["tokenUrl"], outbound.settings)
        answer = exchange(target, "POST", headers, form.encode(), outbound, deadline, with_credentials=True)
        if answer.failure is not None:
            raise answer.failure
    except InvalidRequest as wrong:
        raise _not_given(Reason.GUARD, wrong.reason, retryable=False) from wrong
    except CallFailed as wrong:
        refused = wrong.reason is Reason.GUARD
        raise _not_given(wrong.reason, wrong.message, retryable=not refused, issuer=not refused) from wrong
    return _read(answer, call.clock.now(), client_secret)


def _request(members: Mapping[str, Any], client_secret: str) -> tuple[list[tuple[str, str]], str]:
    form = {"grant_type": "client_credentials"}
    form |= {name: members[name] for name in ("scope", "audience", "resource") if name in members}
    headers = [("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")]
    if members.get("credentialsIn") == "body":
        form |= {"client_id": members["clientId"], "client_secret": client_secret}
    else:
        # Section 2.3.1: both are form-encoded first.
        pair = f"{quote_plus(members['clientId'])}:{quote_plus(client_secret)}"
        headers.append(("Authorization", "Basic " + base64.b64encode(pair.encode()).decode()))
    return headers, urlencode(form)


def _read(answer: Answer, now: datetime, client_secret: str) -> CachedToken:
    said = _json(answer.body)
    if answer.status != 200:
        error = said.get("error")
        cause = f": {hidden(error, [client_secret])}" if isinstance(error, str) and _ERROR.fullmatch(error) else ""
        raise NotAuthenticated(
            Outcome(
                Verdict.FAILED,
                Reason.HTTP_STATUS,
                http_status=answer.status,
                message=f"{ISSUER} answered with status {answer.status}{cause}",
                retryable=is_transient(answer.status),
                retry_after_s=retry_after_s(answer.header("retry-after"), now),
                issuer=True,
            )
        )
    token, kind, life_s = said.get("access_token"), said.get("token_type"), said.get("expires_in", USUAL_LIFE_S)
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise _not_given(Reason.NO_ANSWER, "its answer contains no token", retryable=True)
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise _not_given(Reason.NO_ANSWER, "its token is not of type bearer", retryable=False)
    return CachedToken(token, now + timedelta(seconds=_life_s(life_s)))


def _life_s(value: object) -> float:
    """Reads seconds. Some endpoints write the number as a string."""
    try:
        return max(0.0, min(float(str(value)), LONGEST_LIFE_S))
    except ValueError:
        return USUAL_LIFE_S


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _not_given(reason: Reason, message: str, *, retryable: bool, issuer: bool = False) -> NotAuthenticated:
    """Returns a failure. The rule for a silent target (onNoAnswer) does not apply, because nothing was sent to it.

    issuer: whether the endpoint stayed silent. One that answers without a token is not silent.
    """
    said = f"{ISSUER}: {message}"
    return NotAuthenticated(Outcome(Verdict.FAILED, reason, message=said, retryable=retryable, issuer=issuer))
