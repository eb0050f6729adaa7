"""The gate of a batch: one read for all messages that are due, and its failure is nobody else's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sweephand.domain.run import State
from sweephand.domain.schedule import Lane
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.testing.taps import Act, Passing
from tests.support.stage import Stage
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, once


def ten(stage: Stage, **members: Any) -> list[Planned]:
    """Makes ten jobs whose messages are visible now."""
    planned = [stage.create(once(2 * MINUTE), name=f"job {n}", **members) for n in range(10)]
    stage.tick()
    stage.pass_time(121)
    return planned


def reads(stage: Stage, of: str) -> list[int]:
    """Records from now on, for each read with such a row: for how many keys it asks."""
    asked: list[int] = []

    def count(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.BatchGetItem":
            (table,) = passing.request["RequestItems"].values()
            if any(key["sk"]["S"].startswith(of) for key in table["Keys"]):
                asked.append(len(table["Keys"]))
        return act()

    stage.taps.fault = count
    return asked


def test_one_read_serves_the_gate_of_ten_messages(stage: Stage) -> None:
    planned = ten(stage)
    asked = reads(stage, "RUN#")

    assert stage.deliver() == 10

    assert asked == [30]
    assert [stage.only_run(each).state for each in planned] == [State.SUCCESS] * 10


def test_one_read_serves_the_collection_settings_of_ten_runs(stage: Stage) -> None:
    ten(stage)
    stage.pass_time(5)
    asked = reads(stage, "COL#")

    stage.deliver()

    assert asked == [2]


def test_copies_of_a_message_in_one_batch_make_one_run(stage: Stage) -> None:
    planned = stage.create(once(2 * MINUTE))
    stage.tick()
    stage.pass_time(121)
    for _ in range(3):
        stage.sqs.duplicate(stage.world.settings.queue_urls[Lane.FAST])

    stage.deliver()
    stage.run(240)

    assert len(stage.endpoint.received) == 1
    assert stage.only_run(planned).state is State.SUCCESS


def test_a_failed_read_for_the_batch_is_repeated_for_each_message(stage: Stage) -> None:
    """A key that DynamoDB refuses, in one message, must not bring the other nine back."""
    planned = ten(stage)

    def refuses_many(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.BatchGetItem":
            (table,) = passing.request["RequestItems"].values()
            if len(table["Keys"]) > 3:
                raise ValueError("one of the keys is no key")
        return act()

    with stage.taps.faulty(refuses_many):
        stage.deliver()

    assert [stage.only_run(each).state for each in planned] == [State.SUCCESS] * 10


def test_a_message_that_arrives_early_is_judged_by_the_state_at_its_instant(stage: Stage) -> None:
    """The executor's clock is later than the queue's: a change may come while the message waits for its second."""
    early = stage.create(once(2 * MINUTE), name="early")
    due = [stage.create(once(2 * MINUTE - SECOND), name=f"due {n}") for n in range(2)]
    stage.tick()
    stage.pass_time(119)
    for message in stage.sqs._queues[stage.world.settings.queue_urls[Lane.FAST]].messages:
        message.visible_at = stage.clock.now()
    read_at: dict[str, datetime] = {}

    def note(passing: Passing, act: Act) -> Any:
        if passing.name == "dynamodb.BatchGetItem":
            (table,) = passing.request["RequestItems"].values()
            read_at.update({key["pk"]["S"].rpartition("#")[2]: stage.clock.now() for key in table["Keys"]})
        return act()

    with stage.taps.faulty(note):
        stage.deliver()

    assert all(read_at[each.job.id] < NOON + 2 * MINUTE for each in due)
    assert read_at[early.job.id] >= NOON + 2 * MINUTE
    assert [stage.only_run(each).state for each in (early, *due)] == [State.SUCCESS] * 3
