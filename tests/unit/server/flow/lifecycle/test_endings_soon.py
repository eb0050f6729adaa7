"""A job is over within seconds of the end of its last run, whenever the next tick comes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.instants import text
from sweephand.domain.run import State
from sweephand.domain.schedule import OVER, ScheduleState, may_end
from sweephand.schedules.timing import parse
from sweephand.server.flow.runs import results
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, BUSY, OK
from tests.support.stage import TENANT, Stage
from tests.support.taps import crash_after, crash_before, refused
from tests.unit.server.flow.common import HOUR, MINUTE, NOON, SECOND, exact, fixed

SOON = timedelta(seconds=5)
AT_5_S = {"at": text(NOON + 5 * SECOND)}


def over_after(stage: Stage, planned: Any, most_s: int = 400) -> timedelta:
    """Returns how long after its last run's end the schedule was over."""
    for _ in range(most_s):
        stage.run(1)
        if stage.stored(planned).state in OVER:
            break
    ends = [run.finished_at for run in stage.runs(planned) if run.finished_at]
    assert stage.stored(planned).state in OVER
    return stage.clock.now() - max(ends)


@pytest.mark.parametrize("tick_in_s", [0, 1, 4, 6, 20, 59])
@pytest.mark.parametrize(
    "timing",
    [
        AT_5_S,
        {"every": "PT2S", "count": 3},
        {"every": "PT2S", "endTime": text(NOON + 7 * SECOND)},
        {"eventBridge": f"at({text(NOON + 5 * SECOND)[:-1]})"},
        {"rrule": "FREQ=SECONDLY;COUNT=4"},
        {"time": text(NOON + 5 * SECOND)},
    ],
    ids=["at", "count", "end", "eventBridge", "rrule", "time"],
)
def test_a_series_is_over_within_five_seconds_of_its_last_run(
    stage: Stage, timing: dict[str, Any], tick_in_s: int
) -> None:
    planned = stage.create(timing)
    stage.run(0, tick_in_s=tick_in_s)

    assert over_after(stage, planned) <= SOON
    exact(stage, planned)


@pytest.mark.parametrize("tick_in_s", [3, 9, 30])
def test_a_failed_one_time_schedule_is_faulted_within_five_seconds(stage: Stage, tick_in_s: int) -> None:
    stage.endpoint.answer = BUSY
    planned = stage.create(AT_5_S)
    stage.run(0, tick_in_s=tick_in_s)

    assert over_after(stage, planned) <= SOON
    assert stage.stored(planned).state is ScheduleState.FAULTED


def test_a_tick_during_the_last_call_does_not_delay_the_end(stage: Stage) -> None:
    """The gate read the schedule before the tick moved it on."""

    def slow(_call: object) -> Any:
        stage.clock.advance(10)
        stage.tick()
        return OK

    planned = stage.create(AT_5_S)
    stage.endpoint.answer = slow
    stage.run(0, tick_in_s=400)

    assert over_after(stage, planned) <= SOON


@pytest.mark.parametrize("tick_in_s", [2, 50])
def test_a_long_run_that_ends_after_later_ones_ends_the_series(stage: Stage, tick_in_s: int) -> None:
    stage.endpoint.script = [BUSY, OK, OK, OK]
    planned = stage.create({"every": "PT2S", "count": 3}, action=stage.action(retry=fixed(100)))
    stage.run(0, tick_in_s=tick_in_s)

    assert over_after(stage, planned) <= SOON


@pytest.mark.parametrize("success", [True, False])
def test_a_reported_result_ends_the_series_within_five_seconds(stage: Stage, *, success: bool) -> None:
    stage.endpoint.answer = ACCEPTED
    planned = stage.create(AT_5_S, action=stage.action(outcome={"on202": "wait"}))
    stage.run(6, tick_in_s=300)
    run = stage.only_run(planned)
    assert run.state is State.ACK_RECVD

    owner = planned.schedules[0].id
    results.record(stage.world, TENANT, owner, run.uuid, success=success, message=None)

    assert over_after(stage, planned) <= SOON


