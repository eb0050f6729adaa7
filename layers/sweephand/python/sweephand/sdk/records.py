"""Root's types: intervals, records and results, under Root's names in snake case. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Generic, TypeVar

from sweephand.base.errors import SweephandError
from sweephand.sdk.errors import InvalidArgument
from sweephand.sdk.model import instant
from sweephand.sdk.models import Job, ListedJob

T = TypeVar("T")

SCHEDULE = "root"
"""The name of the only schedule of a job that is made here."""


class JobInterval(IntEnum):
    """How often a job runs, by Root's numbers. Root's 0 (unspecified) is refused."""

    ONE_TIME = 1
    DAILY = 2
    WEEKLY = 3
    MONTHLY = 4
    YEARLY = 5


STEPS = {JobInterval.DAILY: "P1D", JobInterval.WEEKLY: "P7D", JobInterval.MONTHLY: "P1M", JobInterval.YEARLY: "P1Y"}
BY_MONTHS = frozenset({JobInterval.MONTHLY, JobInterval.YEARLY})


@dataclass(frozen=True)
class JobRecord:
    """A job. start: the first instant; end: the last possible one. Both are aware, in UTC."""

    job_schedule_id: str
    resource_id: str
    start: datetime
    job_interval: JobInterval
    tag: str | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class JobData:
    """An event of a job.

    id: of the occurrence, the same however often the event is delivered. job_time: the planned instant. missed_count,
    missed_from: how many missed occurrences the event stands for, and the first of them.
    """

    id: str
    job_schedule_id: str
    resource_id: str | None
    job_time: datetime
    tag: str | None = None
    payload: Any = None
    missed_count: int = 1
    missed_from: datetime | None = None


@dataclass(frozen=True)
class Dropped:
    """Missed occurrences of a job that will not be delivered: how many, and the first and last planned instant."""

    id: str
    job_schedule_id: str
    resource_id: str | None
    count: int
    first: datetime
    last: datetime
    tag: str | None = None


DROPPED, MISSED = "job.missed.dropped", ".missed"
"""The type of the events about dropped occurrences, and the end of the types of missed ones."""


@dataclass(frozen=True)
class Result(Generic[T]):
    """The outcome of a call that does not raise: a value, or the error."""

    value: T | None = None
    error: SweephandError | None = None

    @property
    def ok(self) -> bool:
        return self.error is None


def data_of(detail: Mapping[str, Any]) -> JobData:
    """Returns the data of an event `job` or `job.missed`. detail: the event's `detail` on the bus."""
    missed = detail.get("missed")
    return JobData(
        detail["id"],
        detail["jobScheduleId"],
        detail["resourceId"],
        _utc(detail["jobTime"]),
        detail["tag"],
        detail["payload"],
        1 if missed is None else missed["count"],
        None if missed is None else _utc(missed["from"]),
    )


def dropped_of(detail: Mapping[str, Any]) -> Dropped:
    """Returns the data of an event `job.missed.dropped`."""
    first, last = _utc(detail["from"]), _utc(detail["until"])
    place = detail["id"], detail["jobScheduleId"], detail["resourceId"]
    return Dropped(*place, detail["count"], first, last, detail["tag"])


def members_of(
    resource_id: str, tag: str | None, start: datetime, end: datetime | None, job_interval: JobInterval | int
) -> dict[str, Any]:
    """Returns the members of the API. Raises InvalidArgument, for example for an instant without a zone.

    In a month without the day of `start`, the job runs on the last day; later months return to the day of `start`.
    """
    try:
        interval = JobInterval(job_interval)
    except ValueError:
        reason = f"must be 1 to 5, one of JobInterval, not {job_interval!r}"
        raise InvalidArgument("job_interval", reason) from None
    _check_instant("start", start)
    if end is not None:
        _check_instant("end", end)
    timing: dict[str, Any] = {"name": SCHEDULE}
    if interval is JobInterval.ONE_TIME:
        timing["at"] = start
    else:
        timing |= {"every": STEPS[interval], "startTime": start}
        timing |= {"monthOverflow": "clamp"} if interval in BY_MONTHS else {}
    timing |= {"endTime": end} if end is not None else {}
    return {"resource_id": resource_of(resource_id), "tags": [] if tag is None else [tag_of(tag)], "schedules": timing}


def _check_instant(name: str, value: Any) -> None:
    if not isinstance(value, datetime):
        raise InvalidArgument(name, f"must be a datetime, not {value!r}")
    if value.tzinfo is None:
        raise InvalidArgument(name, f"must have a time zone, not {value!r}")


def resource_of(value: Any) -> str:
    """Returns a resource id, which must be a string that is not empty: an empty filter would match all jobs.

    Raises InvalidArgument.
    """
    if not isinstance(value, str) or not value:
        raise InvalidArgument("resource_id", f"must be a string that is not empty, not {value!r}")
    return value


def tag_of(value: Any) -> str:
    """Returns a tag; None becomes the filter for jobs without one. Raises InvalidArgument for an empty string."""
    if value is None:
        return ""
    if not isinstance(value, str) or not value:
        raise InvalidArgument("tag", f"must be a string that is not empty, or None, not {value!r}")
    return value


def record_of(job: Job | ListedJob) -> JobRecord | None:
    """Returns the record of a job; None for a job that was not created from a record."""
    named = [each for each in job.schedules or () if each.name == SCHEDULE]
    if len(named) != 1 or job.resource_id is None:
        return None
    facts = named[0].to_json()
    interval = _interval(facts)
    start = facts.get("at") or facts.get("startTime")
    if interval is None or start is None:
        return None
    end = facts.get("endTime")
    tag = next(iter(job.tags), None)
    return JobRecord(job.id, job.resource_id, _utc(start), interval, tag, None if end is None else _utc(end))


def _interval(facts: Mapping[str, Any]) -> JobInterval | None:
    if facts.get("at") is not None:
        return JobInterval.ONE_TIME
    return next((interval for interval, step in STEPS.items() if facts.get("every") == step), None)


def _utc(text: str) -> datetime:
    return instant(text).astimezone(UTC)
