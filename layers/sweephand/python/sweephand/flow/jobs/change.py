"""Changes jobs and their schedules: compares a request with the stored job and writes it in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from sweephand.domain.collection import CollectionState, Events, Usage
from sweephand.domain.job import IN_JOBS_TRANSACTION, Job, JobDraft, Payload
from sweephand.domain.jobs.revision import Entry
from sweephand.domain.schedule import Schedule
from sweephand.errors import PreconditionFailed, QuotaExceeded, Unavailable
from sweephand.flow.job_parts import clean_up_rows, pause_rows, quotas
from sweephand.flow.job_parts.change_log import BY_SERVICE, By, Operation, entry
from sweephand.flow.job_parts.step import Step
from sweephand.flow.jobs import completion, creation, drafts, large_changes, lookup, new_schedules, requested, steps
from sweephand.flow.jobs.change_queue import Turns
from sweephand.flow.jobs.lookup import Planned
from sweephand.flow.jobs.requested import Scene, Wish
from sweephand.flow.series import replan
from sweephand.flow.series.replan import Effect
from sweephand.flow.tenants import tenancy
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.store.dynamo.conditional import Cancelled, Op
from sweephand.store.jobs import directory, history, jobs

if TYPE_CHECKING:
    from sweephand.domain.calendar import Calendar
    from sweephand.domain.job import Asked

with lazy():
    from sweephand.flow import events
    from sweephand.flow.job_parts import named_calendars
    from sweephand.flow.jobs import final_jobs

SCHEDULES_MOST = 1_000
TRIED_S = 9.0
"""No further try begins after this time if others keep changing the job: a request has 14 s, cold start included."""
TRIES = 5
TRIES_MOST = 40

Edit = Callable[[Planned, Mapping[str, Payload]], JobDraft]


@dataclass(frozen=True)
class _Wanted:
    """A requested change. parts: written together with the job. stored: the current payloads.

    asked: applies to the schedules that the request does not name.
    """

    job: Job
    wishes: Sequence[Wish]
    by: By
    parts: drafts.Parts = field(default_factory=drafts.Parts)
    stored: Mapping[str, Payload] = field(default_factory=dict)
    resumed_at: datetime | None = None
    asked: Asked | None = None


def change_job(
    world: World, tenant: str, job_id: str, edit: Edit, if_match: int | None, by: By = BY_SERVICE
) -> Planned:
    """Replaces or patches a job.

    edit: makes the wanted job from the stored one; it is called again after a concurrent change. If its draft has no
    schedules (None), they stay. Otherwise they are matched by id, then by name, and all others are deleted.
    """

    def step(planned: Planned) -> Planned:
        stored = lookup.payloads_of(world, planned)
        draft = edit(planned, stored)
        wanted = requested.staying(planned) if draft.schedules is None else requested.matched(planned, draft.schedules)
        now = world.clock.now()
        after, parts = drafts.job_from(draft, tenant, job_id, now, planned.job.revision + 1, planned.job)
        after = drafts.keep_payloads(after, planned.job, parts, stored)
        return _commit(world, planned, _Wanted(after, wanted, by, parts, stored, asked=draft.asked))

    return _retried(world, tenant, job_id, if_match, step)


def change_schedules(
    world: World,
    tenant: str,
    job_id: str,
    wish: Callable[[Planned], Sequence[Wish]],
    if_match: int | None,
    by: By = BY_SERVICE,
) -> Planned:
    """Adds, changes or deletes single schedules; the job and the other schedules stay."""

    def step(planned: Planned) -> Planned:
        wanted = list(wish(planned))
        touched = {each.before.id for each in wanted if each.before is not None}
        wanted += [each for each in requested.staying(planned) if each.before and each.before.id not in touched]
        after = _next_revision(world, planned.job)
        return _commit(world, planned, _Wanted(after, wanted, by, stored=lookup.payloads_of(world, planned)))

    return _retried(world, tenant, job_id, if_match, step)


def set_state(
    world: World,
    tenant: str,
    job_id: str,
    edit: Callable[[Job], Job],
    if_match: int | None,
    by: By = BY_SERVICE,
    *,
    resumed_at: datetime | None = None,
) -> Planned:
    """Activates, deactivates, pauses or resumes a job, and its schedules in the same write.

    resumed_at: when a pause reaches its set end, the last instant that it covers.
    """

    def step(planned: Planned) -> Planned:
        after = edit(planned.job)
        if after == planned.job:
            return planned
        after = _next_revision(world, after)
        return _commit(world, planned, _Wanted(after, requested.staying(planned), by, resumed_at=resumed_at))

    return _retried(world, tenant, job_id, if_match, step)


def follow_calendars(world: World, tenant: str, job_id: str) -> Planned:
    """Moves a job's schedules to the current versions of their calendars; those that are up to date stay."""

    def step(planned: Planned) -> Planned:
        wanted = [Wish(schedule, None, recast=True) for schedule in planned.schedules]
        by = By(Operation.FOLLOW_CALENDAR)
        return _commit(world, planned, _Wanted(_next_revision(world, planned.job), wanted, by))

    return _retried(world, tenant, job_id, None, step)


