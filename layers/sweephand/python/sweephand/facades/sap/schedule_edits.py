"""Applies the members that a caller sends to a schedule, alone or within its job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.domain.job import Job, Payload, ScheduleDraft
from sweephand.domain.schedule import Schedule
from sweephand.facades.sap import fields, one_time
from sweephand.flow.jobs import drafts
from sweephand.flow.world import World


def edited(
    job: Job,
    before: Schedule,
    payload: Payload | None,
    given: Mapping[str, Any],
    action: fields.Target,
    world: World,
    *,
    within_job: bool = False,
) -> ScheduleDraft:
    """Returns the wanted schedule. Raises InvalidRequest.

    given: the members that were sent; all others stay. payload: the schedule's own, as stored. within_job: it was sent
    as part of its job's body.
    """
    now = world.clock.now()
    wanted = fields.changed_schedule(given, drafts.as_stored(before, payload), action, now, within_job=within_job)
    return one_time.as_sent(given, before, wanted, job, now, world)
