"""When a schedule of a single instant (`time`) runs after a change: the one rule, for PUT and for activationStatus.

| it stands             | `active`   | `time`                | then                                                  |
| --------------------- | ---------- | --------------------- | ----------------------------------------------------- |
| waiting               | -, true    | -, as it was          | stays as it is planned                                |
| waiting               | -, true    | another               | runs at that; at once where that is past              |
| used up, not yet off  | true       | -                     | runs once more, at once                               |
| used up, not yet off  | -, true    | -, as it was          | stays as it is                                        |
| used up, not yet off  | -, true    | another, words        | runs once more, at that; at once where that is past   |
| over (ran, or missed) | -          | -, as it was          | stays over, whatever else of it changes               |
| over                  | -          | another, words        | runs at that; at once where that is past              |
| over, or switched off | true       | -                     | runs at its instant; at once where that is past       |
| over, or switched off | true       | any                   | runs at that; at once where that is past              |
| switched off          | -          | any                   | stays off, with the new time                          |
| any                   | false      | any                   | is off                                                |

"-": not sent. "used up": its run has begun, and may still be going on; the tick and the end of the run switch it off.
A run that was sent and has not begun is still to come, and is the one that was asked for: then it is "waiting".

"words" are read as seen from now; a date that says the same instant as before is "as it was", and so are words that
come back beside what only an answer has (`modifiedAt`, `nextRunAt`): a schedule, or its job, is sent as it was read.

Nothing runs after the end of the schedule or of its job: over.py refuses to switch it on there. As a part of its job's
body it is stored and stays over instead: an ended schedule never stands in the way of its job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sweephand.domain.instants import EPOCH, epoch_ms, text, up_to_second
from sweephand.domain.job import Job, ScheduleDraft
from sweephand.domain.run import Kind, State
from sweephand.domain.schedule import LIVE, Schedule
from sweephand.facades.sap import bodies, over
from sweephand.flow.jobs import drafts
from sweephand.flow.world import World
from sweephand.ids import run_uuid
from sweephand.schedules.timing import Timing, parse
from sweephand.store.views import runs as views

ONLY_READ = {"modifiedAt", "nextRunAt"}
"""Members of an answer that no request needs."""
TO_COME = {State.QUEUED, State.HELD}


def as_sent(
    given: Mapping[str, Any], before: Schedule, wanted: ScheduleDraft, job: Job, now: datetime, world: World
) -> ScheduleDraft:
    """The change as the table has it. given: the members that were sent; wanted: what they make of what is stored.

    Only a run once more needs more than that: an instant that is stored anew is a new plan for the flow, also where the
    old one has run. Recurring schedules are left as they are. Raises InvalidRequest.
    """
    timing = drafts.stored_timing(before)
    if timing.recurring or not wanted.active:
        return wanted
    if wanted.asked is not None and wanted.asked.within_job and over.is_past_its_end(wanted, job, now):
        return replace(wanted, timing={**wanted.timing, "time": before.timing["time"]})
    speaks = given.get("active") is not None
    if (speaks and not bodies.is_active(before)) or (
        _asks_for_a_run(given, before, timing, now) and is_used_up(before, world)
    ):
        if speaks:
            over.check_can_run(wanted, job, now)
    elif _says_as_before(given, timing, now):
        return replace(wanted, timing={**wanted.timing, "time": before.timing["time"]})
    else:
        return wanted
    at = _read(given["time"], now) if given.get("time") is not None else timing.written_at
    if at is None or at <= now:
        at = up_to_second(now)
        if at == drafts.one_time_instant(timing):
            at += timedelta(seconds=1)  # each run has an instant of its own
    return replace(wanted, timing={**wanted.timing, "time": text(at)})


def is_used_up(schedule: Schedule, world: World) -> bool:
    """Of a one-time schedule that is switched on: has it run, or missed it, or is its run under way?

    Asked of the ledger: an instant is sent before it comes, and what has not begun yet is still to come. A run that
    begins behind this look began after the request that asks, and is what it asks for.
    """
    if over.is_over(schedule):
        return True
    at = drafts.one_time_instant(drafts.stored_timing(schedule))
    if schedule.state not in LIVE or at is None:
        return False
    uuid = run_uuid(schedule.tenant, schedule.id, epoch_ms(at), Kind.SCHEDULED.value)
    run = views.read(world.table, schedule.tenant, schedule.id, uuid)
    return run is not None and run.state not in TO_COME


def _asks_for_a_run(given: Mapping[str, Any], before: Schedule, timing: Timing, now: datetime) -> bool:
    """Do the members that were sent speak of another instant than that of a schedule that is used up?"""
    time = given.get("time")
    if time is None:
        return given.get("active") is not None
    if _says_as_before(given, timing, now):
        return False
    if time != before.attributes.get("time"):
        return True
    return not ONLY_READ & given.keys() and _read(time, now) != _read(time, EPOCH)


def _says_as_before(given: Mapping[str, Any], timing: Timing, now: datetime) -> bool:
    """Is a `time` that was sent the instant that is planned, in these words or in others?"""
    return given.get("time") is not None and _read(given["time"], now) == drafts.one_time_instant(timing)


def _read(time: object, now: datetime) -> datetime | None:
    """Words as seen from `now`. Raises InvalidRequest."""
    return parse({"time": time}, now=now).once_at
