"""The members of a schedule: read from POST, PUT and PATCH, shown in answers. The notations define its timing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.json_schema import answer, items, one_of, or_null, ref, request, text, whole
from sweephand.base.lazy import lazy
from sweephand.base.members import fields
from sweephand.base.members.fields import below
from sweephand.base.records import dataclass
from sweephand.domain.answers import Member, Table, answered
from sweephand.domain.instants import text as text_of
from sweephand.domain.instants import text_ms
from sweephand.domain.job import HOOK_KINDS, ActionDraft, ActionSpec, Payload, ScheduleDraft, json_payload
from sweephand.domain.jobs import policies
from sweephand.domain.jobs.job_state import HeldBy
from sweephand.domain.occurrences import upcoming
from sweephand.domain.occurrences.upcoming import NextRuns
from sweephand.domain.run import Run, State
from sweephand.domain.schedule import Schedule, ScheduleState, StateReason
from sweephand.domain.schema_words import FLAG, ID, INSTANT, INSTANT_MS, LOCAL, NAME, RUN_ID, TEXT
from sweephand.schedules.rule import MovedBy
from sweephand.schedules.timing import TIMING_MEMBERS, Timing, load_or_never
from sweephand.server import actions
from sweephand.server.actions.payloads import ANYTHING
from sweephand.server.facades.native.members import defaults
from sweephand.server.facades.native.members.defaults import Filling, payload_value
from sweephand.server.facades.native.members.resource import Resource
from sweephand.server.security.guard import GuardSettings
from sweephand.server.store.views.totals import Totals

if TYPE_CHECKING:
    from sweephand.domain.jobs.job_state import Held
    from sweephand.server.facades.native.members.stored_hooks import StoredHooks

with lazy():
    from sweephand.schedules.calendars import calendar_uses
    from sweephand.server.facades.native.members import idle

NEXT_RUNS = 5


@dataclass(frozen=True)
class Reading:
    """The context of a request. action: the job's, which the schedule's payload must suit; None if it is invalid.

    stored: the hooks of the changed schedule. shown_by: the defaults that were filled in when they were shown.
    """

    guard: GuardSettings
    action: ActionDraft | ActionSpec | None
    shown_by: Filling
    stored: Mapping[str, ActionSpec]


@dataclass(frozen=True)
class ScheduleView:
    """The parts of an answer. schedule: with what holds it."""

    schedule: Schedule
    next: NextRuns
    timing: Timing
    payload: Payload | None
    hooks: Mapping[str, Any]
    last_run: Run | None
    totals: Totals
    held: Held | None


# Reading


def read_action(
    value: object, field: str, guard: GuardSettings, shown_by: Filling, stored: ActionSpec | None
) -> ActionDraft:
    """Reads an action. stored: the action that it replaces. Defaults that only an answer showed are not stored."""
    draft = actions.draft(value, field=field, guard=guard, stored=stored)
    if stored is None:
        return draft
    return replace(draft, params=defaults.without_shown(draft.params, stored, shown_by))


def read_hooks(
    value: object, field: str, guard: GuardSettings, shown_by: Filling, stored: Mapping[str, ActionSpec]
) -> dict[str, ActionDraft]:
    wrong = Mistakes()
    members = fields.members(value, field, tuple(HOOK_KINDS), wrong)
    drafts = {
        name: wrong.of(read_action, hook, below(field, name), guard, shown_by, stored.get(name))
        for name, hook in members.items()
    }
    wrong.check()
    return drafts


# Showing


def held_body(held: Held | None) -> dict[str, Any] | None:
    return None if held is None else {"by": held.by.value, "name": held.name, "since": text_ms(held.since)}


TOTALS = Table(
    {
        "planned": answered(whole(), says="How many occurrences were planned."),
        "open": answered(whole(), says="How many runs have not ended."),
        "succeeded": answered(whole(), says="How many runs succeeded."),
        "failed": answered(whole(), says="How many runs failed."),
        "failedAttempts": answered(whole(), says="How many attempts failed."),
        "skipped": answered(whole(), says="How many occurrences were left out on purpose."),
        "missed": answered(
            whole(),
            lambda totals: totals.missed + totals.missed_sent,
            "How many occurrences did not run because they were found too late.",
        ),
        "exact": answered(
            FLAG,
            says="Whether all runs since the last audit were counted; if not, those before the newest ones count as "
            "ended.",
        ),
    }
)
HELD = or_null(
    answer(
        {"by": one_of(HeldBy), "name": TEXT, "since": INSTANT_MS},
        description="The reason why it does not run although it is active. While its tenant or collection is disabled,"
        " no runs are announced, and due occurrences are skipped. While its flow key is paused, runs wait.",
    )
)
SCHEDULE = Resource(
    ScheduleDraft,
    {
        "id": answered(ID),
        "jobId": answered(ID),
        "name": Member(NAME, lambda value, field, _: fields.name(value, field), shown=TEXT),
        "active": Member(FLAG),
        "state": answered(one_of(ScheduleState)),
        "stateReason": answered(or_null(one_of(StateReason))),
        "held": answered(HELD, lambda view: held_body(view.held)),
        "type": answered(
            one_of(("recurring", "one-time")), lambda view: "recurring" if view.timing.recurring else "one-time"
        ),
        "summary": answered(
            text(description="The schedule as a phrase in plain English."), lambda view: view.timing.summary
        ),
        "payload": Member(
            {**ANYTHING, "description": "Replaces the payload of the job's action. " + ANYTHING["description"]},
            lambda value, field, _: json_payload(value, field),
            shown=ANYTHING,
            show=lambda view: None if view.payload is None else payload_value(view.payload),
        ),
        "hooks": Member(
            request(
                dict.fromkeys(HOOK_KINDS, ref("Action")),
                description="Each hook replaces the job's hook of the same name.",
            ),
            lambda value, field, reading: read_hooks(value, field, reading.guard, reading.shown_by, reading.stored),
            shown=answer(dict.fromkeys(HOOK_KINDS, ref("ShownAction")), HOOK_KINDS),
            show=lambda view: dict(view.hooks),
        ),
        "policies": Member(
            ref("SchedulePolicies"),
            lambda value, field, _: policies.read(value, field),
            shown=ref("OwnPolicies"),
            show=lambda view: dict(view.schedule.policies),
        ),
        "createdAt": answered(INSTANT_MS),
        "modifiedAt": answered(INSTANT_MS),
        "nextRunAt": answered(or_null(INSTANT), lambda view: view.next.first and text_of(view.next.first)),
        "nextRuns": answered(
            items(INSTANT, maxItems=NEXT_RUNS),
            lambda view: [text_of(at) for at in view.next.instants],
            says="The next instants at which it runs.",
        ),
        "nextRunsExact": answered(
            FLAG,
            lambda view: view.next.exact,
            says="False if the next runs take too long to compute: `nextRuns` may then lack some of them.",
        ),
        "lastRun": answered(
            or_null(answer({"id": RUN_ID, "state": one_of(State)})),
            lambda view: view.last_run and {"id": view.last_run.id, "state": view.last_run.state.value},
            says="The latest run; null before the first.",
        ),
        "totals": answered(ref("Totals"), lambda view: TOTALS.show(view.totals)),
    },
    "schedule",
)


def with_timing(shown: Mapping[str, Any], timing: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members of an answer, with those of the timing after the summary."""
    names = list(shown)
    head = names[: names.index("summary") + 1]
    return {**{name: shown[name] for name in head}, **timing, **shown}


