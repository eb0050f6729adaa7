"""Explanations of instants of stored schedules, for the native API.

The ledger has the last word: if it has a row for an occurrence at the instant, the answer is that row. Without a row,
the plan that covers the instant decides, and the times for which the schedule is off.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sweephand.base.records import dataclass
from sweephand.domain.instants import epoch_s, text
from sweephand.domain.job import Job
from sweephand.domain.jobs import switched_off
from sweephand.domain.jobs.job_state import OFF, Held
from sweephand.domain.occurrences import generations, upcoming
from sweephand.domain.run import Reason as RunReason
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import LIVE, OVER, Schedule, ScheduleState
from sweephand.schedules.explain import explain_instant
from sweephand.schedules.explain.explain_instant import Explanation, Reason
from sweephand.schedules.rule import Undecided
from sweephand.schedules.text import instants
from sweephand.schedules.text.instants import Written
from sweephand.schedules.timing import Timing, load_or_never
from sweephand.server.facades.http import Answer
from sweephand.server.facades.native.context import Context
from sweephand.server.facades.native.jobs.answers import as_held
from sweephand.server.facades.native.jobs.preview import EXPLANATION, Explained
from sweephand.server.facades.native.overview import sentences
from sweephand.server.facades.native.query import in_query
from sweephand.server.flow.jobs import lookup, occurrences, past
from sweephand.server.flow.jobs.occurrences import Occurrence
from sweephand.server.flow.jobs.past import Switch
from sweephand.server.flow.retention import RUN_DAYS
from sweephand.server.flow.tenants import silences

LEFT_OUT = frozenset({State.SKIPPED, State.MISSED, State.EXPIRED, State.CANCELLED})
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

    def shown(self, timing: Timing, calendars: Any) -> Explained:
        return Explained(timing, self.explanation, calendars, self.state, self.reason, self.row, self.off)


def explain_schedule(ctx: Context) -> Answer:
    """Explains what became of `at` (default: now), or will become of it as things stand.

    It is one of the occurrences that lists show, or none. Cost: the job, its schedules, up to four queries of the
    ledger and, for an instant before the last change or for one that is skipped because somebody switched the schedule
    off, up to 100 plans and 100 changes.
    """
    planned, held = as_held(ctx, lookup.find(ctx.world, ctx.tenant, ctx.id("job")))
    schedule = lookup.find_schedule(planned, ctx.id("schedule"))
    asked = _asked(ctx, planned.job, schedule, held)
    of_schedule = occurrences.Asked(ctx.world, planned.job, schedule, asked.timing, ctx.now)
    answered = _answered(asked, occurrences.at(of_schedule, asked.instant))
    return Answer(200, EXPLANATION.show(answered.shown(asked.timing, schedule.timing.get("calendars"))))


def _asked(ctx: Context, job: Job, schedule: Schedule, held: Held | None) -> _Asked:
    timing = load_or_never(schedule.packed)
    resumed = upcoming.resumed(schedule, timing)
    written = _written(ctx)
    try:
        explanation = explain_instant.explain_written(timing, written, _counted(resumed, timing))
    except Undecided:
        explanation = explain_instant.too_hard(timing, written)
    plan = resumed if explanation.instant > generations.began(resumed) else schedule
    if timing.actual_start_interval_s is not None and plan.held_from is None and plan.state is ScheduleState.ACTIVE:
        explanation = _by_actual_starts(ctx.now, plan, timing, explanation)
    elif schedule.newer_packed is not None and explanation.instant > ctx.now:
        explanation = _while_following(schedule, timing, explanation)
    return _Asked(ctx, job, schedule, plan, held, timing, explanation)


def _written(ctx: Context) -> Written:
    text = ctx.query.get("at")
    if text is None:
        return Written(epoch_s(ctx.now), 0)
    with in_query():
        return instants.read(text, "at")


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
    explanation = replace(asked.by_rule, occurs=ran, reasons=reasons, moved_by=moved_by)
    return _Answered(explanation, row.state, row.reason, row, off)


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


def _answered(asked: _Asked, occurrence: Occurrence | None) -> _Answered:
    """Explains why this occurrence is at the instant, or why none is."""
    if occurrence is None:
        return _none(asked)
    if occurrence.run is not None:
        return _by_row(asked, occurrence.run)
    still_due = asked.instant in asked.schedule.still_due
    if still_due or occurrence.plan is not None:
        late = "which was too late to stop it" if still_due else "and nothing has begun it yet"
        return _pending(asked, occurrence, f"{_BEFORE.text}, {late}")
    if occurrence.off is not None:
        return _while_off(asked, occurrence.reason)
    if occurrence.skipped is not None:
        return _Answered(replace(asked.by_rule, occurs=False), occurrence.state, occurrence.reason)
    return _planned(asked)


def _planned(asked: _Asked) -> _Answered:
    """Explains an occurrence of the plan in force, for which the ledger has no row."""
    explanation = replace(asked.by_rule, occurs=True)
    reasons = explanation.reasons if asked.by_rule.occurs else (_FIRST,)
    if switched_off.waits_until_enabled(asked.job, asked.schedule):
        late = replace(_not_active(asked), text=f"{_not_active(asked).text}; it runs once that ends (onEnable)")
        return _Answered(replace(explanation, reasons=(late, *reasons)), State.SCHEDULED)
    if asked.instant <= asked.ctx.now:
        reasons = (*reasons, Reason("NO_ROW", _due_text(asked)))
    return _Answered(replace(explanation, reasons=reasons), State.SCHEDULED)


def _none(asked: _Asked) -> _Answered:
    """Explains an instant without an occurrence. Older ones may have had a row that has expired."""
    if asked.instant <= generations.began(asked.plan):
        return _before_change(asked)
    explanation = replace(asked.by_rule, occurs=False)
    off = (time.covers(asked.instant) for time in switched_off.times_off(asked.job, asked.schedule))
    if any(off):
        return _while_off(asked, None)
    if not _acts(asked):
        return _Answered(replace(explanation, reasons=(_not_active(asked), *explanation.reasons)))
    if _may_follow(asked):
        return _Answered(replace(explanation, reasons=(_FOLLOWS,), moved_by=None))
    return _Answered(_between_or_gone(asked) if asked.by_rule.occurs else explanation)


def _between_or_gone(asked: _Asked) -> Explanation:
    """Explains an instant of the rule that is no occurrence, or whose row has expired."""
    explanation = asked.by_rule
    if asked.timing.actual_start_interval_s is not None:
        return replace(explanation, occurs=False, reasons=(_BETWEEN,), moved_by=None)
    gone = asked.instant < asked.ctx.now - occurrences.KEPT
    return replace(explanation, occurs=gone, reasons=(*explanation.reasons, _GONE))


_FIRST = Reason("BEGINS_PLAN", "its plan begins with it: it runs at once, or late")
_FOLLOWS = Reason("FOLLOWS_CALENDAR", "a calendar was just changed; ask again when the schedule has been replanned")
_GONE = Reason("NO_ROW", f"the ledger keeps rows for {RUN_DAYS} days or longer, and has none for it any more")


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
    expired = asked.instant < asked.ctx.now - occurrences.KEPT
    if not expired or not (by_rule or plan.first == asked.instant):
        since = f"the current rule applies since {began}; the rule before was: {timing.summary}"
        # That rule may have had the instant, which the change then left out, and it may have had other calendars.
        reasons = (replace(each, calendar=None) for each in then.reasons if each.code != "MATCHES")
        return _Answered(_no_occurrence(asked, Reason("CHANGED_SINCE", since), *reasons))
    return _Answered(replace(asked.by_rule, occurs=True, reasons=(_BEFORE, _GONE), moved_by=None))


def _pending(asked: _Asked, occurrence: Occurrence, words: str) -> _Answered:
    """Explains an occurrence of an earlier plan that has no row yet."""
    planned = Reason("PLANNED_BEFORE", words)
    explanation = replace(asked.by_rule, occurs=occurrence.skipped is None, reasons=(planned,), moved_by=None)
    if occurrence.skipped is None:
        return _Answered(explanation, State.SCHEDULED)
    off = past.switch_at(asked.ctx.world, asked.job, asked.schedule, asked.instant)
    because = f"it will be skipped: {occurrence.skipped}" + ("" if off is None else f", {_off_text(off)}")
    explanation = replace(explanation, reasons=(Reason("NOT_ACTIVE", because), planned))
    return _Answered(explanation, occurrence.state, occurrence.reason, off=off)


def _no_occurrence(asked: _Asked, *reasons: Reason) -> Explanation:
    return replace(asked.by_rule, occurs=False, reasons=reasons, moved_by=None)


def _while_off(asked: _Asked, skipped: RunReason | None) -> _Answered:
    """Explains an instant at which the schedule is off. skipped: set if an occurrence will be part of a range."""
    off = None
    if asked.schedule.held_from is None or skipped is RunReason.PAUSED:
        off = past.switch_at(asked.ctx.world, asked.job, asked.schedule, min(asked.instant, asked.ctx.now))
    because = _not_active(asked)
    if off is not None:
        because = replace(because, text=f"{because.text}: {_off_text(off)}")
    explanation = replace(asked.by_rule, occurs=False, reasons=(because, *asked.by_rule.reasons))
    return _Answered(explanation, None if skipped is None else State.SKIPPED, skipped, off=off)


def _while_following(schedule: Schedule, timing: Timing, explanation: Explanation) -> Explanation:
    """Explains a future instant. Does not name instants that only one version of the schedule's calendars has."""
    certain = [each.instant for each in upcoming.ahead(schedule, timing, explanation.instant - SECOND, 2)]
    following = next((each for each in certain if each > explanation.instant), None)
    return replace(explanation, previous=None, following=following)


