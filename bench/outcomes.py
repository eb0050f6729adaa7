"""Write units of one occurrence by how it ends, from the tick that sends it to its last effect.

Counted by the meter, with the whole service in this process on its in-memory table; the schedule is in the middle of
its life. Exact, and the same on every machine: tests/unit/server/flow/test_units.py holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from bench.meter import metered
from sweephand.domain.flow_keys.flow_keys import Enter, FlowKey, Leave
from sweephand.domain.instants import EPOCH
from sweephand.domain.job import Pause
from sweephand.domain.message import decode, encode
from sweephand.domain.run import Kind, Outcome, State, Verdict
from sweephand.domain.schedule import Lane
from sweephand.formats.azure.job_fields import POLICIES
from sweephand.server.flow.delivery import dead_letters
from sweephand.server.flow.flow_keys import flow_key_changes, turnstiles, waiting_line
from sweephand.server.flow.runs import results
from sweephand.testing.service import URLS
from tests.support.endpoint import ACCEPTED, BUSY, OK, WRONG, Answer
from tests.support.stage import TENANT, Stage, stage

RETRY = {"type": "fixed", "delaySeconds": 5, "maxRetries": 1}
WAITING: Mapping[str, Any] = {"outcome": {"on202": "wait", "callbackTimeoutSeconds": 60}}
LONG_WAITING: Mapping[str, Any] = {"outcome": {"on202": "wait", "callbackTimeoutSeconds": 9_000}}
FOUR_TIMES = {"type": "fixed", "delaySeconds": 30, "maxRetries": 4, "retryOn": "any"}
LONG = Outcome(Verdict.SUCCEEDED, http_status=200, answer="x" * 3_000, answer_headers="x" * 452)
"""The history of a job of Azure has the first 2,048 bytes of an answer like this."""
KEYED: Mapping[str, Any] = {"flowKey": "k"}
HOUR_S = 3_600


def _nothing(_stage: Stage, _planned: Any) -> None: ...


def _report(there: Stage, planned: Any) -> None:
    run = _active(there, planned)
    results.record(there.world, TENANT, run.schedule_id, run.uuid, success=True, message=None)


def _cancel(there: Stage, planned: Any) -> None:
    run = _active(there, planned)
    results.cancel(there.world, TENANT, run.schedule_id, run.uuid)


def _pause(there: Stage, planned: Any) -> None:
    there.set_state(planned, pause=Pause(there.clock.now()))


def _bury(there: Stage, _planned: Any) -> None:
    """Turns the message into a dead letter that has come back too often: SQS moves it to the dead letters."""
    queue = there.sqs._queues[URLS[Lane.FAST]]
    for message in queue.messages:
        given_up = replace(decode(message.body), returns=dead_letters.MOST_RETURNS, sent_at=message.sent_at)
        message.body, message.receive_count = encode(given_up), queue.most_receives or 0


def _flow_key(there: Stage) -> None:
    flow_key_changes.create(there.world, FlowKey(TENANT, "k", EPOCH, EPOCH, parallelism=1))


def _take_the_place(there: Stage, _planned: Any) -> None:
    """Lets another call be under way."""
    until = there.clock.now() + timedelta(seconds=25)
    turnstiles.ask(there.world, TENANT, "k", Enter("another", until))


def _give_it_back(there: Stage, _planned: Any) -> None:
    """Ends the other call by the write that does so, and calls the next one that waits."""
    there.pass_time(2)
    turnstiles.ask(there.world, TENANT, "k", Leave("another", own=True))
    waiting_line.call_next(there.world, TENANT, "k")


def _active(there: Stage, planned: Any) -> Any:
    return next(run for run in there.runs(planned) if not run.finished)


@dataclass(frozen=True)
class Way:
    """How an occurrence ends, and for how many units.

    first: how the occurrence before was answered. script: the answers to this one, then OK. before: done before it is
    delivered, not counted; meanwhile: done once it was, counted. late_s: how late it is delivered. missed: so many
    occurrences are found late by one tick, and are counted as one way.
    """

    units: int
    ends: State
    script: tuple[Answer, ...] = ()
    action: Mapping[str, Any] = field(default_factory=dict)
    policies: Mapping[str, Any] = field(default_factory=dict)
    error_action: bool = False
    first: Answer = OK
    before: Callable[[Stage, Any], None] = _nothing
    meanwhile: Callable[[Stage, Any], None] = _nothing
    late_s: int = 0
    missed: int = 0


WAYS: dict[str, Way] = {
    "success": Way(5, State.SUCCESS),
    "success of a job of Azure": Way(7, State.SUCCESS, (LONG,), {"retry": FOUR_TIMES}, POLICIES),
    "success of a job of Azure at the second attempt": Way(
        16, State.SUCCESS, (BUSY, LONG), {"retry": FOUR_TIMES}, POLICIES
    ),
    "success, one run at a time": Way(9, State.SUCCESS, policies={"overlap": "skip"}),
    "success at the second attempt": Way(14, State.SUCCESS, (BUSY,), {"retry": RETRY}),
    "failure without retry": Way(12, State.ERROR, (BUSY,)),
    "failure without retry, the same as the last one": Way(11, State.ERROR, (BUSY,), first=BUSY),
    "failure that is not retried": Way(12, State.REQUEST_ERROR, (WRONG,), {"retry": RETRY}),
    "failure after one retry": Way(23, State.ERROR, (BUSY, BUSY), {"retry": RETRY}),
    "failure with an error action": Way(20, State.ERROR, (BUSY,), error_action=True),
    "202, then its callback": Way(13, State.SUCCESS, (ACCEPTED,), WAITING, meanwhile=_report),
    "202, then its deadline": Way(16, State.UNKNOWN, (ACCEPTED,), WAITING),
    "202, then cancelled": Way(15, State.CANCELLED, (ACCEPTED,), WAITING, meanwhile=_cancel),
    "success under a flow key": Way(7, State.SUCCESS, policies=KEYED),
    "success under a flow key, after waiting for a place": Way(
        22, State.SUCCESS, policies=KEYED, before=_take_the_place, meanwhile=_give_it_back
    ),
    "skipped, because the last run was active": Way(
        8, State.SKIPPED, action=LONG_WAITING, policies={"overlap": "skip"}, first=ACCEPTED
    ),
    "skipped, because its job was paused": Way(8, State.SKIPPED, before=_pause),
    "too late for its misfire policy": Way(
        8, State.EXPIRED, policies={"misfire": {"type": "all", "maxLatenessSeconds": 300}}, late_s=600
    ),
    "undelivered: its message became a dead letter": Way(11, State.ERROR, before=_bury),
    "ten missed in an outage, all left out": Way(9, State.MISSED, policies={"misfire": {"type": "skip"}}, missed=10),
    "ten missed in an outage, the last one run": Way(
        11, State.SUCCESS, policies={"misfire": {"type": "latest"}}, missed=10
    ),
}


def measure(name: str) -> tuple[int, State]:
    """Returns the write units of that way, and how the occurrence ended."""
    way = WAYS[name]
    with stage() as there, metered() as meter:
        fields: dict[str, Any] = {"action": there.action(**way.action), "policies": dict(way.policies)}
        if "flowKey" in way.policies:
            _flow_key(there)
        if way.error_action:
            fields["error_action"] = there.action()
        planned = there.create({"every": "PT1H"}, **fields)
        there.endpoint.answer = way.first
        there.run(HOUR_S + 60)
        there.pass_time(HOUR_S - 180 if not way.missed else HOUR_S * way.missed + 300)
        there.endpoint.answer = OK
        there.endpoint.script = list(way.script)
        there.endpoint.received.clear()
        meter.take()
        there.tick()
        there.pass_time(150 + way.late_s)
        spent = meter.take().writes
        way.before(there, planned)
        meter.take()
        there.deliver_all()
        way.meanwhile(there, planned)
        there.run(300)
        return int(spent + meter.take().writes), there.runs(planned, Kind.SCHEDULED)[-1].state
