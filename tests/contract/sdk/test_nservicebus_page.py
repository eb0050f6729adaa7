"""The part "Current Limitations" of NServiceBus's page on scheduling: a test for each sentence, in the page's order.

Each name says what holds here instead. Only the sentence that nothing needs to be done in most cases has no test.
"""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from sweephand.sdk.worker import Dedupe, MemoryMarks, Worker
from sweephand.testing.sources import SeededChance
from tests.contract.native.api import Api
from tests.contract.sdk.hands import Hands, started
from tests.contract.sdk.test_worker import jobs, runs
from tests.unit.sdk.test_loop import WITHIN_S, running, worker_of

HOUR_S = 3_700
"""An hour, and the time that its last task takes to arrive."""


def hourly(seen: list[Any], *, name: str = "report", **members: Any):
    """Returns what declares a task that appends the instant for which it was planned."""
    return lambda worker: worker.every("1h", name=name, **members)(lambda run: seen.append(run.planned_at))


# The scheduler is not durable: a restart makes tasks anew, and what was sent before is not found.


def test_a_restart_keeps_all_tasks_and_their_identifiers(api: Api):
    started(api, hourly([]))
    before = {key: (job["id"], job["nextRunAt"]) for key, job in jobs(api).items()}

    for _ in range(3):
        api.stage.run(60)
        started(api, hourly([]))

    assert {key: (job["id"], job["nextRunAt"]) for key, job in jobs(api).items()} == before


def test_a_task_sent_before_a_restart_is_found_after_it(api: Api):
    seen: list[datetime] = []
    started(api, hourly([]))
    api.stage.run(HOUR_S)  # it waits in the queue, and the process ends

    assert started(api, hourly(seen)).work() == 1

    assert len(seen) == 1
    assert [run["state"] for run in runs(api)] == ["SUCCESS"]


# Tasks cannot be cancelled or changed.


def test_a_task_can_be_cancelled(api: Api):
    seen: list[datetime] = []
    hands = started(api, hourly(seen))

    hands.worker.cancel("report")
    hands.live(HOUR_S, 60)

    assert seen == []


def test_a_task_can_be_changed_and_keeps_its_identifier(api: Api):
    seen: list[datetime] = []
    started(api, hourly([]))
    before = jobs(api)["report"]["id"]

    hands = started(api, lambda w: w.every("10m", name="report")(lambda run: seen.append(run.planned_at)))
    hands.live(HOUR_S, 10)

    assert jobs(api)["report"]["id"] == before
    assert {after - earlier for earlier, after in pairwise(seen)} == {timedelta(minutes=10)}


# An interval can be given, a time cannot.


def test_a_task_can_run_at_a_specific_time(api: Api):
    seen: list[datetime] = []
    hour = api.stage.clock.now().replace(minute=0, second=0, microsecond=0)
    at = hour + timedelta(minutes=30, seconds=7)

    def declare(worker: Worker) -> None:
        worker.at(at, name="once")(lambda run: seen.append(run.planned_at))
        worker.cron("45 * * * *", name="at a quarter to")(lambda run: seen.append(run.planned_at))

    started(api, declare).live(HOUR_S, 10)

    assert seen == [at, hour + timedelta(minutes=45)]


# Each task runs in a new task of the runtime's pool.


def test_each_run_has_its_own_thread_and_their_number_is_limited():
    worker, service = worker_of("report", "report", "report", threads=2)
    at_once, most, lock = [], [], threading.Lock()
    both = threading.Barrier(2)

    @worker.task(name="report")
    def report() -> None:
        with lock:
            at_once.append(threading.get_ident())
            most.append(len(at_once))
        if len(most) <= 2:
            both.wait(WITHIN_S)
        with lock:
            at_once.remove(threading.get_ident())
            if len(most) == 3 and not at_once:
                done.set()

    done = threading.Event()
    with running(worker):
        assert done.wait(WITHIN_S)

    assert max(most) == 2
    assert len(service.settled) == 3


# There is no transaction, though one can be made.


def test_an_effect_happens_once_although_the_task_fails_after_it(api: Api):
    effects: list[str] = []
    dedupe = Dedupe(MemoryMarks(), clock=api.stage.clock, chance=SeededChance())

    def declare(worker: Worker) -> None:
        @worker.every("1h", name="report")
        def report(run) -> None:
            with dedupe(run.id) as first:
                if first:
                    effects.append(run.id)
            if run.attempt == 1:
                raise ConnectionError("after the effect")

    started(api, declare).live(HOUR_S, 10)

    assert [(run["state"], run["attempt"]) for run in runs(api)] == [("SUCCESS", 2)]
    assert len(effects) == 1


# A task that takes longer than its interval may run at the same time on several threads.


def test_a_task_longer_than_its_interval_never_overlaps_itself(api: Api):
    inside: list[int] = []
    most: list[int] = []

    def declare(worker: Worker) -> None:
        @worker.every("1m", name="report")
        def report() -> None:
            inside.append(1)
            most.append(len(inside))
            if len(most) == 1:
                for _ in range(7):
                    api.stage.run(20)
                    hands.attempts.beat()
                    other.work()
            inside.pop()

    other = started(api, declare)
    hands = started(api, declare)
    hands.live(180, 10)

    assert max(most) == 1
    assert {(run["state"], run["reason"]) for run in runs(api)} >= {("SKIPPED", "OVERLAP")}


