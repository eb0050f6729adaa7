"""Tenants and collections: creates, changes and deletes them, and applies the limits of collections to jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sweephand.base.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    Unauthenticated,
    name_taken,
)
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.domain.collection import (
    Collection,
    CollectionState,
    Events,
    Home,
    Pace,
    Subscription,
    Tenant,
    TenantState,
    Usage,
)
from sweephand.domain.job import DEFAULT_COLLECTION, DEFAULT_FACADE, Job
from sweephand.domain.run import Reason, Run
from sweephand.schedules.timing import Timing, with_count
from sweephand.server.flow.concurrency import Moved, require_revision, until_unmoved
from sweephand.server.flow.idempotency import Once, check_once, once_ops
from sweephand.server.flow.world import World
from sweephand.server.security import caller
from sweephand.server.security.caller import Caller
from sweephand.server.store.dynamo.conditional import Cancelled, Op
from sweephand.server.store.runs import ledger
from sweephand.server.store.tenants import tenants

with lazy():
    from sweephand.domain.occurrences import off_times as stretches
    from sweephand.server.flow import events
    from sweephand.server.flow.series import holding
    from sweephand.server.store.flow_keys import flow_keys
    from sweephand.server.store.index import suspended
    from sweephand.server.store.tenants import counts, usage
    from sweephand.server.store.views import tenants as views

UNLIMITED, USUAL_PACE = Usage(), Pace()
TENANT_KEPT_S = 10.0
REFUSED_KEPT_S = 1.0
"""A refusal is remembered for less time, because the tenant may just have been enabled or created."""
NOTICED = timedelta(seconds=TENANT_KEPT_S + 5)
"""After this long, every function knows a tenant's new state, and requests admitted before have made their writes."""
SKEW = timedelta(seconds=5)
"""The most by which two functions' clocks differ. A purge takes longer, so all tokens of a purged tenant are older."""


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
    once: Once | None = None,
) -> Tenant:
    """Creates the tenant with its collection `default`. application: subscribes the tenant to it, unless empty.

    Raises Conflict(NAME_TAKEN).
    """
    now = world.clock.now()
    subscribed = {application: Subscription(now, actor)} if application else {}
    tenant = Tenant(
        name, TenantState.ACTIVE, description, now, subscribed, pace=pace, withheld=withheld, created_by=actor
    )
    default = Collection(name, DEFAULT_COLLECTION, created_at=now, created_by=actor, modified_at=now)
    ops = [*tenants.tenant_ops(world.table, tenant), *tenants.create_collection_ops(world.table, default)]
    if allowed != UNLIMITED:
        ops.append(usage.limit_op(world.table, name, allowed))
    done = world.table.transact([*ops, *once_ops(world, None, once, name)])
    if isinstance(done, Cancelled) and tenants.read_tenant(world.table, name) != tenant:
        check_once(done, once)
        raise name_taken("tenant", name)
    events.tenant_changed(world, "created", tenant, actor)
    return tenant


def find_tenant(world: World, name: str) -> Tenant:
    tenant = tenants.read_tenant(world.table, name)
    if tenant is None:
        raise NotFound("no such tenant")
    return tenant


def began_at(world: World, name: str) -> datetime | None:
    """Returns when the tenant was created, or None. Older rows belong to an earlier tenant of this name."""
    tenant = tenants.read_tenant(world.table, name)
    return None if tenant is None else tenant.created_at


def admitted(world: World, who: Caller, *, fresh: bool = False) -> Caller:
    """Returns the caller without the scopes that the provider withholds from its tenant.

    A withheld scope ends everywhere within 10 seconds, even for callers with tokens of other issuers. The target of a
    run keeps the rights of the run's token. Raises as `require_active` does.
    """
    require_active(world, who, fresh=fresh)
    if who.tenant is None or who.credential_id == caller.RUN_TARGET:
        return who
    withheld = world.terms.of(who.tenant, DEFAULT_COLLECTION, kept_s=TENANT_KEPT_S).withheld
    return replace(who, scopes=who.scopes - withheld)


def find_run(world: World, tenant: str, owner: str, uuid: str) -> Run:
    """Reads a run by its id. Raises NotFound if there is none, if it has expired, or if it is of a former tenant.

    owner: the schedule's id, or the job's for a run without a schedule. A former tenant of the name may have passed its
    run ids to anybody: every target gets them.
    """
    run = ledger.read(world.table, tenant, owner, uuid)
    if run is None or run.is_gone(world.clock.now()) or run.is_of_former(began_at(world, tenant)):
        raise NotFound("no such run")
    return run


