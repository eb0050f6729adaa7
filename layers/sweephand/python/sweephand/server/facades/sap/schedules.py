"""Schedules of the SAP facade."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sweephand.base.errors import InvalidRequest
from sweephand.domain.job import ScheduleDraft
from sweephand.domain.schedule import Schedule
from sweephand.formats.sap import bodies, fields
from sweephand.server.facades.http import Answer
from sweephand.server.facades.sap import runs
from sweephand.server.facades.sap import schedule_edits as one_time
from sweephand.server.facades.sap.context import Context
from sweephand.server.facades.sap.jobs import OK, schedule_bodies
from sweephand.server.facades.sap.pages import envelope, page_of
from sweephand.server.facades.sap.schedule_edits import edited
from sweephand.server.flow.job_parts.change_log import Operation
from sweephand.server.flow.jobs import change, drafts, lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest

MOST_LOGS = 200


def create(ctx: Context) -> Answer:
    planned, body = ctx.find(), ctx.body()
    known: list[str] = []

    def request(current: Planned) -> list[ScheduleRequest]:
        known[:] = [each.id for each in current.schedules]
        return [ScheduleRequest(None, fields.new_schedule(body, current.job.action, ctx.kinds, ctx.now))]

    after = _commit(ctx, planned, request, Operation.ADD_SCHEDULE)
    new = next(each for each in after.schedules if each.id not in known)
    where = f"/scheduler/jobs/{after.job.integer_id}/schedules/{new.id}"
    return Answer(201, _answer_body(ctx, after, new.id), {"Location": where})


def list_all(ctx: Context) -> Answer:
    planned = ctx.find()
    page = page_of(ctx.query, usual=None)
    some = planned.schedules[page.offset : page.end(len(planned.schedules))]
    shown = schedule_bodies(ctx, Planned(planned.job, some))
    where = f"/scheduler/jobs/{planned.job.integer_id}/schedules"
    return Answer(200, envelope(where, page, len(planned.schedules), shown))


def delete_all(ctx: Context) -> Answer:
    def request(planned: Planned) -> list[ScheduleRequest]:
        return [ScheduleRequest(each, None, delete=True) for each in planned.schedules]

    _commit(ctx, ctx.find(), request, Operation.DELETE_SCHEDULE)
    return Answer(200, OK)


def switch_all(ctx: Context) -> Answer:
    body = ctx.body()
    if not isinstance(body, dict) or "activationStatus" not in body:
        raise InvalidRequest("activationStatus", "is required")
    on = fields.flag(body["activationStatus"], "activationStatus")

    def request(current: Planned) -> list[ScheduleRequest]:
        stored = _stored(ctx, current, current.schedules)
        switched = [
            (each, replace(draft, active=on))
            for each, draft in zip(current.schedules, stored, strict=True)
            if bodies.is_active(each) is not on or (on and one_time.is_used_up(each, ctx.world))
        ]
        if on:
            switched = _that_can_run(ctx, current, switched)
        members = {"active": on}
        return [
            ScheduleRequest(each, one_time.as_sent(members, each, wanted, current.job, ctx.now, ctx.world))
            for each, wanted in switched
        ]

    operation = Operation.ACTIVATE_SCHEDULE if on else Operation.DEACTIVATE_SCHEDULE
    _commit(ctx, ctx.find(), request, operation)
    return Answer(200, OK)


def _that_can_run(
    ctx: Context, current: Planned, switched: list[tuple[Schedule, ScheduleDraft]]
) -> list[tuple[Schedule, ScheduleDraft]]:
    """Returns the schedules to switch on that can run. Raises InvalidRequest if none of the job's schedules can."""
    can = [pair for pair in switched if one_time.can_run(*pair, current.job, ctx.now)]
    if switched and not can and len(switched) == len(current.schedules):
        reason = "cannot be true: no schedule has a date left, or its endTime or that of its job is past"
        raise InvalidRequest("activationStatus", reason)
    return can


def read(ctx: Context) -> Answer:
    planned = ctx.find()
    schedule = ctx.find_schedule(planned)
    body = _body(ctx, planned, schedule.id)
    if ctx.flag("displayLogs", usual=False):
        body["logs"] = runs.logs(ctx, schedule, MOST_LOGS)
    return Answer(200, body)


def put(ctx: Context) -> Answer:
    planned, body = ctx.find(), ctx.body()
    schedule_id = ctx.find_schedule(planned).id

    def request(current: Planned) -> list[ScheduleRequest]:
        before = lookup.find_schedule(current, schedule_id)
        (stored,) = _stored(ctx, current, (before,))
        return [
            ScheduleRequest(
                before, edited(current.job, before, stored.payload, body, current.job.action, ctx.kinds, ctx.world)
            )
        ]

    after = _commit(ctx, planned, request, Operation.PATCH_SCHEDULE)
    return Answer(200, _answer_body(ctx, after, schedule_id))


def delete(ctx: Context) -> Answer:
    planned = ctx.find()
    schedule_id = ctx.find_schedule(planned).id

    def request(current: Planned) -> list[ScheduleRequest]:
        return [ScheduleRequest(lookup.find_schedule(current, schedule_id), None, delete=True)]

    _commit(ctx, planned, request, Operation.DELETE_SCHEDULE)
    return Answer(200, OK)


def _commit(
    ctx: Context, planned: Planned, request: Callable[[Planned], list[ScheduleRequest]], operation: Operation
) -> Planned:
    job = planned.job
    return change.change_schedules(ctx.world, job.tenant, job.id, request, None, ctx.by(operation))


def _body(ctx: Context, planned: Planned, schedule_id: str) -> dict[str, object]:
    (body,) = schedule_bodies(ctx, Planned(planned.job, (lookup.find_schedule(planned, schedule_id),)))
    return body


def _answer_body(ctx: Context, planned: Planned, schedule_id: str) -> dict[str, object]:
    """Returns the answer to a change, with the job of the schedule."""
    return _body(ctx, planned, schedule_id) | {"jobId": planned.job.integer_id}


def _stored(ctx: Context, planned: Planned, some: tuple[Schedule, ...]) -> list[ScheduleDraft]:
    """Returns stored schedules as drafts."""
    payloads = lookup.payloads_of(ctx.world, Planned(planned.job, some))
    return [drafts.as_stored(each, payloads.get(each.id)) for each in some]
