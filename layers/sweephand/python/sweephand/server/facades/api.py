"""The entry point that all facades share: identifies the caller, finds the route, and always answers."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from sweephand.base.errors import InvalidRequest, NotFound, SweephandError, Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.schedules.rule import of_answer
from sweephand.server.actions import Allowed
from sweephand.server.facades.http import RUN_TOKEN_HEADER, Answer, Request, Route, Routes, read_request
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.security.caller import Caller, Door, claimed_identity
from sweephand.server.security.guard import GuardSettings

with lazy():
    from sweephand.server import telemetry
    from sweephand.server.flow import rates

READS = frozenset({"GET", "HEAD"})
"""The methods that change nothing."""

OWN_HEADERS = frozenset(
    f"sweephand-{name}"
    for name in (
        "tenant",
        "hop",
        "callback-token",
        "callback-url",
        "job-id",
        "schedule-id",
        "run-id",
        "planned-at",
        "attempt",
    )
)
"""The headers with the service's name: those that facades read, and those of its calls, which a job may send here."""

LONGEST_AGENT = 200
"""The most characters of a user agent in a log line."""


class Visit(NamedTuple):
    """A request that found its route. parameters: of its path. caller: verified; None on a route open to all."""

    request: Request
    route: Route
    parameters: Mapping[str, str]
    caller: Caller | None


@dataclass(frozen=True)
class RequestContext:
    """The part of a request's context that every facade has. parameters: of the path."""

    world: World
    guard: GuardSettings
    door: Callable[[], Door]
    request: Request
    route: Route
    parameters: Mapping[str, str]

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    @property
    def kinds(self) -> Allowed:
        return Allowed(self.guard)


def shows_run_token(request: Request) -> bool:
    return RUN_TOKEN_HEADER.lower() in request.headers and "authorization" not in request.headers


def _check_own_headers(request: Request, route: Route) -> None:
    """Raises InvalidRequest for a header with the service's name that the route does not read."""
    known = OWN_HEADERS | {name.lower() for name in route.headers}
    for name in request.headers:
        if name.startswith("sweephand-") and name not in known:
            shown = name[:100].title()
            reason = f"{shown} is not a header of this path, and would be ignored: leave it out"
            raise InvalidRequest(shown, reason, code="INVALID_QUERY")


class Api(ABC):
    """A facade as the API function calls it: events of API Gateway (payload 2.0) in, answers out.

    door: built at the first request that needs it, because it reads the stack's secret.
    """

    routes: ClassVar[Routes]

    def __init__(self, world: World, guard: GuardSettings, door: Callable[[], Door]) -> None:
        self.world = world
        self.guard = guard
        self.door = door

    @abstractmethod
    def operate(self, visit: Visit) -> Answer:
        """Returns the route's answer. Raises SweephandError for a request that it refuses."""

    @abstractmethod
    def refusal(self, error: SweephandError, request_id: str, route: Route | None) -> Answer:
        """Returns an error in the form of this facade. route: None if none was found."""

    def no_such_path(self, request: Request) -> str:  # noqa: ARG002 - facades add what they know
        """Returns the reason for refusing a path without a route."""
        return "no such path"

    @abstractmethod
    def no_such_method(self, request: Request, taken: str) -> Answer:
        """Returns 405 for a path that takes other methods; they are listed in `Allow`."""

    @abstractmethod
    def unexpected(self, request_id: str) -> Answer:
        """Returns 500, without detail."""

    def handle(self, event: Mapping[str, Any], request_id: str) -> dict[str, Any]:
        """Answers an event. Never raises: an unexpected error is a 500 without detail."""
        clock = self.world.clock
        begun = clock.monotonic()
        route: Route | None = None
        caller: Caller | None = None
        request: Request | None = None
        try:
            request = read_request(event, request_id)
            route, caller, answer = self._answer(request)
        except SweephandError as refused:
            answer = self.refusal(refused, request_id, None)
        except Exception as unexpected:  # noqa: BLE001 - the last line of defence: the caller gets a 500 without detail
            self.world.journal.error(
                "request failed", error=type(unexpected).__name__, where=telemetry.where(unexpected)
            )
            answer = self.unexpected(request_id)
        http = event["requestContext"]["http"]
        method = str(http["method"]).upper()
        written = self._written(answer, request_id, head=method == "HEAD")
        self.world.journal.info(
            "request",
            request=request_id,
            method=method[:10],
            route=route.path if route else None,
            status=written["statusCode"],
            tenant=caller.tenant if caller else None,
            actor=caller.client_id if caller else None,
            claimed=self._claimed(request, route) if caller is None else None,
            source=http.get("sourceIp"),
            agent=str(http.get("userAgent") or "")[:LONGEST_AGENT] or None,
            took_ms=round((clock.monotonic() - begun) * 1000),
        )
        return written

    def _claimed(self, request: Request | None, _route: Route | None) -> str | None:
        """Returns the client that an unidentified request claims to come from. Not verified, and never a secret."""
        return None if request is None else claimed_identity(request.headers.get("authorization"))

    def _answer(self, request: Request) -> tuple[Route | None, Caller | None, Answer]:
        match = self.routes.find(request.method, request.path)
        if isinstance(match, frozenset):
            rates.let_in(self.world, self._identify(request).tenant)
            if not match:
                raise NotFound(self.no_such_path(request))
            taken = ", ".join(sorted(match))
            refused = self.no_such_method(request, taken)
            return None, None, replace(refused, headers={**refused.headers, "Allow": taken})
        route, parameters = match
        caller = None
        try:
            if route.scope is not None:
                by_target = route.run_token and shows_run_token(request)
                caller = self._identify(request, parameters["run"] if by_target else None)
                rates.let_in(self.world, caller.tenant, by_target=by_target)
                if route.gives_access:
                    caller = self.door().identify_uncached(request.headers.get("authorization"), self.world.clock.now())
                caller = tenancy.admitted(self.world, caller, fresh=route.gives_access)
                if not any(caller.allows(scope) for scope in route.also):
                    caller.require(route.scope)
            _check_own_headers(request, route)
            with of_answer() if request.method in READS else nullcontext():
                return route, caller, self.operate(Visit(request, route, parameters, caller))
        except SweephandError as refused:
            return route, caller, self.refusal(refused, request.request_id, route)

    def _identify(self, request: Request, run_id: str | None = None) -> Caller:
        """Identifies the caller. run_id: the run whose own token the caller shows, and nothing else."""
        if run_id is not None:
            token = request.headers[RUN_TOKEN_HEADER.lower()]
            return self.door().by_run_token(token, run_id, self.world.clock.now())
        return self.door().identify(request.headers.get("authorization"), self.world.clock.now())

    def _written(self, answer: Answer, request_id: str, *, head: bool = False) -> dict[str, Any]:
        """Returns an answer for API Gateway. head: without the body that a GET would have."""
        if answer.too_large:
            answer = self.refusal(Unavailable("the answer is too large"), request_id, None)
        headers = {
            "content-type": answer.media_type,
            "x-request-id": request_id,
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            "strict-transport-security": "max-age=31536000",
            "cross-origin-resource-policy": "same-origin",
            **{name.lower(): value for name, value in answer.headers.items()},
        }
        written = {"statusCode": answer.status, "headers": headers, "body": "", "isBase64Encoded": False}
        if head:
            return written
        if answer.packed:
            return {**written, "body": base64.b64encode(answer.packed).decode(), "isBase64Encoded": True}
        return {**written, "body": answer.text}
