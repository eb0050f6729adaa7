"""The resource provider, which clients register before they use it. Here it is always registered."""

from __future__ import annotations

from sweephand.formats.azure.collection_fields import TYPE
from sweephand.formats.azure.members import VERSIONS
from sweephand.server.facades.azure.context import Context
from sweephand.server.facades.http import Answer

NAMESPACE = "Microsoft.Scheduler"
OPERATIONS = {
    TYPE: ("read", "write", "delete", "enable/action", "disable/action"),
    f"{TYPE}/jobs": ("read", "write", "delete", "run/action"),
}
"""The operations on each kind of resource."""


def read(ctx: Context) -> Answer:
    """Describes the provider in a subscription."""
    kinds = ("jobCollections", "jobCollections/jobs")
    return Answer(
        200,
        {
            "id": f"/subscriptions/{ctx.parameters['subscription']}/providers/{NAMESPACE}",
            "namespace": NAMESPACE,
            "registrationState": "Registered",
            "resourceTypes": [{"resourceType": kind, "locations": [], "apiVersions": list(VERSIONS)} for kind in kinds],
        },
    )


def operations(_: Context) -> Answer:
    """Lists the operations on each kind of resource."""
    names = [f"{kind}/{operation}" for kind, operations in OPERATIONS.items() for operation in operations]
    return Answer(200, {"value": [{"name": name} for name in names]})
