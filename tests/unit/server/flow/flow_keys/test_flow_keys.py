"""Jobs that share a flow key: how often and how many at once their calls are, and what becomes of who waits."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest

from sweephand.base.errors import Conflict, InvalidRequest
from sweephand.domain.collection import Collection
from sweephand.domain.flow_keys.flow_keys import CircuitRule, Enter, FlowKey, Go, Rate
from sweephand.domain.instants import EPOCH
from sweephand.domain.job import DEFAULT_COLLECTION, Pause
from sweephand.domain.run import Kind, Reason, State
from sweephand.domain.schedule import Lane
from sweephand.server.flow.flow_keys import calls as flow_keys
from sweephand.server.flow.flow_keys import flow_key_changes, turnstiles, waiting_line
from sweephand.server.flow.jobs import deletion
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.runs import results
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import FlowMemory
from sweephand.server.store.flow_keys import circuits
from sweephand.server.store.flow_keys import flow_key_lines as lines
from sweephand.server.store.flow_keys import flow_keys as store
from sweephand.testing.service import URLS
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, crash_before
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, exact, fixed, once

AT_NOON_1 = {"at": "2027-03-01T12:01:00Z"}
ASYNC = {"outcome": {"on202": "wait", "callbackTimeoutSeconds": 600}}
KEYED = {"flowKey": "k"}
UPDATE, TRANSACTION, QUERY = "dynamodb.UpdateItem", "dynamodb.TransactWriteItems", "dynamodb.Query"
PUT, SEND = "dynamodb.PutItem", "sqs.SendMessageBatch"


def key(stage: Stage, **terms: Any) -> FlowKey:
    return flow_key_changes.create(stage.world, FlowKey(TENANT, "k", EPOCH, EPOCH, **terms))


def change(stage: Stage, **members: Any) -> FlowKey:
    return flow_key_changes.change(stage.world, TENANT, "k", lambda before: replace(before, **members), None)


def jobs(stage: Stage, count: int, timing: Any = None, **members: Any) -> list[Planned]:
    members.setdefault("policies", KEYED)
    return [stage.create(timing or AT_NOON_1, **members) for _ in range(count)]


def stands(stage: Stage, planned: list[Planned]) -> list[State]:
    return [stage.only_run(each).state for each in planned]


def called_at(stage: Stage) -> list[float]:
    """Seconds past 12:01 of each call, in order."""
    return [round((each.at - NOON - MINUTE).total_seconds(), 3) for each in stage.endpoint.received]


def between_calls(stage: Stage) -> list[float]:
    """Seconds from each call to the next; rounded, for 12.252 - 8.252 is less than 4."""
    return [round(after - before, 3) for before, after in itertools.pairwise(called_at(stage))]


def line(stage: Stage) -> list[str]:
    return [item["sk"]["S"] for item in stage.items() if item["sk"]["S"].startswith("LINE#")]


def turnstile(stage: Stage) -> Any:
    with stage.untapped():
        return store.read_stile(stage.world.table, TENANT, "k")


def most_at_once(stage: Stage, takes: timedelta) -> int:
    begun = [each.at for each in stage.endpoint.received]
    return max(sum(at <= other < at + takes for other in begun) for at in begun)


# The rate


def test_calls_of_all_jobs_are_spaced_by_the_rate(stage):
    key(stage, rate=Rate(1, 10))
    planned = jobs(stage, 4)

    stage.run(180)

    begun = called_at(stage)
    assert len(begun) == 4
    assert [after - before for before, after in itertools.pairwise(begun) if after - before < 9] == []
    assert begun[-1] < 32
    assert stands(stage, planned) == [State.SUCCESS] * 4
    assert line(stage) == []
    assert turnstile(stage).wake_at is None


def test_a_run_called_before_it_confirms_joining_uses_one_turn(stage):
    key(stage, rate=Rate(1, 10))
    jobs(stage, 4)
    joins = 0

    def others_look(passing: Passing, act: Act) -> Any:
        nonlocal joins
        done = act()
        if passing.name == TRANSACTION and "LINE#" in str(passing.request):
            joins += 1
            with stage.untapped():
                waiting_line.call_next(stage.world, TENANT, "k")
        return done

    with stage.taps.faulty(others_look):
        stage.run(65, most=1)
    later = jobs(stage, 1, once(70 * SECOND))
    stage.run(120)

    assert joins >= 3
    assert called_at(stage)[3] < 32
    assert stands(stage, later) == [State.SUCCESS]
    assert called_at(stage)[4] < 42


@pytest.mark.parametrize("fault", [crash_before, crash_after])
def test_a_retry_in_place_uses_a_turn_of_its_own(stage, fault):
    """Its executor died when the place was its result's, before the outcome was written."""
    key(stage, rate=Rate(1, 60), parallelism=2)
    stage.endpoint.answer = ACCEPTED
    jobs(stage, 2, action=stage.action(**ASYNC))
    met = []

    def at_its_outcome(passing: Passing, act: Act) -> Any:
        outcome = passing.name == UPDATE and "ACK_RECVD" in str(passing.request)
        met.extend([passing.name] * outcome)
        return fault(passing, act) if outcome and len(met) == 1 else act()

    with stage.taps.faulty(at_its_outcome), contextlib.suppress(Crash):
        stage.run(70)
    stage.run(400)

    assert met
    assert len(called_at(stage)) == (3 if fault is crash_before else 2)
    assert all(gap >= 59 for gap in between_calls(stage))


