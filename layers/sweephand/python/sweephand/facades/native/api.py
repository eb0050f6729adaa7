"""The native API: the one way in."""

from __future__ import annotations

from dataclasses import replace

from sweephand.errors import InvalidRequest, SweephandError
from sweephand.facades.api import Api, Visit
from sweephand.facades.http import Answer, Route
from sweephand.facades.native import cursors
from sweephand.facades.native.context import TENANT_HEADER, Context
from sweephand.facades.native.problems import of_error, problem
from sweephand.facades.native.routes import ROUTES

SMALLER_PAGE = 4
"""A page too large for an answer is read again with a limit of so many times less."""


class NativeApi(Api):
    """`/v1`. See Api."""

    routes = ROUTES

    def operate(self, visit: Visit) -> Answer:
        acting_for = None
        if visit.caller is not None and visit.route.tenant:
            acting_for = visit.caller.acting_for(visit.request.headers.get(TENANT_HEADER))
        for name in visit.request.query:
            if name not in visit.route.query and visit.route.body != "form":
                raise InvalidRequest(name[:100], "is not a parameter here", code="INVALID_QUERY")
        return _fitting(Context(self.world, self.guard, self.door, *visit, acting_for))

    def refusal(self, error: SweephandError, request_id: str, _route: Route | None) -> Answer:
        return of_error(error, request_id)

    def no_such_method(self, request_id: str) -> Answer:
        return problem("METHOD_NOT_ALLOWED", "see the header Allow", request_id)

    def unexpected(self, request_id: str) -> Answer:
        return problem("INTERNAL", "the request could not be worked on", request_id)


def _fitting(context: Context) -> Answer:
    """The operation's answer; a list that Lambda could not give back in one piece has a shorter page."""
    answer = context.route.operation(context)
    while answer.too_large and "limit" in context.route.query:
        limit = cursors.limit_of(context.query)
        if limit == 1:
            break
        query = {**context.query, "limit": str(max(1, limit // SMALLER_PAGE))}
        context = replace(context, request=replace(context.request, query=query))
        answer = context.route.operation(context)
    return answer
