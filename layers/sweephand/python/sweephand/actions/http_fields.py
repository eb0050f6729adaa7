"""The fields of an HTTP action: read from the API's `action` object, stored without secrets, shown again. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweephand.actions.payloads import check_size, parse_payload
from sweephand.domain import fields as read
from sweephand.domain.fields import below
from sweephand.domain.job import Payload
from sweephand.errors import InvalidRequest
from sweephand.security.guard import CREDENTIALS_IN_CLEAR, GuardSettings, Target, check_url, is_public

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
QUERY_METHODS = frozenset({"GET", "DELETE", "HEAD"})
"""They carry no body: their payload is an object and becomes the query."""
MAX_HEADERS = 50
MAX_HEADER_BYTES = 8_192
MAX_SECRET = 4_096
"""Bytes; security.secrets seals no more."""
MASK = "***"
PASSWORD = "authentication.password"  # noqa: S105 - the path of a field
TOKEN = "authentication.token"  # noqa: S105 - the path of a field
AUTHORIZATION = "headers.Authorization"

_MEMBERS = ("type", "method", "url", "headers", "payload", "body", "authentication", "outcome", "retry")
_OUTCOME = ("answerTimeoutSeconds", "successStatuses", "on202", "onNoAnswer", "callbackTimeoutSeconds")
_AUTHENTICATION = {"none": (), "basic": ("username", "password"), "bearer": ("token",)}
_LATER = frozenset({"apiKey", "oauth2", "clientCertificate", "sigv4", "sweephand"})
_NOT_YOURS = frozenset(
    {
        *("connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
_NOT_YOUR_PREFIXES = ("proxy-", "sweephand-", "webhook-")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}", re.ASCII)
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?", re.ASCII)
_VISIBLE = re.compile(r"[!-~]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_STATUSES = re.compile(r"([1-5])xx|([1-5][0-9][0-9])(?:-([1-5][0-9][0-9]))?", re.ASCII)


@dataclass(frozen=True)
class OutcomeRules:
    """on202 None: `wait` if the job asks for callback tokens, else `success`."""

    answer_timeout_s: int = 15
    success_statuses: tuple[str, ...] = ("2xx",)
    on202: str | None = None
    on_no_answer: str = "fail"
    callback_timeout_s: int = 1_800

    def is_success(self, status: int) -> bool:
        return any(low <= status <= high for low, high in map(_status_range, self.success_statuses))


@dataclass(frozen=True)
class HttpParams:
    """headers: in the caller's order and spelling; the value of Authorization is always `***`.

    username: of basic authentication. payload and secrets are only there after `parse`: they are stored elsewhere.
    A secret that was absent or `***` is missing in `secrets` though `secret_fields` names it.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    authentication: str = "none"
    username: str | None = None
    outcome: OutcomeRules = OutcomeRules()
    payload: Payload | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def secret_fields(self) -> frozenset[str]:
        """The secrets that a call needs."""
        own = {"none": (), "basic": (PASSWORD,), "bearer": (TOKEN,)}[self.authentication]
        header = (AUTHORIZATION,) if any(name.lower() == "authorization" for name, _ in self.headers) else ()
        return frozenset((*own, *header))


def parse(fields: object, *, field: str, guard: GuardSettings) -> HttpParams:
    """An HTTP action from the members that a caller sent; `retry` is read elsewhere. Raises InvalidRequest."""
    given = read.members(fields, field, _MEMBERS)
    method = read.one_of(given.get("method", "POST"), below(field, "method"), METHODS)
    url, target = _parse_url(given.get("url"), below(field, "url"), guard)
    headers, header_secret = _parse_headers(given.get("headers", {}), below(field, "headers"))
    kind, username, secrets = _parse_authentication(given.get("authentication"), below(field, "authentication"))
    if header_secret is not None:
        secrets[AUTHORIZATION] = header_secret
    payload_field, payload = parse_payload(given, field)
    params = HttpParams(
        method=method,
        url=url,
        headers=headers,
        authentication=kind,
        username=username,
        outcome=_parse_outcome(given.get("outcome", {}), below(field, "outcome")),
        payload=payload,
        secrets={name: secret for name, secret in secrets.items() if secret != MASK},
    )
    check_payload(params, payload, payload_field)
    if kind != "none" and AUTHORIZATION in params.secret_fields:
        raise InvalidRequest(below(field, "headers.Authorization"), f"{kind} authentication sets it already")
    if params.secret_fields and target.scheme == "http" and target.literal and is_public(target.literal):
        raise InvalidRequest(below(field, "url"), CREDENTIALS_IN_CLEAR)
    return params


