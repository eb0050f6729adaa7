"""Refuses to switch on a schedule that has nothing to run and would be over at once.

A change of a recurring schedule is checked where it is made, by the table in flow/jobs/last_instant.py. This
module checks single instants, and the many schedules that `activationStatus` names at once.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sweephand.domain.job import Job, ScheduleDraft
from sweephand.domain.schedule import Schedule
from sweephand.errors import InvalidRequest
from sweephand.facades.sap import bodies
from sweephand.flow.jobs import drafts
from sweephand.flow.series import replan


def is_over(schedule: Schedule) -> bool:
    """Returns whether the caller switched it on and the service deactivated it."""
    return schedule.active and not bodies.is_active(schedule)


def check_can_run(wanted: ScheduleDraft, job: Job, now: datetime) -> None:
    """Raises InvalidRequest if an active one-time schedule would be over at once."""
    if is_past_its_end(wanted, job, now):
        raise InvalidRequest("active", "cannot be true: the endTime of the schedule or of its job is past")


def can_run(there: Schedule, wanted: ScheduleDraft, job: Job, now: datetime) -> bool:
    """Returns whether it would run if it were switched on unchanged."""
    timing = drafts.stored_timing(there)
    if not timing.recurring:
        return not is_past_its_end(wanted, job, now)
    on = replace(there, active=True)
    return not replan.leaves_nothing(there, on, job, timing, replan.Effect(now, now), None)


def is_past_its_end(wanted: ScheduleDraft, job: Job, now: datetime) -> bool:
    """Returns whether the end of the schedule or of its job has passed."""
    ends = [job.end_at, drafts.own_end(wanted.timing)]
    return any(end is not None and end < now for end in ends)
