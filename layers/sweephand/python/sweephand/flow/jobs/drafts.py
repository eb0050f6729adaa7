"""Turns a caller's drafts into what is written: ids, parsed timings, sealed secrets, payload items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sweephand import actions
from sweephand.domain.instants import EPOCH, text, up_to_second
from sweephand.domain.job import ActionDraft, ActionSpec, Job, JobDraft, Payload, ScheduleDraft, hook_owner
from sweephand.domain.occurrences.lateness import RATE_PER_MINUTE, Misfire, Policy
from sweephand.domain.runs import run_action
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import OVER, Lane, Schedule
from sweephand.errors import InvalidRequest
from sweephand.flow.world import World
from sweephand.schedules.notations import NOTATIONS
from sweephand.schedules.text.instants import parse_instant
from sweephand.schedules.timing import Timing, begun_as, counted_from, load_or_never, parse
from sweephand.store.dynamo.conditional import Op
from sweephand.store.jobs import jobs

if TYPE_CHECKING:
    from sweephand.security.guard import GuardSettings
    from sweephand.store.jobs.own_hooks import ByName

PAST_GRACE = timedelta(seconds=60)
ACTION, ERROR_ACTION = "action", "errorAction"


def _alike(draft: type, record: type, but: set[str]) -> tuple[str, ...]:
    """Returns the members that a draft and its record have in common, except those in `but`."""
    there = {each.name for each in fields(record)} - but
    return tuple(each.name for each in fields(draft) if each.name in there)


OF_JOB = _alike(JobDraft, Job, {"name", "action", "error_action", "hooks", "facade", "ordinal", "attributes"})
OF_SCHEDULE = _alike(ScheduleDraft, Schedule, {"id", "name", "hooks", "attributes"})
"""The members that are stored exactly as requested."""


def alike(there: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(there, name) for name in names}


@dataclass
class Parts:
    """The parts that a job's transaction writes next to the job.

    payloads: by owner. hooks: of new schedules, by schedule id, already sealed. secrets: in the clear, by field.
    kept: fields whose stored secret stays.
    """

    payloads: dict[str, Payload] = field(default_factory=dict)
    hooks: dict[str, ByName] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    def add_action(self, owner: str, draft: ActionDraft, now: datetime) -> None:
        """Adds an action's payload and secrets. Raises InvalidRequest."""
        actions.check_lasting(draft, owner, now)
        if draft.payload is not None:
            self.payloads[owner] = draft.payload
        self.secrets |= {f"{owner}.{name}": value for name, value in draft.secrets.items()}
        self.kept |= {f"{owner}.{name}" for name in draft.kept}


def job_from(
    draft: JobDraft, tenant: str, job_id: str, now: datetime, version: int, before: Job | None = None
) -> tuple[Job, Parts]:
    """Returns the job as it will be, and the parts that are written next to it. version: its new revision.

    Raises InvalidRequest.
    """
    parts = Parts()
    parts.add_action(ACTION, draft.action, now)
    reactions = {hook_owner(name): hook for name, hook in draft.hooks.items()}
    if draft.error_action is not None:
        reactions = {ERROR_ACTION: draft.error_action, **reactions}
    for owner, reaction in reactions.items():
        actions.check_reaction(reaction, owner, job_id)
        parts.add_action(owner, reaction, now)
    job = Job(
        **alike(draft, OF_JOB),
        tenant=tenant,
        id=job_id,
        name=draft.name or job_id,
        action=_spec(draft.action, version),
        created_at=before.created_at if before else now,
        modified_at=now,
        facade=before.facade if before else draft.facade,
        error_action=_spec(draft.error_action, version) if draft.error_action else None,
        hooks={name: _spec(hook, version) for name, hook in draft.hooks.items()},
        secret_version=version if parts.secrets or parts.kept else None,
        revision=version,
        pause=before.pause if before else None,
        number=before.number if before else 0,
        ordinal=before.ordinal if before else draft.ordinal,
        own_runs=before.own_runs if before else False,
        attributes=before.attributes if before and draft.attributes is None else draft.attributes or {},
    )
    return job, parts


def keep_payloads(job: Job, before: Job, parts: Parts, stored: Mapping[str, Payload]) -> Job:
    """Keeps the stored version of every payload that did not change, and drops it from the parts."""

    def kept(owner: str, new: ActionSpec | None, old: ActionSpec | None) -> ActionSpec | None:
        if new is None or old is None or owner not in parts.payloads or parts.payloads[owner] != stored.get(owner):
            return new
        del parts.payloads[owner]
        return replace(new, payload_version=old.payload_version)

    action = kept(ACTION, job.action, before.action)
    assert action is not None
    error_action = kept(ERROR_ACTION, job.error_action, before.error_action)
    hooks = {name: kept(hook_owner(name), hook, before.hooks.get(name)) or hook for name, hook in job.hooks.items()}
    return replace(job, action=action, error_action=error_action, hooks=hooks)


