"""Groups of errors: failed runs with the same signature, which users annotate, archive, rerun or redirect.

A failed run is noted after its end, as one of its effects. Noting it twice writes one row. A group is never deleted
while it has open failures, and an event warns two days before failures expire. (Decision 0036.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from sweephand.base.errors import Conflict, InvalidRequest, NotFound
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.failure import Archived, Failure, Group, Note, Redirect, example_of, signature_of
from sweephand.domain.job import DEFAULT_COLLECTION, Job
from sweephand.domain.message import Pointer
from sweephand.domain.run import FAILED, Run
from sweephand.server.flow.concurrency import TRIES, Moved, too_many, until_unmoved
from sweephand.server.flow.idempotency import Once, check_once, once_ops
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Cancelled, Refused, Written
from sweephand.server.store.errors import failures as store
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import ledger
from sweephand.server.store.tenants import tenants
from sweephand.server.store.views import resources

with lazy():
    from sweephand.server.flow import events
    from sweephand.server.store.runs import gate

WARNED_AHEAD, WARNED_TOGETHER = timedelta(days=2), timedelta(days=3)
"""An event is published two days before the first failure expires.

It counts all failures that expire within three days, so there is at most one event a day.
"""
RECHECK_AFTER = timedelta(days=13)
"""Time between two checks. No run expires in less than 15 days, so each check warns of new failures in time."""
FORGOTTEN = timedelta(days=90)
"""A group without open failures is deleted this long after its last failure."""
DELETED = "the job was deleted"
SOON = timedelta(minutes=1)
CLOSE_ENOUGH = timedelta(seconds=30)
"""Many failures in a short time write their group at most twice a minute, not once for each failure."""
MOST_COUNTED = 100_000
MOST_NOTES = 20
PAGE = 500


def noted(world: World, run: Run, job: Job | None) -> None:
    """Notes a run that has just failed. job: None if it is deleted."""
    now, table = world.clock.now(), world.table
    collection = job.collection if job is not None else DEFAULT_COLLECTION
    if run.is_of_former(world.terms.of(run.tenant, collection).tenant_since):
        return  # its tenant was deleted, and a new tenant has the same name
    store.note(table, run, now)
    _note_group(world, run, _first(run, job, now))
    if job is None:
        close_of_deleted(world, run.tenant, signature_of(run).id)


def _first(run: Run, job: Job | None, now: datetime) -> Group:
    """Returns a new group, whose first failure is this run."""
    collection = job.collection if job is not None else DEFAULT_COLLECTION
    name = job.name if job is not None else None
    signature, example = signature_of(run), example_of(run)
    return Group(run.tenant, signature, collection, now, now, run.id, job_name=name, last_message=example)


def _note_group(world: World, run: Run, fresh: Group) -> None:
    table, now = world.table, fresh.first_at
    group = store.read_group(table, run.tenant, fresh.id, consistent=False)
    if group is not None and now - group.last_at < CLOSE_ENOUGH:
        return
    for _ in range(TRIES):
        if group is not None and not isinstance(store.seen_again(table, group, run, now), Refused):
            return
        if not isinstance(store.begin_group(table, fresh, now + RECHECK_AFTER, world.shards), Refused):
            return
        group = fresh
    raise too_many("changes to this group of errors")


def with_group(world: World, run: Run, job: Job | None) -> None:
    """Creates the group of a failed run that is open again, if the group was deleted. job: None if it is not known."""
    if store.read_group(world.table, run.tenant, signature_of(run).id) is not None:
        return
    job = job or gate.job_of(world.table, run)
    now = world.clock.now()
    store.begin_group(world.table, _first(run, job, now), now + RECHECK_AFTER, world.shards)


def find(world: World, tenant: str, group_id: str) -> Group:
    group, owner = store.read_group(world.table, tenant, group_id), tenants.read_tenant(world.table, tenant)
    if group is None or (owner is not None and group.first_at < owner.created_at):
        raise NotFound("no such group of errors")
    return group


@dataclass(frozen=True)
class OpenRuns:
    """The open runs of a group. more: whether there may be others, not counted. expires_at: the first expiry."""

    count: int
    more: bool
    expires_at: datetime | None


def open_runs(world: World, group: Group, most: int = MOST_COUNTED, until: datetime | None = None) -> OpenRuns:
    """Counts the open runs of a group. most: limit of rows to read. until: leaves out failures from this instant on."""
    now = world.clock.now()
    rows = list(islice(store.runs_of(world.table, group.tenant, group.id, None, PAGE), most + 1))
    failures = [
        each
        for each in rows[:most]
        if each.is_open(group, now) and (until is None or (each.at is not None and each.at < until))
    ]
    ends = [each.expires_at for each in failures if each.expires_at is not None]
    return OpenRuns(len(failures), len(rows) > most, min(ends, default=None))


def runs(world: World, group: Group, after: str | None, page: int) -> Iterator[Failure]:
    """Yields the group's failed runs that still exist, by planned instant, after the uuid `after`."""
    now = world.clock.now()
    for each in store.runs_of(world.table, group.tenant, group.id, after, page):
        if not each.is_gone(now):
            yield each


