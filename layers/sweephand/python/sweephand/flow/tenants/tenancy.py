"""Tenants and collections: what is created for whom, and what a collection allows its jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sweephand.domain.collection import (
    Collection,
    CollectionState,
    Events,
    Pace,
    Subscription,
    Tenant,
    TenantState,
    Usage,
)
from sweephand.domain.job import DEFAULT_COLLECTION, Job
from sweephand.domain.run import Reason, Run
from sweephand.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
)
from sweephand.flow.world import World
from sweephand.lazy import lazy
from sweephand.schedules.timing import Timing, with_count
from sweephand.security import caller
from sweephand.security.caller import Caller
from sweephand.store.dynamo.conditional import Cancelled, Op
from sweephand.store.runs import ledger
from sweephand.store.tenants import tenants, usage

with lazy():
    from sweephand.domain.occurrences import off_times as stretches
    from sweephand.flow import events
    from sweephand.flow.series import releasing
    from sweephand.store.flow_keys import flow_keys
    from sweephand.store.index import suspended

TRIES = 5
UNLIMITED, USUAL_PACE = Usage(), Pace()
TENANT_KEPT_S = 10.0
REFUSED_KEPT_S = 1.0
"""Who is refused is looked at again sooner: the tenant may have been enabled, or made, a moment ago."""
NOTICED = timedelta(seconds=TENANT_KEPT_S + 5)
"""After this long every function knows how a tenant stands, and what it had let in before has done its writes."""
SKEW = timedelta(seconds=5)
"""Of two functions' clocks. Less than a tenant's end takes, so a credential of before it is never within."""


def named(tenant: str, name: str) -> Collection:
    """A collection as far as its key goes."""
    return Collection(tenant, name)


# Tenants


def create_tenant(
    world: World,
    name: str,
    description: str | None,
    *,
    allowed: Usage = UNLIMITED,
    pace: Pace = USUAL_PACE,
    application: str = "",
    withheld: frozenset[str] = frozenset(),
    actor: str | None = None,
) -> Tenant:
    """Creates the tenant with its collection `default`. application: that it is subscribed to; none by default.

    Raises Conflict(NAME_TAKEN).
    """
    now = world.clock.now()
    subscribed = {application: Subscription(now, actor)} if application else {}
    tenant = Tenant(
        name, TenantState.ACTIVE, description, now, subscribed, pace=pace, withheld=withheld, created_by=actor
    )
    default = Collection(name, DEFAULT_COLLECTION, created_at=now, created_by=actor, modified_at=now)
    ops = [*tenants.tenant_ops(world.table, tenant), tenants.put_collection_op(world.table, default)]
    if allowed != UNLIMITED:
        ops.append(usage.limit_op(world.table, name, allowed))
    if isinstance(world.table.transact(ops), Cancelled) and tenants.read_tenant(world.table, name) != _stamped(tenant):
        raise Conflict("a tenant of this name exists", code="NAME_TAKEN")
    announce_tenant(world, "created", tenant, actor)
    return tenant


def announce_tenant(world: World, what: str, tenant: Tenant, actor: str | None) -> None:
    """what: happened to it; the second part of the event's type."""
    events.tenant_changed(world, what, tenant, actor)


def _stamped(tenant: Tenant) -> Tenant:
    """As the table gives it back."""
    applications = {name: replace(each, since=_ms(each.since)) for name, each in tenant.applications.items()}
    return replace(tenant, created_at=_ms(tenant.created_at), applications=applications)


def find_tenant(world: World, name: str) -> Tenant:
    tenant = tenants.read_tenant(world.table, name)
    if tenant is None:
        raise NotFound("no such tenant")
    return tenant


def began_at(world: World, name: str) -> datetime | None:
    """What lies before is of a tenant that had this name earlier. None: there is none."""
    tenant = tenants.read_tenant(world.table, name)
    return None if tenant is None else tenant.created_at


def admitted(world: World, who: Caller, *, anew: bool = False) -> Caller:
    """Returns the caller with those of its scopes that the provider does not withhold from its tenant.

    What was withheld is taken within 10 seconds everywhere, also from callers with tokens of other issuers. The target
    of a run keeps what the run's token lets it do. Raises as `require_active` does.
    """
    require_active(world, who, anew=anew)
    if who.tenant is None or who.credential_id == caller.RUN_TARGET:
        return who
    withheld = world.standing.of(who.tenant, DEFAULT_COLLECTION, kept_s=TENANT_KEPT_S).withheld
    return replace(who, scopes=who.scopes - withheld)


