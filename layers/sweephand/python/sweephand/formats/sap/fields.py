"""Reads SAP's JSON into drafts of the domain.

Unknown members are ignored, because clients send back everything that they received. Source: the tables of SAP's REST
documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.base.members import fields
from sweephand.domain.instants import text
from sweephand.domain.job import (
    MASK,
    OWN_TOKEN,
    ActionDraft,
    ActionSpec,
    Activation,
    Job,
    JobDraft,
    Payload,
    ScheduleDraft,
    json_payload,
)
from sweephand.domain.schedule import PAST_GRACE
from sweephand.formats import strict_json
from sweephand.formats.actions import Actions
from sweephand.formats.sap import times
from sweephand.schedules.text.duration import read_interval

FACADE = "sap"
COLLECTION = "sap"
"""The collection in each tenant, created with the first job. Job names are unique in it, as in SAP's instance."""

METHODS = ("GET", "POST", "PUT", "DELETE")
MODES = {"cron": "sapCron", "time": "time", "repeatInterval": "every", "repeatAt": "repeatAt"}
"""Members that say when a schedule runs, each with its native member: exactly one may be given."""
_OWN_TIMING = {*MODES.values(), "align", "startTime", "endTime"}
"""Members of a stored timing that this facade can express. All others stay unchanged."""
LONGEST_NAME, LONGEST_DESCRIPTION = 255, 1_000
ENDPOINT, TASK = "HTTP_ENDPOINT", "CF_TASK"
NO_TASKS = (
    "tasks (CF_TASK) cannot be created with this API: to run a container, create a job with the native API, "
    "POST /v1/jobs, with an action of type ecs"
)
OUTCOME = {
    "successStatuses": ["2xx", "3xx"],
    "on202": "wait",
    "onNoAnswer": "wait",
    "answerTimeoutSeconds": 15,
}
"""Statuses 200 to 399 are a success. After a 202 or a missing answer, the run waits for the callback."""
POLICIES = {"onPastStart": "run_now"}
Target = ActionDraft | ActionSpec
_NAME = re.compile(r"(?![0-9]+\Z)[A-Za-z0-9_-]+", re.ASCII)
_FLAGS: Mapping[object, bool] = {"true": True, "false": False, 1: True, 0: False}


Changed = Callable[[Mapping[str, Any], Target, datetime | None], ScheduleDraft | None]
"""Applies the sent members to a schedule, with the new target and end of its job. Returns the changed schedule;
None if the members do not name a schedule of the job.
"""

# Jobs


def new_job(body: object, kinds: Actions, now: datetime, replaced: Job | None = None) -> JobDraft:
    """Returns the job of a POST or of a PUT by name. Members that are not sent take their defaults.

    replaced: the job that it replaces, whose password is kept if `user` is sent without `password`.
    """
    sent = _object(body, "")
    if sent.get("schedules") is None:
        raise InvalidRequest("schedules", "is required")
    wanted = {"active": False, "httpMethod": "POST", **sent}
    _check_kind(sent.get("jobType"))
    members = _members(wanted, now)
    action = _action(wanted, kinds, None, replaced)
    return JobDraft(
        **members,
        collection=COLLECTION,
        resource_id=_resource_id(wanted, None),
        action=action,
        policies=POLICIES,
        schedules=_schedules(wanted, action, members["end_at"], kinds, now, lambda *_: None),
        facade=FACADE,
    )


def changed_job(
    body: object, before: Job, stored: JobDraft, kinds: Actions, now: datetime, changed: Changed
) -> JobDraft:
    """Returns the job of a PUT by id. Members that are not sent stay unchanged.

    A schedule that is sent with its id is changed, so that a job can be sent back as it was read; others are new.
    stored: `before` as a draft.
    """
    usual: dict[str, Any] = {
        "name": before.name,
        "description": before.description,
        "active": before.active,
        **shown_target(before),
        "startTime": _kept(before.start_at),
        "endTime": _kept(before.end_at),
        **before.attributes,
    }
    sent = _object(body, "", nulls=True)
    if not sent:
        raise InvalidRequest(None, "at least one field of the job is required")
    wanted = {**usual, **sent}
    _check_kind(sent.get("jobType"))
    members = _members(wanted, now)
    action = stored.action if _keeps_target(sent, before) else _changed_action(wanted, kinds, before, stored)
    schedules = None
    if sent.get("schedules") is not None:
        schedules = _schedules(wanted, action, members["end_at"], kinds, now, changed)
    return replace(stored, **members, resource_id=_resource_id(wanted, before), action=action, schedules=schedules)


