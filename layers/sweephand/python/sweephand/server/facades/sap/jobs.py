"""Jobs of the SAP facade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sweephand.base.errors import Conflict, InvalidRequest, NotFound
from sweephand.domain.collection import Collection, Retention
from sweephand.domain.job import JobDraft, Payload, ScheduleDraft
from sweephand.formats.sap import bodies, fields
from sweephand.formats.sap.fields import COLLECTION, FACADE
from sweephand.schedules.rule import of_answer
from sweephand.server.facades.http import Answer
from sweephand.server.facades.sap import job_list
from sweephand.server.facades.sap.context import Context
from sweephand.server.facades.sap.pages import envelope, page_of
from sweephand.server.facades.sap.schedule_edits import edited
from sweephand.server.flow.job_parts.change_log import Operation
from sweephand.server.flow.jobs import change, creation, deletion, drafts, lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.views import jobs as views

OK = {"success": True}
TRIES = 5
RETENTION = Retention(run_days=15, ended_job_days=0)
"""Run logs are deleted after 15 days. A job stays until a caller deletes it."""


def create(ctx: Context) -> Answer:
    draft = fields.new_job(ctx.body(), ctx.kinds, ctx.now)
    return _created(ctx, _create(ctx, ctx.existing_tenant(), draft))


def _create(ctx: Context, tenant: str, draft: JobDraft) -> Planned:
    """Creates a job. The first job of a tenant creates its collection."""
    wanted, by = replace(draft, ordinal=ctx.ordinals.give(tenant)), ctx.by(Operation.CREATE)
    try:
        try:
            return creation.create_job(ctx.world, tenant, wanted, by=by, most=change.SCHEDULES_MOST)
        except InvalidRequest as refused:
            if refused.field != "collection":
                raise
            make_collection(ctx, tenant)
            return creation.create_job(ctx.world, tenant, wanted, by=by, most=change.SCHEDULES_MOST)
    except Conflict as refused:
        if refused.code == "NAME_TAKEN":
            raise _name_taken(draft.name) from refused
        raise


def make_collection(ctx: Context, tenant: str) -> None:
    try:
        tenancy.create_collection(ctx.world, Collection(tenant, COLLECTION, retention=RETENTION))
    except Conflict:
        return  # another request has created it


def _created(ctx: Context, planned: Planned) -> Answer:
    return Answer(201, _with_schedules(ctx, planned), {"Location": f"/scheduler/jobs/{planned.job.integer_id}"})


def _with_schedules(ctx: Context, planned: Planned) -> dict[str, object]:
    return bodies.job_fields(planned.job) | {"schedules": schedule_bodies(ctx, planned)}


def schedule_bodies(ctx: Context, planned: Planned) -> list[dict[str, object]]:
    payloads = lookup.payloads_of(ctx.world, planned)
    schedules = lookup.with_current_calendars(ctx.world, planned.schedules)
    with of_answer():
        return [bodies.schedule_body(each, payloads.get(each.id), ctx.now) for each in schedules]


def list_all(ctx: Context) -> Answer:
    """Lists jobs. With `jobId` or `name`, returns that job."""
    if asks_for_one(ctx):
        return _one_of_the_list(ctx)
    page = page_of(ctx.query)
    total, listed = job_list.listed(ctx, page)
    return Answer(200, envelope("/scheduler/jobs", page, total, listed))


def asks_for_one(ctx: Context) -> bool:
    """Returns whether a request for the list asks for a single job."""
    return ctx.option("jobId") is not None or ctx.option("name") is not None


def _one_of_the_list(ctx: Context) -> Answer:
    """Returns one job. Raises InvalidRequest if a page is requested, or if id and name belong to different jobs."""
    if ctx.option("page_size") is not None or ctx.option("offset") is not None:
        raise InvalidRequest(None, "Invalid query")
    integer, name = ctx.option("jobId"), ctx.option("name")
    planned = ctx.find(integer) if integer is not None else find_named(ctx, name or "")
    if planned is None:
        raise NotFound("Job Not Found")
    if name is not None and planned.job.name != name:
        raise InvalidRequest(None, "Invalid query")
    return _read(ctx, planned)


def find_named(ctx: Context, name: str) -> Planned | None:
    """Finds a job by name among the caller's; a caller of provider level may name a tenant."""
    if len(name) > fields.LONGEST_NAME:
        return None
    tenant = ctx.target_tenant
    filters = views.Filters(collection=COLLECTION, name=name)
    row = next(iter(views.listed(ctx.world.table, tenant, filters, None, 1)), None)
    if row is None:
        return None
    try:
        planned = lookup.find(ctx.world, tenant, row.job_id)
    except NotFound:
        return None
    return planned if planned.job.facade == FACADE else None


