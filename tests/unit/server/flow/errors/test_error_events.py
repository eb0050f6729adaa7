"""Events of errors: who archived, restored or edited them, and which reruns resolved them. Collections choose."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from sweephand.domain.collection import Events
from sweephand.domain.event import EventType
from sweephand.domain.failure import Group
from sweephand.domain.job import Payload
from sweephand.domain.run import Kind, Run
from sweephand.server.flow.errors import failures
from sweephand.server.flow.manual import rerun
from sweephand.server.flow.runs.edits import Edit
from sweephand.server.store.views import resources as views
from sweephand.testing.taps import Fault
from tests.support.endpoint import BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after

KINDS = (EventType.ERRORS_ARCHIVED, EventType.ERRORS_RESTORED, EventType.ERRORS_EDITED, EventType.ERRORS_RESOLVED)
EDITED = Edit(Payload('{"n":2}', is_json=True))


def failed(stage: Stage, events: Events = Events.ALL) -> tuple[Group, Run]:
    stage.tell(events)
    stage.endpoint.answer = lambda _: WRONG
    planned = stage.create({"cron": "* * * * *", "count": 1})
    stage.run(90)
    stage.endpoint.answer = lambda _: OK
    (group,), (run,) = views.groups(stage.world.table, TENANT), stage.runs(planned, Kind.SCHEDULED)
    return group, run


def told(stage: Stage) -> list[tuple[str, Any, Any]]:
    """Returns type, run and actor of each event of errors."""
    of_all = [(kind, detail) for kind in KINDS for detail in stage.bus.of(kind)]
    return [(kind.value, detail["runId"], detail["actor"]) for kind, detail in of_all]


def again(stage: Stage, run: Run, edit: Edit | None = None) -> str:
    return rerun.rerun(stage.world, TENANT, run.schedule_id or "", run.uuid, edit=edit, actor="acme.me")


def test_archiving_and_restoring_a_group_publish_events_with_the_actor(stage: Stage) -> None:
    group, _ = failed(stage)

    failures.archive(stage.world, TENANT, group.id, "known", "acme.me")
    failures.restore(stage.world, TENANT, group.id, "acme.you")

    assert told(stage) == [("errors.archived", None, "acme.me"), ("errors.restored", None, "acme.you")]
    (archived,) = stage.bus.of(EventType.ERRORS_ARCHIVED)
    assert (archived["errorGroup"], archived["jobId"]) == (group.id, group.signature.job_id)
    assert "known" not in str(archived)


def test_the_event_of_archiving_one_run_names_the_run(stage: Stage) -> None:
    group, run = failed(stage)
    owner = run.schedule_id or ""

    failures.archive_run(stage.world, group, owner, run.uuid, None, "acme.me")
    failures.restore_run(stage.world, group, owner, run.uuid, "acme.me")

    assert told(stage) == [("errors.archived", run.id, "acme.me"), ("errors.restored", run.id, "acme.me")]


def test_deleting_a_job_publishes_the_archiving_of_its_errors_without_an_actor(stage: Stage) -> None:
    stage.tell(Events.ALL)
    stage.endpoint.answer = lambda _: WRONG
    planned = stage.create({"cron": "* * * * *"})
    stage.run(90)

    stage.delete(planned)
    stage.run(120)

    assert set(told(stage)) == {("errors.archived", None, None)}


def test_an_edited_rerun_publishes_events_when_it_begins_and_when_it_succeeds(stage: Stage) -> None:
    _, run = failed(stage)

    new = again(stage, run, EDITED)
    assert told(stage) == [("errors.edited", run.id, "acme.me")]
    stage.run(60)

    assert told(stage) == [("errors.edited", run.id, "acme.me"), ("errors.resolved", run.id, None)]
    assert {detail["rerunId"] for kind in KINDS for detail in stage.bus.of(kind)} == {new}


def test_an_unedited_rerun_publishes_an_event_only_when_it_succeeds(stage: Stage) -> None:
    _, run = failed(stage)

    again(stage, run)
    stage.run(60)

    assert told(stage) == [("errors.resolved", run.id, None)]


def test_a_rerun_that_fails_resolves_nothing(stage: Stage) -> None:
    _, run = failed(stage)
    stage.endpoint.answer = lambda _: BUSY

    again(stage, run)
    stage.run(60)

    assert told(stage) == []


def test_a_rerun_of_a_success_resolves_nothing(stage: Stage) -> None:
    stage.tell(Events.ALL)
    planned = stage.create({"cron": "* * * * *", "count": 1})
    stage.run(90)
    (run,) = stage.runs(planned)

    again(stage, run, EDITED)
    stage.run(60)

    assert told(stage) == []


@pytest.mark.parametrize("choice", [Events.FAILURES, Events.NONE])
def test_a_collection_without_all_events_publishes_none_of_them(stage: Stage, choice: Events) -> None:
    group, run = failed(stage, choice)

    failures.archive(stage.world, TENANT, group.id, None, "acme.me")
    failures.restore(stage.world, TENANT, group.id, "acme.me")
    again(stage, run, EDITED)
    stage.run(60)

    assert told(stage) == []


@pytest.mark.parametrize("fault", [crash_after, answer_lost])
def test_a_resolution_that_is_published_twice_has_one_id(stage: Stage, fault: Fault) -> None:
    _, run = failed(stage)
    again(stage, run)

    with stage.taps.once("events.PutEvents", fault, skip=1), suppress(Crash):  # the first: of the run's own success
        stage.run(30)
    stage.run(240)

    resolved = [detail["id"] for detail in stage.bus.of(EventType.ERRORS_RESOLVED)]
    assert len(resolved) > 1
    assert len(set(resolved)) == 1
