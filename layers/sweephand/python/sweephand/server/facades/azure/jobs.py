"""Jobs of the Azure facade."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sweephand.base import json_text
from sweephand.base.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, Unavailable
from sweephand.base.members import fields
from sweephand.domain.collection import Collection, CollectionState
from sweephand.domain.job import JobDraft, JobState, Payload
from sweephand.domain.jobs.job_state import is_final
from sweephand.formats.azure import job_fields
from sweephand.formats.azure.members import JOB, JOB_BODY, OF_2014
from sweephand.server.facades.azure import bodies, lists
from sweephand.server.facades.azure.context import Context
from sweephand.server.facades.azure.errors import refusal
from sweephand.server.facades.http import Answer
from sweephand.server.flow.idempotency import Once, earlier
from sweephand.server.flow.job_parts.change_log import Operation
from sweephand.server.flow.jobs import change, creation, deletion
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.store.views import jobs as views
from sweephand.server.store.views import totals

TRIES = 5
STATES = {
    "Enabled": JobState.ACTIVE,
    "Disabled": JobState.INACTIVE,
    "Completed": JobState.COMPLETED,
    "Faulted": JobState.FAULTED,
}
"""No job of this facade is ever paused."""
_TIMES = "schedules[0]"
_WORDS = {
    _TIMES: "properties.recurrence",
    "quota maxJobs": "quota maxJobCount",
    "quota.minIntervalSeconds": "quota.maxRecurrence",
}
"""Words of the domain's refusals, and Azure's words for them."""
_PLACES = {"action.": "action.request.", "errorAction.": "action.errorAction.request."}
"""The beginnings of the domain's paths to members of actions, and of Azure's."""
TIMES = ("startTime", "recurrence")
ALL = tuple(JOB.members)
"""Members whose change plans the job again: TIMES by a PATCH, ALL by a PUT."""


def put(ctx: Context) -> Answer:
    """Creates or replaces a job. If it equals the stored one, its plan and counters stay unchanged."""
    named = _named(ctx)
    collection = ctx.collection()
    for _ in range(TRIES):
        entry = ctx.find_job(collection)
        if entry is not None:
            return _change(ctx, collection, entry.job_id, Operation.REPLACE, lambda _: named, ALL)
        try:
            return _create(ctx, collection, named, ctx.parameters["job"])
        except Conflict as refused:
            if refused.code != "NAME_TAKEN":
                raise
    raise Unavailable("too many concurrent changes to this job; try again")


def post(ctx: Context) -> Answer:
    """Creates a job under a generated name (API version of 2014). Repeating the request creates nothing more."""
    if ctx.version != OF_2014:
        return refusal(405, "MethodNotAllowed", f"only the api-version {OF_2014} has this operation: use PUT")
    named = _named(ctx)
    collection = ctx.collection()
    name = ctx.world.chance.new_id(ctx.now)
    return _create(ctx, collection, named, name, ctx.once(f"create {collection.name}"))


def _create(
    ctx: Context, collection: Collection, named: Mapping[str, Any], name: str, once: Once | None = None
) -> Answer:
    wanted = job_fields.read(named, name, collection, ctx.kinds, ctx.now)
    with _in_azures_words(collection):
        made = creation.create_job(ctx.world, ctx.tenant, wanted.draft, once, by=ctx.by(Operation.CREATE))
    return _answer(ctx, collection, made, 201)


def patch(ctx: Context) -> Answer:
    """Changes the members that are sent; objects merge. A job is planned again if its times are among them."""
    named = _named(ctx)
    collection = ctx.collection()
    current = ctx.job(collection)

    def merge(planned: Planned) -> Mapping[str, Any]:
        patched: Mapping[str, Any] = json_text.merged(_properties(planned), named, any_case=True)
        return patched

    return _change(ctx, collection, current.job.id, Operation.PATCH, merge, TIMES)


def _properties(planned: Planned) -> dict[str, Any]:
    """Returns the properties of a job that is not final, with its state: the native API may have switched it."""
    return {**planned.job.attributes["properties"], "state": bodies.state_of(planned)}


def _named(ctx: Context) -> dict[str, Any]:
    """Returns the properties of the body under their own names."""
    body = JOB_BODY.named(ctx.body())
    return JOB.named(fields.required(body, "properties"), "properties")


def _change(
    ctx: Context,
    collection: Collection,
    job_id: str,
    operation: Operation,
    asked: Callable[[Planned], Mapping[str, Any]],
    planning: Sequence[str],
) -> Answer:
    """Changes a job. asked: makes its new properties. planning: the members whose change plans it again."""

    def edit(planned: Planned, _: Mapping[str, Payload]) -> JobDraft:
        job = planned.job
        if is_final(job, planned.schedules):
            raise _is_over(planned)
        wanted = job_fields.read(asked(planned), job.attributes["name"], collection, ctx.kinds, ctx.now, job)
        old, new = (job_fields.filled(each, collection) for each in (_properties(planned), wanted.properties))
        if all(old.get(name) == new.get(name) for name in planning):
            return replace(wanted.draft, schedules=None)
        (schedule,) = wanted.draft.schedules or ()
        return replace(wanted.draft, schedules=(replace(schedule, fresh=True),))

    with _in_azures_words(collection):
        changed = change.change_job(ctx.world, ctx.tenant, job_id, edit, None, ctx.by(operation))
    return _answer(ctx, collection, changed)


@contextmanager
def _in_azures_words(collection: Collection) -> Iterator[None]:
    """Changes refusals from the block to Azure's names for members and for the collection."""
    try:
        yield
    except InvalidRequest as refused:
        if (refused.field or "properties").startswith("properties"):
            raise
        field = (refused.field or "").removeprefix(f"{_TIMES}.")
        if field in {"count", "endTime"}:
            field = f"recurrence.{field}"
        for own, theirs in _PLACES.items():
            if field.startswith(own):
                field = theirs + field.removeprefix(own)
                break
        raise InvalidRequest(f"properties.{field}", refused.reason, code=refused.code) from refused
    except QuotaExceeded as refused:
        reason = refused.reason.replace(collection.name, collection.attributes["name"])
        for own, theirs in _WORDS.items():
            reason = reason.replace(own, theirs)
        raise QuotaExceeded(reason) from refused


