"""The pages that the `type` of a problem leads to: its cause and its cure. Open to all, because they tell no secret."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from sweephand.errors import NotFound
from sweephand.facades.http import Answer
from sweephand.facades.native.context import Context
from sweephand.facades.native.problems import STATUS, type_of

HTML = "text/html; charset=utf-8"
CAUSES: Mapping[str, tuple[str, str]] = {
    "INVALID_JSON": (
        "The body is missing, is not JSON in UTF-8, names a member twice, or is nested too deep.",
        "Send one JSON value. `errors[0].position` counts the characters up to the place.",
    ),
    "INVALID_QUERY": (
        "A path, a query parameter or a header is unknown here, is given twice, or breaks its rule.",
        "`errors[0].field` names it and `reason` says what to write. Parameters that a path does not know are refused.",
    ),
    "INVALID_CURSOR": (
        "The cursor belongs to another list or another query, or was changed on its way.",
        "Send `nextCursor` of the page before, with the same query, or begin without a cursor.",
    ),
    "UNAUTHENTICATED": (
        "The request shows no identity, or one that is wrong, deleted or expired.",
        "Send a client id and its secret as `Basic`, or a token of `POST /oauth/token` as `Bearer`.",
    ),
    "SCOPE_MISSING": (
        "The credential is known, but it may not do this.",
        "`detail` names the scope. Use a credential that has it, or ask an administrator for one.",
    ),
    "TENANT_DISABLED": (
        "The provider has disabled the tenant of this credential, or is deleting it.",
        "Only the provider can enable it: `POST /v1/tenants/{tenant}/enable`.",
    ),
    "NOT_FOUND": (
        "There is no such thing, or it belongs to another tenant: the two look alike.",
        "Check the id and the tenant. Paths name ids; `GET /v1/jobs?name=` finds a job by its name.",
    ),
    "METHOD_NOT_ALLOWED": (
        "The path exists, but it has no such method.",
        "The header `Allow` lists its methods.",
    ),
    "NAME_TAKEN": (
        "Something else of the same kind has this name already.",
        "Choose another name, or change what is there with PUT or PATCH.",
    ),
    "QUOTA_EXCEEDED": (
        "A limit of the collection or the tenant forbids it.",
        "`detail` names the limit. Delete what is not needed, or raise the `quota` of the collection or the tenant.",
    ),
    "STATE_CONFLICT": (
        "The state of what is there forbids it, such as a collection that still has jobs, or a run that has ended.",
        "`detail` says which state it is. Read it again, and act on the state as it is now.",
    ),
    "RESULT_CONFLICT": (
        "Another result of this run was recorded first. The first one counts.",
        "Do nothing: the later result is kept in the notes of the run.",
    ),
    "LEASE_LOST": (
        "The worker does not hold the run any more: its lease ran out without a heartbeat, or the run has ended.",
        "Stop the task and leave its message alone. If the run goes on, its next delivery takes it over.",
    ),
    "TOO_MANY_DELETES": (
        "The list leaves out more jobs of its set than changes usually delete: over 10, and over a fifth of the set.",
        (
            "`plan` lists them. If they must go, send `allowDeletes` with their number (`allow_deletes` of `Worker` and"
            " of `JobScheduler.start`, `--allow-deletes` of the command); else add them to the list again."
        ),
    ),
    "CONSUMER_TAKEN": (
        "Another process holds the lease of this consumer. Two at a time would both get what was missed.",
        "Wait until `leaseUntil`, or end the other process; it gives the lease back with `DELETE`.",
    ),
    "LEASE_OVER": (
        "Nobody holds the lease of this consumer any more: its last heartbeat is too long ago.",
        "Take it again with `PUT /v1/consumers/{name}/lease`, then start. Nothing is lost: events are held meanwhile.",
    ),
    "FACADE_LIMIT": (
        "The job was made through another API, which could not show it after this change.",
        "Change it through the API that made it, or keep to what that API knows.",
    ),
    "REVISION_MISMATCH": (
        "Somebody changed it after it was read: `If-Match` names an older revision.",
        "Read it again, apply the change to what is there now, and send the new ETag in `If-Match`.",
    ),
    "COUNT_MISMATCH": (
        "More or fewer things would be affected than `expectedCount` says.",
        "Ask with `dryRun` how many there are now, and send that number.",
    ),
    "PLAN_STALE": (
        "Somebody changed a job of the set, or the list is another one than when the plan was made.",
        "`plan` is the new plan. Look at it, and send its `token`.",
    ),
    "TOO_LARGE": (
        "The body is larger than this API takes.",
        "Send less at once: fewer schedules, or a smaller payload.",
    ),
    "NOT_JSON": (
        "The Content-Type is not JSON, or the body is compressed.",
        "Send `Content-Type: application/json` and no `Content-Encoding`.",
    ),
    "INVALID_FIELD": (
        "A member of the body has a wrong type or value, or has no effect next to the others.",
        "`errors` lists every such member with the reason and what to write instead.",
    ),
    "UNKNOWN_MEMBER": (
        "The body has a member that nobody reads here. It is refused, so that a typing error is not lost.",
        "`errors` names it, and the member that was probably meant.",
    ),
    "NEVER_FIRES": (
        "The schedule has no occurrence: its rule, its calendars and its window leave none.",
        "Try it with `POST /v1/schedules:preview`, or widen `startTime` and `endTime`.",
    ),
    "KEY_REUSED": (
        "The `Idempotency-Key` was sent with another request in the last 24 hours.",
        "Use a new key for a new request, and the same body for a repetition.",
    ),
    "RATE_LIMITED": (
        "Too many requests came in too short a time.",
        "Wait as many seconds as `Retry-After` says, then send the request again.",
    ),
    "UNAVAILABLE": (
        "Something that this service needs did not answer in time, or the answer would be too large.",
        "Send the request again after `Retry-After` seconds, with the same `Idempotency-Key`; ask for smaller pages.",
    ),
    "INTERNAL": (
        "A fault of this service.",
        "Send the request again. If it fails again, give the operator its `requestId`.",
    ),
}
"""The cause and the cure by code."""
_CODES = {type_of(code).rpartition("/")[2]: code for code in STATUS}
_STYLE = "body{font:16px/1.5 sans-serif;max-width:42em;margin:2em auto;padding:0 1em}code{background:#eee}"


def list_problems(ctx: Context) -> Answer:
    """Lists all problems, as a page for browsers, else as JSON."""
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
