"""Applies the members that a caller sends to a schedule, and decides when a one-time schedule still runs.

A one-time schedule (`time`) follows this table, by PUT and by activationStatus:

| it is                 | `active`   | `time`                | then                                                  |
| --------------------- | ---------- | --------------------- | ----------------------------------------------------- |
| waiting               | -, true    | -, as it was          | stays as it is planned                                |
| waiting               | -, true    | another               | runs at that; at once if that is past                 |
| used up, not yet off  | true       | -                     | runs once more, at once                               |
| used up, not yet off  | -, true    | -, as it was          | stays as it is                                        |
| used up, not yet off  | -, true    | another, words        | runs once more, at that; at once if that is past      |
| over (ran, or missed) | -          | -, as it was          | stays over, whatever else changes                     |
| over                  | -          | another, words        | runs at that; at once if that is past                 |
| over, or switched off | true       | -                     | runs at its instant; at once if that is past          |
| over, or switched off | true       | any                   | runs at that; at once if that is past                 |
| switched off          | -          | any                   | stays off, with the new time                          |
| any                   | false      | any                   | is off                                                |

"-": not sent. "used up": its run has begun, and may still be active; the tick and the end of the run switch it off. If
its run was sent and has not begun, the schedule is still "waiting".

"words" are read relative to now. A date with the same instant as before is "as it was". So are words that come with
members that only an answer has (`modifiedAt`, `nextRunAt`), because the client sends back what it has read.

Nothing runs after the end of the schedule or of its job. Switching a schedule on after it is refused. A schedule that
is sent as part of its job is stored and stays over instead, so that an ended schedule never blocks its job. Changes of
recurring schedules are checked by the table in server/flow/jobs/last_instant.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.ids import run_uuid
from sweephand.domain.instants import EPOCH, epoch_ms, text, up_to_second
from sweephand.domain.job import Job, Payload, ScheduleDraft
from sweephand.domain.run import Kind, State
from sweephand.domain.schedule import LIVE, Schedule
from sweephand.formats.actions import Actions
from sweephand.formats.sap import bodies, fields
from sweephand.schedules.timing import Timing, load_or_never, parse
from sweephand.server.flow.jobs import drafts, schedule_timing
from sweephand.server.flow.series import replan
from sweephand.server.flow.world import World
from sweephand.server.store.views import runs as views

ONLY_READ = {"modifiedAt", "nextRunAt"}
"""Members of an answer that no request needs."""
TO_COME = {State.QUEUED, State.HELD}


def edited(
    job: Job,
    before: Schedule,
    payload: Payload | None,
    members: Mapping[str, Any],
    action: fields.Target,
    kinds: Actions,
    world: World,
    *,
    within_job: bool = False,
) -> ScheduleDraft:
    """Returns the changed schedule. Raises InvalidRequest.

    members: the members that were sent; all others stay. payload: the schedule's own, as stored. within_job: True if it
    was sent as part of its job's body.
    """
    now = world.clock.now()
    stored = drafts.as_stored(before, payload)
    wanted = fields.changed_schedule(members, stored, action, kinds, now, within_job=within_job)
    return as_sent(members, before, wanted, job, now, world)


def as_sent(
    members: Mapping[str, Any], before: Schedule, wanted: ScheduleDraft, job: Job, now: datetime, world: World
) -> ScheduleDraft:
    """Returns the change by the table. members: the members that were sent. wanted: the stored schedule with them.

    Only a further run needs a change here: storing the instant again makes a new plan, even if the old one has run.
    Recurring schedules are returned unchanged. Raises InvalidRequest.
    """
    timing = load_or_never(before.packed)
    if timing.recurring or not wanted.active:
        return wanted
    if wanted.activation is not None and wanted.activation.within_job and is_past_its_end(wanted, job, now):
        return replace(wanted, timing={**wanted.timing, "time": before.timing["time"]})
    speaks = members.get("active") is not None
    if (speaks and not bodies.is_active(before)) or (
        _asks_for_a_run(members, before, timing, now) and is_used_up(before, world)
    ):
        if speaks and is_past_its_end(wanted, job, now):
            raise InvalidRequest("active", "cannot be true: the endTime of the schedule or of its job is past")
    elif _says_as_before(members, timing, now):
        return replace(wanted, timing={**wanted.timing, "time": before.timing["time"]})
    else:
        return wanted
    at = _read(members["time"], now) if members.get("time") is not None else timing.written_at
    if at is None or at <= now:
        at = up_to_second(now)
        if at == schedule_timing.one_time_instant(timing):
            at += timedelta(seconds=1)  # each run has an instant of its own
    return replace(wanted, timing={**wanted.timing, "time": text(at)})


def is_used_up(schedule: Schedule, world: World) -> bool:
    """Returns whether an active one-time schedule has run, has missed its run, or is running.

    The ledger decides, because a run is sent early, and a run that has not begun is still to come. A run that begins
    after this read began after the request, and is the run that the request asks for.
    """
    if schedule.active and not bodies.is_active(schedule):
        return True  # the service deactivated it
    at = schedule_timing.one_time_instant(load_or_never(schedule.packed))
    if schedule.state not in LIVE or at is None:
        return False
    uuid = run_uuid(schedule.tenant, schedule.id, epoch_ms(at), Kind.SCHEDULED.value)
    run = views.read(world.table, schedule.tenant, schedule.id, uuid)
    return run is not None and run.state not in TO_COME


def _asks_for_a_run(members: Mapping[str, Any], before: Schedule, timing: Timing, now: datetime) -> bool:
    """Returns whether the sent members ask for a further run of a used-up schedule."""
    time = members.get("time")
    if time is None:
        return members.get("active") is not None
    if _says_as_before(members, timing, now):
        return False
    if time != before.attributes.get("time"):
        return True
    return not ONLY_READ & members.keys() and _read(time, now) != _read(time, EPOCH)


def _says_as_before(members: Mapping[str, Any], timing: Timing, now: datetime) -> bool:
    """Returns whether a sent `time` is the planned instant, in whatever form it is written."""
    return members.get("time") is not None and _read(members["time"], now) == schedule_timing.one_time_instant(timing)


def _read(time: object, now: datetime) -> datetime | None:
    """Reads a time, words relative to `now`. Raises InvalidRequest."""
    return parse({"time": time}, now=now).once_at


def can_run(schedule: Schedule, wanted: ScheduleDraft, job: Job, now: datetime) -> bool:
    """Returns whether the schedule would run if it were switched on unchanged."""
    timing = load_or_never(schedule.packed)
    if not timing.recurring:
        return not is_past_its_end(wanted, job, now)
    on = replace(schedule, active=True)
    return not replan.leaves_nothing(schedule, on, job, timing, replan.Effect(now, now), None)


def is_past_its_end(wanted: ScheduleDraft, job: Job, now: datetime) -> bool:
    """Returns whether the end of the schedule or of its job has passed."""
    ends = [job.end_at, schedule_timing.own_end(wanted.timing)]
    return any(end is not None and end < now for end in ends)
