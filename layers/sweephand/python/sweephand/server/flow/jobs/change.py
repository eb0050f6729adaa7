"""Changes jobs and their schedules: compares a request with the stored job and writes it in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sweephand.base.errors import QuotaExceeded, Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain import application
from sweephand.domain.collection import Collection, CollectionState, Events, Usage
from sweephand.domain.job import IN_JOBS_TRANSACTION, Job, JobDraft, Payload, by_owner
from sweephand.domain.jobs.job_state import Entry
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.occurrences.generations import takes_effect
from sweephand.domain.occurrences.index_row import Waits
from sweephand.domain.runs.run_action import lane_of
from sweephand.domain.schedule import Lane, Schedule
from sweephand.server.flow.concurrency import TRIES, Moved, require_revision, tolerated, too_many
from sweephand.server.flow.idempotency import Once, check_once, once_ops
from sweephand.server.flow.job_parts import clean_up_rows, quotas
from sweephand.server.flow.job_parts.change_log import BY_SERVICE, By, Operation, Step, entry
from sweephand.server.flow.jobs import completion, creation, drafts, large_changes, lookup, requested, steps
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ChangeContext, ScheduleRequest
from sweephand.server.flow.jobs.steps import DryRun
from sweephand.server.flow.series import replan
from sweephand.server.flow.series.replan import EXTRA_LOOK_AHEAD_S, Effect
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Op
from sweephand.server.store.jobs import change_parts, directory, history, jobs, turns

if TYPE_CHECKING:
    from sweephand.domain.job import Activation
    from sweephand.domain.job_set import Membership

with lazy():
    from sweephand.domain import consumer
    from sweephand.server.flow import events
    from sweephand.server.flow.job_parts import membership
    from sweephand.server.flow.tenants import applications

SCHEDULES_MOST = 1_000
LISTED_WITHIN = timedelta(seconds=5)
"""After this long, the index lists a run that was written before the change."""
TRIED_S = 9.0
"""No further try begins after this time if others keep changing the job. A request has 14 s, cold start included."""
LASTS = timedelta(seconds=3)
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.02, 0.5
TRIES_MOST = 40

Edit = Callable[[Planned, Mapping[str, Payload]], JobDraft]


@dataclass(frozen=True)
class _Wanted:
    """A requested change. parts: written together with the job. stored: the current payloads.

    activation: applies to the schedules that the request does not name. in_set: the job's place in a job set, if that
    set requests the change. once: the key of a request that creates one schedule.
    """

    job: Job
    requests: Sequence[ScheduleRequest]
    by: By
    parts: drafts.Parts = field(default_factory=drafts.Parts)
    stored: Mapping[str, Payload] = field(default_factory=dict)
    resumed_at: datetime | None = None
    activation: Activation | None = None
    in_set: Membership | None = None
    once: Once | None = None


def change_job(
    world: World, tenant: str, job_id: str, edit: Edit, if_match: int | None, by: By = BY_SERVICE
) -> Planned:
    """Replaces or patches a job.

    edit: makes the wanted job from the stored one; it is called again after a concurrent change. If the draft's
    schedules are None, the stored ones stay. Otherwise they are matched by id, then by name, and all others are
    deleted.
    """

    def step(planned: Planned) -> Planned:
        stored = lookup.payloads_of(world, planned)
        asked = _asked(world, planned, edit(planned, stored), stored, by)
        return _commit(world, planned, asked)

    return _retried(world, tenant, job_id, if_match, step)


def _asked(world: World, planned: Planned, draft: JobDraft, stored: Mapping[str, Payload], by: By) -> _Wanted:
    """Returns the change that a draft of the whole job requests. stored: the current payloads."""
    job = planned.job
    wanted = requested.staying(planned) if draft.schedules is None else requested.matched(planned, draft.schedules)
    after, parts = drafts.job_from(draft, job.tenant, job.id, world.clock.now(), job.revision + 1, job)
    if named := application.named_by(by_owner(draft.action, draft.error_action, draft.hooks)):
        applications.check(world, job.tenant, named)
    after = drafts.keep_payloads(after, job, parts, stored)
    return _Wanted(after, wanted, by, parts, stored, activation=draft.activation, in_set=draft.membership)


def check(world: World, planned: Planned, draft: JobDraft, opened: tuple[Collection, Usage]) -> None:
    """Raises InvalidRequest for a draft that the job cannot become. opened: its collection and the quotas."""
    asked = _asked(world, planned, draft, {}, BY_SERVICE)
    _steps(world, planned, asked, *opened)


def dry_run(
    world: World, planned: Planned, draft: JobDraft, opened: tuple[Collection, Usage], stored: Mapping[str, Payload]
) -> DryRun:
    """Returns the job as the draft would leave it. Raises as `check`. stored: the current payloads."""
    asked = _asked(world, planned, draft, stored, BY_SERVICE)
    _, context, todo = _steps(world, planned, asked, *opened)
    return steps.dry_run(world, asked.job, asked.parts.payloads, todo, context.effect)


def change_schedules(
    world: World,
    tenant: str,
    job_id: str,
    request: Callable[[Planned], Sequence[ScheduleRequest]],
    if_match: int | None,
    by: By = BY_SERVICE,
    once: Once | None = None,
) -> Planned:
    """Changes single schedules; the job and the other schedules stay. once: the key of a request that creates one."""

    def step(planned: Planned) -> Planned:
        wanted = list(request(planned))
        touched = {each.before.id for each in wanted if each.before is not None}
        wanted += [each for each in requested.staying(planned) if each.before and each.before.id not in touched]
        after = _next_revision(world, planned.job)
        stored = lookup.payloads_of(world, planned)
        return _commit(world, planned, _Wanted(after, wanted, by, stored=stored, once=once))

    return _retried(world, tenant, job_id, if_match, step)


def set_state(
    world: World,
    tenant: str,
    job_id: str,
    edit: Callable[[Job], Job],
    if_match: int | None,
    by: By = BY_SERVICE,
) -> Planned:
    """Changes whether a job is active or paused, and its schedules in the same write."""

    def step(planned: Planned) -> Planned:
        after = edit(planned.job)
        if after == planned.job:
            return planned
        after = _next_revision(world, after)
        return _commit(world, planned, _Wanted(after, requested.staying(planned), by))

    return _retried(world, tenant, job_id, if_match, step)


def end_pause(world: World, tenant: str, job_id: str, until: datetime) -> Planned:
    """Ends the pause with this set end, which may lie a few seconds ahead. Any other pause stays."""

    def step(planned: Planned) -> Planned:
        return planned if until_of(planned.job) != until else _commit(world, planned, _resumed(world, planned, until))

    return _retried(world, tenant, job_id, None, step)


def has_rest(world: World, job: Job) -> bool:
    """Returns whether something must be carried out before any change of the job, see `carry_out_rest`."""
    until = until_of(job)
    return job.open_change is not None or (until is not None and until <= world.clock.now())


def carry_out_rest(world: World, tenant: str, job_id: str) -> Planned:
    """Finishes an earlier change whose schedules are not all written yet, and ends a pause whose set end has passed."""
    return _retried(world, tenant, job_id, None, lambda planned: planned)


def follow_calendars(world: World, tenant: str, job_id: str) -> Planned:
    """Moves a job's schedules to the current versions of their calendars. Schedules that are up to date stay."""

    def step(planned: Planned) -> Planned:
        wanted = [ScheduleRequest(schedule, None, recast=True) for schedule in planned.schedules]
        by = By(Operation.FOLLOW_CALENDAR)
        return _commit(world, planned, _Wanted(_next_revision(world, planned.job), wanted, by))

    return _retried(world, tenant, job_id, None, step)


