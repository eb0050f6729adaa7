"""Makes the OpenAPI 3.1 document from routes and schemas. `make openapi` writes it; the service only serves it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sweephand import __version__
from sweephand.base.json_schema import Schema, items, one_of, ref, text, whole
from sweephand.domain.job import JobState
from sweephand.domain.operation import OperationKind, OperationState
from sweephand.domain.run import Kind, State
from sweephand.domain.schema_words import (
    GIVEN_INSTANT,
    ID,
    IN_UTC,
    JOB_FILTER,
    PLAIN_NAME,
    RUN_ID,
    TENANT_NAME,
)
from sweephand.server.actions import KINDS
from sweephand.server.facades.http import RUN_TOKEN_HEADER, Route
from sweephand.server.facades.native import cursors
from sweephand.server.facades.native.context import LONGEST_REASON
from sweephand.server.facades.native.jobs import narrow_lists
from sweephand.server.facades.native.jobs.answers import INCLUDES
from sweephand.server.facades.native.jobs.job_list import LIST_INCLUDES
from sweephand.server.facades.native.jobs.job_sets import FIGURES, LARGEST_LIMIT_S
from sweephand.server.facades.native.jobs.narrow_lists import BY_NEXT_RUN
from sweephand.server.facades.native.overview import timeline
from sweephand.server.facades.native.problems import STATUS, problem
from sweephand.server.facades.native.routes import HTML, JSON, READ, ROUTES
from sweephand.server.facades.native.runs.errors import STATES
from sweephand.server.flow.errors.summaries import By
from tools.openapi import descriptions
from tools.openapi.examples import REQUESTS
from tools.openapi.schemas import SCHEMAS

PROBLEM = "application/problem+json"
FORM, MERGE_PATCH = "application/x-www-form-urlencoded", "application/merge-patch+json"
VERSIONED = frozenset({"Job", "Schedule", "Collection", "Calendar", "FlowKey", "Document"})
"""Schemas whose answers have an ETag."""
DESCRIPTION = """\
Each answer has the header `x-request-id`. HEAD answers like GET, without a body. Only authenticated callers get 404 for
an unknown path or 405 for an unknown method.

An answer has exactly the members of its schema. A request is refused (422) for a member that its schema lacks; a body
that fits may still break a rule that no schema can express. The problem names the field. `null` is an absent member.

