"""The context of an operation of the native API, and the small steps that many operations share."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

from sweephand.base.errors import Conflict, InvalidRequest, NotFound
from sweephand.base.ids import is_uuid
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.formats import strict_json
from sweephand.server.facades.api import RequestContext
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import cursors, shapes
from sweephand.server.facades.native.query import in_query
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.job_parts.change_log import By, Operation
from sweephand.server.security.caller import Caller

with lazy():
    from sweephand.server.facades.native import hints
    from sweephand.server.flow.tenants import integer_ids, tenancy

T = TypeVar("T")
REASON_HEADER, LONGEST_REASON = "Sweephand-Reason", 500
KEYS_PATH = "/.well-known/jwks.json"
TENANT_HEADER = "sweephand-tenant"
HOP_HEADER = "sweephand-hop"
TASKS = "tasks:write"
"""The scope for jobs whose action runs a task."""
MOST_HOPS = 3
"""The most runs in a chain in which each run's call starts the next one through the API, such as two jobs that call
each other's `/run`."""
_ETAG = re.compile(r'(?:W/)?"([0-9]{1,15})"', re.ASCII)
_HOP = re.compile(r"[0-9]{1,4}", re.ASCII)
RUN_ID = re.compile(r"([0-9a-f-]{36})_([0-9a-f-]{36})", re.ASCII)
_INTEGER = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
_KEY = re.compile(r"[!-~]{1,255}", re.ASCII)


@dataclass(frozen=True)
class Context(RequestContext):
    """The context of one request. caller, acting_for: verified; None for operations that are open to all."""

    caller: Caller | None = None
    acting_for: str | None = None

    @property
    def tenant(self) -> str:
        assert self.acting_for is not None
        return self.acting_for

    def id(self, name: str) -> str:
        """Returns a path parameter that is an id. Raises NotFound if it is not an id."""
        text = self.parameters[name]
        if not is_uuid(text):
            raise NotFound(f"no such {name}{_no_id(name, text)}")
        return text

    def plain(self, name: str, *, made_as: str | None = None) -> str:
        """Returns a path parameter that is a plain name. Raises NotFound if it is not one.

        made_as: the parameter's name in messages, for a request that creates what it names. Such a request gets
        InvalidRequest instead.
        """
        text = self.parameters[name]
        if made_as is not None:
            shapes.check_plain(fields.text(text, made_as, 1, 128), made_as)
        if not shapes.is_plain(text):
            raise NotFound(f"no such {name.replace('_', ' ')}")
        return text

    def job_of(self, named: object, *, code: str | None = None) -> str:
        """Returns the id of the job in a filter `jobId`, which may be the integer id of SAP's API.

        Raises InvalidRequest, and NotFound for an integer that no job of the tenant has.
        """
        if isinstance(named, str) and is_uuid(named):
            return named
        if isinstance(named, str) and _INTEGER.fullmatch(named):
            return integer_ids.job_with(self.world, self.tenant, int(named)).id
        advice = by_name(named) if isinstance(named, str) else ""
        raise InvalidRequest("jobId", f"is not the id of a job: {fields.shown(named)}{advice}", code=code)

    def run(self, name: str = "run") -> tuple[str, str]:
        """Returns the owner and uuid of the run that a path parameter names."""
        parts = RUN_ID.fullmatch(self.parameters[name])
        if parts is None:
            raise NotFound(f"no such run{_no_id('run', self.parameters[name])}")
        return parts[1], parts[2]

    def body(self, max_bytes: int = strict_json.MAX_BYTES) -> Any:
        """Reads the request's JSON. Raises InvalidRequest: NOT_JSON for another media type, others by the parser."""
        if not self.request.body:
            if self.route.body == "optional":
                return {}
            raise InvalidRequest(None, "a JSON body is required", code="INVALID_JSON")
        media = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        allowed = {"application/json"} | ({"application/merge-patch+json"} if self.request.method == "PATCH" else set())
        if media not in allowed:
            sent = f"not {media[:100]}" if media else "and is missing"
            reason = f"the Content-Type must be {' or '.join(sorted(allowed))}, {sent}"
            raise InvalidRequest(None, reason, code="NOT_JSON")
        return strict_json.loads(self.request.plain_body(), max_bytes=max_bytes)

    def merge_patch(self, noun: str) -> dict[str, Any]:
        """Returns the body of a PATCH. Raises InvalidRequest if it is not an object."""
        body = self.body()
        if not isinstance(body, dict):
            raise InvalidRequest(None, f"a merge patch of a {noun} must be an object", code="INVALID_FIELD")
        return body

    def no_members(self) -> None:
        """Raises InvalidRequest unless the body is absent or {}."""
        fields.members(self.body(), "", ())

    def page(self, *parts: Callable[[str], bool]) -> tuple[int, tuple[str, ...] | None]:
        """Reads `limit`, and the mark of `cursor` if there is one. parts: checks each part of the mark."""
        return cursors.limit_of(self.query), cursors.read(self.place, self.query, *parts)

    def page_of(
        self,
        rows: Callable[[str | None, int], Iterable[T]],
        show: Callable[[T], Any],
        *,
        mark: Callable[[T], str],
        fits: Callable[[str], bool],
    ) -> Answer:
        """Answers with a page of a list. rows: takes the mark after which to continue, and the number of rows.

        fits: returns whether a cursor's mark may belong to this list.
        """
        limit, last = self.page(fits)
        listed = list(islice(rows(last[0] if last else None, limit + 1), limit + 1))
        cursor = self.cursor(mark(listed[limit - 1])) if len(listed) > limit else None
        return Answer(200, {"items": [show(each) for each in listed[:limit]], "nextCursor": cursor})

    def cursor(self, *mark: str) -> str:
        """Returns the cursor of the next page."""
        return cursors.write(self.place, self.query, mark)

    @property
    def place(self) -> str:
        """The owner and path of the list. A cursor of another list is refused."""
        whose = self.acting_for or (self.caller and self.caller.tenant) or self.request.headers.get(TENANT_HEADER)
        return " ".join((whose or "", *self.request.path))

    def if_match(self) -> int | None:
        """Returns the revision that the caller expects; None without the header or with *."""
        header = self.request.headers.get("if-match")
        if header is None or header.strip() == "*":
            return None
        match = _ETAG.fullmatch(header.strip())
        if not match:
            raise InvalidRequest("If-Match", 'must be one ETag in double quotes, such as "3"', code="INVALID_QUERY")
        return int(match[1])

    def by(self, operation: Operation = Operation.CHANGE) -> By:
        """Returns the author of a change, for the change log, with the reason that the caller gives in a header."""
        header = self.request.headers.get(REASON_HEADER.lower())
        if header is None:
            return By(operation, self.actor)
        with in_query():
            return By(operation, self.actor, fields.line(header, REASON_HEADER, LONGEST_REASON))

    @property
    def actor(self) -> str:
        """The caller's client id."""
        assert self.caller is not None
        return self.caller.client_id

    def allows(self, scope: str) -> bool:
        return self.caller is not None and self.caller.allows(scope)

    def require(self, scope: str) -> None:
        """Raises Forbidden for a caller without the scope."""
        assert self.caller is not None
        self.caller.require(scope)

    def owner(self) -> str | None:
        """Returns the tenant that owns the resources; None for the provider without the header Sweephand-Tenant."""
        assert self.caller is not None
        named = self.request.headers.get(TENANT_HEADER)
        return None if self.caller.provider and named is None else self.caller.acting_for(named)

    def once(self) -> Once | None:
        header = self.request.headers.get("idempotency-key")
        if header is None:
            return None
        if not _KEY.fullmatch(header):
            raise InvalidRequest("Idempotency-Key", "must have 1 to 255 visible ASCII characters", code="INVALID_QUERY")
        path = "/".join(self.request.path)
        key = hashlib.sha256(f"{self.request.method} {path} {header}".encode()).hexdigest()
        return Once(key, hashlib.sha256(_canonical(self.request.body or b"{}")).hexdigest())

    def hop(self) -> int:
        """Returns how many runs precede the requested one in its chain, if a run's call makes the request.

        Raises Conflict if there are too many. A malformed number is ignored.
        """
        header = self.request.headers.get(HOP_HEADER, "")
        hop = int(header) if _HOP.fullmatch(header) else 0
        if hop > MOST_HOPS:
            raise Conflict(f"{MOST_HOPS} runs in a row have already started each other (header Sweephand-Hop)")
        return hop

    def text(self, name: str, longest: int) -> str | None:
        """Reads a query parameter of 1 to `longest` characters."""
        value = self.query.get(name)
        with in_query():
            return None if value is None else fields.text(value, name, 1, longest)

    def collection(self) -> str | None:
        """Reads the query parameter `collection`. Raises InvalidRequest if it is unknown, on the first page only."""
        named = self.text("collection", 128)
        if named is None or "cursor" in self.query:
            return named
        with in_query():
            tenancy.check_collection(self.world, self.tenant, named)
        return named

    def choice(self, name: str, choices: frozenset[str]) -> str | None:
        value = self.query.get(name)
        with in_query():
            return None if value is None else fields.one_of(value, name, choices)

    def include(self, choices: frozenset[str]) -> frozenset[str]:
        """Reads `?include=a,b`."""
        parts = frozenset(filter(None, self.query.get("include", "").split(",")))
        with in_query():
            for each in sorted(parts - choices):
                fields.one_of(each, "include", choices)
        return parts