def _members(wanted: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Returns the members of a draft that are read in the same way for new and changed jobs."""
    start, end = _window(wanted, now)
    return {
        "name": _name(wanted.get("name")),
        "description": _description(wanted.get("description")),
        "active": flag(wanted.get("active"), "active"),
        "start_at": start,
        "end_at": end,
        "attributes": _attributes(wanted),
        "activation": Activation(),
    }


def _check_kind(value: object) -> None:
    """Raises InvalidRequest for a task, which SAP's own API cannot create either."""
    if value == TASK:
        raise InvalidRequest(None, NO_TASKS)
    if value is not None and value != ENDPOINT:
        raise InvalidRequest("jobType", f"must be {ENDPOINT}, not {fields.shown(value)}")


def _name(value: object) -> str:
    if value is None:
        raise InvalidRequest("name", "is required")
    name = fields.text(value, "name", 1, LONGEST_NAME)
    if not _NAME.fullmatch(name):
        reason = f"must consist of letters, digits, - and _, and must not be a number, not {fields.shown(name)}"
        raise InvalidRequest("name", reason)
    return name


def _resource_id(members: Mapping[str, Any], before: Job | None) -> str | None:
    """Reads resourceId, which SAP does not have. An import marks its jobs with it, to find them later."""
    value = members.get("resourceId", before.resource_id if before else None)
    return None if value is None else fields.text(value, "resourceId", 1, 256)


def _description(value: object) -> str | None:
    return None if value is None else fields.text(value, "description", 0, LONGEST_DESCRIPTION)


def user_of(job: Job) -> str | None:
    how = _proof_of(job)
    return how["username"] if how["type"] == "basic" else None


def _proof_of(job: Job) -> Mapping[str, Any]:
    """Returns the authentication of a job's action. An action set by the native API may have none."""
    proof: Mapping[str, Any] = job.action.params.get("authentication", {"type": "none"})
    return proof


def shown_target(job: Job) -> dict[str, str]:
    """Returns `action` and `httpMethod` as answers show them: empty if the job no longer makes an HTTP call."""
    params = job.action.params
    return {"action": params.get("url", ""), "httpMethod": params.get("method", "")}


def _keeps_target(members: Mapping[str, Any], before: Job) -> bool:
    """Returns whether a change leaves the call as answers show it."""
    shown = shown_target(before)
    same_user = "user" not in members or (members["user"] or None) == user_of(before)
    return (
        same_user
        and not members.get("password")
        and all(members.get(name, shown[name]) == shown[name] for name in shown)
    )


def _changed_action(wanted: Mapping[str, Any], kinds: Actions, before: Job, stored: JobDraft) -> ActionDraft:
    """Returns the stored call with another target. Replaces an action that is not a call with a new call."""
    if before.action.kind != "http":
        return _action({**wanted, "httpMethod": wanted["httpMethod"] or None}, kinds, before, before)
    rest = {**before.action.params, "retry": before.action.retry}
    return replace(_action(wanted, kinds, before, before, rest), payload=stored.action.payload)


def _action(
    sent: Mapping[str, Any],
    kinds: Actions,
    before: Job | None,
    secrets_of: Job | None,
    rest: Mapping[str, Any] | None = None,
) -> ActionDraft:
    """Returns an HTTP action. rest: the members of a stored call, of which only the target changes."""
    url = sent.get("action")
    if url is None:
        raise InvalidRequest("action", "is required")
    method = sent.get("httpMethod")
    method = fields.one_of("POST" if method is None else method, "httpMethod", METHODS)
    user = None if secrets_of is None else user_of(secrets_of)
    keeps = before is not None or (user is not None and user == sent.get("user") and not sent.get("password"))
    members = {name: value for name, value in (rest or {"outcome": OUTCOME}).items() if name != "dialect"}
    members |= {"type": "http", "url": url, "method": method}
    members["authentication"] = _authentication(sent, before, keeps_password=keeps)
    try:
        stored = secrets_of.action if secrets_of is not None and keeps else None
        draft = kinds.draft(members, field="action", stored=stored)
    except InvalidRequest as wrong:
        raise InvalidRequest(_FIELDS.get(wrong.field or "", "action"), wrong.reason, code=wrong.code) from wrong
    return replace(draft, params={**draft.params, "dialect": FACADE})


def _authentication(members: Mapping[str, Any], before: Job | None, *, keeps_password: bool) -> Mapping[str, Any]:
    """Returns Basic with the sent user, or else the stored authentication with a sent password, or else none.

    A call without authentication sends the stack's own token, if there is one (server/actions/http.py).
    """
    user, password = members.get("user"), members.get("password")
    if user not in (None, ""):
        return {"type": "basic", "username": user, "password": password or (MASK if keeps_password else None)}
    if before is not None and "user" not in members:
        stored = _proof_of(before)
        if stored["type"] == "basic":
            return {**stored, "password": password or MASK}
        if stored["type"] != OWN_TOKEN and not password:
            return stored
    if password:
        raise InvalidRequest("user", "is required with a password")
    return {"type": "none"}


_FIELDS = {
    "action.method": "httpMethod",
    "action.authentication.username": "user",
    "action.authentication.password": "password",
}


def _attributes(members: Mapping[str, Any]) -> dict[str, Any]:
    """Returns ansConfig and calmConfig as sent. Raises InvalidRequest if they are invalid."""
    attributes: dict[str, Any] = {}
    if members.get("ansConfig") is not None:
        config = _object(members["ansConfig"], "ansConfig")
        for name in config:
            if name not in {"onSuccess", "onError", "onDelay"}:
                raise InvalidRequest(None, f"'{name[:100]}' is not an allowed property for object 'ansConfig'")
            if not isinstance(config[name], bool):
                raise InvalidRequest(None, f"'{name}' in 'ansConfig' must be of type 'boolean'")
        attributes["ansConfig"] = dict(config)
    if members.get("calmConfig") is not None:
        attributes["calmConfig"] = _calm_config(members["calmConfig"])
    return attributes


def _calm_config(value: object) -> dict[str, bool]:
    """Checks calmConfig. The messages are the documented ones, and name the member."""
    if not isinstance(value, Mapping):
        raise InvalidRequest("calmConfig", "'calmConfig' must be of type 'object'")
    if not value:
        raise InvalidRequest("calmConfig", "'calmConfig' object cannot be empty")
    for name in value:
        if name != "enabled":
            raise InvalidRequest("calmConfig", f"'{name[:100]}' is not an allowed property for object 'calmConfig'")
    if "enabled" not in value:
        raise InvalidRequest("calmConfig", "'enabled' is a required property for object 'calmConfig'")
    if not isinstance(value["enabled"], bool):
        raise InvalidRequest("calmConfig", "'enabled' in 'calmConfig' must be of type 'boolean'")
    return {"enabled": value["enabled"]}


# Schedules


def _schedules(
    members: Mapping[str, Any], action: Target, end: datetime | None, kinds: Actions, now: datetime, changed: Changed
) -> tuple[ScheduleDraft, ...]:
    wanted = members["schedules"]
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise InvalidRequest(None, "Schedules must be an array")
    drafts = []
    for n, each in enumerate(wanted):
        fields.an_object(each, f"schedules[{n}]")
        try:
            drafts.append(changed(each, action, end) or new_schedule(each, action, kinds, now))
        except InvalidRequest as wrong:
            raise (wrong.within(f"schedules[{n}]") if wrong.field else wrong) from wrong
    return tuple(drafts)


def new_schedule(body: object, action: Target, kinds: Actions, now: datetime) -> ScheduleDraft:
    members = _object(body, "")
    if "active" not in members:
        raise InvalidRequest("active", "is required")
    mode = mode_of(members)
    if mode is None:
        raise InvalidRequest(None, f"one of {', '.join(MODES)} is required")
    return ScheduleDraft(
        name=None,
        timing=_timing(mode, members[mode], members, now),
        active=flag(members["active"], "active"),
        payload=_data(members.get("data"), action, kinds),
        attributes=_shown(members, mode),
        activation=Activation(),
    )


def changed_schedule(
    body: object, before: ScheduleDraft, action: Target, kinds: Actions, now: datetime, *, within_job: bool
) -> ScheduleDraft:
    """Returns the schedule of a PUT. Members that are not sent stay, and the mode cannot change. before: as stored."""
    members = _object(body, "", nulls=True)
    known = {"active", "description", "data", "startTime", "endTime", *MODES}
    if not known & members.keys():
        raise InvalidRequest(None, "at least one field of the schedule is required")
    stored = before.attributes or {}
    old = next(mode for mode in MODES if mode in stored)
    mode = mode_of({name: value for name, value in members.items() if value is not None}) or old
    if mode != old:
        raise InvalidRequest(None, f"{mode}: the schedule has {old}, and the kind of a schedule cannot be changed")
    merged = {**stored, "startTime": before.timing.get("startTime"), "endTime": before.timing.get("endTime"), **members}
    kept = {name: value for name, value in before.timing.items() if name not in _OWN_TIMING}
    timing = {**kept, **_timing(mode, merged[mode], merged, now)}
    if mode == "time" and merged[mode] == stored[mode]:
        timing[mode] = before.timing[mode]
    active = flag(members["active"], "active") if members.get("active") is not None else None
    return replace(
        before,
        timing=timing,
        active=before.active if active is None else active,
        payload=_data(members["data"], action, kinds) if "data" in members else before.payload,
        attributes=_shown(merged, mode),
        activation=Activation(active, within_job),
    )


def mode_of(members: Mapping[str, Any]) -> str | None:
    """Returns the member that says when the schedule runs, one of four. Raises InvalidRequest for several."""
    modes = [mode for mode in MODES if mode in members]
    if len(modes) > 1:
        raise InvalidRequest(None, "Extra scheduling parameters passed")
    return modes[0] if modes else None


def _timing(mode: str, value: Any, members: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    timing: dict[str, Any] = {MODES[mode]: value}
    if mode == "repeatInterval":
        timing = {"every": f"PT{read_interval(value, mode)}S", "align": "actual_start"}
    for name, instant in zip(("startTime", "endTime"), _window(members, now), strict=True):
        if instant is not None:
            timing[name] = text(instant)
    return timing


def _shown(members: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """Returns the members that answers show as they were sent."""
    shown = {mode: members[mode]}
    description = _description(members.get("description"))
    return shown | ({"description": description} if description else {})


def _data(value: object, action: Target, kinds: Actions) -> Payload | None:
    """Reads an object, or its JSON string as answers have it, so that clients can send back what they read."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = strict_json.loads(value.encode())
        except (InvalidRequest, UnicodeEncodeError) as wrong:
            raise InvalidRequest("data", "must be an object, or a string with its JSON") from wrong
    payload = json_payload(_object(value, "data", nulls=True), "data")
    kinds.check_payload(action.kind, action.params, payload, "data")
    return payload


# Members


def flag(value: object, field: str) -> bool:
    """Reads a boolean; also 1, 0, "true" and "false", which SAP's documentation uses."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str | int) and value in _FLAGS:
        return _FLAGS[value]
    raise fields.must_be(field, "true or false", value)


def _object(value: object, field: str, *, nulls: bool = False) -> dict[str, Any]:
    """Reads an object. nulls: True to keep members that are null, which remove a value."""
    if not field and not isinstance(value, Mapping):
        raise InvalidRequest(None, "the body must be a JSON object: {...}")
    value = fields.an_object(value, field)
    return {name: member for name, member in value.items() if nulls or member is not None}


def _window(members: Mapping[str, Any], now: datetime) -> tuple[datetime | None, datetime | None]:
    """Returns startTime and endTime. Refuses an endTime before startTime if either of them is in the future.

    If both are past, the job or schedule has ended. Its startTime may then be `new Date()`, by the client's clock, with
    a fixed end.
    """
    start, end = _instant(members, "startTime", now), _instant(members, "endTime", now)
    if start is not None and end is not None and end < start and max(start - PAST_GRACE, end) >= now:
        raise InvalidRequest("endTime", f"must not be before startTime, {text(start)}, but is {text(end)}")
    return start, end


def _instant(members: Mapping[str, Any], name: str, now: datetime) -> datetime | None:
    value = members.get(name)
    return None if value in (None, "") else times.read(value, name, now)


def _kept(instant: datetime | None) -> str | None:
    return None if instant is None else text(instant)