def _next_revision(world: World, job: Job) -> Job:
    return replace(job, revision=job.revision + 1, modified_at=world.clock.now())


def _retried(
    world: World, tenant: str, job_id: str, if_match: int | None, step: Callable[[Planned], Planned]
) -> Planned:
    """Reads and changes a job, and starts again if the sweeper or another change came in between.

    Many concurrent changes of one job take turns. After TRIED_S the change is refused, so that the caller still gets an
    answer. An earlier change whose schedules are not all written yet is finished first, and so is a pause whose set end
    has passed: the change then meets what has been due since that end.
    """
    until = world.clock.monotonic() + TRIED_S
    with Turns(world, tenant, job_id) as turns:
        for tries in range(TRIES_MOST):
            if tries >= TRIES and world.clock.monotonic() > until:
                break
            planned = _finished(world, tenant, job_id)
            require_revision(if_match, planned.job.revision)
            try:
                until_set = until_of(planned.job)
                if until_set is not None and until_set <= world.clock.now():
                    planned = _commit(world, planned, _resumed(world, planned, until_set))
                    if_match = None if if_match is None else planned.job.revision
                return step(planned)
            except Moved:
                turns.wait(until)
    raise too_many("changes to this job")


def _finished(world: World, tenant: str, job_id: str) -> Planned:
    planned = lookup.find(world, tenant, job_id)
    if planned.job.open_change is None:
        return planned
    large_changes.finish(world, planned.job)
    return lookup.find(world, tenant, job_id)