In the header `Sweephand-Tenant`, a provider names the tenant for which it acts. The scope of each operation is next to
its security schemes."""
TAGS = {
    "jobs": "Jobs: what to do, and when.",
    "schedules": "Schedules of jobs, and previews of schedules that are not stored.",
    "runs": "Runs: the ledger of what happened to each occurrence.",
    "errors": "Failed runs, until somebody resolves them.",
    "operations": "Long work that continues without further requests.",
    "collections": "Groups of a tenant's jobs, with quotas.",
    "job-sets": "Lists of all the jobs of a program.",
    "calendars": "Dates and hours that schedules exclude, or to which they are limited.",
    "messages": "Calls that are sent once, now or later, without a job.",
    "flow-keys": "Limits on the rate and the number of concurrent calls of several jobs.",
    "consumers": "Programs that receive events, and get the missed ones when they return.",
    "credentials": "Client ids and secrets.",
    "tenants": "Owners of data; for providers.",
    "timeline": "Overviews of all jobs.",
    "service": "Tokens, health, and this document.",
}
HEADERS: Mapping[str, tuple[str, Schema]] = {
    "If-Match": (
        "The ETag of the revision to change, or `*`.",
        text(pattern=r'^\s*(\*|(W/)?"[0-9]{1,15}")\s*$'),
    ),
    "If-None-Match": ("The ETag that the caller has.", text()),
    "Accept-Encoding": ("`gzip` if the caller accepts a compressed answer.", text()),
    "Idempotency-Key": (
        "A repetition within 24 hours has no further effect. With another body, it is refused.",
        text(pattern="^[!-~]{1,255}$"),
    ),
    "Sweephand-Reason": (
        "Why the change is made: for the change log, the ledger and events.",
        text(1, LONGEST_REASON),
    ),
    "Sweephand-Tenant": ("The tenant for which a provider's credential acts.", TENANT_NAME),
}
ANSWER_HEADERS: Mapping[str, tuple[str, Schema]] = {
    "x-request-id": ("The id of this request, which is also in the log.", text()),
    "ETag": ("The revision, for If-Match. For this document: its hash.", text(pattern='^"[0-9a-f]+"$')),
    "Location": ("The path of the new resource.", text(format="uri-reference")),
    "Link": ('The next page, as `rel="next"` (RFC 8288); absent on the last page.', text()),
    "Retry-After": ("How long to wait, in seconds.", text(pattern="^[0-9]+$")),
    "Vary": ("The headers on which the answer depends.", text()),
    "Content-Encoding": ("How the answer is compressed.", text()),
    "WWW-Authenticate": ("The supported schemes.", text()),
}
PATH: Mapping[str, Schema] = {
    "job": ID,
    "schedule": ID,
    "run": RUN_ID,
    "message": RUN_ID,
    "failed_run": RUN_ID,
    "collection": PLAIN_NAME,
    "calendar": PLAIN_NAME,
    "flow_key": PLAIN_NAME,
    "job_set": PLAIN_NAME,
    "consumer": PLAIN_NAME,
    "version": text(pattern="^[1-9][0-9]{0,7}$"),
    "credential": text(description="A client id."),
    "key": ID,
    "tenant": TENANT_NAME,
    "operation": ID,
    "application": PLAIN_NAME,
    "error": text(pattern="^[0-9a-f]{32}$"),
    "problem": text(pattern="^[a-z]+(-[a-z]+)*$", description="The last part of a problem's `type`."),
}
LOOKED_AT = f". Rejected if more than {narrow_lists.MOST:,} jobs match the other filters."
QUERY: Mapping[str, Schema] = {
    "limit": whole(1, cursors.LARGEST_LIMIT, default=cursors.DEFAULT_LIMIT),
    "cursor": text(1, 1_024, description="`nextCursor` of the previous page, with the same query."),
    "offset": whole(0, cursors.LARGEST_OFFSET, description="How many entries to skip. Not with `cursor`."),
    "collection": text(1, 128, description="Only resources of this collection."),
    "search": text(1, 128, description="Only resources whose name contains this string; case is ignored."),
    "tag": text(1, 128),
    "resourceId": text(1, 256),
    "name": text(1, 128),
    "jobSet": text(1, 128),
    "actionType": one_of(sorted(KINDS), description=f"Only jobs whose action is of this type{LOOKED_AT}"),
    **{
        f"{what}{side}": {**GIVEN_INSTANT, "description": f"{words} {when} this instant{LOOKED_AT}"}
        for what, words in (("created", "Only jobs that were created"), ("nextRun", "Only jobs whose next run is"))
        for side, when in (("After", "at or after"), ("Before", "before"))
    },
    "sort": one_of(
        (BY_NEXT_RUN,), description=f"Sorts by the next run, soonest first; jobs without one come last{LOOKED_AT}"
    ),
    "scheduleId": ID,
    "jobId": JOB_FILTER,
    "dryRun": one_of(("true", "false"), default="false", description="Only counts; changes nothing."),
    "expectedCount": whole(
        0, 10**9, description="Refused (412) if another number matches. Required, except with `dryRun`."
    ),
    "plan": one_of(("true", "false"), default="false", description="Only shows what would change."),
    "token": text(1, 64, description="The token of a plan. Refused (412) if the plan has changed."),
    "groupBy": one_of(By, description="The value by which the errors are counted."),
    "force": one_of(
        ("true", "false"),
        default="false",
        description="Deletes the consumer even if somebody holds its lease, or jobs name it.",
    ),
    "version": text(1, 64, description="The version of the application; without it, the queue that all versions read."),
    "allowDeletes": whole(
        0,
        9_999,
        description="How many jobs the plan deletes. Required for more than 10 jobs that are more than a "
        "fifth of the set.",
    ),
    "prune": one_of(
        ("true", "false"), default="true", description="Whether to delete jobs of the set that are not in the list."
    ),
    "owner": text(
        1,
        512,
        description="The owner of the set, in words of your own. A set that this request creates belongs to it from "
        "its first job on, another set once the whole list is applied. Deleting and releasing are rejected (409) if "
        "the set belongs to another owner; deleting also if it belongs to none.",
    ),
    "jobIds": items(
        ID, minItems=1, maxItems=timeline.MOST_NAMED, description="Only these jobs. Not with other filters."
    ),
    "since": text(description="`since` from the answer of the timeline, or of its last changes."),
    "holder": text(1, 128, description="The holder of the lease."),
    "onDrift": one_of(
        ("keep_next", "run_now"),
        default="keep_next",
        description="When repaired jobs run: at their next instant, or at once. `run_now` needs the scope "
        "`runs:write`.",
    ),
    "limitSeconds": whole(
        1,
        LARGEST_LIMIT_S,
        description="The longest time that a run should take from its instant to its end. With `include=figures`.",
    ),
    "kind": one_of(Kind),
    "format": one_of(("csv", "jsonl"), default="csv"),
    "include": items(one_of(sorted(INCLUDES))),
    "from": {**GIVEN_INSTANT, "description": f"The start (inclusive); by default now. {IN_UTC}"},
    "until": {**GIVEN_INSTANT, "description": f"The end (inclusive). {IN_UTC}"},
    "at": {**GIVEN_INSTANT, "description": "The instant to explain; by default now. " + GIVEN_INSTANT["description"]},
}
OF_JOBS = ("/v1/jobs", "/v1/timeline", *(f"/v1/jobs:{verb}" for verb in ("activate", "deactivate", "pause", "resume")))
"""Paths with the filters of lists of jobs."""
OF_ROUTE: Mapping[tuple[str, str], Schema] = {
    **{(path, "state"): one_of(JobState) for path in OF_JOBS},
    **{
        (path, "tag"): text(0, 128, description="Only jobs with this tag. If empty, only jobs without tags.")
        for path in OF_JOBS
    },
    ("PUT /v1/jobs", "name"): text(1, 128, description="The name of the job."),
    ("PUT /v1/jobs", "collection"): text(1, 128, description="The collection of the job; by default `default`."),
    ("/v1/timeline", "limit"): whole(1, timeline.LARGEST_LIMIT, default=timeline.LIMIT),
    ("/v1/timeline", "from"): {**GIVEN_INSTANT, "description": f"The start; by default 24 hours ago. {IN_UTC}"},
    ("/v1/timeline", "until"): {
        **GIVEN_INSTANT,
        "description": f"The end; by default in 24 hours. At most 14 days after `from`. {IN_UTC}",
    },
    **{
        (path, name): {**GIVEN_INSTANT, "description": f"Only runs planned at or {side} this instant. {IN_UTC}"}
        for path in ("/v1/runs", "/v1/runs:export", "/v1/messages")
        for name, side in (("from", "after"), ("until", "before"))
    },
    **{
        (path, name): {**GIVEN_INSTANT, "description": f"Only groups that {words} this instant. {IN_UTC}"}
        for path in ("/v1/errors", "/v1/errors:summary")
        for name, words in (("from", "last failed at or after"), ("until", "first failed at or before"))
    },
    ("/v1/runs", "state"): one_of(state for state in State if state is not State.SCHEDULED),
    ("/v1/runs:export", "state"): one_of(state for state in State if state is not State.SCHEDULED),
    ("/v1/messages", "state"): one_of(State),
    ("/v1/errors", "state"): one_of(STATES, default="OPEN"),
    ("/v1/operations", "state"): one_of(OperationState),
    ("/v1/operations", "kind"): one_of(OperationKind),
    ("/v1/jobs", "include"): items(one_of(sorted(LIST_INCLUDES))),
    ("/v1/jobs/{job}/changes", "include"): items(one_of(("before",))),
    ("/v1/job-sets/{job_set}", "include"): items(one_of(sorted(FIGURES))),
    ("/v1/job-sets/{job_set}", "from"): {
        **GIVEN_INSTANT,
        "description": f"The start of the span for `include=figures`; by default 24 hours ago. {IN_UTC}",
    },
}
WITH_FIELDS = frozenset({400, 413, 415, 422})
"""Problems that name the fields at fault."""
COUNTED = frozenset({"RedriveRequest"})
"""Requests that may say how many resources they expect to affect."""
OAUTH = "An error of OAuth 2.0 (RFC 6749, 5.2)."
OPEN_TO_SOME = {"/v1/health": READ}
"""Open paths that return more to a caller with this scope."""


def document(answers: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """Returns the document. answers: bodies of answers to real requests, as examples, by method and path."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES.all:
        example = answers.get((route.method, route.path))
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route, example)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sweephand",
            "version": __version__,
            "summary": "Job scheduling: delivered on the second, with a ledger that says why.",
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The server of this document."}],
        "tags": [{"name": name, "description": description} for name, description in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "responses": _problems(),
            "parameters": {
                name: {"name": name, "in": "header", "description": description, "schema": schema}
                for name, (description, schema) in HEADERS.items()
            },
            "headers": {
                name: {"description": description, "schema": schema}
                for name, (description, schema) in ANSWER_HEADERS.items()
            },
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic", "description": "A client id and its secret."},
                "bearer": {"type": "http", "scheme": "bearer", "description": "A token from `/oauth/token`."},
                "runToken": {
                    "type": "apiKey",
                    "in": "header",
                    "name": RUN_TOKEN_HEADER,
                    "description": "The token that the run's target received under this name (policy `callbackToken`).",
                },
            },
        },
    }


