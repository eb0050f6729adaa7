"""The rule for changes that leave a schedule without a date, for callers whose `active` is the same as the service's.

| before                  | `active` | new time, or new window of its job  | then                                      |
| ----------------------- | -------- | ----------------------------------- | ----------------------------------------- |
| on                      | -, true  | its own; with a date                | is planned again                          |
| on                      | -, true  | its own; without                    | REFUSED                                   |
| on                      | -, true  | its job's; without                  | is over: ran out                          |
| over: ran out           | -        | with a date                         | goes on                                   |
| over: ran out           | -        | without                             | stays over                                |
| over: past its end      | -        | any                                 | stays off until it is switched on         |
| over, or switched off   | true     | any, or none; with a date           | is on                                     |
| over, or switched off   | true     | any, or none; without               | REFUSED                                   |
| switched off            | -        | any                                 | stays off with the new time, date or not  |
| any                     | false    | any                                 | is off with the new time, date or not     |
| new                     | any      | its own; without                    | is stored and over                        |
| part of its job's body  | -, true  | its own; without                    | is stored and over                        |

"Ran out": the schedule has no further date, although its end lies ahead. "Past its end": its own end, or that of its
job, had come before the change. "-": not sent. The last two lines take precedence, so that an ended schedule never
blocks a change of its job. For other callers the policy onNothingLeft applies. Sources: decisions 0055 and 0083.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sweephand.base.errors import InvalidRequest
from sweephand.domain.instants import text, up_to_second
from sweephand.domain.job import Job, ScheduleDraft
from sweephand.domain.schedule import OVER, Schedule, ScheduleState
from sweephand.schedules.timing import Timing, load_or_never
from sweephand.server.flow.jobs import schedule_timing
from sweephand.server.flow.series import replan
from sweephand.server.flow.series.replan import Effect


def settled(
    schedule: Schedule, draft: ScheduleDraft, before: Job, after: Job, now: datetime
) -> tuple[ScheduleDraft, bool, bool]:
    """Returns the draft, switched on or off by the rule, and whether to keep or to refuse it if it has no date.

    If both are False, the policy onNothingLeft decides.
    """
    activation = draft.activation
    assert activation is not None
    timing = load_or_never(schedule.packed)
    if timing.recurring:
        own = dict(schedule.timing) != dict(draft.timing)
        window = (before.start_at, before.end_at) != (after.start_at, after.end_at)
        over = schedule.state in OVER or schedule.state is ScheduleState.BROKEN
        ends = schedule_timing.own_end(schedule.timing), before.end_at
        end_came = over and any(end is not None and end < now for end in ends)
        on = activation.active
        if on is None:
            on = schedule.active and not (end_came and (own or window))
        decides = own if schedule.active and not over else activation.active
        refuse = on and bool(decides) and not activation.within_job
        return replace(draft, active=on), not refuse, refuse
    another = not schedule_timing.same_pattern(schedule, draft)
    if activation.within_job or not (another or schedule_timing.one_time_instant(timing) is not None):
        return draft, True, False
    waits = schedule.state in {ScheduleState.ACTIVE, ScheduleState.PAUSED, ScheduleState.INACTIVE}
    return draft, not (draft.active and (another or waits)), False


def refusal(
    schedule: Schedule,
    changed: Schedule,
    job: Job,
    timing: Timing,
    now: datetime,
    effect: Effect,
    at: datetime | None,
) -> InvalidRequest | None:
    """Returns the error for a schedule that would be over at once, with the member at fault; None if it has a date.

    job: as it will be. timing: the new one. effect, at: as in `replan.change`.
    """
    if not replan.leaves_nothing(schedule, changed, job, timing, effect, at):
        return None
    field = _to_blame(schedule, changed, timing)
    if field != "active":
        last = f" to {text(timing.ends_at)}" if timing.has_end else " on"
        return InvalidRequest(field, f"leaves no date from {text(up_to_second(now))}{last}", code="NEVER_FIRES")
    if timing.ends_at < now:
        return InvalidRequest(field, "cannot be true: the endTime of the schedule or of its job is past")
    before_end = " before the endTime of the schedule or of its job" if timing.has_end else ""
    return InvalidRequest(field, f"cannot be true: no date is left{before_end}", code="NEVER_FIRES")


def _to_blame(schedule: Schedule, changed: Schedule, timing: Timing) -> str:
    if not schedule_timing.same_pattern(schedule, changed):
        return timing.notation
    moved = [name for name in ("endTime", "startTime") if schedule.timing.get(name) != changed.timing.get(name)]
    return moved[0] if moved else "active"