def _resumed(world: World, planned: Planned, until: datetime) -> _Wanted:
    """Returns the change that ends a pause at its set end."""
    after = _next_revision(world, replace(planned.job, pause=None))
    return _Wanted(after, requested.staying(planned), By(Operation.RESUME), resumed_at=until - BEFORE_IT)


def _commit(world: World, planned: Planned, wanted: _Wanted) -> Planned:
    """Writes the job, its schedules, their parts and the entry of the change log in one transaction."""
    before, after, parts = planned.job, wanted.job, wanted.parts
    _check(world, planned, wanted)
    more = any(request.before is None for request in wanted.requests)
    collection, usage = tenancy.open_with_quotas(world, before.tenant, after.collection, for_more=more)
    tenancy.check_home(collection, after)
    began_at, context, steps_to_do = _steps(world, planned, wanted, collection, usage)
    effect, book = context.effect, context.book
    carried = steps.carry_out(world, steps_to_do, after, effect)
    after = steps.with_schedule_ids(after, carried.schedules)
    after, sealed = _sealed(world, after, before, parts)
    if not (carried.ops or carried.held or carried.missed or sealed or parts.payloads) and _unchanged(before, after):
        if wanted.in_set is not None:
            membership.note(world, before, wanted.in_set)
        return planned
    calendar_ops = requested.calendar_ops(world, before, steps_to_do, carried.schedules, book)
    member_ops = membership.change_ops(world, after, wanted.in_set, wanted.by) if after.job_set is not None else []
    first = len(carried.held) + len(carried.missed)
    many = len(carried.ops) + len(calendar_ops) + len(member_ops) + 2 * first > IN_JOBS_TRANSACTION
    if first and not many:
        steps.release(world, carried, effect)
        raise Moved
    if many:
        after = replace(after, open_change=after.revision)
        schedule_ops = large_changes.start_ops(world, after, steps_to_do, wanted.resumed_at)
    else:
        schedule_ops = [*carried.ops, *large_changes.clean_up_ops(world, before, carried, began_at, wanted.by.words)]
        replan.send_owed(world, carried.plans, lines_too=collection.events is Events.ALL)
    new = entry(world, wanted.by, before, after, [(step.before, step.after) for step in steps_to_do])
    ops: list[Op] = [
        world.table.put_op("job", jobs.job_item(after), jobs.job_as_read(before)),
        *schedule_ops,
        *drafts.part_ops(world, after, parts, sealed),
        *directory.change_ops(world.table, before, after, planned.schedules, carried.schedules),
        *quotas.count_ops(world, before, after, collection, usage),
        *tenancy.flow_key_ops(
            world, before.tenant, before.policies.get("flowKey"), after.policies.get("flowKey"), before.number
        ),
        *row_ops(world, before, after),
        *calendar_ops,
        *member_ops,
        history.put_op(world.table, new),
        *_once_ops(world, planned, wanted.once, carried.schedules),
    ]
    replan.in_time(world, takes_effect(after.modified_at) if many else effect.at)
    done = world.table.transact(ops)
    if isinstance(done, Cancelled):
        _explain(world, new, done, wanted)
    send_ahead(world, before, after)
    _leave_workers(world, before, after)
    _leave_consumer(world, before, after)
    if not many and collection.state is CollectionState.ENABLED:
        replan.send_ahead(world, carried.ahead)
    if collection.events is Events.ALL:
        assert new.before is not None
        events.job_changed(world, new.before, new.after, new.actor, new.reason, schedules_too=bool(new.schedules))
    if many:
        return large_changes.followed(world, after)
    if carried.gone:
        clean_up_rows.note_delay(world, clean_up_rows.Place.of(after), began_at, carried.gone[0].id)
        _check_for_end(world, after)
    return creation.completed(world, Planned(after, lookup.by_creation(carried.schedules)), planned.schedules)