# An action that is not safe for threads needs a lock of its own.


def test_tasks_with_a_shared_resource_take_turns_without_their_own_lock(api: Api):
    api("POST", "/v1/flow-keys", {"name": "ledger", "parallelism": 1})
    inside: list[str] = []
    order: list[str] = []

    def declare(worker: Worker) -> None:
        def task(name: str) -> None:
            @worker.every("1h", name=name, policies={"flowKey": "ledger"})
            def shared() -> None:
                inside.append(name)
                order.append("+".join(inside))
                for _ in range(3):
                    api.stage.run(10)
                    hands.attempts.beat()
                    other.work()
                inside.pop()

        for name in ("a", "b", "c"):
            task(name)

    other = started(api, declare)
    hands = started(api, declare)
    hands.live(HOUR_S + 300, 10)

    assert sorted(order) == ["a", "b", "c"]
    assert {run["state"] for name in "abc" for run in runs(api, name)} == {"SUCCESS"}


# The queue has an effect on the time: a task is queued at its time, not executed at it.


def test_queued_and_executed_times_can_be_distinguished(api: Api):
    hands = started(api, hourly([]))
    while not any(api.stage.sqs.bodies(url) for url, _ in hands.queues):
        api.stage.run(10)
    api.stage.run(240)  # nobody has a free thread
    hands.work()

    [run] = runs(api)
    assert run["enqueuedAt"] <= run["plannedAt"] < run["startedAt"]
    assert run["latenessMs"] >= 60_000


def test_a_loaded_queue_does_not_delay_later_runs_of_a_task(api: Api):
    seen: list[datetime] = []
    hands = started(api, lambda w: w.every("5m", name="report")(lambda run: seen.append(run.planned_at)))
    for _ in range(4):
        api.stage.run(480)  # each is executed minutes after it was queued
        hands.work()

    assert len(seen) >= 3
    assert {(after - earlier).total_seconds() % 300 for earlier, after in pairwise(seen)} == {0.0}


def test_a_loaded_application_does_not_delay_another(api: Api):
    seen: list[datetime] = []
    started(api, lambda w: [hourly([], name=f"bulk {n}")(w) for n in range(40)], "bulk")  # nobody works here
    hands = started(api, hourly(seen))

    hands.live(HOUR_S, 1)

    [run] = runs(api)
    assert len(seen) == 1
    assert run["latenessMs"] < 5_000


# No scaling out, and no deployments next to each other.


def test_instances_share_their_tasks_and_each_occurrence_runs_once(api: Api):
    seen: list[datetime] = []
    instances = [started(api, lambda w: w.every("5m", name="report")(lambda run: seen.append(run.planned_at)))] + [
        started(api, lambda w: w.every("5m", name="report")(lambda run: seen.append(run.planned_at))) for _ in range(3)
    ]
    for _ in range(HOUR_S // 10):
        api.stage.run(10)
        for each in instances:
            each.work(1)

    assert len(seen) == len(set(seen)) >= 12
    assert {run["state"] for run in runs(api)} == {"SUCCESS"}


def test_a_new_version_works_next_to_the_old_one(api: Api):
    seen: list[str | None] = []

    def declare(worker: Worker) -> None:
        worker.every("1h", name="of both")(lambda: seen.append("both"))
        if worker.version == "2":
            worker.every("1h", name="of two", pinned=True)(lambda: seen.append("two"))

    new = started(api, declare, version="2")
    old = Hands(api, *_alike(new, declare), new.queue, new.queues[:1])
    for _ in range(HOUR_S // 10):
        api.stage.run(10)
        old.work()
        new.work()

    assert sorted(seen) == ["both", "two"]


# Instances share one queue, so any of them takes a task, also one that does not know it.


def test_an_instance_leaves_an_unknown_task_to_one_that_knows_it(api: Api):
    seen: list[datetime] = []
    new = started(api, hourly(seen))
    old = Hands(api, *_alike(new, lambda _worker: None), new.queue, new.queues)
    api.stage.run(HOUR_S)

    assert old.work() == 1
    assert seen == []
    api.stage.run(10)
    new.work()

    assert len(seen) == 1


# The warning: such a task is not executed, and not scheduled again.


@pytest.mark.parametrize("known_again", [True, False])
def test_a_task_unknown_to_every_instance_keeps_its_schedule_and_its_run_says_so(api: Api, known_again):
    seen: list[datetime] = []
    new = started(api, hourly(seen))
    old = Hands(api, *_alike(new, lambda _worker: None), new.queue, new.queues)
    api.stage.run(HOUR_S)
    for _ in range(30):
        old.work()
        api.stage.run(120)
    (first, *_) = runs(api)
    assert (first["state"], first["reason"]) == ("ERROR", "UNKNOWN_TASK")

    (new if known_again else old).live(HOUR_S, 10)

    assert jobs(api)["report"]["nextRunAt"] > first["plannedAt"]
    assert len(runs(api)) >= 2
    assert bool(seen) is known_again


def _alike(hands: Hands, declare) -> tuple[Worker, Any]:
    """Returns another worker of the same application, which has not applied its tasks, and its attempts."""
    worker = Worker("billing", client=hands.worker.client)
    declare(worker)
    return worker, worker.attempts(hands.queue)