@pytest.mark.parametrize("fault", [crash_before, crash_after, refused])
@pytest.mark.parametrize("call", ["dynamodb.BatchExecuteStatement", "dynamodb.UpdateItem", "dynamodb.GetItem"])
@pytest.mark.parametrize("skip", [0, 1, 2])
def test_the_next_worker_writes_an_interrupted_end(stage: Stage, call: str, fault: Any, skip: int) -> None:
    planned = stage.create(AT_5_S)
    met = 0

    def nth(passing: Passing, act: Act) -> Any:
        nonlocal met
        met += passing.name == call
        return fault(passing, act) if passing.name == call and met == skip + 1 else act()

    for _ in range(3):
        try:
            with stage.taps.faulty(nth):
                stage.run(30, tick_in_s=400)
            break
        except BaseException as crash:
            if type(crash).__name__ != "Crash":
                raise
    stage.run(2_000, tick_in_s=60)

    assert stage.stored(planned).state is ScheduleState.COMPLETED
    assert len(stage.runs(planned)) == 1
    exact(stage, planned)


def test_an_unsent_occurrence_keeps_the_series_open(stage: Stage) -> None:
    """The queue took only the last of three occurrences at first: the tick sends the others, then the series ends."""
    planned = stage.create({"every": "PT2S", "count": 3})
    queue = stage.world.settings.queue_urls
    for url in queue.values():
        del stage.sqs._queues[url].messages[:2]
    stage.run(30, tick_in_s=20)

    stage.run(100)

    assert len(stage.endpoint.received) == 3
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


def test_an_endless_series_needs_no_additional_read(stage: Stage) -> None:
    stage.create({"cron": "* * * * *"})
    stage.tick()
    stage.clock.advance(60)
    stage.taps.passed.clear()

    stage.deliver()

    assert "dynamodb.GetItem" not in stage.taps.names()


@pytest.mark.parametrize(
    ("fields", "ends"),
    [
        ({"at": text(NOON + HOUR)}, True),
        ({"time": text(NOON + HOUR)}, True),
        ({"every": "PT1M"}, False),
        ({"every": "PT10S", "align": "actual_start"}, False),
        ({"every": "R5/2027-03-02T00:00Z/PT1H"}, True),
        ({"every": "R/2027-03-02T00:00Z/PT1H"}, False),
        ({"cron": "* * * * *"}, False),
        ({"cron": "* * * * *", "count": 3}, True),
        ({"cron": "* * * * *", "endTime": text(NOON + HOUR)}, True),
        ({"cron": "* * * * *", "jitterSeconds": 5}, False),
        ({"sapCron": "2027 * * * * 0 0"}, True),
        ({"sapCron": "* * * * * 0 0"}, False),
        ({"eventBridge": "cron(0 0 * * ? 2028)"}, True),
        ({"eventBridge": "cron(0 0 * * ? *)"}, False),
        ({"eventBridge": "at(2027-04-01T00:00:00)"}, True),
        ({"rrule": "FREQ=DAILY;COUNT=3"}, True),
        ({"rrule": "FREQ=DAILY;UNTIL=20280101T000000Z"}, True),
        ({"rrule": "FREQ=DAILY"}, False),
        ({"rrule": "DTSTART:20270302T000000Z\nRDATE:20270303T000000Z"}, True),
        ({"repeatAt": "4pm"}, False),
        ({"recurrence": {"frequency": "day", "interval": 1}}, False),
        ({"recurrence": {"frequency": "day", "interval": 1}, "count": 4}, True),
    ],
)
def test_the_packed_text_of_a_series_shows_whether_it_can_end(fields: dict[str, Any], *, ends: bool) -> None:
    timing = parse(fields, now=NOON)

    assert may_end(timing.packed) is ends
    assert (timing.count is not None or timing.rule.next_after(NOON + 60 * 365 * 24 * HOUR) is None) is ends


def test_a_change_during_the_last_run_continues_the_series(stage: Stage) -> None:
    def changed(_call: object) -> Any:
        stage.endpoint.answer = OK
        stage.change(planned, timings=[{"at": text(NOON + 3 * MINUTE)}])
        return OK

    planned = stage.create(AT_5_S)
    stage.endpoint.answer = changed
    stage.run(30, tick_in_s=20)

    assert stage.stored(planned).state is ScheduleState.ACTIVE
    stage.run(300)
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


def test_an_unreadable_schedule_is_not_taken_for_an_ended_one(stage: Stage) -> None:
    planned = stage.create(AT_5_S)
    stage.edit_schedule(planned, sweep={"S": "S@default;fast;sap;no timing"})

    stage.run(10, tick_in_s=300)

    assert stage.only_run(planned).state is State.SUCCESS
    assert stage.stored(planned).state is ScheduleState.ACTIVE