def read(ctx: Context) -> Answer:
    return _read(ctx, ctx.find())


def _read(ctx: Context, planned: Planned) -> Answer:
    body = bodies.job_body(planned.job)
    if ctx.flag("displaySchedules", usual=False):
        body["schedules"] = schedule_bodies(ctx, planned)
    return Answer(200, body)


def put(ctx: Context) -> Answer:
    """Changes the sent members of a job by id, or creates or replaces a job by name."""
    if ctx.parameters["job"].isdecimal():
        return _update(ctx)
    return _upsert(ctx, ctx.parameters["job"])


def _update(ctx: Context) -> Answer:
    planned, body = ctx.find(), ctx.body()

    def edit(current: Planned, stored: Mapping[str, Payload]) -> JobDraft:
        def changed(members: Mapping[str, Any], action: fields.Target, end: datetime | None) -> ScheduleDraft | None:
            before = next((each for each in current.schedules if each.id == members.get("scheduleId")), None)
            if before is None:
                return None
            payload = stored.get(before.id)
            job = replace(current.job, end_at=end)
            return edited(job, before, payload, members, action, ctx.kinds, ctx.world, within_job=True)

        as_stored = drafts.job_as_stored(current.job, stored, ctx.guard)
        return fields.changed_job(body, current.job, as_stored, ctx.kinds, ctx.now, changed)

    job = planned.job
    try:
        change.change_job(ctx.world, job.tenant, job.id, edit, None, ctx.by(Operation.PATCH))
    except Conflict as refused:
        if refused.code != "NAME_TAKEN":
            raise
        raise _name_taken(body["name"]) from refused
    return Answer(200, OK)


def _name_taken(name: str | None) -> Conflict:
    """Returns the error without the collection, which SAP's API does not have."""
    return Conflict(f"a job with the name {name} exists", code="NAME_TAKEN")


def _upsert(ctx: Context, name: str) -> Answer:
    body = ctx.body()
    current = find_named(ctx, name)
    draft = fields.new_job(body, ctx.kinds, ctx.now, current.job if current else None)
    if draft.name != name:
        raise InvalidRequest(None, "the name in the path and the name of the job differ")
    tenant = ctx.existing_tenant()
    for _ in range(TRIES):
        if current is not None:
            by = ctx.by(Operation.REPLACE)

            def edit(planned: Planned, _: Mapping[str, Payload]) -> JobDraft:
                return fields.new_job(body, ctx.kinds, ctx.now, planned.job)

            replaced = change.change_job(ctx.world, current.job.tenant, current.job.id, edit, None, by)
            return Answer(200, _with_schedules(ctx, replaced))
        try:
            return _created(ctx, _create(ctx, tenant, draft))
        except Conflict as refused:
            if refused.code != "NAME_TAKEN":
                raise
        current = find_named(ctx, name)
    raise Conflict(f"too many concurrent changes to the job {name}; try again")


def delete(ctx: Context) -> Answer:
    job = ctx.find_job()
    deletion.delete_job(ctx.world, job.tenant, job.id, None, by=ctx.by())
    return Answer(200, OK)


def count(ctx: Context) -> Answer:
    """Returns how many jobs are active and how many are not, from the counts of the directory's blocks."""
    active, live = job_list.counted(ctx)
    return Answer(200, {"active": active, "inactive": live - active})
