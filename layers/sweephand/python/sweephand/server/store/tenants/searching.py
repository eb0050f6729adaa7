"""The members of a job with an integer id that a search reads, packed into its row in the directory.

The job's own transaction writes them, so they always agree with the job. Long descriptions are left out, so that the
rows of lists stay short. A search then reads the job itself. Source: decision 0038.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from sweephand.domain.instants import epoch_s
from sweephand.domain.job import Job
from sweephand.domain.schedule import Schedule

MOST_BYTES = 600
"""The most bytes of these members, so that a directory row stays below 1 KB, one write unit. Most have 150."""


class SearchedSchedule(NamedTuple):
    """A schedule of a job. active: the owner's switch; it may be over. start, end: as in its timing."""

    description: str
    active: bool
    start: str | None
    end: str | None


class Searched(NamedTuple):
    """The searched members of a job. start_s, end_s: epoch seconds. schedules: by creation."""

    description: str
    start_s: int | None
    end_s: int | None
    schedules: list[SearchedSchedule]


def pack(job: Job, schedules: Sequence[Schedule]) -> str | None:
    """Packs the searched members; None if they are too long."""
    start, end = (None if at is None else epoch_s(at) for at in (job.start_at, job.end_at))
    by_creation = sorted(schedules, key=lambda schedule: schedule.id)
    packed = [job.description or "", start, end, [_of(schedule) for schedule in by_creation]]
    text = json.dumps(packed, separators=(",", ":"), ensure_ascii=False)
    return text if len(text.encode()) <= MOST_BYTES else None


def _of(schedule: Schedule) -> list[object]:
    timing = schedule.timing
    description = schedule.attributes.get("description", "")
    return [description, int(schedule.active), timing.get("startTime"), timing.get("endTime")]


def unpack(text: str) -> Searched:
    description, start, end, schedules = json.loads(text)
    return Searched(
        description, start, end, [SearchedSchedule(each[0], bool(each[1]), *each[2:]) for each in schedules]
    )
