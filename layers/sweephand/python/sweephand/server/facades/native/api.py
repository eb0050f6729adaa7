"""The native API: identifies tenants, checks headers and queries, and calls the operations."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from sweephand.base.errors import InvalidRequest, SweephandError
from sweephand.base.ids import UUID_TEXT
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.server.facades.api import READS, Api, Visit
from sweephand.server.facades.http import Answer, Request, Route
from sweephand.server.facades.native import cursors
from sweephand.server.facades.native.context import TENANT_HEADER, Context, by_name
from sweephand.server.facades.native.problems import of_error, problem
from sweephand.server.facades.native.routes import ROUTES
from sweephand.server.flow.tenants import tenancy
from sweephand.server.security.caller import Caller

with lazy():
    from sweephand.base.members import near_names
    from sweephand.server.facades.native.tenants import oauth

SMALLER_PAGE = 4
"""A page that is too large for an answer is read again, with its limit divided by this."""

CONSOLE_WITH_SLASH = ("console", "")


class NativeApi(Api):
    """`/v1`. See Api."""

    routes = ROUTES

    def operate(self, visit: Visit) -> Answer:
        """Returns the route's answer. Refuses headers and parameters that the route does not know."""
        acting_for = self._acting_for(visit)
        _check_headers(visit.request, visit.route)
        _check_query(visit.request, visit.route)
        return _fitting(Context(self.world, self.guard, self.door, *visit, acting_for))

    def _claimed(self, request: Request | None, route: Route | None) -> str | None:
        """Returns the client id that a token request claims, in its header or its form."""
        claimed = super()._claimed(request, route)
        if claimed is None and request is not None and route is not None and route.body == "form":
            return oauth.named_client(request)
        return claimed

    def _acting_for(self, visit: Visit) -> str | None:
        """Returns the tenant whose data the request may access; None for paths without one.

        Raises NotFound if a provider names a tenant that does not exist.
        """
        caller, named = visit.caller, visit.request.headers.get(TENANT_HEADER)
        if caller is None or (named is None and not visit.route.tenant):
            return None
        tenant = caller.acting_for(named)
        if caller.provider:
            if not visit.route.tenant and TENANT_HEADER not in {name.lower() for name in visit.route.headers}:
                raise InvalidRequest(
                    "Sweephand-Tenant", "has no effect on this path: leave it out", code="INVALID_QUERY"
                )
            tenancy.require_tenant(self.world, tenant)
        return tenant if visit.route.tenant else None

    def _answer(self, request: Request) -> tuple[Route | None, Caller | None, Answer]:
        """Redirects `/console/` to the console.

        AWS does not document whether `/console/{proxy+}` matches an empty rest. If it does not, `$default` gets the
        path; if it does, the console's own function gets it, and redirects to the same address.
        """
        if request.path == CONSOLE_WITH_SLASH and request.method in READS:
            return None, None, Answer(302, headers={"Location": f"/console?{urlencode(request.query)}".rstrip("?")})
        return super()._answer(request)

    def refusal(self, error: SweephandError, request_id: str, _route: Route | None) -> Answer:
        return of_error(error, request_id)

    def no_such_path(self, request: Request) -> str:
        """Returns a message with the path, and with the most similar path that exists."""
        path = "/".join(request.path)
        meant = self._near(request)
        advice = _if_a_name(request.path)
        hint = "" if meant is None else f"; did you mean /{meant[:100]}?"
        return f"no such path: /{path[:100]}{hint}" + (f"{' Paths' if hint else ': paths'}{advice}" if advice else "")

    def _near(self, request: Request) -> str | None:
        """Returns the similar path of a route: with the version, without a trailing slash, or with a similar name."""
        path_given = request.path[:-1] if request.path[-1:] == ("",) else request.path
        for path in (path_given, ("v1", *path_given)):
            if self.routes.find(request.method, path):
                return "/".join(path)
        return near_names.nearest("/".join(path_given), self.routes.of_length(path_given))

    def no_such_method(self, request: Request, taken: str) -> Answer:
        reason = f"this path does not take {request.method[:20]}: it takes {taken}"
        return problem("METHOD_NOT_ALLOWED", reason, request.request_id)

    def unexpected(self, request_id: str) -> Answer:
        return problem("INTERNAL", "the request could not be processed", request_id)


def _if_a_name(path: tuple[str, ...]) -> str:
    """Returns the end of the advice for a job's name with a slash in place of its id; empty for other paths."""
    if path[:2] != ("v1", "jobs") or len(path) < 4 or UUID_TEXT.fullmatch(path[2]):
        return ""
    return f" name ids{by_name('/'.join(path[2:]))}"


def _fitting(context: Context) -> Answer:
    """Returns the operation's answer. A page that is too large for Lambda is shortened."""
    answer = context.route.operation(context)
    while answer.too_large and "limit" in context.route.query:
        limit = cursors.limit_of(context.query)
        if limit == 1:
            break
        query = {**context.query, "limit": str(max(1, limit // SMALLER_PAGE))}
        context = replace(context, request=replace(context.request, query=query))
        answer = context.route.operation(context)
    return answer


def _check_query(request: Request, route: Route) -> None:
    """Raises InvalidRequest for parameters that the route does not know, or that are missing."""
    if route.body == "form":
        return
    for name in request.query:
        if name not in route.query:
            raise InvalidRequest(name[:100], _unknown_parameter(name, route.query), code="INVALID_QUERY")
    for name in route.required:
        if name not in request.query:
            raise InvalidRequest(name, f"is required: add ?{name}= to the path", code="INVALID_QUERY")


def _unknown_parameter(name: str, known: tuple[str, ...]) -> str:
    if not known:
        return "is not a parameter: this path takes none"
    if name in {"page", "pageSize", "page_size", "skip", "start"} and "cursor" in known:
        return "is not a parameter: request a page with `cursor` (nextCursor of the previous page) and `limit`"
    reason = fields.unknown("", name, known).reason
    return reason.replace("is not a known member", "is not a parameter of this path")


def _check_headers(request: Request, route: Route) -> None:
    """Raises InvalidRequest for a condition that the route would ignore."""
    taken = {name.lower() for name in route.headers}
    if "if-match" in request.headers and "if-match" not in taken and request.method not in READS:
        raise _inactive("If-Match", "this request changes nothing that has a revision")
    if "if-none-match" in request.headers and request.method not in READS:
        raise _inactive("If-None-Match", "use If-Match with the revision that is to be changed")
    key = request.headers.get("idempotency-key")
    ignored = key is not None and "idempotency-key" not in taken and request.method not in READS
    if ignored and route.body != "form" and not _of_a_run(request, key):
        raise _inactive("Idempotency-Key", "repeat this request without it, and the second one changes nothing")


def _of_a_run(request: Request, key: str | None) -> bool:
    """Returns whether a job sends this request: each call of a run has its id as the key."""
    return request.headers.get("sweephand-run-id") == key


def _inactive(name: str, why: str) -> InvalidRequest:
    return InvalidRequest(name, f"has no effect on this path: {why}; leave it out", code="INVALID_QUERY")
