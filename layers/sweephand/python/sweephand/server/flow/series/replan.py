"""Replans a schedule in one write, so that messages of the old plan cannot contradict the new one.

The new plan begins with the request. The old plan ends at E, five seconds later, because its messages may be on their
way to a claim. The instants of the old plan up to E are sent and run; those that were sent but lie after E are taken
back. An instant that both plans contain runs once and counts once (domain.occurrences.generations).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sweephand.base.errors import Unavailable
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.instants import EPOCH, epoch_s, from_s, up_to_second
from sweephand.domain.job import Job
from sweephand.domain.jobs.job_state import OFF, wanted_state
from sweephand.domain.message import occurrence
from sweephand.domain.occurrences import generations, series
from sweephand.domain.occurrences.generations import SECOND, Generation, Seam, Start
from sweephand.domain.occurrences.lateness import FRESH, Misfire, Policy
from sweephand.domain.occurrences.suspension import runs_when_enabled
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import LIVE, Schedule, ScheduleState, StateReason, ended_generations
from sweephand.schedules.rule import Undecided
from sweephand.schedules.timing import Timing, load, load_or_never, with_count
from sweephand.server.flow.series import ranges
from sweephand.server.flow.world import World
from sweephand.server.messaging.run_queue import Delivery

with lazy():
    from sweephand.domain.occurrences import misfire, off_times

COMMIT_MARGIN = timedelta(seconds=2)
MOST_POINTERS = 100
"""Occurrences of a new plan that are sent at once: more than a minute's worth. The sweep sends the rest."""
EXTRA_LOOK_AHEAD_S = 60


@dataclass(frozen=True)
class Plan:
    """The result of replanning. schedule: as its row will be. owed: old occurrences to send before the write.

    silence: if the schedule was off and is switched on, the line for what it left out. left: the instants of the old
    generation, kept for the audit.
    """

    schedule: Schedule
    owed: tuple[Delivery, ...] = ()
    silence: Run | None = None
    left: Generation | None = None


@dataclass(frozen=True)
class Effect:
    """The time at which a change takes effect.

    now: when its write is prepared; for the parts of a large change, when it was requested. asked_at: when it was
    requested. resumed_at: the last instant that a pause covers, if it ends at its set end.
    """

    now: datetime
    asked_at: datetime
    resumed_at: datetime | None = None

    @property
    def at(self) -> datetime:
        """Returns E: the old plan's messages up to it may still be on their way to a claim."""
        return generations.takes_effect(self.now)

    def seam_of(self, schedule: Schedule) -> Seam:
        """Returns where the old plan ends and the new one begins.

        Nothing is planned while a schedule is off. Its new plan begins with the request, or with the end of the pause.
        That end may lie ahead, so that occurrences are sent on time; a further change until then begins there too. It
        is not known what an unreadable schedule has sent, so its new plan begins after the seam.
        """
        if schedule.state in LIVE:
            resumes = off_times.ends_ahead(schedule.off_times, self.now) if schedule.off_times else None
            if resumes is not None:
                return Seam(resumes, max(self.at, resumes))
            return Seam(series.before_first(self.now), self.at)
        if schedule.state is ScheduleState.BROKEN:
            return Seam(self.at, self.at)
        since = series.before_first(self.asked_at)
        if self.resumed_at is not None and schedule.state is ScheduleState.PAUSED:
            since = self.resumed_at
        return Seam(since, max(since, generations.began(schedule)))


def in_time(world: World, effective: datetime) -> None:
    """Raises Unavailable if too little time is left to write the change before E. Then the change starts again."""
    if world.clock.now() > effective - COMMIT_MARGIN:
        raise Unavailable("the change took too long to prepare: try again")


def first_plan(schedule: Schedule, job: Job, timing: Timing, now: datetime, at: datetime | None) -> Schedule:
    """Returns a new schedule with its state and first instant. at: the first instant, if the rule does not give it."""
    state, reason = wanted_state(job, schedule.active)
    own = series.first(timing, now)
    upcoming = at or own
    if state is not ScheduleState.ACTIVE:
        return replace(schedule, state=state, state_reason=reason, next_run_at=None)
    first_at = upcoming if upcoming != own else None
    return replace(schedule, state=state, state_reason=reason, next_run_at=upcoming, first_at=first_at)