def test_a_rate_of_many_per_second_delays_few_runs(stage):
    key(stage, rate=Rate(100, 1))
    jobs(stage, 30)

    stage.run(90)

    assert len(called_at(stage)) == 30
    assert called_at(stage)[-1] < 3


def test_retries_and_manual_runs_count_and_error_actions_do_not(stage):
    key(stage, rate=Rate(1, 30))
    stage.endpoint.answer = lambda call: BUSY if call.attempt == 1 and "alarm" not in str(call.payload) else OK
    retried = stage.create(AT_NOON_1, action=stage.action(retry=fixed(5)), policies=KEYED)
    alarm = stage.action(payload={"alarm": 1})
    failing = stage.create(AT_NOON_1, action=stage.action(), error_action=alarm, policies=KEYED)
    stage.run(70)
    manual.run_now(stage.world, TENANT, retried.job.id, None, None)

    stage.run(180)

    own = [each for each in stage.endpoint.received if "alarm" not in str(each.call.payload)]
    alarms = [each for each in stage.endpoint.received if "alarm" in str(each.call.payload)]
    gaps = [(after.at - before.at).total_seconds() for before, after in itertools.pairwise(own)]
    assert len(own) == 5  # two of retried, one of failing, two by hand
    assert all(gap >= 29 for gap in gaps)
    (failed,) = stage.runs(failing, Kind.SCHEDULED)
    assert failed.finished_at is not None
    assert [each.at - failed.finished_at < 2 * SECOND for each in alarms] == [True]


# Parallelism


def test_runs_of_one_place_start_one_at_a_time_as_soon_as_the_previous_one_ends(stage):
    key(stage, parallelism=1)
    planned = jobs(stage, 5)
    stage.endpoint.takes_s = 4.0

    stage.run(120)

    assert len(called_at(stage)) == 5
    assert all(4 <= gap < 6 for gap in between_calls(stage))
    assert stands(stage, planned) == [State.SUCCESS] * 5
    assert turnstile(stage).places == {}


def test_a_run_waiting_for_its_result_holds_its_place(stage):
    key(stage, parallelism=1)
    stage.endpoint.answer = ACCEPTED
    first, second = jobs(stage, 2, action=stage.action(**ASYNC))
    stage.run(300)
    waiting = [each for each in (first, second) if stage.only_run(each).state is State.ACK_RECVD]
    assert len(waiting) == len(called_at(stage)) == 1

    run = stage.only_run(waiting[0])
    results.record(stage.world, TENANT, str(run.schedule_id), run.uuid, success=True, message=None)
    stage.run(5)

    assert len(called_at(stage)) == 2