def require_active(world: World, who: Caller, *, fresh: bool = False) -> None:
    """Refuses callers of inactive tenants, everywhere within 10 seconds; the provider may still act for them.

    Raises Forbidden if the tenant is disabled or being deleted; Unauthenticated if it was deleted, even if another
    tenant has its name now. fresh: whether to read the tenant now instead of using the cache.
    """
    if who.tenant is None:
        return
    kept_s = 0.0 if fresh else TENANT_KEPT_S
    refused = _refused(world, who, who.tenant, kept_s) and _refused(world, who, who.tenant, REFUSED_KEPT_S)
    if refused:
        raise refused


def _refused(world: World, who: Caller, tenant: str, kept_s: float) -> Forbidden | Unauthenticated | None:
    terms = world.terms.of(tenant, DEFAULT_COLLECTION, kept_s=kept_s)
    if not terms.tenant_active:
        return Forbidden("the tenant is disabled: only its provider can enable it", code="TENANT_DISABLED")
    if tenant == caller.PROVIDER:  # by the token of a run: the provider's own namespace is not a tenant
        return None
    earlier = who.since is not None and terms.tenant_since is not None and who.since + SKEW < terms.tenant_since
    return Unauthenticated() if terms.tenant_since is None or earlier else None


def require_tenant(world: World, name: str) -> None:
    """Raises NotFound for an unknown tenant. A provider that acts for it would otherwise see an empty tenant."""
    for kept_s in (TENANT_KEPT_S, REFUSED_KEPT_S):
        if world.terms.of(name, DEFAULT_COLLECTION, kept_s=kept_s).tenant_since is not None:
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
    """Sets a tenant's description, quotas and withheld scopes. Its resources stay. Raises NotFound."""
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
        raise tenants.leaving(world.table, name)
    counts.void(world.table, usage.counted(name, usage.read_quotas(world.table, name)))
    events.tenant_changed(world, "changed", after, actor)
    return after


def stays_ops(world: World, tenant: str | None) -> list[Op]:
    """Returns the guard of a transaction that adds to a tenant; none for the provider's own namespace."""
    return [] if tenant in {None, caller.PROVIDER} else [tenants.stays_op(world.table, str(tenant))]


def switch_tenant(world: World, name: str, *, on: bool, actor: str | None = None) -> Tenant:
    """Enables or disables a tenant. May be repeated. Raises Conflict once its deletion has begun."""
    before = find_tenant(world, name)
    if before.purge is not None:
        raise before.being_purged()
    state = TenantState.ACTIVE if on else TenantState.DISABLED
    if state is before.state:
        return before
    now = world.clock.now()
    off_times = off_times_switched(before.off_times, now, on=on)
    after = replace(before, state=state, modified_at=now, modified_by=actor, off_times=off_times)
    ops = [*tenants.change_tenant_ops(world.table, after), *suspension_ops(world, name, None, now, on=on)]
    if isinstance(world.table.transact(ops), Cancelled):
        raise tenants.leaving(world.table, name)
    if on:
        holding.begin(world, name, None)
    events.tenant_changed(world, "enabled" if on else "disabled", after, actor)
    return after


def off_times_switched(times: str | None, now: datetime, *, on: bool) -> str | None:
    """Returns the off times with one more that ends or begins at this moment."""
    if on:
        return stretches.ended(times, now)
    return stretches.began(times, Reason.DISABLED, stretches.ANY_GENERATION, now)


def suspension_ops(world: World, tenant: str, collection: str | None, now: datetime, *, on: bool) -> list[Op]:
    if on:
        return suspended.end_ops(world.table, tenant, collection, now, world.shards)
    return suspended.begin_ops(world.table, tenant, collection, now)


# Collections


def find_collection(world: World, tenant: str, name: str) -> Collection:
    collection = tenants.read_collection(world.table, tenant, name)
    if collection is None:
        raise NotFound("no such collection")
    return collection


def check_collection(world: World, tenant: str, name: str) -> None:
    """Raises InvalidRequest if the tenant has no collection of this name. A list limited to it would look empty."""
    if tenants.read_collection(world.table, tenant, name) is None:
        raise InvalidRequest("collection", f"there is no such collection: {fields.shown(name)}")


def home_of(world: World, tenant: str, name: str) -> Home:
    """Reads the collection that a job names, its tenant, and the tenant's quotas, in one call."""
    return tenants.read_home(world.table, tenant, name)


