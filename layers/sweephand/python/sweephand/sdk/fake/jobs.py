"""Jobs of the stack in memory: their members, as the API shows them, and the occurrences of their schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sweephand import actions
from sweephand.domain.instants import text, text_ms, up_to_second
from sweephand.domain.job import HOOK_KINDS
from sweephand.domain.jobs import policies
from sweephand.domain.members import fields
from sweephand.domain.schedule import PAST_GRACE
from sweephand.errors import InvalidRequest, Mistakes
from sweephand.schedules.text.instants import parse_instant
from sweephand.schedules.timing import TIMING_MEMBERS, Timing, parse
from sweephand.security import guard

OF_SCHEDULE = frozenset({"id", "name", "active", "payload", "hooks", "policies", *TIMING_MEMBERS})
OF_JOB: Mapping[str, Any] = {
    "name": None,
    "description": None,
    "collection": "default",
    "active": True,
    "resourceId": None,
    "tags": [],
    "startTime": None,
    "endTime": None,
    "action": None,
    "errorAction": None,
    "hooks": {},
    "policies": {},
}
"""The members of a job without its schedules, with their defaults."""
SHOWN_ALONE = frozenset(
    {"id", "facade", "revision", "createdAt", "modifiedAt", "state", "stateReason", "pause", "held"}
)
SHOWN_ALONE |= {"nextRunAt", "totals"}
"""Members that only answers have. In a request they are ignored, as in the service."""
SHOWN_OF_SCHEDULE = frozenset({"jobId", "state", "stateReason", "held", "type", "summary", "nextRuns", "lastRun"})
SHOWN_OF_SCHEDULE |= {"nextRunAt", "totals", "createdAt", "modifiedAt"}
NewId = Callable[[], str]


@dataclass
class FakeSchedule:
    """A schedule. given: its members. next_at: its next occurrence. left: how many remain; None: no limit."""

    id: str
    given: dict[str, Any]
    timing: Timing
    next_at: datetime | None
    left: int | None

    def pass_on(self) -> None:
        """Moves to the next occurrence."""
        assert self.next_at is not None
        self.left = None if self.left is None else self.left - 1
        self.next_at = None if self.left == 0 else self._after(self.next_at)

    def skip_to(self, now: datetime) -> None:
        """Leaves out all occurrences up to an instant."""
        while self.next_at is not None and self.next_at <= now:
            self.pass_on()

    def _after(self, instant: datetime) -> datetime | None:
        interval_s = self.timing.actual_start_interval_s
        if interval_s is None:
            return self.timing.rule.next_after(instant)
        upcoming = instant + timedelta(seconds=interval_s)
        return upcoming if upcoming <= self.timing.ends_at else None

    def body(self, job_id: str) -> dict[str, Any]:
        """Returns the schedule as the API shows it."""
        active = self.given.get("active", True)
        return {
            **self.given,
            "id": self.id,
            "jobId": job_id,
            "active": active,
            "state": "INACTIVE" if not active else "ACTIVE" if self.next_at else "COMPLETED",
            "type": "recurring" if self.timing.recurring else "one-time",
            "summary": self.timing.summary,
            "nextRunAt": None if self.next_at is None else text(self.next_at),
        }


@dataclass
class FakeJob:
    """A job. given: its members, without schedules."""

    id: str
    given: dict[str, Any]
    created_at: datetime
    modified_at: datetime
    schedules: list[FakeSchedule] = field(default_factory=list)
    revision: int = 1
    pause: dict[str, Any] | None = None

    @property
    def runs(self) -> bool:
        return bool(self.given["active"]) and self.pause is None

    @property
    def next_at(self) -> datetime | None:
        """The next occurrence of any schedule; None while the job does not run."""
        upcoming = [each.next_at for each in self.live() if each.next_at is not None]
        return min(upcoming, default=None) if self.runs else None

    def live(self) -> Iterable[FakeSchedule]:
        return (each for each in self.schedules if each.given.get("active", True))

    @property
    def state(self) -> str:
        if not self.given["active"]:
            return "INACTIVE"
        if self.pause is not None:
            return "PAUSED"
        over = bool(self.schedules) and all(each.next_at is None for each in self.schedules)
        return "COMPLETED" if over else "ACTIVE"

    def body(self) -> dict[str, Any]:
        """Returns the job as the API shows it, without totals."""
        return {
            "id": self.id,
            **self.given,
            "facade": "native",
            "revision": self.revision,
            "createdAt": text_ms(self.created_at),
            "modifiedAt": text_ms(self.modified_at),
            "state": self.state,
            "stateReason": None,
            "pause": self.pause,
            "held": None,
            "nextRunAt": None if self.next_at is None else text(self.next_at),
            "schedules": [each.body(self.id) for each in self.schedules],
        }


def members_of(body: Any, job_id: str) -> tuple[dict[str, Any], list[Any] | None]:
    """Returns the job's members with their defaults, and its schedules, from a body. Raises InvalidRequest."""
    known = (*OF_JOB, "schedules", *SHOWN_ALONE)
    wrong = Mistakes()
    given = fields.members(body, "", known, wrong)
    wrong.of(fields.required, given, "action")
    for name, read in READERS.items():
        if name in given:
            wrong.of(read, given[name], name)
    schedules = given.pop("schedules", None)
    if schedules is not None and not isinstance(schedules, list):
        wrong.add(InvalidRequest("schedules", f"must be a list, not {fields.shown(schedules)}"))
    wrong.check()
    job = {name: given.get(name, usual) for name, usual in OF_JOB.items()}
    return {**job, "name": job["name"] or job_id}, schedules