def test_a_run_without_a_result_holds_its_place_until_the_deadline(stage):
    key(stage, parallelism=1)
    stage.endpoint.answer = ACCEPTED
    planned = jobs(stage, 2, action=stage.action(**ASYNC))

    stage.run(60 + 590)
    assert len(called_at(stage)) == 1
    stage.run(60)

    assert len(called_at(stage)) == 2
    assert State.UNKNOWN in stands(stage, planned)


def test_a_place_is_free_again_after_its_executor_dies(stage):
    key(stage, parallelism=1)
    planned = jobs(stage, 2)
    stage.endpoint.script = [_deadly]

    with pytest.raises(Crash):
        stage.run(70)
    stage.run(180)

    assert len(called_at(stage)) == 3
    assert called_at(stage)[1] >= 25
    assert stands(stage, planned) == [State.SUCCESS] * 2


def _deadly(_call: object) -> Any:
    raise Crash


def test_a_cancelled_run_holds_its_place_while_its_call_may_be_active(stage):
    key(stage, parallelism=1)
    first, _second = jobs(stage, 2)

    def cancel(call: Any) -> Any:
        schedule, uuid = call.run_id.split("_")
        results.cancel(stage.world, TENANT, schedule, uuid)
        other = replace(stage.world, memory=FlowMemory())
        stage.world, own = other, stage.world
        stage.deliver_all()
        stage.world = own
        return OK

    stage.endpoint.script = [cancel]
    stage.run(62)

    assert len(called_at(stage)) <= 2
    stage.run(60)
    assert len(called_at(stage)) == 2
    del first


# Waiting runs


def test_a_waiting_run_says_so_and_makes_no_requests(stage):
    key(stage, parallelism=1)
    stage.endpoint.answer = ACCEPTED
    planned = jobs(stage, 3, action=stage.action(**ASYNC))
    stage.run(100)  # a copy of a message that met the first one at work is back after the lease
    waiting = [run for run in map(stage.only_run, planned) if run.state is State.QUEUED]

    assert len(waiting) == len(line(stage)) == 2
    assert all(run.message and run.message.startswith("waits for the flow key k") for run in waiting)
    assert all((run.lease_owner, run.lease_until, run.wake_at, run.first_started_at) == (None,) * 4 for run in waiting)
    assert stage.sqs.bodies(URLS[Lane.FAST]) == [] or all(
        '"subject":"flow"' in body for body in stage.sqs.bodies(URLS[Lane.FAST])
    )


def test_a_purged_queue_delays_waiting_runs_by_a_minute_or_two(stage):
    key(stage, parallelism=1)
    planned = jobs(stage, 3)
    stage.run(59)
    stage.deliver_all()
    stage.clock.move_to(NOON + MINUTE + SECOND)
    stage.deliver(most=3)
    stage.sqs.purge(URLS[Lane.FAST])

    stage.run(400)

    assert stands(stage, planned) == [State.SUCCESS] * 3


def test_a_pause_holds_all_runs_and_a_resume_releases_them_immediately(stage):
    key(stage, parallelism=2)
    planned = jobs(stage, 3)
    change(stage, pause=flow_key_changes.paused(flow_key_changes.find(stage.world, TENANT, "k"), NOON, "note").pause)

    stage.run(3_600)
    assert called_at(stage) == []
    assert stands(stage, planned) == [State.QUEUED] * 3

    change(stage, pause=None)
    stage.run(5)
    assert stands(stage, planned) == [State.SUCCESS] * 3


def test_a_faster_rate_applies_to_waiting_runs(stage):
    key(stage, rate=Rate(1, 3_600))
    planned = jobs(stage, 4)
    stage.run(120)
    assert len(called_at(stage)) == 1

    change(stage, rate=Rate(1, 1))
    stage.run(10)

    assert stands(stage, planned) == [State.SUCCESS] * 4


