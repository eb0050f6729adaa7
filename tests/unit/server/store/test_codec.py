"""Every field of a record comes back from its row, a new one as well."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.job import ActionSpec, Job, Pause
from sweephand.domain.posted import Posted
from sweephand.domain.run import Kind, LostCall, Reason, Run, State
from sweephand.domain.schedule import Lane, Schedule, ScheduleState
from sweephand.server.store.dynamo.table import JobItem, RunItem, ScheduleItem
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import run_rows
from tests.unit.domain.nouns import NOW, job, run, schedule

OTHERS: dict[str, Any] = {
    "ActionSpec": ActionSpec("http", {"url": "https://example.org/other"}, {"type": "fixed"}, 7),
    "Pause": Pause(NOW, "note", NOW + timedelta(hours=1)),
    "Kind": Kind.MANUAL,
    "State": State.ERROR,
    "Reason": Reason.DNS,
    "Lane": Lane.SLOW,
    "ScheduleState": ScheduleState.PAUSED,
    "tuple[LostCall, ...]": (LostCall(1, NOW), LostCall(2, NOW)),
    "tuple[datetime, ...]": (NOW, NOW + timedelta(hours=1)),
    "tuple[str, ...]": ("a", "b"),
    "frozenset[str]": frozenset({"a", "b"}),
    "Mapping[str, Any]": {"a": [1, None]},
    "Mapping[int, int]": {3: 4},
    "Mapping[str, ActionSpec]": {"onSuccess": ActionSpec("event", {}, {})},
    "Posted": Posted("default", NOW, ["http", {}, {}, None, None], "https://example.org"),
    "datetime": NOW + timedelta(minutes=7),
    "str": "another",
    "int": 7,
}
"""Values by the annotation of a field: a value that none of these records has."""
COMPANY: dict[str, dict[str, Any]] = {
    "schedule_ids": {"schedule_count": 2},
    "schedule_count": {"many_schedules": True},
    "completed_at": {"state": ScheduleState.COMPLETED},
}
"""Fields that are stored in the company of others only."""
NOT_STORED = {"newer_packed", "resumes_at", "offset_s"}
"""Fields that are set only in responses, and offset_s, which the row computes from the others."""


def job_back(one: Job) -> Job:
    return jobs.job_of(JobItem.from_raw_data(jobs.job_item(one).serialize()))


def schedule_back(one: Schedule) -> Schedule:
    return jobs.schedule_of(ScheduleItem.from_raw_data(jobs.schedule_item(one, 16).serialize()))


def run_back(one: Run) -> Run:
    item = run_rows.item_of(one, shards=16, lane=Lane.FAST)
    return run_rows.run_of(RunItem.from_raw_data(item.serialize()))


RECORDS = [(job(), job_back), (schedule(), schedule_back), (run(), run_back)]


def may_be_none(record: Any, _: Any, name: str) -> bool:
    return any(each.name == name and str(each.type).endswith(" | None") for each in fields(record))


PARAMS = [
    pytest.param(record, back, each.name, id=f"{type(record).__name__}.{each.name}")
    for record, back in RECORDS
    for each in fields(record)
    if each.name not in NOT_STORED
]


@pytest.mark.parametrize(
    ("record", "back", "name"),
    PARAMS,
)
def test_a_field_comes_back_from_its_row(record: Any, back: Any, name: str) -> None:
    kind = next(str(each.type) for each in fields(record) if each.name == name).removesuffix(" | None")
    company = COMPANY.get(name, {})
    other = not getattr(record, name) if kind == "bool" else OTHERS[kind]
    one = replace(record, **{name: other, **company})

    assert getattr(one, name) != getattr(record, name)
    assert back(one) == one


@pytest.mark.parametrize(("record", "back", "name"), [each for each in PARAMS if may_be_none(*each.values)])
def test_a_field_that_holds_nothing_comes_back_so(record: Any, back: Any, name: str) -> None:
    one = replace(record, **{name: None})

    assert back(one) == one