def check_payload(params: HttpParams, payload: Payload | None, field: str) -> None:
    """Raises InvalidRequest for a payload, of the action or of a schedule, that this action cannot send."""
    if payload is None:
        return
    check_size(payload, field)
    method = params.method
    if method in QUERY_METHODS and not (payload.is_json and payload.text.startswith("{")):
        raise InvalidRequest(field, f"must be a JSON object: with {method} it becomes the query")


def to_json(params: HttpParams) -> dict[str, Any]:
    """The stored form, under the API's names: secrets as `***`, no payload. `from_json` reads it back."""
    authentication = {"type": params.authentication}
    if params.authentication == "basic":
        authentication |= {"username": params.username or "", "password": MASK}
    elif params.authentication == "bearer":
        authentication |= {"token": MASK}
    rules = params.outcome
    return {
        "type": "http",
        "method": params.method,
        "url": params.url,
        "headers": dict(params.headers),
        "authentication": authentication,
        "outcome": {
            "answerTimeoutSeconds": rules.answer_timeout_s,
            "successStatuses": list(rules.success_statuses),
            "on202": rules.on202,
            "onNoAnswer": rules.on_no_answer,
            "callbackTimeoutSeconds": rules.callback_timeout_s,
        },
    }


def from_json(stored: Mapping[str, Any]) -> HttpParams:
    """The params that `to_json` wrote."""
    authentication, rules = stored["authentication"], stored["outcome"]
    return HttpParams(
        method=stored["method"],
        url=stored["url"],
        headers=tuple(stored["headers"].items()),
        authentication=authentication["type"],
        username=authentication.get("username"),
        outcome=OutcomeRules(
            answer_timeout_s=rules["answerTimeoutSeconds"],
            success_statuses=tuple(rules["successStatuses"]),
            on202=rules["on202"],
            on_no_answer=rules["onNoAnswer"],
            callback_timeout_s=rules["callbackTimeoutSeconds"],
        ),
    )


def kept_secrets(new: HttpParams, old: HttpParams | None, *, field: str, guard: GuardSettings) -> frozenset[str]:
    """The secrets of a change that keep their stored value: those that it needs and does not bring.

    old: what is stored, None at creation. Raises InvalidRequest where there is nothing to keep, or where the
    destination (scheme, host, port) or the user name is another: whoever may edit a job must not send its password
    to a host of their own.
    """
    missing = new.secret_fields.difference(new.secrets)
    for name in sorted(missing):
        if old is None or name not in old.secret_fields:
            raise InvalidRequest(below(field, name), "is required")
        if _origin(new.url, guard) != _origin(old.url, guard):
            raise InvalidRequest(
                below(field, name), "is required: the destination is another one than it was given for"
            )
        if name == PASSWORD and new.username != old.username:
            raise InvalidRequest(below(field, name), "is required: the username is another one than it was given for")
    return missing


def _origin(url: str, guard: GuardSettings) -> tuple[str, str, int] | None:
    try:
        return check_url(url, guard).origin
    except InvalidRequest:
        # Stored under settings that the stack no longer has: equal to no destination of today.
        return None


def _parse_url(value: object, field: str, guard: GuardSettings) -> tuple[str, Target]:
    if value is None:
        raise InvalidRequest(field, "is required")
    if not isinstance(value, str):
        raise InvalidRequest(field, "must be a text")
    try:
        return value, check_url(value, guard)
    except InvalidRequest as wrong:
        raise wrong.within(field) from wrong


def _parse_headers(value: object, field: str) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """The headers with Authorization masked, and its value."""
    if not isinstance(value, Mapping):
        raise InvalidRequest(field, "must be an object")
    if len(value) > MAX_HEADERS:
        raise InvalidRequest(field, f"must have at most {MAX_HEADERS} members")
    headers: list[tuple[str, str]] = []
    seen: set[str] = set()
    secret, size = None, 0
    for name, content in value.items():
        path = below(field, name)
        lower = name.lower()
        _check_header(name, lower, content, path)
        if lower in seen:
            raise InvalidRequest(path, "appears twice (upper and lower case are the same)")
        seen.add(lower)
        size += len(name) + len(content) + 4
        if lower == "authorization":
            if len(content) > MAX_SECRET:
                raise InvalidRequest(path, f"must have at most {MAX_SECRET:,} bytes")
            secret = content
            content = MASK  # noqa: PLW2901 - from here on the value exists only among the secrets
        headers.append((name, content))
    if size > MAX_HEADER_BYTES:
        raise InvalidRequest(field, f"must have at most {MAX_HEADER_BYTES:,} bytes together")
    return tuple(headers), secret