def test_a_lower_number_of_places_applies_immediately(stage):
    key(stage, parallelism=3)
    stage.endpoint.answer = ACCEPTED
    planned = jobs(stage, 4, action=stage.action(**ASYNC))
    stage.run(65)
    assert len(called_at(stage)) == 3
    change(stage, parallelism=1)

    open_runs = [run for run in map(stage.only_run, planned) if run.state is State.ACK_RECVD]
    for n, run in enumerate(open_runs):
        assert len(called_at(stage)) == 3, n
        results.record(stage.world, TENANT, str(run.schedule_id), run.uuid, success=True, message=None)
        stage.run(5)

    assert len(called_at(stage)) == 4


def test_an_occurrence_does_not_begin_later_than_its_misfire_policy_allows(stage):
    key(stage, rate=Rate(1, 120))
    late = {"type": "sap", "maxLatenessSeconds": 90}
    planned = jobs(stage, 2, policies={**KEYED, "misfire": late})

    stage.run(400)

    assert sorted(stands(stage, planned)) == [State.EXPIRED, State.SUCCESS]
    assert {stage.only_run(each).reason for each in planned} == {Reason.ON_TIME, Reason.MAX_LATENESS}
    assert len(called_at(stage)) == 1
    for each in planned:
        exact(stage, each)


