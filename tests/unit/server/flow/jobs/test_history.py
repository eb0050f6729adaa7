"""The change log: every revision of a job has its entry, written with it, and nothing else has."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from sweephand.base.errors import Unavailable
from sweephand.domain.job import JobDraft, Pause, Payload, ScheduleDraft
from sweephand.domain.jobs.job_state import Entry
from sweephand.server.flow.job_parts.change_log import By, Operation
from sweephand.server.flow.jobs import change, creation, lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.store.jobs import history
from sweephand.server.store.views import resources as views
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before, refused
from tests.unit.server.flow.common import NOON

EACH_MINUTE = {"cron": "* * * * *"}
HOURLY = {"cron": "0 * * * *"}
ME = By(Operation.PATCH, "acme.me")


def log(stage: Stage, planned: Planned, before: int | None = None) -> list[Entry]:
    return list(views.changes(stage.world.table, TENANT, planned.job.id, before, 2))


def described(stage: Stage, planned: Planned, text: str, by: By = ME) -> Planned:
    def edit(there: Planned, _stored: Any) -> JobDraft:
        return JobDraft(there.job.name, stage.action(), description=text, schedules=None)

    return change.change_job(stage.world, TENANT, planned.job.id, edit, None, by)


def test_a_new_job_has_a_creation_entry(stage: Stage) -> None:
    planned = creation.create_job(stage.world, TENANT, stage.draft(EACH_MINUTE), None, By(Operation.CREATE, "acme.me"))

    (entry,) = log(stage, planned)

    assert (entry.revision, entry.actor, entry.operation) == (1, "acme.me", "create")
    assert entry.before is None
    assert entry.after == planned.job
    assert [after for _, after in entry.schedules] == list(planned.schedules)
    assert entry.at == planned.job.created_at


def test_entries_are_listed_newest_first_and_continue_after_a_revision(stage: Stage) -> None:
    planned = stage.create()
    for n in range(5):
        described(stage, planned, f"text {n}")

    assert [entry.revision for entry in log(stage, planned)] == [6, 5, 4, 3, 2, 1]
    assert [entry.revision for entry in log(stage, planned, 3)] == [2, 1]
    assert log(stage, planned, 1) == []


def test_an_entry_holds_the_job_before_and_after(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    described(stage, planned, "first")
    described(stage, planned, "second", By(Operation.REPLACE, "acme.you"))

    entry = log(stage, planned)[0]

    assert entry.before is not None
    assert (entry.before.description, entry.after.description) == ("first", "second")
    assert (entry.before.revision, entry.after.revision, entry.actor) == (2, 3, "acme.you")
    assert entry.schedules == ()


def test_an_entry_holds_only_the_schedules_that_the_caller_changed(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE, HOURLY, EACH_MINUTE)
    first, second, third = planned.schedules

    def request(there: Planned) -> list[ScheduleRequest]:
        one, two, _ = there.schedules
        return [
            ScheduleRequest(one, ScheduleDraft(one.name, HOURLY, id=one.id, payload=Payload("1", is_json=True))),
            ScheduleRequest(two, None, delete=True),
            ScheduleRequest(None, ScheduleDraft("fourth", EACH_MINUTE)),
        ]

    stage.change_schedules(planned, request)
    stage.set_state(planned, pause=Pause(NOON))

    paused, changed, _ = log(stage, planned)
    assert paused.schedules == ()
    assert {(old.id if old else None, new.name if new else None) for old, new in changed.schedules} == {
        (first.id, first.name),
        (second.id, None),
        (None, "fourth"),
    }
    assert third.id not in {each.id for pair in changed.schedules for each in pair if each}


def test_a_change_that_changes_nothing_has_no_entry(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)

    described(stage, planned, "same")
    described(stage, planned, "same")

    assert len(log(stage, planned)) == 2


@pytest.mark.parametrize("fault", [crash_before, conflict, refused])
def test_a_change_that_did_not_happen_has_no_entry(stage: Stage, fault: Any) -> None:
    planned = stage.create(EACH_MINUTE)

    with (
        stage.taps.faulty(lambda p, act: fault(p, act) if p.operation == "TransactWriteItems" else act()),
        pytest.raises((Crash, Unavailable)),
    ):
        described(stage, planned, "never")

    assert len(log(stage, planned)) == 1


@pytest.mark.parametrize("fault", [crash_after, answer_lost])
def test_a_change_has_one_entry_even_if_its_answer_is_lost(stage: Stage, fault: Any) -> None:
    planned = stage.create(EACH_MINUTE)

    with suppress(Crash), stage.taps.once("dynamodb.TransactWriteItems", fault):
        described(stage, planned, "once")

    assert [entry.revision for entry in log(stage, planned)] == [2, 1]


def test_a_change_whose_answer_was_lost_is_recognized_after_another_change(stage: Stage) -> None:
    """The entry tells: the job's row says something else by now."""
    planned = stage.create(EACH_MINUTE)

    def overtaken(_passing: Any, act: Any) -> Any:
        stage.taps.fault = None
        act()
        described(stage, planned, "of another", By(Operation.PATCH, "acme.you"))
        return act()

    with stage.taps.faulty(lambda p, act: overtaken(p, act) if p.operation == "TransactWriteItems" else act()):
        stage.change_schedules(planned, lambda _: [ScheduleRequest(None, ScheduleDraft(None, HOURLY))])

    assert len(lookup.find(stage.world, TENANT, planned.job.id).schedules) == 2
    assert [entry.actor for entry in log(stage, planned)] == ["acme.you", None, None]


def test_an_entry_keeps_as_many_schedules_as_fit_into_an_item(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    (schedule,) = planned.schedules
    chance = stage.world.chance
    strange = [replace(schedule, name="".join(chance.new_id(NOON) for _ in range(30))) for _ in range(900)]
    entry = Entry(2, NOON, None, "change", planned.job, planned.job, tuple((schedule, each) for each in strange))

    item = history.item_of(entry)

    assert 100_000 < len(item.body) <= history.LONGEST_BODY
    read = history.entry_of(item)
    assert 0 < len(read.schedules) < 900
    assert len(read.schedules) + read.omitted == 900


def test_the_log_is_deleted_with_its_job(stage: Stage) -> None:
    planned = stage.create(EACH_MINUTE)
    described(stage, planned, "text")

    stage.delete(planned)
    stage.run(120)

    assert log(stage, planned) == []
