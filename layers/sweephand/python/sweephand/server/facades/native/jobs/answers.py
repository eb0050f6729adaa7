"""Answers about jobs and their schedules, with payloads, totals and last runs if they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.job import Job, Payload
from sweephand.domain.schedule import Schedule
from sweephand.schedules.rule import of_answer
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.members import job_members, schedule_members
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.views import totals as counts
from sweephand.server.store.views.totals import Ledger, Totals

if TYPE_CHECKING:
    from sweephand.domain.jobs.job_state import Held

with lazy():
    from sweephand.domain.jobs import job_state
    from sweephand.server.facades.native.jobs import own_hooks
    from sweephand.server.store.views import holds

INCLUDES = frozenset({"schedules"})


def changed(ctx: Context, planned: Planned) -> Answer:
    """Returns the job with its schedules, or without them if it is very large. The change has already been made."""
    answer = whole(ctx, planned, include=INCLUDES)
    return whole(ctx, planned, include=frozenset()) if answer.too_large else answer


def whole(ctx: Context, planned: Planned, *, include: frozenset[str], fresh: bool = False) -> Answer:
    """Returns the job with its totals, and with its schedules if requested. fresh: True if nothing can have run yet."""
    payloads = lookup.payloads_of(ctx.world, planned)
    full = "schedules" in include
    (now,) = all_as_held(ctx, [(planned.job, planned.schedules)])
    with of_answer():
        shown, total = schedule_bodies(ctx, now.job, now.schedules, payloads, fresh=fresh, full=full, held=now.held)
        body = job_members.job_body(
            now.job,
            now.schedules,
            ctx.now,
            payloads=payloads,
            totals=total,
            shown=shown,
            waits_s=now.waits_s,
            held=now.held,
        )
    return Answer(200, body, {"ETag": f'"{planned.job.revision}"'})


@dataclass(frozen=True)
class AsHeld:
    """A job with the current state of its schedules. held: what holds them.

    waits_s: how long its runs wait for their results by default.
    """

    job: Job
    schedules: Sequence[Schedule]
    held: Held | None
    waits_s: int


def as_held(ctx: Context, planned: Planned) -> tuple[Planned, Held | None]:
    """Returns the job with the current state of its schedules, and what holds them."""
    (now,) = all_as_held(ctx, [(planned.job, planned.schedules)])
    return replace(planned, schedules=tuple(now.schedules)), now.held


def all_as_held(ctx: Context, with_schedules: Sequence[tuple[Job, Sequence[Schedule]]]) -> list[AsHeld]:
    """Returns the jobs of a page as they are held, with as many reads as for one."""
    around = holds.of_jobs(ctx.world.table, ctx.tenant, [job for job, _ in with_schedules])
    following = iter(
        lookup.with_current_calendars(
            ctx.world, [schedule for _, schedules in with_schedules for schedule in schedules]
        )
    )
    shown = []
    for job, schedules in with_schedules:
        held = around.held.get(job.id)
        states = [job_state.as_shown(each, job, held, ctx.now) for each in islice(following, len(schedules))]
        waits_s = around.callback_timeouts.get(job.collection) or ctx.world.settings.callback_timeout_s
        shown.append(AsHeld(job, states, held, waits_s))
    return shown


def one_schedule(ctx: Context, planned: Planned, schedule_id: str) -> Answer:
    planned, held = as_held(ctx, planned)
    schedule = lookup.find_schedule(planned, schedule_id)
    payloads = lookup.payloads_of(ctx.world, Planned(planned.job, (schedule,)))
    shown, _ = schedule_bodies(ctx, planned.job, [schedule], payloads, held=held)
    assert shown is not None
    return Answer(200, shown[0], {"ETag": f'"{planned.job.revision}"'})


def schedule_bodies(
    ctx: Context,
    job: Job,
    schedules: Sequence[Schedule],
    payloads: Mapping[str, Payload] | None,
    *,
    fresh: bool = False,
    full: bool = True,
    held: Held | None = None,
) -> tuple[list[dict[str, Any]] | None, Totals]:
    """Returns the bodies (None if not `full`) and the sum of their totals. payloads None: for a list without them."""
    table = ctx.world.table
    read = [Ledger()] * len(schedules) if fresh else counts.ledgers_of(table, schedules, ctx.now, last=full)
    whole = Totals() if fresh or job.policies.get("totals") != "all" else counts.of_whole_job(table, job)
    total = sum((each.totals for each in read), whole)
    if not full:
        return None, total
    hooks = _hooks(ctx, job, schedules) if payloads is not None else {}
    shown = [
        schedule_members.schedule_body(
            each,
            ctx.now,
            payloads=payloads,
            totals=its_ledger.totals,
            last_run=None if its_ledger.last is None or its_ledger.last.is_gone(ctx.now) else its_ledger.last,
            hooks=hooks.get(each.id),
            held=held,
        )
        for each, its_ledger in zip(schedules, read, strict=True)
    ]
    return shown, total


def _hooks(ctx: Context, job: Job, schedules: Sequence[Schedule]) -> dict[str, dict[str, Any]]:
    """Returns the bodies of the schedules' own hooks, by schedule and name."""
    if all(schedule.hooks is None for schedule in schedules):
        return {}
    stored = own_hooks.stored_hooks(ctx, job, schedules)
    return {each.id: stored.shown(each) for each in schedules if each.hooks is not None}
