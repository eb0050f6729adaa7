"""Applies the rule of domain.occurrences.nothing_left to a stored schedule and a changed job."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sweephand.domain.instants import text, up_to_second
from sweephand.domain.job import Job, ScheduleDraft
from sweephand.domain.occurrences import nothing_left
from sweephand.domain.occurrences.nothing_left import NothingLeft
from sweephand.domain.schedule import Schedule
from sweephand.errors import InvalidRequest
from sweephand.flow.jobs import drafts
from sweephand.flow.series import replan
from sweephand.flow.series.replan import Effect
from sweephand.schedules.timing import Timing


def settled(
    there: Schedule, draft: ScheduleDraft, before: Job, after: Job, now: datetime
) -> tuple[ScheduleDraft, bool, bool]:
    """Returns the draft, switched on or off by the rule; whether to keep it without a date; whether to refuse it then.

    If both are False, the policy onNothingLeft decides.
    """
    asked = draft.asked
    assert asked is not None
    if drafts.stored_timing(there).recurring:
        own = dict(there.timing) != dict(draft.timing)
        window = (before.start_at, before.end_at) != (after.start_at, after.end_at)
        how = nothing_left.stands(there, (drafts.own_end(there.timing), before.end_at), now)
        on, verdict = nothing_left.after_change(how, asked, own=own, window=window)
        draft = replace(draft, active=on)
    else:
        another = not drafts.same_pattern(there, draft)
        has_instant = drafts.one_time_instant(drafts.stored_timing(there)) is not None
        verdict = nothing_left.after_change_of_single(
            there, asked, on=draft.active, another=another, has_instant=has_instant
        )
    return draft, verdict is NothingLeft.KEPT, verdict is NothingLeft.REFUSED


def refusal(
    there: Schedule,
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
    if not replan.leaves_nothing(there, changed, job, timing, effect, at):
        return None
    field = _to_blame(there, changed, timing)
    if field != "active":
        last = f" to {text(timing.ends_at)}" if timing.has_end else " on"
        return InvalidRequest(field, f"leaves no date from {text(up_to_second(now))}{last}", code="NEVER_FIRES")
    if timing.ends_at < now:
        return InvalidRequest(field, "cannot be true: the endTime of the schedule or of its job is past")
    before_end = " before the endTime of the schedule or of its job" if timing.has_end else ""
    return InvalidRequest(field, f"cannot be true: no date is left{before_end}", code="NEVER_FIRES")


def _to_blame(there: Schedule, changed: Schedule, timing: Timing) -> str:
    if not drafts.same_pattern(there, changed):
        return timing.notation
    moved = [name for name in ("endTime", "startTime") if there.timing.get(name) != changed.timing.get(name)]
    return moved[0] if moved else "active"