def test_a_late_run_uses_up_no_turn(stage):
    """Twice as many as the rate bears, for a quarter of an hour: half of them end as too late, the rate is used."""
    key(stage, rate=Rate(6, 60))
    late = {"type": "all", "maxLatenessSeconds": 60}
    (planned,) = jobs(
        stage, 1, {"every": "PT5S", "startTime": "2027-03-01T12:01:00Z"}, policies={**KEYED, "misfire": late}
    )
    other = stage.create(policies=KEYED)

    stage.run(600)
    manual.run_now(stage.world, TENANT, other.job.id, None, None)
    stage.run(360)

    a_minute = Counter(at // 60 for at in called_at(stage))
    assert [minute for minute in range(15) if a_minute[minute] < 4] == []
    assert len(called_at(stage)) >= 80
    (by_hand,) = [run for run in stage.runs(other.job.id) if run.kind is Kind.MANUAL]
    assert by_hand.first_started_at - by_hand.planned_at < timedelta(seconds=150)
    assert {run.state for run in stage.runs(planned)} >= {State.EXPIRED, State.SUCCESS}


def test_a_run_cancelled_while_waiting_leaves_the_line(stage):
    key(stage, rate=Rate(1, 60))
    planned = jobs(stage, 3)
    stage.run(65)
    waiting = [run for run in map(stage.only_run, planned) if run.state is State.QUEUED]

    results.cancel(stage.world, TENANT, str(waiting[0].schedule_id), waiting[0].uuid)
    stage.run(200)

    assert sorted(stands(stage, planned)) == [State.CANCELLED, State.SUCCESS, State.SUCCESS]
    assert line(stage) == []


def test_runs_of_a_deleted_job_leave_the_line_and_their_key_can_be_deleted(stage):
    key(stage, rate=Rate(1, 60))
    planned = jobs(stage, 3)
    stage.run(65)
    for each in planned:
        stage.delete(each)
    with pytest.raises(Conflict):
        flow_key_changes.delete(stage.world, TENANT, "k", None)

    stage.run(1_200)

    assert line(stage) == []
    flow_key_changes.delete(stage.world, TENANT, "k", None)
    assert [item for item in stage.items() if "KEY#" in item["pk"]["S"] + item["sk"]["S"]] == []


def test_a_job_that_no_longer_names_a_key_does_not_wait_for_it(stage):
    key(stage, rate=Rate(1, 3_600))
    first, second = jobs(stage, 2)
    stage.run(65)
    (waiting,) = [each for each in (first, second) if stage.only_run(each).state is State.QUEUED]

    stage.change(waiting, policies={})
    change(stage, description="whoever waits is called")
    change(stage, rate=Rate(1, 1))
    stage.run(5)

    assert stage.only_run(waiting).state is State.SUCCESS
    stage.run(200)
    assert line(stage) == []


def paused(stage: Stage, *, still: bool = True) -> None:
    change(stage, pause=Pause(stage.clock.now(), None) if still else None)


def test_a_run_cancelled_under_a_paused_key_leaves_the_line_immediately(stage):
    key(stage, parallelism=1)
    paused(stage)
    planned = jobs(stage, 3)
    stage.run(65)
    assert len(line(stage)) == 3

    for each in planned:
        run = stage.only_run(each)
        results.cancel(stage.world, TENANT, str(run.schedule_id), run.uuid)
    stage.run(5)

    assert line(stage) == []
    stage.run(180)
    assert turnstile(stage).wake_at is None


def test_the_turn_of_a_cancelled_run_goes_to_another_run(stage):
    key(stage, rate=Rate(1, 40))
    planned = jobs(stage, 3)
    stage.run(65)
    waiting = sorted((run for run in map(stage.only_run, planned) if run.state is State.QUEUED), key=lines.order_of)
    assert turnstile(stage).called >= lines.order_of(waiting[0])

    results.cancel(stage.world, TENANT, str(waiting[0].schedule_id), waiting[0].uuid)
    stage.run(45)

    assert 38 <= called_at(stage)[1] < 45
    assert sorted(stands(stage, planned)) == [State.CANCELLED, State.SUCCESS, State.SUCCESS]


def test_a_run_that_waits_too_long_under_a_paused_key_still_ends(stage):
    key(stage, parallelism=1)
    paused(stage)
    late = {"type": "all", "maxLatenessSeconds": 60}
    planned = jobs(stage, 2, policies={**KEYED, "misfire": late})
    (other,) = jobs(stage, 1)

    stage.run(60 + 60 + 120)

    assert stands(stage, planned) == [State.EXPIRED] * 2
    assert stage.only_run(other).state is State.QUEUED
    assert len(line(stage)) == 1
    stage.run(3_600)
    paused(stage, still=False)
    stage.run(5)
    assert stage.only_run(other).state is State.SUCCESS


@pytest.mark.parametrize("named", [{}, {"flowKey": "other"}])
def test_a_run_that_waits_under_a_former_key_of_its_job_is_released(stage, named):
    key(stage, parallelism=1)
    flow_key_changes.create(stage.world, FlowKey(TENANT, "other", EPOCH, EPOCH))
    paused(stage)
    planned = jobs(stage, 2, {"every": "PT20S", "count": 3, "startTime": "2027-03-01T12:01:00Z"})
    stage.run(110)
    assert len(line(stage)) == 6

    stage.change(planned[0], policies=named)
    stage.run(120)

    assert {run.state for run in stage.runs(planned[0])} == {State.SUCCESS}
    assert {run.state for run in stage.runs(planned[1])} == {State.QUEUED}
    stage.delete(planned[1])
    stage.run(150)
    assert {run.state for run in stage.runs(planned[1])} == {State.CANCELLED}
    assert line(stage) == []
    flow_key_changes.delete(stage.world, TENANT, "k", None)


@pytest.mark.repeats
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost])
@pytest.mark.parametrize("skip", range(6))
def test_a_run_whose_job_dropped_its_key_leaves_the_line_whichever_call_fails(stage, fault, skip):
    """Letting go and sending for them: the next look does again what this one did not, or did alone."""
    key(stage, parallelism=1)
    paused(stage)
    planned = jobs(stage, 1, {"every": "PT20S", "count": 3, "startTime": "2027-03-01T12:01:00Z"})
    stage.run(110)
    stage.change(planned[0], policies={})
    met = []

    def goes_wrong(passing: Passing, act: Act) -> Any:
        lets_go = passing.name == PUT and passing.request["Item"]["sk"]["S"].startswith("LINE#")
        if not lets_go and passing.name != SEND:
            return act()
        met.append(passing.name)
        return fault(passing, act) if len(met) == skip + 1 else act()

    with stage.taps.faulty(goes_wrong), contextlib.suppress(Crash):
        stage.run(120)
    stage.run(300)

    assert met[: skip + 1] == [SEND, PUT, PUT, PUT, SEND, SEND][: skip + 1]
    assert [run.state for run in stage.runs(planned[0])] == [State.SUCCESS] * 3
    assert len(called_at(stage)) == 3
    assert line(stage) == []


