"""Native JSON to what the flow understands: every member is checked, every refusal names its field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sweephand import actions
from sweephand.actions.payloads import json_payload
from sweephand.domain import fields
from sweephand.domain.fields import below, flag
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
from sweephand.domain.lateness import Misfire
from sweephand.errors import InvalidRequest
from sweephand.facades.native import defaults
from sweephand.facades.native.defaults import Filling
from sweephand.ids import is_uuid
from sweephand.schedules.instants import parse_instant
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
    "nextRunAt",
    "totals",
)
SCHEDULE_MEMBERS = ("id", "name", "active", "payload", "hooks", "policies", *sorted(TIMING_MEMBERS))
READ_ONLY_OF_SCHEDULE = (
    *("jobId", "state", "stateReason", "type", "summary", "nextRunAt", "nextRuns", "lastRun", "totals"),
    *("createdAt", "modifiedAt"),
)
MOST_TAGS = 10
_STRANGE = re.compile(r"^[._-]|[^A-Za-z0-9._-]", re.ASCII)
_COMMANDING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
"""Control characters, line ends, and those that turn the direction of a line."""
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
    given = fields.members(body, "", known)
    if before is not None and given.get("id", before.id) != before.id:
        raise InvalidRequest("id", "cannot be changed")
    shown_by = Filling(before.policies if before else {}, waits_s)
    action = _action(_required(given, "action"), "action", guard, shown_by, before.action if before else None)
    error_action = None
    if "errorAction" in given:
        stored = before.error_action if before else None
        error_action = _action(given["errorAction"], "errorAction", guard, shown_by, stored)
    start, end = _instant(given, "startTime"), _instant(given, "endTime")
    if start is not None and end is not None and end < start:
        raise InvalidRequest("endTime", "is before startTime")
    return JobDraft(
        name=_name(given, "name", ""),
        description=_text(given, "description", "", 0, 1_000),
        collection=_text(given, "collection", "", 1, 128) or DEFAULT_COLLECTION,
        active=flag(given.get("active", True), "active"),
        start_at=start,
        end_at=end,
        resource_id=_line(given["resourceId"], "resourceId", 256) if "resourceId" in given else None,
        tags=_tags(given.get("tags", [])),
        action=action,
        error_action=error_action,
        hooks=_hooks(given.get("hooks", {}), "hooks", guard, shown_by, before.hooks if before else {}),
        policies=defaults.without_default_policies(policies(given.get("policies", {}), "policies", of_job=True)),
        schedules=_schedules(given, action, guard, before, there),
    )


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
    given = fields.members(value, field, tuple(HOOK_KINDS))
    return {name: _action(hook, below(field, name), guard, shown_by, stored.get(name)) for name, hook in given.items()}


def _schedules(
    given: Mapping[str, Any], action: ActionDraft, guard: GuardSettings, before: Job | None, there: There | None
) -> tuple[ScheduleDraft, ...] | None:
    if "schedules" not in given:
        return None if before else ()
    wanted = given["schedules"]
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise InvalidRequest("schedules", "must be a list")
    if len(wanted) > 1_000:
        raise InvalidRequest("schedules", "has more than 1,000 members")
    return tuple(
        schedule_draft(each, f"schedules[{n}]", action, guard, change=before is not None, there=there)
        for n, each in enumerate(wanted)
    )


def schedule_draft(
    body: object,
    field: str,
    action: ActionDraft | ActionSpec,
    guard: GuardSettings,
    *,
    change: bool,
    there: There | None = None,
) -> ScheduleDraft:
    """action: the job's, which the schedule's payload must suit. there: what is changed, whose secrets may be kept."""
    known = SCHEDULE_MEMBERS + (READ_ONLY_OF_SCHEDULE if change else ())
    given = fields.members(body, field, known)
    if "id" in given and not change:
        raise InvalidRequest(below(field, "id"), "is not a member here", code="UNKNOWN_MEMBER")
    timing = {name: given[name] for name in given if name in TIMING_MEMBERS}
    if "calendars" in timing:
        from sweephand.schedules import uses  # noqa: PLC0415 - few schedules name any

        try:
            timing["calendars"] = uses.shown(timing["calendars"])
        except InvalidRequest as wrong:
            raise (wrong.within(field) if field else wrong) from wrong
    payload = _payload(given, field)
    actions.check_payload(action.kind, action.params, payload, below(field, "payload"))
    return ScheduleDraft(
        id=_text(given, "id", field, 1, 64),
        name=_name(given, "name", field),
        active=flag(given.get("active", True), below(field, "active")),
        timing=defaults.without_defaults(timing, defaults.timing_defaults(timing)),
        payload=payload,
        policies=policies(given.get("policies", {}), below(field, "policies")),
        hooks=_hooks(given.get("hooks", {}), below(field, "hooks"), guard, *_shown(given, there)),
    )


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
    given = fields.members(value, field, tuple(defaults.POLICIES))
    checked: dict[str, Any] = {}
    misfire = _misfire(given["misfire"], below(field, "misfire")) if "misfire" in given else {}
    if misfire:
        checked["misfire"] = misfire
    choices = {
        "overlap": ("allow", "skip", "queue_one", "replace"),
        "onPastStart": ("refuse", "run_now"),
        "onCreate": ("schedule", "run_now"),
        "onNothingLeft": ("refuse", "complete"),
        "onUnreachable": ("deactivate", "continue"),
        "onNoResult": ("end", "retry"),
        "delivery": ("at_least_once", "at_most_once"),
        "keepAnswer": ("failures", "all", "none"),
    }
    for name, values in choices.items():
        if name in given:
            checked[name] = fields.one_of(given[name], below(field, name), values)
    if "hooks" in given:
        checked["hooks"] = _chosen_hooks(given["hooks"], below(field, "hooks"))
    if "callbackToken" in given:
        checked["callbackToken"] = flag(given["callbackToken"], below(field, "callbackToken"))
    if "flowKey" in given:
        if not of_job:
            raise InvalidRequest(below(field, "flowKey"), "belongs to a job as a whole, or to its collection")
        checked["flowKey"] = fields.text(given["flowKey"], below(field, "flowKey"), 1, 128)
    return checked


def _chosen_hooks(value: object, field: str) -> list[str]:
    """In their own order: which of them is said first means nothing."""
    if not isinstance(value, list):
        raise InvalidRequest(field, "must be a list")
    for n, each in enumerate(value):
        fields.one_of(each, f"{field}[{n}]", tuple(HOOK_KINDS))
    return [name for name in HOOK_KINDS if name in value]


def _misfire(value: object, field: str) -> dict[str, Any]:
    given = fields.members(value, field, ("type", "ratePerMinute", "maxLatenessSeconds"))
    checked: dict[str, Any] = {"type": fields.one_of(given.get("type", "sap"), below(field, "type"), MISFIRES)}
    if "ratePerMinute" in given:
        checked["ratePerMinute"] = fields.whole(given["ratePerMinute"], below(field, "ratePerMinute"), 1, 6_000)
    if "maxLatenessSeconds" in given:
        where = below(field, "maxLatenessSeconds")
        checked["maxLatenessSeconds"] = fields.whole(
            given["maxLatenessSeconds"], where, LEAST_LATENESS_S, MOST_LATENESS_S
        )
    return checked


IF_ACTIVE = ("start", "drop")


def run(body: object) -> tuple[str | None, str, Mapping[str, Any]]:
    """Returns the schedule that a manual run belongs to, what to do if another run is active, and all members."""
    given = fields.members(body, "", ("scheduleId", "ifActive", "payload", "body", "headers"))
    schedule_id = _text(given, "scheduleId", "", 1, 64)
    if schedule_id is not None and not is_uuid(schedule_id):
        raise InvalidRequest("scheduleId", "is not an id")
    return schedule_id, fields.one_of(given.get("ifActive", "start"), "ifActive", IF_ACTIVE), given


def pause(body: object) -> tuple[str | None, datetime | None]:
    given = fields.members(body, "", ("note", "until"))
    return _text(given, "note", "", 0, 1_000), _instant(given, "until")


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


def _required(given: Mapping[str, Any], name: str) -> Any:
    if name not in given:
        raise InvalidRequest(name, "is required")
    return given[name]


def _text(given: Mapping[str, Any], name: str, field: str, shortest: int, longest: int) -> str | None:
    return fields.text(given[name], below(field, name), shortest, longest) if name in given else None


def _line(value: object, field: str, longest: int) -> str:
    """A text of one line, as lists and queries show it: at least one character, none that commands the screen."""
    text = fields.text(value, field, 1, longest)
    strange = _COMMANDING.search(text)
    if strange:
        code = f"U+{ord(strange[0]):04X}"
        raise InvalidRequest(field, f"holds the control character {code}", position=strange.start())
    return text


def name_of(given: Mapping[str, Any]) -> str | None:
    return _name(given, "name", "")


def _name(given: Mapping[str, Any], name: str, field: str) -> str | None:
    """No blank at either end: two names must not look the same."""
    if name not in given:
        return None
    text = _line(given[name], below(field, name), 128)
    if text != text.strip():
        raise InvalidRequest(below(field, name), "begins or ends with a blank")
    return text


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
        raise InvalidRequest(
            field,
            "must have letters, digits, . _ and - only, and begin with one of the first two",
            position=strange.start(),
        )


def _tags(value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidRequest("tags", "must be a list")
    if len(value) > MOST_TAGS:
        raise InvalidRequest("tags", f"has more than {MOST_TAGS} members")
    tags = [_line(tag, f"tags[{n}]", 128) for n, tag in enumerate(value)]
    for n, tag in enumerate(tags):
        if tag in tags[:n]:
            raise InvalidRequest(f"tags[{n}]", "stands twice")
    return tuple(tags)


def _instant(given: Mapping[str, Any], name: str) -> datetime | None:
    return parse_instant(given[name], name) if name in given else None
