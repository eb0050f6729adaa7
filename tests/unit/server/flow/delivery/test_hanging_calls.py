"""Calls that hang next to calls that do not, at the template's default size, each call for as long as it takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sweephand.domain.run import Outcome, Reason, State, Verdict
from sweephand.server.actions.call import Call
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.tenants import tenants
from sweephand.testing.service import DEAD
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import OK
from tests.support.executors import Simulation, executors
from tests.support.stage import TENANT, Stage
from tests.support.taps import refused

HANGS = Outcome(Verdict.FAILED, Reason.NO_ANSWER, message="no answer within 15 s", retryable=True)
SECONDS = {"every": "PT1S"}


def p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


class Load:
    """Five jobs each second that answer in 0.12 s, and jobs that hang. silent: job id -> seconds without an answer."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.silent: set[str] = set()
        self.late: dict[str, list[float]] = {}

    def create(
        self, number: int, url: str, timing: dict[str, object], *, hangs: bool = False, **outcome: object
    ) -> list[Planned]:
        made = []
        for n in range(number):
            action = self.stage.action(url=url.format(n=n), retry={"type": "none"}, outcome=outcome)
            planned = self.stage.create(timing, action=action)
            if hangs:
                self.silent.add(planned.job.id)
            made.append(planned)
        return made

    def answer(self, simulation: Simulation) -> Callable[[Call], Outcome]:
        def answer(call: Call) -> Outcome:
            late = (self.stage.clock.now() - call.planned_at).total_seconds()
            self.late.setdefault("silent" if call.job_id in self.silent else "others", []).append(late)
            hangs = call.job_id in self.silent
            simulation.time.sleep(15 if hangs else 0.12)
            return HANGS if hangs else OK

        return answer


@pytest.fixture
def load(stage: Stage) -> Load:
    return Load(stage)


def play(load: Load, seconds: float) -> None:
    with executors(load.stage) as simulation:
        load.stage.endpoint.answer = load.answer(simulation)
        simulation.run(seconds)


def test_other_jobs_keep_their_second_while_one_host_hangs_for_24_calls_a_minute(load: Load) -> None:
    load.create(5, "https://works.example/{n}", SECONDS)
    load.create(2, "https://hangs.example/{n}", {"every": "PT5S"}, hangs=True)

    play(load, 90)

    assert len(load.late["others"]) >= 5 * 80
    assert p99(load.late["others"]) <= 2
    there = tenants.read_tenant(load.stage.world.table, TENANT)
    assert there is not None
    assert there.silences.keys() == {"https://hangs.example"}


@pytest.mark.long
def test_other_jobs_are_hardly_late_when_a_hundred_jobs_begin_to_hang_in_one_second(load: Load) -> None:
    load.create(5, "https://works.example/{n}", SECONDS)
    load.create(100, "https://hangs.example/{n}", {"every": "PT1M"}, hangs=True)

    play(load, 100)

    assert p99(load.late["others"]) <= 5
    assert max(load.late["others"]) <= 5


@pytest.mark.long
def test_jobs_of_the_slow_queue_are_hardly_late_while_the_calls_of_a_hundred_jobs_hang_there(load: Load) -> None:
    load.create(100, "https://hangs.example/{n}", {"every": "PT1M"}, hangs=True)
    load.create(2, "https://works.example/{n}", {"every": "PT2S"}, answerTimeoutSeconds=30)

    play(load, 240)

    assert p99(load.late["others"]) <= 5


@pytest.mark.parametrize("minutes", [3, pytest.param(60, marks=pytest.mark.long)])
def test_a_host_that_hangs_for_an_hour_delays_only_its_own_100_jobs_and_each_run_has_a_reason(
    load: Load, minutes: int
) -> None:
    hanging = load.create(100, "https://hangs.example/{n}", {"every": "PT1M"}, hangs=True)
    load.create(2, "https://works.example/{n}", {"every": "PT2S"})

    play(load, minutes * 60)

    assert len(load.late["others"]) >= minutes * 60 - 4
    assert p99(load.late["others"]) <= 5
    runs = [run for planned in hanging for run in load.stage.runs(planned)]
    assert len(runs) >= 100 * (minutes - 1)
    for run in runs:
        assert run.reason is Reason.NO_ANSWER or run.state in {State.RUNNING, State.QUEUED}, (run.state, run.reason)
    there = tenants.read_tenant(load.stage.world.table, TENANT)
    assert there is not None
    assert there.silences.keys() == {"https://hangs.example"}


def test_other_jobs_are_hardly_late_when_each_hanging_call_is_to_another_host(load: Load) -> None:
    load.create(5, "https://works.example/{n}", SECONDS)
    load.create(24, "https://hangs-{n}.example/a", {"every": "PT1M"}, hangs=True)

    play(load, 90)

    assert p99(load.late["others"]) <= 2


@pytest.mark.long
def test_an_executor_deletes_what_it_received_itself_and_leaves_what_it_could_not_settle(load: Load) -> None:
    load.create(1, "https://hangs.example/a", {"every": "PT1M"}, hangs=True)
    load.create(20, "https://works.example/{n}", {"every": "PT1S", "count": 20})

    play(load, 150)

    assert len(load.late["others"]) == 20 * 20
    run_ids = [each.run_id for each in load.stage.endpoint.received]
    assert len(run_ids) == len(set(run_ids))
    assert not load.stage.sqs.bodies(DEAD)


@pytest.mark.long
@pytest.mark.parametrize("operation", ["ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"])
def test_a_queue_that_refuses_an_executor_makes_no_call_twice(load: Load, operation: str) -> None:
    load.create(5, "https://works.example/{n}", {"every": "PT2S"})
    load.create(3, "https://hangs.example/{n}", {"every": "PT20S"}, hangs=True)

    def fault(passing: Passing, act: Act) -> object:
        return refused(passing, act) if passing.operation == operation else act()

    load.stage.taps.fault = fault
    play(load, 90)

    run_ids = [each.run_id for each in load.stage.endpoint.received]
    assert len(load.late["others"]) >= 5 * 40
    assert len(run_ids) == len(set(run_ids))