def job_as_stored(job: Job, payloads: Mapping[str, Payload], guard: GuardSettings) -> JobDraft:
    """Returns the draft that asks for a job as it is stored; its schedules stay. payloads: the stored ones."""

    def asked(owner: str, spec: ActionSpec) -> ActionDraft:
        return actions.as_stored(spec, payloads.get(owner), guard)

    return JobDraft(
        **alike(job, OF_JOB),
        name=job.name,
        action=asked(ACTION, job.action),
        error_action=asked(ERROR_ACTION, job.error_action) if job.error_action else None,
        hooks={name: asked(hook_owner(name), hook) for name, hook in job.hooks.items()},
        schedules=None,
        facade=job.facade,
        ordinal=job.ordinal,
        attributes=job.attributes,
    )


def as_stored(schedule: Schedule, payload: Payload | None = None) -> ScheduleDraft:
    """Returns the draft that asks for a schedule as it is stored. payload: its own, if it has one."""
    return ScheduleDraft(
        **alike(schedule, OF_SCHEDULE),
        name=schedule.name,
        payload=payload,
        id=schedule.id,
        attributes=schedule.attributes,
    )


def _spec(draft: ActionDraft, version: int) -> ActionSpec:
    return ActionSpec(draft.kind, draft.params, draft.retry, version if draft.payload is not None else None)


def seal(world: World, job: Job, parts: Parts, before: Job | None = None) -> dict[str, str]:
    """Returns field -> ciphertext: encrypts new secrets and copies kept ones from the stored item."""
    sealed = {
        name: world.secrets.encrypt(job.tenant, job.id, name, value) for name, value in sorted(parts.secrets.items())
    }
    if parts.kept:
        version = before.secret_version if before else None
        stored = jobs.read_secrets(world.table, job.tenant, job.id, version) if version is not None else {}
        for name in sorted(parts.kept):
            if name not in stored:
                raise InvalidRequest(name, "there is no stored value to keep; give the value")
            sealed[name] = stored[name]
    return sealed


def part_ops(world: World, job: Job, parts: Parts, sealed: Mapping[str, str]) -> list[Op]:
    ops = [
        jobs.payload_op(world.table, job.tenant, job.id, owner, job.revision, payload)
        for owner, payload in parts.payloads.items()
    ]
    if sealed:
        ops.append(jobs.secret_op(world.table, job.tenant, job.id, job.revision, sealed))
    return ops


def lane_of(job: Job) -> Lane:
    return run_action.lane_of(job.action)


GRID = (*NOTATIONS, "align", "timezone", "startTime")
"""The members that determine the rhythm of a series; endTime and count only limit it."""


def changed_timing(
    there: Schedule, draft: ScheduleDraft, before: Job, after: Job, now: datetime, *, may_be_empty: bool = False
) -> Timing:
    """Returns the timing after a change.

    Keeps what the change does not touch: the start of a rhythm that began at creation, and the instant of a one-time
    schedule. may_be_empty: accepts a timing that never fires.
    """
    timing = load_or_never(there.packed)
    at = timing.written_at if timing.calendars or draft.activation else timing.once_at
    if at is not None and same_pattern(there, draft):
        return _parsed(_at(at, draft), draft, after, there.id, now, after.start_at, may_be_empty=may_be_empty)
    same_start = before.start_at == after.start_at
    if same_start and _agree(there.timing, draft.timing, GRID):
        began = counted_from(there.packed)
        if began is not None:
            timing = timing_of(draft, after, there.id, began, may_be_empty=may_be_empty)
            return begun_as(timing, there.packed)
    return timing_of(draft, after, there.id, now, may_be_empty=may_be_empty)


def same_pattern(there: Schedule, draft: ScheduleDraft | Schedule) -> bool:
    """Returns whether the timings are the same except for their windows."""
    return _agree(there.timing, draft.timing, (*NOTATIONS, "timezone"))


def _agree(one: Mapping[str, Any], other: Mapping[str, Any], names: Sequence[str]) -> bool:
    return all(one.get(name) == other.get(name) for name in names)


def timing_of(draft: ScheduleDraft, job: Job, schedule_id: str, now: datetime, *, may_be_empty: bool = False) -> Timing:
    """Returns the parsed timing. Raises InvalidRequest.

    A one-time instant more than 60 s in the past is refused. The policy onPastStart `run_now` moves it to now instead,
    and it stays in the past if the schedule may be over. may_be_empty: accepts a timing that never fires.
    """

    def read(members: Mapping[str, Any], job_start: datetime | None) -> Timing:
        return _parsed(members, draft, job, schedule_id, now, job_start, may_be_empty=may_be_empty)

    timing = read(draft.timing, job.start_at)
    at = timing.once_at
    if at is None or at >= now - PAST_GRACE or (may_be_empty and timing.ends_at < now):
        return timing
    if draft.policies.get("onPastStart", job.policies.get("onPastStart")) == "run_now":
        return read(_at(up_to_second(now), draft), None)
    if not (may_be_empty or may_be_over(draft, job)):
        raise InvalidRequest(timing.notation, f"{text(at)} is more than 60 seconds in the past: it is {text(now)} now")
    return timing


