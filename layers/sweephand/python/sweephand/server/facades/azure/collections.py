"""Job collections of the Azure facade."""

from __future__ import annotations

from collections.abc import Callable

from sweephand.base.errors import Conflict, QuotaExceeded, Unavailable
from sweephand.base.lazy import lazy
from sweephand.domain.collection import Collection
from sweephand.formats.azure import collection_fields as fields
from sweephand.formats.azure.members import FACADE
from sweephand.server.facades.azure import free_plan, lists
from sweephand.server.facades.azure.context import Context
from sweephand.server.facades.http import Answer
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.views import tenants

with lazy():
    from sweephand.server.flow.tenants import retirement

TRIES = 5


def list_of_subscription(ctx: Context) -> Answer:
    return _list(ctx, ctx.address("subscription"))


def list_of_group(ctx: Context) -> Answer:
    return _list(ctx, ctx.address("subscription", "group"))


def _list(ctx: Context, beginning: str) -> Answer:
    """Lists collections by name. Only those of the page are read in full."""
    addresses = tenants.addresses_at(ctx.world.table, ctx.tenant, FACADE, beginning)
    page = lists.page(ctx, sorted(addresses, key=lambda address: (address.split("/")[-2], address)))
    shown = tenants.collections_named(ctx.world.table, ctx.tenant, (addresses[address] for address in page["value"]))
    return Answer(200, {**page, "value": [fields.body(each, ctx.version) for each in shown]})


def read(ctx: Context) -> Answer:
    return _answer(ctx, ctx.collection())


def _answer(ctx: Context, collection: Collection, status: int = 200) -> Answer:
    return Answer(status, fields.body(collection, ctx.version))


def put(ctx: Context) -> Answer:
    body = ctx.body()
    for _ in range(TRIES):
        current = ctx.find_collection()
        if current is not None:
            return _change(ctx, current, lambda before: fields.read(body, before))
        wanted = fields.read(body, _new(ctx))
        try:
            return _answer(ctx, tenancy.create_collection(ctx.world, wanted, ctx.actor, _places(ctx)), 201)
        except Conflict as refused:
            if refused.code != "NAME_TAKEN":
                raise
    raise _busy()


def _new(ctx: Context) -> Collection:
    """Returns a collection with the names in the path, and with an internal name that is never used again."""
    names = {"subscription": "subscription", "group": "group", "name": "collection"}
    return Collection(
        ctx.tenant,
        f"{FACADE}-{ctx.world.chance.new_id(ctx.now)}",
        retention=fields.RETENTION,
        facade=FACADE,
        address=ctx.collection_address,
        attributes={name: ctx.parameters[parameter] for name, parameter in names.items()},
    )


def patch(ctx: Context) -> Answer:
    body = ctx.body()
    return _change(ctx, ctx.collection(), lambda before: fields.patched(body, before))


def enable(ctx: Context) -> Answer:
    return _switch(ctx, on=True)


def disable(ctx: Context) -> Answer:
    return _switch(ctx, on=False)


def _switch(ctx: Context, *, on: bool) -> Answer:
    _change(ctx, ctx.collection(), lambda before: fields.switched(before, on=on))
    return Answer(200)


def _change(ctx: Context, current: Collection, edit: Callable[[Collection], Collection]) -> Answer:
    wanted = edit(current)
    if fields.plan_name(wanted) == fields.FREE != fields.plan_name(current):
        free_plan.check_jobs(ctx, current)
    changed = tenancy.change_collection(ctx.world, ctx.tenant, current.name, edit, None, ctx.actor, _places(ctx))
    return _answer(ctx, changed)


def _places(ctx: Context) -> tenancy.Places:
    """Returns the limit of each plan on its collections in a subscription."""
    return tenancy.Places(ctx.address("subscription"), fields.plan_name, _check_plan)


def _check_plan(name: str, others: int) -> None:
    most = fields.PLANS[name].collections
    if others >= most:
        raise QuotaExceeded(f"the subscription has {others:,} collections of the plan {name}; the maximum is {most:,}")


def delete(ctx: Context) -> Answer:
    """Frees the name at once. The jobs no longer start, and are deleted afterwards."""
    for _ in range(TRIES):
        if retirement.retire(ctx.world, ctx.collection(), ctx.actor):
            return Answer(200)
    raise _busy()


def _busy() -> Unavailable:
    return Unavailable("too many concurrent changes to this collection; try again")
