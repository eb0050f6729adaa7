"""The routes of SAP Job Scheduling Service with their scopes, and the form of refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sweephand.base.errors import InvalidRequest, NotFound, RateLimited, SweephandError, Unauthenticated, Unavailable
from sweephand.server.facades.api import Api, Visit
from sweephand.server.facades.http import Answer, Operation, Request, Route, Routes
from sweephand.server.facades.sap import action_logs, config, jobs, runs, schedules, search
from sweephand.server.facades.sap.context import Context
from sweephand.server.flow.rates import Limit, RateMeter
from sweephand.server.flow.tenants.integer_ids import Ordinals

READ, WRITE, RUN = "jobs:read", "jobs:write", "runs:write"
JOBS, JOB = "/scheduler/jobs", "/scheduler/jobs/{job}"
SCHEDULES, SCHEDULE = f"{JOB}/schedules", f"{JOB}/schedules/{{schedule}}"
RUNS, ONE_RUN = f"{SCHEDULE}/runs", f"{SCHEDULE}/runs/{{run}}"
SLOW_MS, CLIENT_SLOW_MS = 1_000, 250
"""The delay of a request near the limit of all callers, and near the limit of a tenant."""
CREATING, CONFIGURING, REMOVING, DETAILS, LISTING = (
    f"Error while {doing}: "
    for doing in ("creating job", "configuring job", "removing job", "fetching job details", "fetching list of jobs")
)
SEARCHING = "Error in Job Scheduler action: "
TABLE: list[tuple[str, str, Operation, str, str]] = [
    ("POST", JOBS, jobs.create, WRITE, CREATING),
    ("GET", JOBS, jobs.list_all, READ, LISTING),
    ("GET", JOB, jobs.read, READ, DETAILS),
    ("PUT", JOB, jobs.put, WRITE, CONFIGURING),
    ("DELETE", JOB, jobs.delete, WRITE, REMOVING),
    ("POST", SCHEDULES, schedules.create, WRITE, CREATING),
    ("GET", SCHEDULES, schedules.list_all, READ, DETAILS),
    ("DELETE", SCHEDULES, schedules.delete_all, WRITE, REMOVING),
    ("POST", f"{SCHEDULES}/activationStatus", schedules.switch_all, WRITE, CONFIGURING),
    ("GET", SCHEDULE, schedules.read, READ, DETAILS),
    ("PUT", SCHEDULE, schedules.put, WRITE, CONFIGURING),
    ("DELETE", SCHEDULE, schedules.delete, WRITE, REMOVING),
    ("GET", RUNS, runs.list_all, READ, DETAILS),
    ("GET", ONE_RUN, runs.read, READ, DETAILS),
    ("PUT", ONE_RUN, runs.put, RUN, CONFIGURING),
    ("GET", "/scheduler/jobCount", jobs.count, READ, DETAILS),
    ("GET", "/scheduler/search/jobs", search.search_jobs, READ, SEARCHING),
    ("GET", "/scheduler/search/schedules", search.search_schedules, READ, SEARCHING),
    ("GET", "/scheduler/globalParameters", config.read, READ, SEARCHING),
    ("PUT", "/scheduler/globalParameters", config.put, WRITE, SEARCHING),
    ("GET", "/scheduler/actionLogs", action_logs.list_all, READ, DETAILS),
]
"""Method, path, operation, scope, and the beginning of its error messages."""
PREFIXES = {(method, path): prefix for method, path, _, _, prefix in TABLE}

STATUS = {
    "UNAUTHENTICATED": 401,
    "SCOPE_MISSING": 403,
    "TENANT_DISABLED": 403,
    "QUOTA_EXCEEDED": 403,
    "NOT_FOUND": 404,
    "TOO_LARGE": 413,
    "RATE_LIMITED": 429,
    "UNAVAILABLE": 503,
    "INTERNAL": 500,
}
"""Every other code of the domain is a 400, because the service has no 409, 412, 415 and 422."""
TYPES = {
    400: "Bad Request/Invalid Request",
    401: "Authentication Error",
    403: "Forbidden Request",
    404: "Resource Not Found",
    413: "Request Too Large",
    429: "Rate Limit Exceeded",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
ALWAYS_CREATING = frozenset({"calmConfig"})
"""Members whose error messages always begin like those of POST, because SAP documents them for PUT as well."""
NAMES = {"sapCron": "cron", "every": "repeatInterval"}
"""SAP's names for fields of the domain."""


class _Routes(Routes):
    """Routes that accept a trailing slash for reading and creating, which SAP's samples of lists have.

    Changing and deleting do not accept it, because an id may be missing.
    """

    def find(self, method: str, path: Sequence[str]) -> tuple[Route, dict[str, str]] | frozenset[str]:
        if method in {"GET", "HEAD", "POST"} and path[-1] == "":
            path = path[:-1]
        return super().find(method, path)


