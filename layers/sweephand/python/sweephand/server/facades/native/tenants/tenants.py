"""Tenants and their subscriptions to applications, for the provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from sweephand.base import json_text
from sweephand.base.errors import InvalidRequest, Mistakes, NotFound
from sweephand.base.json_schema import Members, answer, items, one_of, or_null, request, text, whole
from sweephand.base.members import fields
from sweephand.base.members.fields import by_schema
from sweephand.domain.answers import Table, answered
from sweephand.domain.collection import (
    DESCENDANTS,
    MOST_DESCENDANTS,
    MOST_RUNS_PER_MINUTE,
    MOST_SCHEDULES,
    Pace,
    Subscription,
    Tenant,
    TenantState,
    Usage,
)
from sweephand.domain.schema_words import ACTOR, INSTANT_MS, PLAIN_NAME, TENANT_NAME
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native import shapes
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.operations import operations
from sweephand.server.facades.native.shared.collection_members import LONGEST_INTERVAL_S
from sweephand.server.facades.native.tenants import credentials
from sweephand.server.flow.idempotency import made_once
from sweephand.server.flow.tenants import subscriptions, tenancy
from sweephand.server.security.caller import TENANT_SCOPES, is_free_name, is_tenant_name
from sweephand.server.store.views import tenants as views

NOT_A_TENANT = "must consist of letters, digits, - and _, and must not be `provider`"
_DESCRIPTION = text(0, 1_000)
_QUOTA: Members = {
    "maxSchedules": whole(
        0,
        MOST_SCHEDULES,
        description="How many schedules the tenant may have in all its jobs. Existing ones stay.",
    ),
    "maxJobs": whole(0, MOST_SCHEDULES, description="How many jobs the tenant may have. Existing ones stay."),
    "minIntervalSeconds": whole(
        1,
        LONGEST_INTERVAL_S,
        description="The shortest time between two occurrences of a new or changed schedule.",
    ),
    "runsPerMinute": whole(
        1,
        MOST_RUNS_PER_MINUTE,
        description="How many runs may begin in a minute; others end as SKIPPED with the reason QUOTA. Each executor"
        " counts its own runs and reports them after every ten, so each may begin up to ten more. "
        "null, the default: no limit.",
    ),
    "maxDescendants": whole(
        0,
        MOST_DESCENDANTS,
        description="How many runs may follow from one run through job actions, hooks and error actions, in all "
        "generations; others end as SKIPPED with the reason QUOTA. 100 unless the provider sets another number.",
    ),
}
_QUOTA_SHOWN = {name: each if name == "maxDescendants" else or_null(each) for name, each in _QUOTA.items()}
_WITHHELD = items(
    one_of(sorted(TENANT_SCOPES)),
    description="Scopes that no caller of the tenant has, even if its credential or token has them.",
)

GIVEN: Members = {"description": _DESCRIPTION, "quota": request(_QUOTA), "withheldScopes": _WITHHELD}
TENANT = Table(
    {
        "tenant": answered(TENANT_NAME, "name"),
        "description": answered(or_null(_DESCRIPTION)),
        "state": answered(one_of(TenantState)),
        "quota": answered(answer(_QUOTA_SHOWN), lambda view: _quota_body(view.tenant, view.usage)),
        "usage": answered(
            answer(
                {
                    "schedules": whole(description="How many schedules it has."),
                    "jobs": whole(description="How many jobs it has."),
                }
            ),
            lambda view: {"schedules": view.usage.schedules, "jobs": view.usage.jobs},
            says="How much of the quota is used.",
        ),
        "withheldScopes": answered(_WITHHELD, lambda view: sorted(view.tenant.withheld)),
        "deletedBy": answered(or_null(text(description="The operation that deletes it; null in a list.")), "purge"),
        "createdAt": answered(INSTANT_MS),
        "createdBy": answered(ACTOR),
        "modifiedAt": answered(or_null(INSTANT_MS)),
        "modifiedBy": answered(ACTOR),
    },
    "tenant",
)
SUBSCRIPTION = Table(
    {
        "tenant": answered(TENANT_NAME),
        "application": answered(PLAIN_NAME),
        "createdAt": answered(INSTANT_MS, "made.since"),
        "createdBy": answered(ACTOR, "made.by"),
    }
)
READ_ONLY = tuple(name for name in TENANT.table if name not in {"tenant", *GIVEN})


class Subscribed(NamedTuple):
    """A subscription of a tenant to an application."""

    tenant: str
    application: str
    made: Subscription


class TenantView(NamedTuple):
    """A tenant with its usage and its limits."""

    tenant: Tenant
    usage: Usage


def create(ctx: Context) -> Answer:
    wrong = Mistakes()
    sent = ctx.body()
    members = fields.members(sent, "", ("tenant", "name", *GIVEN), wrong)
    name, quota = wrong.of(_new_name, members, "name" in sent), wrong.of(_quota, members)
    description, withheld = wrong.of(_description, members), wrong.of(_withheld, members)
    wrong.check()
    allowed, pace = quota
    once = ctx.once()
    make = partial(
        tenancy.create_tenant,
        *(ctx.world, name, description),
        allowed=allowed,
        pace=pace,
        withheld=withheld,
        actor=ctx.actor,
        once=once,
    )
    tenant = made_once(ctx.world, None, once, make, partial(tenancy.find_tenant, ctx.world))
    return Answer(201, body(tenant, allowed), {"Location": f"/v1/tenants/{name}"})


def _new_name(members: Mapping[str, Any], by_name: bool) -> str:
    if "name" in members and "tenant" in members:
        raise InvalidRequest("name", "means the same as `tenant`: leave out one of them")
    member = "name" if by_name and "tenant" not in members else "tenant"
    if member not in members:
        raise InvalidRequest(member, "is required")
    name = fields.text(members[member], member, 1, 64)
    if not is_free_name(name):
        raise InvalidRequest(member, f"{NOT_A_TENANT}; it is {fields.shown(name)}")
    return name


def _description(members: Mapping[str, Any]) -> str | None:
    return fields.free(members["description"], "description", 0, 1_000) if "description" in members else None


def _withheld(members: Mapping[str, Any]) -> frozenset[str]:
    return credentials.scopes(members.get("withheldScopes", []), "withheldScopes", TENANT_SCOPES)


def _quota(members: Mapping[str, Any]) -> tuple[Usage, Pace]:
    """Reads the limits. An absent member means no limit, or the default of `maxDescendants`."""
    quota = fields.members(members.get("quota", {}), "quota", _QUOTA)
    most = {name: by_schema(_QUOTA[name])(quota[name], f"quota.{name}", None) for name in quota}
    allowed = Usage(
        most_schedules=most.get("maxSchedules"),
        most_jobs=most.get("maxJobs"),
        least_interval_s=most.get("minIntervalSeconds"),
    )
    return allowed, Pace(most.get("runsPerMinute"), most.get("maxDescendants", DESCENDANTS))


def read(ctx: Context) -> Answer:
    tenant = tenancy.find_tenant(ctx.world, named(ctx))
    return Answer(200, body(tenant, views.usage_of(ctx.world.table, tenant.name)))


def named(ctx: Context) -> str:
    """Returns the tenant of the path. Raises NotFound for an invalid name."""
    name = ctx.parameters["tenant"]
    if not is_tenant_name(name):
        raise NotFound("no such tenant")
    return name


def list_all(ctx: Context) -> Answer:
    limit, mark = ctx.page(is_tenant_name)
    page = list(islice(views.tenants(ctx.world.table, mark[0] if mark else None, limit + 1), limit + 1))
    cursor = ctx.cursor(page[limit - 1].name) if len(page) > limit else None
    usages = views.usage_of_many(ctx.world.table, [each.name for each in page[:limit]])
    return Answer(200, {"items": [body(each, usages[each.name]) for each in page[:limit]], "nextCursor": cursor})


def patch(ctx: Context) -> Answer:
    """Applies a merge patch. Members that only answers have are ignored."""
    patch_members = ctx.merge_patch("tenant")
    name = named(ctx)
    before = tenancy.find_tenant(ctx.world, name)
    usage = views.usage_of(ctx.world.table, name)
    withheld = sorted(before.withheld)
    stored = {
        "description": before.description,
        "quota": _quota_body(before, usage),
        "withheldScopes": withheld,
    }
    merged = fields.members(json_text.merged(stored, patch_members), "", ("tenant", *GIVEN, *READ_ONLY))
    if merged.get("tenant", name) != name:
        raise InvalidRequest("tenant", "cannot be changed")
    allowed, pace = _quota(merged)
    tenant = tenancy.change_tenant(
        ctx.world, name, _description(merged), allowed, pace, withheld=_withheld(merged), actor=ctx.actor
    )
    return Answer(200, body(tenant, replace(allowed, schedules=usage.schedules, jobs=usage.jobs)))


def enable(ctx: Context) -> Answer:
    return _switch(ctx, on=True)


def disable(ctx: Context) -> Answer:
    return _switch(ctx, on=False)


def _switch(ctx: Context, *, on: bool) -> Answer:
    ctx.no_members()
    tenant = tenancy.switch_tenant(ctx.world, named(ctx), on=on, actor=ctx.actor)
    return Answer(200, body(tenant, views.usage_of(ctx.world.table, tenant.name)))


# Subscriptions of a tenant


def subscribe(ctx: Context) -> Answer:
    """Subscribes a tenant, which is created if it is unknown. Repeating the request changes nothing."""
    ctx.no_members()
    name, application = ctx.parameters["tenant"], ctx.parameters["application"]
    if not is_free_name(name):
        raise InvalidRequest("tenant", NOT_A_TENANT, code="INVALID_QUERY")
    if not shapes.is_plain(application):
        reason = "must have 1 to 128 letters, digits, . _ and -, and begin with a letter or a digit"
        raise InvalidRequest("application", reason, code="INVALID_QUERY")
    made = subscriptions.subscribe(ctx.world, name, application, ctx.actor)
    return Answer(200, SUBSCRIPTION.show(Subscribed(name, application, made)))


def list_subscriptions(ctx: Context) -> Answer:
    """Lists all subscriptions, by application, on one page, because a tenant has few."""
    tenant = tenancy.find_tenant(ctx.world, named(ctx))
    items = [SUBSCRIPTION.show(Subscribed(tenant.name, *each)) for each in sorted(tenant.applications.items())]
    return Answer(200, {"items": items, "nextCursor": None})


def unsubscribe(ctx: Context) -> Answer:
    """Ends a subscription (204). Ending the last one deletes the tenant (202, with the operation)."""
    name = named(ctx)
    begun = subscriptions.unsubscribe(ctx.world, name, ctx.parameters["application"], ctx.actor)
    return Answer(204) if begun is None else operations.begun(begun)


def delete(ctx: Context) -> Answer:
    return operations.begun(subscriptions.delete_tenant(ctx.world, named(ctx), ctx.actor))


def body(tenant: Tenant, usage: Usage) -> dict[str, Any]:
    return TENANT.show(TenantView(tenant, usage))


def _quota_body(tenant: Tenant, usage: Usage) -> dict[str, int | None]:
    return {
        "maxSchedules": usage.most_schedules,
        "maxJobs": usage.most_jobs,
        "minIntervalSeconds": usage.least_interval_s,
        "runsPerMinute": tenant.pace.runs_per_minute,
        "maxDescendants": tenant.pace.descendants,
    }
