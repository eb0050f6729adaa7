"""Registers applications, each with the queue from which its workers take their runs."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sweephand.domain import application
from sweephand.domain.application import Application
from sweephand.domain.members.fields import below
from sweephand.errors import InvalidRequest, NotFound, QuotaExceeded
from sweephand.flow.tenants import absence, tenancy
from sweephand.flow.world import World
from sweephand.store.dynamo.conditional import Cancelled
from sweephand.store.tenants import applications

MOST = 100
"""Queues of a tenant: one for each application, and one for each of its versions to which jobs are pinned."""
KEPT_S = 14 * 86_400
OVER_TLS_ONLY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Sid": "OverTlsOnly",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": "*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    ],
}


def register(world: World, tenant: str, name: str, version: str | None) -> Application:
    """Registers an application and creates its queue if it does not exist. May be repeated at each start of a worker.

    The queue comes before the row, and jobs need the row. So no message is sent to a queue that does not exist yet.
    Raises NotFound, QuotaExceeded, Unavailable.
    """
    there = applications.read(world.table, tenant, name, version)
    if there is None and sum(1 for _ in applications.of_tenant(world.table, tenant)) >= MOST:
        raise QuotaExceeded(f"the tenant has {MOST} applications and versions already")
    found = there or Application(tenant, name, version, world.clock.now())
    world.queue.provide(found.lane, _attributes(world), _tags(world, found))
    if found.unclaimed_since is not None:
        absence.seen(world, tenant, name, version)
    if there is None:
        done = world.table.transact([applications.put_op(world.table, found), *tenancy.stays_ops(world, tenant)])
        if isinstance(done, Cancelled):
            raise NotFound("no such tenant")
    return found


def _attributes(world: World) -> dict[str, str]:
    redrive = {"deadLetterTargetArn": world.settings.dead_letter_queue_arn, "maxReceiveCount": application.RECEIVES}
    return {
        "VisibilityTimeout": str(application.LEASE_S),
        "MessageRetentionPeriod": str(KEPT_S),
        "SqsManagedSseEnabled": "true",
        "RedrivePolicy": json.dumps(redrive),
        "Policy": json.dumps(OVER_TLS_ONLY),
    }


def _tags(world: World, registered: Application) -> dict[str, str]:
    """Returns the queue's tags, which identify it because its name is a hash."""
    tags = {"stack": world.settings.stack_name, "tenant": registered.tenant, "application": registered.name}
    return {f"sweephand:{name}": value for name, value in tags.items()} | (
        {"sweephand:version": registered.version} if registered.version else {}
    )


def check(world: World, tenant: str, named: Mapping[str, tuple[str, str | None]]) -> None:
    """Raises InvalidRequest for an application that is not registered. named: name and version by the action's path."""
    for path, (name, version) in named.items():
        if applications.read(world.table, tenant, name, version) is None:
            said = f'"{name}"' + (f' with version "{version}"' if version else "")
            how = f"start a worker of it, or send PUT /v1/applications/{name}"
            raise InvalidRequest(below(path, "application"), f"{said} is not registered: {how}")


def remove_queues(world: World, tenant: str) -> None:
    """Deletes the queues of a tenant that is being purged. Its jobs are gone. Raises Unavailable."""
    for each in list(applications.of_tenant(world.table, tenant)):
        world.queue.remove(each.lane)
        applications.forget(world.table, each)
