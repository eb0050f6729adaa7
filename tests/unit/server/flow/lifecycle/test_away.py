"""An outage of what the service is built on ends no run uncalled, however long it lasts: each dependency in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from sweephand.base.errors import Unavailable
from sweephand.domain.application import QUEUE
from sweephand.domain.flow_keys.flow_keys import FlowKey
from sweephand.domain.instants import EPOCH
from sweephand.domain.job import ActionDraft
from sweephand.domain.message import decode, encode, occurrence
from sweephand.domain.run import Kind, Outcome, Reason, State
from sweephand.domain.schedule import Lane
from sweephand.server import actions
from sweephand.server.actions.call import Call
from sweephand.server.flow.delivery import dead_letters
from sweephand.server.flow.flow_keys import flow_key_changes
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.manual import manual
from sweephand.server.flow.runs import workers
from sweephand.server.flow.tenants import applications
from sweephand.server.messaging.run_queue import BATCH_MOST
from sweephand.server.security.guard import AwsSettings, GuardSettings, Outbound
from sweephand.testing.service import DEAD, URLS
from sweephand.testing.taps import Act, Fault, Passing
from tests.support.endpoint import ACCEPTED, BUSY, DOWN, OK, WRONG
from tests.support.stage import TENANT, Stage
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, fixed

WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchExecuteStatement"}
SENDS = {"SendMessage", "SendMessageBatch"}
ROLE = "arn:aws:iam::123456789012:role/jobs"
ORDERS = "arn:aws:sqs:eu-central-1:123456789012:orders"
AWS = GuardSettings(aws=AwsSettings(roles=frozenset({ROLE}), account="123456789012", region="eu-central-1"))


def away(passing: Passing, _act: Act) -> Any:
    """Answers in the place of a service that cannot be reached, or of a target that cannot be connected."""
    if passing.service == "endpoint":
        return DOWN
    raise EndpointConnectionError(endpoint_url="https://away.example")


def without(is_away: Callable[[Passing], bool]) -> Fault:
    return lambda passing, act: away(passing, act) if is_away(passing) else act()


def with_key(part: str) -> Fault:
    """Makes the items whose keys contain this part unavailable."""
    return without(lambda call: call.service == "dynamodb" and part in repr(call.request))


DEPENDENCIES: Mapping[str, Fault] = {
    "table": without(lambda call: call.service == "dynamodb"),
    "writes": without(lambda call: call.operation in WRITES),
    "ledger": with_key("RUN#"),
    "flow key": with_key("#KEY#"),
    "queue": without(lambda call: call.service == "sqs"),
    "sends": without(lambda call: call.operation in SENDS),
    "key service": without(lambda call: call.service == "kms"),
    "bus": without(lambda call: call.service == "events"),
    "network": without(lambda call: call.service != "dynamodb"),
    "everything": without(lambda _: True),
}
LASTS = {"1 min": MINUTE, "6 min": 6 * MINUTE, "30 min": 30 * MINUTE, "4 h": 240 * MINUTE}
EVERY = {"every": "PT30M", "startTime": "2027-03-01T12:03:00Z"}
ALL = {"misfire": {"type": "all", "ratePerMinute": 600}}


@dataclass
class Service:
    """A stage with jobs of each kind, and a worker that takes the runs of its application.

    recurring, single: jobs by name. called: how often each run reached its target.
    """

    stage: Stage
    recurring: dict[str, Planned] = field(default_factory=dict)
    single: dict[str, Planned] = field(default_factory=dict)
    called: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.url = self.stage.world.queue.url(applications.register(self.stage.world, TENANT, "billing", None).lane)
        self.stage.world = replace(self.stage.world, perform=self.perform)
        self.secret = self.stage.action(authentication={"type": "bearer", "token": "t"})
        waits = {"on202": "wait", "callbackTimeoutSeconds": 86_400}
        self.later = self.stage.action(url="https://example.org/later", outcome=waits)
        self.retried = self.stage.action(url="https://example.org/busy", retry=fixed(60, 20))

    def action(self, **fields: Any) -> ActionDraft:
        return actions.draft(fields, field="action", guard=AWS)

    def perform(self, kind: str, params: Any, call: Call, outbound: Outbound) -> Outcome:
        """Carries out events for real; the endpoint answers for all other targets."""
        if kind == "event":
            outcome = actions.perform(kind, params, call, outbound)
        else:
            outcome = self.stage.endpoint.perform(kind, params, call, outbound)
        self.called[call.run_id] += outcome != DOWN
        return outcome

    def work(self) -> None:
        """Takes what waits for the application. A message whose run cannot be claimed comes back after 30 s."""
        for message in self.stage.sqs.receive(self.url, 10, 30):
            wanted = workers.Claim(decode(message.body), message.receipt, "billing", sent_at=message.sent_at)
            try:
                claimed = workers.claim(self.stage.world, wanted)
                if isinstance(claimed, workers.Task):
                    run = claimed.run
                    self.called[run.id] += 1
                    report = workers.Report(message.receipt, run.attempt, workers.Ended.SUCCESS)
                    workers.report(self.stage.world, TENANT, run.schedule_id or run.job_id, run.uuid, report)
                elif not claimed.acknowledged:
                    continue
            except Unavailable:
                continue
            self.stage.sqs.delete(self.url, message.receipt)

    def run(self, duration: timedelta) -> None:
        end = self.stage.clock.now() + duration
        while self.stage.clock.now() < end:
            self.stage.run(min(30.0, (end - self.stage.clock.now()).total_seconds()))
            self.work()

    def plan(self) -> None:
        """Creates a recurring job of each kind, and single runs whose time is within every outage."""
        stage = self.stage
        flow_key_changes.create(stage.world, FlowKey(TENANT, "k", EPOCH, EPOCH, parallelism=1))
        for name, made in {
            "http": {},
            "secret": {"action": self.secret},
            "once": {"action": self.secret, "policies": {**ALL, "delivery": "at_most_once"}},
            "event": {"action": self.action(type="event")},
            "sqs": {"action": self.action(type="sqs", targetArn=ORDERS, roleArn=ROLE)},
            "queue": {"action": self.action(type=QUEUE, application="billing", task="t")},
            "callback": {"action": self.later, "policies": {**ALL, "callbackToken": True}},
            "overlap": {"action": self.secret, "policies": {**ALL, "overlap": "skip"}},
            "queued": {"action": self.secret, "policies": {**ALL, "overlap": "queue_one"}},
            "flow key": {"action": self.secret, "policies": {**ALL, "flowKey": "k"}},
        }.items():
            self.recurring[name] = stage.create(EVERY, name=name, **{"policies": ALL, **made})
        at = {"at": "2027-03-01T12:03:00Z"}
        for name, members in {
            "single": {},
            "single secret": {"action": self.secret},
            "retried": {"action": self.retried},
            "failing": {"error_action": self.secret},
        }.items():
            self.single[name] = stage.create(at, name=name, **members)
        self.single["manual"] = stage.create({"cron": "0 0 1 1 *"}, name="manual", action=self.secret)


def answer(call: Call) -> Outcome:
    """Answers by the name of the job."""
    if call.job_name == "callback":
        return ACCEPTED
    if call.job_name == "failing":
        return WRONG
    return BUSY if call.job_name == "retried" and call.attempt == 1 else OK


MAY_END = {
    "callback": {State.ACK_RECVD},
    "overlap": {State.SUCCESS, State.SKIPPED},
    "queued": {State.SUCCESS, State.SKIPPED},
    "failing": {State.REQUEST_ERROR},
}
"""The states of the runs of these jobs; those of all others succeed."""


def nothing_is_lost(service: Service) -> None:
    """Checks that each planned instant has a row, and that each run was called or excluded by its policy."""
    stage, since = service.stage, NOON + 3 * MINUTE
    steps = [since + n * 30 * MINUTE for n in range((stage.clock.now() - since) // (30 * MINUTE) + 1)]
    for name, planned in (service.recurring | service.single).items():
        runs = stage.runs(planned.job.id if name == "manual" else planned)
        wanted = steps if name in service.recurring else [since]
        assert name == "manual" or sorted({run.planned_at for run in runs}) == wanted, name
        assert len(runs) == (2 if name == "failing" else len(wanted)), name
        ends = {run.state for run in runs}
        assert ends <= MAY_END.get(name, {State.SUCCESS}) | ({State.SUCCESS} if name == "failing" else set()), name
        assert all(service.called[run.id] for run in runs if run.state is not State.SKIPPED), name
        assert name != "once" or all(service.called[run.id] == 1 for run in runs)
    assert set(stage.journal.at("error")) <= {"an event was not published"}


@pytest.fixture
def service(stage: Stage) -> Service:
    """Returns a service at half a minute before its jobs are due: some messages are on their way."""
    stage.endpoint.answer = answer
    service = Service(stage)
    service.plan()
    service.run(timedelta(seconds=150))
    manual.run_now(stage.world, TENANT, service.single["manual"].job.id, None, None)
    return service


@pytest.mark.sampled(7)
@pytest.mark.parametrize("lasts", LASTS.values(), ids=LASTS)
@pytest.mark.parametrize("fault", DEPENDENCIES.values(), ids=DEPENDENCIES)
def test_every_occurrence_is_called_after_an_outage(service: Service, fault: Fault, lasts: timedelta) -> None:
    with service.stage.taps.faulty(fault):
        service.run(lasts)
    service.run(50 * MINUTE)

    nothing_is_lost(service)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("second", ["table", "key service", "network"])
@pytest.mark.parametrize("first", ["table", "key service", "sends"])
def test_every_occurrence_is_called_after_two_outages_in_a_row(service: Service, first: str, second: str) -> None:
    with service.stage.taps.faulty(DEPENDENCIES[first]):
        service.run(110 * MINUTE)
    service.run(2 * MINUTE)
    with service.stage.taps.faulty(DEPENDENCIES[second]):
        service.run(110 * MINUTE)
    service.run(50 * MINUTE)

    nothing_is_lost(service)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", DEPENDENCIES.values(), ids=DEPENDENCIES)
@pytest.mark.parametrize("moment", ["the call", "the end"])
def test_a_run_in_the_middle_of_which_an_outage_begins_ends_as_its_policy_says(
    stage: Stage, fault: Fault, moment: str
) -> None:
    """moment: the last thing that succeeds before the outage."""
    alarm = stage.action(url="https://example.org/alarm")
    jobs = [
        stage.create({"at": "2027-03-01T12:05:00Z"}, action=stage.action(), error_action=alarm, policies=policies)
        for policies in ({}, {"delivery": "at_most_once"})
    ]
    stage.endpoint.answer = WRONG
    stage.run(200)
    started = False

    def begins(passing: Passing, act: Act) -> Any:
        nonlocal started
        if started:
            return fault(passing, act)
        answered = act()
        ended = passing.operation == "TransactWriteItems" and "finished_at" in repr(passing.request)
        started = started or {"the call": passing.service == "endpoint", "the end": ended}[moment]
        return answered

    with stage.taps.faulty(begins):
        stage.run(100 * 60)
    assert started
    stage.run(50 * 60)

    for planned in jobs:
        run = next(run for run in stage.runs(planned) if run.kind is Kind.SCHEDULED)
        assert (run.state, run.reason) in {
            (State.REQUEST_ERROR, Reason.HTTP_STATUS),
            (State.UNKNOWN, Reason.EXECUTOR_LOST),
        }
        called = any(received.run_id == run.id for received in stage.endpoint.received)
        # Both run at once: the outage may begin before the other's call, and at_most_once repeats no attempt.
        assert called or (planned is jobs[1] and run.state is State.UNKNOWN)
        assert len(stage.runs(planned)) == 2, "its error action has run"
    assert "undelivered" not in stage.journal.at("error")


def test_a_message_that_meets_an_outage_comes_back_less_often_each_time(stage: Stage) -> None:
    stage.create({"at": "2027-03-01T12:05:00Z"})
    stage.run(200)
    waits = []

    with stage.taps.faulty(DEPENDENCIES["table"]):
        while stage.sqs.next_visible_at([DEAD]) is None:
            due_at = stage.sqs.next_visible_at([URLS[Lane.FAST]])
            assert due_at is not None
            waits.append(round((due_at - stage.clock.now()).total_seconds()))
            stage.clock.move_to(due_at)
            stage.deliver(most=1)

    assert waits[1:] == [35, 70, 140, 280, 560, 900, 900, 900, 900, 900]
    assert sum(waits[1:]) > 90 * 60


def test_ten_dead_letters_come_back_with_four_calls(stage: Stage) -> None:
    """At 60 ms for four calls, four readers bring back 600 a second, and 50,000 in six minutes of 15 s each."""
    planned, count = stage.create({"every": "PT1S", "startTime": "2027-03-01T12:10:00Z"}), 1_000
    schedule = planned.schedules[0]
    for n in range(count):
        pointer = occurrence(TENANT, planned.job.id, schedule.id, stage.clock.now() - n * SECOND, schedule.generation)
        stage.sqs._put(DEAD, {"MessageBody": encode(pointer)})
    stage.taps.passed.clear()

    assert dead_letters.take(stage.world) == count

    assert len(stage.sqs.bodies(URLS[Lane.FAST])) >= count
    empty = dead_letters.READERS
    assert len(stage.taps.passed) <= 4 * count / BATCH_MOST + empty + COLLECTION_READ
    assert stage.taps.count("sqs.ReceiveMessage") == count / BATCH_MOST + empty


COLLECTION_READ = 4
"""Reads of the collection, which each of the ten threads may make once."""
