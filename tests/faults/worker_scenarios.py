"""Histories of an application's workers: they claim, carry out and settle, and die at each of their own calls too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sweephand.domain.event import EventType
from sweephand.domain.run import State
from sweephand.domain.schedule import Schedule
from sweephand.sdk.worker import Discard, MoveTo, TaskRun, Worker
from sweephand.server.store.dynamo import keys
from sweephand.server.store.dynamo.table import ScheduleItem
from sweephand.server.store.jobs.jobs import schedule_of
from sweephand.testing.service import ARCHIVE
from tests.faults.play import Play, Scenario, minutes
from tests.faults.workers import Hand
from tests.support.endpoint import BUSY, OK

RETRY = {"type": "fixed", "delaySeconds": 20, "maxRetries": 3}
MOST_ATTEMPTS = 4


def started(at: Play, declare: Callable[[Hand, Worker], object], **members: Any) -> Hand:
    """Starts a worker with its tasks, and asks again until the service has answered."""
    hand = Hand(at, declare, members)
    at.ask(hand.start)
    at.workers = [hand]
    return hand


def schedules(at: Play) -> dict[str, Schedule]:
    """Returns the schedule of each task, by the key of its job."""
    items = at.scene.items()
    keys = {item["job_id"]["S"]: item["key"]["S"] for item in items if item["sk"]["S"] == "JOB" and "key" in item}
    rows = [item for item in items if "#JOB#" in item["pk"]["S"] and item["sk"]["S"].startswith("SCH#")]
    return {keys[each.job_id]: each for each in (schedule_of(ScheduleItem.from_raw_data(row)) for row in rows)}


def within_its_count(at: Play) -> None:
    """Checks that no attempt is above the count."""
    assert all(run.attempt <= MOST_ATTEMPTS for run in at.ledger)


class WorkersTask(Scenario):
    """A worker registers its application and its task. The first of two runs fails once, and beats while it lasts."""

    name = "worker"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = lambda call: BUSY if call.attempt == 1 and call.planned_at in minutes(1) else OK

        def declare(hand: Hand, worker: Worker) -> None:
            @worker.cron("* * * * *", name="report", count=2, retry=RETRY)
            def report(run: TaskRun) -> None:
                hand.beat()
                hand.task(run)

        started(at, declare)
        first, second = minutes(1, 2)
        at.expect(schedules(at)["report"], {first: State.SUCCESS, second: frozenset({State.SUCCESS, State.SKIPPED})})
        at.go_to(5)

    def check(self, at: Play) -> None:
        """Checks that the second is skipped only if a fault has kept the first one until then."""
        within_its_count(at)
        assert at.faults or [run.state for run in at.ledger] == [State.SUCCESS] * 2


class WorkersVerdicts(Scenario):
    """A hook discards one failed run and moves another away; a third has a payload that does not fit."""

    name = "worker-verdicts"

    def history(self, at: Play) -> None:
        at.scene.endpoint.answer = lambda call: BUSY if call.planned_at not in minutes(3) else OK

        def declare(hand: Hand, worker: Worker) -> None:
            worker.cron("* * * * *", name="report", count=3, overlap="allow", retry=RETRY)(hand.task)
            worker.cron("* * * * *", name="misfit", count=1, payload={"monht": 7}, retry=RETRY)(lambda month: month)

        def decide(_error: BaseException, run: TaskRun) -> Discard | MoveTo:
            return Discard("not needed") if run.planned_at in minutes(1) else MoveTo(ARCHIVE)

        started(at, declare, hook=decide)
        found = schedules(at)
        ends = dict(zip(minutes(1, 2, 3), (State.CANCELLED, State.ERROR, State.SUCCESS), strict=True))
        at.expect(found["report"], ends)
        at.expect(found["misfit"], dict.fromkeys(minutes(1), State.REQUEST_ERROR))
        at.go_to(6)

    def check(self, at: Play) -> None:
        within_its_count(at)
        assert at.scene.sqs.bodies(ARCHIVE) or "throttled" in at.faults, "an error that is in no other queue"


class WorkersUnknown(Scenario):
    """A process of an earlier release does not know the task, and gives its run back until a new one comes."""

    name = "worker-unknown"

    def history(self, at: Play) -> None:
        def declare(hand: Hand, worker: Worker) -> None:
            worker.cron("* * * * *", name="report", count=1, overlap="allow", retry=RETRY)(hand.task)

        new = started(at, declare)
        at.expect(schedules(at)["report"], minutes(1))
        old = Hand(at, lambda _hand, _worker: None, {}, applies=False)
        at.ask(old.start)
        at.workers = [old]
        at.go_to(1.05)
        at.workers = [new]
        at.go_to(4)

    def check(self, at: Play) -> None:
        within_its_count(at)
        assert at.faults or [run.unknown for run in at.ledger] == [1]


class WorkersAbsent(Scenario):
    """The only worker is away: what falls due is held, or ends by its policy. It comes back, and a second time."""

    name = "worker-absent"

    def history(self, at: Play) -> None:
        def declare(hand: Hand, worker: Worker) -> None:
            @worker.cron("* * * * *", name="kept", count=4, overlap="allow", retry=RETRY)
            def kept(run: TaskRun) -> None:
                hand.task(run)

            skip = {"misfire": {"type": "skip", "maxLatenessSeconds": 10}}
            worker.cron("* * * * *", name="left", count=1, overlap="allow", policies=skip)(lambda: None)

        hand = started(at, declare)
        at.workers = []
        kept, left = schedules(at)["kept"], schedules(at)["left"]
        at.expect(kept, dict.fromkeys(minutes(1, 2, 3, 4), State.SUCCESS))
        at.expect(left, dict.fromkeys(minutes(1), State.EXPIRED))
        at.go_to(5.5)
        at.workers = [hand]
        at.go_to(8)

    def check(self, at: Play) -> None:
        """Checks that both changes are published, each with one id."""
        within_its_count(at)
        for kind in (EventType.APPLICATION_AWAY, EventType.APPLICATION_BACK):
            ids = {each["id"] for each in at.scene.bus.of(kind)}
            assert len(ids) == 1 or at.faults, ids
        assert not [item for item in at.scene.items() if item["pk"]["S"] == keys.STACK_AWAY]
