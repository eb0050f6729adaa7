"""The replay of a consumer that starts: its missed runs are chosen job by job, then sent on one by one, oldest first.

Each step is one conditional write and a message. If either is lost, the next heartbeat repeats it. While the consumer
is away, its wake ends the runs that it will not get, so that each job holds few runs however long the consumer is away.
Runs of a job that no longer names the consumer go where the job's present action is carried out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.errors import Unavailable
from sweephand.base.json_text import dumps
from sweephand.base.records import dataclass
from sweephand.domain.consumer import Consumer, Dropped, MissedRule, Mode, Phase, consumer_of
from sweephand.domain.instants import text
from sweephand.domain.job import Job
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.occurrences.index_row import WAKE
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.runs import run_action
from sweephand.domain.runs.run_action import lane_now
from sweephand.domain.schedule import Lane
from sweephand.server.flow.concurrency import Moved, tolerated, until_unmoved
from sweephand.server.flow.retention import run_expiry
from sweephand.server.flow.runs import held_runs, settle
from sweephand.server.flow.runs.perform import put_event
from sweephand.server.flow.tenants import absence
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.consumers import consumers as store
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.conditional import Cancelled, Refused
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import ledger
from sweephand.server.store.views import jobs as job_views

DROPPED_TYPE = "job.missed.dropped"
DROPPED_TOGETHER = 20
DROPPED_AT_ONCE = 400
"""Runs that one message ends; the next message continues."""
LOOKED_AT = 20
NOTICED = timedelta(seconds=3)
"""After this long, no executor holds a run for a consumer that has become live."""
IDLE_FOR = timedelta(seconds=10)
"""After this long, every executor knows that the consumer's wake will be removed."""
UNDER_WAY = frozenset({State.QUEUED, State.TRIGGERED})


def send_word(world: World, consumer: Consumer, at: datetime) -> None:
    """Sends the message that continues with a consumer's held runs. Raises Unavailable."""
    pointer = Pointer(consumer.tenant, consumer.name, None, consumer.name, at, subject=Subject.CONSUMER)
    world.queue.send_one(Delivery(pointer, at, Lane.FAST))


def wake_up(world: World, pointer: Pointer) -> None:
    """Acts on a consumer's wake, or on a message about it. Raises Unavailable."""
    go_on(world, pointer.tenant, pointer.run)


@until_unmoved("changes of this consumer's replay", 10, wait_s=0.005)
def go_on(world: World, tenant: str, name: str) -> None:
    """Ends the runs that the consumer will not get. Then sends the next run on, or makes the consumer live."""
    consumer = store.read(world.table, tenant, name)
    if consumer is not None and consumer.ends_until is not None:
        consumer = _there_again(world, consumer)
    if consumer is None:
        return
    phase = consumer.phase_at(world.clock.now())
    starting = phase is Phase.STARTING and not consumer.decided
    if phase is Phase.AWAY or starting:
        if not _choose(world, consumer, starting=starting):
            send_word(world, consumer, world.clock.now())
            return
        if not starting:
            _see_to_watch(world, consumer)
            _see_to_wake(world, consumer)
            return
        _announce(world, consumer)
        if isinstance(store.decide(world.table, consumer), Refused):
            raise Moved
        consumer = replace(consumer, decided=True)
    _send_next(world, consumer)
    _see_to_wake(world, consumer)


def _there_again(world: World, consumer: Consumer) -> Consumer | None:
    """Ends the runs held for a deleted consumer, and publishes that. Returns the consumer if it exists again.

    It does once somebody has taken its lease, or a job that still names it has fallen due since.
    """
    assert consumer.ends_until is not None
    if not _choose(world, consumer, starting=False):
        send_word(world, consumer, world.clock.now())
        return None
    _announce(world, consumer)
    until = consumer.ends_until
    if consumer.is_held(world.clock.now()) or any(run.planned_at > until for run in _held(world, consumer)):
        if isinstance(store.stay(world.table, consumer), Refused):
            raise Moved
        return replace(consumer, ends_until=None)
    _see_to_wake(world, consumer)
    return None