def _parsed(
    members: Mapping[str, Any],
    draft: ScheduleDraft,
    job: Job,
    schedule_id: str,
    now: datetime,
    job_start: datetime | None,
    *,
    may_be_empty: bool,
) -> Timing:
    return parse(
        members,
        now=now,
        job_start=job_start,
        job_end=job.end_at,
        salt=schedule_id,
        book=draft.book,
        may_be_over=may_be_over(draft, job),
        may_be_empty=may_be_empty,
    )


def may_be_over(draft: ScheduleDraft, job: Job) -> bool:
    """Returns whether a schedule that has no instant left is completed, not refused (the policy onNothingLeft)."""
    return bool(draft.policies.get("onNothingLeft", job.policies.get("onNothingLeft")) == "complete")


def _at(instant: datetime, draft: ScheduleDraft) -> dict[str, Any]:
    """Returns the members of a one-time draft, with this instant in place of theirs. A `time` ignores the start."""
    notation = "at" if draft.timing.get("time") is None else "time"
    return {**draft.timing, **dict.fromkeys(NOTATIONS), notation: text(instant)}


def one_time_instant(timing: Timing) -> datetime | None:
    """Returns the instant of a one-time rule; None for any other rule."""
    return None if timing.recurring else timing.rule.last_until(LAST)


def first_instant(draft: ScheduleDraft, job: Job, timing: Timing, now: datetime) -> datetime | None:
    """Returns the first occurrence of a new schedule if the rule alone does not give it; None otherwise.

    Concerns one-time schedules, intervals whose start has passed, and `onCreate: run_now`. Returns None as well for an
    occurrence long ago or after the end.
    """
    if not timing.recurring:
        at = one_time_instant(timing)
        return at if at is not None and still_runs(timing, at, now) else None
    if runs_late(timing, policies_of(job, draft), now):
        return up_to_second(now)
    policy = draft.policies.get("onCreate", job.policies.get("onCreate", "schedule"))
    return up_to_second(now) if policy == "run_now" and timing.ends_at >= now.replace(microsecond=0) else None


def still_runs(timing: Timing, at: datetime, now: datetime) -> bool:
    """Returns whether a single instant still runs: it is at most 60 s in the past, and its end has not come."""
    return at >= now - PAST_GRACE and timing.ends_at >= now.replace(microsecond=0)


def runs_late(timing: Timing, policies: Mapping[str, Any], now: datetime) -> bool:
    """Returns whether an interval from the actual start, activated at `now`, runs at once.

    It does if its start has passed, its end has not, and `onPastStart` is `run_now`.
    """
    if timing.actual_start_interval_s is None or policies.get("onPastStart") != "run_now":
        return False
    begin = timing.rule.next_after(EPOCH)
    return begin is not None and begin <= now and up_to_second(now) <= timing.ends_at


def restarts(there: Schedule, draft: ScheduleDraft, timing: Timing, job: Job, now: datetime) -> bool:
    """Returns whether a change makes an interval from the actual start run at once. job: as it will be.

    It does if its new start has passed, or if it was over, has missed an occurrence since, and is switched on again.
    """
    if not runs_late(timing, policies_of(job, draft), now):
        return False
    if there.state in OVER:
        over_at = there.completed_at or there.modified_at
        missed = timing.rule.next_after(over_at)
        return draft.activation is not None and draft.activation.active is True and missed is not None and missed <= now
    return timing.rule.next_after(EPOCH) != stored_timing(there).rule.next_after(EPOCH)


LAST = datetime.fromisoformat("2199-12-31T23:59:59+00:00")


def own_end(timing: Mapping[str, Any]) -> datetime | None:
    """Returns a schedule's own end; None without one. timing: must not depend on a time zone outside its times."""
    given = timing.get("endTime")
    return None if given is None else parse_instant(given, "endTime")


def unchanged_timing(schedule: Schedule, draft: ScheduleDraft, before: Job, after: Job) -> bool:
    """Returns whether the change leaves the rule as it is: a PUT of the stored schedule plans nothing."""
    return dict(schedule.timing) == dict(draft.timing) and (before.start_at, before.end_at) == (
        after.start_at,
        after.end_at,
    )


def stored_timing(schedule: Schedule) -> Timing:
    return load_or_never(schedule.packed)


def mended_timing(schedule: Schedule, draft: ScheduleDraft, job: Job, now: datetime) -> Timing:
    """Returns the timing of an unreadable schedule that is requested unchanged: the caller's members, packed anew."""
    try:
        return timing_of(draft, job, schedule.id, now)
    except InvalidRequest:
        return stored_timing(schedule)


def with_name(draft: ScheduleDraft, schedule_id: str) -> ScheduleDraft:
    return draft if draft.name else replace(draft, name=schedule_id)


def misfire_of(draft: ScheduleDraft, job: Job) -> str:
    wanted: Any = draft.policies.get("misfire") or job.policies.get("misfire") or {}
    rate = int(wanted.get("ratePerMinute", RATE_PER_MINUTE))
    return str(Policy(Misfire(wanted.get("type", "sap")), rate, wanted.get("maxLatenessSeconds")))