def read(ctx: Context) -> Answer:
    collection = ctx.collection()
    return _answer(ctx, collection, ctx.job(collection))


def _answer(ctx: Context, collection: Collection, planned: Planned, status: int = 200) -> Answer:
    (body,) = _bodies(ctx, collection, [planned], in_list=False)
    return Answer(status, body)


def _bodies(ctx: Context, collection: Collection, jobs: Sequence[Planned], *, in_list: bool) -> list[dict[str, Any]]:
    durations = bodies.Client.of(ctx.request.headers.get("user-agent", "")).durations(in_list=in_list)
    schedules = [schedule for each in jobs for schedule in each.schedules]
    progress = totals.progress_of(ctx.world.table, schedules, ctx.now)
    return [bodies.job_body(collection, each, progress, ctx.now, durations) for each in jobs]


def list_all(ctx: Context) -> Answer:
    """Lists the jobs of a collection by name, reading only those of the page in full."""
    wanted = lists.filters_of(ctx, {"state": tuple(STATES)}).get("state")
    end = lists.page_of(ctx).end
    collection = ctx.collection()
    filters = views.Filters(collection=collection.name, state=STATES[wanted] if wanted else None)
    rows = views.listed(ctx.world.table, ctx.tenant, filters, None, end)
    page = lists.page(ctx, (row.job_id for row in rows))
    with_schedules = views.jobs_with_schedules(ctx.world.table, ctx.tenant, page["value"])
    fitting = [Planned(job, tuple(schedules)) for job, schedules in with_schedules if filters.hold_now(job, schedules)]
    return Answer(200, {**page, "value": _bodies(ctx, collection, fitting, in_list=True)})


def delete(ctx: Context) -> Answer:
    deletion.delete_job(ctx.world, ctx.tenant, ctx.job(ctx.collection()).job.id, None, by=ctx.by())
    return Answer(200)


def run(ctx: Context) -> Answer:
    """Starts the job now, even if it is disabled. Repeating the request starts nothing more."""
    collection = ctx.collection()
    planned = ctx.job(collection)
    if not planned.schedules:
        raise NotFound(f"the job {ctx.parameters['job']} does not exist")
    job = planned.job
    once = ctx.once(f"run {job.id}")
    if collection.state is not CollectionState.ENABLED:
        if once is not None and earlier(ctx.world, ctx.tenant, once) is not None:
            return Answer(200)
        raise Conflict("the job collection is disabled: enable it first")
    try:
        manual.run_now(ctx.world, ctx.tenant, job.id, planned.schedules[0].id, once)
    except Conflict as refused:
        raise _is_over(ctx.job(collection)) from refused
    return Answer(200)


def _is_over(planned: Planned) -> Conflict:
    return Conflict(f"the job is {bodies.state_of(planned)}, which is final: it can only be read or deleted")
