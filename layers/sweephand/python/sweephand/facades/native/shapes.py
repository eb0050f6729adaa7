"""Native JSON to what the flow understands: every member is checked, every refusal names its field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sweephand import actions
from sweephand.actions.payloads import json_payload
from sweephand.domain.job import (
    DEFAULT_COLLECTION,
    HOOK_KINDS,
    ActionDraft,
    ActionSpec,
    Job,
    JobDraft,
    Payload,
    ScheduleDraft,
)
from sweephand.domain.members import fields
from sweephand.domain.members.fields import below, flag
from sweephand.domain.occurrences import lateness
from sweephand.domain.occurrences.lateness import Misfire
from sweephand.errors import InvalidRequest, Mistakes
from sweephand.facades.native import defaults
from sweephand.facades.native.defaults import Filling
from sweephand.ids import is_uuid
from sweephand.schedules.text.instants import parse_instant
from sweephand.schedules.timing import TIMING_MEMBERS
from sweephand.security.guard import GuardSettings

if TYPE_CHECKING:
    from sweephand.facades.native.own_hooks import There

JOB_MEMBERS = (
    *("name", "description", "collection", "active", "startTime", "endTime", "resourceId", "tags"),
    *("action", "errorAction", "hooks", "policies", "schedules"),
)
READ_ONLY_OF_JOB = (
    "id",
    "facade",
    "revision",
    "createdAt",
    "modifiedAt",
    "state",
    "stateReason",
    "pause",
    "held",
    "nextRunAt",
    "totals",
)
SCHEDULE_MEMBERS = ("id", "name", "active", "payload", "hooks", "policies", *sorted(TIMING_MEMBERS))
READ_ONLY_OF_SCHEDULE = (
    *("jobId", "state", "stateReason", "held", "type", "summary", "nextRunAt", "nextRuns", "lastRun", "totals"),
    *("createdAt", "modifiedAt"),
)
MOST_TAGS = 10
_STRANGE = re.compile(r"^[._-]|[^A-Za-z0-9._-]", re.ASCII)
MISFIRES = tuple(each.value for each in Misfire)
LEAST_LATENESS_S, MOST_LATENESS_S = 10, 345_600
"""Less would expire runs in normal operation; a message more than 4 days late is not acted on anyway."""


def job_draft(
    body: object,
    guard: GuardSettings,
    before: Job | None = None,
    there: There | None = None,
    waits_s: int | None = None,
) -> JobDraft:
    """POST, PUT, and PATCH after its merge. before: the job that is replaced, whose secrets may be kept.

    there: its schedules with the hooks that they bring; of a change that brings schedules. waits_s: see
    defaults.Filling.

    Members that only answers have are let through unread in a change, so that what was read can be sent back.
    """
    known = JOB_MEMBERS + (READ_ONLY_OF_JOB if before else ())
    wrong = Mistakes()
    given = fields.members(body, "", known, wrong)
    if before is not None and given.get("id", before.id) != before.id:
        wrong.add(InvalidRequest("id", "cannot be changed"))
    shown_by = Filling(before.policies if before else {}, waits_s)
    stored = (before.action, before.error_action, before.hooks) if before else (None, None, {})
    action = wrong.of(_required_action, given, guard, shown_by, stored[0])
    error_action = None
    if "errorAction" in given:
        error_action = wrong.of(_action, given["errorAction"], "errorAction", guard, shown_by, stored[1])
    draft = JobDraft(
        name=wrong.of(_name, given, "name", ""),
        description=wrong.of(_text, given, "description", "", 0, 1_000),
        collection=wrong.of(_text, given, "collection", "", 1, 128) or DEFAULT_COLLECTION,
        active=wrong.of(flag, given.get("active", True), "active"),
        start_at=wrong.of(_instant, given, "startTime"),
        end_at=wrong.of(_instant, given, "endTime"),
        resource_id=wrong.of(fields.line, given["resourceId"], "resourceId", 256) if "resourceId" in given else None,
        tags=wrong.of(_tags, given.get("tags", [])),
        action=action,
        error_action=error_action,
        hooks=wrong.of(_hooks, given.get("hooks", {}), "hooks", guard, shown_by, stored[2]),
        policies=wrong.of(policies, given.get("policies", {}), "policies", of_job=True),
        schedules=wrong.of(_schedules, given, action, guard, before, there),
    )
    if draft.start_at is not None and draft.end_at is not None and draft.end_at < draft.start_at:
        wrong.add(InvalidRequest("endTime", "is before startTime"))
    if action is not None and draft.policies is not None:
        from sweephand.facades.native import idle  # noqa: PLC0415 - as below

        for refused in idle.of_job(draft.policies, action, "policies"):
            wrong.add(refused)
    wrong.check()
    return replace(draft, policies=defaults.without_default_policies(draft.policies))


def _required_action(
    given: Mapping[str, Any], guard: GuardSettings, shown_by: Filling, stored: ActionSpec | None
) -> ActionDraft:
    return _action(fields.required(given, "action"), "action", guard, shown_by, stored)


def _action(
    given: object, field: str, guard: GuardSettings, shown_by: Filling, stored: ActionSpec | None
) -> ActionDraft:
    """stored: the action that this one replaces. What was only shown of it, by this filling, stays unsaid."""
    draft = actions.draft(given, field=field, guard=guard, stored=stored)
    if stored is None:
        return draft
    return replace(draft, params=defaults.unsaid(draft.params, stored, shown_by))


def _hooks(
    value: object, field: str, guard: GuardSettings, shown_by: Filling, stored: Mapping[str, ActionSpec]
) -> dict[str, ActionDraft]:
    wrong = Mistakes()
    given = fields.members(value, field, tuple(HOOK_KINDS), wrong)
    found = {
        name: wrong.of(_action, hook, below(field, name), guard, shown_by, stored.get(name))
        for name, hook in given.items()
    }
    wrong.check()
    return found


def _schedules(
    given: Mapping[str, Any], action: ActionDraft | None, guard: GuardSettings, before: Job | None, there: There | None
) -> tuple[ScheduleDraft, ...] | None:
    if "schedules" not in given:
        return None if before else ()
    wanted = given["schedules"]
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise InvalidRequest("schedules", f"must be a list, not {fields.shown(wanted)}")
    if len(wanted) > 1_000:
        raise InvalidRequest("schedules", f"has {len(wanted):,} members; the most is 1,000")
    wrong = Mistakes()
    found = tuple(
        wrong.of(schedule_draft, each, f"schedules[{n}]", action, guard, change=before is not None, there=there)
        for n, each in enumerate(wanted)
    )
    wrong.check()
    return found


def schedule_draft(
    body: object,
    field: str,
    action: ActionDraft | ActionSpec | None,
    guard: GuardSettings,
    *,
    change: bool,
    there: There | None = None,
) -> ScheduleDraft:
    """action: the job's, which the schedule's payload must suit; None: it cannot be read. there: what is changed, whose
    secrets may be kept.
    """
    known = SCHEDULE_MEMBERS + (READ_ONLY_OF_SCHEDULE if change else ())
    wrong = Mistakes()
    given = fields.members(body, field, known if change else known[1:], wrong)
    timing = {name: given[name] for name in given if name in TIMING_MEMBERS}
    if "calendars" in timing:
        timing["calendars"] = wrong.of(_calendars, timing["calendars"], field)
    payload = wrong.of(_payload, given, field)
    if action is not None:
        wrong.of(actions.check_payload, action.kind, action.params, payload, below(field, "payload"))
    draft = ScheduleDraft(
        id=wrong.of(_text, given, "id", field, 1, 64),
        name=wrong.of(_name, given, "name", field),
        active=wrong.of(flag, given.get("active", True), below(field, "active")),
        timing=defaults.without_defaults(timing, defaults.timing_defaults(timing)),
        payload=payload,
        policies=wrong.of(policies, given.get("policies", {}), below(field, "policies")),
        hooks=wrong.of(_hooks, given.get("hooks", {}), below(field, "hooks"), guard, *_shown(given, there)),
    )
    from sweephand.facades.native import idle  # noqa: PLC0415 - no cold start waits for what a change needs

    for refused in idle.of_schedule(draft, field):
        wrong.add(refused)
    if action is not None and draft.policies is not None:
        for refused in idle.of_action(draft.policies, action, below(field, "policies")):
            wrong.add(refused)
    wrong.check()
    return draft


def _calendars(value: object, field: str) -> Any:
    from sweephand.schedules.calendars import calendar_uses  # noqa: PLC0415 - few schedules name any

    try:
        return calendar_uses.shown(value)
    except InvalidRequest as wrong:
        raise (wrong.within(field) if field else wrong) from wrong


def _shown(given: Mapping[str, Any], there: There | None) -> tuple[Filling, Mapping[str, ActionSpec]]:
    """Of the schedule that a change speaks of: by what its hooks were shown, and these."""
    if there is None or not given.get("hooks"):
        return Filling(), {}
    return there.of(there.find(given.get("id"), given.get("name")))


def _payload(given: Mapping[str, Any], field: str) -> Payload | None:
    return json_payload(given["payload"], below(field, "payload")) if "payload" in given else None


def policies(value: object, field: str, *, of_job: bool = False) -> dict[str, Any]:
    """As the caller wrote them, checked. What this version does not carry out is refused, not stored.

    of_job: not of a schedule, or of what new jobs get.
    """
    wrong = Mistakes()
    given = fields.members(value, field, tuple(defaults.POLICIES), wrong)
    checked: dict[str, Any] = {}
    if "misfire" in given:
        checked["misfire"] = wrong.of(_misfire, given["misfire"], below(field, "misfire"))
    for name, values in CHOICES.items():
        if name in given:
            checked[name] = wrong.of(fields.one_of, given[name], below(field, name), values)
    if "afterEnd" in given and not of_job:
        wrong.add(fields.inactive(field, "afterEnd", "it belongs to a job as a whole"))
    if "hooks" in given:
        checked["hooks"] = wrong.of(_chosen_hooks, given["hooks"], below(field, "hooks"))
    if "callbackToken" in given:
        checked["callbackToken"] = wrong.of(flag, given["callbackToken"], below(field, "callbackToken"))
    if "flowKey" in given:
        checked["flowKey"] = wrong.of(fields.text, given["flowKey"], below(field, "flowKey"), 1, 128)
        if not of_job:
            wrong.add(fields.inactive(field, "flowKey", "it belongs to a job as a whole, or to its collection"))
    wrong.check()
    return checked


OF_JOB_ONLY = frozenset({"flowKey", "afterEnd"})
"""Policies that belong to a job as a whole."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "overlap": ("allow", "skip", "queue_one", "replace"),
    "onPastStart": ("refuse", "run_now"),
    "onCreate": ("schedule", "run_now"),
    "onNothingLeft": ("refuse", "complete"),
    "onUnreachable": ("deactivate", "continue"),
    "onNoResult": ("end", "retry"),
    "afterEnd": ("open", "final"),
    "delivery": ("at_least_once", "at_most_once"),
    "keepAnswer": ("failures", "all", "none"),
}


