"""The members of a job: read from POST, PUT and PATCH, shown in answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.json_schema import answer, items, one_of, or_null, ref, request, text
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.base.records import dataclass
from sweephand.domain.answers import Member, answered
from sweephand.domain.instants import text as text_of
from sweephand.domain.instants import text_ms
from sweephand.domain.job import (
    HOOK_KINDS,
    ActionDraft,
    ActionSpec,
    Job,
    JobDraft,
    JobState,
    Payload,
    ScheduleDraft,
    hook_owner,
)
from sweephand.domain.jobs import policies
from sweephand.domain.jobs.job_state import ended_state, state_of
from sweephand.domain.occurrences import upcoming
from sweephand.domain.occurrences.upcoming import NextRuns
from sweephand.domain.schedule import OVER, Schedule, StateReason
from sweephand.domain.schema_words import (
    FACADE,
    FLAG,
    GIVEN_INSTANT,
    ID,
    IN_UTC,
    INSTANT,
    INSTANT_MS,
    NAME,
    REVISION,
    TEXT,
)
from sweephand.server.facades.native.members import defaults, schedule_members
from sweephand.server.facades.native.members.defaults import Filling
from sweephand.server.facades.native.members.resource import Resource
from sweephand.server.facades.native.members.schedule_members import HELD, TOTALS, held_body, read_hooks
from sweephand.server.facades.native.members.schedule_members import schedule_draft as read_schedule
from sweephand.server.security.guard import GuardSettings
from sweephand.server.store.views.totals import Totals

if TYPE_CHECKING:
    from sweephand.domain.jobs.job_state import Held
    from sweephand.server.facades.native.members.stored_hooks import StoredHooks

with lazy():
    from sweephand.server.facades.native.members import idle


@dataclass
class Reading:
    """The context of a request. before: the replaced job, whose secrets may be kept.

    hooks: its schedules with their own hooks. action: set as soon as it was read.
    """

    guard: GuardSettings
    before: Job | None
    hooks: StoredHooks | None
    shown_by: Filling
    action: ActionDraft | None = None


@dataclass(frozen=True)
class JobView:
    """The parts of an answer. schedules: with what holds them (domain.jobs.job_state.as_shown).

    payloads: None in lists, which leave them out. shown: the bodies of the schedules, if requested.
    """

    job: Job
    schedules: Sequence[Schedule]
    next: NextRuns
    payloads: Mapping[str, Payload] | None
    filling: Filling
    held: Held | None


# Reading


def _action(value: object, field: str, reading: Reading) -> ActionDraft:
    stored = reading.before.action if reading.before else None
    reading.action = schedule_members.read_action(value, field, reading.guard, reading.shown_by, stored)
    return reading.action


def _tags(value: object, field: str, _: Reading) -> tuple[str, ...]:
    return fields.tags(value, field)


def _schedules(value: object, field: str, reading: Reading) -> tuple[ScheduleDraft, ...]:
    wrong = Mistakes()
    change, hooks = reading.before is not None, reading.hooks
    drafts = tuple(
        wrong.of(read_schedule, each, f"{field}[{n}]", reading.action, reading.guard, change=change, hooks=hooks)
        for n, each in enumerate(fields.listed(value, field))
    )
    wrong.check()
    return drafts


# Showing


def job_state(job: Job, schedules: Sequence[Schedule]) -> JobState:
    """Returns COMPLETED if all schedules are, FAULTED if one of them is; without schedules, the owner's choice."""
    return state_of(active=job.active, paused=job.pause is not None, ended=ended_state(schedules))