def _check_action(value: Any, field: str) -> None:
    """Raises InvalidRequest for an action that the service refuses. Kinds whose modules are not installed pass."""
    with suppress(ModuleNotFoundError):
        actions.draft(value, field=field, guard=guard.GuardSettings())


def _check_hooks(value: Any, field: str) -> None:
    wrong = Mistakes()
    for name, hook in fields.members(value, field, HOOK_KINDS, wrong).items():
        wrong.of(_check_action, hook, fields.below(field, name))
    wrong.check()


READERS: Mapping[str, Callable[[Any, str], Any]] = {
    "name": fields.name,
    "description": lambda value, field: fields.free(value, field, 0, 1_000),
    "collection": fields.name,
    "active": fields.flag,
    "resourceId": lambda value, field: fields.line(value, field, 256),
    "tags": fields.tags,
    "action": _check_action,
    "errorAction": _check_action,
    "hooks": _check_hooks,
    "policies": lambda value, field: policies.read(value, field, of_job=True),
}
"""The service's checks of members."""


def schedules_of(given: list[Any], job: FakeJob, now: datetime, new_id: NewId) -> list[FakeSchedule]:
    """Returns the schedules of a body. Unchanged ones keep their next occurrence. Raises InvalidRequest."""
    made = []
    for number, body in enumerate(given):
        path = f"schedules[{number}]"
        try:
            members = fields.members(body, "", OF_SCHEDULE | SHOWN_OF_SCHEDULE)
            members = {name: value for name, value in members.items() if name in OF_SCHEDULE}
            if "policies" in members:
                policies.read(members["policies"], "policies")
            made.append(_schedule(members, job, now, new_id))
        except InvalidRequest as wrong:
            raise wrong.within(path) from wrong
    return made


def _schedule(members: dict[str, Any], job: FakeJob, now: datetime, new_id: NewId) -> FakeSchedule:
    there = next((each for each in job.schedules if _same(each, members)), None)
    schedule_id = there.id if there is not None else new_id()
    members["name"] = members.get("name") or (there.given["name"] if there is not None else schedule_id)
    members.pop("id", None)
    if there is not None and _timing_of(members) == _timing_of(there.given):
        return FakeSchedule(schedule_id, members, there.timing, there.next_at, there.left)
    timing = timing_of(members, job.given, now, schedule_id)
    first = _first(timing, {**job.given["policies"], **members.get("policies", {})}, now)
    return FakeSchedule(schedule_id, members, timing, first, timing.count)


def _same(there: FakeSchedule, members: Mapping[str, Any]) -> bool:
    named = members.get("name")
    return members["id"] == there.id if "id" in members else named is not None and named == there.given["name"]


def _timing_of(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name in TIMING_MEMBERS}


def timing_of(members: Mapping[str, Any], job: Mapping[str, Any], now: datetime, salt: str = "") -> Timing:
    """Returns a timing. Raises InvalidRequest, including for calendars, whose days only the service has."""
    if members.get("calendars"):
        raise InvalidRequest("calendars", "are not available in FakeSweephand: use the local stack for this test")
    start, end = (
        None if job.get(name) is None else parse_instant(job[name], name) for name in ("startTime", "endTime")
    )
    return parse(_timing_of(members), now=now, job_start=start, job_end=end, salt=salt)


def _first(timing: Timing, policies: Mapping[str, Any], now: datetime) -> datetime | None:
    """Returns the first occurrence of a new timing."""
    at = timing.once_at
    if at is None:
        at_once = policies.get("onCreate") == "run_now"
        return up_to_second(now) if at_once else timing.rule.next_after(now)
    if at >= now - PAST_GRACE:
        return timing.rule.last_until(timing.ends_at)
    if policies.get("onPastStart") == "run_now":
        return up_to_second(now)
    raise InvalidRequest(timing.notation, f"{text(at)} is more than 60 seconds in the past: it is {text(now)} now")