def test_runs_that_exclude_each_other_keep_their_turn_while_they_wait(stage):
    key(stage, rate=Rate(1, 90))
    jobs(stage, 1)
    (own,) = jobs(stage, 1, {"cron": "* * * * *", "count": 3}, policies={**KEYED, "overlap": "skip"})

    stage.run(600)

    states = [(run.state, run.reason) for run in stage.runs(own)]
    assert (State.SKIPPED, Reason.OVERLAP) in states
    assert {state for state, _ in states} == {State.SUCCESS, State.SKIPPED}
    exact(stage, own)


# Circuits


def failures(stage: Stage) -> list[Any]:
    return [each for _, each in circuits.listed(stage.world.table, TENANT, "k")]


def test_ten_failures_in_a_row_open_the_circuit_and_one_call_every_five_seconds_probes_it(stage):
    key(stage, circuit=CircuitRule())
    stage.endpoint.answer = BUSY
    planned = jobs(stage, 14)

    stage.run(63)
    (circuit,) = failures(stage)
    assert circuit.opened_at is not None
    before = len(called_at(stage))
    assert 10 <= before <= 14
    waiting = 14 - before
    assert len(line(stage)) == waiting

    stage.run(60)

    probes = called_at(stage)[before:]
    assert len(probes) == waiting
    assert all(round(after - first, 3) >= 5 for first, after in itertools.pairwise(probes))
    assert stands(stage, planned) == [State.ERROR] * 14


def open_circuit(stage: Stage, waiting: int) -> list[Planned]:
    """Makes a circuit that has opened, and so many runs that wait for it."""
    stage.endpoint.answer = BUSY
    key(stage, circuit=CircuitRule(failures=2, probe_s=30))
    jobs(stage, 2)
    stage.run(63)
    (circuit,) = failures(stage)
    assert circuit.opened_at is not None
    later = jobs(stage, waiting, {"at": "2027-03-01T12:01:10Z"})
    stage.run(10)
    assert stands(stage, later) == [State.QUEUED] * waiting
    assert {stage.only_run(each).reason for each in later} == {Reason.CIRCUIT_OPEN}
    return later


def test_the_age_of_a_cached_circuit_counts_from_the_start_of_its_read(stage):
    key(stage, circuit=CircuitRule(failures=2, probe_s=30))

    def slowly(passing: Passing, act: Act) -> Any:
        answer = act()
        stage.clock.advance(4)
        return answer

    with stage.taps.faulty(slowly):
        flow_keys._circuit(stage.world, TENANT, "k", "x")
    stage.clock.advance(1)
    stage.taps.passed.clear()

    flow_keys._circuit(stage.world, TENANT, "k", "x")

    assert stage.taps.names() == ["dynamodb.GetItem"]


def test_a_success_closes_the_circuit_and_releases_all_waiting_runs(stage):
    later = open_circuit(stage, 4)
    stage.endpoint.answer = OK

    stage.run(40)

    assert failures(stage) == []
    assert stands(stage, later) == [State.SUCCESS] * 4


def test_a_refusal_of_the_target_closes_its_circuit(stage):
    later = open_circuit(stage, 2)
    stage.endpoint.answer = WRONG

    stage.run(40)

    assert failures(stage) == []
    assert stands(stage, later) == [State.REQUEST_ERROR] * 2