def _chosen_hooks(value: object, field: str) -> list[str]:
    """In their own order: which of them is said first means nothing."""
    if not isinstance(value, list):
        raise InvalidRequest(field, f"must be a list of {', '.join(HOOK_KINDS)}, not {fields.shown(value)}")
    wrong = Mistakes()
    for n, each in enumerate(value):
        wrong.of(fields.one_of, each, f"{field}[{n}]", tuple(HOOK_KINDS))
    wrong.check()
    return [name for name in HOOK_KINDS if name in value]


def _misfire(value: object, field: str) -> dict[str, Any]:
    wrong = Mistakes()
    given = fields.members(value, field, ("type", "ratePerMinute", "maxLatenessSeconds"), wrong)
    checked: dict[str, Any] = {
        "type": wrong.of(fields.one_of, given.get("type", Misfire.SAP.value), below(field, "type"), MISFIRES)
    }
    for name, bounds in {
        "ratePerMinute": (1, 6_000),
        "maxLatenessSeconds": (LEAST_LATENESS_S, MOST_LATENESS_S),
    }.items():
        if name in given:
            checked[name] = wrong.of(fields.whole, given[name], below(field, name), *bounds)
    for name, why in lateness.inactive(given).items():
        wrong.add(fields.inactive(field, name, why))
    wrong.check()
    return checked