def over_at_once(schedule: Schedule, now: datetime) -> Schedule:
    """Returns a new schedule without an occurrence as ENDING. If its completion fails, its wake row completes it."""
    wake_at = up_to_second(now) + timedelta(seconds=1)
    return replace(schedule, state=ScheduleState.ENDING, next_run_at=wake_at)


def change(
    before: Schedule,
    after: Schedule,
    job: Job,
    timing: Timing,
    effect: Effect,
    at: datetime | None,
    *,
    fresh: bool = False,
) -> Plan:
    """Returns the next generation of a schedule. after: the schedule as requested.

    at: the instant of a new one-time timing, or E for an interval that runs at once. The old plan covers its instants
    up to the end of the seam, the new plan those since the request. fresh: whether `count` begins again.
    """
    seam = effect.seam_of(before)
    old = load_or_never(before.packed)
    state, reason = wanted_state(job, after.active)
    if not after.active and after.state_reason == StateReason.UNREACHABLE:
        reason = StateReason.UNREACHABLE  # until somebody switches it on again
    if at is None and _is_late_start(before, after, job, timing, effect.at):
        at = effect.at
    owed = _owed(before, old, seam.until)
    sent = generations.counted_after(before, old, seam.since if at is None else min(seam.since, at - SECOND))
    counted = {each for each in {*sent, *owed} if each <= seam.until and (each > seam.since or each == at)}
    planned_total = max(0, before.planned_total + len(owed) - sum(each > seam.until for each in sent))
    start, own_count = Start(None), timing.count
    if fresh:
        timing = _counted_from(timing, own_count, planned_total)
    if state is ScheduleState.ACTIVE:
        start = _start(timing, planned_total, counted, seam, at, effect)
    upcoming = start.first_at
    still_due = tuple(sorted(each for each in counted - start.taken_over if each > seam.since))
    last = None
    if state is ScheduleState.ACTIVE and upcoming is None:
        # Nothing lies ahead: the wake row of an ENDING schedule completes it.
        state, upcoming = ScheduleState.ENDING, effect.at + timedelta(seconds=1)
        last = owed[-1] if owed else min(before.last_planned_at or seam.until, seam.until)
        last = max([last, *still_due])
    planned_total = max(0, planned_total - len(start.taken_over))
    changed = replace(
        after,
        packed=_counted_from(timing, own_count, planned_total).packed if fresh else after.packed,
        generation=before.generation + 1,
        ended_at=ended_generations(before, epoch_s(seam.until)),
        planned_total=planned_total,
        state=state,
        state_reason=reason,
        next_run_at=upcoming if state in LIVE else None,
        last_planned_at=last,
        first_at=_first_at(timing, start, seam) if state is ScheduleState.ACTIVE else None,
        still_due=still_due,
        missed_to=_missed_to(before, state, seam),
        off_times=_off_times(before, state, seam, still_due, effect.now),
        unreachable=None if after.active else before.unreachable,
    )
    deliveries = tuple(_delivery(before, instant) for instant in owed)
    left = generations.left_behind(before, owed, seam.until)
    return Plan(changed, deliveries, silence(before, old, seam.since, effect.now), left)


def _counted_from(timing: Timing, count: int | None, planned_total: int) -> Timing:
    """Returns the timing with `count` occurrences after those that were planned before."""
    return timing if count is None else with_count(timing, planned_total + count)


def _start(
    timing: Timing, planned_total: int, counted: set[datetime], seam: Seam, at: datetime | None, effect: Effect
) -> Start:
    """Returns where the new plan begins.

    If its calendars make that too hard to compute, the row becomes due with the change. The sweep that reads it then
    takes the schedule out of service, with a row in the ledger.
    """
    try:
        return generations.start_of(timing, planned_total, counted, seam, at)
    except Undecided:
        return Start(effect.at + SECOND)


