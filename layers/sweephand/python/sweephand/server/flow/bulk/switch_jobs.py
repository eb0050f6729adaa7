"""Switches the jobs that match filters on or off, or pauses or resumes them, each as a caller would.

A few jobs are switched at once, many as an operation. params: the filters, in the members of the API; `to`; for a pause
also `note` and `until`; `reason`. cursor: `after`, the place of the last job examined, and `kept`, the number of jobs
that no longer matched when their turn came. Every step may be repeated, because a job that is already in the requested
state does not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from sweephand.base.errors import Conflict, InvalidRequest, NotFound, PreconditionFailed
from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_ms, from_ms
from sweephand.domain.job import CLOSED_FACADES, Job, Pause
from sweephand.domain.operation import Operation, OperationKind, Page
from sweephand.server.flow.bulk import some_jobs
from sweephand.server.flow.bulk.some_jobs import Done, Some
from sweephand.server.flow.idempotency import Once
from sweephand.server.flow.job_parts import change_log
from sweephand.server.flow.job_parts.change_log import By
from sweephand.server.flow.jobs import change
from sweephand.server.flow.operations import verbs
from sweephand.server.flow.world import World
from sweephand.server.store.views import jobs as lists
from sweephand.server.store.views.jobs import Filters


@dataclass(frozen=True)
class Switch:
    """A switch of jobs. to: ACTIVATE, DEACTIVATE, PAUSE or RESUME. since: when it was requested.

    note, until: the members of a pause. reason: the caller's, for the change logs.
    """

    to: change_log.Operation
    since: datetime
    note: str | None = None
    until: datetime | None = None
    reason: str | None = None

    @property
    def params(self) -> dict[str, Any]:
        until = None if self.until is None else epoch_ms(self.until)
        members = {"to": self.to.value, "note": self.note, "until": until, "reason": self.reason}
        return {name: value for name, value in members.items() if value is not None}

    @classmethod
    def of(cls, operation: Operation) -> Switch:
        params: Mapping[str, Any] = operation.params
        until = None if "until" not in params else from_ms(int(params["until"]))
        to = change_log.Operation(params["to"])
        return cls(to, operation.started_at, params.get("note"), until, params.get("reason"))

    def of_job(self, job: Job) -> Job:
        """Returns the job after the switch."""
        match self.to:
            case change_log.Operation.ACTIVATE:
                return replace(job, active=True)
            case change_log.Operation.DEACTIVATE:
                return replace(job, active=False)
            case change_log.Operation.RESUME:
                return replace(job, pause=None)
            case _:
                return replace(job, pause=Pause(job.pause.since if job.pause else self.since, self.note, self.until))


def begin(
    world: World, tenant: str, filters: Filters, switch: Switch, count: int, actor: str, once: Once | None
) -> tuple[Some | None, Operation | None]:
    """Returns the result of switching the jobs at once, or the operation that switches them.

    count: the number of matching jobs that the caller was shown before. A request with an Idempotency-Key always
    becomes an operation, so that its repetition finds it.
    """
    if count <= some_jobs.AT_ONCE and once is None:
        act = partial(_switch, world, switch, actor)
        some = some_jobs.act_on(world, tenant, filters, None, world.clock.now(), some_jobs.AT_ONCE, act)
        if some.place is None:
            return some, None
    wanted = some_jobs.params_of(filters) | switch.params
    return None, verbs.begin(world, tenant, OperationKind.SWITCH_JOBS, wanted, actor=actor, total=count, once=once)


def page(world: World, operation: Operation) -> Page:
    """Switches the next jobs."""
    assert operation.tenant is not None
    after, kept = operation.cursor.get("after"), int(operation.cursor.get("kept", 0))
    filters, act = (
        some_jobs.filters_of(operation.params),
        partial(_switch, world, Switch.of(operation), operation.actor),
    )
    try:
        some = some_jobs.act_on(world, operation.tenant, filters, after, operation.started_at, some_jobs.JOBS, act)
    except lists.TooMany as many:
        raise InvalidRequest(None, "the list has become too long for these filters") from many
    kept += some.kept
    cursor = None if some.place is None else {"after": some.place, "kept": kept}
    result = {"kept": kept} if cursor is None else None
    return Page(cursor, some.done + some.refused, some.refused, result=result)


def _switch(world: World, switch: Switch, actor: str | None, job: Job) -> Done:
    """Switches a job. Keeps one that was changed a moment ago; refuses one that cannot be switched this way."""
    if switch.to is change_log.Operation.PAUSE and job.facade in CLOSED_FACADES:
        return Done.REFUSED
    try:
        change.set_state(world, job.tenant, job.id, switch.of_job, job.revision, By(switch.to, actor, switch.reason))
    except (PreconditionFailed, NotFound):
        return Done.KEPT
    except (Conflict, InvalidRequest):
        return Done.REFUSED
    return Done.DONE
