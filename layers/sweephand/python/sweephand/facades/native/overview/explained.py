"""Explanations of instants of stored schedules, for the native API.

The ledger has the last word: if it has a row for an occurrence at the instant, the answer is that row. Without a row,
the plan that covers the instant decides, and the times for which the schedule is off.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sweephand.domain.instants import epoch_s, stamp, text, text_ms
from sweephand.domain.job import Job
from sweephand.domain.jobs import switched_off
from sweephand.domain.jobs.job_state import OFF, Held
from sweephand.domain.jobs.switched_off import SwitchedOff
from sweephand.domain.occurrences import generations, upcoming
from sweephand.domain.run import Reason as RunReason
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import LIVE, OVER, Schedule, ScheduleState
from sweephand.facades.http import Answer
from sweephand.facades.native.context import Context, in_query
from sweephand.facades.native.jobs.answers import as_held
from sweephand.facades.native.jobs.preview import explanation_body
from sweephand.facades.native.overview import sentences
from sweephand.flow.jobs import lookup, past
from sweephand.flow.jobs.past import Switch
from sweephand.flow.retention import RUN_DAYS
from sweephand.flow.runs import silences
from sweephand.records import dataclass
from sweephand.schedules.explain import explain_instant
from sweephand.schedules.explain.explain_instant import Explanation, Reason
from sweephand.schedules.rule import Undecided
from sweephand.schedules.text import instants
from sweephand.schedules.text.instants import Written
from sweephand.schedules.timing import Timing, load_or_never

LEFT_OUT = frozenset({State.SKIPPED, State.MISSED, State.EXPIRED, State.CANCELLED})
KEPT = timedelta(days=RUN_DAYS)
SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class _Asked:
    """A question about a schedule. plan: the schedule as the set end of its pause leaves it, if the instant is later.

    by_rule: the answer of the rule in force.
    """

    ctx: Context
    job: Job
    schedule: Schedule
    plan: Schedule
    held: Held | None
    timing: Timing
    by_rule: Explanation

    @property
    def instant(self) -> datetime:
        return self.by_rule.instant


@dataclass(frozen=True)
class _Answered:
    """An answer. state, reason: of the row, or as things stand. row: of the ledger. off: who had switched it off."""

    explanation: Explanation
    state: State | None = None
    reason: RunReason | None = None
    row: Run | None = None
    off: Switch | None = None


def explain_schedule(ctx: Context) -> Answer:
    """Explains what became of `at` (default: now), or will become of it as things stand.

    The row of the ledger decides; without one, the plan that covers the instant. Cost: the job, its schedules, up to
    four queries of the ledger and, for an instant before the last change or for one that is skipped because somebody
    switched the schedule off, up to 100 plans and 100 changes.
    """
    planned, held = as_held(ctx, lookup.find(ctx.world, ctx.tenant, ctx.id("job")))
    schedule = lookup.find_schedule(planned, ctx.id("schedule"))
    asked = _asked(ctx, planned.job, schedule, held)
    row = past.row_of(ctx.world, schedule, asked.instant)
    answered = _by_row(asked, row) if row is not None else _without_row(asked)
    body = explanation_body(asked.timing, answered.explanation, schedule.timing.get("calendars"))
    return Answer(200, {**body, **_outcome(answered)})


def _asked(ctx: Context, job: Job, schedule: Schedule, held: Held | None) -> _Asked:
    timing = load_or_never(schedule.packed)
    resumed = upcoming.resumed(schedule, timing)
    written = _written(ctx)
    try:
        found = explain_instant.explain_written(timing, written, _counted(resumed, timing))
    except Undecided:
        found = explain_instant.too_hard(timing, written)
    plan = resumed if found.instant > generations.began(resumed) else schedule
    if timing.actual_start_interval_s is not None and plan.held_from is None:
        if plan.state is ScheduleState.ACTIVE:
            found = _by_actual_starts(ctx.now, plan, timing, found)
        elif plan.state is ScheduleState.ENDING or plan.state in OVER:
            found = _by_last_start(plan, timing.actual_start_interval_s, found)
    return _Asked(ctx, job, schedule, plan, held, timing, found)


def _written(ctx: Context) -> Written:
    given = ctx.query.get("at")
    if given is None:
        return Written(epoch_s(ctx.now), 0)
    with in_query():
        return instants.read(given, "at")


def _counted(schedule: Schedule, timing: Timing) -> explain_instant.Counted | None:
    """Returns the rest of `count`; None if the schedule has ended by its state."""
    waits = schedule.unsent_from
    if timing.count is None or waits is None or schedule.state is ScheduleState.ENDING:
        return None
    return explain_instant.Counted(waits - SECOND, max(0, timing.count - schedule.planned_total))


# With a row


def _by_row(asked: _Asked, row: Run) -> _Answered:
    ran = row.state not in LEFT_OUT or row.started_at is not None
    covers = row.generation in {0, asked.schedule.generation} and asked.by_rule.occurs
    planned = asked.by_rule.reasons if covers else (_BEFORE,) if row.generation < asked.schedule.generation else ()
    off = None
    if row.reason in OFF.values():
        off = past.switch_at(asked.ctx.world, asked.job, asked.schedule, asked.instant)
        off = off if off is not None and off.reason is row.reason else None
    reasons = (Reason("IN_LEDGER", _row_text(row, off)), *planned)
    moved_by = asked.by_rule.moved_by if covers else None
    found = replace(asked.by_rule, occurs=ran, reasons=reasons, moved_by=moved_by)
    return _Answered(found, row.state, row.reason, row, off)


_BEFORE = Reason("PLANNED_BEFORE", "the schedule had it before its last change")


def _row_text(row: Run, off: Switch | None) -> str:
    ended = f"{row.state}, {row.reason}" if row.reason is not None else f"{row.state}"
    words = sentences.of_run(row).rstrip(".")
    because = "" if off is None else f"; {_off_text(off)}"
    if row.range_until is None:
        return f"its run in the ledger is {ended}" + (f": {words}" if words else "") + because
    span = f"{text(row.planned_at)} to {text(row.range_until)}"
    return f"a row of the ledger covers it ({span}, {row.range_count} occurrences): {ended}: {words}{because}"


def _off_text(off: Switch) -> str:
    verb = "paused" if off.reason is RunReason.PAUSED else "switched off"
    by = f" by {off.by}" if off.by is not None else ""
    since = f" at {text(off.since)}" if off.since is not None else ""
    until = f" until {text(off.until)}" if off.until is not None else ""
    return f"{verb}{by}{since}{until}" + (f": {off.note}" if off.note else "")


# Without a row


def _without_row(asked: _Asked) -> _Answered:
    if asked.instant in asked.schedule.still_due:
        return _pending(asked, asked.schedule.generation - 1, f"{_BEFORE.text}, which was too late to stop it")
    if asked.instant <= generations.began(asked.plan):
        return _before_change(asked)
    times = switched_off.times_off(asked.job, asked.schedule)
    off = next((each for each in times if each.covers(asked.instant)), None)
    if off is not None:
        return _while_off(asked, off)
    if not _acts(asked):
        reasons = (_not_active(asked), *asked.by_rule.reasons)
        return _Answered(replace(asked.by_rule, occurs=False, reasons=reasons))
    if asked.schedule.newer_packed is not None and asked.instant > asked.ctx.now:
        found = _while_following(asked, load_or_never(asked.schedule.newer_packed))
        return _Answered(found, State.SCHEDULED if found.occurs else None)
    return _planned(asked)


def _planned(asked: _Asked) -> _Answered:
    """Explains an instant that the plan in force covers, and for which the ledger has no row."""
    found, now = asked.by_rule, asked.ctx.now
    if found.occurs and switched_off.waits_until_enabled(asked.job, asked.schedule):
        late = replace(_not_active(asked), text=f"{_not_active(asked).text}; it runs once that ends (onEnable)")
        return _Answered(replace(found, reasons=(late, *found.reasons)), State.SCHEDULED)
    if any(each.code == "LEFT_OUT_BY_CALENDAR" for each in found.reasons):
        return _Answered(found, State.SKIPPED, RunReason.CALENDAR)
    if not found.occurs or asked.instant > now:
        return _Answered(found, State.SCHEDULED if found.occurs else None)
    if asked.instant < now - KEPT:
        gone = Reason("NO_ROW", f"the ledger keeps rows for {RUN_DAYS} days or longer, and has none for it any more")
        return _Answered(replace(found, reasons=(*found.reasons, gone)))
    due = Reason("NO_ROW", _due_text(asked))
    return _Answered(replace(found, reasons=(*found.reasons, due)), State.SCHEDULED)


def _due_text(asked: _Asked) -> str:
    """Returns why an occurrence that is due has no row yet."""
    notes = asked.ctx.world.terms.of(asked.job.tenant, asked.job.collection).silences
    target = silences.hanging(asked.ctx.world, asked.job.action, notes)
    if target is None:
        return "it is due, and nothing has begun it yet"
    since = text(notes[target].since)
    return f"it is due, and waits in the slow queue, because {target} has not answered since {since}"


def _before_change(asked: _Asked) -> _Answered:
    """Explains an instant before the plan in force, for which the ledger has no row."""
    plan = past.plan_at(asked.ctx.world, asked.schedule, asked.instant)
    began = text(generations.began(asked.schedule))
    if plan is None:
        since = f"the current rule applies since {began}; the ledger has no run at this instant"
        return _Answered(_no_occurrence(asked, Reason("CHANGED_SINCE", since)))
    timing = plan.timing()
    try:
        then = explain_instant.explain(timing, asked.instant)
    except Undecided:
        then = explain_instant.too_hard(timing, Written(epoch_s(asked.instant), 0))
    by_rule = then.occurs and timing.actual_start_interval_s is None  # actual starts are known only from the ledger
    if not (by_rule or plan.first == asked.instant):
        since = f"the current rule applies since {began}; the rule before was: {timing.summary}"
        reasons = (replace(each, calendar=None) for each in then.reasons)  # it may have had other calendars
        return _Answered(_no_occurrence(asked, Reason("CHANGED_SINCE", since), *reasons))
    if asked.instant >= asked.ctx.now - KEPT:
        return _pending(asked, plan.number, f"{_BEFORE.text}, and nothing has begun it yet")
    gone = Reason("NO_ROW", "the ledger has no row for it any more")
    return _Answered(replace(asked.by_rule, occurs=True, reasons=(_BEFORE, gone), moved_by=None))


def _pending(asked: _Asked, generation: int, words: str) -> _Answered:
    """Explains an occurrence of an earlier plan that has no row yet."""
    reason = switched_off.reason_of_pending(asked.job, asked.schedule, asked.instant, generation)
    planned = Reason("PLANNED_BEFORE", words)
    found = replace(asked.by_rule, occurs=reason is None, reasons=(planned,), moved_by=None)
    if reason is None:
        return _Answered(found, State.SCHEDULED)
    off = past.switch_at(asked.ctx.world, asked.job, asked.schedule, asked.instant)
    skipped = Reason("NOT_ACTIVE", f"it will be skipped: {reason}" + ("" if off is None else f", {_off_text(off)}"))
    return _Answered(replace(found, reasons=(skipped, planned)), State.SKIPPED, reason, off=off)


def _no_occurrence(asked: _Asked, *reasons: Reason) -> Explanation:
    return replace(asked.by_rule, occurs=False, reasons=reasons, moved_by=None)


def _while_off(asked: _Asked, time: SwitchedOff) -> _Answered:
    """Explains an instant at which the schedule is off. If the rule has it, it will be part of a SKIPPED range."""
    off = None
    if asked.schedule.held_from is None or time.reason is RunReason.PAUSED:
        off = past.switch_at(asked.ctx.world, asked.job, asked.schedule, min(asked.instant, asked.ctx.now))
    because = _not_active(asked)
    if off is not None:
        because = replace(because, text=f"{because.text}: {_off_text(off)}")
    found = replace(asked.by_rule, occurs=False, reasons=(because, *asked.by_rule.reasons))
    if not time.has(asked.timing, asked.instant):
        return _Answered(found, off=off)
    return _Answered(found, State.SKIPPED, time.reason, off=off)


def _while_following(asked: _Asked, newer: Timing) -> Explanation:
    """Explains a future instant. Does not name instants that only one version of the schedule's calendars has."""
    found, before = asked.by_rule, asked.instant - SECOND
    certain = [each.instant for each in upcoming.ahead(asked.schedule, asked.timing, before, 2)]
    following = next((each for each in certain if each > found.instant), None)
    found = replace(found, previous=None, following=following)
    with suppress(Undecided):
        if found.occurs is (found.instant in certain) is (newer.rule.next_after(before) == found.instant):
            return found
    reason = Reason("FOLLOWS_CALENDAR", "a calendar was just changed; ask again when the schedule has been replanned")
    return replace(found, occurs=False, reasons=(reason,), moved_by=None)


