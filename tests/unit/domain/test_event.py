"""The catalogue: code, schemas and page say the same, and a choice means what the page says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain import event
from sweephand.domain.collection import Collection, CollectionState, Events
from sweephand.domain.event import OF_LINE, OF_STATE, USER_REASONS, Event, EventType, Finding
from sweephand.domain.job import Pause
from sweephand.domain.run import FAILED, OF_RANGES, TERMINAL, Reason, State
from sweephand.domain.schedule import StateReason
from tests.support.bus import SCHEMAS, validator
from tests.unit.domain.nouns import HOUR, MINUTE, NOW, job, run, schedule
from tools.docs import event_schemas

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "events.md"


def test_the_schemas_are_those_of_the_code() -> None:
    assert event_schemas.write(check=True) == [], "make docs"


def test_catalogue_schemas_and_page_name_the_same_events() -> None:
    kinds = {kind.value for kind in EventType}

    assert {path.name.removesuffix(".json") for path in SCHEMAS.iterdir()} == {
        *kinds,
        "job",
        "job.missed",
        "job.missed.dropped",
    }
    assert {kind for kind in kinds if f"(../../events/schemas/{kind}.json)" in PAGE.read_text()} == kinds


@pytest.mark.parametrize("path", sorted(SCHEMAS.iterdir()), ids=lambda path: path.stem)
def test_every_member_of_an_event_has_a_description(path: Path) -> None:
    detail = json.loads(path.read_text())["properties"]["detail"]

    assert [name for name, schema in _members(detail) if "description" not in schema] == []


def _members(schema: dict[str, Any], within: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{within}{name}", inner
        yield from _members(inner, f"{within}{name}.")


@pytest.mark.parametrize("kind", EventType)
def test_a_schema_refuses_an_event_of_another_kind(kind: EventType) -> None:
    other = next(other for other in EventType if other is not kind)

    assert not validator(kind.value).is_valid({"source": "sweephand", "detail-type": other.value, "detail": {}})


def test_a_schema_accepts_members_added_later() -> None:
    told = event.of_job(EventType.JOB_CREATED, _job())
    as_sent = {"source": "sweephand", "detail-type": told.type.value, "detail": {**told.detail, "new": 1}}

    assert validator(told.type.value).is_valid(as_sent)


def test_the_example_on_the_page_is_valid() -> None:
    example = json.loads(PAGE.read_text().partition("```json\n")[2].partition("```")[0])

    assert [error.message for error in validator("run.failed").iter_errors(example)] == []
    assert example["detail"].keys() == validator("run.failed").schema["properties"]["detail"]["properties"].keys()
    assert example["detail"]["id"] == f"run.failed:{example['detail']['runId']}"


def test_every_end_of_a_run_is_an_event() -> None:
    assert OF_STATE.keys() == TERMINAL
    assert {OF_STATE[state] for state in FAILED} == {EventType.RUN_FAILED}


# Choices of events

LOUD_REASON = {
    State.ERROR: Reason.HTTP_STATUS,
    State.REQUEST_ERROR: Reason.DNS,
    State.UNKNOWN: Reason.EXECUTOR_LOST,
    State.TIMEOUT: Reason.DEADLINE,
    State.SKIPPED: Reason.OVERLAP,
    State.MISSED: Reason.SERVICE_OUTAGE,
    State.EXPIRED: Reason.MAX_AGE,
    State.CANCELLED: Reason.REPLACED,
}


@pytest.mark.parametrize(("state", "reason"), LOUD_REASON.items())
def test_unrequested_failures_are_published_by_default(state: State, reason: Reason) -> None:
    told = event.of_run(run(state, reason=reason, finished_at=NOW), job(), "default")

    assert event.wanted([told], Events.FAILURES) == [told]
    assert event.wanted([told], Events.NONE) == []


@pytest.mark.parametrize("reason", sorted(USER_REASONS))
@pytest.mark.parametrize("state", [State.SKIPPED, State.CANCELLED])
def test_requested_ends_are_published_only_under_all(state: State, reason: Reason) -> None:
    told = event.of_run(run(state, reason=reason, finished_at=NOW), job(), "default")

    assert event.wanted([told], Events.FAILURES) == []
    assert event.wanted([told], Events.ALL) == [told]


def test_changes_by_users_and_plain_successes_are_published_only_under_all() -> None:
    success = event.of_run(run(State.SUCCESS, reason=Reason.LATE, finished_at=NOW), job(), "default")
    completed = event.of_completed(schedule(), StateReason.COUNT_REACHED, job(), NOW)
    switched = event.of_switch(Collection("acme", "c", state=CollectionState.DISABLED, modified_at=NOW))
    done = [event.of_job(kind, job()) for kind in EventType if kind.value.startswith("job.")]

    assert event.wanted([success, completed, switched, *done], Events.FAILURES) == []


def test_impossible_states_are_published_by_default() -> None:
    broken = event.of_broken(schedule(), job(), NOW)
    found = event.of_finding(Finding.RUNS_LOST, schedule(), job(), 2, NOW)

    assert event.wanted([broken, found], Events.FAILURES) == [broken, found]


# Ids


def test_the_same_finding_of_one_hour_is_one_event() -> None:
    ids = [event.of_finding(Finding.RUNS_LOST, schedule(), job(), 2, NOW + n * 20 * MINUTE).id for n in range(4)]

    assert len(set(ids)) == 2


@given(st.sampled_from(sorted(TERMINAL)), st.integers(0, 10_000))
def test_an_event_of_a_run_is_derived_from_the_run_alone(state: State, seconds: int) -> None:
    """Whenever it is made again, it is the same: nothing of the moment is in it."""
    ended = run(state, reason=Reason.ON_TIME, finished_at=NOW + seconds * MINUTE / 60)

    first, second = (event.of_run(ended, job(), "default") for _ in range(2))

    assert first == second
    assert first.id == f"{OF_STATE[state].value}:{ended.id}"


def test_a_line_and_a_run_of_one_instant_are_two_events() -> None:
    one = run(State.MISSED, reason=Reason.SERVICE_OUTAGE, finished_at=NOW)
    line = replace(one, range_until=NOW + HOUR, range_count=60)

    kinds = [event.of_run(each, job(), "default").type for each in (one, line)]
    assert kinds == [EventType.RUN_MISSED, EventType.OCCURRENCES_MISSED]
    assert set(OF_LINE) == OF_RANGES


# Changes


def _job() -> object:
    return job(id="00000000-0000-7000-8000-000000000001")


def _kinds(events: list[Event]) -> list[EventType]:
    return [each.type for each in events]


def test_each_changed_switch_is_an_event_of_its_own() -> None:
    before = job()
    after = replace(before, active=False, pause=Pause(NOW), name="other", revision=2)

    told = event.of_change(before, after, schedules_too=False)

    assert _kinds(told) == [EventType.JOB_DEACTIVATED, EventType.JOB_PAUSED, EventType.JOB_CHANGED]
    assert len({each.id for each in told}) == 3


def test_automatic_consequences_are_not_changes() -> None:
    before = job()
    after = replace(before, state_reason="x", schedule_ids=("a",), many_schedules=True, revision=2, modified_at=NOW)

    assert event.of_change(before, after, schedules_too=False) == []


def test_a_new_note_on_a_pause_is_published() -> None:
    before = job(pause=Pause(NOW))

    told = event.of_change(before, replace(before, pause=Pause(NOW, note="longer")), schedules_too=False)

    assert _kinds(told) == [EventType.JOB_PAUSED]
