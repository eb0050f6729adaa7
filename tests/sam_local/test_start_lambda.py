"""`sam local start-lambda`: one due job from its creation to its line in the ledger, each step in a container."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

import boto3
import pytest
from botocore.config import Config

from tests.local_stack.conftest import CLOCK
from tests.sam_local.conftest import run_block

ARRIVES_WITHIN_S = 120


@pytest.fixture(scope="module")
def url(sam):
    with sam.running("start-lambda") as url:
        yield url


@pytest.fixture(scope="module")
def invoke(url):
    """invoke("SweeperFunction", event): the function's answer, by boto3."""
    client = boto3.client(
        "lambda",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(read_timeout=300, retries={"total_max_attempts": 1}),
    )

    def call(function, event):
        answer = client.invoke(FunctionName=function, Payload=json.dumps(event))
        value = json.loads(answer["Payload"].read())
        assert "errorType" not in value, value
        return value

    yield call
    client.close()


def test_the_program_of_the_guide_invokes_the_sweeper(url):
    printed = run_block("boto3.client", {"http://127.0.0.1:3001": url})

    assert "sent" in json.loads(printed)


def test_a_due_job_succeeds_in_the_ledger_with_one_call_of_its_endpoint(invoke, event, stack, endpoint):
    job = _create(invoke, event, stack, endpoint)
    sqs = stack.boto("sqs")
    sqs.purge_queue(QueueUrl=stack.file.run_queue_url)  # the message of the creation is lost: the sweep repeats it

    tally = invoke("SweeperFunction", event("sweeper/tick"))
    batch = _received(stack, job)
    settled = invoke("ExecutorFunction", batch)
    again = invoke("ExecutorFunction", batch)

    assert tally["sent"] >= 1
    assert settled == again == {"batchItemFailures": []}
    (run,) = stack.client().get("/v1/runs", params={"jobId": job["id"]}).json()["items"]
    assert (run["status"], run["state"], run["httpStatus"]) == ("COMPLETED", "SUCCESS", 200)
    (call,) = endpoint.received
    assert (call.path, call.run_id, json.loads(call.body)) == ("/due", run["id"], {"hello": "container"})


def test_a_function_that_raises_is_distinguished_from_one_that_answers(invoke):
    with pytest.raises(AssertionError, match="KeyError"):
        invoke("ExecutorFunction", {"no": "records"})


def _create(invoke, event, stack, endpoint):
    """Creates a job that is due now, by the API function from the sample event with a credential that exists."""
    request = event("api/post_jobs")
    credential = stack.file.tenants["acme"]
    basic = base64.b64encode(f"{credential.client_id}:{credential.secret}".encode()).decode()
    request["headers"]["authorization"] = f"Basic {basic}"
    at = CLOCK.now().replace(microsecond=0) - timedelta(seconds=1)
    body = {
        "name": "due",
        "schedules": [{"at": at.isoformat()}],
        "action": {"type": "http", "url": f"{endpoint.url}/due", "payload": {"hello": "container"}},
    }
    answer = invoke("ApiFunction", request | {"body": json.dumps(body)})
    assert answer["statusCode"] == 201, answer["body"]
    return json.loads(answer["body"])


def _received(stack, job):
    """Returns the event that Lambda would make of the job's message in the run queue."""
    sqs = stack.boto("sqs")
    end = CLOCK.monotonic() + ARRIVES_WITHIN_S
    while CLOCK.monotonic() < end:
        answer = sqs.receive_message(
            QueueUrl=stack.file.run_queue_url,
            MessageSystemAttributeNames=["All"],
            WaitTimeSeconds=1,
        )
        for message in answer.get("Messages", []):
            if json.loads(message["Body"])["job"] == job["id"]:
                return {"Records": [_record(message)]}
    raise AssertionError("the sweeper sent nothing")


def _record(message):
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:sweephand-RunQueue",
        "awsRegion": "us-east-1",
    }
