"""The HTTP action: one guarded request, and the meaning of its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, final
from urllib.parse import quote

from sweephand import __version__
from sweephand.base.errors import InvalidRequest
from sweephand.base.json_schema import ref, text
from sweephand.base.json_text import Number, dumps
from sweephand.base.lazy import lazy
from sweephand.base.members.fields import below
from sweephand.base.records import dataclass
from sweephand.domain.job import MASK, needed_again
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.server.actions import headers as header_fields
from sweephand.server.actions import http_fields, run_headers
from sweephand.server.actions.auth import authentication as auth
from sweephand.server.actions.auth.authenticate import addressed, authenticate
from sweephand.server.actions.auth.authentication import Authentication, certificate_out_of_time
from sweephand.server.actions.auth.request_auth import NotAuthenticated, RequestAuth, Sending
from sweephand.server.actions.call import Call
from sweephand.server.actions.headers import is_secret, secret_field
from sweephand.server.actions.http_fields import METHODS, QUERY_METHODS, OutcomeRules, opened_url, sealed_url
from sweephand.server.actions.kind import Action, Reading, choice, member
from sweephand.server.actions.outcome import failed, outcome_of, refused, unanswered
from sweephand.server.actions.payloads import MAX_PAYLOAD, MAX_SAP_PAYLOAD, BadPayloadError, check_size
from sweephand.server.actions.redaction import hidden
from sweephand.server.actions.run_headers import AZURE, OWN, SAP
from sweephand.server.security.guard import (
    CREDENTIALS_IN_CLEAR,
    CallFailed,
    Deadline,
    GuardSettings,
    Outbound,
    Target,
    check_url,
    is_public,
)

if TYPE_CHECKING:
    from datetime import datetime

    from sweephand.domain.job import Payload
    from sweephand.server.security.outbound import Answer

with lazy():
    from sweephand.server.security import signing

MAX_ANSWER = 16_384
MAX_TARGET = 16_384
KEPT_BODY, KEPT_WITH_HEADERS = 2_048, 2_500
"""In Azure's dialect: the most bytes of an answer's body, and of body plus headers. More would cost a write unit."""
USER_AGENT = f"Sweephand/{__version__}"
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


def _headers(value: Any, path: str, reading: Reading) -> tuple[tuple[str, str], ...]:
    headers, secrets = header_fields.parse(value, path)
    reading.keep(secrets)
    return headers


def _authentication(value: Any, path: str, reading: Reading) -> Authentication:
    authentication, secrets = auth.parse(value, path, reading.guard)
    reading.keep(secrets)
    return authentication


@final
@dataclass(frozen=True)
class Http(Action):
    """One guarded request. headers: in the caller's order and spelling.

    The values of secret headers, and of secret parameters in the query of the url, are `***`. Only jobs that were
    stored before these were encrypted have them in clear text. dialect: the headers that identify the run to the target
    (run_headers.py), which the facade chooses.
    """

    method: str = choice("method", METHODS, default="POST", kw_only=True)
    url: str = member(
        "url",
        text(1, 2_048, description="Secrets in its query (`sig`, `api_key`, long `code` and `key`) are sealed."),
        http_fields.url,
    )
    headers: tuple[tuple[str, str], ...] = member(
        "headers",
        {
            "type": "object",
            "additionalProperties": text(),
            "maxProperties": header_fields.MAX_HEADERS,
            "description": "`Authorization`, `Cookie`, `X-Api-Key` and other names of secrets are sealed, shown as"
            " `***`.",
        },
        _headers,
        stored=dict,
        loaded=lambda stored: tuple(stored.items()),
        default=(),
    )
    authentication: Authentication = member(
        "authentication",
        ref("Authentication"),
        _authentication,
        shown=ref("ShownAuthentication"),
        stored=auth.to_json,
        loaded=auth.from_json,
        default=auth.NONE,
    )
    outcome: OutcomeRules = outcome_of(OutcomeRules, "Outcome")
    dialect: str = OWN

    kind = "http"
    shows = tuple(auth.TYPES)
    never: ClassVar = {"none unproven": "needs no authentication"}

    def to_json(self) -> dict[str, Any]:
        """Returns the stored form, with the dialect of its facade."""
        return super().to_json() | ({} if self.dialect == OWN else {"dialect": self.dialect})

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return replace(super().from_json(stored), dialect=stored.get("dialect", OWN))

    # Reading

    def check(self, field: str, guard: GuardSettings) -> None:
        """Raises InvalidRequest for a header that is set twice, or credentials that would be sent in clear text."""
        own = {name.lower(): name for name in self.authentication.headers}
        for name, _ in self.headers:
            if name.lower() in own:
                path = below(field, f"headers.{own[name.lower()]}")
                raise InvalidRequest(path, f"{self.authentication.type} authentication sets it already")
        target = check_url(self.url, guard)
        if target.scheme != "http":
            return
        if self.authentication.type == "clientCertificate":
            why = "must begin with https://: a client certificate is sent only over TLS"
            raise InvalidRequest(below(field, "url"), why)
        if self.confidential and target.literal and is_public(target.literal):
            raise InvalidRequest(below(field, "url"), CREDENTIALS_IN_CLEAR)

    def check_payload(self, payload: Payload, field: str) -> None:
        """Raises InvalidRequest for a payload that is too large, or that cannot become the query."""
        check_size(payload, field, MAX_SAP_PAYLOAD if self.dialect == SAP else MAX_PAYLOAD)
        if self._asks and not (payload.is_json and payload.text.startswith("{")):
            raise InvalidRequest(field, f"must be a JSON object: with {self.method} it becomes the query")

    @property
    def _asks(self) -> bool:
        """Returns whether the payload becomes the query. Azure Scheduler sent a body with every method."""
        return self.method in QUERY_METHODS and self.dialect != AZURE

    def check_lasting(self, secrets: Collection[str], field: str, now: datetime) -> None:
        """Raises InvalidRequest for a certificate that has expired. A certificate that is kept is not checked again."""
        if auth.PEM in secrets:
            auth.check_lasting(self.authentication, below(field, "authentication"), now)

    # Secrets

    @property
    def secret_fields(self) -> frozenset[str]:
        in_url = (name for name, value in sealed_url(self.url)[1].items() if value == MASK)
        sealed = (secret_field(name) for name, value in self.headers if value == MASK and is_secret(name))
        return frozenset((*self.authentication.secret_fields, *sealed, *in_url))

    @property
    def confidential(self) -> bool:
        """Returns whether a call sends its target anything that nobody else may see."""
        return self.authentication.type != "none" or bool(self.secret_fields)

    @property
    def own_headers(self) -> frozenset[str]:
        return frozenset({"authorization", *(name.lower() for name in self.authentication.headers)})

    def kept_secrets(self, old: Self | None, *, field: str, guard: GuardSettings) -> frozenset[str]:
        """Returns the secrets of a change that keep their stored value.

        Raises InvalidRequest if the destination (scheme, host, port) or the identity of a secret has changed.
        """
        missing = self.secret_fields.difference(self.secrets)
        for name in sorted(missing):
            own, path = name.startswith(auth.PREFIX), below(field, name)
            if old is None or name not in old.secret_fields:
                raise InvalidRequest(path, "is required")
            if own and self.authentication.type != old.authentication.type:
                raise InvalidRequest(path, "is required")
            if _origin(self.url, guard) != _origin(old.url, guard):
                raise needed_again(path, self.moved)
            other = auth.other_identity(self.authentication, old.authentication) if own else None
            if other is not None:
                raise needed_again(path, f"the {other}")
        return missing

    def carried_over(self, old: Self, kept: Collection[str]) -> Self:
        """Returns the action with the shown members of a kept certificate, which a change does not contain."""
        return replace(self, authentication=old.authentication) if auth.PEM in kept else self

    # Acting

    def perform(self, call: Call, outbound: Outbound) -> Outcome:
        """Makes one request. Returns an Outcome whatever the network or the endpoint does."""
        outcome = self._performed(call, outbound)
        if self.dialect == AZURE:
            outcome = replace(outcome, retry_after_s=None)  # jobs of this dialect wait for their own interval
        if outcome.verdict is Verdict.FAILED and self.authentication.type == "clientCertificate":
            # Targets close the connection or answer with any status. An expired certificate may be the cause.
            why = certificate_out_of_time(self.authentication, call.clock.now())
            return outcome if why is None else replace(outcome, message="; ".join(filter(None, (outcome.message, why))))
        return outcome

    def _performed(self, call: Call, outbound: Outbound) -> Outcome:
        limit_s = min(self.outcome.answer_timeout_s, call.deadline_s)
        deadline = Deadline(call.clock.monotonic() + limit_s, call.clock.monotonic)
        try:
            target = check_url(opened_url(self.url, call.secret), outbound.settings)
            how = self._followed(target, outbound)
            target, content, content_type = self._content(call, addressed(how, target))
            sending = Sending(self.method, target, self._sent_headers(how, call, content_type, content), content)
            answer, request_auth = self._authenticated_exchange(how, call, sending, deadline, outbound)
        except NotAuthenticated as without:
            return replace(without.outcome, apart=True)
        except InvalidRequest as wrong:
            return failed(Reason.GUARD, wrong.reason, retryable=False)
        except BadPayloadError as wrong:
            return failed(Reason.BAD_PAYLOAD, str(wrong), retryable=False)
        except CallFailed as failure:
            return _without_answer(failure, self.outcome.on_no_answer, limit_s)
        outcome = self._judged(call, answer, request_auth, limit_s)
        outcome = replace(outcome, issuer=how.type == "oauth2" and not request_auth.kept)
        if self.dialect != AZURE:
            return outcome
        room = KEPT_WITH_HEADERS - min(len((outcome.answer or "").encode()), KEPT_BODY)
        headers = _answer_headers(answer, room, (*call.confidences, *request_auth.sent_secrets))
        return replace(outcome, answer_headers=headers)

    def _followed(self, target: Target, outbound: Outbound) -> Authentication:
        """Returns the authentication of a call.

        In SAP's dialect, an action without one sends the stack's token, as SAP's service does, if the stack has an
        identity and nobody on the way can read the token.
        """
        if self.dialect != SAP or self.authentication.type not in {auth.NONE.type, auth.STACK.type}:
            return self.authentication
        theirs = any(name.lower() == "authorization" for name, _ in self.headers)
        if outbound.identity is None or target.scheme != "https" or theirs:
            return auth.NONE
        return auth.STACK

    def _authenticated_exchange(
        self, how: Authentication, call: Call, sending: Sending, deadline: Deadline, outbound: Outbound
    ) -> tuple[Answer, RequestAuth]:
        """Sends the request. If a cached token gets a 401, fetches a new token and retries once."""
        request_auth = authenticate(how, sending, call, outbound, deadline, None)
        confidential = how.type != auth.NONE.type or bool(self.secret_fields) or call.callback_token is not None
        answer = _exchange(sending, request_auth, deadline, outbound, confidential=confidential)
        if answer.status == UNAUTHORIZED and request_auth.kept:
            request_auth = authenticate(how, sending, call, outbound, deadline, request_auth)
            answer = _exchange(sending, request_auth, deadline, outbound, confidential=confidential)
        return answer, request_auth

    def _content(self, call: Call, target: Target) -> tuple[Target, bytes | None, str | None]:
        """Returns the target with the payload as its query, or the body and its type."""
        if call.payload is None:
            has_body = self.method not in QUERY_METHODS
            return target, None, run_headers.content_type_without_payload(self.dialect) if has_body else None
        if self._asks:
            return self._with_query(call, target), None, None
        if self.dialect == AZURE:
            return target, call.payload.encode(), None
        content_type = "application/json" if call.payload_is_json else "text/plain; charset=utf-8"
        return target, call.payload.encode(), content_type

    def _with_query(self, call: Call, target: Target) -> Target:
        query = _query(call.payload or "") if call.payload_is_json else None
        if query is None:
            raise BadPayloadError(f"with {self.method} the payload must be a JSON object")
        if query:
            path = target.target
            mark = "" if path.endswith(("?", "&")) else "&" if "?" in path else "?"
            target = replace(target, target=f"{path}{mark}{query}")
        if len(target.target) > MAX_TARGET:
            raise BadPayloadError(f"as a query, the payload makes an address of more than {MAX_TARGET:,} characters")
        return target

    def _sent_headers(
        self, how: Authentication, call: Call, content_type: str | None, content: bytes | None
    ) -> list[tuple[str, str]]:
        """Returns the service's headers, then the caller's, which take precedence, then the signature."""
        theirs = {name.lower() for name in (*dict(self.headers), *how.headers)}
        ours = {
            "User-Agent": USER_AGENT,
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Content-Type": content_type,
            "webhook-id": call.run_id,
            "Idempotency-Key": call.run_id,
            **run_headers.headers(self.dialect, call),
            "Sweephand-Hop": str(call.hop),
            "traceparent": run_headers.traceparent(call),
        }
        headers = [(name, value) for name, value in ours.items() if value is not None and name.lower() not in theirs]
        for name, value in self.headers:
            sealed = name.lower() == "authorization" or (value == MASK and is_secret(name))
            headers.append((name, call.secret(secret_field(name)) if sealed else value))
        if call.signing_secrets:
            headers += signing.headers(call.signing_secrets, call.run_id, call.clock.now(), content or b"")
        return headers

    def _judged(self, call: Call, answer: Answer, request_auth: RequestAuth, limit_s: float) -> Outcome:
        rules, status = self.outcome, answer.status
        text = _answer_text(answer, (*call.confidences, *request_auth.sent_secrets))
        if status == ACCEPTED and (rules.on202 or call.on202) == "wait":
            return Outcome(Verdict.ACCEPTED, http_status=status, answer=text)
        if rules.is_success(status):
            if answer.failure is None:
                return Outcome(Verdict.SUCCEEDED, http_status=status, answer=text)
            # A server that streams while it works sends its status first. Without the end, the result is unknown.
            return replace(
                _without_answer(answer.failure, rules.on_no_answer, limit_s),
                http_status=status,
                answer=text,
                message=f"status {status} arrived, but the answer is incomplete: {answer.failure.message}",
            )
        return refused(answer, text, call)


def _exchange(
    sending: Sending, request_auth: RequestAuth, deadline: Deadline, outbound: Outbound, *, confidential: bool
) -> Answer:
    from sweephand.server.security.outbound import exchange  # noqa: PLC0415 - 70 ms that only the first HTTP call pays

    return exchange(
        sending.target,
        sending.method,
        [*sending.headers, *request_auth.headers],
        sending.content,
        outbound,
        deadline,
        with_credentials=confidential,
        ssl_context=request_auth.ssl_context,
    )


def _origin(url: str, guard: GuardSettings) -> tuple[str, str, int] | None:
    try:
        return check_url(url, guard).origin
    except InvalidRequest:
        # It was stored under settings that the stack no longer has, so it equals no current destination.
        return None


def _query(text: str) -> str | None:
    """Returns a JSON object as a query; None if it is not an object.

    Lists repeat their name, null is left out, and objects stay JSON. It is encoded as in RFC 3986 and in AWS's
    signatures, a space as %20, which every server understands.
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