GIVEN = (*SCHEDULE.sent, *sorted(TIMING_MEMBERS))
"""The members that a caller may set."""


def schedule_draft(
    body: object,
    field: str,
    action: ActionDraft | ActionSpec | None,
    guard: GuardSettings,
    *,
    change: bool,
    hooks: StoredHooks | None = None,
) -> ScheduleDraft:
    """Reads a schedule. action: see Reading. hooks: the changed schedule, whose secrets may be kept."""
    known = (*GIVEN, *(SCHEDULE.read_only if change else ()))
    wrong = Mistakes()
    members = fields.members(body, field, known, wrong)
    timing = {name: members[name] for name in members if name in TIMING_MEMBERS}
    if "calendars" in timing:
        timing["calendars"] = wrong.of(_calendars, timing["calendars"], field)
    read = SCHEDULE.read(members, field, Reading(guard, action, *_shown(members, hooks)), wrong)
    if action is not None:
        wrong.of(actions.check_payload, action.kind, action.params, read.get("payload"), below(field, "payload"))
    draft = ScheduleDraft(
        **{
            "id": wrong.of(fields.free, members["id"], below(field, "id"), 1, 64) if "id" in members else None,
            "name": None,
            "hooks": {},
            "timing": defaults.without_defaults(timing, defaults.timing_defaults(timing)),
            **read,
        }
    )
    for refused in idle.of_schedule(draft, field):
        wrong.add(refused)
    if action is not None and draft.policies is not None:
        for refused in idle.of_action(draft.policies, action, below(field, "policies")):
            wrong.add(refused)
    wrong.check()
    return draft


