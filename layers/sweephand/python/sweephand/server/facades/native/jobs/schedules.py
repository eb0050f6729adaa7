"""Schedules of the native API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sweephand.base.errors import InvalidRequest
from sweephand.base.ids import is_uuid
from sweephand.base.lazy import lazy
from sweephand.domain.job import TASK_KINDS, ScheduleDraft
from sweephand.domain.schedule import Schedule
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context, helpful
from sweephand.server.facades.native.jobs.answers import as_held, one_schedule, schedule_bodies
from sweephand.server.facades.native.members import schedule_members
from sweephand.server.facades.native.shared import collection_members
from sweephand.server.flow.idempotency import Once, made_once
from sweephand.server.flow.job_parts.change_log import Operation
from sweephand.server.flow.jobs import change, drafts, lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.flow.tenants import tenancy

if TYPE_CHECKING:
    from sweephand.server.facades.native.members.stored_hooks import StoredHooks

with lazy():
    from sweephand.server.facades.native.jobs import own_hooks, tasks
    from sweephand.server.facades.native.members import idle
    from sweephand.server.facades.native.shared import facade_limits


def list_all(ctx: Context) -> Answer:
    planned, held = as_held(ctx, lookup.find(ctx.world, ctx.tenant, ctx.id("job")))
    limit, mark = ctx.page(is_uuid)
    rest = [each for each in planned.schedules if mark is None or each.id > mark[0]]
    page = rest[:limit]
    payloads = lookup.payloads_of(ctx.world, Planned(planned.job, tuple(page)))
    items, _ = schedule_bodies(ctx, planned.job, page, payloads, held=held)
    cursor = ctx.cursor(page[-1].id) if len(rest) > limit else None
    return Answer(200, {"items": items, "nextCursor": cursor})


def create(ctx: Context) -> Answer:
    body = ctx.body()
    once = ctx.once()
    made: list[str] = []

    def request(planned: Planned) -> list[ScheduleRequest]:
        made[:] = [each.id for each in planned.schedules]
        usual = tenancy.defaults_of(ctx.world, ctx.tenant, planned.job.collection)
        filled = collection_members.schedule_with_defaults(body, usual)
        draft = schedule_members.schedule_draft(filled, "", planned.job.action, ctx.guard, change=False)
        if draft.hooks:
            own_hooks.check(ctx, [draft])
        _check_payload(ctx, planned, None, draft)
        return [ScheduleRequest(None, draft)]

    def make() -> tuple[Planned, str]:
        planned = _commit(ctx, request, Operation.ADD_SCHEDULE, once)
        return planned, next(each.id for each in planned.schedules if each.id not in made)

    def find(schedule_id: str) -> tuple[Planned, str]:
        return lookup.find(ctx.world, ctx.tenant, ctx.id("job")), schedule_id

    with helpful(body, ctx.now):
        planned, schedule_id = made_once(ctx.world, ctx.tenant, once, make, find)
    location = {"Location": f"/v1/jobs/{planned.job.id}/schedules/{schedule_id}"}
    answer = one_schedule(ctx, planned, schedule_id)
    return Answer(201, answer.body, {**answer.headers, **location})


def read(ctx: Context) -> Answer:
    return one_schedule(ctx, lookup.find(ctx.world, ctx.tenant, ctx.id("job")), ctx.id("schedule"))


def put(ctx: Context) -> Answer:
    body = ctx.body()

    def draft(planned: Planned, schedule: Schedule) -> ScheduleDraft:
        checked = _checked(ctx, planned, _hooks_of(ctx, planned, schedule), body)
        _check_payload(ctx, planned, schedule, checked)
        return checked

    with helpful(body, ctx.now):
        return _change(ctx, draft, Operation.REPLACE_SCHEDULE)


def patch(ctx: Context) -> Answer:
    body = ctx.merge_patch("schedule")

    def draft(planned: Planned, schedule: Schedule) -> ScheduleDraft:
        payloads = lookup.payloads_of(ctx.world, Planned(planned.job, (schedule,)))
        known = _hooks_of(ctx, planned, schedule)
        current = schedule_members.schedule_editable(
            schedule, payloads.get(schedule.id), known.shown(schedule) if known else None
        )
        checked = _checked(ctx, planned, known, idle.patched(current, body))
        _check_payload(ctx, planned, schedule, checked)
        return checked

    with helpful(body, ctx.now, change=True):
        return _change(ctx, draft, Operation.PATCH_SCHEDULE)


def _hooks_of(ctx: Context, planned: Planned, schedule: Schedule) -> StoredHooks | None:
    if schedule.hooks is None:
        return None
    return own_hooks.stored_hooks(ctx, planned.job, [schedule], single=True)


def _checked(ctx: Context, planned: Planned, known: StoredHooks | None, body: object) -> ScheduleDraft:
    draft = schedule_members.schedule_draft(body, "", planned.job.action, ctx.guard, change=True, hooks=known)
    if draft.hooks or known is not None:
        own_hooks.check(ctx, [draft], known)
    return draft


def _check_payload(ctx: Context, planned: Planned, schedule: Schedule | None, draft: ScheduleDraft) -> None:
    """Raises Forbidden for a new payload of an action that runs a task, without the scope for it."""
    kind = planned.job.action.kind
    if kind not in TASK_KINDS or draft.payload is None:
        return
    stored = lookup.payloads_of(ctx.world, Planned(planned.job, (schedule,))) if schedule is not None else {}
    tasks.require_for_payloads(ctx, kind, [draft.payload], set(stored.values()))


def activate(ctx: Context) -> Answer:
    return _switch(ctx, active=True)


def deactivate(ctx: Context) -> Answer:
    return _switch(ctx, active=False)


def _switch(ctx: Context, *, active: bool) -> Answer:
    ctx.no_members()

    def draft(planned: Planned, schedule: Schedule) -> ScheduleDraft:
        payloads = lookup.payloads_of(ctx.world, Planned(planned.job, (schedule,)))
        return replace(drafts.as_stored(schedule, payloads.get(schedule.id)), active=active)

    operation = Operation.ACTIVATE_SCHEDULE if active else Operation.DEACTIVATE_SCHEDULE
    return _change(ctx, draft, operation)


def delete(ctx: Context) -> Answer:
    schedule_id = ctx.id("schedule")

    def request(planned: Planned) -> list[ScheduleRequest]:
        return [ScheduleRequest(lookup.find_schedule(planned, schedule_id), None, delete=True)]

    _commit(ctx, request, Operation.DELETE_SCHEDULE)
    return Answer(204)


def _change(ctx: Context, draft: Callable[[Planned, Schedule], ScheduleDraft], operation: Operation) -> Answer:
    schedule_id = ctx.id("schedule")

    def request(planned: Planned) -> list[ScheduleRequest]:
        schedule = lookup.find_schedule(planned, schedule_id)
        wanted = draft(planned, schedule)
        if wanted.id not in {None, schedule.id}:
            raise InvalidRequest("id", "cannot be changed")
        return [ScheduleRequest(schedule, replace(wanted, id=schedule.id, name=wanted.name or schedule.name))]

    return one_schedule(ctx, _commit(ctx, request, operation), schedule_id)


def _commit(
    ctx: Context,
    request: Callable[[Planned], list[ScheduleRequest]],
    operation: Operation,
    once: Once | None = None,
) -> Planned:
    def checked(planned: Planned) -> list[ScheduleRequest]:
        facade_limits.check_job(planned.job)
        return request(planned)

    by = ctx.by(operation)
    return change.change_schedules(ctx.world, ctx.tenant, ctx.id("job"), checked, ctx.if_match(), by, once)
