"""The pages for the `type` of problems, with cause and cure. They are open to all, because they contain no secret."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from sweephand.base.errors import NotFound
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.problems import STATUS, type_of

HTML = "text/html; charset=utf-8"
CAUSES: Mapping[str, tuple[str, str]] = {
    "INVALID_JSON": (
        "The body is missing, is not JSON in UTF-8, names a member twice, or is nested too deeply.",
        "Send one JSON value. `errors[0].position` is the index of the character in question.",
    ),
    "INVALID_QUERY": (
        "A part of the path, a query parameter or a header is unknown, is given twice, or has an invalid value.",
        "`errors[0].field` names it, and `reason` says what to write.",
    ),
    "INVALID_CURSOR": (
        "The cursor belongs to another list or another query, or was changed.",
        "Send `nextCursor` of the previous page, with the same query, or start without a cursor.",
    ),
    "UNAUTHENTICATED": (
        "The request has no credential, or one that is wrong, deleted or expired.",
        "Send a client id and its secret as `Basic`, or a token from `POST /oauth/token` as `Bearer`.",
    ),
    "SCOPE_MISSING": (
        "The credential is valid, but it does not allow this request.",
        "`detail` names the scope. Use a credential that has it, or ask an administrator for one.",
    ),
    "TENANT_DISABLED": (
        "The provider has disabled the tenant of this credential, or is deleting it.",
        "Only the provider can enable it: `POST /v1/tenants/{tenant}/enable`.",
    ),
    "NOT_FOUND": (
        "The resource does not exist, or it belongs to another tenant. The answer is the same for both.",
        "Check the id and the tenant. Paths contain ids; `GET /v1/jobs?name=` finds a job by its name.",
    ),
    "METHOD_NOT_ALLOWED": (
        "The path exists, but it does not support this method.",
        "Use one of the methods that the header `Allow` lists.",
    ),
    "NAME_TAKEN": (
        "Another resource of the same kind already has this name.",
        "Choose another name, or change the existing resource with PUT or PATCH.",
    ),
    "QUOTA_EXCEEDED": (
        "The request would exceed a limit of the collection or the tenant.",
        "`detail` names the limit. Delete what is not needed, or raise the `quota` of the collection or the tenant.",
    ),
    "STATE_CONFLICT": (
        "The state of the resource forbids it, such as a collection that still has jobs, or a run that has ended.",
        "`detail` names the state. Read the resource again, and act on its current state.",
    ),
    "RESULT_CONFLICT": (
        "Another result of this run was recorded first. The first one counts.",
        "Do nothing: the later result is kept in the notes of the run.",
    ),
    "LEASE_LOST": (
        (
            "The worker no longer holds the run: its lease ended without a heartbeat, the run has ended, or it never"
            " claimed this attempt."
        ),
        "Stop the task and leave its message alone. If the run is still open, the next delivery takes it over.",
    ),
    "TOO_MANY_DELETES": (
        "The list would delete unusually many jobs of its set: more than 10, and more than a fifth of the set.",
        (
            "`plan` lists them. To delete them, send `allowDeletes` with their number (`allow_deletes` of `Worker` and"
            " of `JobScheduler.start`, `--allow-deletes` of the command). Otherwise, add them to the list again."
        ),
    ),
    "CONSUMER_TAKEN": (
        "Another process holds the lease of this consumer. Two holders would both get the missed events.",
        "Wait until `leaseUntil`, or end the other process, which releases the lease with `DELETE`.",
    ),
    "LEASE_OVER": (
        "The lease of this consumer has ended, because its last heartbeat was too long ago.",
        "Take it again with `PUT /v1/consumers/{name}/lease`, then start. Nothing is lost: events are held until then.",
    ),
    "FACADE_LIMIT": (
        "The job was created with another API, which could not show it after this change.",
        "Change it with the API that created it, or use only what that API supports.",
    ),
    "REVISION_MISMATCH": (
        "The resource was changed after it was read: `If-Match` names an older revision.",
        "Read it again, apply the change to the current state, and send the new ETag in `If-Match`.",
    ),
    "COUNT_MISMATCH": (
        "The request would affect more or fewer resources than `expectedCount` says.",
        "Use `dryRun` to get the current number, and send that number.",
    ),
    "PLAN_STALE": (
        "A job of the set was changed, or the list differs from the one in the plan.",
        "`plan` is the new plan. Check it, and send its `token`.",
    ),
    "TOO_LARGE": (
        "The body is larger than this API accepts.",
        "Send less at once: fewer schedules, or a smaller payload.",
    ),
    "NOT_JSON": (
        "The Content-Type is not JSON, or the body is compressed.",
        "Send `Content-Type: application/json` and no `Content-Encoding`.",
    ),
    "INVALID_FIELD": (
        "A member of the body has an invalid type or value, or has no effect in combination with the others.",
        "Correct the members that `errors` lists, each with a reason and what to write instead.",
    ),
    "UNKNOWN_MEMBER": (
        "The body has an unknown member. It is rejected, so that typing errors are noticed.",
        "Correct or remove it: `errors` names it, and the member that you probably meant.",
    ),
    "NEVER_FIRES": (
        "The schedule has no occurrence: its rule, calendars and window exclude every time.",
        "Change its rule, calendars or window. `POST /v1/schedules:preview` shows the result.",
    ),
    "KEY_REUSED": (
        "The `Idempotency-Key` was sent with another request in the last 24 hours.",
        "Use a new key for a new request, and the same body for a repeated one.",
    ),
    "RATE_LIMITED": (
        "There were too many requests in a short time.",
        "Wait for the number of seconds in `Retry-After`, then send the request again.",
    ),
    "UNAVAILABLE": (
        "A service that this one depends on did not answer in time, or the answer would be too large.",
        "Send the request again after `Retry-After` seconds, with the same `Idempotency-Key`; request smaller pages.",
    ),
    "INTERNAL": (
        "An error occurred in this service.",
        "Send the request again. If it fails again, give the operator its `requestId`.",
    ),
}
"""The cause and the cure, by code."""
_CODES = {type_of(code).rpartition("/")[2]: code for code in STATUS}
_STYLE = "body{font:16px/1.5 sans-serif;max-width:42em;margin:2em auto;padding:0 1em}code{background:#eee}"


def list_problems(ctx: Context) -> Answer:
    """Lists all problems, as a page for browsers and as JSON for others."""
    pages = [_page(code) for code in STATUS]
    if not _wants_html(ctx):
        return Answer(200, {"items": pages, "nextCursor": None})
    rows = "".join(f'<li><a href="{page["type"]}">{page["code"]}</a>: {escape(page["title"])}</li>' for page in pages)
    return _html("Problems of the Sweephand API", f"<ul>{rows}</ul>")


def read_problem(ctx: Context) -> Answer:
    code = _CODES.get(ctx.parameters["problem"].lower())
    if code is None:
        raise NotFound("no such problem: /problems lists them")
    page = _page(code)
    if not _wants_html(ctx):
        return Answer(200, page)
    texts = "".join(f"<h2>{name.title()}</h2><p>{_marked(page[name])}</p>" for name in ("cause", "cure"))
    about = f"<p><code>{code}</code>, status {page['status']}</p>"
    return _html(page["title"], f'{about}{texts}<p><a href="/problems">All problems</a></p>')


def _page(code: str) -> dict[str, Any]:
    (status, title), (cause, cure) = STATUS[code], CAUSES[code]
    return {"type": type_of(code), "title": title, "status": status, "code": code, "cause": cause, "cure": cure}


def _wants_html(ctx: Context) -> bool:
    return "text/html" in ctx.request.headers.get("accept", "").lower()


def _html(title: str, content: str) -> Answer:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    text = f'<!doctype html><html lang="en"><head>{head}</head><body><h1>{escape(title)}</h1>{content}</body></html>\n'
    return Answer(200, raw=text, media_type=HTML)


def _marked(text: str) -> str:
    """Marks up `code` in backticks."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if n % 2 else piece for n, piece in enumerate(pieces))
