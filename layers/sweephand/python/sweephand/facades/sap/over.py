"""Recurring schedules that are over: deactivated by the service, as one that ran out, until somebody switches them on.

A job or schedule that gets another end does not bring them back: only `active: true` does, or `activationStatus`. Where
nothing would run then, these are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sweephand.domain.job import Job, JobDraft, Payload, ScheduleDraft
from sweephand.domain.schedule import Schedule
from sweephand.errors import InvalidRequest
from sweephand.facades.sap import bodies
from sweephand.flow import drafts
from sweephand.flow.plan import Planned
from sweephand.schedules.instants import parse_instant
from sweephand.schedules.timing import load_or_never


def is_over(schedule: Schedule) -> bool:
    """Switched on by its caller, deactivated by the service."""
    return schedule.active and not bodies.is_active(schedule)


def staying(given: Mapping[str, Any], before: Schedule, wanted: ScheduleDraft) -> ScheduleDraft:
    """The change of a schedule, which does not bring back one that is over. given: the members that were sent."""
    if given.get("active") is not None or wanted.timing == before.timing or not _recurs(before):
        return wanted
    return replace(wanted, active=False) if is_over(before) else wanted


def staying_with(there: Planned, stored: Mapping[str, Payload], wanted: JobDraft) -> JobDraft:
    """The same for another window of their job."""
    job = there.job
    if wanted.schedules is not None or (job.start_at, job.end_at) == (wanted.start_at, wanted.end_at):
        return wanted
    if not any(is_over(each) and _recurs(each) for each in there.schedules):
        return wanted
    kept = [drafts.as_stored(each, stored.get(each.id)) for each in there.schedules]
    off = [is_over(each) and _recurs(each) for each in there.schedules]
    schedules = tuple(replace(draft, active=False) if gone else draft for draft, gone in zip(kept, off, strict=True))
    return replace(wanted, schedules=schedules)


def check_can_run(wanted: ScheduleDraft, job: Job, now: datetime) -> None:
    """Of one that is switched on. Raises InvalidRequest where it would be over at once."""
    if is_past_its_end(wanted, job, now):
        raise InvalidRequest("active", "cannot be true: the endTime of the schedule or of its job is past")


def is_past_its_end(wanted: ScheduleDraft, job: Job, now: datetime) -> bool:
    own = wanted.timing.get("endTime")
    ends = [job.end_at, None if own is None else parse_instant(own, "endTime")]
    return any(end is not None and end < now for end in ends)


def _recurs(schedule: Schedule) -> bool:
    return load_or_never(schedule.packed).recurring