def pass_on(world: World, run: Run) -> None:
    """Sends the next run on after an attempt of this one, which was held. If that is lost, a heartbeat repeats it."""
    assert run.consumer is not None
    with tolerated(world, "the replay continues with the next heartbeat", consumer=run.consumer):
        _pass_on(world, run.tenant, run.consumer, run.id)


@until_unmoved("changes of this consumer's replay", 10, wait_s=0.005)
def _pass_on(world: World, tenant: str, name: str, run_id: str) -> None:
    consumer = store.read(world.table, tenant, name)
    if consumer is None or consumer.current != run_id:
        return
    phase = consumer.phase_at(world.clock.now())
    if phase is Phase.LIVE or (phase is Phase.STARTING and consumer.decided):
        _send_next(world, consumer)


def _send_next(world: World, consumer: Consumer) -> None:
    """Sends the oldest held run on, unless the one before it is in progress. If none is left, the consumer is live.

    Raises Moved if somebody else took the step.
    """
    current = _current(world, consumer)
    if current is not None and current.state in UNDER_WAY:
        if current.state is State.QUEUED:
            settle.send_pointer(world, Lane.FAST, current)
        return
    now = world.clock.now()
    for run in _held(world, consumer):
        job = jobs.read_job(world.table, run.tenant, run.job_id)
        lane = lane_now(job, run.kind, Lane.FAST)
        sent = replace(run, state=State.QUEUED, reason=None, wake_at=now + WAKE)
        done = store.send_on(world.table, consumer, sent, shards=world.shards, lane=lane)
        if not isinstance(done, Cancelled):
            settle.send_pointer(world, lane, sent)
            return
        if "consumer" in done.refused:
            raise Moved
    if consumer.phase is Phase.STARTING:
        if isinstance(store.go_live(world.table, consumer), Refused):
            raise Moved
        world.journal.info("a consumer is live", tenant=consumer.tenant, consumer=consumer.name)
        send_word(world, consumer, now + NOTICED)


def _current(world: World, consumer: Consumer) -> Run | None:
    if consumer.current is None:
        return None
    owner, _, uuid = consumer.current.rpartition("_")
    return ledger.read(world.table, consumer.tenant, owner, uuid)


def _held(world: World, consumer: Consumer) -> Iterator[Run]:
    """Yields the held runs, oldest first, each as it is now."""
    run_keys = store.held(world.table, consumer.tenant, consumer.name, LOOKED_AT)
    page: list[tuple[str, str]] = []
    for key in run_keys:
        page.append(key)
        if len(page) == LOOKED_AT:
            yield from store.still_held(world.table, consumer.name, page)
            page = []
    yield from store.still_held(world.table, consumer.name, page)


# The choice


@dataclass(frozen=True)
class _Backlog:
    """The held runs of a job as the index lists them, oldest first. job: None if it was deleted."""

    job: Job | None
    job_id: str
    entries: Sequence[tuple[str, str]]

    @property
    def rule(self) -> MissedRule:
        return MissedRule.of(self.job)

    def left(self, consumer: Consumer) -> bool:
        """Returns whether the job no longer names the consumer."""
        return self.job is not None and consumer_of(self.job) != consumer.name


def _choose(world: World, consumer: Consumer, *, starting: bool) -> bool:
    """Ends the runs that the consumer will not get. Returns False if more are left than one message ends."""
    now, left = world.clock.now(), DROPPED_AT_ONCE
    for backlog in _backlogs(world, consumer):
        if backlog.left(consumer):
            _let_go(world, consumer, backlog, backlog.entries[:left])
            left -= len(backlog.entries)
            if left < 0:
                return False
            continue
        planned = [store.planned_at(key) for key in backlog.entries]
        kept = _kept(consumer, backlog.rule, planned, now, starting=starting)
        going = [*backlog.entries[: kept.start], *backlog.entries[kept.stop :]]
        for some in _by_schedule(going[:left]):
            _drop(world, consumer, backlog, some, now)
        left -= len(going)
        if left < 0:
            return False
        if starting and backlog.rule.mode is Mode.COUNT:
            _stand_for_all(world, consumer, backlog, [backlog.entries[place] for place in kept])
    return True