def opened(home: Home, *, for_more: bool = True) -> tuple[Collection, Usage]:
    """Returns the collection that a job names, and the tenant's quotas.

    for_more: whether a job or a schedule is added. Raises InvalidRequest if there is no such collection; Conflict, if
    for_more, once the tenant is being purged. A plain read is enough: a job that is created just as the purge begins is
    deleted with the others.
    """
    collection = home.collection
    if for_more and home.tenant is not None and home.tenant.purge is not None:
        raise home.tenant.being_purged()
    if collection is None or (for_more and collection.state is CollectionState.DELETING):
        raise InvalidRequest("collection", f"there is no such collection: {fields.shown(home.name)}; create it first")
    return collection, home.quotas


def open_with_quotas(world: World, tenant: str, name: str, *, for_more: bool = True) -> tuple[Collection, Usage]:
    """Reads the collection that a job names, and the tenant's quotas, in one call. Raises as `opened`."""
    return opened(home_of(world, tenant, name), for_more=for_more)


def check_home(collection: Collection, job: Job) -> None:
    """Raises Conflict(FACADE_LIMIT) for a job of another facade, which the facade of the collection could not show."""
    if collection.facade not in {DEFAULT_FACADE, job.facade}:
        reason = f"the collection {collection.name} takes jobs of the facade {collection.facade} only"
        raise Conflict(reason, code="FACADE_LIMIT")


def defaults_of(world: World, tenant: str, name: str) -> Mapping[str, Any]:
    """Returns the collection's defaults for members that a new job leaves out; none for an unknown collection."""
    collection = tenants.read_collection(world.table, tenant, name)
    return {} if collection is None else collection.defaults


@dataclass(frozen=True)
class Places:
    """A limit on the collections of a facade whose addresses begin alike.

    kind: collections of one kind are counted together. check: takes a kind and the number of other collections of that
    kind; raises QuotaExceeded.
    """

    beginning: str
    kind: Callable[[Collection], str]
    check: Callable[[str, int], None]


def _place_ops(world: World, before: Collection | None, wanted: Collection, places: Places | None) -> list[Op]:
    """Returns the part of a transaction that fails if a collection was added since the others were counted."""
    if places is None or (before is not None and places.kind(before) == places.kind(wanted)):
        return []
    place, kind = (world.table, wanted.tenant, wanted.facade, places.beginning), places.kind(wanted)
    came = tenants.read_places(*place)
    others = [each for each in views.collections_at(*place) if each.name != wanted.name]
    places.check(kind, sum(places.kind(each) == kind for each in others))
    return [tenants.places_op(*place, came)]


@until_unmoved("changes to the collections", tries=20, wait_s=0.02)
def create_collection(
    world: World,
    wanted: Collection,
    actor: str | None = None,
    places: Places | None = None,
    once: Once | None = None,
) -> Collection:
    """Creates a collection. Raises Conflict(NAME_TAKEN), QuotaExceeded if it has no place."""
    now = world.clock.now()
    collection = replace(wanted, created_at=now, created_by=actor, modified_at=now)
    put = [*tenants.create_collection_ops(world.table, collection), *_place_ops(world, None, wanted, places)]
    if wanted.address is not None:
        put.append(tenants.address_op(world.table, collection))
    named_key = flow_key_ops(world, wanted.tenant, None, wanted.flow_key)
    remembered = once_ops(world, wanted.tenant, once, wanted.name)
    done = world.table.transact([*put, *stays_ops(world, wanted.tenant), *named_key, *remembered])
    if isinstance(done, Cancelled):
        if "tenant" in done.refused:
            raise tenants.leaving(world.table, wanted.tenant)
        flow_key_exists(world, wanted.tenant, done, "flowKey", wanted.flow_key)
        current = tenants.read_collection(world.table, wanted.tenant, wanted.name)
        if current != collection:
            check_once(done, once)
        if current != collection and "places" in done.refused:
            raise Moved
        if current != collection:
            raise name_taken("collection", wanted.name)
    return collection


