"""The native API: its operations, each with the scope that it needs, and the one way in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sweephand.errors import InvalidRequest, SweephandError
from sweephand.facades.api import Api, Visit
from sweephand.facades.http import Answer, Operation, Route, Routes
from sweephand.facades.native import (
    admin,
    changes,
    cursors,
    document,
    job_list,
    jobs,
    runs,
    schedules,
    well_known,
)
from sweephand.facades.native.context import TENANT_HEADER, Context
from sweephand.facades.native.problems import of_error, problem
from sweephand.facades.native.well_known import KEYS_PATH

READ, WRITE, RUN, ERRORS = "jobs:read", "jobs:write", "runs:write", "errors:edit"
ADMIN, PROVIDER = "admin", "provider:admin"
PAGE = ("limit", "cursor")
MATCH, ONCE, ACTING = ("If-Match",), ("Idempotency-Key",), ("Sweephand-Tenant",)
JOB = "/v1/jobs/{job}"
SCHEDULE = "/v1/jobs/{job}/schedules/{schedule}"
COLLECTION = "/v1/collections/{collection}"
SIGNING_KEYS = f"{COLLECTION}/signing-keys"
CALENDAR = "/v1/calendars/{calendar}"
OPERATION = "/v1/operations/{operation}"
SUBSCRIPTIONS = "/v1/tenants/{tenant}/subscriptions"
ERROR = "/v1/errors/{error}"
FLOW_KEY = "/v1/flow-keys/{flow_key}"
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


def _rare(module: str, name: str) -> Operation:
    """Few requests are about calendars, keys, tenants, errors, files or long work: these are loaded with the first."""

    def operation(ctx: Context) -> Answer:
        from importlib import import_module  # noqa: PLC0415

        work: Operation = getattr(import_module(operation.__module__), name)
        return work(ctx)

    operation.__name__, operation.__module__ = name, f"sweephand.facades.native.{module}"
    return operation


def _of_calendars(name: str) -> Operation:
    return _rare("calendars", name)


def _of_tenants(name: str) -> Operation:
    return _rare("tenants", name)


def _of_operations(name: str) -> Operation:
    return _rare("operations", name)


def _of_errors(name: str) -> Operation:
    return _rare("errors", name)


def _error_verb(path: str, name: str, summary: str, takes: str = "Nothing", **more: Any) -> Route:
    more = {"scope": ERRORS, "headers": (), "gives": "ErrorGroup", **more}
    return _verb(f"{ERROR}/{path}", _of_errors(name), summary, takes=takes, **more)


def _of_flow_keys(name: str) -> Operation:
    return _rare("flow_keys", name)


OF_TENANTS: Mapping[str, Any] = {"scope": PROVIDER, "tenant": False, "headers": ()}
BEGINS = (ERRORS, WRITE, PROVIDER)
"""Who has one of these may begin some long work. The operation itself asks for the scope of its own kind."""
OF_OPERATIONS: Mapping[str, Any] = {"scope": READ, "also": BEGINS, "tenant": False, "headers": ("Sweephand-Tenant",)}
OF_CREDENTIALS: Mapping[str, Any] = {"scope": ADMIN, "tenant": False, "headers": ("Sweephand-Tenant",)}
JOBS_QUERY = (*PAGE, "offset", "collection", "state", "tag", "resourceId", "name", "search", "include")
RUNS_QUERY = (*PAGE, "jobId", "scheduleId", "state", "kind")
HEALTH = "Version; with a scope, how far behind the sweep is"
DESCRIPTION = "This description, as OpenAPI 3.1"
EXPORT = "The same runs as a file, a thousand at a time: CSV or JSON lines"
EXPORT_FILE = "The same runs as one file, up to a million: the operation has a link to it"
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
        Route(
            *("DELETE", "/v1/jobs", _rare("bulk", "delete_jobs"), WRITE),
            summary="Delete the jobs that filters let through; more than 100 as an operation",
            query=("collection", "state", "tag", "resourceId", "name", "search", "dryRun", "expectedCount"),
            gives="BulkDelete",
            begins="BulkDelete",
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
        _get(
            *(f"{SCHEDULE}/explain", schedules.explain, "Why an instant is one of its occurrences or none"),
            query=("at",),
            gives="Explanation",
        ),
        _change(
            *("POST", "/v1/schedules:preview", schedules.preview, PREVIEW),
            scope=READ,
            also=(WRITE,),
            takes="PreviewRequest",
            gives="Preview",
            headers=ACTING,
            tenant=False,
        ),
        _get("/v1/runs", runs.list_all, ALL_RUNS, query=RUNS_QUERY, gives="RunPage"),
        _get(
            *("/v1/runs:export", _rare("export", "export_runs"), EXPORT),
            query=("format", *RUNS_QUERY[1:]),
            gives="RunsFile",
            media=("text/csv; charset=utf-8", "application/x-ndjson"),
        ),
        _verb(
            *("/v1/runs:export", _rare("export_files", "begin"), EXPORT_FILE),
            scope=READ,
            takes="ExportRequest",
            gives="Operation",
            status=202,
            headers=ONCE,
        ),
        _get("/v1/runs/{run}", runs.read, "Read a run with its attempts", gives="Run"),
        _change(
            *("PUT", "/v1/runs/{run}/result", runs.put_result, "Report a run's result"),
            scope=RUN,
            takes="Result",
            gives="Run",
            headers=(),
            run_token=True,
        ),
        _verb("/v1/runs/{run}/cancel", runs.cancel, "Cancel an open run", scope=RUN, gives="Run", headers=()),
        _verb(
            *("/v1/runs/{run}/rerun", runs.rerun, "Run again what has ended, as it is or with another payload"),
            scope=RUN,
            takes="RerunRequest",
            gives="RunStarted",
            status=202,
            headers=ONCE,
        ),
        _change(
            *(
                "POST",
                "/v1/errors:redrive",
                _rare("redrives", "redrive_errors"),
                "Run failed runs again, so many a minute",
            ),
            scope=ERRORS,
            takes="RedriveRequest",
            gives="Redrive",
            status=202,
            headers=ONCE,
        ),
        _get(
            *("/v1/errors", _of_errors("list_all"), "What failed and nobody has seen to, in groups"),
            query=(*PAGE, "jobId", "state"),
            gives="ErrorGroupPage",
        ),
        _get(ERROR, _of_errors("read"), "Read a group of errors", gives="ErrorGroup"),
        _get(
            *(f"{ERROR}/runs", _of_errors("list_error_runs"), "The failed runs of a group, and what became of each"),
            query=PAGE,
            gives="ErrorRunPage",
        ),
        _error_verb("notes", "add_note", "Write a note about a group of errors", "NoteDraft", status=201),
        _error_verb("archive", "archive", "Nobody needs to see to it, until it fails again", "ArchiveRequest"),
        _error_verb("restore", "restore", "What was archived is open again"),
        _error_verb(
            *("runs/{failed_run}/archive", "archive_error_run", "Nobody needs to see to this run"),
            "ArchiveRequest",
            gives="ErrorRun",
        ),
        _error_verb(
            *("runs/{failed_run}/restore", "restore_error_run", "A run that was archived alone is as its group"),
            gives="ErrorRun",
        ),
        _get("/v1/error-redirects", _of_errors("list_redirects"), "List redirects", query=PAGE, gives="RedirectPage"),
        _change(
            *("PUT", "/v1/error-redirects/{job}", _of_errors("put_redirect"), "Run its failed runs again elsewhere"),
            scope=ERRORS,
            takes="RedirectDraft",
            gives="Redirect",
            headers=(),
        ),
        _delete(
            *("/v1/error-redirects/{job}", _of_errors("delete_redirect"), "End a redirect"), scope=ERRORS, headers=()
        ),
        _get(
            *("/v1/operations", _of_operations("list_all"), "List long work, newest first"),
            query=(*PAGE, "state", "kind"),
            gives="OperationPage",
            **OF_OPERATIONS,
        ),
        _get(OPERATION, _of_operations("read"), "How far long work has come", gives="Operation", **OF_OPERATIONS),
        *(
            _verb(f"{OPERATION}/{name}", _of_operations(name), summary, gives="Operation", **OF_OPERATIONS)
            for name, summary in (
                ("pause", "Its next page waits"),
                ("resume", "It goes on where it stopped, also where it had failed"),
                ("cancel", "It ends; what is done stays done"),
            )
        ),
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
        _verb(
            *(
                f"{COLLECTION}/signing-keys",
                _rare("signing", "create_signing_key"),
                "Create a key that signs its jobs' calls",
            ),
            scope=ADMIN,
            gives="IssuedSigningKey",
            status=201,
            headers=(),
        ),
        _get(
            *(
                f"{COLLECTION}/signing-keys",
                _rare("signing", "list_signing_keys"),
                "List the keys that sign its jobs' calls",
            ),
            gives="SigningKeyPage",
        ),
        _delete(
            *(f"{SIGNING_KEYS}/{{key}}", _rare("signing", "delete_signing_key"), "Delete a signing key"),
            scope=ADMIN,
            headers=(),
        ),
        _change(
            *("POST", "/v1/calendars", _of_calendars("create"), "Create a calendar"),
            takes="CalendarDraft",
            gives="Calendar",
            status=201,
            headers=(),
        ),
        _get("/v1/calendars", _of_calendars("list_all"), "List calendars", query=PAGE, gives="CalendarPage"),
        _get(CALENDAR, _of_calendars("read"), "Read a calendar", gives="Calendar"),
        _change(
            *("PUT", CALENDAR, _of_calendars("put"), "Replace a calendar; the schedules that name it follow"),
            takes="CalendarReplacement",
            gives="Calendar",
        ),
        _delete(CALENDAR, _of_calendars("delete"), "Delete a calendar that no schedule names"),
        _get(
            *(f"{CALENDAR}/versions", _of_calendars("list_versions"), "The versions of a calendar, newest first"),
            query=PAGE,
            gives="CalendarVersionPage",
        ),
        _get(
            f"{CALENDAR}/versions/{{version}}",
            _of_calendars("read_version"),
            "Read a version of a calendar",
            gives="CalendarVersion",
        ),
        _change(
            *("POST", "/v1/flow-keys", _of_flow_keys("create"), "Create a flow key"),
            takes="FlowKeyDraft",
            gives="FlowKey",
            status=201,
            headers=(),
        ),
        _get("/v1/flow-keys", _of_flow_keys("list_all"), "List flow keys", query=PAGE, gives="FlowKeyPage"),
        _get(FLOW_KEY, _of_flow_keys("read"), "Read a flow key, and how things stand under it", gives="FlowKey"),
        _change("PUT", FLOW_KEY, _of_flow_keys("put"), "Replace it", takes="FlowKeyReplacement", gives="FlowKey"),
        _change("PATCH", FLOW_KEY, _of_flow_keys("patch"), "Change it", takes="FlowKeyPatch", gives="FlowKey"),
        _delete(FLOW_KEY, _of_flow_keys("delete"), "Delete a flow key that nothing names"),
        _verb(
            *(f"{FLOW_KEY}/pause", _of_flow_keys("pause"), "Let no call begin"), takes="FlowKeyPause", gives="FlowKey"
        ),
        _verb(f"{FLOW_KEY}/resume", _of_flow_keys("resume"), "Let calls begin again", gives="FlowKey"),
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
            *("POST", "/v1/tenants", _of_tenants("create"), "Create a tenant"),
            takes="TenantDraft",
            gives="Tenant",
            status=201,
            **OF_TENANTS,
        ),
        _get("/v1/tenants", _of_tenants("list_all"), "List tenants", query=PAGE, gives="TenantPage", **OF_TENANTS),
        _get("/v1/tenants/{tenant}", _of_tenants("read"), "Read a tenant", gives="Tenant", **OF_TENANTS),
        _change(
            *("PATCH", "/v1/tenants/{tenant}", _of_tenants("patch"), "Change a tenant: its description, its quota"),
            takes="TenantPatch",
            gives="Tenant",
            **OF_TENANTS,
        ),
        Route(
            *("DELETE", "/v1/tenants/{tenant}", _of_tenants("delete")),
            summary="Delete a tenant with all that it has",
            gives="Operation",
            status=202,
            **OF_TENANTS,
        ),
        _get(
            *(SUBSCRIPTIONS, _of_tenants("list_subscriptions"), "List what a tenant is subscribed to"),
            gives="SubscriptionPage",
            **OF_TENANTS,
        ),
        Route(
            *("PUT", f"{SUBSCRIPTIONS}/{{application}}", _of_tenants("subscribe")),
            summary="Subscribe a tenant to an application; a new tenant comes into being",
            body="optional",
            takes="Nothing",
            gives="Subscription",
            **OF_TENANTS,
        ),
        _delete(
            *(f"{SUBSCRIPTIONS}/{{application}}", _of_tenants("unsubscribe")),
            "End a subscription; with the last one the tenant is deleted",
            begins="Operation",
            **OF_TENANTS,
        ),
        _verb("/v1/tenants/{tenant}/enable", _of_tenants("enable"), "Enable a tenant", gives="Tenant", **OF_TENANTS),
        _verb("/v1/tenants/{tenant}/disable", _of_tenants("disable"), "Disable a tenant", gives="Tenant", **OF_TENANTS),
        _get(
            *(KEYS_PATH, well_known.read_keys, "The keys that verify this stack's own tokens"),
            scope=None,
            gives="KeySet",
        ),
        _get(
            *("/.well-known/openid-configuration", well_known.read_configuration, "Where these keys are"),
            scope=None,
            gives="IssuerConfiguration",
        ),
        Route(
            *("POST", "/oauth/token", admin.token, None),
            body="form",
            summary="A token for client credentials",
            takes="TokenRequest",
            gives="Token",
        ),
    ]
)


class NativeApi(Api):
    """`/v1`. See Api."""

    routes = ROUTES

    def operate(self, visit: Visit) -> Answer:
        acting_for = None
        if visit.caller is not None and visit.route.tenant:
            acting_for = visit.caller.acting_for(visit.request.headers.get(TENANT_HEADER))
        for name in visit.request.query:
            if name not in visit.route.query:
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