def _kept(consumer: Consumer, rule: MissedRule, planned: Sequence[datetime], now: datetime, *, starting: bool) -> range:
    """Returns the places of the runs that are kept, as MissedRule.kept does; after a delete, of those planned since."""
    if consumer.ends_until is None:
        return rule.kept(planned, now, starting=starting)
    return range(sum(instant <= consumer.ends_until for instant in planned), len(planned))


def _backlogs(world: World, consumer: Consumer) -> Iterator[_Backlog]:
    """Yields the held runs of each job."""
    of_owner: Mapping[str, list[tuple[str, str]]] = defaultdict(list)
    for key in store.held(world.table, consumer.tenant, consumer.name):
        of_owner[key[0]].append(key)
    firsts = [entries[0] for entries in of_owner.values()]
    job_of = {
        keys.runs(run.tenant, run.schedule_id or run.job_id): run.job_id
        for run in ledger.read_many(world.table, firsts)
    }
    jobs: Mapping[str, Job] = job_views.named_jobs(world.table, consumer.tenant, set(job_of.values()))
    of_job: Mapping[str, list[tuple[str, str]]] = defaultdict(list)
    for owner, entries in of_owner.items():
        if owner in job_of:
            of_job[job_of[owner]] += entries
    for job_id, entries in of_job.items():
        yield _Backlog(jobs.get(job_id), job_id, sorted(entries, key=lambda key: key[1]))


def _let_go(world: World, consumer: Consumer, backlog: _Backlog, entries: Sequence[tuple[str, str]]) -> None:
    """Holds runs for the consumer that their job names now; without one, sends them to where its action is carried out.

    There, the gate judges them like runs that no worker took: by the misfire policy of their schedule.
    """
    job, now = backlog.job, world.clock.now()
    assert job is not None
    name, lane = consumer_of(job), run_action.lane_of(job.action, job.tenant)
    if name is not None:
        held_runs.expect(world, job.tenant, name, now)
    note = f"its job no longer names the consumer {consumer.name}, for which this run was held"
    for run in store.still_held(world.table, consumer.name, entries):
        free = replace(run, consumer=name, wake_at=None if name else now + WAKE)
        if isinstance(store.let_go(world.table, free, note, shards=world.shards, lane=lane), Refused):
            raise Moved
        if name is None:
            settle.send_pointer(world, lane, free)
    if name is not None:
        send_word(world, Consumer(job.tenant, name), now + NOTICED)


def _by_schedule(entries: Sequence[tuple[str, str]]) -> Iterator[Sequence[tuple[str, str]]]:
    """Yields the entries of one schedule at a time, at most as many as one transaction can end."""
    of_owner: Mapping[str, list[tuple[str, str]]] = defaultdict(list)
    for key in entries:
        of_owner[key[0]].append(key)
    for of_schedule in of_owner.values():
        for begin in range(0, len(of_schedule), DROPPED_TOGETHER):
            yield of_schedule[begin : begin + DROPPED_TOGETHER]


def _drop(
    world: World, consumer: Consumer, backlog: _Backlog, entries: Sequence[tuple[str, str]], now: datetime
) -> None:
    """Ends some held runs and counts them, in one transaction. Then executors carry out the effects of each end.

    Raises Moved if one of them is no longer held, or if somebody else has changed the count.
    """
    runs = store.still_held(world.table, consumer.name, entries)
    if not runs:
        return
    dropped = store.dropped_of(world.table, consumer.tenant, consumer.name, backlog.job_id)
    ended = [
        replace(
            run,
            state=State.MISSED,
            message=f"the consumer {consumer.name} was {'away' if consumer.ends_until is None else 'deleted'}",
            finished_at=now,
            expires_at=run_expiry(world, run.tenant, None if backlog.job is None else backlog.job.collection, now),
            wake_at=now + WAKE,
        )
        for run in runs
    ]
    done = store.drop(world.table, consumer.name, ended, dropped, shards=world.shards, lane=Lane.FAST)
    if isinstance(done, Cancelled):
        raise Moved
    unsent = world.queue.send([Delivery(ledger.pointer_to(run), now, Lane.FAST) for run in ended])
    if unsent:
        world.journal.warning("runs that a consumer missed end later, by their wakes", left=len(unsent))


