"""The authentication of an HTTP action: reads the fields of each type, stores them without secrets, shows them. Pure.

A type is a line in TYPES. authenticate.py and the modules next to it apply it when a call is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from sweephand.base import json_schema
from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.json_schema import Schema
from sweephand.base.lazy import lazy
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.base.records import dataclass
from sweephand.domain.instants import text
from sweephand.domain.job import MASK, OWN_TOKEN
from sweephand.server.actions import headers
from sweephand.server.actions.headers import MAX_SECRET
from sweephand.server.actions.kind import within
from sweephand.server.security.aws_targets import check_role
from sweephand.server.security.guard import CREDENTIALS_IN_CLEAR, GuardSettings, check_url, is_public

with lazy():
    from sweephand.server.actions.auth import certificates

PREFIX = "authentication."
PASSWORD = "authentication.password"  # noqa: S105 - the path of a field
TOKEN = "authentication.token"  # noqa: S105 - the path of a field
VALUE = "authentication.value"
SECRET = "authentication.secret"  # noqa: S105 - the path of a field
PEM = "authentication.pem"

CREDENTIALS_IN = ("header", "body")
OF_SIGV4 = ("Date", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-SHA256")
"""Headers that a signature sets. The same headers from a caller would break it."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


Reader = Callable[[object, str, GuardSettings], str]


@dataclass(frozen=True)
class Member:
    """A member of one type. secret: whether it is stored separately. required: whether it is required at creation.

    identity: whether a change of this member invalidates a kept secret.
    """

    read: Reader
    schema: Schema
    secret: bool = False
    required: bool = True
    identity: bool = True


@dataclass(frozen=True)
class Authentication:
    """Authentication without its secrets. members: those that may be shown, by the API's names."""

    type: str = "none"
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def secret_fields(self) -> tuple[str, ...]:
        """Returns the names of the secrets that a call needs."""
        if self.type == "clientCertificate":
            return (PEM,)
        return tuple(PREFIX + name for name, member in TYPES[self.type].items() if member.secret)

    @property
    def headers(self) -> tuple[str, ...]:
        """Returns the names of the headers that this authentication sets."""
        if self.type in {"none", "clientCertificate"}:
            return ()
        if self.type == "apiKey":
            return (str(self.members["header"]),)
        return ("Authorization", *(OF_SIGV4 if self.type == "sigv4" else ()))


NONE, STACK = Authentication(), Authentication(OWN_TOKEN)


def parse(value: object, field: str, guard: GuardSettings) -> tuple[Authentication, dict[str, str]]:
    """Reads the authentication; returns it with the given secrets by their field. Raises InvalidRequest."""
    if value is None:
        return NONE, {}
    value = read.an_object(value, field, secret=True)
    kind = read.one_of(value.get("type"), below(field, "type"), tuple(TYPES), secret=True)
    if kind == "clientCertificate":
        members, secret = certificates.parse(value, field)
        return Authentication(kind, members), {} if secret is None else {PEM: secret}
    if kind == OWN_TOKEN and not guard.identity:
        reason = "this stack has no identity of its own (parameter OutboundIdentity)"
        raise InvalidRequest(below(field, "type"), reason)
    known = TYPES[kind]
    wrong = Mistakes()
    sent = read.members(value, field, ("type", *known), wrong)
    members, secrets = {}, {}
    for name, member in known.items():
        path = below(field, name)
        if name not in sent:
            if member.required and not member.secret:
                wrong.add(InvalidRequest(path, "is required"))
        elif not member.secret:
            members[name] = wrong.of(member.read, sent[name], path, guard)
        elif sent[name] == MASK:
            secrets[PREFIX + name] = MASK
        else:
            secrets[PREFIX + name] = wrong.of(member.read, sent[name], path, guard)
    wrong.check()
    return Authentication(kind, members), secrets


def to_json(authentication: Authentication) -> dict[str, Any]:
    """Returns the form that is stored and shown: every member of the type, secrets as `***`."""
    if authentication.type == "clientCertificate":
        return {"type": authentication.type, "pem": MASK, "certificate": authentication.members.get("certificate")}
    known = TYPES[authentication.type].items()
    shown = {name: MASK if member.secret else authentication.members.get(name) for name, member in known}
    return {"type": authentication.type, **shown}


def from_json(stored: Mapping[str, Any]) -> Authentication:
    """Returns the authentication that `to_json` wrote."""
    secret = {name for name, member in TYPES[stored["type"]].items() if member.secret}
    shown = {name: value for name, value in stored.items() if name != "type" and name not in secret}
    return Authentication(stored["type"], {name: value for name, value in shown.items() if value is not None})


def other_identity(new: Authentication, old: Authentication) -> str | None:
    """Returns the changed member that gives a kept secret another identity or destination; None if there is none."""
    for name, member in TYPES[new.type].items():
        if member.identity and not member.secret and new.members.get(name) != old.members.get(name):
            return name
    return None


def certificate_out_of_time(authentication: Authentication, now: datetime) -> str | None:
    """Returns why a client certificate is not valid at this instant; None if it is."""
    begins = _instant_of(authentication, "notBefore")
    if begins is not None and begins > now:
        return f"the client certificate is not valid before {text(begins)}"
    ended = _ended(authentication, now)
    return ended and f"the client certificate {ended}"


def check_lasting(authentication: Authentication, field: str, now: datetime) -> None:
    """Raises InvalidRequest for a certificate that has expired. Its validity may begin later, as its job may."""
    ended = _ended(authentication, now)
    if ended is not None:
        raise InvalidRequest(field, f"the certificate {ended}")


