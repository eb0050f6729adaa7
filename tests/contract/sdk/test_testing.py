"""The stack for users' tests: it is the service, so what it answers is what the service answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from sweephand.sdk import JobInterval, JobScheduler, at, cron, every, http
from sweephand.sdk.api_errors import InvalidField
from sweephand.sdk.errors import InvalidArgument
from sweephand.sdk.worker import Worker
from sweephand.testing import Call, Reply, Stack, stack
from sweephand.testing import table as tables
from sweephand.testing.service import queues
from sweephand.testing.stack import PROVIDER, STACK_SECRET
from tests.support import aws

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
URL = "https://shop.example.org/run"
ROLE, QUEUE = "arn:aws:iam::123456789012:role/jobs", "arn:aws:sqs:eu-central-1:123456789012:orders"


@pytest.fixture
def sh() -> Iterator[Stack]:
    with stack(now=NOON) as made:
        yield made


def test_the_table_in_memory_has_the_keys_of_the_template():
    declared = aws.table_request("t")["GlobalSecondaryIndexes"]

    assert tables.indexes() == declared


def test_the_queues_in_memory_are_those_of_the_template():
    resources = aws.resources()
    names = {"fast": "RunQueue", "slow": "SlowQueue", "operations": "OperationsQueue", "dead": "DeadLetterQueue"}

    for url, queue in queues().items():
        if (name := names.get(url.rpartition("/")[2])) is not None:
            properties = resources[name]["Properties"]
            assert queue.visibility_s == properties["VisibilityTimeout"]
            assert queue.most_receives == properties.get("RedrivePolicy", {}).get("maxReceiveCount")


def test_each_call_comes_at_its_instant_with_the_services_headers(sh):
    job = sh.jobs.create("beat", http.post(URL, payload={"n": 1}), every("PT6H"), resource_id="r")

    calls = sh.advance("1d")

    assert [call.at for call in calls] == [NOON + timedelta(hours=6 * n) for n in (1, 2, 3, 4)]
    first = calls[0]
    assert (first.method, first.target, first.json, first.job_id) == ("POST", URL, {"n": 1}, job.id)
    assert first.headers["sweephand-run-id"] == first.run_id
    assert sh.now == NOON + timedelta(days=1)
    assert [run.reason for run in sh.runs.list(job_id=job)] == ["ON_TIME"] * 4


@pytest.mark.parametrize(
    ("answer", "reason", "attempts"),
    [
        (lambda _: 404, "HTTP_STATUS", 1),
        (lambda call: Reply(503 if call.attempt < 3 else 200), "ON_TIME", 3),
        (lambda _: Reply(500, body="no", headers={"Retry-After": "5"}), "HTTP_STATUS", 4),
    ],
)
def test_answers_lead_to_the_retries_of_the_service(sh, answer, reason, attempts):
    sh.answer = answer
    job = sh.jobs.create("a", http.post(URL, retry={"type": "fixed", "maxRetries": 3, "delaySeconds": 10}), at(NOON))

    calls = sh.advance("1h")

    (run,) = sh.runs.list(job_id=job)
    assert (run.reason, run.attempt, len(calls)) == (reason, attempts, attempts)


@pytest.mark.parametrize(
    ("error", "reason"), [(ConnectionRefusedError("down"), "CONNECT"), (TimeoutError(), "NO_ANSWER")]
)
def test_a_target_that_is_down_or_silent_fails_as_on_the_network(sh, error, reason):
    def answer(_: Call) -> None:
        raise error

    sh.answer = answer
    job = sh.jobs.create("a", http.post(URL), at(NOON))

    sh.advance("1m")

    (run,) = sh.runs.list(job_id=job)
    assert run.reason == reason


def test_an_error_of_the_tests_own_answer_ends_the_test(sh):
    def answer(call: Call) -> None:
        assert call.method == "GET", "the shop is asked by GET"

    sh.answer = answer
    sh.jobs.create("a", http.post(URL), at(NOON))

    with pytest.raises(AssertionError, match="by GET"):
        sh.advance("1m")


def test_a_call_to_a_queue_of_aws_is_recorded_and_answered(sh):
    action = {"type": "sqs", "targetArn": QUEUE, "roleArn": ROLE, "payload": {"order": 1}}
    job = sh.jobs.create("a", action, at(NOON))

    (call,) = sh.advance("1m")

    assert (call.kind, call.method, call.request["MessageBody"]) == ("sqs", "send_message", '{"order":1}')
    assert [run.state for run in sh.runs.list(job_id=job)] == ["SUCCESS"]


def test_a_refusal_of_aws_is_the_runs_reason(sh):
    sh.answer = lambda _: Reply(400, "AccessDenied")
    job = sh.jobs.create("a", {"type": "sqs", "targetArn": QUEUE, "roleArn": ROLE}, at(NOON))

    sh.advance("1m")

    (run,) = sh.runs.list(job_id=job)
    assert (run.state, run.message) == ("REQUEST_ERROR", "AccessDenied: ")


def test_the_queues_of_the_service_itself_are_refused_as_targets(sh):
    own = "arn:aws:sqs:eu-central-1:123456789012:sweephand-app-billing"

    with pytest.raises(InvalidField, match="resource of this service itself"):
        sh.jobs.create("a", {"type": "sqs", "targetArn": own, "roleArn": ROLE}, at(NOON))


def test_the_past_is_refused_with_both_instants(sh):
    with pytest.raises(InvalidArgument, match=r"2027-03-01T12:00:00Z.*2027-03-01T11:00:00Z"):
        sh.advance(NOON - timedelta(hours=1))
    with pytest.raises(InvalidArgument, match="time zone"):
        sh.advance(datetime(2027, 4, 1))  # noqa: DTZ001 - what is refused
    with pytest.raises(InvalidArgument, match="time zone"), stack(now=datetime(2027, 4, 1)):  # noqa: DTZ001
        pass


@pytest.mark.parametrize("by", ["P1M", "soon", ""])
def test_a_duration_that_is_none_is_refused(sh, by):
    with pytest.raises(InvalidArgument, match="by"):
        sh.advance(by)


def test_a_mistake_is_refused_as_by_the_service(sh):
    with pytest.raises(InvalidField) as refused:
        sh.jobs.create("a", http.post(URL, retry={"type": "fixed", "maxRetries": -1}), cron("61 * * * *"))

    assert {each.field for each in refused.value.errors} == {"action.retry.maxRetries", "schedules[0].cron"}


def test_paused_overlapping_and_missed_occurrences_are_in_the_ledger(sh):
    job = sh.jobs.create("a", http.post(URL), cron("0 * * * *"))
    sh.advance("90m")
    sh.jobs.pause(job, note="stock-taking")

    assert sh.advance("3h") == []

    sh.jobs.resume(job)
    assert len(sh.advance("1h")) == 1
    told = {(run.state, run.reason) for run in sh.runs.list(job_id=job)}
    assert told == {("SUCCESS", "ON_TIME"), ("SKIPPED", "PAUSED")}
    (schedule,) = sh.schedules.list(job)
    explained = sh.schedules.explain(job, schedule, at=NOON + timedelta(hours=3))
    assert (explained.reason, explained.occurs) == ("PAUSED", False)


def test_a_worker_of_the_application_carries_out_its_tasks(sh):
    worker, ran = Worker("billing"), []

    @worker.cron("0 * * * *", name="invoice")
    def invoice(run):
        ran.append((run.planned_at, run.attempt))
        if len(ran) == 1:
            raise ValueError("the first attempt fails")

    sh.work(worker)
    sh.advance("2h")

    hours = [timedelta(), timedelta(), timedelta(hours=1), timedelta(hours=2)]
    assert ran == [(NOON + hour, attempt) for hour, attempt in zip(hours, [1, 2, 1, 1], strict=True)]
    sh.stop(worker)
    sh.advance("70m")
    assert [kind for kind, _ in sh.events] == ["application.away"]


def test_a_consumer_gets_its_events_and_later_what_it_missed(sh):
    scheduler, got = JobScheduler(sh, consumer="app", receive=True), []
    scheduler.on_job(lambda data: got.append(("job", data.resource_id, sh.now.date().day)))
    scheduler.on_missed(lambda data: got.append(("missed", data.resource_id, sh.now.date().day)))
    sh.consume(scheduler)
    scheduler.create(resource_id="r", start=NOON + timedelta(hours=1), job_interval=JobInterval.DAILY)

    sh.advance("1d")
    sh.stop(scheduler)
    sh.advance("1d")
    sh.consume(scheduler)
    sh.advance("1d")

    assert got == [("job", "r", 1), ("missed", "r", 3), ("job", "r", 3)]


def test_tenants_of_a_provider_are_apart(sh):
    sh.provider.tenants.create(tenant="globex")
    issued = sh.client(PROVIDER, STACK_SECRET, tenant="globex").credentials.create()
    other = sh.client(issued.client_id, issued.secret)

    other.jobs.create("a", http.post(URL), every("1h"))

    assert (len(list(other.jobs.list())), len(list(sh.jobs.list()))) == (1, 0)


def test_asynchronous_code_uses_the_same_stack(sh):
    async def create() -> str:
        job = await sh.asynchronous.jobs.create("a", http.post(URL), every("1h"))
        return job.id

    job = asyncio.run(create())

    assert [call.job_id for call in sh.advance("1h")] == [job]


def test_stacks_know_nothing_of_each_other(sh):
    with stack(now=NOON + timedelta(days=400)) as other:
        other.jobs.create("a", http.post(URL), every("1h"))
        sh.advance("1d")
        assert len(other.advance("3h")) == 3

    assert (list(sh.jobs.list()), sh.calls) == ([], ())


def test_the_same_test_has_the_same_ids_each_time():
    def ids() -> list[str]:
        with stack(now=NOON) as made:
            made.jobs.create("a", http.post(URL), every("1h"))
            return [call.run_id for call in made.advance("3h")]

    assert ids() == ids()