def operation(route: Route, example: Any = None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "description": descriptions.OPERATIONS[operation_id(route)],
        "tags": [tag_of(route)],
        "security": _security(route),
    }
    if parameters := _parameters(route):
        described["parameters"] = parameters
    if route.body != "none":
        media = [FORM if route.body == "form" else JSON, *([MERGE_PATCH] if route.method == "PATCH" else ())]
        described["requestBody"] = {
            "required": route.body != "optional",
            "content": {each: _content(route.takes, REQUESTS.get(route.takes, {})) for each in media},
        }
    described["responses"] = {str(route.status): _success(route, example), **_other_responses(route)}
    return described


ONE_OF = {
    f"{noun}s": noun
    for noun in ("run", "job", "schedule", "tenant", "operation", "error", "job_set", "consumer", "message")
}


def operation_id(route: Route) -> str:
    """Returns `createJob` or `listRuns`: the verb of the function, and its object unless the verb names it."""
    verb, _, noun = route.operation.__name__.partition("_")
    owner = route.operation.__module__.rpartition(".")[2].removesuffix("_list")
    if route.operation.__name__ == "list_all":
        noun = owner if owner.endswith("s") else f"{owner}s"
    elif not noun:
        noun = "" if owner == "admin" else ONE_OF.get(owner, owner)
    noun = {"occurrences": "", "token": ""}.get(verb, noun)
    return verb + "".join(word.capitalize() for word in noun.split("_"))