def _steps(
    world: World, planned: Planned, wanted: _Wanted, collection: Collection, usage: Usage
) -> tuple[datetime, ChangeContext, list[Step]]:
    """Returns the instant of the change, its context, and a step for each schedule."""
    began_at = world.clock.now()
    effect = Effect(began_at, wanted.job.modified_at, wanted.resumed_at)
    book = requested.book_of(world, planned.job.tenant, wanted.requests)
    context = ChangeContext(planned.job, wanted.job, collection, usage, wanted.stored, effect, wanted.activation, book)
    return began_at, context, requested.steps_of(world, wanted.requests, context, world.clock.now())


def _check(world: World, planned: Planned, wanted: _Wanted) -> None:
    """Makes the transaction's checks before anything is sent. Raises Conflict, QuotaExceeded."""
    if wanted.by.actor is not None and planned.job.policies.get("afterEnd") == "final":
        lookup.check(planned.job, planned.schedules)
    if sum(1 for request in wanted.requests if not request.delete) > SCHEDULES_MOST:
        raise QuotaExceeded(f"a job has at most {SCHEDULES_MOST} schedules")
    if directory.is_name_taken(world.table, planned.job, wanted.job):
        raise creation.name_taken(wanted.job)


def _leave_workers(world: World, before: Job, after: Job) -> None:
    """Has runs that no worker took sent on if one of the job's actions left its workers.

    If the message is lost, those that are held are judged again once their policy ends them.
    """
    lanes = _lanes_of_workers(after)
    if all(lanes.get(path) == lane for path, lane in _lanes_of_workers(before).items()):
        return
    at = world.clock.now() + LISTED_WITHIN
    world.queue.send([Delivery(Pointer(after.tenant, after.id, None, "", at, subject=Subject.LEFT), at, Lane.FAST)])


def _lanes_of_workers(job: Job) -> dict[str, Lane]:
    """Returns the queues of the workers that carry out actions of the job, by the path of the action."""
    named = {"action": job.action, "errorAction": job.error_action, **job.hooks}
    return {
        path: lane_of(action, job.tenant)
        for path, action in named.items()
        if action is not None and action.kind == application.QUEUE
    }


def _leave_consumer(world: World, before: Job, after: Job) -> None:
    """Has the runs that are held for the job's consumer let go if the job names another one now, or none.

    If the message is lost, they go on with the next wake of that consumer.
    """
    name = consumer.consumer_of(before)
    if name is not None and name != consumer.consumer_of(after):
        at = world.clock.now() + LISTED_WITHIN
        word = Pointer(after.tenant, name, None, name, at, subject=Subject.CONSUMER)
        world.queue.send([Delivery(word, at, Lane.FAST)])


def _check_for_end(world: World, job: Job) -> None:
    """Marks the job as ended if the deleted schedules were its last live ones.

    The last remaining schedule may have ended just before: its end still counted the schedules that are now deleted.
    """
    with tolerated(world, "lists may show the end of a job late", job=job.id):
        completion.mark_job(world, job.tenant, job.id)


def _once_ops(world: World, planned: Planned, once: Once | None, schedules: Sequence[Schedule]) -> list[Op]:
    """Returns the operation `once` of a request that creates one schedule."""
    if once is None:
        return []
    known = {each.id for each in planned.schedules}
    (made,) = (each.id for each in schedules if each.id not in known)
    return once_ops(world, planned.job.tenant, once, made)


