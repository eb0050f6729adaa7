"""Jobs, schedules, runs and pointers for tests: one of each, changed by keyword."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sweephand.base.ids import run_uuid
from sweephand.domain.instants import epoch_ms
from sweephand.domain.job import ActionSpec, Job
from sweephand.domain.message import Pointer
from sweephand.domain.run import Kind, Run, State
from sweephand.domain.schedule import Lane, Schedule
from sweephand.schedules.timing import parse

NOW = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3_600, 86_400))
PACKED = parse({"every": "PT1M", "align": "clock"}, now=NOW - DAY).packed
TENANT, JOB_ID, SCHEDULE_ID = "acme", "job-1", "schedule-1"


def job(**members: Any) -> Job:
    one = Job(
        tenant=TENANT,
        id=JOB_ID,
        collection="default",
        name="nightly",
        action=ActionSpec("http", {}, {"type": "none"}),
        created_at=NOW - DAY,
        modified_at=NOW - DAY,
    )
    return replace(one, **members)


def schedule(**members: Any) -> Schedule:
    one = Schedule(
        tenant=TENANT,
        job_id=JOB_ID,
        id=SCHEDULE_ID,
        name="beat",
        timing={"every": "PT1M"},
        packed=PACKED,
        lane=Lane.FAST,
        created_at=NOW - DAY,
        modified_at=NOW - DAY,
    )
    return replace(one, **members)


def pointer(instant: datetime = NOW, **members: Any) -> Pointer:
    uuid = run_uuid(TENANT, SCHEDULE_ID, epoch_ms(instant), Kind.SCHEDULED.value)
    return replace(Pointer(TENANT, JOB_ID, SCHEDULE_ID, uuid, instant, generation=1), **members)


def run(state: State = State.TRIGGERED, instant: datetime = NOW, **members: Any) -> Run:
    one = Run(
        tenant=TENANT,
        job_id=JOB_ID,
        schedule_id=SCHEDULE_ID,
        uuid=pointer(instant).run,
        kind=Kind.SCHEDULED,
        state=state,
        planned_at=instant,
        generation=1,
    )
    return replace(one, **members)