def test_the_circuit_of_one_target_does_not_delay_another(stage):
    open_circuit(stage, 2)
    stage.endpoint.answer = lambda call: OK if call.payload else BUSY
    (other,) = jobs(stage, 1, once(120 * SECOND), action=stage.action(url="https://example.org/x", payload={"a": 1}))

    stage.run(60)

    assert stage.only_run(other).state is State.SUCCESS
    assert stage.only_run(other).lateness_ms < 5_000


def test_a_run_stops_waiting_for_a_circuit_at_the_greatest_age_of_its_retries(stage):
    stage.endpoint.answer = BUSY
    key(stage, circuit=CircuitRule(failures=1, probe_s=3_600))
    jobs(stage, 1)
    stage.run(63)
    retry = fixed(5, maxAgeSeconds=60)
    (late,) = jobs(stage, 1, {"at": "2027-03-01T12:01:10Z"}, action=stage.action(retry=retry))

    stage.run(7_300)

    run = stage.only_run(late)
    assert (run.state, run.reason) == (State.ERROR, Reason.CIRCUIT_OPEN)
    exact(stage, late)


@pytest.mark.parametrize("age", [{"policies": {**KEYED, "misfire": {"type": "all", "maxLatenessSeconds": 20}}}, {}])
def test_a_late_run_does_not_keep_an_open_circuit_from_being_probed(stage, age):
    stage.endpoint.answer = BUSY
    key(stage, circuit=CircuitRule(failures=2, probe_s=5))
    retry = {} if age else {"action": stage.action(retry=fixed(3_600, maxAgeSeconds=20))}
    every_second = {"every": "PT1S", "count": 60, "startTime": "2027-03-01T12:01:00Z"}
    jobs(stage, 1, every_second, **retry, **age)
    stage.run(105)
    tried = [at for at in called_at(stage) if at > 15]
    assert all(after - before <= 9 for before, after in itertools.pairwise(tried))

    stage.endpoint.answer = OK
    stage.run(12)

    assert failures(stage) == []


def test_removing_the_circuits_releases_all_runs(stage):
    later = open_circuit(stage, 2)

    change(stage, circuit=None)
    stage.endpoint.answer = OK
    stage.run(30)

    assert stands(stage, later) == [State.SUCCESS] * 2
    assert failures(stage) == []


def test_circuits_are_deleted_with_their_flow_key(stage):
    stage.endpoint.answer = BUSY
    key(stage, circuit=CircuitRule())
    (planned,) = jobs(stage, 1)
    stage.run(63)
    assert len(failures(stage)) == 1
    stage.change(planned, policies={})

    flow_key_changes.delete(stage.world, TENANT, "k", None)

    assert [item for item in stage.items() if "KEY#" in item["pk"]["S"] + item["sk"]["S"]] == []


# Jobs that name a key


def test_a_job_can_only_name_an_existing_key_and_protects_it_from_deletion(stage):
    with pytest.raises(InvalidRequest, match='no such flow key: "k"'):
        jobs(stage, 1)
    assert [item for item in stage.items() if item["sk"]["S"] == "JOB"] == []

    key(stage)
    (planned,) = jobs(stage, 1)
    assert flow_key_changes.find(stage.world, TENANT, "k").users == 1
    with pytest.raises(Conflict, match="named by 1"):
        flow_key_changes.delete(stage.world, TENANT, "k", None)
    with pytest.raises(InvalidRequest, match='no such flow key: "other"'):
        stage.change(planned, policies={"flowKey": "other"})

    stage.change(planned, policies={})
    assert flow_key_changes.find(stage.world, TENANT, "k").users == 0
    flow_key_changes.delete(stage.world, TENANT, "k", None)


