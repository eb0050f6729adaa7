"""Jobs of the native API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import Conflict, InvalidRequest, NotFound, PreconditionFailed, Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.domain.instants import text
from sweephand.domain.job import DEFAULT_COLLECTION, TASK_KINDS, Job, JobDraft, Pause, by_owner
from sweephand.domain.occurrences import upcoming
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import TASKS, Context, helpful
from sweephand.server.facades.native.jobs.answers import INCLUDES, as_held, changed, whole
from sweephand.server.facades.native.members import job_members
from sweephand.server.facades.native.members.defaults import waits_of
from sweephand.server.facades.native.shared import collection_members
from sweephand.server.flow.idempotency import Once, earlier
from sweephand.server.flow.job_parts.change_log import Operation
from sweephand.server.flow.jobs import change, creation, deletion, lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.tenants import tenancy

if TYPE_CHECKING:
    from sweephand.domain.collection import Home
    from sweephand.server.facades.native.members.stored_hooks import StoredHooks

with lazy():
    from sweephand.server.facades.native.jobs import own_hooks, tasks
    from sweephand.server.facades.native.members import idle, run_edits
    from sweephand.server.facades.native.shared import facade_limits

LONGEST_NAME = 128
NAMED_TRIES = 5


def create(ctx: Context) -> Answer:
    once = ctx.once()
    body = ctx.body()
    if once is not None and (job_id := earlier(ctx.world, ctx.tenant, once)) is not None:
        return _created(ctx, lookup.find(ctx.world, ctx.tenant, job_id), fresh=False)
    with helpful(body, ctx.now):
        planned = _make(ctx, body, once)
    return _created(ctx, planned, fresh=True)


def _make(ctx: Context, body: Any, once: Once | None = None) -> Planned:
    homes: dict[str, Home] = {}
    draft = new_draft(ctx, filled(ctx, body, homes))
    by, home = ctx.by(Operation.CREATE), homes.get(draft.collection)
    return creation.create_job(ctx.world, ctx.tenant, draft, once, by, home=home)


def new_draft(ctx: Context, body: Any) -> JobDraft:
    """Returns the requested new job. Raises Forbidden if the caller may not request it."""
    draft = job_members.job_draft(body, ctx.guard)
    _require_scope(ctx, draft)
    _check_hooks(ctx, draft)
    return draft


def _require_scope(ctx: Context, draft: JobDraft, before: Job | None = None, stored: Any = None) -> None:
    """Raises Forbidden without the scope for jobs that run tasks, before or after the change."""
    kinds = {action.kind for action in by_owner(draft.action, draft.error_action, draft.hooks).values()}
    if before is not None:
        kinds |= {action.kind for action in by_owner(before.action, before.error_action, before.hooks).values()}
    if kinds & TASK_KINDS:
        tasks.require_scope(ctx, draft, before, stored)


def filled(ctx: Context, body: Any, known: dict[str, Home] | None = None) -> Any:
    """Fills in the defaults of the collection. An unknown collection is refused later, under its field.

    known: what this request has read, by collection.
    """
    if not isinstance(body, dict):
        return body
    name = DEFAULT_COLLECTION if body.get("collection") is None else body["collection"]
    if not isinstance(name, str) or not shapes.is_plain(name):
        return body
    known = {} if known is None else known
    if name not in known:
        known[name] = tenancy.home_of(ctx.world, ctx.tenant, name)
    return collection_members.with_defaults(body, known[name].defaults)


def _created(ctx: Context, planned: Planned, *, fresh: bool) -> Answer:
    answer = whole(ctx, planned, fresh=fresh, include=INCLUDES)
    return Answer(201, answer.body, {**answer.headers, "Location": f"/v1/jobs/{planned.job.id}"})


def read(ctx: Context) -> Answer:
    include = ctx.include(INCLUDES)
    answer = whole(ctx, lookup.find(ctx.world, ctx.tenant, ctx.id("job")), include=include)
    if answer.too_large:
        raise InvalidRequest("include", "the job is too large with its schedules: list them", code="INVALID_QUERY")
    return answer


def put(ctx: Context) -> Answer:
    body = ctx.body()

    def edit(planned: Planned, stored: Any) -> JobDraft:
        draft = changed_draft(ctx, body, planned, stored)
        return draft if draft.name else replace(draft, name=planned.job.name)

    with helpful(body, ctx.now):
        return _change(ctx, edit, Operation.REPLACE)


def put_named_job(ctx: Context) -> Answer:
    """Creates the job with this name in this collection, or replaces it. The same request again changes nothing."""
    name, collection = ctx.text("name", LONGEST_NAME), ctx.text("collection", LONGEST_NAME) or DEFAULT_COLLECTION
    assert name is not None
    ctx.if_match()  # before the first read: a wrong header is refused for a new name too
    body = ctx.body()
    if isinstance(body, dict):
        body = with_names({"schedules": [], **_as_in_query(body, {"name": name, "collection": collection})})
    with helpful(body, ctx.now):
        for _ in range(NAMED_TRIES):
            named = lookup.named(ctx.world, ctx.tenant, collection, name)
            try:
                return _create_named(ctx, body) if named is None else _replace_named(ctx, body, named)
            except (Conflict, NotFound) as moved:
                if moved.code not in {"NAME_TAKEN", "NOT_FOUND"}:
                    raise
    raise Unavailable("too many concurrent changes to the job with this name; try again")


def _as_in_query(body: Mapping[str, Any], query: Mapping[str, str]) -> dict[str, Any]:
    """Returns the body with the members that the query has. Raises InvalidRequest if it has others."""
    for member, value in query.items():
        if body.get(member) is not None and body[member] != value:
            reason = f"must be {fields.shown(value)} as in the query, not {fields.shown(body[member])}"
            raise InvalidRequest(member, reason)
    return {**body, **query}


def _create_named(ctx: Context, body: Any) -> Answer:
    if "if-match" in ctx.request.headers:
        raise PreconditionFailed("no job has this name: to create it, leave out If-Match")
    return _created(ctx, _make(ctx, body), fresh=True)


def _replace_named(ctx: Context, body: Any, job_id: str) -> Answer:
    if isinstance(body, dict):
        job_members.check_settable(body)
    wanted = filled(ctx, body)
    return _change(ctx, lambda planned, stored: changed_draft(ctx, wanted, planned, stored), Operation.REPLACE, job_id)


def with_names(body: Mapping[str, Any]) -> dict[str, Any]:
    """Names schedules without a name after their position, so that later changes find them."""
    schedules = body["schedules"]
    if not isinstance(schedules, list):
        return dict(body)
    named = [
        {**each, "name": f"schedule-{n}" if each.get("name") is None else each["name"]}
        if isinstance(each, dict)
        else each
        for n, each in enumerate(schedules, start=1)
    ]
    return {**body, "schedules": named}


def patch(ctx: Context) -> Answer:
    body = ctx.merge_patch("job")

    def edit(planned: Planned, stored: Any) -> JobDraft:
        if "pause" in body and body["pause"] != job_members.pause_body(planned.job):
            # Only answers have it. A caller may try to set it, and ignoring it would look like success.
            raise InvalidRequest("pause", "is set by POST /v1/jobs/{job}/pause and /resume")
        current = job_members.editable(planned.job, stored)
        return changed_draft(ctx, idle.patched(current, body), planned, stored)

    with helpful(body, ctx.now):
        return _change(ctx, edit, Operation.PATCH)


def changed_draft(ctx: Context, body: Any, planned: Planned, stored: Any) -> JobDraft:
    """Returns the requested job. Raises Forbidden if the caller may not request it."""
    facade_limits.check_job(planned.job)
    hooks = None
    if isinstance(body, dict) and body.get("schedules") and any(each.hooks for each in planned.schedules):
        hooks = own_hooks.stored_hooks(ctx, planned.job, planned.schedules)
    draft = job_members.job_draft(body, ctx.guard, planned.job, hooks, waits_of(ctx, planned.job))
    _require_scope(ctx, draft, planned.job, stored)
    _check_hooks(ctx, draft, hooks)
    return draft


def _check_hooks(ctx: Context, draft: JobDraft, hooks: StoredHooks | None = None) -> None:
    """Checks the own hooks of the schedules."""
    if hooks is not None or any(each.hooks for each in draft.schedules or ()):
        own_hooks.check(ctx, draft.schedules or (), hooks)


def _change(ctx: Context, edit: change.Edit, operation: Operation, job_id: str | None = None) -> Answer:
    """Changes a job. job_id: None for that of the path."""
    by, job_id = ctx.by(operation), job_id or ctx.id("job")
    return changed(ctx, change.change_job(ctx.world, ctx.tenant, job_id, edit, ctx.if_match(), by))


def delete(ctx: Context) -> Answer:
    deletion.delete_job(ctx.world, ctx.tenant, ctx.id("job"), ctx.if_match(), by=ctx.by())
    return Answer(204)


def run(ctx: Context) -> Answer:
    """Starts a run. `runId` and `Location` name the new run or, with ifActive `drop`, the active one."""
    schedule, if_active, kind, edits = shapes.run(ctx.body())
    edit = run_edits.read(edits, tasks=ctx.allows(TASKS))
    asked = ctx.world, ctx.tenant, ctx.id("job"), schedule, ctx.once(), ctx.hop()
    answered = manual.run_now(*asked, edit=edit, unless_active=if_active == "drop", kind=kind)
    members = {"runId": answered.run_id, "started": answered.started}
    return Answer(202, members, {"Location": f"/v1/runs/{answered.run_id}"})


def pause(ctx: Context) -> Answer:
    note, until = shapes.pause(ctx.body())
    now = ctx.now
    if until is not None and until <= now:
        raise InvalidRequest("until", "must be in the future")

    def edit(job: Job) -> Job:
        facade_limits.check_job(job)
        return replace(job, pause=Pause(since=job.pause.since if job.pause else now, note=note, until=until))

    return _set(ctx, edit, Operation.PAUSE)


def resume(ctx: Context) -> Answer:
    ctx.no_members()
    return _set(ctx, lambda job: replace(job, pause=None), Operation.RESUME)


def activate(ctx: Context) -> Answer:
    ctx.no_members()
    return _set(ctx, lambda job: replace(job, active=True), Operation.ACTIVATE)


def deactivate(ctx: Context) -> Answer:
    ctx.no_members()
    return _set(ctx, lambda job: replace(job, active=False), Operation.DEACTIVATE)


def _set(ctx: Context, edit: Callable[[Job], Job], operation: Operation) -> Answer:
    by = ctx.by(operation)
    return changed(ctx, change.set_state(ctx.world, ctx.tenant, ctx.id("job"), edit, ctx.if_match(), by))


def next_run(ctx: Context) -> Answer:
    """Returns the job's next instant and its schedule."""
    planned, _ = as_held(ctx, lookup.find(ctx.world, ctx.tenant, ctx.id("job")))
    ahead, schedule = upcoming.next_of_job(planned.schedules, ctx.now)
    shown = {"nextRunAt": ahead.first and text(ahead.first), "scheduleId": schedule and schedule.id}
    return Answer(200, {**shown, "nextRunExact": ahead.exact})
