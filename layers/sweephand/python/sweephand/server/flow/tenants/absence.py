"""Watches applications, consumers and targets: finds out that one is away, and publishes when that begins and ends.

A run that no worker has taken begins the watch of its application, a run that is held that of its consumer, and a call
without an answer that of its target. While a watch lasts, the sweep has it checked each minute. Nothing else is checked
or costs anything.

Workers that receive messages may still be unable to claim a run. While their application is watched, they therefore
count as there only if one of them claims a run or holds one under its lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from sweephand.base.records import dataclass
from sweephand.domain.absence import Watched
from sweephand.domain.application import CHECKED_AFTER, CLAIMS_WITHIN, Application
from sweephand.domain.collection import Silence
from sweephand.domain.consumer import Consumer, Phase
from sweephand.domain.job import DEFAULT_COLLECTION
from sweephand.domain.message import Pointer, Subject
from sweephand.domain.run import Kind
from sweephand.domain.runs import run_action
from sweephand.domain.schedule import Lane
from sweephand.domain.silence import SilentTarget
from sweephand.server.flow import events
from sweephand.server.flow.concurrency import tolerated
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.consumers import consumers
from sweephand.server.store.dynamo.conditional import Written
from sweephand.server.store.jobs import jobs
from sweephand.server.store.tenants import applications, tenants, watches
from sweephand.server.store.views import runs as run_views
from sweephand.server.store.views import tenants as views

MOST_WAITING = 100
"""How many of the runs that are held for a consumer are counted."""


class Back(StrEnum):
    """The reason why something is no longer away."""

    RECEIVED = "RECEIVED"
    """A worker has claimed a run; the consumer has started; or the target has answered."""
    NOTHING_WAITS = "NOTHING_WAITS"
    """Nothing waits: messages were deleted, or SQS has kept them for 14 days; held runs have ended; no call failed for
    an hour.
    """
    DELETED = "DELETED"
    """The application or the consumer was deleted."""


def begin(world: World, unclaimed: Pointer, params: Mapping[str, Any], since: datetime) -> None:
    """Watches the application that the action of a run names, unless it is watched.

    since: when its message could be received. The sweep repeats a check whose message is lost. Raises Unavailable.
    """
    application = applications.read(world.table, unclaimed.tenant, params["application"], params.get("version"))
    if application is not None:
        watch(world, application, since, unclaimed.schedule)


def watch(world: World, watched: Watched, since: datetime, schedule: str | None = None) -> None:
    """Begins a watch, unless there is one. since: when the first of what waits was due. Raises Unavailable.

    schedule: that of the run that waits for a worker.
    """
    if watched.watched_since is not None:
        return
    _RULES[watched.noun].go_on(world, watched)
    now = world.clock.now()
    if isinstance(watches.begin(world.table, watched, since, now, world.shards), Written):
        _send_check(world, watched, now + CHECKED_AFTER, schedule)


def _ask_workers(world: World, application: Application) -> None:
    """Makes workers note that they are there, by a note in the tenant's row, which each of their requests reads."""
    key = watches.key_of(application)[1]
    if key not in _watched_of(world, application.tenant):
        tenants.note_watched(world.table, application.tenant, key, watched=True)
        world.terms.forget(application.tenant)


def _watched_of(world: World, tenant: str) -> frozenset[str]:
    return world.terms.of(tenant, DEFAULT_COLLECTION, kept_s=tenancy.TENANT_KEPT_S).watched


def came(world: World, tenant: str, name: str, version: str | None, until: datetime) -> None:
    """Notes that a worker of a watched application claims a run; the next check publishes it. Best effort.

    until: when its lease ends.
    """
    with tolerated(world, "that a worker came is noted with its next claim"):
        application = applications.read(world.table, tenant, name, version)
        if application is None:
            return
        if application.watched_since is None:
            _ask_no_more(world, application)
            return
        _note_busy(world, application, until)
        now = world.clock.now()
        if application.seen_at is None and isinstance(watches.see(world.table, application, now), Written):
            _send_check(world, application, now)