def job_state_reason(job: Job, schedules: Sequence[Schedule]) -> str | None:
    """Returns why a job does not run. If it has ended: its schedules' reason, or the general one if they differ."""
    match job_state(job, schedules):
        case JobState.ACTIVE:
            reasons = {each.state_reason for each in schedules if each.state not in OVER}
            return StateReason.UNREACHABLE.value if reasons == {StateReason.UNREACHABLE} else job.state_reason
        case JobState.COMPLETED | JobState.FAULTED:
            reasons = {schedule.state_reason for schedule in schedules}
            return reasons.pop() if len(reasons) == 1 else StateReason.NO_FUTURE_DATES.value
        case JobState.INACTIVE | JobState.PAUSED:
            return job.state_reason or StateReason.BY_USER.value


def pause_body(job: Job) -> dict[str, Any] | None:
    if job.pause is None:
        return None
    until = None if job.pause.until is None else text_of(job.pause.until)
    return {"since": text_ms(job.pause.since), "note": job.pause.note, "until": until}


def _action_body(view: JobView, action: ActionSpec | None, owner: str) -> dict[str, Any] | None:
    if action is None:
        return None
    body = defaults.shown_action(action, view.filling)
    if view.payloads is not None:
        body |= {"payload": None, "body": None}
        payload = view.payloads.get(owner)
        if payload is not None:
            body["payload" if payload.is_json else "body"] = defaults.payload_value(payload)
    return body


JOB = Resource(
    JobDraft,
    {
        "id": answered(ID),
        "name": Member(
            {**NAME, "description": "The name, unique in its collection; by default the id."},
            lambda value, field, _: fields.name(value, field),
            shown=TEXT,
        ),
        "description": Member(text(0, 1_000)),
        "collection": Member(NAME),
        "facade": answered(FACADE),
        "jobSet": answered(or_null({**TEXT, "description": "The job set that owns it."})),
        "key": answered(or_null({**TEXT, "description": "Its key in the job set."})),
        "revision": answered(REVISION),
        "createdAt": answered(INSTANT_MS),
        "modifiedAt": answered(INSTANT_MS),
        "active": Member(FLAG),
        "state": answered(one_of(JobState), lambda view: job_state(view.job, view.schedules).value),
        "stateReason": answered(or_null(one_of(StateReason)), lambda view: job_state_reason(view.job, view.schedules)),
        "pause": answered(
            or_null(answer({"since": INSTANT_MS, "note": or_null(TEXT), "until": or_null(INSTANT)})),
            lambda view: pause_body(view.job),
        ),
        "held": answered(HELD, lambda view: held_body(view.held)),
        "pendingChange": answered(
            FLAG,
            lambda view: view.job.open_change is not None,
            says="Whether schedules have yet to follow the last change of the job. Until then, they show the plan "
            "before it, of which nothing is called any more.",
        ),
        "resourceId": Member(text(1, 256), lambda value, field, _: fields.line(value, field, 256)),
        "tags": Member(items(text(1, 128), maxItems=fields.MOST_TAGS, uniqueItems=True), _tags, shown=items(TEXT)),
        "startTime": Member(
            {**GIVEN_INSTANT, "description": f"The job does not run before this instant. {IN_UTC}"},
            shown=or_null(INSTANT),
            attribute="start_at",
        ),
        "endTime": Member(
            {**GIVEN_INSTANT, "description": f"The job does not run after this instant. {IN_UTC}"},
            shown=or_null(INSTANT),
            attribute="end_at",
        ),
        "nextRunAt": answered(or_null(INSTANT), lambda view: view.next.first and text_of(view.next.first)),
        "nextRunExact": answered(FLAG, lambda view: view.next.exact),
        "action": Member(
            ref("Action"),
            _action,
            shown=ref("ShownAction"),
            show=lambda view: _action_body(view, view.job.action, "action"),
        ),
        "errorAction": Member(
            ref("Action"),
            lambda value, field, reading: schedule_members.read_action(
                value, field, reading.guard, reading.shown_by, reading.before and reading.before.error_action
            ),
            shown=or_null(ref("ShownAction")),
            show=lambda view: _action_body(view, view.job.error_action, "errorAction"),
        ),
        "hooks": Member(
            request(dict.fromkeys(HOOK_KINDS, ref("Action"))),
            lambda value, field, reading: read_hooks(
                value, field, reading.guard, reading.shown_by, reading.before.hooks if reading.before else {}
            ),
            shown=answer(dict.fromkeys(HOOK_KINDS, ref("ShownAction")), HOOK_KINDS),
            show=lambda view: {
                name: _action_body(view, hook, hook_owner(name)) for name, hook in view.job.hooks.items()
            },
        ),
        "policies": Member(
            ref("Policies"),
            lambda value, field, _: policies.read(value, field, of_job=True),
            shown=ref("ShownPolicies"),
            show=lambda view: defaults.shown_policies(view.job.policies),
        ),
    },
    "job",
    more=("totals",),
)


