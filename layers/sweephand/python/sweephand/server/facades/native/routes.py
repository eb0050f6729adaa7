"""The routes of the native API: its operations with their scopes and schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from sweephand.base.records import dataclass
from sweephand.server.facades.http import Answer, Operation, Route, Routes
from sweephand.server.facades.native.context import KEYS_PATH, REASON_HEADER, Context
from sweephand.server.facades.native.jobs import job_list, jobs, schedules
from sweephand.server.facades.native.runs import runs
from sweephand.server.facades.native.service import admin

READ, WRITE, RUN, ERRORS = "jobs:read", "jobs:write", "runs:write", "errors:edit"
SEND = "messages:write"
ADMIN, PROVIDER = "admin", "provider:admin"
BEGINS = (ERRORS, WRITE, PROVIDER)
"""Any of these scopes gives access to operations. An operation then requires the scope of its own kind."""
MATCH, ONCE, ACTING = ("If-Match",), ("Idempotency-Key",), ("Sweephand-Tenant",)
LOGGED, REASONED = (*MATCH, REASON_HEADER), (*ONCE, REASON_HEADER)
"""The headers of changes whose reason is kept."""
PAGE = ("limit", "cursor")
OF_PLANS = ("plan", "token", "allowDeletes", "onDrift")
FILTERS = ("collection", "state", "tag", "resourceId", "name", "search")
SPAN = ("collection", "tag", "resourceId", "from", "until", "state")
RUNS_QUERY = ("jobId", "scheduleId", *SPAN, "kind")
JSON, HTML = "application/json", "text/html; charset=utf-8"
FILES = ("text/csv; charset=utf-8", "application/x-ndjson")
ALL_RUNS = "List runs of a job, a schedule or several jobs; without a filter, those that did not succeed or that wait"
EXPORT_FILE = "Export up to a million runs to one file; the operation has the link"


def on_demand(module: str, name: str) -> Operation:
    """Returns an operation that is imported on its first request, because few are about calendars or tenants."""

    def operation(ctx: Context) -> Answer:
        from importlib import import_module  # noqa: PLC0415

        work: Operation = getattr(import_module(operation.__module__), name)
        return work(ctx)

    operation.__name__, operation.__module__ = name, f"sweephand.server.facades.native.{module}"
    return operation


@dataclass(frozen=True)
class Branch:
    """The routes below a path. module: of operations that are given by name, which are rare.

    always: the settings of all routes. changing: the settings of routes that do more than read.
    """

    path: str
    module: str = ""
    always: Mapping[str, Any] = field(default_factory=dict)
    changing: Mapping[str, Any] = field(default_factory=lambda: {"scope": WRITE, "headers": MATCH})

    def get(self, path: str, operation: Operation | str, summary: str, gives: str, **more: Any) -> Route:
        return self._route("GET", path, operation, summary, {"scope": READ, **self.always, "gives": gives, **more})

    def post(self, path: str, operation: Operation | str, summary: str, takes: str, gives: str, **more: Any) -> Route:
        """Returns the route of a request with a body, which creates something unless `more` says otherwise."""
        return self._change("POST", path, operation, summary, takes, gives, {"status": 201, **more})

    def put(self, path: str, operation: Operation | str, summary: str, takes: str, gives: str, **more: Any) -> Route:
        return self._change("PUT", path, operation, summary, takes, gives, more)

    def patch(self, path: str, operation: Operation | str, summary: str, takes: str, gives: str) -> Route:
        return self._change("PATCH", path, operation, summary, takes, gives, {})

    def verb(
        self, path: str, operation: Operation | str, summary: str, gives: str, takes: str = "Nothing", **more: Any
    ) -> Route:
        return self._change("POST", path, operation, summary, takes, gives, {"body": "optional", **more})

    def delete(self, path: str, operation: Operation | str, summary: str, **more: Any) -> Route:
        more = {**self.changing, **self.always, "status": 204, **more}
        return self._route("DELETE", path, operation, summary, more)

    def _change(
        self, method: str, path: str, operation: Operation | str, summary: str, takes: str, gives: str, more: Any
    ) -> Route:
        more = {**self.changing, **self.always, "body": "required", "takes": takes, "gives": gives, **more}
        return self._route(method, path, operation, summary, more)

    def _route(
        self, method: str, path: str, operation: Operation | str, summary: str, more: Mapping[str, Any]
    ) -> Route:
        work = on_demand(self.module, operation) if isinstance(operation, str) else operation
        return Route(method, self.path + path, work, summary=summary, **more)


ONE_RUN, ARCHIVE = "/runs/{failed_run}", "ArchiveRequest"
OPEN = {"scope": None}
BY_ERRORS = {"scope": ERRORS, "headers": ()}
OF_KEYS = {"scope": ADMIN, "headers": ()}
SERVICE = Branch("", always=OPEN)
JOBS = Branch("/v1/jobs", "jobs.bulk")
JOB = Branch("/v1/jobs/{job}", "jobs.changes", changing={"scope": WRITE, "headers": LOGGED})
SCHEDULE = replace(JOB, path="/v1/jobs/{job}/schedules/{schedule}", module="overview.explained")
OVERVIEW = Branch("/v1", "overview.timeline")
JOB_SETS = Branch("/v1/job-sets", "jobs.job_sets", changing={"scope": WRITE, "headers": (REASON_HEADER,)})
EXPORTS = Branch("/v1/runs:export")
RUNS = Branch("/v1/runs", changing={"scope": RUN, "headers": ()})
ERROR_GROUPS = Branch("/v1/errors", "runs.errors", changing=BY_ERRORS)
ERROR = Branch("/v1/errors/{error}", "runs.errors", changing=BY_ERRORS)
REDIRECTS = Branch("/v1/error-redirects", "runs.errors", changing=BY_ERRORS)
OPERATIONS = Branch(
    *("/v1/operations", "operations.operations"),
    {"scope": READ, "also": BEGINS, "tenant": False, "headers": ACTING},
)
COLLECTIONS = Branch("/v1/collections")
COLLECTION = Branch("/v1/collections/{collection}")
SIGNING_KEYS = Branch("/v1/collections/{collection}/signing-keys", "tenants.signing", changing=OF_KEYS)
CALENDARS = Branch("/v1/calendars", "shared.calendars")
APPLICATIONS = Branch("/v1/applications", "runs.workers", changing={"scope": WRITE, "headers": ()})
FLOW_KEYS = Branch("/v1/flow-keys", "shared.flow_keys")
MESSAGES = Branch("/v1/messages", "messages.messages", changing={"scope": SEND, "also": (WRITE,)})
CONSUMERS = Branch("/v1/consumers", "shared.consumers", changing={"scope": RUN, "headers": ()})
CREDENTIALS = Branch("/v1/credentials", "tenants.credentials", {"scope": ADMIN, "tenant": False, "headers": ACTING})
TENANTS = Branch("/v1/tenants", "tenants.tenants", {"scope": PROVIDER, "tenant": False, "headers": ()})
SUBSCRIPTIONS = replace(TENANTS, path="/v1/tenants/{tenant}/subscriptions")
WELL_KNOWN = Branch("", "service.well_known", OPEN)
PROBLEMS = Branch("/problems", "service.problem_pages", {"scope": None, "media": (JSON, HTML)})

ROUTES = Routes(
    [
        SERVICE.get("/v1/health", admin.health, "Read the version and, for providers, how late the sweep is", "Health"),
        SERVICE.get(
            *("/v1/openapi.json", on_demand("document", "read"), "Read this description, as OpenAPI 3.1", "Document"),
            headers=("If-None-Match", "Accept-Encoding"),
        ),
        JOBS.post("", jobs.create, "Create a job with its schedules", "JobDraft", "Job", headers=REASONED),
        JOBS.put(
            *("", jobs.put_named_job, "Create the job with a name, or replace it", "JobDraft", "Job"),
            headers=LOGGED,
            query=("name", "collection"),
            required=("name",),
            creates=True,
        ),
        JOBS.delete(
            *("", "delete_jobs", "Delete the jobs that match the filters; more than 100 as an operation"),
            headers=(REASON_HEADER,),
            query=(*FILTERS, "dryRun", "expectedCount"),
            gives="BulkDelete",
            begins="BulkDelete",
            status=200,
        ),
        *(
            Branch(f"/v1/jobs:{verb}", "jobs.bulk").verb(
                *("", f"{verb}_jobs", f"{words} the jobs that match the filters; more than 100 as an operation"),
                *("BulkSwitch", takes),
                headers=REASONED,
                query=(*FILTERS, "dryRun", "expectedCount"),
                begins="BulkSwitch",
            )
            for verb, words, takes in (
                ("activate", "Activate", "Nothing"),
                ("deactivate", "Deactivate", "Nothing"),
                ("pause", "Pause", "PauseRequest"),
                ("resume", "Resume", "Nothing"),
            )
        ),
        JOBS.get(
            "",
            job_list.list_all,
            "List jobs",
            "JobPage",
            query=(*PAGE, "offset", *FILTERS, *job_list.PARAMETERS, "include"),
        ),
        JOB.get("", jobs.read, "Read a job", "Job", query=("include",)),
        JOB.put("", jobs.put, "Replace a job", "JobReplacement", "Job"),
        JOB.patch("", jobs.patch, "Change a job with a merge patch", "JobPatch", "Job"),
        JOB.delete("", jobs.delete, "Delete a job and end its open runs"),
        JOB.verb("/run", jobs.run, "Run a job now", "RunStarted", "RunRequest", scope=RUN, status=202, headers=ONCE),
        JOB.verb("/pause", jobs.pause, "Pause a job", "Job", "PauseRequest"),
        JOB.verb("/resume", jobs.resume, "Resume a paused job", "Job"),
        JOB.verb("/activate", jobs.activate, "Activate a job", "Job"),
        JOB.verb("/deactivate", jobs.deactivate, "Deactivate a job", "Job"),
        JOB.get("/next", jobs.next_run, "Read the next instant of a job", "NextRun"),
        JOB.get(
            *("/occurrences", on_demand("runs.occurrences", "occurrences")),
            *("List past and future occurrences of a job", "OccurrencePage"),
            query=(*PAGE, "scheduleId", "from", "until"),
        ),
        JOB.get(
            *("/changes", "list_all", "List the changes of a job, newest first", "ChangePage"),
            query=(*PAGE, "include"),
        ),
        JOB.get("/schedules", schedules.list_all, "List a job's schedules", "SchedulePage", query=PAGE),
        JOB.post(
            "/schedules", schedules.create, "Add a schedule", "ScheduleDraft", "Schedule", headers=(*LOGGED, *ONCE)
        ),
        SCHEDULE.get("", schedules.read, "Read a schedule", "Schedule"),
        SCHEDULE.put("", schedules.put, "Replace a schedule", "ScheduleReplacement", "Schedule"),
        SCHEDULE.patch("", schedules.patch, "Change a schedule", "SchedulePatch", "Schedule"),
        SCHEDULE.delete("", schedules.delete, "Delete a schedule"),
        SCHEDULE.verb("/activate", schedules.activate, "Activate a schedule", "Schedule"),
        SCHEDULE.verb("/deactivate", schedules.deactivate, "Deactivate a schedule", "Schedule"),
        SCHEDULE.get(
            *("/explain", "explain_schedule", "Explain what became of an instant, or will", "Explanation"),
            query=("at",),
        ),
        Branch(
            "/v1/schedules:preview", always={"scope": READ, "also": (WRITE,), "headers": ACTING, "tenant": False}
        ).post(
            *(
                "",
                on_demand("jobs.preview", "preview_schedule"),
                "Compute the next instants of a schedule that is not stored",
            ),
            *("PreviewRequest", "Preview"),
            status=200,
        ),
        OVERVIEW.get(
            *("/timeline", "read_timeline", "Read past and planned runs of all jobs"),
            "Timeline",
            query=(*PAGE, "from", "until", *FILTERS, "jobIds"),
        ),
        OVERVIEW.get(
            *("/timeline:changes", "read_timeline_changes", "Read what is new since the timeline was read"),
            "TimelineChanges",
            query=("since",),
        ),
        OVERVIEW.get(
            *("/load", on_demand("overview.load", "read_load"), "Read how many runs are planned for the next 24 hours"),
            "Load",
        ),
        OVERVIEW.get(
            *(
                "/attention",
                on_demand("overview.attention", "list_attention"),
                "List what needs attention, with the next step",
            ),
            "Attention",
        ),
        MESSAGES.post(
            *("", "create", "Send a message, or up to 25, now or later", "MessageRequest", "Message"),
            status=202,
            headers=ONCE,
            several="MessageResults",
        ),
        MESSAGES.get(
            *("", "list_all", "List messages", "MessagePage"),
            query=(*PAGE, *SPAN),
        ),
        MESSAGES.get("/{message}", "read", "Read a message with its attempts", "Message"),
        MESSAGES.delete("/{message}", "delete", "Revoke a message that has not begun", headers=(REASON_HEADER,)),
        RUNS.get("", runs.list_all, ALL_RUNS, "RunPage", query=(*PAGE, *RUNS_QUERY)),
        EXPORTS.get(
            *("", on_demand("runs.export", "export_runs")),
            *("Export runs, a thousand at a time, as CSV or JSON Lines", "RunsFile"),
            query=("format", "cursor", *RUNS_QUERY),
            media=FILES,
        ),
        EXPORTS.verb(
            *("", on_demand("runs.export", "begin_export_files"), EXPORT_FILE, "Operation", "ExportRequest"),
            scope=READ,
            status=202,
            headers=ONCE,
        ),
        RUNS.get("/{run}", runs.read, "Read a run with its attempts", "Run"),
        RUNS.put("/{run}/result", runs.put_result, "Report a run's result", "Result", "Run", run_token=True),
        RUNS.post(
            *(
                "/{run}/nack",
                runs.give_back,
                "Report that no result will come; the run is tried again",
                "Nack",
                "Run",
            ),
            status=200,
            run_token=True,
        ),
        RUNS.post(
            *("/{run}/claim", on_demand("runs.workers", "claim_run"), "Claim the run of a message, as a worker"),
            *("ClaimRequest", "ClaimVerdict"),
            status=200,
        ),
        RUNS.post(
            *(
                "/{run}/heartbeat",
                on_demand("runs.workers", "heartbeat_run"),
                "Extend the lease of a claimed run",
                "Heartbeat",
                "LeaseEnd",
            ),
            status=200,
        ),
        RUNS.post(
            *(
                "/{run}/settle",
                on_demand("runs.workers", "settle_run"),
                "Report how a claimed run ended",
                "TaskReport",
                "Run",
            ),
            status=200,
        ),
        RUNS.verb("/{run}/cancel", runs.cancel, "Cancel an open run", "Run", headers=(REASON_HEADER,)),
        RUNS.verb(
            *(
                "/{run}/rerun",
                on_demand("runs.redrives", "rerun_run"),
                "Run a finished run again, unchanged or with another payload",
            ),
            *("RunStarted", "RerunRequest"),
            status=202,
            headers=ONCE,
        ),
        Branch("/v1/errors:redrive", "runs.redrives", {"scope": ERRORS, "headers": ONCE}).post(
            *("", "redrive_errors", "Run failed runs again, at a given rate", "RedriveRequest", "Redrive"),
            status=202,
        ),
        ERROR_GROUPS.get(
            *("", "list_all", "List unresolved failures, in groups", "ErrorGroupPage"),
            query=(*PAGE, "jobId", *SPAN),
        ),
        Branch("/v1/errors:summary").get(
            *("", on_demand("runs.errors", "read_error_summary")),
            *("Count open errors by job, job set, target or version", "ErrorSummary"),
            query=("groupBy", "jobId", *SPAN[:-1]),
        ),
        ERROR.get("", "read", "Read a group of errors", "ErrorGroup"),
        ERROR.get(
            *(
                "/runs",
                "list_error_runs",
                "List the failed runs of a group, and what was done about each",
                "ErrorRunPage",
            ),
            query=PAGE,
        ),
        ERROR.verb(
            *("/notes", "add_note", "Add a note to a group of errors", "ErrorGroup", "NoteDraft"),
            status=201,
            headers=ONCE,
        ),
        ERROR.verb("/archive", "archive", "Archive a group of errors, until it fails again", "ErrorGroup", ARCHIVE),
        ERROR.verb("/restore", "restore", "Reopen an archived group of errors", "ErrorGroup"),
        ERROR.verb(f"{ONE_RUN}/archive", "archive_error_run", "Archive one failed run", "ErrorRun", ARCHIVE),
        ERROR.verb(
            *(f"{ONE_RUN}/restore", "restore_error_run", "Reopen a failed run that was archived alone", "ErrorRun")
        ),
        REDIRECTS.get("", "list_redirects", "List redirects", "RedirectPage", query=PAGE),
        REDIRECTS.put("/{job}", "put_redirect", "Run a job's failed runs as another job", "RedirectDraft", "Redirect"),
        REDIRECTS.delete("/{job}", "delete_redirect", "Delete a redirect"),
        OPERATIONS.get(
            "", "list_all", "List operations, newest first", "OperationPage", query=(*PAGE, "state", "kind")
        ),
        OPERATIONS.get("/{operation}", "read", "Read an operation and its progress", "Operation"),
        OPERATIONS.verb("/{operation}/pause", "pause", "Pause an operation before its next page", "Operation"),
        OPERATIONS.verb(
            "/{operation}/resume", "resume", "Resume an operation where it stopped, even if it failed", "Operation"
        ),
        OPERATIONS.verb("/{operation}/cancel", "cancel", "Cancel an operation; finished work stays", "Operation"),
        JOB_SETS.get("", "list_all", "List job sets", "JobSetPage", query=PAGE),
        JOB_SETS.get(
            *("/{job_set}", "read", "Read a job set: its jobs, changes by others, and figures of its runs", "JobSet"),
            query=("include", "from", "limitSeconds"),
        ),
        JOB_SETS.put(
            *("/{job_set}", "put", "Apply a list of jobs to a set; with `plan=true`, only plan it"),
            *("JobSetDraft", "JobSetPlan"),
            query=(*OF_PLANS, "prune", "owner"),
            begins="JobSetPlan",
        ),
        JOB_SETS.delete(
            *("/{job_set}", "delete", "Delete a job set with its jobs"),
            gives="JobSetPlan",
            begins="JobSetPlan",
            status=200,
            query=(*OF_PLANS[:-1], "owner"),
        ),
        JOB_SETS.delete(
            *("/{job_set}/owner", "release", "Release a job set from its owner; its jobs stay"),
            query=("owner",),
            required=("owner",),
            headers=(),
        ),
        COLLECTIONS.post(
            *("", admin.create_collection, "Create a collection", "CollectionDraft", "Collection"), headers=ONCE
        ),
        COLLECTIONS.get("", admin.list_collections, "List collections", "CollectionPage", query=PAGE),
        COLLECTION.get("", admin.read_collection, "Read a collection", "Collection"),
        COLLECTION.put("", admin.put_collection, "Replace a collection", "CollectionReplacement", "Collection"),
        COLLECTION.patch("", admin.patch_collection, "Change a collection", "CollectionPatch", "Collection"),
        COLLECTION.delete("", admin.delete_collection, "Delete an empty collection"),
        COLLECTION.verb("/enable", admin.enable_collection, "Enable a collection", "Collection"),
        COLLECTION.verb("/disable", admin.disable_collection, "Disable a collection", "Collection"),
        SIGNING_KEYS.verb(
            *(
                "",
                "create_signing_key",
                "Create a key that signs the calls of the collection's jobs",
                "IssuedSigningKey",
            ),
            status=201,
            headers=ONCE,
        ),
        SIGNING_KEYS.get("", "list_signing_keys", "List the signing keys of a collection", "SigningKeyPage"),
        SIGNING_KEYS.delete("/{key}", "delete_signing_key", "Delete a signing key"),
        CALENDARS.post("", "create", "Create a calendar", "CalendarDraft", "Calendar", headers=ONCE),
        CALENDARS.get("", "list_all", "List calendars", "CalendarPage", query=PAGE),
        CALENDARS.get("/{calendar}", "read", "Read a calendar", "Calendar"),
        CALENDARS.put(
            *("/{calendar}", "put", "Replace a calendar, and replan the schedules that name it"),
            *("CalendarReplacement", "Calendar"),
        ),
        CALENDARS.delete("/{calendar}", "delete", "Delete a calendar that no schedule names"),
        CALENDARS.get(
            *("/{calendar}/versions", "list_versions", "List the versions of a calendar, newest first"),
            "CalendarVersionPage",
            query=PAGE,
        ),
        CALENDARS.get(
            "/{calendar}/versions/{version}", "read_version", "Read a version of a calendar", "CalendarVersion"
        ),
        APPLICATIONS.get(
            "", "list_applications", "List applications and whether workers receive", "ApplicationPage", query=PAGE
        ),
        APPLICATIONS.get(
            *("/{application}", "read_application", "Read an application", "Application"), query=("version",)
        ),
        APPLICATIONS.delete(
            *("/{application}", "delete_application", "Delete an application that no job names, with its queue"),
            query=("version",),
        ),
        APPLICATIONS.put(
            *("/{application}", "register_application", "Register an application with a queue for its workers"),
            *("ApplicationRequest", "Application"),
            body="optional",
        ),
        FLOW_KEYS.post("", "create", "Create a flow key", "FlowKeyDraft", "FlowKey", headers=ONCE),
        FLOW_KEYS.get("", "list_all", "List flow keys", "FlowKeyPage", query=PAGE),
        FLOW_KEYS.get("/{flow_key}", "read", "Read a flow key and its current state", "FlowKey"),
        FLOW_KEYS.put("/{flow_key}", "put", "Replace a flow key", "FlowKeyReplacement", "FlowKey"),
        FLOW_KEYS.patch("/{flow_key}", "patch", "Change a flow key", "FlowKeyPatch", "FlowKey"),
        FLOW_KEYS.delete("/{flow_key}", "delete", "Delete a flow key that nothing names"),
        FLOW_KEYS.verb(
            "/{flow_key}/pause", "pause", "Pause a flow key: no further call begins", "FlowKey", "FlowKeyPause"
        ),
        FLOW_KEYS.verb("/{flow_key}/resume", "resume", "Resume a flow key", "FlowKey"),
        CONSUMERS.get("", "list_all", "List consumers", "ConsumerPage", query=PAGE),
        CONSUMERS.get("/{consumer}", "read", "Read a consumer, its holder, and the events held for it", "Consumer"),
        CONSUMERS.delete(
            *("/{consumer}", "delete", "Delete a consumer and end what is held for it"), scope=WRITE, query=("force",)
        ),
        CONSUMERS.put(
            "/{consumer}/lease", "take_lease", "Take or extend the lease of a consumer", "LeaseRequest", "Consumer"
        ),
        CONSUMERS.delete(
            "/{consumer}/lease", "release_lease", "Release the lease; events are then held", query=("holder",)
        ),
        CONSUMERS.post(
            *("/{consumer}/start", "start", "Start a consumer: send missed events, oldest first, then live ones"),
            *("StartRequest", "Consumer"),
            status=200,
        ),
        CREDENTIALS.post(
            *("", "create", "Create a credential", "CredentialDraft", "IssuedCredential"), headers=(*ACTING, *ONCE)
        ),
        CREDENTIALS.get("", "list_all", "List credentials", "CredentialPage", query=PAGE),
        CREDENTIALS.verb(
            *("/{credential}/rotate", "rotate", "Give a credential a new secret"),
            *("IssuedCredential", "CredentialRotation"),
            headers=(*ACTING, *ONCE),
        ),
        CREDENTIALS.delete("/{credential}", "delete", "Delete a credential and end its tokens"),
        CREDENTIALS.delete(
            "/{credential}/former-secret", "end_former_secret", "End the previous secret before its overlap ends"
        ),
        TENANTS.post("", "create", "Create a tenant", "TenantDraft", "Tenant", headers=ONCE),
        TENANTS.get("", "list_all", "List tenants", "TenantPage", query=PAGE),
        TENANTS.get("/{tenant}", "read", "Read a tenant", "Tenant"),
        TENANTS.patch("/{tenant}", "patch", "Change a tenant's description or quota", "TenantPatch", "Tenant"),
        TENANTS.delete("/{tenant}", "delete", "Delete a tenant with all its data", gives="Operation", status=202),
        SUBSCRIPTIONS.get("", "list_subscriptions", "List a tenant's subscriptions", "SubscriptionPage"),
        SUBSCRIPTIONS.put(
            *("/{application}", "subscribe"),
            "Subscribe a tenant to an application; the first subscription creates the tenant",
            *("Nothing", "Subscription"),
            body="optional",
        ),
        SUBSCRIPTIONS.delete(
            *("/{application}", "unsubscribe", "End a subscription; ending the last one deletes the tenant"),
            begins="Operation",
        ),
        TENANTS.verb("/{tenant}/enable", "enable", "Enable a tenant", "Tenant"),
        TENANTS.verb("/{tenant}/disable", "disable", "Disable a tenant", "Tenant"),
        WELL_KNOWN.get(KEYS_PATH, "read_keys", "Read the keys that verify this stack's own tokens", "KeySet"),
        WELL_KNOWN.get(
            "/.well-known/openid-configuration",
            "read_configuration",
            "Read the issuer of this stack's own tokens and the address of its keys",
            "IssuerConfiguration",
        ),
        PROBLEMS.get("", "list_problems", "List all problem types", "ProblemPages"),
        PROBLEMS.get("/{problem}", "read_problem", "Read the cause and the cure of a problem", "ProblemPage"),
        Route(
            *("POST", "/oauth/token", on_demand("tenants.oauth", "token"), None),
            body="form",
            summary="Get a token for client credentials",
            takes="TokenRequest",
            gives="Token",
        ),
    ]
)