_BETWEEN = Reason("BETWEEN_STEPS", "its steps follow its actual starts, and none of them ends at this instant")


def _by_last_start(schedule: Schedule, step_s: int, found: Explanation) -> Explanation:
    """Explains an instant of such an interval that has ended: all of its occurrences have rows, but for the last ones.

    These were sent together, one step after the other.
    """
    last = schedule.last_planned_at
    if last is None or found.instant > last or not found.occurs:
        return found
    sent = schedule.state is ScheduleState.ENDING and (last - found.instant) % timedelta(seconds=step_s) == timedelta()
    return found if sent else replace(found, occurs=False, reasons=(_BETWEEN,), moved_by=None)


def _by_actual_starts(now: datetime, schedule: Schedule, timing: Timing, found: Explanation) -> Explanation:
    """Explains an instant of an interval whose steps follow the actual starts of its runs, by the schedule's row.

    The ledger knows the earlier ones.
    """
    ahead = [each.instant for each in upcoming.ahead(schedule, timing, found.instant - SECOND, 2)]
    occurs = found.instant in ahead
    reason = Reason("MATCHES", "it is one interval after the previous actual start") if occurs else _BETWEEN
    if found.instant <= now:
        return replace(found, occurs=occurs, reasons=(reason,), moved_by=None)
    step = timedelta(seconds=timing.actual_start_interval_s or 0)
    previous = ahead[0] - step if ahead and ahead[0] - step > now else None
    following = next((each for each in ahead if each > found.instant), None)
    return Explanation(found.instant, occurs, (reason,), None, previous, following)


