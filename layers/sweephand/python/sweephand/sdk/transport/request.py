"""Requests to the API, as the generated methods make them, and answers, as a transport returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, NamedTuple, final
from urllib.parse import quote

from sweephand.sdk.errors import InvalidArgument
from sweephand.sdk.model import Model


@final
class Absent:
    """The type of ABSENT."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()
"""Stands for a member that is not sent. None is sent as null, which removes a member in a patch."""

Json = Mapping[str, Any] | Model
"""An object in a body, with the API's names: made by `bodies`, written by hand, or an answer of the service."""
Named = str | Model
"""An id or a name, or an answer of the service that has one."""
NAMES = ("id", "clientId", "tenant", "name")
"""The members of an answer that may contain its id or name, in order of preference."""
JOB = "jobId"
"""The member that names the job in an answer about something else, such as a run."""
Revision = int | str | Model
"""A revision, an ETag, or an answer of the service that has a revision."""


class Answer(NamedTuple):
    """An answer. headers: names in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True)
class Request:
    """A request.

    path: begins with a slash, and is quoted. query: None is left out. body: ABSENT is left out. repeatable: whether
    sending it twice has the effect of sending it once. keyed: whether it takes an Idempotency-Key. key: the caller's
    Idempotency-Key. acting: whether the header Sweephand-Tenant may name another tenant. reason: of the change.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    if_match: Revision | None = None
    repeatable: bool = True
    keyed: bool = False
    key: str | None = None
    acting: bool = False
    reason: str | None = None

    def query_strings(self) -> dict[str, str]:
        """Returns the query as it is sent. None is left out; an empty string is sent."""
        return {name: _query_string(name, value) for name, value in self.query.items() if value is not None}

    def json(self) -> dict[str, Any] | None:
        """Returns the body as it is sent, without members that are ABSENT."""
        if self.body is None:
            return None
        return {name: to_json(value) for name, value in self.body.items() if value is not ABSENT}

    def etag(self) -> str | None:
        """Returns the value of If-Match."""
        wanted = self.if_match
        if isinstance(wanted, Model):
            wanted = wanted.to_json().get("revision")
            if wanted is None:
                raise InvalidArgument("if_match", f"must have a revision, not {self.if_match!r}")
        if isinstance(wanted, int):
            return f'"{wanted}"'
        return None if wanted is None else header("if_match", wanted)


def part(named: Named, own: str | None = None) -> str:
    """Returns an id or a name, quoted for a path. own: see `name_of`. Raises InvalidArgument.

    Refuses `.`, `..` and a slash, which would lead to another resource: the gateway reads `%2F` as a slash.
    """
    name = name_of(named, own)
    if name in {".", ".."}:
        raise InvalidArgument("id or name", f"must not be {name!r}: in a path it leads to another resource")
    if "/" in name:
        advice = f"; sh.jobs.list(name={name!r}).first() finds a job by its name" if own == JOB else ""
        raise InvalidArgument("id or name", f"must not contain a slash, but it is {name!r}{advice}")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError as wrong:
        raise InvalidArgument("id or name", f"must be Unicode: {wrong}") from wrong


def header(argument: str, value: str) -> str:
    """Returns the value of a header. Raises InvalidArgument for a value that no header can contain."""
    if not (value.isascii() and value.isprintable()):
        raise InvalidArgument(argument, f"must be printable ASCII, not {value!r}")
    return value


def name_of(named: Named, own: str | None = None) -> str:
    """Returns the id of an answer, or its name if it has no id; a string as it is. Raises InvalidArgument.

    own: the preferred member, such as `runId` if a run is wanted and the answer refers to one.
    """
    text: object = named
    if isinstance(named, Model):
        facts = named.to_json()
        text = next((facts[name] for name in (own, *NAMES) if name in facts), None)
    if not isinstance(text, str) or not text:
        raise InvalidArgument("id or name", f"must be a string that is not empty, or an answer with one, not {named!r}")
    return text


def several(value: Any) -> Any:
    """Returns an array for a body: a single object becomes an array of one."""
    return [value] if isinstance(value, Mapping | Model) else value


def to_json(value: Any) -> Any:
    """Returns a value as JSON. Instants become RFC 3339, without an offset if naive. Durations become ISO 8601."""
    if isinstance(value, Model):
        return value.to_json()
    if isinstance(value, date | time):
        return instant_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, Mapping):
        return {name: to_json(each) for name, each in value.items() if each is not ABSENT}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(each) for each in value]
    return value


def instant_text(instant: date | time) -> str:
    """Returns an instant as RFC 3339 in UTC with `Z`. A naive datetime, a date or a time has no offset."""
    if not isinstance(instant, datetime) or instant.tzinfo is None:
        return instant.isoformat()
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def duration_text(duration: timedelta) -> str:
    """Returns a duration as ISO 8601. Raises ValueError unless it is whole seconds."""
    if duration % timedelta(seconds=1):
        raise ValueError(f"a duration must be whole seconds, not {duration}")
    return f"PT{duration // timedelta(seconds=1)}S"


def _query_string(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, Model):
        return name_of(value, name)
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(sorted(map(str, value)) if isinstance(value, set | frozenset) else map(str, value))
    return str(value)
