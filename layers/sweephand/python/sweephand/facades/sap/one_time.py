"""When a schedule of a single instant (`time`) runs after a change: the one rule, for PUT and for activationStatus.

| it stands             | `active`   | `time`                | then                                                  |
| --------------------- | ---------- | --------------------- | ----------------------------------------------------- |
| waiting               | -, true    | -, as it was          | stays as it is planned                                |
| waiting               | -, true    | another               | runs at that; at once where that is past              |
| over (ran, or missed) | -          | -, as it was          | stays over, whatever else of it changes               |
| over                  | -          | another               | runs at that; at once where that is past              |
| over, or switched off | true       | -                     | runs at its instant; at once where that is past       |
| over, or switched off | true       | any, words read anew  | runs at that; at once where that is past              |
| switched off          | -          | any                   | stays off, with the new time                          |
| any                   | false      | any                   | is off                                                |

"-": not sent. Nothing runs behind the end of the schedule or of its job: over.py refuses to switch it on there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sweephand.domain.instants import text, up_to_second
from sweephand.domain.job import Job, ScheduleDraft
from sweephand.domain.schedule import Schedule
from sweephand.facades.sap import bodies, over
from sweephand.schedules.timing import load_or_never, parse


def as_sent(
    given: Mapping[str, Any], before: Schedule, wanted: ScheduleDraft, job: Job, now: datetime
) -> ScheduleDraft:
    """The change as the table has it. given: the members that were sent; wanted: what they make of what is stored.

    Only a switching on needs more than that: an instant that is stored anew is a new plan for the flow, also where the
    old one has run. Recurring schedules are left as they are. Raises InvalidRequest.
    """
    timing = load_or_never(before.packed)
    switched_on = given.get("active") is not None and wanted.active and not bodies.is_active(before)
    if timing.recurring or not switched_on or over.is_past_its_end(wanted, job, now):
        return wanted
    at = parse({"time": given["time"]}, now=now).once_at if given.get("time") is not None else timing.written_at
    if at is None or at <= now:
        at = up_to_second(now)
    return replace(wanted, timing={**wanted.timing, "time": text(at)})