def _ask_no_more(world: World, application: Application) -> None:
    tenants.note_watched(world.table, application.tenant, watches.key_of(application)[1], watched=False)
    world.terms.forget(application.tenant)


def holds(world: World, tenant: str, job_id: str, kind: Kind, until: datetime) -> None:
    """Notes that a worker still holds a run, if an application is watched. until: when its lease ends. Best effort."""
    if not _watched_of(world, tenant):
        return
    with tolerated(world, "that a worker is busy is noted with its next heartbeat"):
        job = jobs.read_job(world.table, tenant, job_id)
        if job is not None:
            busy(world, tenant, run_action.action_of(job, kind).params, until)


def busy(world: World, tenant: str, params: Mapping[str, Any], until: datetime) -> None:
    """Notes how long a worker holds a run of the application that an action names. Raises Unavailable."""
    application = applications.read(world.table, tenant, params["application"], params.get("version"))
    if application is not None:
        _note_busy(world, application, until)
        if application.away_at is not None:
            check_soon(world, application)


def _note_busy(world: World, application: Application, until: datetime) -> None:
    """Notes a lease, unless one that ends little earlier is noted: many workers may be busy."""
    now = world.clock.now()
    if application.busy_until is None or application.busy_until - now < (until - now) / 2:
        applications.note_busy(world.table, application, until)


def check_soon(world: World, watched: Watched) -> None:
    """Has something that may be watched checked, because its program has started or it has answered. Best effort."""
    if watched.watched_since is not None:
        _send_check(world, watched, world.clock.now())


def _send_check(world: World, watched: Watched, at: datetime, schedule: str | None = None) -> None:
    tenant, sk = watched.tenant, watches.key_of(watched)[1]
    with tolerated(world, "it is checked at its next wake"):
        world.queue.send_one(Delivery(Pointer(tenant, sk, schedule, "", at, subject=Subject.WATCH), at, Lane.FAST))


@dataclass(frozen=True)
class _Standing:
    """How something stands. waiting: how much waits for it. received: whether somebody receives it, or is about to.

    reason: why a target does not answer. known_at: when it can be judged, if it is too early.
    """

    waiting: int
    received: bool
    reason: str | None = None
    known_at: datetime | None = None


def check(world: World, pointer: Pointer) -> None:
    """Checks what is watched: it is away while something waits that nobody receives. Raises Unavailable.

    Events are published before they are noted: a repetition has the same id.
    """
    watched = views.watched(world.table, pointer.tenant, pointer.job)
    if watched is None or watched.watched_since is None:
        return
    rules = _RULES[watched.noun]
    rules.go_on(world, watched)
    standing = rules.standing(world, watched, pointer.schedule)
    if standing.known_at is not None:
        _send_check(world, watched, standing.known_at, pointer.schedule)
    elif standing.received and (watched.away_at is not None or not standing.waiting):
        end(world, watched, Back.RECEIVED)
        rules.watch_on(world, watched, standing.waiting)
    elif not standing.waiting:
        end(world, watched, Back.NOTHING_WAITS)
    elif not standing.received:
        _away(world, watched, standing)


def _of_application(world: World, application: Application, schedule: str | None) -> _Standing:
    """Judges by claims and leases. Messages in flight show only that somebody receives and perhaps will claim."""
    assert application.watched_since is not None
    if application.seen_at is not None:
        return _Standing(0, received=True)
    backlog, now = world.queue.backlog_of(application.lane), world.clock.now()
    waiting = backlog.ready + backlog.in_flight
    if application.busy_until is not None and application.busy_until > now:
        return _Standing(waiting, received=True)
    if not backlog.in_flight or application.away_at is not None:
        return _Standing(waiting, received=False)
    known_at = application.watched_since + CLAIMS_WITHIN
    if now < known_at:
        return _Standing(waiting, received=False, known_at=known_at)
    claimed = schedule is not None and _claimed_since(world, application, schedule)
    return _Standing(0 if claimed else waiting, received=claimed)


