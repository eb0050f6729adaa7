"""Turns a job from SAP's API into the request for its copy. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sweephand.base.errors import InvalidRequest
from sweephand.cli.imports.service import LENIENT
from sweephand.domain.instants import epoch_s
from sweephand.domain.job import ActionDraft
from sweephand.formats.sap import times
from sweephand.formats.sap.fields import MODES, flag, new_job, new_schedule
from sweephand.schedules import timing
from sweephand.schedules.text.duration import read_interval

AS_SHOWN = ("name", "description", "action", "httpMethod")
USUAL: Mapping[str, Any] = {
    "description": "",
    "httpMethod": "POST",
    "ansConfig": {"onSuccess": False, "onError": False},
    "calmConfig": {"enabled": False},
}


SHOWN_WHEN_REFUSED = frozenset({*MODES, "startTime", "endTime", "httpMethod"})


@dataclass(frozen=True)
class Form:
    """The request for a copy. body: of POST; `active` is the job's own. ids: of its schedules, in order.

    over, in_words: how many schedules were left out because they have ended, or because their time is only in words.
    """

    body: dict[str, Any]
    ids: tuple[str, ...] = ()
    over: int = 0
    in_words: int = 0

    @property
    def remarks(self) -> list[str]:
        lines = []
        if self.over:
            lines.append(f"left out: {self.over} ended")
        if self.in_words:
            lines.append(f"left out: {self.in_words} with a time in words and no planned run")
        return lines


def form(job: Mapping[str, Any], now: datetime, copy: Mapping[str, Any] | None = None) -> Form:
    """Returns the request for the copy. Raises InvalidRequest for members that the target would refuse.

    Leaves out schedules that have ended. Replaces a time in words with its instant, because "in 2 hours" would mean
    another instant now. copy: the existing copy, which may have an instant that is no longer planned in the source.
    """
    body = {name: job.get(name) if job.get(name) is not None else USUAL.get(name) for name in AS_SHOWN}
    for name in ("ansConfig", "calmConfig"):
        body[name] = _with_usual(job.get(name), name)
    if isinstance(body["httpMethod"], str):
        body["httpMethod"] = body["httpMethod"].upper()
    body["active"] = is_on(job)
    for name in ("startTime", "endTime"):
        body[name] = _shown(job.get(name), name, now)
    action = _checked(body, now)
    kept: list[dict[str, Any]] = []
    ids: list[str] = []
    over = in_words = 0
    originals = job.get("schedules") or ()
    instants = _instants(originals, (copy or {}).get("schedules") or (), now)
    for n, original in enumerate(originals):
        try:
            schedule = _schedule(original, now)
            if "time" in schedule and schedule["time"] is None:
                schedule = instants.get(n, {})
            if not schedule:
                in_words += 1
            elif _is_over(schedule, body, now):
                over += 1
            else:
                new_schedule(schedule, action, LENIENT, now)
                kept.append(schedule)
                ids.append(str(original.get("scheduleId")))
        except InvalidRequest as refused:
            raise InvalidRequest(
                None, f"schedules[{n}] {original.get('scheduleId')}: {_message(refused, original)}"
            ) from refused
    body["schedules"] = kept
    return Form(body, tuple(ids), over, in_words)


def is_on(job: Mapping[str, Any]) -> bool:
    """Returns True if the job or schedule is active. Raises InvalidRequest."""
    active = job.get("active")
    return active is not None and flag(active, "active")


def _with_usual(members: object, name: str) -> dict[str, Any]:
    if not isinstance(members, Mapping | None):
        raise InvalidRequest(None, f"{name} is not an object")
    return {**USUAL[name], **{member: value for member, value in (members or {}).items() if value is not None}}


def _checked(body: Mapping[str, Any], now: datetime) -> ActionDraft:
    """Returns the action of a job without its schedules. Raises InvalidRequest."""
    try:
        draft = new_job({**body, "schedules": []}, LENIENT, now)
    except InvalidRequest as refused:
        raise InvalidRequest(None, _message(refused, body)) from refused
    assert isinstance(draft.action, ActionDraft)
    return draft.action


def _message(refused: InvalidRequest, original: Mapping[str, Any]) -> str:
    """Returns the message with the member, and with its whole value if that is not secret and not in the reason."""
    if refused.field is None:
        return refused.reason
    member = {native: mode for mode, native in MODES.items()}.get(refused.field, refused.field)
    value = json.dumps(original[member])[:100] if member in SHOWN_WHEN_REFUSED and member in original else ""
    return f"{member}{'' if value in refused.reason else f' {value}'}: {refused.reason}"


def differing(wanted: Mapping[str, Any], copy: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members of a job to change, without its schedules."""
    return {name: value for name, value in wanted.items() if name != "schedules" and copy.get(name) != value}


@dataclass(frozen=True)
class Changes:
    """Changes of a copy's schedules. changed: ids with members, None for one to remove. gone: ids to delete."""

    new: Sequence[dict[str, Any]]
    changed: Sequence[tuple[str, dict[str, Any]]]
    gone: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)