def _calendars(value: object, field: str) -> Any:
    try:
        return calendar_uses.shown(value)
    except InvalidRequest as wrong:
        raise wrong.within(field) from wrong


def _shown(members: Mapping[str, Any], hooks: StoredHooks | None) -> tuple[Filling, Mapping[str, ActionSpec]]:
    if hooks is None or not members.get("hooks"):
        return Filling(), {}
    return hooks.of(hooks.find(members.get("id"), members.get("name")))


def schedule_body(
    schedule: Schedule,
    now: datetime,
    *,
    payloads: Mapping[str, Payload] | None,
    last_run: Run | None,
    totals: Totals,
    hooks: Mapping[str, Any] | None = None,
    held: Held | None = None,
) -> dict[str, Any]:
    """Returns the body of a schedule. payloads: None in a list of jobs, without payloads and hooks."""
    timing = load_or_never(schedule.packed)
    payload = (payloads or {}).get(schedule.id)
    ahead = upcoming.next_runs(schedule, timing, now, NEXT_RUNS)
    body = SCHEDULE.show(ScheduleView(schedule, ahead, timing, payload, hooks or {}, last_run, totals, held))
    if payloads is None:
        del body["payload"], body["hooks"]
    return with_timing(body, defaults.shown_timing(schedule.timing))


def schedule_editable(
    schedule: Schedule, payload: Payload | None, hooks: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the members that a caller may set, to which a merge patch is applied. hooks: as they are shown."""
    timing = load_or_never(schedule.packed)
    view = ScheduleView(schedule, upcoming.NO_RUNS, timing, payload, hooks or {}, None, Totals(), None)
    body = {**SCHEDULE.settable(view), **schedule.timing}
    return body if hooks else {name: value for name, value in body.items() if name != "hooks"}


MOVED_BY = or_null(
    answer(
        {
            "rule": one_of(("dstGap", "dstOverlap", "monthOverflow", "calendar"), description="The rule that decided."),
            "localTime": {
                **LOCAL,
                "description": "The wall time of the rule; for `monthOverflow`, a day that does not exist.",
            },
            "timezone": text(description="The zone of `localTime`; absent if it is the schedule's."),
            "effect": one_of(
                ("moved", "skipped", "doubled", "once"),
                description="`doubled`: both copies of a repeated time run; `once`: only this one.",
            ),
        },
        ("timezone",),
    )
)


def moved_body(moved: MovedBy | None) -> dict[str, str] | None:
    if moved is None:
        return None
    where = {} if moved.zone is None else {"timezone": moved.zone}
    return {"rule": moved.rule, "localTime": moved.local_time, **where, "effect": moved.effect}
