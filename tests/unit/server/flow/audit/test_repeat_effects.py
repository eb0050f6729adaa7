"""On command: what a purge took between the end of a run and its effects is done after all."""

from __future__ import annotations

from datetime import datetime

import pytest

from sweephand.base.errors import Unavailable
from sweephand.domain.instants import text
from sweephand.domain.run import Kind, State
from sweephand.domain.schedule import Lane
from sweephand.server.flow.audit import repeat_effects
from sweephand.server.flow.jobs.lookup import Planned
from tests.support.endpoint import WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, crash_after, refused
from tests.unit.server.flow.common import HOUR, MINUTE, NOON, SECOND, once

ALARM = "https://example.org/alarm"


def lost_effects(stage: Stage, name: str = "job") -> Planned:
    """Makes a run that failed and whose executor died before the error action; the queue was purged."""
    planned = stage.create(once(), name=name, error_action=stage.action(url=ALARM))
    stage.endpoint.script = [WRONG]
    stage.tick()
    stage.clock.move_to(NOON + MINUTE + SECOND)
    with stage.taps.once("dynamodb.TransactWriteItems", crash_after), pytest.raises(Crash):
        stage.deliver(most=1)
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])
    return planned


def asked(since: datetime = NOON, until: datetime = NOON + HOUR, **more: str) -> dict[str, str]:
    return {"tenant": TENANT, "since": text(since), "until": text(until), **more}


def alarms(stage: Stage) -> int:
    return sum(received.params["url"] == ALARM for received in stage.endpoint.received)


def test_the_effects_of_a_range_happen_once_however_often_they_are_requested(stage: Stage) -> None:
    planned = lost_effects(stage)
    assert alarms(stage) == 0

    for _ in range(2):
        done = repeat_effects.repeat(stage.world, asked())
        stage.run(30)

    assert done.jobs == 1
    assert done.runs == 2  # by now the error action is one of them
    assert alarms(stage) == 1
    (error,) = stage.runs(planned, Kind.ERROR_ACTION)
    assert error.state is State.SUCCESS


def test_only_finished_runs_of_the_range_are_selected(stage: Stage) -> None:
    lost_effects(stage)
    instant = NOON + MINUTE

    assert repeat_effects.repeat(stage.world, asked(until=instant - MINUTE)).runs == 0
    assert repeat_effects.repeat(stage.world, asked(since=instant + MINUTE)).runs == 0
    assert repeat_effects.repeat(stage.world, asked(since=instant, until=instant)).runs == 1
    assert repeat_effects.repeat(stage.world, {**asked(), "tenant": "globex"}).jobs == 0


def test_an_expired_run_has_no_effects(stage: Stage) -> None:
    lost_effects(stage)
    stage.clock.advance(16 * 86_400)

    assert repeat_effects.repeat(stage.world, asked()).runs == 0


def test_the_command_can_be_limited_to_one_job(stage: Stage) -> None:
    planned = lost_effects(stage)
    stage.create({"cron": "0 0 * * *"}, name="other")

    assert repeat_effects.repeat(stage.world, asked(job=planned.job.id)).jobs == 1


def test_a_command_that_runs_out_of_time_says_where_to_continue(stage: Stage) -> None:
    planned = [stage.create({"cron": "0 0 * * *"}, name=f"job {n}") for n in range(3)]

    def slow(_passing: object, act: object) -> object:
        stage.clock.advance(200)
        return act()  # type: ignore[operator]

    with stage.taps.faulty(slow):
        first = repeat_effects.repeat(stage.world, asked())
    assert first.rest is not None
    second = repeat_effects.repeat(stage.world, asked(**{"from": first.rest}))

    assert 0 < first.jobs < 3
    assert first.jobs + second.jobs == len(planned)
    assert second.rest is None


def test_a_queue_that_rejects_messages_is_reported(stage: Stage) -> None:
    lost_effects(stage)

    def no_queue(passing: object, act: object) -> object:
        return refused(passing, act) if passing.service == "sqs" else act()  # type: ignore[attr-defined, operator, arg-type]

    with stage.taps.faulty(no_queue), pytest.raises(Unavailable):
        repeat_effects.repeat(stage.world, asked())


@pytest.mark.parametrize(
    "members",
    [
        {"since": "2027-01-01T00:00:00Z", "until": "2027-01-02T00:00:00Z"},
        {"tenant": TENANT, "since": "2027-01-01T00:00:00Z"},
        {"tenant": TENANT, "since": "2027-01-01T00:00:00", "until": "2027-01-02T00:00:00Z"},
        {"tenant": TENANT, "since": "yesterday", "until": "2027-01-02T00:00:00Z"},
        {"tenant": TENANT, "since": "2027-01-01T00:00:00Z", "until": "2027-01-02T00:00:00Z", "jobs": "x"},
    ],
)
def test_an_unreadable_effect_is_not_performed(stage: Stage, members: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"missing|offset|Invalid|unknown"):
        repeat_effects.repeat(stage.world, members)