def test_the_key_of_a_collection_applies_to_its_jobs_without_a_key(stage):
    key(stage, parallelism=1)
    flow_key_changes.create(stage.world, FlowKey(TENANT, "own", EPOCH, EPOCH))
    edit = tenancy.change_collection

    def name(value: str | None) -> Collection:
        return edit(stage.world, TENANT, DEFAULT_COLLECTION, lambda there: replace(there, flow_key=value), None)

    with pytest.raises(InvalidRequest, match='no such flow key: "none"'):
        name("none")
    name("k")
    assert flow_key_changes.find(stage.world, TENANT, "k").users == 1
    stage.endpoint.answer = ACCEPTED
    jobs(stage, 3, policies={}, action=stage.action(**ASYNC))
    jobs(stage, 1, policies={"flowKey": "own"}, action=stage.action(**ASYNC))

    stage.run(65)

    assert len(called_at(stage)) == 2
    name(None)
    assert flow_key_changes.find(stage.world, TENANT, "k").users == 0


def test_a_deleted_job_no_longer_names_a_key(stage):
    key(stage)
    (planned,) = jobs(stage, 1)
    deletion.delete_job(stage.world, TENANT, planned.job.id, None)
    assert flow_key_changes.find(stage.world, TENANT, "k").users == 0


# Costs


def test_a_job_without_a_key_makes_no_additional_calls(stage):
    stage.create({"every": "PT1H", "startTime": "2027-03-01T12:01:00Z"})
    stage.run(59)
    stage.clock.move_to(NOON + MINUTE + SECOND)
    del stage.taps.passed[:]

    stage.deliver(most=1)

    calls = [passing for passing in stage.taps.passed if passing.service == "dynamodb"]
    assert [passing.operation for passing in calls] == [
        "BatchGetItem",  # the gate
        "BatchGetItem",  # tenant and collection, every two seconds
        "PutItem",  # the claim
        "UpdateItem",  # the outcome
    ]
    assert not any("KEY#" in str(passing.request) for passing in calls)


def test_one_write_answers_threads_that_ask_at_the_same_time(stage):
    key(stage, parallelism=5)
    until = stage.clock.now() + MINUTE
    asks = [Enter(f"{n:016}", until) for n in range(10)]
    answers: dict[int, object] = {}

    def ask(n: int) -> None:
        answers[n] = turnstiles.ask(stage.world, TENANT, "k", asks[n])

    others = [Thread(target=ask, args=(n,)) for n in range(1, 10)]

    def meanwhile(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.GetItem" and not others[0].ident:
            for other in others:
                other.start()
            group = stage.world.memory.of(turnstiles.Turnstiles).groups
            while len(group[TENANT, "k"].asks if (TENANT, "k") in group else []) < len(others):
                pass
        return act()

    with stage.taps.faulty(meanwhile):
        ask(0)
        for other in others:
            other.join()

    assert sum(isinstance(said, Go) for said in answers.values()) == 5
    assert len([name for name in stage.taps.names() if name == UPDATE]) == 2


# Faults


def test_a_turn_whose_answer_was_lost_counts_once(stage):
    key(stage, rate=Rate(1, 100))
    jobs(stage, 1)
    lost = 0

    def fault(passing: Passing, act: Act) -> Any:
        nonlocal lost
        if passing.name == UPDATE and "TURN#k" in str(passing.request.get("Key")) and not lost:
            lost += 1
            return answer_lost(passing, act)
        return act()

    with stage.taps.faulty(fault):
        stage.run(70)

    assert lost == 1
    assert turnstile(stage).next_at - (NOON + MINUTE) < timedelta(seconds=102)
    assert len(called_at(stage)) == 1


@pytest.mark.repeats
@pytest.mark.parametrize("skip", range(12))
def test_no_run_waits_forever_wherever_an_executor_dies(stage, skip):
    key(stage, parallelism=1, rate=Rate(1, 2))
    planned = jobs(stage, 3)
    stage.run(59)
    seen = 0

    def fault(passing: Passing, act: Act) -> Any:
        nonlocal seen
        seen += 1
        if seen == 4 + skip * 3:
            act()
            raise Crash
        return act()

    try:
        with stage.taps.faulty(fault):
            stage.run(30)
    except Crash:
        pass
    stage.run(500)

    assert seen >= 4 + skip * 3
    assert stands(stage, planned) == [State.SUCCESS] * 3
    assert line(stage) == []
    assert turnstile(stage).places == {}