def _stand_for_all(world: World, consumer: Consumer, backlog: _Backlog, entries: Sequence[tuple[str, str]]) -> None:
    """Makes the kept run represent those that were dropped. Raises Moved."""
    dropped = store.dropped_of(world.table, consumer.tenant, consumer.name, backlog.job_id)
    if dropped is None:
        return
    for run in store.still_held(world.table, consumer.name, entries):
        first = min(dropped.first_at, run.planned_at)
        counted = replace(run, missed_count=run.missed_count + dropped.count, missed_from=first)
        if isinstance(store.stand_for(world.table, consumer.name, counted, dropped), Cancelled):
            raise Moved


# The event of dropped runs


def _announce(world: World, consumer: Consumer) -> None:
    """Publishes which runs the consumer will not get, with one event for each job. A repetition has the same id.

    Raises Unavailable if the bus does not take an event; then the replay waits for it. Raises Moved.
    """
    for each in list(store.dropped(world.table, consumer.tenant, consumer.name)):
        if isinstance(store.close(world.table, consumer.tenant, consumer.name, each), Cancelled):
            raise Moved
    for each in list(store.unpublished(world.table, consumer.tenant, consumer.name)):
        job = jobs.read_job(world.table, consumer.tenant, each.job_id)
        detail = dumps(_detail(consumer, each, job))
        application = None if job is None else job.action.params.get("application")
        refused = put_event(world, consumer.tenant, application, DROPPED_TYPE, detail)
        if refused is not None:
            raise Unavailable(f"an event could not be published: {refused}")
        store.forget(world.table, consumer.tenant, consumer.name, each)


def _detail(consumer: Consumer, dropped: Dropped, job: Job | None) -> Mapping[str, object]:
    """Returns the event's detail in the form of events/schemas/job.missed.dropped.json."""
    tags = () if job is None else job.tags
    first, last = text(dropped.first_at), text(dropped.last_at)
    return {
        "id": f"{dropped.job_id}:{first}:{last}:{dropped.count}",
        "tenant": consumer.tenant,
        "consumer": consumer.name,
        "jobId": dropped.job_id,
        "jobScheduleId": dropped.job_id,
        "resourceId": None if job is None else job.resource_id,
        "tag": tags[0] if tags else None,
        "tags": list(tags),
        "count": dropped.count,
        "from": first,
        "until": last,
        "reason": Reason.CONSUMER_AWAY.value,
    }


# The watch and the wake


def _see_to_watch(world: World, consumer: Consumer) -> None:
    """Watches a consumer that stopped while runs were held for it."""
    if consumer.watched_since is None and next(store.held(world.table, consumer.tenant, consumer.name, 1), None):
        absence.watch(world, consumer, world.clock.now())


def _see_to_wake(world: World, consumer: Consumer) -> None:
    """Takes the consumer's wake out of the index in two steps once nothing is held. Removes a deleted consumer with it.

    Between the steps, every executor learns of the first one. So a run that is held after that writes the wake again.
    """
    if next(store.held(world.table, consumer.tenant, consumer.name, 1), None) is not None:
        return
    now = world.clock.now()
    if consumer.watched:
        store.let_idle(world.table, consumer.tenant, consumer.name, now)
    elif consumer.idle_at is not None and consumer.idle_at + IDLE_FOR < now:
        wake_at = store.wake_of(world.table, consumer.tenant, consumer.name)
        if wake_at is not None and consumer.ends_until is not None:
            store.remove(world.table, consumer, wake_at)
        elif wake_at is not None:
            store.drop_wake(world.table, consumer.tenant, consumer.name, wake_at)
