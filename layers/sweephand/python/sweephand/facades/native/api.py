"""The native API: the one way in."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from sweephand.errors import InvalidRequest, SweephandError
from sweephand.facades.api import Api, Visit
from sweephand.facades.http import Answer, Request, Route
from sweephand.facades.native import cursors
from sweephand.facades.native.context import TENANT_HEADER, Context
from sweephand.facades.native.problems import of_error, problem
from sweephand.facades.native.routes import ROUTES

if TYPE_CHECKING:
    from sweephand.flow.rates import RateMeter

SMALLER_PAGE = 4
"""A page too large for an answer is read again with a limit of so many times less."""


class NativeApi(Api):
    """`/v1`. See Api."""

    routes = ROUTES

    @cached_property
    def _rates(self) -> RateMeter:
        from sweephand.flow.rates import Limit, RateMeter  # noqa: PLC0415 - no start waits for what a request needs

        return RateMeter(self.world, Limit(), Limit(most=self.world.settings.client_rate_most), counted="native")

    def operate(self, visit: Visit) -> Answer:
        """Answers, or refuses a tenant that is over its limit of requests a minute.

        The provider has no limit; nor have the results of runs, which are as many as its runs.
        """
        tenant = visit.caller.tenant if visit.caller is not None else None
        if self.world.settings.client_rate_most and tenant is not None and not visit.by_run_token:
            self._rates.let_in(tenant)
        acting_for = None
        if visit.caller is not None and visit.route.tenant:
            acting_for = visit.caller.acting_for(visit.request.headers.get(TENANT_HEADER))
        for name in visit.request.query:
            if name not in visit.route.query and visit.route.body != "form":
                raise InvalidRequest(name[:100], "is not a parameter here", code="INVALID_QUERY")
        return _fitting(Context(self.world, self.guard, self.door, *visit, acting_for))

    def _claimed(self, request: Request | None, route: Route | None) -> str | None:
        """Whoever asks for a token names itself in the header or in the form."""
        claimed = super()._claimed(request, route)
        if claimed is None and request is not None and route is not None and route.body == "form":
            from sweephand.facades.native.admin import named_client  # noqa: PLC0415 - loaded with the route

            return named_client(request)
        return claimed

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
