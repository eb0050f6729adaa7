"""Reads the timing of requested schedules, and decides how a change moves the timing of a stored one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.domain.instants import EPOCH, text, up_to_second
from sweephand.domain.job import Job, ScheduleDraft
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import OVER, PAST_GRACE, Schedule
from sweephand.schedules.notations import NOTATIONS
from sweephand.schedules.text.instants import parse_instant
from sweephand.schedules.timing import Timing, begun_as, counted_from, load_or_never, parse
from sweephand.schedules.zones.localtime import to_second, wall_text

LAST = datetime.fromisoformat("2199-12-31T23:59:59+00:00")
GRID = (*NOTATIONS, "align", "timezone", "startTime")
"""The members that determine the rhythm of a series; endTime and count only limit it."""


def changed_timing(
    schedule: Schedule, draft: ScheduleDraft, before: Job, after: Job, now: datetime, *, may_be_empty: bool = False
) -> Timing:
    """Returns the timing after a change.

    Keeps what the change does not touch: the start of a rhythm that began at creation, and the instant of a one-time
    schedule. may_be_empty: accepts a timing that never fires.
    """
    timing = load_or_never(schedule.packed)
    at = timing.written_at if timing.calendars or draft.activation else timing.once_at
    if at is not None and same_pattern(schedule, draft):
        return _parsed(_at(_text_of(at, timing), draft), after, schedule.id, now, may_be_empty=may_be_empty)
    same_start = before.start_at == after.start_at
    if same_start and _agree(schedule.timing, draft.timing, GRID):
        began = counted_from(schedule.packed)
        if began is not None:
            timing = timing_of(draft, after, schedule.id, began, may_be_empty=may_be_empty)
            return begun_as(timing, schedule.packed)
    return timing_of(draft, after, schedule.id, now, may_be_empty=may_be_empty)


def same_pattern(schedule: Schedule, draft: ScheduleDraft | Schedule) -> bool:
    """Returns whether the timings are the same except for their windows."""
    return _agree(schedule.timing, draft.timing, (*NOTATIONS, "timezone"))


def _agree(one: Mapping[str, Any], other: Mapping[str, Any], names: Sequence[str]) -> bool:
    return all(one.get(name) == other.get(name) for name in names)


def timing_of(draft: ScheduleDraft, job: Job, schedule_id: str, now: datetime, *, may_be_empty: bool = False) -> Timing:
    """Returns the parsed timing. Raises InvalidRequest.

    A one-time instant more than 60 s in the past is refused, with two exceptions. The policy onPastStart `run_now`
    moves it to now; and it stays in the past if the schedule may be over. may_be_empty: accepts a timing that never
    fires.
    """
    timing = _parsed(draft, job, schedule_id, now, may_be_empty=may_be_empty)
    at = timing.once_at
    if at is None or at >= now - PAST_GRACE or (may_be_empty and timing.ends_at < now):
        return timing
    if draft.policies.get("onPastStart", job.policies.get("onPastStart")) == "run_now":
        draft, job = _at(text(up_to_second(now)), draft), replace(job, start_at=None)
        return _parsed(draft, job, schedule_id, now, may_be_empty=may_be_empty)
    if not (may_be_empty or may_be_over(draft, job)):
        raise InvalidRequest(timing.notation, f"{text(at)} is more than 60 seconds in the past: it is {text(now)} now")
    return timing


def _parsed(draft: ScheduleDraft, job: Job, schedule_id: str, now: datetime, *, may_be_empty: bool) -> Timing:
    return parse(
        draft.timing,
        now=now,
        job_start=job.start_at,
        job_end=job.end_at,
        salt=schedule_id,
        book=draft.book,
        may_be_over=may_be_over(draft, job),
        may_be_empty=may_be_empty,
    )


def may_be_over(draft: ScheduleDraft, job: Job) -> bool:
    """Returns whether a schedule that has no instant left is completed, not refused (the policy onNothingLeft)."""
    return bool(draft.policies.get("onNothingLeft", job.policies.get("onNothingLeft")) == "complete")


def _text_of(instant: datetime, timing: Timing) -> str:
    """Returns the instant of a one-time schedule as text. A wall time of a zone stays one if it comes exactly once."""
    wall = timing.written_wall
    if wall is None or timing.zone.name == "UTC" or timing.zone.instants(wall) != (to_second(instant),):
        return text(instant)
    return wall_text(wall)


def _at(instant: str, draft: ScheduleDraft) -> ScheduleDraft:
    """Returns a one-time draft with this instant instead of its own. A `time` ignores the start."""
    notation = "at" if draft.timing.get("time") is None else "time"
    return replace(draft, timing={**draft.timing, **dict.fromkeys(NOTATIONS), notation: instant})


def one_time_instant(timing: Timing) -> datetime | None:
    """Returns the instant of a one-time rule; None for any other rule."""
    return None if timing.recurring else timing.rule.last_until(LAST)


def first_instant(draft: ScheduleDraft, job: Job, timing: Timing, now: datetime) -> datetime | None:
    """Returns the first occurrence of a new schedule if the rule alone does not give it; None otherwise.

    Applies to one-time schedules, to intervals whose start has passed, and to `onCreate: run_now`. Also returns None
    for an occurrence that was long ago or is after the end.
    """
    if not timing.recurring:
        at = one_time_instant(timing)
        return at if at is not None and still_runs(timing, at, now) else None
    if runs_late(timing, policies_of(job, draft), now):
        return up_to_second(now)
    policy = draft.policies.get("onCreate", job.policies.get("onCreate", "schedule"))
    return up_to_second(now) if policy == "run_now" and timing.ends_at >= now.replace(microsecond=0) else None


def still_runs(timing: Timing, at: datetime, now: datetime) -> bool:
    """Returns whether a single instant still runs: it is at most 60 s in the past, and the end has not come."""
    return at >= now - PAST_GRACE and timing.ends_at >= now.replace(microsecond=0)


def runs_late(timing: Timing, policies: Mapping[str, Any], now: datetime) -> bool:
    """Returns whether an interval that follows actual starts runs at once when it is activated at `now`.

    It does if its start has passed, its end has not, and `onPastStart` is `run_now`.
    """
    if timing.actual_start_interval_s is None or policies.get("onPastStart") != "run_now":
        return False
    begin = timing.rule.next_after(EPOCH)
    return begin is not None and begin <= now and up_to_second(now) <= timing.ends_at


def restarts(schedule: Schedule, draft: ScheduleDraft, timing: Timing, job: Job, now: datetime) -> bool:
    """Returns whether a change makes an interval that follows actual starts run at once. job: as it will be.

    It does if its new start has passed. It also does if the schedule was over, has missed an occurrence since, and is
    switched on again.
    """
    if not runs_late(timing, policies_of(job, draft), now):
        return False
    if schedule.state in OVER:
        over_at = schedule.completed_at or schedule.modified_at
        missed = timing.rule.next_after(over_at)
        return draft.activation is not None and draft.activation.active is True and missed is not None and missed <= now
    return timing.rule.next_after(EPOCH) != load_or_never(schedule.packed).rule.next_after(EPOCH)


def own_end(timing: Mapping[str, Any]) -> datetime | None:
    """Returns a schedule's own end; None if it has none. timing: each time must contain its own offset."""
    text = timing.get("endTime")
    return None if text is None else parse_instant(text, "endTime")


def unchanged_timing(schedule: Schedule, draft: ScheduleDraft, before: Job, after: Job) -> bool:
    """Returns whether the change leaves the rule as it is, so that a PUT of the stored schedule plans nothing."""
    return dict(schedule.timing) == dict(draft.timing) and (before.start_at, before.end_at) == (
        after.start_at,
        after.end_at,
    )


def mended_timing(schedule: Schedule, draft: ScheduleDraft, job: Job, now: datetime) -> Timing:
    """Returns the timing of an unreadable schedule that is requested unchanged: the caller's members, packed again."""
    try:
        return timing_of(draft, job, schedule.id, now)
    except InvalidRequest:
        return load_or_never(schedule.packed)
