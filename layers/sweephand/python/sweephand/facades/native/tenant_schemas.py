"""Schemas of tenants."""

from __future__ import annotations

from sweephand.domain.collection import MOST_SCHEDULES, TenantState
from sweephand.facades.native import tenants
from sweephand.facades.native.json_schema import Schema, answer, one_of, or_null, page, patch_of, request, text, whole
from sweephand.facades.native.schema_words import INSTANT_MS, PASSED_OVER, PLAIN_NAME, TENANT_NAME

_DESCRIPTION = text(0, tenants.LONGEST_DESCRIPTION)
_MOST = whole(0, MOST_SCHEDULES, description="Schedules that the tenant may have, in all its jobs; what it has stays.")

SCHEMAS: dict[str, Schema] = {
    "TenantDraft": request(
        {
            "tenant": TENANT_NAME,
            "name": TENANT_NAME,
            "description": _DESCRIPTION,
            "quota": request({"maxSchedules": _MOST}),
        }
    ),
    "TenantPatch": patch_of(
        request(
            {
                "tenant": TENANT_NAME,
                "description": _DESCRIPTION,
                "quota": request({"maxSchedules": _MOST}),
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
            "quota": answer({"maxSchedules": or_null(_MOST)}),
            "usage": answer({"schedules": whole()}),
            "deletedBy": or_null(text(description="The operation that deletes it; null in a list.")),
            "createdAt": INSTANT_MS,
        }
    ),
    "TenantPage": page("Tenant"),
    "Subscription": answer({"tenant": TENANT_NAME, "application": PLAIN_NAME, "createdAt": INSTANT_MS}),
    "SubscriptionPage": page("Subscription"),
}