def find_run(world: World, tenant: str, owner: str, uuid: str) -> Run:
    """Reads a run by its id. Raises NotFound where there is none, it is over its time, or a former tenant had it.

    owner: the schedule's id, or the job's for a run without a schedule. Whoever had the name may have told the id to
    anybody, and it is sent to every target.
    """
    run = ledger.read(world.table, tenant, owner, uuid)
    if run is None or run.is_gone(world.clock.now()) or run.is_of_former(began_at(world, tenant)):
        raise NotFound("no such run")
    return run


def require_active(world: World, who: Caller, *, anew: bool = False) -> None:
    """Raises Forbidden for the caller of a tenant that is disabled or being deleted, within 10 seconds of that
    everywhere; Unauthenticated for the caller of one that is gone, also where another has its name now.

    The provider may go on acting for it. anew: the tenant is read now, not remembered.
    """
    if who.tenant is None:
        return
    kept_s = 0.0 if anew else TENANT_KEPT_S
    refused = _refused(world, who, who.tenant, kept_s) and _refused(world, who, who.tenant, REFUSED_KEPT_S)
    if refused:
        raise refused


def _refused(world: World, who: Caller, tenant: str, kept_s: float) -> Forbidden | Unauthenticated | None:
    terms = world.standing.of(tenant, DEFAULT_COLLECTION, kept_s=kept_s)
    if not terms.tenant_active:
        return Forbidden("the tenant is disabled: only its provider can enable it", code="TENANT_DISABLED")
    if tenant == caller.PROVIDER:  # by the token of a run: its own name space is no tenant
        return None
    earlier = who.since is not None and terms.tenant_since is not None and who.since + SKEW < terms.tenant_since
    return Unauthenticated() if terms.tenant_since is None or earlier else None


def require_tenant(world: World, name: str) -> None:
    """Raises NotFound where no tenant has this name: who acts for it would otherwise see an empty one."""
    for kept_s in (TENANT_KEPT_S, REFUSED_KEPT_S):
        if world.standing.of(name, DEFAULT_COLLECTION, kept_s=kept_s).tenant_since is not None:
            return
    raise NotFound(f"no such tenant: {name}")


def change_tenant(
    world: World,
    name: str,
    description: str | None,
    allowed: Usage,
    pace: Pace = USUAL_PACE,
    *,
    withheld: frozenset[str] = frozenset(),
    actor: str | None = None,
) -> Tenant:
    """Sets its description, its quotas and the scopes that its callers may use; what it has stays. Raises NotFound."""
    before = find_tenant(world, name)
    after = replace(
        before,
        description=description,
        pace=pace,
        withheld=withheld,
        modified_at=world.clock.now(),
        modified_by=actor,
    )
    ops = [*tenants.change_tenant_ops(world.table, after), usage.limit_op(world.table, name, allowed)]
    if isinstance(world.table.transact(ops), Cancelled):
        raise leaving(world, name)
    announce_tenant(world, "changed", after, actor)
    return after


def leaving(world: World, name: str) -> Conflict | NotFound:
    """Why a tenant took nothing more."""
    there = tenants.read_tenant(world.table, name)
    return NotFound("no such tenant") if there is None else being_purged(there)


def being_purged(tenant: Tenant) -> Conflict:
    return Conflict(f"the tenant is being deleted with all that it has: see the operation {tenant.purge}")


def stays_ops(world: World, tenant: str | None) -> list[Op]:
    """Part of a transaction that gives a tenant something; the provider's own name space is no tenant."""
    return [] if tenant in {None, caller.PROVIDER} else [tenants.stays_op(world.table, str(tenant))]