@contextmanager
def helpful(body: object, now: datetime, *, change: bool = False) -> Iterator[None]:
    """Adds all mistakes of the body, and what to write instead, to every InvalidRequest from the block.

    change: True for a merge patch.
    """
    try:
        yield
    except InvalidRequest as wrong:
        raise hints.improved(wrong, body, now, change=change) from wrong


def _no_id(kind: str, text: str) -> str:
    """Returns the end of the message for a path parameter that is not an id."""
    if kind == "job":
        return f": paths name ids{by_name(text)}"
    return f": {fields.shown(text)} is not the id of {'an' if kind[0] in 'aeio' else 'a'} {kind}"


def by_name(text: str) -> str:
    """Returns the advice for a caller who used a job's name as its id."""
    if not fields.is_visible(text):
        return ""
    return f"; GET /v1/jobs?name={quote(text[:128], safe='')} finds a job by its name"


def _canonical(body: bytes) -> bytes:
    """Returns a JSON body with sorted members, so that equal bodies compare equal; any other body unchanged.

    The encoder in C is used, which ignores the digits with which a number was written.
    """
    try:
        value = strict_json.loads(body)
    except InvalidRequest:
        return body  # the operation refuses it
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def canonical(value: Any) -> Any:
    """Returns a JSON value with the members of its objects sorted."""
    if not value or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return [canonical(each) if isinstance(each, dict | list) else each for each in value]
    return {name: canonical(each) if isinstance(each, dict | list) else each for name, each in sorted(value.items())}
