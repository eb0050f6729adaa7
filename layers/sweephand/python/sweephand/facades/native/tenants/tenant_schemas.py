"""Schemas of tenants."""

from __future__ import annotations

from sweephand.domain.collection import TenantState
from sweephand.facades.native.members.json_schema import (
    Schema,
    answer,
    items,
    one_of,
    or_null,
    page,
    patch_of,
    request,
    text,
    whole,
)
from sweephand.facades.native.members.schema_words import ACTOR, INSTANT_MS, PASSED_OVER, PLAIN_NAME, TENANT_NAME
from sweephand.facades.native.tenants import tenants
from sweephand.security.caller import TENANT_SCOPES

_DESCRIPTION = text(0, tenants.LONGEST_DESCRIPTION)
_QUOTA = {
    "maxSchedules": whole(
        *tenants.QUOTA_BOUNDS["maxSchedules"],
        description="Schedules that the tenant may have, in all its jobs; what it has stays.",
    ),
    "maxJobs": whole(*tenants.QUOTA_BOUNDS["maxJobs"], description="Jobs that the tenant may have; what it has stays."),
    "minIntervalSeconds": whole(
        *tenants.QUOTA_BOUNDS["minIntervalSeconds"],
        description="Shortest time between two occurrences of a new or changed schedule.",
    ),
    "runsPerMinute": whole(
        *tenants.QUOTA_BOUNDS["runsPerMinute"],
        description="Runs that may begin in a minute; further ones end as SKIPPED with the reason QUOTA. Each executor "
        "counts by itself and reports after every ten runs, so up to ten more an executor may begin. "
        "null, the default: no limit.",
    ),
    "maxDescendants": whole(
        *tenants.QUOTA_BOUNDS["maxDescendants"],
        description="Runs that may follow from one run, through job actions, hooks and error actions, in all "
        "generations; further ones end as SKIPPED with the reason QUOTA. 100 unless the provider sets another number.",
    ),
}
_QUOTA_SHOWN = {name: each if name == "maxDescendants" else or_null(each) for name, each in _QUOTA.items()}
_WITHHELD = items(
    one_of(sorted(TENANT_SCOPES)),
    description="Scopes that no caller of the tenant has, whatever its credential or token says.",
)

SCHEMAS: dict[str, Schema] = {
    "TenantDraft": request(
        {
            "tenant": TENANT_NAME,
            "name": TENANT_NAME,
            "description": _DESCRIPTION,
            "quota": request(_QUOTA),
            "withheldScopes": _WITHHELD,
        }
    ),
    "TenantPatch": patch_of(
        request(
            {
                "tenant": TENANT_NAME,
                "description": _DESCRIPTION,
                "quota": request(_QUOTA),
                "withheldScopes": _WITHHELD,
                **dict.fromkeys(tenants.READ_ONLY, PASSED_OVER),
            }
        ),
        {},
        removable=False,
    ),
    "Tenant": answer(
        {
            "tenant": TENANT_NAME,
            "description": or_null(_DESCRIPTION),
            "state": one_of(TenantState),
            "quota": answer(_QUOTA_SHOWN),
            "usage": answer(
                {
                    "schedules": whole(description="Schedules that it has."),
                    "jobs": whole(description="Jobs that it has."),
                }
            ),
            "withheldScopes": _WITHHELD,
            "deletedBy": or_null(text(description="The operation that deletes it; null in a list.")),
            "createdAt": INSTANT_MS,
            "createdBy": ACTOR,
            "modifiedAt": or_null(INSTANT_MS),
            "modifiedBy": ACTOR,
        }
    ),
    "TenantPage": page("Tenant"),
    "Subscription": answer(
        {"tenant": TENANT_NAME, "application": PLAIN_NAME, "createdAt": INSTANT_MS, "createdBy": ACTOR}
    ),
    "SubscriptionPage": page("Subscription"),
}
