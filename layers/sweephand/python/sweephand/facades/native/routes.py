"""The native API: its operations, each with the scope that it needs."""

from __future__ import annotations

from sweephand.facades.http import Route, Routes
from sweephand.facades.native.context import KEYS_PATH
from sweephand.facades.native.jobs import job_list, jobs, schedules
from sweephand.facades.native.route_kinds import (
    ACTING,
    ADMIN,
    ERROR,
    ERRORS,
    OF_CREDENTIALS,
    OF_OPERATIONS,
    OF_TENANTS,
    ONCE,
    READ,
    RUN,
    WRITE,
    change,
    delete,
    error_verb,
    get,
    of_calendars,
    of_credentials,
    of_errors,
    of_flow_keys,
    of_operations,
    of_tenants,
    rare,
    verb,
)
from sweephand.facades.native.runs import runs
from sweephand.facades.native.service import admin

PAGE = ("limit", "cursor")
JOB = "/v1/jobs/{job}"
SCHEDULE = "/v1/jobs/{job}/schedules/{schedule}"
COLLECTION = "/v1/collections/{collection}"
SIGNING_KEYS = f"{COLLECTION}/signing-keys"
CALENDAR = "/v1/calendars/{calendar}"
OPERATION = "/v1/operations/{operation}"
SUBSCRIPTIONS = "/v1/tenants/{tenant}/subscriptions"
FLOW_KEY = "/v1/flow-keys/{flow_key}"
JOBS_QUERY = (*PAGE, "offset", "collection", "state", "tag", "resourceId", "name", "search", "include")
RUNS_QUERY = (
    *PAGE,
    *("jobId", "scheduleId", "collection", "tag", "resourceId", "from", "until", "state", "kind"),
)
HEALTH = "Version; with a scope, how far behind the sweep is"
DESCRIPTION = "This description, as OpenAPI 3.1"
EXPORT = "The same runs as a file, a thousand at a time: CSV or JSON lines"
EXPORT_FILE = "The same runs as one file, up to a million: the operation has a link to it"
ALL_RUNS = "List runs of a job, of a schedule or of many jobs; without these, what did not succeed or waits"
HTML = "text/html; charset=utf-8"
PREVIEW = "The next instants of a schedule that is not stored"

