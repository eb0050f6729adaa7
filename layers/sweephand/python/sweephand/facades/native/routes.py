"""The native API: its operations, each with the scope that it needs, and the one way in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sweephand.errors import InvalidRequest, NotFound, SweephandError, Unavailable
from sweephand.facades.http import Answer, Request, Route, Routes, read_request
from sweephand.facades.native import admin, cursors, job_list, jobs, runs, schedules
from sweephand.facades.native.context import TENANT_HEADER, Context
from sweephand.facades.native.problems import of_error, problem
from sweephand.flow.world import World
from sweephand.security.caller import Caller, Door
from sweephand.security.guard import GuardSettings

READ, WRITE, RUN = "jobs:read", "jobs:write", "runs:write"
ADMIN, PROVIDER = "admin", "provider:admin"
PAGE = ("limit", "cursor")
JOB = "/v1/jobs/{job}"
SCHEDULE = "/v1/jobs/{job}/schedules/{schedule}"
COLLECTION = "/v1/collections/{collection}"
SMALLER_PAGE = 4
"""A page too large for an answer is read again with a limit of so many times less."""

ROUTES = Routes(
    [
        Route("GET", "/v1/health", admin.health, None, summary="Version; with a scope, how far behind the sweep is"),
        Route("POST", "/v1/jobs", jobs.create, WRITE, body="required", summary="Create a job with its schedules"),
        Route(
            "GET",
            "/v1/jobs",
            job_list.list_all,
            READ,
            (*PAGE, "collection", "state", "tag", "resourceId", "name", "include"),
            summary="List jobs",
        ),
        Route("GET", JOB, jobs.read, READ, ("include",), summary="Read a job"),
        Route("PUT", JOB, jobs.put, WRITE, body="required", summary="Replace a job"),
        Route("PATCH", JOB, jobs.patch, WRITE, body="required", summary="Change a job by a merge patch"),
        Route("DELETE", JOB, jobs.delete, WRITE, summary="Delete a job and end its open runs"),
        Route("POST", f"{JOB}/run", jobs.run, RUN, body="optional", summary="Run a job now"),
        Route("POST", f"{JOB}/pause", jobs.pause, WRITE, body="optional", summary="Pause a job"),
        Route("POST", f"{JOB}/resume", jobs.resume, WRITE, body="optional", summary="Resume a paused job"),
        Route("POST", f"{JOB}/activate", jobs.activate, WRITE, body="optional", summary="Activate a job"),
        Route("POST", f"{JOB}/deactivate", jobs.deactivate, WRITE, body="optional", summary="Deactivate a job"),
        Route("GET", f"{JOB}/next", jobs.next_run, READ, summary="The next instant of a job"),
        Route(
            "GET",
            f"{JOB}/occurrences",
            runs.occurrences,
            READ,
            (*PAGE, "scheduleId", "from", "until"),
            summary="What a job did and will do",
        ),
        Route("GET", f"{JOB}/schedules", schedules.list_all, READ, PAGE, summary="List a job's schedules"),
        Route("POST", f"{JOB}/schedules", schedules.create, WRITE, body="required", summary="Add a schedule"),
        Route("GET", SCHEDULE, schedules.read, READ, summary="Read a schedule"),
        Route("PUT", SCHEDULE, schedules.put, WRITE, body="required", summary="Replace a schedule"),
        Route("PATCH", SCHEDULE, schedules.patch, WRITE, body="required", summary="Change a schedule"),
        Route("DELETE", SCHEDULE, schedules.delete, WRITE, summary="Delete a schedule"),
        Route("POST", f"{SCHEDULE}/activate", schedules.activate, WRITE, body="optional", summary="Activate it"),
        Route("POST", f"{SCHEDULE}/deactivate", schedules.deactivate, WRITE, body="optional", summary="Deactivate it"),
        Route(
            "POST",
            "/v1/schedules:preview",
            runs.preview_schedule,
            READ,
            body="required",
            summary="The next instants of a schedule that is not stored",
            tenant=False,
        ),
        Route(
            "GET",
            "/v1/runs",
            runs.list_all,
            READ,
            (*PAGE, "jobId", "scheduleId", "state", "kind"),
            summary="List runs; without a job or schedule, what did not succeed or waits",
        ),
        Route("GET", "/v1/runs/{run}", runs.read, READ, summary="Read a run with its attempts"),
        Route("PUT", "/v1/runs/{run}/result", runs.put_result, RUN, body="required", summary="Report a run's result"),
        Route("POST", "/v1/runs/{run}/cancel", runs.cancel, RUN, body="optional", summary="Cancel an open run"),
        Route(
            "POST", "/v1/collections", admin.create_collection, WRITE, body="required", summary="Create a collection"
        ),
        Route("GET", "/v1/collections", admin.list_collections, READ, PAGE, summary="List collections"),
        Route("GET", COLLECTION, admin.read_collection, READ, summary="Read a collection"),
        Route("PUT", COLLECTION, admin.put_collection, WRITE, body="required", summary="Replace a collection"),
        Route("PATCH", COLLECTION, admin.patch_collection, WRITE, body="required", summary="Change a collection"),
        Route("DELETE", COLLECTION, admin.delete_collection, WRITE, summary="Delete an empty collection"),
        Route("POST", f"{COLLECTION}/enable", admin.enable_collection, WRITE, body="optional", summary="Enable it"),
        Route("POST", f"{COLLECTION}/disable", admin.disable_collection, WRITE, body="optional", summary="Disable it"),
        Route(
            "POST",
            "/v1/credentials",
            admin.create_credential,
            ADMIN,
            body="required",
            summary="Create a credential",
            tenant=False,
        ),
        Route("GET", "/v1/credentials", admin.list_credentials, ADMIN, PAGE, summary="List credentials", tenant=False),
        Route(
            "DELETE",
            "/v1/credentials/{credential}",
            admin.delete_credential,
            ADMIN,
            summary="Delete a credential and end its tokens",
            tenant=False,
        ),
        Route(
            "POST",
            "/v1/tenants",
            admin.create_tenant,
            PROVIDER,
            body="required",
            summary="Create a tenant",
            tenant=False,
        ),
        Route("GET", "/v1/tenants", admin.list_tenants, PROVIDER, PAGE, summary="List tenants", tenant=False),
        Route("GET", "/v1/tenants/{tenant}", admin.read_tenant, PROVIDER, summary="Read a tenant", tenant=False),
        Route("POST", "/oauth/token", admin.token, None, body="form", summary="A token for client credentials"),
    ]
)


class NativeApi:
    """door: made at the first request that needs it, because it reads the stack's secret."""

    def __init__(self, world: World, guard: GuardSettings, door: Callable[[], Door]) -> None:
        self._world = world
        self._guard = guard
        self._door = door

    def handle(self, event: Mapping[str, Any], request_id: str) -> dict[str, Any]:
        """An event of API Gateway (payload 2.0) to its answer.

        Never raises: an unexpected fault is a 500 without detail.
        """
        clock = self._world.clock
        begun = clock.monotonic()
        route: Route | None = None
        caller: Caller | None = None
        try:
            request = read_request(event, request_id)
            route, caller, answer = self._answer(request)
        except SweephandError as refused:
            answer = of_error(refused, request_id)
        except Exception as unexpected:  # noqa: BLE001 - the last line of defence: the caller gets a body that says nothing
            from sweephand.telemetry import where  # noqa: PLC0415 - only where all else failed

            self._world.journal.error("request failed", error=type(unexpected).__name__, where=where(unexpected))
            answer = problem("INTERNAL", "the request could not be worked on", request_id)
        method = str(event["requestContext"]["http"]["method"]).upper()
        written = _written(answer, request_id, head=method == "HEAD")
        self._world.journal.info(
            "request",
            method=method[:10],
            route=route.path if route else None,
            status=written["statusCode"],
            tenant=caller.tenant if caller else None,
            took_ms=round((clock.monotonic() - begun) * 1000),
        )
        return written

    def _answer(self, request: Request) -> tuple[Route | None, Caller | None, Answer]:
        found = ROUTES.find(request.method, request.path)
        if isinstance(found, frozenset):
            self._identify(request)
            if not found:
                raise NotFound("no such path")
            refused = problem("METHOD_NOT_ALLOWED", "see the header Allow", request.request_id)
            return None, None, Answer(405, refused.body, {"Allow": ", ".join(sorted(found))}, refused.media_type)
        route, parameters = found
        caller = None
        acting_for = None
        try:
            if route.scope is not None:
                caller = self._identify(request)
                caller.require(route.scope)
                if route.tenant:
                    acting_for = caller.acting_for(request.headers.get(TENANT_HEADER))
            for name in request.query:
                if name not in route.query:
                    raise InvalidRequest(name[:100], "is not a parameter here", code="INVALID_QUERY")
            context = Context(self._world, self._guard, self._door, request, route, parameters, caller, acting_for)
            return route, caller, _fitting(context)
        except SweephandError as refused:
            return route, caller, of_error(refused, request.request_id)

    def _identify(self, request: Request) -> Caller:
        return self._door().identify(request.headers.get("authorization"), self._world.clock.now())


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


def _written(answer: Answer, request_id: str, *, head: bool = False) -> dict[str, Any]:
    """As API Gateway wants it. head: without the body that a GET would have."""
    if answer.too_large:
        answer = of_error(Unavailable("the answer is too large"), request_id)
    headers = {
        "content-type": answer.media_type,
        "x-request-id": request_id,
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        **{name.lower(): value for name, value in answer.headers.items()},
    }
    body = "" if head else answer.text
    return {"statusCode": answer.status, "headers": headers, "body": body, "isBase64Encoded": False}
