"""The native API: its operations, each with the scope that it needs, and the one way in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sweephand.errors import InvalidRequest, NotFound, SweephandError, Unavailable
from sweephand.facades.http import Answer, Operation, Request, Route, Routes, read_request
from sweephand.facades.native import admin, changes, cursors, document, job_list, jobs, runs, schedules
from sweephand.facades.native.context import TENANT_HEADER, Context
from sweephand.facades.native.problems import of_error, problem
from sweephand.flow import tenancy
from sweephand.flow.world import World
from sweephand.security.caller import Caller, Door
from sweephand.security.guard import GuardSettings

READ, WRITE, RUN = "jobs:read", "jobs:write", "runs:write"
ADMIN, PROVIDER = "admin", "provider:admin"
PAGE = ("limit", "cursor")
MATCH, ONCE, ACTING = ("If-Match",), ("Idempotency-Key",), ("Sweephand-Tenant",)
JOB = "/v1/jobs/{job}"
SCHEDULE = "/v1/jobs/{job}/schedules/{schedule}"
COLLECTION = "/v1/collections/{collection}"
SMALLER_PAGE = 4
"""A page too large for an answer is read again with a limit of so many times less."""


def _get(path: str, operation: Operation, summary: str, *, gives: str, scope: str | None = READ, **more: Any) -> Route:
    return Route("GET", path, operation, scope, summary=summary, gives=gives, **more)


def _change(
    method: str, path: str, operation: Operation, summary: str, *, takes: str, gives: str, **more: Any
) -> Route:
    """It needs a body, and may be for one revision only."""
    more = {"scope": WRITE, "headers": MATCH, **more}
    return Route(method, path, operation, body="required", summary=summary, takes=takes, gives=gives, **more)


def _verb(path: str, operation: Operation, summary: str, *, gives: str, takes: str = "Nothing", **more: Any) -> Route:
    more = {"scope": WRITE, "headers": MATCH, **more}
    return Route("POST", path, operation, body="optional", summary=summary, takes=takes, gives=gives, **more)


def _delete(path: str, operation: Operation, summary: str, **more: Any) -> Route:
    more = {"scope": WRITE, "headers": MATCH, **more}
    return Route("DELETE", path, operation, summary=summary, status=204, **more)


OF_TENANTS: Mapping[str, Any] = {"scope": PROVIDER, "tenant": False, "headers": ()}
OF_CREDENTIALS: Mapping[str, Any] = {"scope": ADMIN, "tenant": False, "headers": ("Sweephand-Tenant",)}
JOBS_QUERY = (*PAGE, "offset", "collection", "state", "tag", "resourceId", "name", "search", "include")
RUNS_QUERY = (*PAGE, "jobId", "scheduleId", "state", "kind")
HEALTH = "Version; with a scope, how far behind the sweep is"
DESCRIPTION = "This description, as OpenAPI 3.1"
ALL_RUNS = "List runs; without a job or schedule, what did not succeed or waits"
PREVIEW = "The next instants of a schedule that is not stored"

ROUTES = Routes(
    [
        _get("/v1/health", admin.health, HEALTH, scope=None, gives="Health"),
        _get("/v1/openapi.json", document.read, DESCRIPTION, scope=None, gives="Document", headers=("If-None-Match",)),
        _change(
            *("POST", "/v1/jobs", jobs.create, "Create a job with its schedules"),
            takes="JobDraft",
            gives="Job",
            status=201,
            headers=ONCE,
        ),
        _get("/v1/jobs", job_list.list_all, "List jobs", query=JOBS_QUERY, gives="JobPage"),
        _get(JOB, jobs.read, "Read a job", query=("include",), gives="Job"),
        _change("PUT", JOB, jobs.put, "Replace a job", takes="JobReplacement", gives="Job"),
        _change("PATCH", JOB, jobs.patch, "Change a job by a merge patch", takes="JobPatch", gives="Job"),
        _delete(JOB, jobs.delete, "Delete a job and end its open runs"),
        _verb(
            *(f"{JOB}/run", jobs.run, "Run a job now"),
            scope=RUN,
            takes="RunRequest",
            gives="RunStarted",
            status=202,
            headers=ONCE,
        ),
        _verb(f"{JOB}/pause", jobs.pause, "Pause a job", takes="PauseRequest", gives="Job"),
        _verb(f"{JOB}/resume", jobs.resume, "Resume a paused job", gives="Job"),
        _verb(f"{JOB}/activate", jobs.activate, "Activate a job", gives="Job"),
        _verb(f"{JOB}/deactivate", jobs.deactivate, "Deactivate a job", gives="Job"),
        _get(f"{JOB}/next", jobs.next_run, "The next instant of a job", gives="NextRun"),
        _get(
            *(f"{JOB}/occurrences", runs.occurrences, "What a job did and will do"),
            query=(*PAGE, "scheduleId", "from", "until"),
            gives="OccurrencePage",
        ),
        _get(
            *(f"{JOB}/changes", changes.list_all, "Who changed a job, when and what, newest first"),
            query=(*PAGE, "include"),
            gives="ChangePage",
        ),
        _get(f"{JOB}/schedules", schedules.list_all, "List a job's schedules", query=PAGE, gives="SchedulePage"),
        _change(
            *("POST", f"{JOB}/schedules", schedules.create, "Add a schedule"),
            takes="ScheduleDraft",
            gives="Schedule",
            status=201,
        ),
        _get(SCHEDULE, schedules.read, "Read a schedule", gives="Schedule"),
        _change("PUT", SCHEDULE, schedules.put, "Replace a schedule", takes="ScheduleReplacement", gives="Schedule"),
        _change("PATCH", SCHEDULE, schedules.patch, "Change a schedule", takes="SchedulePatch", gives="Schedule"),
        _delete(SCHEDULE, schedules.delete, "Delete a schedule"),
        _verb(f"{SCHEDULE}/activate", schedules.activate, "Activate it", gives="Schedule"),
        _verb(f"{SCHEDULE}/deactivate", schedules.deactivate, "Deactivate it", gives="Schedule"),
        _change(
            *("POST", "/v1/schedules:preview", runs.preview_schedule, PREVIEW),
            scope=READ,
            also=WRITE,
            takes="PreviewRequest",
            gives="Preview",
            headers=(),
            tenant=False,
        ),
        _get("/v1/runs", runs.list_all, ALL_RUNS, query=RUNS_QUERY, gives="RunPage"),
        _get("/v1/runs/{run}", runs.read, "Read a run with its attempts", gives="Run"),
        _change(
            *("PUT", "/v1/runs/{run}/result", runs.put_result, "Report a run's result"),
            scope=RUN,
            takes="Result",
            gives="Run",
            headers=(),
        ),
        _verb("/v1/runs/{run}/cancel", runs.cancel, "Cancel an open run", scope=RUN, gives="Run", headers=()),
        _change(
            *("POST", "/v1/collections", admin.create_collection, "Create a collection"),
            takes="CollectionDraft",
            gives="Collection",
            status=201,
            headers=(),
        ),
        _get("/v1/collections", admin.list_collections, "List collections", query=PAGE, gives="CollectionPage"),
        _get(COLLECTION, admin.read_collection, "Read a collection", gives="Collection"),
        _change(
            *("PUT", COLLECTION, admin.put_collection, "Replace a collection"),
            takes="CollectionReplacement",
            gives="Collection",
        ),
        _change(
            *("PATCH", COLLECTION, admin.patch_collection, "Change a collection"),
            takes="CollectionPatch",
            gives="Collection",
        ),
        _delete(COLLECTION, admin.delete_collection, "Delete an empty collection"),
        _verb(f"{COLLECTION}/enable", admin.enable_collection, "Enable it", gives="Collection"),
        _verb(f"{COLLECTION}/disable", admin.disable_collection, "Disable it", gives="Collection"),
        _change(
            *("POST", "/v1/credentials", admin.create_credential, "Create a credential"),
            takes="CredentialDraft",
            gives="IssuedCredential",
            status=201,
            **OF_CREDENTIALS,
        ),
        _get(
            *("/v1/credentials", admin.list_credentials, "List credentials"),
            query=PAGE,
            gives="CredentialPage",
            **OF_CREDENTIALS,
        ),
        _delete(
            "/v1/credentials/{credential}",
            admin.delete_credential,
            "Delete a credential and end its tokens",
            **OF_CREDENTIALS,
        ),
        _change(
            *("POST", "/v1/tenants", admin.create_tenant, "Create a tenant"),
            takes="TenantDraft",
            gives="Tenant",
            status=201,
            **OF_TENANTS,
        ),
        _get("/v1/tenants", admin.list_tenants, "List tenants", query=PAGE, gives="TenantPage", **OF_TENANTS),
        _get("/v1/tenants/{tenant}", admin.read_tenant, "Read a tenant", gives="Tenant", **OF_TENANTS),
        _verb("/v1/tenants/{tenant}/enable", admin.enable_tenant, "Enable a tenant", gives="Tenant", **OF_TENANTS),
        _verb("/v1/tenants/{tenant}/disable", admin.disable_tenant, "Disable a tenant", gives="Tenant", **OF_TENANTS),
        Route(
            *("POST", "/oauth/token", admin.token, None),
            body="form",
            summary="A token for client credentials",
            takes="TokenRequest",
            gives="Token",
        ),
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
                if caller.tenant is not None:
                    tenancy.require_active(self._world, caller.tenant)
                if not (route.also and caller.allows(route.also)):
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
