"""A batch of ten messages: its calls are made at once, and each message is reported for itself."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest

from sweephand.domain.run import State
from sweephand.domain.schedule import Lane
from sweephand.server import actions
from sweephand.server.flow.delivery import dispatch
from sweephand.server.flow.verdict import Delivered
from sweephand.server.security.guard import Outbound
from sweephand.testing.service import URLS
from tests.support.stage import Stage
from tests.unit.endpoints import listening, read_request
from tests.unit.server.actions.test_http import LOCAL, status
from tests.unit.server.flow.common import once

TEN = 10


def batch_of(stage: Stage) -> list[Delivered]:
    """Returns all messages that are visible now, as one batch."""
    stage.run(58)
    stage.pass_time(3)
    messages = [stage._delivered(message) for message in stage.sqs.receive(URLS[Lane.FAST], TEN)]
    assert len(messages) == TEN
    return messages


def test_ten_endpoints_that_answer_only_when_all_ten_are_connected_are_answered(stage: Stage) -> None:
    together = threading.Barrier(TEN)

    def answers_when_all_are_there(connection: socket.socket, _: threading.Event) -> None:
        read_request(connection)
        together.wait(timeout=8)
        connection.sendall(status(200))

    with ExitStack() as endpoints:
        stage.world = replace(stage.world, perform=actions.perform, outbound=Outbound(LOCAL))
        jobs = []
        for _ in range(TEN):
            url = endpoints.enter_context(listening(answers_when_all_are_there)).url("/run")
            action = actions.draft({"type": "http", "url": url}, field="action", guard=LOCAL)
            jobs.append(stage.create(once(), action=action))

        failed = dispatch.batch(stage.world, Lane.FAST, "request", batch_of(stage))

    assert failed == []
    assert [stage.only_run(job).state for job in jobs] == [State.SUCCESS] * TEN
    assert not together.broken


@pytest.mark.parametrize("bad", [[0], [3, 7], list(range(TEN))], ids=str)
def test_a_message_that_cannot_be_settled_affects_no_other(stage: Stage, bad: list[int]) -> None:
    jobs = [stage.create(once()) for _ in range(TEN)]
    messages = [
        replace(message, body="no pointer") if number in bad else message
        for number, message in enumerate(batch_of(stage))
    ]

    failed = dispatch.batch(stage.world, Lane.FAST, "request", messages)

    assert failed == [messages[number].message_id for number in bad]
    ended = [run for job in jobs for run in stage.runs(job)]
    assert [run.state for run in ended] == [State.SUCCESS] * (TEN - len(bad))


def test_only_the_message_whose_run_another_executor_holds_comes_back(stage: Stage) -> None:
    jobs = [stage.create(once()) for _ in range(TEN)]
    messages = batch_of(stage)
    stage.endpoint.takes_s = 0
    dispatch.batch(stage.world, Lane.FAST, "first", messages[:1])
    done = next(run for job in jobs for run in stage.runs(job))
    held = {"state": {"S": "TRIGGERED"}, "owner": {"S": "another"}}
    until = str(int((stage.clock.now() + timedelta(seconds=20)).timestamp() * 1_000))
    row = next(item for item in stage.items() if item["sk"]["S"].endswith(done.uuid) and "state" in item)
    stage.edit_item(row["pk"]["S"], row["sk"]["S"], **held, lease_until={"N": until})

    failed = dispatch.batch(stage.world, Lane.FAST, "second", messages)

    assert failed == [messages[0].message_id]
    assert sum(run.state is State.SUCCESS for job in jobs for run in stage.runs(job)) == TEN - 1