IF_ACTIVE = ("start", "drop")


def run(body: object) -> tuple[str | None, str, Mapping[str, Any]]:
    """Returns the schedule that a manual run belongs to, what to do if another run is active, and all members."""
    wrong = Mistakes()
    given = fields.members(body, "", ("scheduleId", "ifActive", "payload", "body", "headers"), wrong)
    schedule_id = wrong.of(_schedule_id, given)
    if_active = wrong.of(fields.one_of, given.get("ifActive", "start"), "ifActive", IF_ACTIVE)
    wrong.check()
    return schedule_id, if_active, given


def _schedule_id(given: Mapping[str, Any]) -> str | None:
    found = _text(given, "scheduleId", "", 1, 64)
    if found is not None and not is_uuid(found):
        raise InvalidRequest("scheduleId", f"is not an id: {fields.shown(found)}")
    return found


def result(body: object) -> tuple[bool, str | None]:
    """What a target reports of a run: whether it succeeded, and a message."""
    wrong = Mistakes()
    given = fields.members(body, "", ("success", "message"), wrong)
    success = wrong.of(_success, given)
    message = wrong.of(_text, given, "message", "", 0, 1_000)
    wrong.check()
    return success, message


def _success(given: Mapping[str, Any]) -> bool:
    return flag(fields.required(given, "success"), "success")


