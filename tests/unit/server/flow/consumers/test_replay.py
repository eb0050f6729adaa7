"""Runs that are held while their consumer is away, and what it gets when it starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from sweephand.domain.application import lane_of
from sweephand.domain.consumer import Phase
from sweephand.domain.event import EventType
from sweephand.domain.instants import text, text_ms
from sweephand.domain.job import ActionDraft
from sweephand.domain.occurrences.index_row import Waits
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import Lane
from sweephand.server import actions
from sweephand.server.flow.consumers import deletion, leases
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.runs import replay
from sweephand.server.flow.tenants import applications
from sweephand.server.security import guard
from sweephand.server.store.consumers import consumers as store
from sweephand.server.store.dynamo import keys
from sweephand.server.store.views import tenants as views
from sweephand.testing.service import URLS
from tests.support.bus import malformed
from tests.support.stage import TENANT, Stage
from tests.unit.server.flow.common import DAY, HOUR, MINUTE, NOON, exact

EACH_MINUTE = {"cron": "* * * * *"}
EACH_5_MINUTES = {"cron": "*/5 * * * *"}
DAILY = {"cron": "0 12 * * *"}
DROPPED = replay.DROPPED_TYPE


@pytest.fixture(autouse=True)
def _for_real(stage: Stage) -> None:
    stage.act_for_real()


def create(stage: Stage, timing: Mapping[str, object], *, consumer: str = "billing", **missed: Any) -> Planned:
    return stage.create(timing, action=event(consumer=consumer, missed=missed or None))


def event(**members: Any) -> ActionDraft:
    return actions.draft({"type": "event", **members}, field="action", guard=guard.GuardSettings())


def take(stage: Stage, holder: str = "a", seconds: int = 90) -> None:
    leases.take(stage.world, TENANT, "billing", holder, seconds)


def start(stage: Stage, holder: str = "a", seconds: int = 90) -> None:
    take(stage, holder, seconds)
    leases.start(stage.world, TENANT, "billing", holder)


def phase(stage: Stage) -> Phase:
    with stage.untapped():
        there = store.read(stage.world.table, TENANT, "billing")
    assert there is not None
    return there.phase_at(stage.clock.now())


def events(stage: Stage) -> list[tuple[str, str]]:
    """Returns the events of jobs as (type, planned instant), in the order of the bus."""
    return [(entry["DetailType"], json.loads(entry["Detail"]).get("jobTime", "")) for entry in stage.bus.of_jobs]


def details(stage: Stage, kind: str) -> list[dict[str, Any]]:
    return [json.loads(entry["Detail"]) for entry in stage.bus.of_jobs if entry["DetailType"] == kind]


def states(stage: Stage, planned: Planned) -> list[State]:
    return [run.state for run in stage.runs(planned)]


def test_one_write_holds_what_falls_due_while_the_consumer_is_away(stage: Stage) -> None:
    planned = create(stage, EACH_MINUTE)

    stage.run(130)

    assert events(stage) == []
    assert [(run.state, run.reason, run.consumer) for run in stage.runs(planned)] == [
        (State.HELD, Reason.CONSUMER_AWAY, "billing")
    ] * 2
    assert phase(stage) is Phase.AWAY


def test_a_consumer_that_starts_gets_each_missed_occurrence_in_order_then_live_ones(stage: Stage) -> None:
    planned = create(stage, EACH_5_MINUTES)
    stage.run((3 * HOUR).total_seconds())

    start(stage, seconds=900)
    stage.run(30)
    during = phase(stage)
    stage.run(400)

    missed = [text(NOON + n * 5 * MINUTE) for n in range(1, 37)]
    live = text(NOON + 185 * MINUTE)
    assert events(stage) == [*(("job.missed", each) for each in missed), ("job", live)]
    assert during is Phase.LIVE
    ids = [each["id"] for each in (*details(stage, "job.missed"), *details(stage, "job"))]
    assert ids == [run.id for run in stage.runs(planned)][: len(ids)]
    exact(stage, planned)


def test_a_daily_job_gives_each_day_of_a_month_away(stage: Stage) -> None:
    planned = create(stage, DAILY, keepSeconds=40 * 86_400)
    for _ in range(30):
        stage.pass_time(DAY.total_seconds() - 120)
        stage.run(240)

    start(stage)
    stage.run(30)

    assert [kind for kind, _ in events(stage)] == ["job.missed"] * 30
    exact(stage, planned)


def test_events_over_the_limit_are_dropped_and_counted_exactly(stage: Stage) -> None:
    planned = create(stage, EACH_MINUTE, limit=10)
    stage.run(3_600 + 20)
    few = sum(state is State.HELD for state in states(stage, planned))

    start(stage)
    stage.run(20)

    assert few <= 10 + 16
    (dropped,) = details(stage, DROPPED)
    missed = details(stage, "job.missed")
    assert (dropped["count"], len(missed)) == (50, 10)
    assert (dropped["from"], dropped["until"]) == (text(NOON + MINUTE), text(NOON + 50 * MINUTE))
    assert [each["jobTime"] for each in missed] == [text(NOON + n * MINUTE) for n in range(51, 61)]
    ends = [run for run in stage.runs(planned) if run.state is State.MISSED]
    assert {run.reason for run in ends} == {Reason.CONSUMER_AWAY}
    assert len(ends) == 50
    assert events(stage)[0][0] == DROPPED
    assert stage.totals(planned).missed_sent == 50


def test_events_that_are_too_old_are_dropped(stage: Stage) -> None:
    create(stage, EACH_MINUTE, keepSeconds=600)
    stage.run(1_200 + 20)

    start(stage)
    stage.run(20)

    (dropped,) = details(stage, DROPPED)
    assert (dropped["count"], len(details(stage, "job.missed"))) == (10, 10)


@pytest.mark.parametrize(("mode", "minute"), [("latest", 20), ("earliest", 1)])
def test_a_job_can_ask_for_one_of_the_missed_occurrences(stage: Stage, mode: str, minute: int) -> None:
    planned = create(stage, EACH_MINUTE, mode=mode)
    stage.run(1_200 + 20)

    start(stage)
    stage.run(20)

    assert [each["jobTime"] for each in details(stage, "job.missed")] == [text(NOON + minute * MINUTE)]
    (dropped,) = details(stage, DROPPED)
    assert (dropped["count"], stage.totals(planned).missed_sent) == (19, 19)


def test_the_mode_count_sends_one_event_with_the_total_number(stage: Stage) -> None:
    planned = create(stage, EACH_MINUTE, mode="count", limit=10)
    stage.run(3_600 + 20)

    start(stage)
    stage.run(20)

    (missed,) = details(stage, "job.missed")
    assert missed["missed"] == {"count": 60, "from": text(NOON + MINUTE), "until": text(NOON + 60 * MINUTE)}
    assert (details(stage, DROPPED), stage.totals(planned).missed_sent) == ([], 59)


def test_an_expired_lease_holds_occurrences_again_and_loses_none(stage: Stage) -> None:
    planned = create(stage, EACH_MINUTE)
    start(stage, seconds=90)
    stage.run(70)
    stage.run(240)

    start(stage, "b")
    stage.run(20)

    kinds = [kind for kind, _ in events(stage)]
    assert kinds == ["job", "job.missed", "job.missed", "job.missed", "job.missed"]
    assert set(states(stage, planned)) == {State.SUCCESS}


def test_a_heartbeat_restarts_a_replay_whose_message_was_lost(stage: Stage) -> None:
    create(stage, EACH_MINUTE)
    stage.run(190)
    start(stage)
    stage.sqs.purge(URLS[Lane.FAST])

    take(stage)
    stage.run(20)

    assert [kind for kind, _ in events(stage)] == ["job.missed"] * 3
    assert phase(stage) is Phase.LIVE


def test_a_failed_attempt_passes_the_turn_on_and_is_repeated_under_its_id(stage: Stage) -> None:
    action = event(
        consumer="billing",
        retry={"type": "fixed", "maxRetries": 1, "delaySeconds": 30, "retryOn": "any"},
    )
    planned = stage.create(EACH_MINUTE, action=action)
    stage.run(130)
    stage.taps.fault = _refuse_first()

    start(stage)
    stage.run(10)
    first = events(stage)
    stage.run(40)

    runs = stage.runs(planned)
    assert first == [("job.missed", text(runs[1].planned_at))]
    assert details(stage, "job.missed")[1]["id"] == runs[0].id


def _refuse_first() -> Any:
    left = [1]

    def fault(passing: Any, act: Any) -> Any:
        if passing.service == "events" and "job.missed" in repr(passing.request) and left[0]:
            left[0] -= 1
            return malformed(passing, act)
        return act()

    return fault


def test_the_index_is_empty_once_everything_is_sent(stage: Stage) -> None:
    create(stage, {"at": text(NOON + MINUTE)})
    stage.run(70)
    start(stage)
    stage.run(2_000)

    assert stage.waiting() == {}


def test_the_runs_of_a_deleted_job_end(stage: Stage) -> None:
    planned = create(stage, EACH_MINUTE)
    stage.run(130)

    stage.delete(planned)
    stage.run(60)
    start(stage)
    stage.run(20)

    assert {(run.state, run.reason) for run in stage.runs(planned)} == {(State.CANCELLED, Reason.OWNER_GONE)}
    assert phase(stage) is Phase.LIVE


# Jobs that leave their consumer


NOTE = "its job no longer names the consumer billing, for which this run was held"


ALL, AT_ONCE = {"type": "all"}, {"type": "skip", "maxLatenessSeconds": 30}


@pytest.mark.parametrize(("misfire", "wanted"), [(ALL, State.SUCCESS), (AT_ONCE, State.EXPIRED)], ids=["all", "skip"])
def test_runs_held_for_a_consumer_that_their_job_no_longer_names_go_on_by_their_misfire_policy(
    stage: Stage, misfire: Mapping[str, object], wanted: State
) -> None:
    policies = {"misfire": misfire}
    planned = stage.create(EACH_5_MINUTES, action=event(consumer="billing"), policies=policies)
    stage.run(16 * 60)
    assert states(stage, planned) == [State.HELD] * 3

    stage.change(planned, action=event(), policies=policies)
    stage.run(20)

    assert [(run.state, run.notes) for run in stage.runs(planned)] == [(wanted, (NOTE,))] * 3
    stage.run(80)
    assert [each for _, each in reports(stage)] == ["", "NOTHING_WAITS"]
    exact(stage, planned)


def test_runs_held_for_a_consumer_follow_their_job_to_another_consumer(stage: Stage) -> None:
    planned = create(stage, EACH_5_MINUTES)
    stage.run(16 * 60)

    stage.change(planned, action=event(consumer="invoices"))
    stage.run(20)
    held = stage.runs(planned)
    assert {(run.state, run.consumer) for run in held} == {(State.HELD, "invoices")}
    assert len(held) == 3

    leases.take(stage.world, TENANT, "invoices", "b", 900)
    leases.start(stage.world, TENANT, "invoices", "b")
    stage.run(30)

    assert events(stage) == [("job.missed", text(NOON + n * 5 * MINUTE)) for n in (1, 2, 3)]
    exact(stage, planned)


def test_runs_go_on_at_once_if_the_other_consumer_is_live(stage: Stage) -> None:
    leases.take(stage.world, TENANT, "invoices", "b", 900)
    leases.start(stage.world, TENANT, "invoices", "b")
    stage.run(10)
    planned = create(stage, EACH_5_MINUTES)
    stage.run(11 * 60)
    leases.take(stage.world, TENANT, "invoices", "b", 900)

    stage.change(planned, action=event(consumer="invoices"))
    stage.run(30)

    assert states(stage, planned) == [State.SUCCESS] * 2
    assert [each for _, each in events(stage)] == [text(NOON + n * 5 * MINUTE) for n in (1, 2)]


def test_runs_whose_message_was_lost_go_on_with_the_consumers_wake(stage: Stage) -> None:
    planned = create(stage, EACH_5_MINUTES)
    stage.run(6 * 60)
    stage.change(planned, action=event())
    stage.sqs.purge(URLS[Lane.FAST])

    stage.run(16 * 60)

    assert set(states(stage, planned)) == {State.SUCCESS}


@pytest.mark.parametrize("first", ["leave", "delete"])
def test_a_consumer_that_is_deleted_after_its_jobs_left_it_leaves_nothing_held(stage: Stage, first: str) -> None:
    planned = create(stage, EACH_5_MINUTES)
    stage.run(6 * 60)

    if first == "leave":
        stage.change(planned, action=event())
    deletion.delete(stage.world, TENANT, "billing", force=True)
    stage.run(60)

    wanted = {State.SUCCESS} if first == "leave" else {State.MISSED}
    assert set(states(stage, planned)) == wanted
    stage.run(2_000)
    with stage.untapped():
        assert not any(item["sk"]["S"] == keys.consumer("billing") for item in stage.items()) or first == "delete"


def test_runs_held_for_the_consumer_of_a_job_that_goes_to_workers_go_there(stage: Stage) -> None:
    applications.register(stage.world, TENANT, "billing", None)
    planned = create(stage, EACH_5_MINUTES)
    stage.run(6 * 60)
    action = {"type": "queue", "application": "billing", "task": "report"}

    stage.change(planned, action=actions.draft(action, field="action", guard=guard.GuardSettings()))
    stage.run(20)

    [body] = stage.sqs.bodies(stage.world.queue.url(lane_of(TENANT, "billing", None)))
    assert json.loads(body)["run"] == stage.runs(planned)[0].uuid


# The reports that a consumer is away


def reports(stage: Stage) -> list[tuple[str, str]]:
    found = [*stage.bus.of(EventType.CONSUMER_AWAY), *stage.bus.of(EventType.CONSUMER_BACK)]
    return [(event["since"], event.get("reason", "")) for event in found]


def test_a_consumer_whose_program_died_is_reported_within_two_minutes_of_its_first_held_run(stage: Stage) -> None:
    create(stage, EACH_5_MINUTES)
    start(stage)
    stage.run(60)
    assert phase(stage) is Phase.LIVE

    stage.run((5 * MINUTE).total_seconds() - 60 + 118)

    since = text_ms(NOON + 5 * MINUTE)
    assert reports(stage) == [(since, "")]
    [away] = stage.bus.of(EventType.CONSUMER_AWAY)
    assert (away["consumer"], away["tenant"], away["waiting"]) == ("billing", TENANT, 1)
    assert stage.journal.counts["Away"] >= 1

    start(stage)
    stage.run(20)

    assert reports(stage) == [(since, ""), (since, "RECEIVED")]
    assert views.away(stage.world.table, 10) == []
    take(stage)
    stage.run(70)
    assert not is_watched(stage)


def is_watched(stage: Stage) -> bool:
    return any(item.get("sweep", {"S": ""})["S"].startswith(Waits.WATCH) for item in stage.items())


def test_a_consumer_that_stops_in_the_middle_of_its_replay_is_reported_again(stage: Stage) -> None:
    create(stage, EACH_MINUTE, limit=1_000)
    stage.run(600)
    take(stage, seconds=10)
    leases.start(stage.world, TENANT, "billing", "a")
    stage.deliver(Lane.FAST, most=1)
    stage.clock.advance(11)
    stage.run(150)

    away = stage.bus.of(EventType.CONSUMER_AWAY)

    assert len({event["id"] for event in away}) == 2
    assert [event["reason"] for event in stage.bus.of(EventType.CONSUMER_BACK)] == ["RECEIVED"]


def test_a_consumer_for_which_nothing_waits_any_more_is_reported_as_such(stage: Stage) -> None:
    planned = create(stage, {"at": "2027-03-01T12:05:00Z"}, keepSeconds=60)

    stage.run(300 + 115)
    assert len(reports(stage)) == 1
    stage.run(30 * 60)

    assert [reason for _, reason in reports(stage)] == ["", "NOTHING_WAITS"]
    assert states(stage, planned) == [State.MISSED]
    assert views.away(stage.world.table, 10) == []


def test_a_deleted_consumer_is_not_away(stage: Stage) -> None:
    planned = create(stage, EACH_MINUTE)
    stage.run(200)
    assert [each.name for each in views.away(stage.world.table, 10)] == ["billing"]
    stage.delete(planned)

    deletion.delete(stage.world, TENANT, "billing", force=True)
    stage.run(30 * 60)

    assert [reason for _, reason in reports(stage)] == ["", "DELETED"]
    assert views.away(stage.world.table, 10) == []
    assert not [item for item in stage.items() if item["pk"]["S"] == keys.STACK_AWAY]


def test_a_consumer_that_nothing_is_held_for_costs_nothing(stage: Stage) -> None:
    create(stage, EACH_5_MINUTES)
    start(stage, seconds=900)
    stage.run(60)
    leases.release(stage.world, TENANT, "billing", "a")

    stage.run(200)

    assert (reports(stage), is_watched(stage)) == ([], False)