# Notes and archiving


def add_note(world: World, tenant: str, group_id: str, text: str, actor: str | None, once: Once | None = None) -> Group:
    """Adds a note. Raises NotFound; Conflict if the group has too many."""

    def edit(group: Group) -> Group:
        if len(group.notes) >= MOST_NOTES:
            raise Conflict(f"a group has at most {MOST_NOTES} notes")
        return replace(group, notes=(*group.notes, Note(text, actor, world.clock.now())))

    return _change(world, tenant, group_id, edit, once)


def archive(world: World, tenant: str, group_id: str, reason: str | None, actor: str | None) -> Group:
    """Archives all failures of the group so far. The next failure opens the group again."""
    now = world.clock.now()

    def close(stored: Group) -> Group:
        return replace(stored, closed_through=now, closed_by=actor, closed_reason=reason)

    group = _change(world, tenant, group_id, close)
    events.errors_archived(world, group, None, actor, now)
    return group


def close_of_deleted(world: World, tenant: str, group_id: str) -> None:
    """Archives the failures of a deleted job; the group is deleted with the last of its runs.

    Failures of a redirected job stay open, because they are meant to be run again as runs of another job.
    """
    group = store.read_group(world.table, tenant, group_id)
    if group is None or store.read_redirect(world.table, tenant, group.signature.job_id) is not None:
        return
    with suppress(NotFound):
        group = archive(world, tenant, group_id, DELETED, None)
    rows = islice(store.runs_of(world.table, tenant, group_id, None, PAGE), MOST_COUNTED)
    last = max((each.expires_at for each in rows if each.expires_at is not None), default=world.clock.now())
    store.check_again(world.table, group, last + SOON)


def restore(world: World, tenant: str, group_id: str, actor: str | None) -> Group:
    """Reopens the failures that were archived with the group; those archived one by one stay archived."""

    def reopened(stored: Group) -> Group:
        return replace(stored, closed_through=None, closed_by=None, closed_reason=None)

    group = _change(world, tenant, group_id, reopened)
    events.errors_restored(world, group, None, actor, world.clock.now())
    return group


def archive_run(world: World, group: Group, owner: str, uuid: str, reason: str | None, actor: str | None) -> Failure:
    """Archives one failed run; the other failures of its group stay open.

    owner: the schedule's id, or the job's for a run without a schedule. Raises NotFound.
    """
    archived = Archived(world.clock.now(), actor, reason)
    failure = _set_run(world, group, owner, uuid, archived)
    events.errors_archived(world, group, failure.run_id, actor, archived.at)
    return failure


def restore_run(world: World, group: Group, owner: str, uuid: str, actor: str | None) -> Failure:
    """Ends the run's own archiving; it is then open or archived as its group is. Raises NotFound."""
    failure = _set_run(world, group, owner, uuid, None)
    events.errors_restored(world, group, failure.run_id, actor, world.clock.now())
    return failure


def _set_run(world: World, group: Group, owner: str, uuid: str, archived: Archived | None) -> Failure:
    stored = store.read_run(world.table, group.tenant, group.id, uuid)
    if stored is None or stored.run_id != f"{owner}_{uuid}" or stored.is_gone(world.clock.now()):
        raise NotFound("no such run in this group of errors")
    if isinstance(store.archive_run(world.table, group.tenant, group.id, uuid, archived), Refused):
        raise NotFound("the retention of this run has ended")
    return replace(stored, archived=archived)


@until_unmoved("changes to this group of errors")
def _change(
    world: World, tenant: str, group_id: str, edit: Callable[[Group], Group], once: Once | None = None
) -> Group:
    before = find(world, tenant, group_id)
    after = edit(before)
    op = store.change_group_op(world.table, before, after)
    if once is None:
        done: Written | Refused | Cancelled = world.table.carry_out(op)
    else:
        done = world.table.transact([op, *once_ops(world, tenant, once, group_id)])
    if isinstance(done, Cancelled):
        check_once(done, once)
    if not isinstance(done, Written):
        raise Moved
    return replace(after, revision=before.revision + 1)