def _ended(authentication: Authentication, now: datetime) -> str | None:
    ends = _instant_of(authentication, "notAfter")
    return f"ended at {text(ends)}" if ends is not None and ends < now else None


def _instant_of(authentication: Authentication, name: str) -> datetime | None:
    shown = (authentication.members.get("certificate") or {}).get(name)
    return None if shown is None else datetime.fromisoformat(shown)


# Readers of single members


_username = read.matching(r"[^:\x00-\x1f\x7f]*", "contains a colon or a control character (RFC 7617)", 0, 256)
_token = read.matching("[!-~]+", "must be visible ASCII without spaces", 1, MAX_SECRET)
_aws_name = read.matching("[a-z0-9-]+", "must have small letters, digits and - only", 1, 64)
"""Reads the name of a region, or of a service as signatures contain it (execute-api, lambda, s3, es)."""


def _password(value: object, field: str, _: GuardSettings) -> str:
    password = read.text(value, field, 0, MAX_SECRET)
    if len(password.encode()) > MAX_SECRET:
        raise InvalidRequest(field, f"must have at most {MAX_SECRET:,} bytes")
    if _CONTROL.search(password):
        raise InvalidRequest(field, "contains a control character")
    return password


def _header(value: object, field: str, _: GuardSettings) -> str:
    name = read.text(value, field, 1, 256)
    headers.check_name(name, field)
    return name


def _header_value(value: object, field: str, _: GuardSettings) -> str:
    return headers.check_value(read.text(value, field, 1, MAX_SECRET), field)


def _printable(longest: int) -> Reader:
    """Returns a reader of a client's id or secret, or of a scope (RFC 6749, appendix A)."""
    return read.matching("[ -~]+", "must be printable ASCII", 1, longest)


def _token_url(value: object, field: str, guard: GuardSettings) -> str:
    if not isinstance(value, str):
        raise read.not_a_string(value, field)
    with within(field):
        target = check_url(value, guard)
    if target.scheme == "http" and target.literal and is_public(target.literal):
        raise InvalidRequest(field, CREDENTIALS_IN_CLEAR)
    return value


def _role(value: object, field: str, guard: GuardSettings) -> str:
    if not isinstance(value, str):
        raise read.not_a_string(value, field)
    with within(field):
        return check_role(value, guard.aws)


def _secret(reader: Reader) -> Member:
    described = json_schema.text(
        longest=MAX_SECRET, description="Encrypted; absent or `***` in a change: the stored one."
    )
    return Member(reader, described, secret=True)


def _optional(reader: Reader, schema: Schema) -> Member:
    return Member(reader, schema, required=False, identity=False)


_AWS_WORD = json_schema.text(1, 64, pattern="^[a-z0-9-]+$")
_ASKED = json_schema.text(1, 2_048)
TYPES: Mapping[str, Mapping[str, Member]] = {
    "none": {},
    "basic": {"username": Member(_username, json_schema.text(0, 256)), "password": _secret(_password)},
    "bearer": {"token": _secret(_token)},
    "apiKey": {"header": Member(_header, json_schema.text(1, 256)), "value": _secret(_header_value)},
    "oauth2": {
        "tokenUrl": Member(_token_url, json_schema.text(1, 2_048)),
        "clientId": Member(_printable(1_024), json_schema.text(1, 1_024)),
        "secret": _secret(_printable(MAX_SECRET)),
        "scope": _optional(_printable(2_048), _ASKED),
        "audience": _optional(_printable(2_048), _ASKED),
        "resource": _optional(_printable(2_048), _ASKED),
        "credentialsIn": _optional(
            lambda value, field, _: read.one_of(value, field, CREDENTIALS_IN, secret=True),
            json_schema.one_of(CREDENTIALS_IN, description="Where the token endpoint expects id and secret."),
        ),
    },
    "sigv4": {
        "service": Member(
            _aws_name,
            {**_AWS_WORD, "description": "The name of the service in signatures: `execute-api`, `lambda`, `s3`."},
        ),
        "region": Member(_aws_name, _AWS_WORD),
        "roleArn": Member(
            _role,
            json_schema.text(
                description="The role with whose credentials it is signed. Must be in the parameter TargetRoleArns."
            ),
        ),
    },
    OWN_TOKEN: {},
    # Its members are read together: see certificates.py.
    "clientCertificate": {},
}


def request_members(kind: str) -> tuple[dict[str, Schema], tuple[str, ...]]:
    """Returns the members of a type in a request, and those that are required."""
    members: Mapping[str, Schema] = {name: each.schema for name, each in TYPES[kind].items()}
    if kind == "clientCertificate":
        members = certificates.GIVEN
    required = (name for name, each in TYPES[kind].items() if each.required and not each.secret)
    return {"type": {"const": kind}, **members}, ("type", *required)


def shown(kind: str) -> dict[str, Schema]:
    """Returns the members of a type in a response."""
    if kind == "clientCertificate":
        return {"type": {"const": kind}, **certificates.SHOWN}
    members = {name: json_schema.or_null(each.schema) for name, each in TYPES[kind].items()}
    members |= {name: json_schema.text() for name, each in TYPES[kind].items() if each.required}
    members |= {name: {"const": MASK} for name, each in TYPES[kind].items() if each.secret}
    return {"type": {"const": kind}, **members}
