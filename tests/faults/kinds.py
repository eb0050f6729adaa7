"""The faults that a call can meet, and the events that can come between it and the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from sweephand.domain.schedule import Lane
from sweephand.sdk.errors import TransportError
from sweephand.sdk.transport.request import Answer
from sweephand.server.flow.runs import results
from sweephand.testing.memory import Items
from sweephand.testing.queues import Message
from sweephand.testing.taps import Act, Fault, Passing
from tests.faults.play import TENANT, Met, Play
from tests.support import taps

READS = {"Query", "GetItem", "BatchGetItem", "GetObject", "ListObjectsV2"}
WRITES = {"PutItem", "UpdateItem", "DeleteItem"}
OWN_RETRIES = {"endpoint"}
"""The SDK does not repeat what the target answers, and does not throttle it."""
API = "api"
"""Requests of a worker: the SDK repeats them."""


@dataclass(frozen=True)
class Kind:
    """fits: can the call meet it, and does it make a difference? act: carried out in the call's place."""

    fits: Callable[[Met], bool]
    act: Callable[[Play, Met, Act], Any]


def _plain(fault: Fault) -> Callable[[Play, Met, Act], Any]:
    return lambda _play, met, act: fault(met.passing, act)


def _before(somebody_else: Callable[[Play], object]) -> Callable[[Play, Met, Act], Any]:
    """Lets somebody else act first: all that he does happens before the call."""

    def act_then(play: Play, _met: Met, act: Act) -> Any:
        play.aside(lambda: somebody_else(play))
        return act()

    return act_then


def _calls(*operations: str) -> Callable[[Met], bool]:
    return lambda met: met.passing.operation in operations


def _leaves_a_trace(met: Met) -> bool:
    """Tells whether the call changes anything. A read does not: to die after it is to die before what follows."""
    return met.passing.operation not in READS


# Faults of the services


def _row_refused(code: str) -> Fault:
    """Refuses a row. BatchExecuteStatement: the first statement is not carried out, the others are."""

    def fault(passing: Passing, act: Act) -> Any:
        first, *others = passing.request["Statements"]
        passing.request["Statements"][:] = others
        answer = act() if others else {"Responses": []}
        passing.request["Statements"][:] = [first, *others]
        refused = {"Error": {"Code": code, "Message": "slow down"}}
        return {**answer, "Responses": [refused, *answer["Responses"]]}

    return fault


def _event_refused(passing: Passing, act: Act) -> Any:
    """Refuses an event. PutEvents: the first is not taken, the others are."""
    first, *others = passing.request["Entries"]
    passing.request["Entries"] = others
    answer = act() if others else {"Entries": []}
    passing.request["Entries"] = [first, *others]
    refused = {"ErrorCode": "InternalFailure", "ErrorMessage": "sorry"}
    return {"FailedEntryCount": 1, "Entries": [refused, *answer["Entries"]]}


def _keys_left(passing: Passing, act: Act) -> Any:
    """Leaves keys undone. BatchGetItem: the first key is left for another call."""
    ((table, wanted),) = passing.request["RequestItems"].items()
    first, *others = wanted["Keys"]
    left = {table: {**wanted, "Keys": [first]}}
    if not others:
        return {"Responses": {table: []}, "UnprocessedKeys": left}
    passing.request["RequestItems"] = {table: {**wanted, "Keys": others}}
    return {**act(), "UnprocessedKeys": left}


def _server_fault(passing: Passing, _act: Act) -> Any:
    """Fails after all the SDK's tries."""
    error = {"Code": "InternalServerError", "Message": "sorry"}
    raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 500}}, passing.operation)


def _stale(since: Callable[[Play, Met], int]) -> Callable[[Play, Met, Act], Any]:
    """Answers from an older state of the table. since: the number of that state."""

    def act_stale(play: Play, met: Met, act: Act) -> Any:
        dynamo = play.memory.dynamo
        assert dynamo is not None
        older: Items = dynamo.states[since(play, met)]
        dynamo.index = lambda _request: older
        try:
            return act()
        finally:
            dynamo.index = None

    return act_stale


def _one_write_ago(play: Play, _met: Met) -> int:
    assert play.memory.dynamo is not None
    return max(0, len(play.memory.dynamo.states) - 2)


def _at_the_last_look(play: Play, met: Met) -> int:
    return max(0, play.looks.get(met.passing.request["IndexName"], 1) - 1)


def _answer_lost(play: Play, met: Met, act: Act) -> Any:
    if met.passing.service != API:
        return taps.answer_lost(met.passing, act)
    act()
    raise TransportError("the answer is lost")


def _throttled(play: Play, met: Met, act: Act) -> Any:
    return Answer(429, {}, b"") if met.passing.service == API else taps.refused(met.passing, act)


# Other actors


def _sweeper(play: Play) -> None:
    play.scene.tick()


def _auditor(play: Play) -> None:
    play.scene.audit()


def _executor(play: Play) -> None:
    """Gives a second copy of each message that an executor or a worker holds to another one."""
    for url in play.queues():
        queue = play.scene.sqs._queues[url]
        for message in [each for each in queue.messages if each.receive_count]:
            copy = Message(f"{message.id}-copy", message.body, message.sent_at, play.scene.clock.now())
            queue.messages.append(copy)
    for lane in Lane:
        play.scene.deliver(lane)
    for worker in play.workers:
        worker.twin().work()


def _caller(play: Play) -> None:
    """Sends the same request a second time, at once."""
    assert play.asking is not None
    play.asking()


def _callback(play: Play) -> None:
    """Reports success by the target for every open run."""
    for run in play.runs():
        if not run.finished:
            owner = run.schedule_id or run.job_id
            results.record(play.scene.world, TENANT, owner, run.uuid, success=True, message="done")


KINDS: Mapping[str, Kind] = {
    "crash-before": Kind(lambda met: True, _plain(taps.crash_before)),
    "crash-after": Kind(_leaves_a_trace, _plain(taps.crash_after)),
    "answer-lost": Kind(lambda met: _leaves_a_trace(met) and met.passing.service not in OWN_RETRIES, _answer_lost),
    "throttled": Kind(lambda met: met.passing.service not in OWN_RETRIES, _throttled),
    "server-fault": Kind(
        lambda met: met.passing.service == "dynamodb" and met.passing.operation != "Query", _plain(_server_fault)
    ),
    "conflict": Kind(_calls("TransactWriteItems", *WRITES), _plain(taps.conflict)),
    "failed-entries": Kind(_calls("SendMessageBatch"), _plain(taps.some_failed)),
    "failed-events": Kind(_calls("PutEvents"), _plain(_event_refused)),
    "failed-rows": Kind(_calls("BatchExecuteStatement"), _plain(_row_refused("ThrottlingError"))),
    "keys-left": Kind(_calls("BatchGetItem"), _plain(_keys_left)),
    "index-behind": Kind(lambda met: met.of_index, _stale(_one_write_ago)),
    "index-a-look-behind": Kind(lambda met: met.of_index, _stale(_at_the_last_look)),
    "second-sweeper": Kind(lambda met: True, _before(_sweeper)),
    "second-executor": Kind(lambda met: met.in_flight, _before(_executor)),
    "second-caller": Kind(lambda met: met.asked, _before(_caller)),
    "auditor": Kind(_leaves_a_trace, _before(_auditor)),
    "callback": Kind(lambda met: True, _before(_callback)),
    "purged-queue": Kind(lambda met: True, _before(Play.purge)),
}


def fits(kind: str, met: Met, *, callbacks: bool) -> bool:
    return KINDS[kind].fits(met) and (callbacks or kind != "callback")