def _check_header(name: str, lower: str, content: object, path: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise InvalidRequest(path, "is not a header name")
    if lower in _NOT_YOURS or lower.startswith(_NOT_YOUR_PREFIXES):
        raise InvalidRequest(path, "is set by the service or the connection")
    if not isinstance(content, str):
        raise InvalidRequest(path, "must be a text")
    if not _HEADER_VALUE.fullmatch(content):
        raise InvalidRequest(path, "must be visible ASCII, without blanks at its ends")


def _parse_authentication(value: object, field: str) -> tuple[str, str | None, dict[str, str]]:
    """Type, username and the secrets that were given."""
    if value is None:
        return "none", None, {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(field, "must be an object")
    kind = value.get("type")
    if isinstance(kind, str) and kind in _LATER:
        raise InvalidRequest(below(field, "type"), f"not available yet: {kind}")
    kind = read.one_of(kind, below(field, "type"), tuple(_AUTHENTICATION))
    given = read.members(value, field, ("type", *_AUTHENTICATION[kind]))
    secrets: dict[str, str] = {}
    username = None
    if kind == "basic":
        username = _parse_username(given.get("username"), below(field, "username"))
        if "password" in given:
            secrets[PASSWORD] = _parse_password(given["password"], below(field, "password"))
    elif kind == "bearer" and "token" in given:
        token = read.text(given["token"], below(field, "token"), 1, MAX_SECRET)
        if not _VISIBLE.fullmatch(token):
            raise InvalidRequest(below(field, "token"), "must be visible ASCII without blanks")
        secrets[TOKEN] = token
    return kind, username, secrets


def _parse_password(value: object, field: str) -> str:
    password = read.text(value, field, 0, MAX_SECRET)
    if len(password.encode()) > MAX_SECRET:
        raise InvalidRequest(field, f"must have at most {MAX_SECRET:,} bytes")
    if _CONTROL.search(password):
        raise InvalidRequest(field, "holds a control character")
    return password


def _parse_username(value: object, field: str) -> str:
    if value is None:
        raise InvalidRequest(field, "is required")
    username = read.text(value, field, 0, 256)
    if ":" in username or _CONTROL.search(username):
        raise InvalidRequest(field, "holds a colon or a control character (RFC 7617)")
    return username


def _parse_outcome(value: object, field: str) -> OutcomeRules:
    given = read.members(value, field, _OUTCOME)
    default = OutcomeRules()
    on202 = given.get("on202")
    return OutcomeRules(
        answer_timeout_s=read.whole(
            given.get("answerTimeoutSeconds", default.answer_timeout_s), below(field, "answerTimeoutSeconds"), 1, 60
        ),
        success_statuses=_parse_statuses(
            given.get("successStatuses", list(default.success_statuses)), below(field, "successStatuses")
        ),
        on202=None if on202 is None else read.one_of(on202, below(field, "on202"), ("success", "wait")),
        on_no_answer=read.one_of(
            given.get("onNoAnswer", default.on_no_answer), below(field, "onNoAnswer"), ("fail", "wait")
        ),
        callback_timeout_s=read.whole(
            given.get("callbackTimeoutSeconds", default.callback_timeout_s),
            below(field, "callbackTimeoutSeconds"),
            1,
            604_800,
        ),
    )


def _parse_statuses(value: object, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= 20:
        raise InvalidRequest(field, "must be a list of 1 to 20 texts")
    for position, item in enumerate(value):
        if not isinstance(item, str) or not _STATUSES.fullmatch(item):
            raise InvalidRequest(f"{field}[{position}]", 'must be a text like "2xx", "204" or "200-299"')
        low, high = _status_range(item)
        if low > high:
            raise InvalidRequest(f"{field}[{position}]", "ends before it begins")
    return tuple(value)


def _status_range(text: str) -> tuple[int, int]:
    match = _STATUSES.fullmatch(text)
    assert match, "checked when the job was made"
    if match[1]:
        return int(match[1]) * 100, int(match[1]) * 100 + 99
    return int(match[2]), int(match[3] or match[2])