def _first_at(timing: Timing, start: Start, seam: Seam) -> datetime | None:
    """Returns this generation's first occurrence if the rule alone does not give it; None otherwise."""
    try:
        by_rule = timing.rule.next_after(seam.until)
    except Undecided:
        return None
    return None if start.first_at == by_rule else start.first_at


def _missed_to(before: Schedule, state: ScheduleState, seam: Seam) -> datetime | None:
    """Returns the end of the span that was left out, as far as the new plan does not have its instants again.

    It may lie ahead if a late start has moved the rhythm. While the schedule is off, it then stays: the line of that
    time begins after it.
    """
    if before.missed_to is None or state in OFF:
        return before.missed_to
    return min(before.missed_to, seam.since)


def _off_times(
    before: Schedule, state: ScheduleState, seam: Seam, still_due: Sequence[datetime], now: datetime
) -> str | None:
    """Returns the times when the schedule was off, including one that this change begins or ends.

    They are needed to decide about occurrences that were sent ahead, and to know an end that lies ahead.
    """
    reason = OFF.get(state)
    begins = reason is not None and before.state in LIVE and bool(still_due)
    ends_ahead = reason is None and before.state is ScheduleState.PAUSED and seam.since > now
    ends = reason is None and before.off_times is not None
    if not (begins or ends or ends_ahead):
        return before.off_times
    if reason is None:
        lasting = before.off_times
        if ends_ahead and lasting is None:
            lasting = off_times.began(None, Reason.PAUSED, before.generation, seam.since)
        return off_times.ended(lasting, seam.since)
    return off_times.began(before.off_times, reason, before.generation, seam.since)


def leaves_nothing(
    before: Schedule, after: Schedule, job: Job, timing: Timing, effect: Effect, at: datetime | None
) -> bool:
    """Returns whether `change` would leave the schedule without an occurrence if it and its job were switched on."""
    if at is None and _is_late_start(before, after, job, timing, effect.at):
        return False
    return generations.start_of(timing, before.planned_total, (), effect.seam_of(before), at).first_at is None


def _is_late_start(before: Schedule, after: Schedule, job: Job, timing: Timing, effective: datetime) -> bool:
    """Returns whether an occurrence that came while the schedule was off must run as soon as it is on again.

    It must for an interval that follows actual starts, whose new rhythm begins with it, and for a single instant if
    `onPastStart` is `run_now`; for neither after the end. With `onEnable: run_now`, it must also for a single instant
    that passed while the schedule was held, before it was switched off.
    """
    if before.state is not ScheduleState.INACTIVE:
        return False
    if timing.recurring and timing.actual_start_interval_s is None:
        return False
    policies = policies_of(job, after)
    if not timing.recurring and policies.get("onPastStart") != "run_now":
        return False
    off_at = before.ended_at.get(before.generation - 1)
    if before.planned_total == 0 and runs_when_enabled(policies, after.packed):
        off_at = None
    missed = timing.rule.next_after(EPOCH if off_at is None else from_s(off_at))
    return missed is not None and missed <= effective <= timing.ends_at


def silence(before: Schedule, old: Timing, until: datetime, now: datetime) -> Run | None:
    """Returns one line for the occurrences that were due and never sent while this generation was off; None if none.

    Any change of the schedule ends that generation.
    """
    reason = OFF.get(before.state)
    since = before.ended_at.get(before.generation - 1)
    if reason is None or since is None:
        return None
    message, begin = "the schedule was off", max(from_s(since), before.missed_to or EPOCH)
    try:
        first = old.rule.next_after(begin)
        last = old.rule.last_until(until)
        if first is None or last is None or first > last:
            return None
        count = series.count_within(old, first, last)
    except Undecided:
        first, last, count = begin + timedelta(seconds=1), until, 1
        message = "the schedule was off; how many occurrences were due takes too long to compute, so they count as one"
    owner, end = (before.tenant, before.job_id, before.id), (State.SKIPPED, reason, message)
    return ranges.line(owner, end, (first, last, count), before.generation, now, before.packed)