class SapApi(Api):
    """The API under `/scheduler`. It ignores unknown parameters, because SAP's client sends everything it is given."""

    routes = _Routes([Route(method, path, operation, scope) for method, path, operation, scope, _ in TABLE])

    def __init__(self, *collaborators: Any) -> None:
        super().__init__(*collaborators)
        self._ordinals = Ordinals(self.world)
        settings = self.world.settings
        self._rates = RateMeter(
            self.world,
            Limit(settings.rate_slow_from, settings.rate_most, SLOW_MS),
            Limit(settings.client_rate_slow_from, settings.client_rate_most, CLIENT_SLOW_MS),
        )

    def operate(self, visit: Visit) -> Answer:
        """Delays answers near a request limit. Over the limit of all callers, refuses them with the time to wait."""
        assert visit.caller is not None
        context = Context(self.world, self.guard, self.door, *visit[:3], visit.caller, self._ordinals)
        try:
            waits_ms = self._rates.let_in(context.own)
        except Unavailable as over:
            answer = self.refusal(over, visit.request.request_id, visit.route)
            return replace(answer, headers={**answer.headers, "throttling": str(over.retry_after_s * 1000)})
        if not waits_ms:
            return _operated(visit.route, context)
        self.world.clock.sleep(waits_ms / 1000)
        answer = _operated(visit.route, context)
        return replace(answer, headers={**answer.headers, "throttling": str(waits_ms)})

    def refusal(self, error: SweephandError, _request_id: str, route: Route | None) -> Answer:
        if route is None and isinstance(error, NotFound):
            return refusal(404, error.reason)
        return of_error(error, PREFIXES[route.method, route.path] if route else "")

    def no_such_path(self, request: Request) -> str:
        path = "/".join(request.path)
        return f"Not Found: no such route below /scheduler: {request.method[:20]} /{path[:100]}"

    def no_such_method(self, request: Request, _taken: str) -> Answer:
        return refusal(404, self.no_such_path(request))

    def unexpected(self, _request_id: str) -> Answer:
        return refusal(500, "the request could not be processed")


def _operated(route: Route, context: Context) -> Answer:
    """Returns the route's answer, or a refusal."""
    try:
        context.refuse_tenant_header()
        context.named_tenant()  # in every route, a tenant's caller may not name a tenant
        answer = route.operation(context)
        if answer.too_large:
            raise InvalidRequest(None, "the answer would be too large: ask for a page (page_size, offset)")
    except SweephandError as refused:
        one = route.operation is jobs.list_all and jobs.asks_for_one(context)
        return of_error(refused, DETAILS if one else PREFIXES[route.method, route.path])
    return answer


# Refusals have the form that SAP's clients expect: they print only `message` and the status. Source: the
# service's published OpenAPI description, version 2.88.0, and the texts of its documentation.


def refusal(status: int, message: str, **members: object) -> Answer:
    body = {"code": status, "message": message, "type": TYPES[status], "detailedError": message, **members}
    return Answer(status, body)


def of_error(error: SweephandError, prefix: str) -> Answer:
    """Returns the answer for an error. prefix: of the route's messages, such as `Error while creating job: `."""
    status = STATUS.get(error.code, 400)
    if isinstance(error, Unauthenticated):
        challenge = {"WWW-Authenticate": 'Basic realm="sweephand", Bearer realm="sweephand"'}
        return replace(refusal(401, "Unauthorized"), headers=challenge)
    message = prefix + error.reason
    if isinstance(error, InvalidRequest):
        message = CREATING + error.reason if error.field in ALWAYS_CREATING else prefix + _of_field(error)
    if isinstance(error, RateLimited | Unavailable):
        # Both, because its shell samples read the body and its client the header.
        answer = refusal(status, message, retryAfter=error.retry_after_s)
        return replace(answer, headers={"Retry-After": str(error.retry_after_s)})
    return refusal(status, message)


def _of_field(error: InvalidRequest) -> str:
    """Returns the message with the path of the field.

    A cron that cannot be read gets the documented message, with the word that clients look for. A cron that can be
    read, but has no run left, is reported like any other field.
    """
    if not error.field:
        return error.reason
    above, _, name = error.field.rpartition(".")
    name = NAMES.get(name, name)
    if name == "cron" and error.code != "NEVER_FIRES":
        where = f"{above}.{name}: " if above else ""
        return f"Invalid cron specified (xscron: {where}{error.reason})"
    return f"{above}.{name}: {error.reason}" if above else f"{name}: {error.reason}"
