"""Registers applications, each with the queue from which its workers take their runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from sweephand.base.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded
from sweephand.base.members.fields import below
from sweephand.domain import application
from sweephand.domain.application import Application
from sweephand.server.flow.tenants import absence, tenancy
from sweephand.server.flow.tenants.absence import Back
from sweephand.server.flow.world import World
from sweephand.server.store.dynamo.conditional import Cancelled
from sweephand.server.store.jobs import own_hooks
from sweephand.server.store.tenants import applications
from sweephand.server.store.views import jobs as lists

MOST = 100
"""Queues of a tenant: one for each application, and one for each of its versions to which jobs are pinned."""
MOST_JOBS = 10_000
"""Jobs that a delete looks through, some 10,000 read units."""
AT_ONCE = 500
NAMED_FIRST = 5
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


def register(
    world: World, tenant: str, name: str, version: str | None, tasks: tuple[str, ...] | None = None
) -> Application:
    """Registers an application and creates its queue if it does not exist. May be repeated at each start of a worker.

    tasks: those that the workers of this version know; None to leave them.

    The queue comes before the row, and jobs need the row. So no message is sent to a queue that does not exist yet.
    Raises NotFound, QuotaExceeded, Unavailable.
    """
    stored = applications.read(world.table, tenant, name, version)
    if stored is None and sum(1 for _ in applications.of_tenant(world.table, tenant)) >= MOST:
        raise QuotaExceeded(f"the tenant has {MOST} applications and versions already")
    application = stored or Application(tenant, name, version, world.clock.now(), tasks=tasks or ())
    world.queue.provide(application.lane, _attributes(world), _tags(world, application))
    if stored is None:
        done = world.table.transact([applications.put_op(world.table, application), *tenancy.stays_ops(world, tenant)])
        if isinstance(done, Cancelled):
            raise NotFound("no such tenant")
    elif tasks not in (None, stored.tasks):
        application = replace(stored, tasks=tasks or ())
        applications.keep_tasks(world.table, application)
    return application


def _attributes(world: World) -> dict[str, str]:
    key_id = world.settings.queue_key_id
    redrive = {"deadLetterTargetArn": world.settings.dead_letter_queue_arn, "maxReceiveCount": application.RECEIVES}
    return {
        "VisibilityTimeout": str(application.LEASE_S),
        "MessageRetentionPeriod": str(KEPT_S),
        **({"KmsMasterKeyId": key_id} if key_id else {"SqsManagedSseEnabled": "true"}),
        "RedrivePolicy": json.dumps(redrive),
        "Policy": json.dumps(OVER_TLS_ONLY),
    }


def _tags(world: World, registered: Application) -> dict[str, str]:
    """Returns the queue's tags, which identify it because its name is a hash."""
    tags = {"stack": world.settings.stack_name, "tenant": registered.tenant, "application": registered.name}
    return {f"sweephand:{name}": value for name, value in tags.items()} | (
        {"sweephand:version": registered.version} if registered.version else {}
    )


def find(world: World, tenant: str, name: str, version: str | None) -> Application:
    """Raises NotFound."""
    application = applications.read(world.table, tenant, name, version)
    if application is None:
        raise NotFound("no such application" if version is None else "no such version of this application")
    return application


def delete(world: World, tenant: str, name: str, version: str | None) -> None:
    """Deletes an application that no job names, with its queue, and ends the report that it is away.

    The row goes before the queue, because a new job that names the application needs the row. Raises NotFound, Conflict
    while jobs name it, Unavailable.
    """
    application = find(world, tenant, name, version)
    _check_unnamed(world, application)
    absence.end(world, application, Back.DELETED)
    applications.delete(world.table, application)
    world.queue.remove(application.lane)


def _check_unnamed(world: World, application: Application) -> None:
    """Raises Conflict if jobs, or hooks of their schedules, name the application."""
    rows = lists.listed(world.table, application.tenant, lists.ALL, None, MOST_JOBS + 1)
    ids = [row.job_id for row in islice(rows, MOST_JOBS + 1)]
    if len(ids) > MOST_JOBS:
        raise Conflict(
            f"the tenant has more than {MOST_JOBS:,} jobs, too many to see which of them name {application.title}"
        )
    naming = [
        job
        for begin in range(0, len(ids), AT_ONCE)
        for job in _naming(world, application, ids[begin : begin + AT_ONCE])
    ]
    if naming:
        who = f"{len(naming):,} jobs name" if len(naming) > 1 else "1 job names"
        first = ", ".join(naming[:NAMED_FIRST]) + (", ..." if len(naming) > NAMED_FIRST else "")
        raise Conflict(f"{who} the application {application.title}: {first}. Change or delete them first")


def _naming(world: World, wanted: Application, ids: Sequence[str]) -> Iterator[str]:
    planned = lists.jobs_with_schedules(world.table, wanted.tenant, ids)
    hooks = own_hooks.read_all(world.table, [each for _, schedules in planned for each in schedules])
    for job, schedules in planned:
        actions = [job.action, job.error_action, *job.hooks.values()]
        actions += [hook for each in schedules for hook in hooks.get(each.id, {}).values()]
        named = application.named_by({str(n): each for n, each in enumerate(actions) if each is not None})
        if (wanted.name, wanted.version) in named.values():
            yield job.id


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