# Redirects


def redirect(world: World, tenant: str, source: str, to: str, actor: str | None) -> Redirect:
    """Redirects a job: from now on, reruns of failed runs of `source` are runs of `to`. `source` may be deleted.

    Raises NotFound if `source` neither exists nor has failures; InvalidRequest if `to` is the same job, is unknown, or
    would make a chain.
    """
    if source == to:
        raise InvalidRequest("to", "is the job itself")
    if not _known(world, tenant, source):
        raise NotFound("no such job")
    if jobs.read_job(world.table, tenant, to) is None:
        raise InvalidRequest("to", f'there is no such job: "{to}"')
    if any(each.to == source for each in resources.redirects(world.table, tenant)):
        raise InvalidRequest("to", "would make a chain: another job is redirected to this one")
    if store.read_redirect(world.table, tenant, to) is not None:
        raise InvalidRequest("to", "would make a chain: it is redirected itself")
    # Two concurrent requests may still make a chain. That is harmless, because a rerun follows only one redirect.
    wanted = Redirect(source, to, actor, world.clock.now())
    store.put_redirect(world.table, tenant, wanted)
    return wanted


def _known(world: World, tenant: str, job_id: str) -> bool:
    """Returns whether the job exists, or existed and still has errors."""
    if jobs.read_job(world.table, tenant, job_id) is not None:
        return True
    return any(group.signature.job_id == job_id for group in resources.groups(world.table, tenant))


def end_redirect(world: World, tenant: str, source: str) -> None:
    if store.read_redirect(world.table, tenant, source) is None:
        raise NotFound("no such redirect")
    store.delete_redirect(world.table, tenant, source)


# Failures that expire soon


def wake_up(world: World, pointer: Pointer) -> None:
    """Publishes that open failures of a group expire soon, and sets the next check.

    Deletes a group that is no longer needed.
    """
    group = store.read_group(world.table, pointer.tenant, pointer.run)
    if group is None:
        return
    now = world.clock.now()
    rows = list(islice(store.runs_of(world.table, group.tenant, group.id, None, PAGE), MOST_COUNTED))
    ends = sorted(each.expires_at for each in rows if each.is_open(group, now) and each.expires_at is not None)
    job_is_gone = group.closed_reason == DELETED and all(each.is_gone(now) for each in rows)
    if not ends and (job_is_gone or now - group.last_at > FORGOTTEN):
        store.forget_group(world.table, group)
        return
    soon = [at for at in ends if at <= now + WARNED_TOGETHER]
    if soon:
        job = jobs.read_job(world.table, group.tenant, group.signature.job_id)
        events.errors_expire(world, group, job, len(soon), soon[0], now)
    later = next((at - WARNED_AHEAD for at in ends if at > now + WARNED_TOGETHER), now + RECHECK_AFTER)
    store.check_again(world.table, group, min(later, now + RECHECK_AFTER))


def reopen(world: World, run: Run, job: Job | None) -> None:
    """Reopens the failure that `run` was meant to repeat.

    It is one of the effects of `run`, so it may happen twice, even after the failed run was run again. The group is
    created first. If the failed run expires before the group's next regular check, the group is woken last.
    """
    assert run.rerun_of is not None
    owner, uuid = run.rerun_of.split("_")
    old, now = ledger.read(world.table, run.tenant, owner, uuid), world.clock.now()
    if old is None or old.is_gone(now) or old.state not in FAILED or old.rerun_by not in {None, run.id}:
        return
    with_group(world, old, job if job is None or job.id == old.job_id else None)
    if old.rerun_by == run.id:
        noted = store.read_run(world.table, run.tenant, signature_of(old).id, uuid)
        noted_at = noted.at if noted is not None and noted.at is not None else now
        table = world.table
        table.transact([ledger.not_rerun_op(table, old, run.id), store.not_rerun_op(table, old, noted_at, run.id)])
    _wake_its_group(world, old, now)


def _wake_its_group(world: World, old: Run, now: datetime) -> None:
    """Sets an early check for a run that expires before the next regular check could warn of it."""
    if old.expires_at is None or old.expires_at > now + RECHECK_AFTER + WARNED_AHEAD:
        return
    group = store.read_group(world.table, old.tenant, signature_of(old).id)
    if group is not None:
        store.check_again(world.table, group, now + SOON)