def _next_revision(world: World, job: Job) -> Job:
    return replace(job, revision=job.revision + 1, modified_at=world.clock.now())


def _retried(
    world: World, tenant: str, job_id: str, if_match: int | None, step: Callable[[Planned], Planned]
) -> Planned:
    """Reads and changes a job, and starts again if the sweeper or another change came in between.

    Many concurrent changes of one job take turns. After TRIED_S the change is refused, while its caller still waits.
    An earlier change whose schedules are not all written yet is finished first.
    """
    until = world.clock.monotonic() + TRIED_S
    with Turns(world, tenant, job_id) as turns:
        for tries in range(TRIES_MOST):
            if tries >= TRIES and world.clock.monotonic() > until:
                break
            planned = lookup.find(world, tenant, job_id)
            if planned.job.open_change is not None:
                large_changes.finish(world, planned.job)
                planned = lookup.find(world, tenant, job_id)
            if if_match is not None and planned.job.revision != if_match:
                raise PreconditionFailed(f"the job is at revision {planned.job.revision}")
            try:
                return step(planned)
            except _CameBetween:
                turns.wait(until)
    raise Unavailable("too many concurrent changes to this job; try again")


class _CameBetween(Exception):
    """Another writer has changed what was read."""


def _commit(world: World, planned: Planned, wanted: _Wanted) -> Planned:
    """Writes the job, its schedules, their parts and the entry of the change log in one transaction."""
    before, after, parts = planned.job, wanted.job, wanted.parts
    _check(world, planned, wanted)
    more = any(wish.before is None for wish in wanted.wishes)
    collection, seen = tenancy.open_with_usage(world, before.tenant, after.collection, for_more=more)
    began_at = world.clock.now()
    effect = Effect(began_at, after.modified_at, wanted.resumed_at)
    book = _book(world, before, wanted.wishes)
    scene = Scene(before, after, parts, collection, seen, wanted.stored, effect, wanted.asked, book)
    steps_to_do = requested.steps_of(world, wanted.wishes, scene)
    carried = steps.carry_out(world, steps_to_do, after, effect)
    after = new_schedules.with_schedule_ids(after, carried.schedules)
    after, sealed = _sealed(world, after, before, parts)
    if not (carried.ops or carried.held or carried.missed or sealed or parts.payloads) and _unchanged(before, after):
        return planned
    calendar_ops = _calendar_ops(world, before, steps_to_do, carried.schedules, book)
    first = len(carried.held) + len(carried.missed)
    many = len(carried.ops) + len(calendar_ops) + 2 * first > IN_JOBS_TRANSACTION
    if first and not many:
        steps.let_go(world, carried)
        raise _CameBetween
    if many:
        after = replace(after, open_change=after.revision)
        schedule_ops = large_changes.start_ops(world, after, steps_to_do, wanted.resumed_at)
    else:
        schedule_ops = [*carried.ops, *large_changes.clean_up_ops(world, before, carried, began_at)]
        replan.send_owed(world, carried.plans, lines_too=collection.events is Events.ALL)
    new = entry(world, wanted.by, before, after, [(step.before, step.after) for step in steps_to_do])
    ops: list[Op] = [
        world.table.put_op("job", jobs.job_item(after), jobs.job_as_read(before)),
        *schedule_ops,
        *drafts.part_ops(world, after, parts, sealed),
        *directory.change_ops(world.table, before, after, planned.schedules, carried.schedules),
        *tenancy.move_ops(world, before, after, collection),
        *quotas.count_ops(world, before, after, seen),
        *tenancy.flow_key_ops(world, before.tenant, before.policies.get("flowKey"), after.policies.get("flowKey")),
        *pause_rows.row_ops(world, before, after),
        *calendar_ops,
        history.put_op(world.table, new),
    ]
    replan.in_time(world, effect.at)
    done = world.table.transact(ops)
    if isinstance(done, Cancelled):
        _explain(world, new, done, seen)
    pause_rows.send_ahead(world, before, after)
    if many:
        changed = large_changes.followed(world, after)
    else:
        if carried.gone:
            clean_up_rows.note_delay(world, clean_up_rows.Place.of(after), began_at, carried.gone[0].id)
            _look_for_end(world, after)
        if collection.state is CollectionState.ENABLED:
            replan.send_ahead(world, carried.ahead)
        changed = creation.completed(world, Planned(after, lookup.by_creation(carried.schedules)), planned.schedules)
    if collection.events is Events.ALL:
        _tell(world, new)
    return changed