def tag_of(route: Route) -> str:
    for name in ("schedules", *TAGS):
        if f"/{name}" in route.path:
            return name
    return "timeline" if ".overview." in route.operation.__module__ else "service"


def _security(route: Route) -> list[dict[str, list[str]]]:
    if route.body == "form":
        return [{}, {"basic": []}]
    scopes = route.scopes or tuple(filter(None, (OPEN_TO_SOME.get(route.path),)))
    known = [{kind: [scope]} for scope in scopes for kind in ("basic", "bearer")]
    known += [{"runToken": []}] if route.run_token else []
    return known if route.scope else [{}, *known]


def _parameters(route: Route) -> list[dict[str, Any]]:
    in_path = [
        _worded({"name": name, "in": "path", "required": True, "schema": PATH[name]})
        for name in re.findall(r"\{([a-z_]+)\}", route.path)
    ]
    in_query = [_query_parameter(route, name) for name in route.query]
    acting = ("Sweephand-Tenant",) if route.scope and route.tenant else ()
    return [*in_path, *in_query, *({"$ref": f"#/components/parameters/{name}"} for name in (*route.headers, *acting))]


def _query_parameter(route: Route, name: str) -> dict[str, Any]:
    schema = OF_ROUTE.get((f"{route.method} {route.path}", name)) or OF_ROUTE.get((route.path, name)) or QUERY[name]
    listed = {"style": "form", "explode": False} if schema.get("type") == "array" else {}
    needed = {"required": True} if name in route.required else {}
    return _worded({"name": name, "in": "query", **needed, "schema": schema, **listed})


