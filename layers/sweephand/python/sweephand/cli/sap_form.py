"""A job as SAP's API shows it, in the form in which a copy of it is asked for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sweephand.domain.instants import epoch_s
from sweephand.errors import InvalidRequest
from sweephand.facades.sap import times
from sweephand.facades.sap.fields import MODES
from sweephand.schedules import timing
from sweephand.schedules.duration import read_interval

AS_SHOWN = ("name", "description", "action", "httpMethod")
USUAL: Mapping[str, Any] = {
    "description": "",
    "httpMethod": "POST",
    "ansConfig": {"onSuccess": False, "onError": False},
    "calmConfig": {"enabled": False},
}


@dataclass(frozen=True)
class Form:
    """body: of POST; `active` is the job's own. over, in_words: how many schedules it leaves out, by why."""

    body: dict[str, Any]
    over: int = 0
    in_words: int = 0

    @property
    def remarks(self) -> list[str]:
        found = []
        if self.over:
            found.append(f"left out: {self.over} over")
        if self.in_words:
            found.append(f"left out: {self.in_words} with a time in words and no run planned")
        return found


def form(job: Mapping[str, Any], now: datetime, there: Mapping[str, Any] | None = None) -> Form:
    """What is over is left out, and a single instant is told as an instant, whatever its words were: "in 2 hours"
    would be other hours here. there: the copy; it may know an instant that was planned once, and is not any more.
    Raises InvalidRequest for what the target would not take.
    """
    instants = [each for each in (there or {}).get("schedules") or () if each.get("time")]
    body = {name: job.get(name) if job.get(name) is not None else USUAL.get(name) for name in AS_SHOWN}
    for name in ("ansConfig", "calmConfig"):
        body[name] = {**USUAL[name], **(job.get(name) or {})}
    body["active"] = bool(job.get("active"))
    for name in ("startTime", "endTime"):
        body[name] = _shown(job.get(name), name, now)
    kept, over, in_words = [], 0, 0
    for given in job.get("schedules") or ():
        schedule = _schedule(given, now, instants)
        if schedule is None:
            in_words += 1
        elif _is_over(schedule, body, now):
            over += 1
        else:
            kept.append(schedule)
    body["schedules"] = kept
    return Form(body, over, in_words)


def differing(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, Any]:
    """The members to change, so that schedules that are the same keep their rhythm."""
    return {name: value for name, value in wanted.items() if there.get(name) != value}


def _shown(value: object, name: str, now: datetime) -> str | None:
    return None if value in (None, "") else times.shown(times.read(value, name, now))


def _schedule(given: Mapping[str, Any], now: datetime, instants: list[Any]) -> dict[str, Any] | None:
    """None where nobody knows any more which instant is meant. instants: single ones of the copy; used up."""
    mode = next((name for name in MODES if given.get(name) not in (None, "")), None)
    if mode is None:
        raise InvalidRequest(None, f"schedule {given.get('scheduleId')} has none of {', '.join(MODES)}")
    value = given[mode]
    if mode == "time":
        try:
            value = _shown(given.get("nextRunAt") or value, "time", now)
        except InvalidRequest:
            value = None
    schedule = {
        mode: value,
        "active": bool(given.get("active")),
        "description": given.get("description") or "",
        "data": _data(given.get("data")),
    }
    ends = {name: _shown(given.get(name), name, now) for name in ("startTime", "endTime")}
    schedule = {name: value for name, value in {**schedule, **ends}.items() if value is not None}
    return schedule if mode in schedule else _with_instant(schedule, instants, now)


def _with_instant(schedule: Mapping[str, Any], instants: list[Any], now: datetime) -> dict[str, Any] | None:
    """A time in words with no run planned, whose copy was made while there was one."""
    for n, each in enumerate(instants):
        copy = _schedule(each, now, [])
        if copy is not None and {**copy, "time": None, "active": None} == {**schedule, "time": None, "active": None}:
            del instants[n]
            return {**schedule, "time": copy["time"]}
    return None


def _data(given: Any) -> Any:
    if not given:
        return None
    try:
        return json.loads(given) if isinstance(given, str) else given
    except ValueError as wrong:
        raise InvalidRequest("data", "is no JSON") from wrong


def _is_over(schedule: Mapping[str, Any], job: Mapping[str, Any], now: datetime) -> bool:
    """Does nothing of it lie ahead?"""
    mode = next(name for name in MODES if name in schedule)
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
        read = timing.parse(members, now=now, job_start=limits[0], job_end=limits[1])
    except InvalidRequest as refused:
        if refused.code != "NEVER_FIRES":
            raise
        return True
    return read.rule.after(epoch_s(now)) is None


def _zoned(shown: str) -> str:
    """As SAP shows it, which is UTC, in ISO's form."""
    return shown.replace(" ", "T") + "Z"