def _acts(asked: _Asked) -> bool:
    """Returns whether the plan has occurrences at the instant."""
    plan = asked.plan
    if plan.state is ScheduleState.ENDING or plan.state in OVER:
        return plan.last_planned_at is not None and asked.instant <= plan.last_planned_at
    return plan.state is ScheduleState.ACTIVE


def _not_active(asked: _Asked) -> Reason:
    schedule, held = asked.schedule, asked.held
    if held is not None and held.skips and (schedule.state in LIVE or asked.plan is not schedule):
        holder = sentences.HOLDERS[held.by].format(name=held.name)
        return Reason("NOT_ACTIVE", f"the schedule is held since {text(held.since)}: {holder}")
    if schedule.held_from is not None:
        return Reason("NOT_ACTIVE", "the schedule is held: its collection or tenant is disabled")
    reason = f" ({schedule.state_reason})" if schedule.state_reason else ""
    return Reason("NOT_ACTIVE", f"the schedule is {schedule.state}{reason}")


def _outcome(answered: _Answered) -> dict[str, Any]:
    row = answered.row
    return {
        "runId": None if row is None else row.id,
        "state": None if answered.state is None else answered.state.value,
        "reason": None if answered.reason is None else answered.reason.value,
        "range": None if row is None else _range_body(row),
        "switchedOff": None if answered.off is None else _off_body(answered.off),
    }


def _range_body(row: Run) -> dict[str, Any] | None:
    if row.range_until is None:
        return None
    return {"from": text_ms(row.planned_at), "until": text_ms(row.range_until), "count": row.range_count}


def _off_body(off: Switch) -> dict[str, Any]:
    return {"since": stamp(off.since), "until": stamp(off.until), "by": off.by, "note": off.note}