def _explain(world: World, new: Entry, refused: Cancelled, wanted: _Wanted) -> None:
    """Returns if this change was written although its answer was lost; raises the reason otherwise."""
    if history.is_written(world.table, new):
        return
    check_once(refused, wanted.once)
    after, in_set = new.after, wanted.in_set
    current = jobs.read_job(world.table, after.tenant, after.id)
    if current is not None and current.revision == after.revision - 1:
        if in_set is not None:
            membership.check(refused, in_set.job_set, in_set.key)
        creation.explain(world, after, refused)
    raise Moved


def _unchanged(before: Job, after: Job) -> bool:
    """Returns whether the request asks for what is already stored. Then nothing is written or planned."""
    return replace(after, revision=before.revision, modified_at=before.modified_at) == before


def _sealed(world: World, after: Job, before: Job, parts: drafts.Parts) -> tuple[Job, dict[str, str]]:
    """Returns the job with the version of its secrets, and the secrets to write under it; none if nothing changed."""
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


class Turns:
    """The turn of one change: a context manager that gives the turn back at the end. (Decision 0052.)

    It serialises concurrent changes of one job after the first conflict. A change without a conflict takes no turn and
    pays nothing. A change that has lost a try waits for its turn, which costs two write units. So if fifty come at
    once, one works and the others poll, instead of all working in vain. A turn expires, so a process that dies in its
    turn delays the others only until then.
    """

    def __init__(self, world: World, tenant: str, job_id: str) -> None:
        self._world = world
        self._job = tenant, job_id
        self._owner: str | None = None
        self._waits = 0

    def wait(self, until: float) -> None:
        """Waits after a conflict until it is this change's turn or `until` (monotonic) has come.

        Waits only briefly if it already has the turn: then a change without a turn, or the sweeper, came in between.
        """
        if self._owner is not None:
            self._pause()
            return
        owner = self._world.chance.new_id(self._world.clock.now())
        while self._world.clock.monotonic() < until:
            if turns.take(self._world.table, *self._job, owner, self._world.clock.now(), LASTS):
                self._owner, self._waits = owner, 0
                return
            self._pause()

    def _pause(self) -> None:
        """Sleeps with jitter, longer each time, so that waiting changes do not slow down the one that works."""
        longest = min(LONGEST_WAIT_S, SHORTEST_WAIT_S * 2**self._waits)
        self._waits += 1
        self._world.clock.sleep(self._world.chance.uniform(0.0, longest))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _raised: object, _trace: TracebackType | None) -> None:
        """Gives the turn back, unless the process is being stopped: then the turn expires."""
        if self._owner is None or (kind is not None and not issubclass(kind, Exception)):
            return
        try:
            turns.give_back(self._world.table, *self._job, self._owner)
        except Unavailable as unavailable:
            reason = unavailable.reason
            self._world.journal.warning("a turn was not given back; it will expire", job=self._job[1], reason=reason)


BEFORE_IT = timedelta(seconds=1)
"""The last instant that a pause covers lies this long before its end."""
AHEAD = timedelta(seconds=15)
"""Time for the queue, the executor and a few hundred schedules. If the resume takes longer, no occurrence is lost."""


def until_of(job: Job) -> datetime | None:
    return job.pause.until if job.pause else None


def row_ops(world: World, before: Job, after: Job) -> list[Op]:
    """Returns the operations that keep the wake row exactly as long as the job has a pause with a set end."""
    until = until_of(after)
    if until == until_of(before):
        return []
    if until is None:
        return [world.table.delete_op("wake resume", keys.job(after.tenant, after.id), keys.pause())]
    at = until - AHEAD
    return [change_parts.wake_op(world.table, after, keys.pause(), Waits.RESUME, at, world.shards)]


def send_ahead(world: World, before: Job, after: Job) -> None:
    """Sends the end of a pause if it is so near that the sweep might see the row too late. The row sends it as well."""
    until = until_of(after)
    if until is None or until == until_of(before):
        return
    now = world.clock.now()
    if until - AHEAD > now + timedelta(seconds=world.settings.look_ahead_s + EXTRA_LOOK_AHEAD_S):
        return
    pointer = Pointer(after.tenant, after.id, None, "end", until, subject=Subject.RESUME)
    if world.queue.send([Delivery(pointer, max(now, until - AHEAD), Lane.FAST)]):
        world.journal.warning("the next tick sends the messages that were not sent", job=after.id)
