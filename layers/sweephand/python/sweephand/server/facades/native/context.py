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
        given = self.parameters[name]
        if not is_uuid(given):
            raise NotFound(f"no such {name}{_no_id(name, given)}")
        return given

    def plain(self, name: str, *, made_as: str | None = None) -> str:
        """Returns a path parameter that is a plain name. Raises NotFound if it is not one.

        made_as: the parameter's name in messages, for a request that creates what it names. Such a request gets
        InvalidRequest instead.
        """
        given = self.parameters[name]
        if made_as is not None:
            shapes.check_plain(fields.text(given, made_as, 1, 128), made_as)
        if not shapes.is_plain(given):
            raise NotFound(f"no such {name.replace('_', ' ')}")
        return given

    def job_of(self, given: object, *, code: str | None = None) -> str:
        """Returns the id of the job in a filter `jobId`, which may be the integer id of SAP's API.

        Raises InvalidRequest, and NotFound for an integer that no job of the tenant has.
        """
        if isinstance(given, str) and is_uuid(given):
            return given
        if isinstance(given, str) and _INTEGER.fullmatch(given):
            return integer_ids.job_with(self.world, self.tenant, int(given)).id
        advice = by_name(given) if isinstance(given, str) else ""
        raise InvalidRequest("jobId", f"is not the id of a job: {fields.shown(given)}{advice}", code=code)

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
        found = list(islice(rows(last[0] if last else None, limit + 1), limit + 1))
        cursor = self.cursor(mark(found[limit - 1])) if len(found) > limit else None
        return Answer(200, {"items": [show(each) for each in found[:limit]], "nextCursor": cursor})

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
        given = self.request.headers.get("if-match")
        if given is None or given.strip() == "*":
            return None
        found = _ETAG.fullmatch(given.strip())
        if not found:
            raise InvalidRequest("If-Match", 'must be one ETag in double quotes, such as "3"', code="INVALID_QUERY")
        return int(found[1])

    def by(self, operation: Operation = Operation.CHANGE) -> By:
        """Returns the author of a change, for the change log, with the reason that the caller gives in a header."""
        given = self.request.headers.get(REASON_HEADER.lower())
        if given is None:
            return By(operation, self.actor)
        with in_query():
            return By(operation, self.actor, fields.line(given, REASON_HEADER, LONGEST_REASON))

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
        given = self.request.headers.get("idempotency-key")
        if given is None:
            return None
        if not _KEY.fullmatch(given):
            raise InvalidRequest("Idempotency-Key", "must have 1 to 255 visible ASCII characters", code="INVALID_QUERY")
        path = "/".join(self.request.path)
        key = hashlib.sha256(f"{self.request.method} {path} {given}".encode()).hexdigest()
        return Once(key, hashlib.sha256(_canonical(self.request.body or b"{}")).hexdigest())

    def hop(self) -> int:
        """Returns how many runs precede the requested one in its chain, if a run's call makes the request.

        Raises Conflict if there are too many. A malformed number is ignored.
        """
        given = self.request.headers.get(HOP_HEADER, "")
        hop = int(given) if _HOP.fullmatch(given) else 0
        if hop > MOST_HOPS:
            raise Conflict(f"{MOST_HOPS} runs in a row have already started each other (header Sweephand-Hop)")
        return hop

    def text(self, name: str, longest: int) -> str | None:
        """Reads a query parameter of 1 to `longest` characters."""
        given = self.query.get(name)
        with in_query():
            return None if given is None else fields.text(given, name, 1, longest)

    def collection(self) -> str | None:
        """Reads the query parameter `collection`. Raises InvalidRequest if it is unknown, on the first page only."""
        given = self.text("collection", 128)
        if given is None or "cursor" in self.query:
            return given
        with in_query():
            tenancy.check_collection(self.world, self.tenant, given)
        return given

    def choice(self, name: str, choices: frozenset[str]) -> str | None:
        given = self.query.get(name)
        with in_query():
            return None if given is None else fields.one_of(given, name, choices)

    def include(self, choices: frozenset[str]) -> frozenset[str]:
        """Reads `?include=a,b`."""
        given = frozenset(filter(None, self.query.get("include", "").split(",")))
        with in_query():
            for each in sorted(given - choices):
                fields.one_of(each, "include", choices)
        return given


@contextmanager
def helpful(body: object, now: datetime, *, change: bool = False) -> Iterator[None]:
    """Adds all mistakes of the body, and what to write instead, to every InvalidRequest from the block.

    change: True for a merge patch.
    """
    try:
        yield
    except InvalidRequest as wrong:
        raise hints.improved(wrong, body, now, change=change) from wrong


def _no_id(kind: str, given: str) -> str:
    """Returns the end of the message for a path parameter that is not an id."""
    if kind == "job":
        return f": paths name ids{by_name(given)}"
    return f": {fields.shown(given)} is not the id of {'an' if kind[0] in 'aeio' else 'a'} {kind}"


def by_name(given: str) -> str:
    """Returns the advice for a caller who used a job's name as its id."""
    if not fields.is_visible(given):
        return ""
    return f"; GET /v1/jobs?name={quote(given[:128], safe='')} finds a job by its name"


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
