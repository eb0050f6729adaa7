"""The fields of an HTTP action: read from the API's `action` object, stored without secrets, shown again. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sweephand.actions import authentication as auth
from sweephand.actions import headers as header_fields
from sweephand.actions.authentication import Authentication
from sweephand.actions.dialects import OWN, SAP
from sweephand.actions.headers import MASK
from sweephand.actions.payloads import MAX_PAYLOAD, MAX_SAP_PAYLOAD, check_size, parse_payload
from sweephand.domain.collection import LONGEST_CALLBACK_S
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.runs import statuses
from sweephand.errors import InvalidRequest, Mistakes
from sweephand.security.guard import CREDENTIALS_IN_CLEAR, GuardSettings, Target, check_url, is_public

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
QUERY_METHODS = frozenset({"GET", "DELETE", "HEAD"})
"""They carry no body: their payload is an object and becomes the query."""

_MEMBERS = ("type", "method", "url", "headers", "payload", "body", "authentication", "outcome", "retry")
_OUTCOME = ("answerTimeoutSeconds", "successStatuses", "on202", "onNoAnswer", "callbackTimeoutSeconds")


@dataclass(frozen=True)
class OutcomeRules:
    """on202 None: `wait` if the job asks for callback tokens, else `success`.

    callback_timeout_s None: as its collection has it, whenever that changes.
    """

    answer_timeout_s: int = 15
    success_statuses: tuple[str, ...] = ("2xx",)
    on202: str | None = None
    on_no_answer: str = "fail"
    callback_timeout_s: int | None = None

    def is_success(self, status: int) -> bool:
        return statuses.holds(self.success_statuses, status)


@dataclass(frozen=True)
class HttpParams:
    """headers: in the caller's order and spelling. The values of secret headers, and of secret parameters in the query
    of the url, are `***`; only jobs that were stored before these were sealed have them in clear.

    payload and secrets are only there after `parse`: they are stored elsewhere. dialect: in which headers the target is
    told of the run (dialects.py); its facade's choice.
    A secret that was absent or `***` is missing in `secrets` though `secret_fields` names it.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    authentication: Authentication = auth.NONE
    outcome: OutcomeRules = OutcomeRules()
    payload: Payload | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    dialect: str = OWN

    @property
    def secret_fields(self) -> frozenset[str]:
        """The secrets that a call needs."""
        in_url = (name for name, value in sealed_url(self.url)[1].items() if value == MASK)
        sealed = (header_fields.secret_field(name) for name, value in self.headers if _is_sealed(name, value))
        return frozenset((*self.authentication.secret_fields, *sealed, *in_url))

    @property
    def confidential(self) -> bool:
        """Does a call tell its target what nobody else may hear?"""
        return self.authentication.type != "none" or bool(self.secret_fields)


def parse(fields: object, *, field: str, guard: GuardSettings) -> HttpParams:
    """An HTTP action from the members that a caller sent; `retry` is read elsewhere. Raises InvalidRequest."""
    wrong = Mistakes()
    given = read.members(fields, field, _MEMBERS, wrong)
    method = wrong.of(read.one_of, given.get("method", "POST"), below(field, "method"), METHODS)
    addressed = wrong.of(_parse_url, given.get("url"), below(field, "url"), guard)
    sent = wrong.of(header_fields.parse, given.get("headers", {}), below(field, "headers"))
    shown = wrong.of(auth.parse, given.get("authentication"), below(field, "authentication"), guard)
    brought = wrong.of(parse_payload, given, field)
    outcome = wrong.of(_parse_outcome, given.get("outcome", {}), below(field, "outcome"))
    wrong.check()
    (url, target), (headers, header_secrets), (authentication, secrets) = addressed, sent, shown
    url, url_secrets = sealed_url(url)
    secrets = {**secrets, **header_secrets, **url_secrets}
    payload_field, payload = brought
    params = HttpParams(
        method=method,
        url=url,
        headers=headers,
        authentication=authentication,
        outcome=outcome,
        payload=payload,
        secrets={name: secret for name, secret in secrets.items() if secret != MASK},
    )
    check_payload(params, payload, payload_field)
    _check_own_header(params, field)
    if params.authentication.type == "clientCertificate" and target.scheme == "http":
        raise InvalidRequest(
            below(field, "url"), "must begin with https://: a client certificate is shown over TLS alone"
        )
    if params.confidential and target.scheme == "http" and target.literal and is_public(target.literal):
        raise InvalidRequest(below(field, "url"), CREDENTIALS_IN_CLEAR)
    return params