def _worded(parameter: dict[str, Any]) -> dict[str, Any]:
    """Adds the description of the parameter's schema, or else of its name."""
    text = parameter["schema"].get("description") or descriptions.PARAMETERS.get(parameter["name"])
    return parameter if text is None else {**parameter, "description": text}


def _content(schema: str, examples: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: {"value": value} for name, value in examples.items()}
    return {"schema": ref(schema), **({"examples": shown} if shown else {})}


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in ("x-request-id", *names)}


def _success(route: Route, example: Any) -> dict[str, Any]:
    names = (
        *(("ETag",) if route.gives in VERSIONED else ()),
        *(("Vary", "Content-Encoding") if "Accept-Encoding" in route.headers else ()),
        *(("Location",) if route.status in {201, 202} else ()),
        *(("Link",) if JSON not in route.media else ()),
    )
    if not route.gives:
        return {"description": "Done.", "headers": _headers(*names)}
    content = _content(route.gives, {} if example is None else {"answer": example})
    return {
        "description": route.gives,
        "headers": _headers(*names),
        "content": {
            **{media: {"schema": text()} if media == HTML else _content(route.gives, {}) for media in route.media},
            route.media[0]: content,
        },
    }


def statuses(route: Route) -> list[int]:
    """Returns the statuses of the problems that a route can return."""
    known = route.scope is not None or route.path in OPEN_TO_SOME
    reads = route.body in {"required", "optional"}
    apart = route.path.startswith(("/v1/tenants", "/v1/operations"))
    can_conflict = route.tenant or apart or route.takes in {"CredentialDraft", "CredentialRotation", "PreviewRequest"}
    named = "{" in route.path or route.tenant or "Sweephand-Tenant" in route.headers
    found = {
        400: True,
        401: known,
        403: known,
        404: (route.scope is not None and named) or route.path.startswith(("/.well-known/", "/problems/")),
        409: route.scope is not None and route.method != "GET" and can_conflict,
        412: "If-Match" in route.headers or route.takes in COUNTED or bool({"expectedCount", "token"} & {*route.query}),
        413: reads,
        415: reads,
        422: reads,
        500: True,
        503: True,
    }
    return [status for status, can_be in found.items() if can_be]


def _other_responses(route: Route) -> dict[str, Any]:
    other: dict[str, Any] = {}
    if "If-None-Match" in route.headers:
        other["304"] = {"description": "The caller has the current version.", "headers": _headers("ETag", "Vary")}
    other |= {str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses(route)}
    if route.creates:
        other["201"] = _success(replace(route, status=201, creates=False), None)
    if route.several:
        other["200"] = _success(replace(route, status=200, several=""), None)
        content = {JSON: _content(route.several, {})}
        other["207"] = {
            "description": "Each of several things has its own answer.",
            "headers": _headers(),
            "content": content,
        }
    if route.begins:
        content = {JSON: _content(route.begins, {})}
        other["202"] = {
            "description": "The work continues as an operation.",
            "headers": _headers("Location"),
            "content": content,
        }
    other |= {status: {"$ref": f"#/components/responses/{status}"} for status in ("429", "431")}
    if route.body == "form":
        refused = _content("OAuthError", {})
        either = {JSON: refused, PROBLEM: _problem_content(400)}
        other["400"] = {"description": OAUTH, "headers": _headers(), "content": either}
        other["401"] = {"description": OAUTH, "headers": _headers("WWW-Authenticate"), "content": {JSON: refused}}
    return dict(sorted(other.items()))