def _check(world: World, planned: Planned, wanted: _Wanted) -> None:
    """Makes the transaction's checks before anything is sent. Raises Conflict, QuotaExceeded."""
    _check_not_final(planned, wanted.by)
    if sum(1 for wish in wanted.wishes if not wish.delete) > SCHEDULES_MOST:
        raise QuotaExceeded(f"a job has at most {SCHEDULES_MOST} schedules")
    if directory.is_name_taken(world.table, planned.job, wanted.job):
        raise creation.name_taken(wanted.job)


def _check_not_final(planned: Planned, by: By) -> None:
    """Raises Conflict for a final job. The service's own changes (retention, calendars) are always allowed."""
    if by.actor is not None and planned.job.policies.get("afterEnd") == "final":
        final_jobs.check(planned.job, planned.schedules)


def _book(world: World, job: Job, wanted: Sequence[Wish]) -> Mapping[str, Calendar]:
    """Returns the calendars that the job's schedules name before and after the change."""
    timings = [wish.draft.timing for wish in wanted if wish.draft is not None]
    timings += [wish.before.timing for wish in wanted if wish.before is not None]
    if not any("calendars" in timing for timing in timings):
        return {}
    return named_calendars.book_of(world, job.tenant, timings)


def _calendar_ops(
    world: World, job: Job, todo: Sequence[Step], stay: Sequence[Schedule], book: Mapping[str, Calendar]
) -> list[Op]:
    if not book:
        return []
    return named_calendars.use_ops(world, job.id, todo, stay, book)


def _tell(world: World, new: Entry) -> None:
    assert new.before is not None
    events.job_changed(world, new.before, new.after, schedules_too=bool(new.schedules))


def _look_for_end(world: World, job: Job) -> None:
    """Marks the job as ended if the deleted schedules were its last live ones.

    The last remaining schedule may have ended just before: its end still counted the schedules that are now deleted.
    """
    try:
        completion.mark_job(world, job.tenant, job.id)
    except Unavailable as unavailable:
        world.journal.warning("lists may show the end of a job late", job=job.id, reason=unavailable.reason)


def _explain(world: World, wanted: Entry, refused: Cancelled, seen: Usage) -> None:
    """Returns if this change was written after all (its answer was lost); raises the reason otherwise."""
    if history.is_written(world.table, wanted):
        return
    after = wanted.after
    there = jobs.read_job(world.table, after.tenant, after.id)
    if there is not None and there.revision == after.revision - 1:
        tenancy.flow_key_exists(refused, "policies.flowKey")
        if "name" in refused.refused:
            raise creation.name_taken(after)
        if "collection" in refused.refused:
            raise tenancy.full(world, after)
        if quotas.is_exceeded(refused, seen):
            raise quotas.exceeded(seen, refused)
    raise _CameBetween


def _unchanged(before: Job, after: Job) -> bool:
    """Returns whether the request asks for what is stored: then nothing is written or planned."""
    return replace(after, revision=before.revision, modified_at=before.modified_at) == before


def _sealed(world: World, after: Job, before: Job, parts: drafts.Parts) -> tuple[Job, dict[str, str]]:
    """Returns the job with the version of its secrets, and the secrets to write under it; none if all are kept."""
    if after.action is before.action:
        return replace(after, secret_version=before.secret_version), {}
    if not parts.secrets and not parts.kept:
        return after, {}
    sealed = drafts.seal(world, after, parts, before)
    if before.secret_version is not None and not parts.secrets:
        stored = jobs.read_secrets(world.table, before.tenant, before.id, before.secret_version)
        if stored == sealed:
            return replace(after, secret_version=before.secret_version), {}
    return after, sealed
