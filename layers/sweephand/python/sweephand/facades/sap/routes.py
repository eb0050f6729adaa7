"""The routes of SAP Job Scheduling Service, each with the scope that it needs."""

from __future__ import annotations

from sweephand.errors import SweephandError
from sweephand.facades.api import Api, Visit
from sweephand.facades.http import Answer, Route, Routes
from sweephand.facades.sap import jobs
from sweephand.facades.sap.context import Context
from sweephand.facades.sap.errors import of_error, refusal

READ, WRITE, RUN = "jobs:read", "jobs:write", "runs:write"

ROUTES = Routes(
    [
        Route("GET", "/scheduler/jobCount", jobs.count, READ),
    ]
)
PREFIXES = {
    jobs.count: "Error while fetching job details: ",
}
"""What the messages of an operation begin with."""


class SapApi(Api):
    """`/scheduler`. Parameters that a route does not know are let through: its client sends all that it was given."""

    routes = ROUTES

    def operate(self, visit: Visit) -> Answer:
        assert visit.caller is not None
        operation = visit.route.operation
        return operation(Context(self.world, self.guard, self.door, *visit[:3], visit.caller))

    def refusal(self, error: SweephandError, _request_id: str, route: Route | None) -> Answer:
        return of_error(error, PREFIXES.get(route.operation, "") if route else "")

    def no_such_method(self, _request_id: str) -> Answer:
        return refusal(404, "no such route")

    def unexpected(self, _request_id: str) -> Answer:
        return refusal(500, "the request could not be worked on")