def switch_tenant(world: World, name: str, *, on: bool, actor: str | None = None) -> Tenant:
    """Enables or disables it, whatever it was: to say it twice changes nothing. Raises Conflict once it is purged."""
    before = find_tenant(world, name)
    if before.purge is not None:
        raise being_purged(before)
    state = TenantState.ACTIVE if on else TenantState.DISABLED
    if state is before.state:
        return before
    now = world.clock.now()
    off_times = _switched(before.off_times, now, on=on)
    after = replace(before, state=state, modified_at=now, modified_by=actor, off_times=off_times)
    ops = [*tenants.change_tenant_ops(world.table, after), *_suspension_ops(world, name, None, now, on=on)]
    if isinstance(world.table.transact(ops), Cancelled):
        raise leaving(world, name)
    if on:
        _begin_release(world, name, None)
    announce_tenant(world, "enabled" if on else "disabled", after, actor)
    return after


def _begin_release(world: World, tenant: str, collection: str | None) -> None:
    releasing.begin(world, tenant, collection)


def _switched(times: str | None, now: datetime, *, on: bool) -> str | None:
    """When it was disabled, with this moment as the end of such a time, or as its beginning."""
    if on:
        return stretches.ended(times, now)
    return stretches.began(times, Reason.DISABLED, stretches.ANY_GENERATION, now)


def _suspension_ops(world: World, tenant: str, collection: str | None, now: datetime, *, on: bool) -> list[Op]:
    if on:
        return suspended.end_ops(world.table, tenant, collection, now, world.settings.shards)
    return suspended.begin_ops(world.table, tenant, collection, now)


# Collections


def find_collection(world: World, tenant: str, name: str) -> Collection:
    collection = tenants.read_collection(world.table, tenant, name)
    if collection is None:
        raise NotFound("no such collection")
    return collection


def open_with_usage(world: World, tenant: str, name: str, *, for_more: bool = True) -> tuple[Collection, Usage]:
    """Reads the collection that a job names, and how much the tenant has and may have, in one call.

    for_more: a job or a schedule is added. Raises InvalidRequest without such a collection; Conflict for more once the
    tenant is purged. A job that is made while the purge begins goes with the rest: to read the tenant's row is enough.
    """
    there, collection, seen = tenants.read_with_usage(world.table, tenant, name)
    if for_more and there is not None and there.purge is not None:
        raise being_purged(there)
    if collection is None:
        raise InvalidRequest("collection", f"there is no such collection: {name[:128]}")
    return collection, seen


def defaults_of(world: World, tenant: str, name: str) -> Mapping[str, Any]:
    """What a new job of this collection gets where its caller says nothing; of one that is not there, nothing."""
    collection = tenants.read_collection(world.table, tenant, name)
    return {} if collection is None else collection.defaults


def create_collection(world: World, wanted: Collection, actor: str | None = None) -> Collection:
    """Raises Conflict(NAME_TAKEN)."""
    now = world.clock.now()
    collection = replace(wanted, created_at=now, created_by=actor, modified_at=now)
    put = tenants.put_collection_op(world.table, collection)
    named_key = flow_key_ops(world, wanted.tenant, None, wanted.flow_key)
    done = world.table.transact([put, *stays_ops(world, wanted.tenant), *named_key])
    if isinstance(done, Cancelled):
        if "tenant" in done.refused:
            raise leaving(world, wanted.tenant)
        flow_key_exists(done, "flowKey")
        there = tenants.read_collection(world.table, wanted.tenant, wanted.name)
        if there != replace(collection, created_at=_ms(now), modified_at=_ms(now)):
            raise Conflict("a collection of this name exists", code="NAME_TAKEN")
    return collection


def change_collection(
    world: World,
    tenant: str,
    name: str,
    edit: Callable[[Collection], Collection],
    if_match: int | None,
    actor: str | None = None,
) -> Collection:
    """actor: the client id of whoever asks; None: the service."""
    for _ in range(TRIES):
        before = find_collection(world, tenant, name)
        if if_match is not None and before.revision != if_match:
            raise PreconditionFailed(f"the collection is at revision {before.revision}")
        wanted = edit(before)
        if wanted == before:
            return before
        now = world.clock.now()
        after = replace(wanted, revision=before.revision + 1, modified_at=now, modified_by=actor)
        switched = after.state is not before.state
        on = after.state is CollectionState.ENABLED
        if switched:
            after = replace(after, off_times=_switched(before.off_times, now, on=on))
        ops = [tenants.change_collection_op(world.table, after, before.revision)]
        ops += flow_key_ops(world, tenant, before.flow_key, after.flow_key)
        if switched:
            ops += _suspension_ops(world, tenant, name, now, on=on)
        done = world.table.transact(ops)
        if not isinstance(done, Cancelled):
            if switched and on:
                _begin_release(world, tenant, name)
            if switched and after.events is Events.ALL:
                _tell_switch(world, after)
            return after
        if "collection" not in done.refused:
            flow_key_exists(done, "flowKey")
    raise Unavailable("too many concurrent changes to this collection; try again")


