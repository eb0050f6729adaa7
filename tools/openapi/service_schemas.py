"""The schemas of problems, tokens and the health of the service."""

from __future__ import annotations

from sweephand.base.errors import MOST_SHOWN
from sweephand.base.json_schema import Members, Schema, answer, items, one_of, or_null, ref, text, whole
from sweephand.domain.schedule import Lane
from sweephand.domain.schema_words import INSTANT, INSTANT_MS, STATUS_CODE, TEXT
from sweephand.server.facades.native.problems import STATUS
from sweephand.server.facades.native.service import admin
from tools.openapi.pages_and_patches import page

_PROBLEM: Members = {
    "type": text(
        format="uri-reference",
        pattern="^/problems/",
        description="The address of its page, relative to the address of this API.",
    ),
    "title": {**TEXT, "description": "The problem in a few words."},
    "status": {**STATUS_CODE, "description": "The HTTP status."},
    "code": one_of(STATUS, description="Stable; the texts may change."),
    "detail": {**TEXT, "description": "The mistake in this request."},
    "requestId": {**TEXT, "description": "The id of the request, which is also in the log."},
    "errors": items(
        ref("FieldProblem"), maxItems=MOST_SHOWN, description="All mistakes of the request, up to the first fifty."
    ),
    "plan": {**ref("JobSetPlan"), "description": "The current plan of the job set."},
    "current": answer(
        {"state": {**TEXT, "description": "Its state."}}, description="With 409: the present state of the message."
    ),
}
_PROBLEM_PAGE: Members = {
    **{name: _PROBLEM[name] for name in ("type", "title", "status", "code")},
    "cause": text(description="Why requests are refused with this problem."),
    "cure": text(description="How to solve the problem."),
}
_FIELD_PROBLEM: Members = {
    "field": or_null(text(description="A path such as `schedules[0].cron`; null: the request as a whole.")),
    "reason": {**TEXT, "description": "Why the field is rejected, and what to write instead."},
    "position": whole(description="An index into the field's string."),
}
SCHEMAS: dict[str, Schema] = {
    "Token": answer(
        {
            "access_token": {**TEXT, "description": "The token, for the header `Authorization: Bearer`."},
            "token_type": {"const": "bearer", "description": "`Bearer`."},
            "expires_in": whole(1, description="Seconds."),
            "scope": TEXT,
            "jti": text(description="The id of the token, which the token also contains."),
        }
    ),
    "OAuthError": answer(
        {
            "error": one_of(
                ("invalid_request", "invalid_client", "invalid_scope", "unauthorized_client", "unsupported_grant_type"),
                description="The code of the error, as in RFC 6749.",
            ),
            "error_description": text(description="A description of the mistake, in plain English."),
        }
    ),
    "Health": answer(
        {
            "status": {"const": "ok"},
            "version": {**TEXT, "description": "The version of the service."},
            "oldestDueAt": or_null({**INSTANT, "description": "The oldest instant that is due and not yet sent."}),
            "behindSeconds": whole(description="How late the sweep is, in seconds."),
            "backlog": answer(
                {lane.value: ref("Backlog") for lane in Lane}, description="How many messages wait in the queues."
            ),
            "away": items(
                ref("Away"),
                maxItems=admin.MOST_AWAY,
                description="The applications, consumers and targets of all tenants that are away.",
            ),
            "lastAudit": or_null(ref("LastAudit")),
            "unaudited": whole(
                description="About how many schedules no audit has compared with the ledger for three days."
            ),
            "auditedSince": or_null(
                {
                    **INSTANT,
                    "description": "When the oldest comparison of a schedule with the ledger began; null if some were "
                    "never compared.",
                }
            ),
        },
        ("oldestDueAt", "behindSeconds", "backlog", "away", "lastAudit", "unaudited", "auditedSince"),
        dependentRequired={"oldestDueAt": ["behindSeconds"], "behindSeconds": ["oldestDueAt"]},
    ),
    "Away": answer(
        {
            "kind": one_of(admin.KINDS_AWAY),
            "tenant": TEXT,
            "name": text(description="Its name; of a target, the scheme and the host."),
            "version": or_null(text(description="Set if only workers of this version of the application are missing.")),
            "since": {
                **INSTANT_MS,
                "description": "Since when the first message or run waits, or the target does not answer.",
            },
            "awayAt": or_null({**INSTANT_MS, "description": "When the event ending in `.away` was published."}),
            "waiting": or_null(
                whole(
                    description="How many wait: messages as SQS estimates, or up to 100 held runs; null for a target."
                )
            ),
        }
    ),
    "Backlog": answer(
        {
            "ready": whole(description="Messages that wait for an executor."),
            "delayed": whole(description="Messages that become visible later."),
            "inFlight": whole(description="Messages that an executor is working on."),
        }
    ),
    "LastAudit": answer(
        {
            "at": {**INSTANT, "description": "When the audit ran."},
            "everything": {"type": "boolean"},
            "finished": {"type": "boolean"},
        }
        | {name: whole() for name in admin.COUNTS}
    ),
    "GatewayRefusal": {"type": "object", "properties": {"message": TEXT}},
    "Document": {"type": "object", "required": ["openapi", "info", "paths", "components"]},
    "Problem": answer(_PROBLEM, ("errors", "plan", "current")),
    "ProblemPage": answer(_PROBLEM_PAGE),
    "ProblemPages": page("ProblemPage"),
    "FieldProblem": answer(_FIELD_PROBLEM, ("position",)),
}