def has_missed(schedule: Schedule, now: datetime) -> bool:
    """Returns whether occurrences were missed about which the schedule's policy must decide."""
    at = schedule.next_run_at
    if schedule.state is not ScheduleState.ACTIVE or schedule.held_from is not None or at is None or at >= now - FRESH:
        return False
    policy = Policy.read(schedule.misfire)
    return misfire.missed(load_or_never(schedule.packed), policy, at, now, schedule.planned_total) is not None


def _owed(before: Schedule, old: Timing, effective: datetime) -> list[datetime]:
    """Returns the instants up to E that the current generation has not sent yet. Raises Unavailable for too many."""
    if before.state is not ScheduleState.ACTIVE or before.next_run_at is None or before.next_run_at > effective:
        return []
    stretch = series.due(old, before.next_run_at, effective, before.planned_total, effective)
    if stretch.next_at is not None and stretch.next_at <= effective:
        raise Unavailable("too many missed occurrences wait to be sent: try again in a minute", retry_after_s=60)
    return list(stretch.instants)


def _delivery(schedule: Schedule, instant: datetime) -> Delivery:
    """Returns the message of an owed instant.

    The message is decided if the policy runs missed occurrences: then it runs however late it comes.
    """
    pointer = occurrence(schedule.tenant, schedule.job_id, schedule.id, instant, schedule.generation)
    policy = Policy.read(schedule.misfire)
    decided = policy.type is not Misfire.SKIP and policy.max_lateness_s is None
    return Delivery(replace(pointer, decided=decided), instant, schedule.lane)


def send_owed(world: World, plans: Sequence[Plan], *, lines_too: bool) -> None:
    """Sends what the old plans still have to send, before the write. Raises Unavailable if a message is not sent.

    lines_too: whether to announce the lines as well, for their events.
    """
    owed = [delivery for plan in plans for delivery in plan.owed]
    if lines_too:
        now = world.clock.now()
        owed += [ranges.word_of(plan.silence, now, plan.schedule.lane) for plan in plans if plan.silence is not None]
    if owed and world.queue.send(owed):
        raise Unavailable("the run queue did not accept a message")


def send_ahead(world: World, schedules: Sequence[Schedule]) -> None:
    """Sends what is due before the sweep can have seen the row. Call it after the write.

    The row is not advanced, so the sweep sends the same again. The next tick sends a message that is not sent now.
    """
    now = world.clock.now()
    until = now + timedelta(seconds=world.settings.look_ahead_s + EXTRA_LOOK_AHEAD_S)
    deliveries: list[Delivery] = []
    for schedule in schedules:
        for instant in _due_soon(schedule, now, until)[:MOST_POINTERS]:
            pointer = occurrence(schedule.tenant, schedule.job_id, schedule.id, instant, schedule.generation)
            deliveries.append(Delivery(pointer, instant, schedule.lane))
    unsent = world.queue.send(deliveries)
    if unsent:
        world.journal.warning("the next tick sends the messages that were not sent", left=len(unsent))


def _due_soon(schedule: Schedule, now: datetime, until: datetime) -> tuple[datetime, ...]:
    """Returns the instants that are due up to `until`.

    If the plan began so long ago that occurrences were missed (a pause that ended in an outage), returns only fresh
    ones: the policy decides about the others at the next tick. Then a schedule with a count has none, because the
    missed ones may use it up.
    """
    if schedule.state is not ScheduleState.ACTIVE or schedule.next_run_at is None or schedule.next_run_at > until:
        return ()
    timing = load(schedule.packed)
    begin: datetime | None = schedule.next_run_at
    try:
        if has_missed(schedule, now):
            begin = timing.rule.next_after(now) if timing.count is None else None
        return () if begin is None else series.due(timing, begin, until, schedule.planned_total, now).instants
    except Undecided:
        return ()  # the sweep takes the schedule out of service