def _claimed_since(world: World, application: Application, schedule: str) -> bool:
    """Returns whether a worker took a run of the schedule that is later than the one that waits.

    Workers note their claims only from the moment the watch began, which was a minute after that run was due.
    """
    since, now = application.watched_since, world.clock.now()
    assert since is not None
    later = run_views.planned_between(world.table, application.tenant, schedule, since, now)
    return any(run.started_at is not None for run in later)


def _of_consumer(world: World, consumer: Consumer, _: str | None) -> _Standing:
    held = consumers.held(world.table, consumer.tenant, consumer.name, MOST_WAITING)
    waiting = sum(1 for _, _ in zip(range(MOST_WAITING), held, strict=False))
    return _Standing(waiting, received=consumer.phase_at(world.clock.now()) is not Phase.AWAY)


def _of_target(world: World, target: SilentTarget, _: str | None) -> _Standing:
    """Judges by the note in the tenant's row, which the first answer removes. A later note begins another watch."""
    note = _note_of(world, target)
    if note is None or note.since != target.watched_since:
        return _Standing(0, received=True)
    return _Standing(int(note.until > world.clock.now()), received=False, reason=note.reason)


def _note_of(world: World, target: SilentTarget) -> Silence | None:
    tenant = tenants.read_tenant(world.table, target.tenant)
    return None if tenant is None else tenant.silences.get(target.name)


def _watch_replay(world: World, before: Consumer, waiting: int) -> None:
    """Watches a consumer for which runs are held: it may stop in the middle of its replay."""
    after = consumers.read(world.table, before.tenant, before.name) if waiting else None
    if after is not None:
        watch(world, after, world.clock.now())


def _watch_note(world: World, before: SilentTarget, _: int) -> None:
    """Watches a target that has already failed again."""
    note = _note_of(world, before)
    if note is not None:
        watch(world, SilentTarget(before.tenant, before.name), note.since)


def _nothing(_world: World, _watched: Watched, _waiting: int = 0) -> None:
    """Leaves everything as it is."""


class _Rules(NamedTuple):
    """The rules of one kind, whose functions take things of this kind only.

    standing: judges it. go_on: called when its watch begins and at each check. stop: called before the watch ends.
    watch_on: begins another watch after it is back, if something still waits or already waits again.
    """

    standing: Callable[[World, Any, str | None], _Standing]
    go_on: Callable[[World, Any], None] = _nothing
    stop: Callable[[World, Any], None] = _nothing
    watch_on: Callable[[World, Any, int], None] = _nothing


_RULES: Mapping[str, _Rules] = {
    Application.noun: _Rules(_of_application, _ask_workers, _ask_no_more),
    Consumer.noun: _Rules(_of_consumer, watch_on=_watch_replay),
    SilentTarget.noun: _Rules(_of_target, watch_on=_watch_note),
}


def _away(world: World, watched: Watched, standing: _Standing) -> None:
    now, waiting = world.clock.now(), standing.waiting
    if watched.away_at is None:
        events.away(world, watched, {"reason": standing.reason} if standing.reason else {"waiting": waiting}, now)
        watches.mark_away(world.table, watched, now, waiting)
    elif watched.waiting != waiting:
        watches.count_waiting(world.table, watched, waiting)
    world.journal.count("Away")


def end(world: World, watched: Watched, why: Back) -> None:
    """Ends a watch, if there is one. Publishes it if what is watched was away."""
    if watched.watched_since is None:
        return
    if watched.away_at is not None:
        seen_at = watched.seen_at if isinstance(watched, Application) else None
        events.back(world, watched, why.value, seen_at or world.clock.now())
    _RULES[watched.noun].stop(world, watched)
    watches.end(world.table, watched)