def _may_follow(asked: _Asked) -> bool:
    """Returns whether one version of the calendars has an occurrence at a future instant that is not certain yet."""
    newer = asked.schedule.newer_packed
    if newer is None or asked.instant <= asked.ctx.now:
        return False
    with suppress(Undecided):
        return asked.by_rule.occurs or load_or_never(newer).rule.last_until(asked.instant) == asked.instant
    return True


_BETWEEN = Reason("BETWEEN_STEPS", "its steps follow its actual starts, and none of them ends at this instant")


def _by_actual_starts(now: datetime, schedule: Schedule, timing: Timing, explanation: Explanation) -> Explanation:
    """Explains an instant of an interval whose steps follow the actual starts of its runs, by the schedule's row.

    The ledger knows the earlier ones.
    """
    ahead = [each.instant for each in upcoming.ahead(schedule, timing, explanation.instant - SECOND, 2)]
    occurs = explanation.instant in ahead
    reason = Reason("MATCHES", "it is one interval after the previous actual start") if occurs else _BETWEEN
    if explanation.instant <= now:
        return replace(explanation, occurs=occurs, reasons=(reason,), moved_by=None)
    step = timedelta(seconds=timing.actual_start_interval_s or 0)
    previous = ahead[0] - step if ahead and ahead[0] - step > now else None
    following = next((each for each in ahead if each > explanation.instant), None)
    return Explanation(explanation.instant, occurs, (reason,), None, previous, following)


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