def _problems() -> dict[str, Any]:
    """Returns one response for each status, with its codes. 429 has two forms: ours and API Gateway's."""
    more = {401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}
    found: dict[str, Any] = {}
    for status in sorted({status for status, _ in STATUS.values()} - {405}):
        titles = " ".join(f"`{code}`: {title}." for code, (each, title) in STATUS.items() if each == status)
        found[str(status)] = {
            "description": titles,
            "headers": _headers(*more.get(status, ())),
            "content": {PROBLEM: _problem_content(status)},
        }
    found["429"]["description"] += " A tenant has a limit of requests a minute; API Gateway has one for all callers."
    found["429"]["content"][JSON] = _content("GatewayRefusal", {})
    found["431"] = {
        "description": "The headers are too large. API Gateway refuses the request before it reaches the service.",
        "content": {JSON: _content("GatewayRefusal", {})},
    }
    return found


def _schemas() -> dict[str, Any]:
    """Returns the schemas for client generators: each variant and problem has a name, each member a description."""
    named: dict[str, Any] = {}
    worded = descriptions.described(SCHEMAS)
    for name, schema in worded.items():
        named[name] = _with_named_variants(name, schema, named)
    for status in sorted({status for status, _ in STATUS.values()} - {405}):
        named[f"Problem{status}"] = _problem_schema(status, worded["Problem"])
    return named


def _with_named_variants(name: str, schema: Schema, named: dict[str, Any]) -> Schema:
    """Gives each variant of an object by `type` a name, such as ShownAuthenticationBasic."""
    forms = schema.get("oneOf", ())
    kinds = [form.get("properties", {}).get("type", {}).get("const") for form in forms]
    if not forms or not all(isinstance(kind, str) for kind in kinds):
        return schema
    references = []
    for form, kind in zip(forms, kinds, strict=True):
        words = re.findall("[a-zA-Z0-9]+", str(kind))
        title = name + "".join(word[:1].upper() + word[1:] for word in words)
        title += next(str(n) if n > 1 else "" for n in range(1, 99) if title + (str(n) if n > 1 else "") not in named)
        named[title] = form
        references.append(ref(title))
    return {**schema, "oneOf": references}


def _problem_schema(status: int, any_problem: Schema) -> Schema:
    """Returns the schema of a problem of one status, with its codes."""
    codes = [code for code, (each, _) in STATUS.items() if each == status]
    properties = {**any_problem["properties"]}
    required = [*any_problem["required"]]
    properties["status"] = {"type": "integer", "enum": [status], "description": "The HTTP status."}
    properties["code"] = {"type": "string", "enum": codes, "description": "A stable code."}
    if status not in {409, 412}:
        del properties["plan"]
    if status != 409:
        del properties["current"]
    if status in WITH_FIELDS:
        required.append("errors")
    else:
        del properties["errors"]
    return {**any_problem, "properties": properties, "required": required}


def _problem_content(status: int) -> dict[str, Any]:
    """Returns the content of a problem's response, with an example. `errors` names the fields at fault."""
    code = next(code for code, (each, _) in STATUS.items() if each == status)
    about = {"errors": [{"field": None, "reason": "why"}]} if status in WITH_FIELDS else {}
    example = problem(code, "why", "Ab3dEfGhIjKlMnO=", **about).body
    return {"schema": ref(f"Problem{status}"), "example": example}