def job_draft(
    body: object,
    guard: GuardSettings,
    before: Job | None = None,
    hooks: StoredHooks | None = None,
    waits_s: int | None = None,
) -> JobDraft:
    """Reads POST, PUT, and PATCH after its merge. before, hooks: see Reading. waits_s: see defaults.Filling.

    In a change, members that only answers have are ignored, so that a job can be sent back as it was read.
    """
    known = (*JOB.names(change=before is not None), "schedules")
    wrong = Mistakes()
    members = fields.members(body, "", known, wrong)
    if before is not None and members.get("id", before.id) != before.id:
        wrong.add(InvalidRequest("id", "cannot be changed"))
    wrong.of(fields.required, members, "action")
    reading = Reading(guard, before, hooks, Filling(before.policies if before else {}, waits_s))
    draft = JOB.read(members, "", reading, wrong)
    if "schedules" in members:
        draft["schedules"] = wrong.of(_schedules, members["schedules"], "schedules", reading)
    elif before is not None:
        draft["schedules"] = None
    start, end = draft.get("start_at"), draft.get("end_at")
    if start is not None and end is not None and end < start:
        wrong.add(InvalidRequest("endTime", "is before startTime"))
    asked = draft.get("policies", {})
    if reading.action is not None and asked is not None:
        for refused in idle.of_job(asked, reading.action, "policies"):
            wrong.add(refused)
    wrong.check()
    return JobDraft(**{"name": None, **draft, "policies": defaults.without_default_policies(asked)})


def check_settable(body: Mapping[str, Any]) -> None:
    """Raises InvalidRequest for members that a new job cannot have, so that a change does not ignore them."""
    wrong = Mistakes()
    fields.members(body, "", (*JOB.sent, "schedules"), wrong)
    schedules = body.get("schedules")
    for n, each in enumerate(schedules if isinstance(schedules, list) else ()):
        wrong.of(fields.members, each, f"schedules[{n}]", schedule_members.GIVEN)
    wrong.check()


def job_body(
    job: Job,
    schedules: Sequence[Schedule],
    now: datetime,
    *,
    payloads: Mapping[str, Payload] | None = None,
    totals: Totals | None = None,
    shown: Sequence[dict[str, Any]] | None = None,
    waits_s: int | None = None,
    held: Held | None = None,
) -> dict[str, Any]:
    """Returns a job as JSON. totals, shown (the bodies of its schedules): if requested. The others: see JobView.

    waits_s: see defaults.Filling.
    """
    ahead, _ = upcoming.next_of_job(schedules, now)
    body = JOB.show(JobView(job, schedules, ahead, payloads, Filling(job.policies, waits_s), held))
    if totals is not None:
        body["totals"] = TOTALS.show(totals)
    if shown is not None:
        body["schedules"] = list(shown)
    return body


def editable(job: Job, payloads: Mapping[str, Payload], waits_s: int | None = None) -> dict[str, Any]:
    """Returns the members that a caller may set, to which a merge patch is applied."""
    return JOB.settable(JobView(job, (), upcoming.NO_RUNS, payloads, Filling(job.policies, waits_s), None))