def pause(body: object) -> tuple[str | None, datetime | None]:
    wrong = Mistakes()
    given = fields.members(body, "", ("note", "until"), wrong)
    note, until = wrong.of(_text, given, "note", "", 0, 1_000), wrong.of(_instant, given, "until")
    wrong.check()
    return note, until


def patched(target: Any, patch: Any) -> Any:
    """What a merge patch makes of a stored body, without members of `target` that act no longer."""
    from sweephand.facades.native import idle  # noqa: PLC0415 - as above

    return idle.without_leftovers(merged(target, patch), patch)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396: null removes a member, an object is merged, anything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


# Members


def _text(given: Mapping[str, Any], name: str, field: str, shortest: int, longest: int) -> str | None:
    return fields.free(given[name], below(field, name), shortest, longest) if name in given else None


def name_of(given: Mapping[str, Any]) -> str | None:
    return _name(given, "name", "")


def _name(given: Mapping[str, Any], name: str, field: str) -> str | None:
    return fields.name(given[name], below(field, name)) if name in given else None


def is_plain(text: str) -> bool:
    """A name that stands in paths."""
    return 1 <= len(text) <= 128 and _STRANGE.search(text) is None


def plain_name(given: Mapping[str, Any], before: str | None) -> str:
    """A name that stands in paths. before: what is changed has it already, and it never changes; None: what is new."""
    name = fields.text(given["name"], "name", 1, 128) if "name" in given else None
    if before is None:
        if name is None:
            raise InvalidRequest("name", "is required")
        check_plain(name, "name")
        return name
    if name not in {None, before}:
        raise InvalidRequest("name", "cannot be changed")
    return before


def check_plain(text: str, field: str) -> None:
    strange = _STRANGE.search(text)
    if strange:
        rule = "must have letters, digits, . _ and - only, and begin with a letter or a digit"
        raise InvalidRequest(field, f"{rule}, but it is {fields.shown(text)}", position=strange.start())


def _tags(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidRequest("tags", f"must be a list of strings, not {fields.shown(value)}")
    if len(value) > MOST_TAGS:
        raise InvalidRequest("tags", f"has {len(value)} members; the most is {MOST_TAGS}")
    wrong = Mistakes()
    tags = [wrong.of(fields.line, tag, f"tags[{n}]", 128) for n, tag in enumerate(value)]
    for n, tag in enumerate(tags):
        if tag in tags[:n]:
            wrong.add(InvalidRequest(f"tags[{n}]", f"stands twice: {fields.shown(tag)}"))
    wrong.check()
    return tuple(tags)


def _instant(given: Mapping[str, Any], name: str) -> datetime | None:
    return parse_instant(given[name], name) if name in given else None