ROUTES = Routes(
    [
        get("/v1/health", admin.health, HEALTH, scope=None, gives="Health"),
        get(
            *("/v1/openapi.json", rare("document", "read"), DESCRIPTION),
            scope=None,
            gives="Document",
            headers=("If-None-Match", "Accept-Encoding"),
        ),
        change(
            *("POST", "/v1/jobs", jobs.create, "Create a job with its schedules"),
            takes="JobDraft",
            gives="Job",
            status=201,
            headers=ONCE,
        ),
        Route(
            *("DELETE", "/v1/jobs", rare("jobs.bulk", "delete_jobs"), WRITE),
            summary="Delete the jobs that filters let through; more than 100 as an operation",
            query=("collection", "state", "tag", "resourceId", "name", "search", "dryRun", "expectedCount"),
            gives="BulkDelete",
            begins="BulkDelete",
        ),
        get("/v1/jobs", job_list.list_all, "List jobs", query=JOBS_QUERY, gives="JobPage"),
        get(JOB, jobs.read, "Read a job", query=("include",), gives="Job"),
        change("PUT", JOB, jobs.put, "Replace a job", takes="JobReplacement", gives="Job"),
        change("PATCH", JOB, jobs.patch, "Change a job by a merge patch", takes="JobPatch", gives="Job"),
        delete(JOB, jobs.delete, "Delete a job and end its open runs"),
        verb(
            *(f"{JOB}/run", jobs.run, "Run a job now"),
            scope=RUN,
            takes="RunRequest",
            gives="RunStarted",
            status=202,
            headers=ONCE,
        ),
        verb(f"{JOB}/pause", jobs.pause, "Pause a job", takes="PauseRequest", gives="Job"),
        verb(f"{JOB}/resume", jobs.resume, "Resume a paused job", gives="Job"),
        verb(f"{JOB}/activate", jobs.activate, "Activate a job", gives="Job"),
        verb(f"{JOB}/deactivate", jobs.deactivate, "Deactivate a job", gives="Job"),
        get(f"{JOB}/next", jobs.next_run, "The next instant of a job", gives="NextRun"),
        get(
            *(f"{JOB}/occurrences", runs.occurrences, "What a job did and will do"),
            query=(*PAGE, "scheduleId", "from", "until"),
            gives="OccurrencePage",
        ),
        get(
            *(f"{JOB}/changes", rare("jobs.changes", "list_all"), "Who changed a job, when and what, newest first"),
            query=(*PAGE, "include"),
            gives="ChangePage",
        ),
        get(f"{JOB}/schedules", schedules.list_all, "List a job's schedules", query=PAGE, gives="SchedulePage"),
        change(
            *("POST", f"{JOB}/schedules", schedules.create, "Add a schedule"),
            takes="ScheduleDraft",
            gives="Schedule",
            status=201,
        ),
        get(SCHEDULE, schedules.read, "Read a schedule", gives="Schedule"),
        change("PUT", SCHEDULE, schedules.put, "Replace a schedule", takes="ScheduleReplacement", gives="Schedule"),
        change("PATCH", SCHEDULE, schedules.patch, "Change a schedule", takes="SchedulePatch", gives="Schedule"),
        delete(SCHEDULE, schedules.delete, "Delete a schedule"),
        verb(f"{SCHEDULE}/activate", schedules.activate, "Activate it", gives="Schedule"),
        verb(f"{SCHEDULE}/deactivate", schedules.deactivate, "Deactivate it", gives="Schedule"),
        get(
            *(f"{SCHEDULE}/explain", schedules.explain, "Why an instant is one of its occurrences or none"),
            query=("at",),
            gives="Explanation",
        ),
        change(
            *("POST", "/v1/schedules:preview", schedules.preview, PREVIEW),
            scope=READ,
            also=(WRITE,),
            takes="PreviewRequest",
            gives="Preview",
            headers=ACTING,
            tenant=False,
        ),
        get("/v1/runs", runs.list_all, ALL_RUNS, query=RUNS_QUERY, gives="RunPage"),
        get(
            *("/v1/runs:export", rare("runs.export", "export_runs"), EXPORT),
            query=("format", *RUNS_QUERY[1:]),
            gives="RunsFile",
            media=("text/csv; charset=utf-8", "application/x-ndjson"),
        ),
        verb(
            *("/v1/runs:export", rare("runs.export_files", "begin"), EXPORT_FILE),
            scope=READ,
            takes="ExportRequest",
            gives="Operation",
            status=202,
            headers=ONCE,
        ),
        get("/v1/runs/{run}", runs.read, "Read a run with its attempts", gives="Run"),
        change(
            *("PUT", "/v1/runs/{run}/result", runs.put_result, "Report a run's result"),
            scope=RUN,
            takes="Result",
            gives="Run",
            headers=(),
            run_token=True,
        ),
        verb("/v1/runs/{run}/cancel", runs.cancel, "Cancel an open run", scope=RUN, gives="Run", headers=()),
        verb(
            *("/v1/runs/{run}/rerun", runs.rerun, "Run again what has ended, as it is or with another payload"),
            scope=RUN,
            takes="RerunRequest",
            gives="RunStarted",
            status=202,
            headers=ONCE,
        ),
        change(
            *(
                "POST",
                "/v1/errors:redrive",
                rare("runs.redrives", "redrive_errors"),
                "Run failed runs again, so many a minute",
            ),
            scope=ERRORS,
            takes="RedriveRequest",
            gives="Redrive",
            status=202,
            headers=ONCE,
        ),
        get(
            *("/v1/errors", of_errors("list_all"), "What failed and nobody has seen to, in groups"),
            query=(*PAGE, "jobId", "collection", "tag", "resourceId", "from", "until", "state"),
            gives="ErrorGroupPage",
        ),
        get(ERROR, of_errors("read"), "Read a group of errors", gives="ErrorGroup"),
        get(
            *(f"{ERROR}/runs", of_errors("list_error_runs"), "The failed runs of a group, and what became of each"),
            query=PAGE,
            gives="ErrorRunPage",
        ),
        error_verb("notes", "add_note", "Write a note about a group of errors", "NoteDraft", status=201),
        error_verb("archive", "archive", "Nobody needs to see to it, until it fails again", "ArchiveRequest"),
        error_verb("restore", "restore", "What was archived is open again"),
        error_verb(
            *("runs/{failed_run}/archive", "archive_error_run", "Nobody needs to see to this run"),
            "ArchiveRequest",
            gives="ErrorRun",
        ),
        error_verb(
            *("runs/{failed_run}/restore", "restore_error_run", "A run that was archived alone is as its group"),
            gives="ErrorRun",
        ),
        get("/v1/error-redirects", of_errors("list_redirects"), "List redirects", query=PAGE, gives="RedirectPage"),
        change(
            *("PUT", "/v1/error-redirects/{job}", of_errors("put_redirect"), "Run its failed runs again elsewhere"),
            scope=ERRORS,
            takes="RedirectDraft",
            gives="Redirect",
            headers=(),
        ),
        delete(
            *("/v1/error-redirects/{job}", of_errors("delete_redirect"), "End a redirect"), scope=ERRORS, headers=()
        ),
        get(
            *("/v1/operations", of_operations("list_all"), "List long work, newest first"),
            query=(*PAGE, "state", "kind"),
            gives="OperationPage",
            **OF_OPERATIONS,
        ),
        get(OPERATION, of_operations("read"), "How far long work has come", gives="Operation", **OF_OPERATIONS),
        *(
            verb(f"{OPERATION}/{name}", of_operations(name), summary, gives="Operation", **OF_OPERATIONS)
            for name, summary in (
                ("pause", "Its next page waits"),
                ("resume", "It goes on where it stopped, also where it had failed"),
                ("cancel", "It ends; what is done stays done"),
            )
        ),
        change(
            *("POST", "/v1/collections", admin.create_collection, "Create a collection"),
            takes="CollectionDraft",
            gives="Collection",
            status=201,
            headers=(),
        ),
        get("/v1/collections", admin.list_collections, "List collections", query=PAGE, gives="CollectionPage"),
        get(COLLECTION, admin.read_collection, "Read a collection", gives="Collection"),
        change(
            *("PUT", COLLECTION, admin.put_collection, "Replace a collection"),
            takes="CollectionReplacement",
            gives="Collection",
        ),
        change(
            *("PATCH", COLLECTION, admin.patch_collection, "Change a collection"),
            takes="CollectionPatch",
            gives="Collection",
        ),
        delete(COLLECTION, admin.delete_collection, "Delete an empty collection"),
        verb(f"{COLLECTION}/enable", admin.enable_collection, "Enable it", gives="Collection"),
        verb(f"{COLLECTION}/disable", admin.disable_collection, "Disable it", gives="Collection"),
        verb(
            *(
                f"{COLLECTION}/signing-keys",
                rare("tenants.signing", "create_signing_key"),
                "Create a key that signs its jobs' calls",
            ),
            scope=ADMIN,
            gives="IssuedSigningKey",
            status=201,
            headers=(),
        ),
        get(
            *(
                f"{COLLECTION}/signing-keys",
                rare("tenants.signing", "list_signing_keys"),
                "List the keys that sign its jobs' calls",
            ),
            gives="SigningKeyPage",
        ),
        delete(
            *(f"{SIGNING_KEYS}/{{key}}", rare("tenants.signing", "delete_signing_key"), "Delete a signing key"),
            scope=ADMIN,
            headers=(),
        ),
        change(
            *("POST", "/v1/calendars", of_calendars("create"), "Create a calendar"),
            takes="CalendarDraft",
            gives="Calendar",
            status=201,
            headers=(),
        ),
        get("/v1/calendars", of_calendars("list_all"), "List calendars", query=PAGE, gives="CalendarPage"),
        get(CALENDAR, of_calendars("read"), "Read a calendar", gives="Calendar"),
        change(
            *("PUT", CALENDAR, of_calendars("put"), "Replace a calendar; the schedules that name it follow"),
            takes="CalendarReplacement",
            gives="Calendar",
        ),
        delete(CALENDAR, of_calendars("delete"), "Delete a calendar that no schedule names"),
        get(
            *(f"{CALENDAR}/versions", of_calendars("list_versions"), "The versions of a calendar, newest first"),
            query=PAGE,
            gives="CalendarVersionPage",
        ),
        get(
            f"{CALENDAR}/versions/{{version}}",
            of_calendars("read_version"),
            "Read a version of a calendar",
            gives="CalendarVersion",
        ),
        change(
            *("POST", "/v1/flow-keys", of_flow_keys("create"), "Create a flow key"),
            takes="FlowKeyDraft",
            gives="FlowKey",
            status=201,
            headers=(),
        ),
        get("/v1/flow-keys", of_flow_keys("list_all"), "List flow keys", query=PAGE, gives="FlowKeyPage"),
        get(FLOW_KEY, of_flow_keys("read"), "Read a flow key, and how things stand under it", gives="FlowKey"),
        change("PUT", FLOW_KEY, of_flow_keys("put"), "Replace it", takes="FlowKeyReplacement", gives="FlowKey"),
        change("PATCH", FLOW_KEY, of_flow_keys("patch"), "Change it", takes="FlowKeyPatch", gives="FlowKey"),
        delete(FLOW_KEY, of_flow_keys("delete"), "Delete a flow key that nothing names"),
        verb(*(f"{FLOW_KEY}/pause", of_flow_keys("pause"), "Let no call begin"), takes="FlowKeyPause", gives="FlowKey"),
        verb(f"{FLOW_KEY}/resume", of_flow_keys("resume"), "Let calls begin again", gives="FlowKey"),
        change(
            *("POST", "/v1/credentials", of_credentials("create"), "Create a credential"),
            takes="CredentialDraft",
            gives="IssuedCredential",
            status=201,
            **OF_CREDENTIALS,
        ),
        get(
            *("/v1/credentials", of_credentials("list_all"), "List credentials"),
            query=PAGE,
            gives="CredentialPage",
            **OF_CREDENTIALS,
        ),
        verb(
            *("/v1/credentials/{credential}/rotate", of_credentials("rotate"), "Give a credential another secret"),
            takes="CredentialRotation",
            gives="IssuedCredential",
            **OF_CREDENTIALS,
        ),
        delete(
            "/v1/credentials/{credential}",
            of_credentials("delete"),
            "Delete a credential and end its tokens",
            **OF_CREDENTIALS,
        ),
        change(
            *("POST", "/v1/tenants", of_tenants("create"), "Create a tenant"),
            takes="TenantDraft",
            gives="Tenant",
            status=201,
            **OF_TENANTS,
        ),
        get("/v1/tenants", of_tenants("list_all"), "List tenants", query=PAGE, gives="TenantPage", **OF_TENANTS),
        get("/v1/tenants/{tenant}", of_tenants("read"), "Read a tenant", gives="Tenant", **OF_TENANTS),
        change(
            *("PATCH", "/v1/tenants/{tenant}", of_tenants("patch"), "Change a tenant: its description, its quota"),
            takes="TenantPatch",
            gives="Tenant",
            **OF_TENANTS,
        ),
        Route(
            *("DELETE", "/v1/tenants/{tenant}", of_tenants("delete")),
            summary="Delete a tenant with all that it has",
            gives="Operation",
            status=202,
            **OF_TENANTS,
        ),
        get(
            *(SUBSCRIPTIONS, of_tenants("list_subscriptions"), "List what a tenant is subscribed to"),
            gives="SubscriptionPage",
            **OF_TENANTS,
        ),
        Route(
            *("PUT", f"{SUBSCRIPTIONS}/{{application}}", of_tenants("subscribe")),
            summary="Subscribe a tenant to an application; a new tenant comes into being",
            body="optional",
            takes="Nothing",
            gives="Subscription",
            **OF_TENANTS,
        ),
        delete(
            *(f"{SUBSCRIPTIONS}/{{application}}", of_tenants("unsubscribe")),
            "End a subscription; with the last one the tenant is deleted",
            begins="Operation",
            **OF_TENANTS,
        ),
        verb("/v1/tenants/{tenant}/enable", of_tenants("enable"), "Enable a tenant", gives="Tenant", **OF_TENANTS),
        verb("/v1/tenants/{tenant}/disable", of_tenants("disable"), "Disable a tenant", gives="Tenant", **OF_TENANTS),
        get(
            *(KEYS_PATH, rare("service.well_known", "read_keys"), "The keys that verify this stack's own tokens"),
            scope=None,
            gives="KeySet",
        ),
        get(
            *(
                "/.well-known/openid-configuration",
                rare("service.well_known", "read_configuration"),
                "Where these keys are",
            ),
            scope=None,
            gives="IssuerConfiguration",
        ),
        get(
            *("/problems", rare("service.problem_pages", "list_problems"), "The problems that answers name"),
            scope=None,
            gives="ProblemPages",
            media=("application/json", HTML),
        ),
        get(
            *(
                "/problems/{problem}",
                rare("service.problem_pages", "read_problem"),
                "The cause and the cure of a problem",
            ),
            scope=None,
            gives="ProblemPage",
            media=("application/json", HTML),
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