def _without_answer(failure: CallFailed, on_no_answer: str, limit_s: float) -> Outcome:
    outcome = unanswered(failure, limit_s)
    waits = failure.timed_out and on_no_answer == "wait"
    return Outcome(Verdict.SILENT, message=outcome.message) if waits else outcome


def _answer_text(answer: Answer, secrets: Sequence[str]) -> str | None:
    """Returns the body as at most 16 KB in UTF-8, without the secrets that were sent, which endpoints may echo."""
    if not answer.body:
        return None
    coding = (answer.header("content-encoding") or "identity").lower()
    if coding != "identity":
        # It may be a decompression bomb.
        return f"({len(answer.body):,} bytes, not decoded: {coding[:40]})"
    charset = _CHARSET.search(answer.header("content-type") or "")
    text = answer.body.decode(_CHARSETS.get(charset[1].lower() if charset else "", "utf-8"), "replace")
    # Only the part that is kept is searched, because a long answer full of escapes costs CPU.
    return hidden(text[:MAX_ANSWER], secrets).encode()[:MAX_ANSWER].decode("utf-8", "ignore")


def _answer_headers(answer: Answer, most: int, secrets: Sequence[str]) -> str | None:
    """Returns the headers that fit into `most` bytes, one per line, without those whose name is that of a secret."""
    lines = ""
    for name, value in answer.headers:
        line = hidden(f"{name}: {value}", secrets) + "\r\n"
        if not is_secret(name) and len((lines + line).encode()) <= most:
            lines += line
    return lines or None