_QUERY_SECRET = re.compile(
    r"""(?P<name>[?&;](?P<known>
        sig | signature | x-(?:amz|goog|ms)-signature | x-amz-security-token | (?:access|auth|api|id|sas)[-_]?token
        | (?:api|app|access|auth|function|subscription)[-_]?key | (?:client[-_]?)?secret | password | passwd | pwd
        )=)(?P<value>[^&;#]+)
    | (?P<short>[?&;](?P<maybe>code|key|token|auth|hmac)=)(?P<long>\*\*\*(?=[&;#]|$)|[^&;#]{12,})
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
"""Parameters of a query that carry secrets. Those of common words do so where their value is long."""


def sealed_url(url: str) -> tuple[str, dict[str, str]]:
    """The URL with `***` for each secret in its query; and these as they stand in it, by what each is called among the
    secrets of the action.
    """
    found: dict[str, str] = {}

    def mask(match: re.Match[str]) -> str:
        name = (match["known"] or match["maybe"]).lower()
        count = sum(each.split("#")[0] == f"url.{name}" for each in found)
        found[f"url.{name}" + (f"#{count + 1}" if count else "")] = match["value"] or match["long"]
        return f"{match['name'] or match['short']}{MASK}"

    return _QUERY_SECRET.sub(mask, url), found


def opened_url(url: str, secret_of: Callable[[str], str]) -> str:
    """The URL with its secrets. secret_of: by their names. A secret that was stored in clear stays as it is."""
    _, found = sealed_url(url)
    values = iter([secret_of(name) if value == MASK else value for name, value in found.items()])

    def put_back(match: re.Match[str]) -> str:
        return f"{match['name'] or match['short']}{next(values)}"

    return _QUERY_SECRET.sub(put_back, url)


def _is_sealed(name: str, value: str) -> bool:
    """Whether the header's value is kept among the secrets. Jobs that are older than this rule have some in clear."""
    return value == MASK and header_fields.is_secret(name)


def _check_own_header(params: HttpParams, field: str) -> None:
    """No header may be set by the authentication and by the caller."""
    own = {name.lower(): name for name in params.authentication.headers}
    for name, _ in params.headers:
        if name.lower() in own:
            path = below(field, f"headers.{own[name.lower()]}")
            raise InvalidRequest(path, f"{params.authentication.type} authentication sets it already")


def check_payload(params: HttpParams, payload: Payload | None, field: str) -> None:
    """Raises InvalidRequest for a payload, of the action or of a schedule, that this action cannot send."""
    if payload is None:
        return
    check_size(payload, field, MAX_SAP_PAYLOAD if params.dialect == SAP else MAX_PAYLOAD)
    method = params.method
    if method in QUERY_METHODS and not (payload.is_json and payload.text.startswith("{")):
        raise InvalidRequest(field, f"must be a JSON object: with {method} it becomes the query")


def to_json(params: HttpParams) -> dict[str, Any]:
    """The stored form, under the API's names: secrets as `***`, no payload. `from_json` reads it back."""
    rules = params.outcome
    return {
        "type": "http",
        "method": params.method,
        "url": params.url,
        "headers": dict(params.headers),
        "authentication": auth.to_json(params.authentication),
        "outcome": {
            "answerTimeoutSeconds": rules.answer_timeout_s,
            "successStatuses": list(rules.success_statuses),
            "on202": rules.on202,
            "onNoAnswer": rules.on_no_answer,
            "callbackTimeoutSeconds": rules.callback_timeout_s,
        },
        **({} if params.dialect == OWN else {"dialect": params.dialect}),
    }


def from_json(stored: Mapping[str, Any]) -> HttpParams:
    """The params that `to_json` wrote."""
    rules = stored["outcome"]
    return HttpParams(
        method=stored["method"],
        url=stored["url"],
        headers=tuple(stored["headers"].items()),
        authentication=auth.from_json(stored["authentication"]),
        outcome=OutcomeRules(
            answer_timeout_s=rules["answerTimeoutSeconds"],
            success_statuses=tuple(rules["successStatuses"]),
            on202=rules["on202"],
            on_no_answer=rules["onNoAnswer"],
            callback_timeout_s=rules["callbackTimeoutSeconds"],
        ),
        dialect=stored.get("dialect", OWN),
    )


def kept_secrets(new: HttpParams, old: HttpParams | None, *, field: str, guard: GuardSettings) -> frozenset[str]:
    """The secrets of a change that keep their stored value: those that it needs and does not bring.

    old: what is stored, None at creation. Raises InvalidRequest where there is nothing to keep, or where the
    destination (scheme, host, port) or the identity that a secret stands for is another: whoever may edit a job must
    not send its password to a host of their own.
    """
    missing = new.secret_fields.difference(new.secrets)
    for name in sorted(missing):
        own = name.startswith(auth.PREFIX)
        if old is None or name not in old.secret_fields or (own and new.authentication.type != old.authentication.type):
            raise InvalidRequest(below(field, name), "is required")
        if _origin(new.url, guard) != _origin(old.url, guard):
            raise InvalidRequest(
                below(field, name), "is required: the destination is another one than it was given for"
            )
        other = auth.other_identity(new.authentication, old.authentication) if own else None
        if other is not None:
            raise InvalidRequest(below(field, name), f"is required: the {other} is another one than it was given for")
    return missing


def carried_over(new: HttpParams, old: HttpParams, kept: Collection[str]) -> HttpParams:
    """The params of a change that keeps some secrets, with what is shown of them: only who brings a secret knows it."""
    return replace(new, authentication=old.authentication) if auth.PEM in kept else new


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
        raise read.not_a_string(value, field)
    try:
        return value, check_url(value, guard)
    except InvalidRequest as wrong:
        raise wrong.within(field) from wrong


def _parse_outcome(value: object, field: str) -> OutcomeRules:
    wrong = Mistakes()
    given = read.members(value, field, _OUTCOME, wrong)
    default = OutcomeRules()
    on202, limit_s = given.get("on202"), given.get("answerTimeoutSeconds", default.answer_timeout_s)
    statuses_given = given.get("successStatuses", list(default.success_statuses))
    silent = given.get("onNoAnswer", default.on_no_answer)
    rules = OutcomeRules(
        answer_timeout_s=wrong.of(read.whole, limit_s, below(field, "answerTimeoutSeconds"), 1, 60),
        success_statuses=wrong.of(_parse_statuses, statuses_given, below(field, "successStatuses")),
        on202=None if on202 is None else wrong.of(read.one_of, on202, below(field, "on202"), ("success", "wait")),
        on_no_answer=wrong.of(read.one_of, silent, below(field, "onNoAnswer"), ("fail", "wait")),
        callback_timeout_s=wrong.of(_callback_timeout_s, given, field),
    )
    wrong.check()
    return rules


def _callback_timeout_s(given: Mapping[str, Any], field: str) -> int | None:
    name = "callbackTimeoutSeconds"
    return read.whole(given[name], below(field, name), 1, LONGEST_CALLBACK_S) if name in given else None


def _parse_statuses(value: object, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= 20:
        raise InvalidRequest(field, f'must be a list of 1 to 20 strings such as "2xx", not {read.shown(value)}')
    wrong = Mistakes()
    for position, item in enumerate(value):
        found = statuses.bounds(item) if isinstance(item, str) else None
        path = f"{field}[{position}]"
        if found is None:
            reason = f'must be a string such as "2xx", "204" or "200-299", not {read.shown(item)}'
            wrong.add(InvalidRequest(path, reason))
        elif found[0] > found[1]:
            wrong.add(InvalidRequest(path, f"ends before it begins: {read.shown(item)}"))
    wrong.check()
    return tuple(value)