def schedule_changes(wanted: Form, copy: Form) -> Changes:
    """Returns the changes. Equal schedules stay; others become a new one of the same kind, or are deleted."""
    new: list[dict[str, Any]] = list(wanted.body["schedules"])
    left: list[tuple[str, dict[str, Any]]] = []
    for schedule_id, schedule in zip(copy.ids, copy.body["schedules"], strict=True):
        if schedule in new:
            new.remove(schedule)
        else:
            left.append((schedule_id, schedule))
    changed, gone = [], []
    for schedule_id, schedule in left:
        twin = next((each for each in new if _mode(each) == _mode(schedule)), None)
        if twin is None:
            gone.append(schedule_id)
        else:
            new.remove(twin)
            members = {name: twin.get(name) for name in (*schedule, *twin) if twin.get(name) != schedule.get(name)}
            changed.append((schedule_id, members))
    return Changes(new, changed, gone)


def _mode(schedule: Mapping[str, Any]) -> str:
    return next(name for name in MODES if name in schedule)


def _shown(value: object, name: str, now: datetime) -> str | None:
    return None if value in (None, "") else times.shown(times.read(value, name, now))


def _schedule(original: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Returns the schedule in the form of a request. Raises InvalidRequest.

    Its `time` is None if the instant of its words is unknown.
    """
    mode = next((name for name in MODES if original.get(name) not in (None, "")), None)
    if mode is None:
        raise InvalidRequest(None, f"has none of {', '.join(MODES)}")
    value = original[mode]
    if mode == "time":
        try:
            value = _shown(original.get("nextRunAt") or value, "time", now)
        except InvalidRequest:
            value = None
    schedule = {
        "active": is_on(original),
        "description": original.get("description") or "",
        "data": _data(original.get("data")),
    }
    ends = {name: _shown(original.get(name), name, now) for name in ("startTime", "endTime")}
    return {mode: value, **{name: value for name, value in {**schedule, **ends}.items() if value is not None}}


def _instants(originals: Sequence[Any], copies: Sequence[Any], now: datetime) -> dict[int, dict[str, Any]]:
    """Returns requests with the copy's instant for schedules with a time in words and no planned run.

    A copy whose original still has an instant belongs to that original only. If originals that differ only in their
    words outnumber the remaining copies, it is unknown whose instant a copy has, and none of them gets one.
    """
    left = [copy for each in copies if each.get("time") and (copy := _readable(each, now)).get("time")]
    waiting: list[tuple[int, dict[str, Any]]] = []
    for n, original in enumerate(originals):
        schedule = _readable(original, now)
        if "time" in schedule and schedule["time"] is None:
            waiting.append((n, schedule))
        elif "time" in schedule:
            twin = next((copy for copy in left if _alike(copy, schedule, but=("active",))), None)
            if twin is not None:
                left.remove(twin)
    readable = {}
    for n, schedule in waiting:
        alike = [each for _, each in waiting if _alike(each, schedule)]
        of_these = [copy for copy in left if _alike(copy, schedule)]
        if len(alike) <= len(of_these):
            nth = sum(1 for m, each in waiting if m < n and _alike(each, schedule))
            readable[n] = {**schedule, "time": of_these[nth]["time"]}
    return readable


def _readable(original: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Returns the request for a schedule; an empty one if it is refused, which the copying will report."""
    try:
        return _schedule(original, now)
    except InvalidRequest:
        return {}


def _alike(one: Mapping[str, Any], other: Mapping[str, Any], *, but: Sequence[str] = ("active", "time")) -> bool:
    return all(one.get(name) == other.get(name) for name in {*one, *other} - {*but})


def _data(value: Any) -> Any:
    if not value:
        return None
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as wrong:
        raise InvalidRequest("data", "is not valid JSON") from wrong


def _is_over(schedule: Mapping[str, Any], job: Mapping[str, Any], now: datetime) -> bool:
    """Returns True if the schedule has no future occurrence."""
    mode = _mode(schedule)
    members: dict[str, Any] = {MODES[mode]: schedule[mode]}
    if mode == "repeatInterval":
        members = {"every": f"PT{read_interval(schedule[mode], mode)}S", "align": "actual_start"}
    members |= {name: _zoned(schedule[name]) for name in ("startTime", "endTime") if name in schedule}
    if mode == "time":
        members["time"] = _zoned(schedule[mode])
    limits: Sequence[datetime | None] = [
        times.read(job[name], name, now) if job[name] is not None else None for name in ("startTime", "endTime")
    ]
    try:
        read = timing.parse(members, now=now, job_start=limits[0], job_end=limits[1], may_be_empty=True)
    except InvalidRequest as refused:
        if refused.code != "NEVER_FIRES":
            raise
        return True
    return read.rule.after(epoch_s(now)) is None


def _zoned(shown: str) -> str:
    """Returns SAP's form of an instant, which is in UTC, as ISO 8601."""
    return shown.replace(" ", "T") + "Z"