def _tell_switch(world: World, collection: Collection) -> None:
    events.collection_switched(world, collection)


def delete_collection(world: World, tenant: str, name: str, if_match: int | None) -> None:
    """Raises Conflict while jobs are in it, and for `default`, which every tenant has."""
    before = find_collection(world, tenant, name)
    if name == DEFAULT_COLLECTION:
        raise Conflict("the collection `default` cannot be deleted")
    if if_match is not None and before.revision != if_match:
        raise PreconditionFailed(f"the collection is at revision {before.revision}")
    ops = [tenants.delete_collection_op(world.table, before), *suspended.forget_ops(world.table, tenant, name)]
    ops += flow_key_ops(world, tenant, before.flow_key, None)
    done = world.table.transact(ops)
    if isinstance(done, Cancelled) and tenants.read_collection(world.table, tenant, name) is not None:
        raise Conflict("the collection still has jobs")


def flow_key_ops(world: World, tenant: str, before: str | None, after: str | None) -> list[Op]:
    """Parts of the transaction of a job or a collection that names another flow key than before; mostly none."""
    if before == after:
        return []
    return flow_keys.use_ops(world.table, tenant, before, after)


def flow_key_exists(refused: Cancelled, field: str) -> None:
    """Raises InvalidRequest where a transaction failed because the flow key that it names is not there."""
    if any(part.startswith("flow key ") for part in refused.refused):
        raise InvalidRequest(field, "there is no such flow key")


def enabled(collection: Collection, *, on: bool) -> Collection:
    return replace(collection, state=CollectionState.ENABLED if on else CollectionState.DISABLED)


def bounded(collection: Collection, timing: Timing, count: int | None, path: str) -> Timing:
    """The timing of a new or changed schedule, over once it has planned as many occurrences as its collection allows.

    count: the caller's own. Raises QuotaExceeded where that is more.
    """
    most = collection.quota.max_runs_per_job
    if most is not None and count is not None and count > most:
        raise QuotaExceeded(f"{path or 'the schedule'}: this collection allows a count of {most} at most")
    wanted = count if most is None else min(most, count or most)
    return timing if timing.count == wanted or not timing.readable else with_count(timing, wanted)


def full(world: World, job: Job) -> QuotaExceeded:
    """Why the collection of a job takes no more jobs."""
    there = tenants.read_collection(world.table, job.tenant, job.collection)
    most = None if there is None else there.quota.max_jobs
    if most is None:
        return QuotaExceeded(f"the collection {job.collection} is being deleted")
    jobs = "1 job" if most == 1 else f"{most:,} jobs"
    reason = f"the collection {job.collection} has {jobs} already, as many as its quota maxJobs allows"
    return QuotaExceeded(f"{reason}: delete jobs, or raise the quota")


def check_interval(collection: Collection, seen: Usage, timing: Timing, path: str) -> None:
    """Raises QuotaExceeded where a schedule could run more often than its collection or its provider allows."""
    limits = (
        (collection.quota.min_interval_s, "this collection"),
        (seen.least_interval_s, "the provider of this tenant"),
    )
    for least, who in limits:
        if least is not None and timing.interval_s is not None and timing.interval_s < least:
            raise QuotaExceeded(
                f"{path or 'the schedule'}: {who} allows an occurrence every {least} seconds at most "
                f"(quota.minIntervalSeconds); this schedule has one every {timing.interval_s} seconds"
            )


def count_job_op(world: World, collection: Collection, step: int) -> Op:
    return tenants.count_job_op(world.table, collection, step)


def move_ops(world: World, before: Job, after: Job, collection: Collection) -> list[Op]:
    """A job that changes its collection is counted there."""
    if before.collection == after.collection:
        return []
    return [
        count_job_op(world, collection, 1),
        count_job_op(world, named(before.tenant, before.collection), -1),
    ]


def _ms(instant: datetime) -> datetime:
    """Whole milliseconds, as the table keeps them."""
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