@until_unmoved("changes to this collection")
def change_collection(
    world: World,
    tenant: str,
    name: str,
    edit: Callable[[Collection], Collection],
    if_match: int | None,
    actor: str | None = None,
    places: Places | None = None,
) -> Collection:
    """Changes a collection. actor: the caller's client id; None for the service. places: limits those of its kind.

    Raises NotFound, PreconditionFailed, QuotaExceeded if it has no place, InvalidRequest for an unknown flow key, and
    Conflict while it is being deleted.
    """
    before = find_collection(world, tenant, name)
    require_revision(if_match, before.revision, "the collection is at revision")
    if before.state is CollectionState.DELETING:
        raise Conflict("the collection is being deleted")
    wanted = edit(before)
    if wanted == before:
        return before
    now = world.clock.now()
    after = replace(wanted, revision=before.revision + 1, modified_at=now, modified_by=actor)
    switched = after.state is not before.state
    on = after.state is CollectionState.ENABLED
    if switched:
        after = replace(after, off_times=off_times_switched(before.off_times, now, on=on))
    ops = [tenants.change_collection_op(world.table, after, before.revision)]
    ops += flow_key_ops(world, tenant, before.flow_key, after.flow_key)
    ops += _place_ops(world, before, after, places)
    if switched:
        ops += suspension_ops(world, tenant, name, now, on=on)
    done = world.table.transact(ops)
    if isinstance(done, Cancelled):
        if "collection" not in done.refused:
            flow_key_exists(world, tenant, done, "flowKey", after.flow_key)
        raise Moved
    if {before.quota.max_jobs, after.quota.max_jobs} != {None}:
        counts.void(world.table, tenants.counted(after))
    if switched and on:
        holding.begin(world, tenant, name)
    if switched and after.events is Events.ALL:
        events.collection_switched(world, after)
    return after


def delete_collection(world: World, tenant: str, name: str, if_match: int | None) -> None:
    """Deletes a collection. Raises Conflict while it has jobs, and for `default`, which every tenant has."""
    before = find_collection(world, tenant, name)
    if name == DEFAULT_COLLECTION:
        raise Conflict("the collection `default` cannot be deleted")
    require_revision(if_match, before.revision, "the collection is at revision")
    ops = [*tenants.delete_collection_ops(world.table, before), *suspended.forget_ops(world.table, tenant, name)]
    ops += flow_key_ops(world, tenant, before.flow_key, None)
    if before.address is not None and before.state is not CollectionState.DELETING:
        ops.append(tenants.free_address_op(world.table, before))
    done = world.table.transact(ops)
    if isinstance(done, Cancelled) and tenants.read_collection(world.table, tenant, name) is not None:
        raise Conflict("the collection still has jobs")


def flow_key_ops(world: World, tenant: str, before: str | None, after: str | None, number: int = 0) -> list[Op]:
    """Returns the parts of a transaction that changes which flow key a job or collection names; usually none.

    number: of the job.
    """
    if before == after:
        return []
    return flow_keys.use_ops(world.table, tenant, before, after, number)


def flow_key_exists(world: World, tenant: str, refused: Cancelled, field: str, name: object) -> None:
    """Raises InvalidRequest if a transaction failed because the flow key that it names does not exist.

    Raises Moved if it exists now: reading it creates the rows that one of version 0.1 has not.
    """
    if any(part.startswith("flow key ") for part in refused.refused):
        if flow_keys.find(world.table, tenant, str(name)) is not None:
            raise Moved
        raise InvalidRequest(field, f"there is no such flow key: {fields.shown(name)}")


def enabled(collection: Collection, *, on: bool) -> Collection:
    return replace(collection, state=CollectionState.ENABLED if on else CollectionState.DISABLED)


def bounded(collection: Collection, timing: Timing, count: int | None, path: str) -> Timing:
    """Returns the timing of a new or changed schedule, limited to as many occurrences as its collection allows.

    count: the caller's own limit. Raises QuotaExceeded if that is higher.
    """
    most = collection.quota.max_runs_per_job
    if most is not None and count is not None and count > most:
        raise QuotaExceeded(f"{path or 'the schedule'}: this collection allows a count of {most} at most")
    wanted = count if most is None else min(most, count or most)
    return timing if timing.count == wanted or not timing.readable else with_count(timing, wanted)


def check_interval(collection: Collection, tenant_usage: Usage, timing: Timing, path: str) -> None:
    """Raises QuotaExceeded if a schedule could run more often than its collection or its provider allows.

    Counts by the clock of its zone, on which a day in spring is no shorter than others.
    """
    limits = (
        (collection.quota.min_interval_s, "this collection"),
        (tenant_usage.least_interval_s, "the provider of this tenant"),
    )
    for least_s, who in limits:
        if least_s is not None and (interval_s := timing.clock_interval_s) is not None and interval_s < least_s:
            raise QuotaExceeded(
                f"{path or 'the schedule'}: {who} allows at most one occurrence every {least_s:,} seconds "
                f"(quota.minIntervalSeconds); two of this schedule may be {interval_s:,} seconds apart"
            )
