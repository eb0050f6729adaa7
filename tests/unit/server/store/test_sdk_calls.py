"""Calls as botocore makes them: how often a request goes out, what is repeated, and what its answers become."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectTimeoutError, NoCredentialsError, ReadTimeoutError
from botocore.httpsession import URLLib3Session

from sweephand.base.errors import Unavailable
from sweephand.base.sources import SystemChance, SystemClock
from sweephand.domain.schedule import Lane
from sweephand.server.messaging.run_queue import RunQueue
from sweephand.server.settings import Settings
from sweephand.server.store.dynamo.conditional import USER_AGENT, Cancelled, Refused, Table, Written
from sweephand.server.store.dynamo.table import AttemptItem, Item
from sweephand.server.wiring import build

PK = "TENANT#acme#X"
OTHER_TYPE = "com.amazonaws.dynamodb.v20120810#"


class Network:
    """Answers in the place of the network: the answers on the list, one after the other, then {}."""

    def __init__(self) -> None:
        self.requests: list[AWSPreparedRequest] = []
        self.answers: list[tuple[int, bytes, dict[str, str]] | Exception] = []

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else (200, b"{}", {})
        if isinstance(answer, Exception):
            raise answer
        status, content, headers = answer
        response = AWSResponse(request.url, status, headers, None)
        response._content = content
        return response

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.body) for request in self.requests]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    network = Network()
    monkeypatch.setattr(URLLib3Session, "send", lambda _, request: network.send(request))
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "example")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a token")
    return network


@pytest.fixture
def table(network: Network) -> Table:
    assert network
    table = Table("bench", SystemClock(), SystemChance(), region="eu-west-1")
    table.open()
    return table


def item(**members: Any) -> AttemptItem:
    return AttemptItem(pk=PK, sk="ä", attempt=1, started_at=0, finished_at=0, reason="no", **members)


def error(code: str, **members: Any) -> tuple[int, bytes, dict[str, str]]:
    return 400, json.dumps({"__type": OTHER_TYPE + code, "message": "no", **members}).encode(), {}


def test_a_plain_call_is_one_request(table: Table, network: Network) -> None:
    assert table.put(item(message="ü\x00#%"), Item.pk.does_not_exist()) == Written()

    (request,) = network.requests
    assert (request.method, request.url) == ("POST", "https://dynamodb.eu-west-1.amazonaws.com/")
    assert request.headers["X-Amz-Target"] == b"DynamoDB_20120810.PutItem"
    assert request.headers["X-Amz-Security-Token"] == b"a token"
    assert json.loads(request.body)["Item"]["message"] == {"S": "ü\x00#%"}


def test_requests_name_the_service_and_its_version(table: Table, network: Network) -> None:
    table.put(item())

    assert network.requests[0].headers["User-Agent"].startswith(USER_AGENT.encode())


def test_a_call_is_signed_by_the_credentials_of_its_time(table: Table, network: Network) -> None:
    table.put(item())
    credentials = table.session.get_credentials()
    credentials.token = "another"
    table.put(item())

    assert [request.headers["X-Amz-Security-Token"] for request in network.requests] == [b"a token", b"another"]


def test_a_failed_condition_is_one_request_and_brings_what_was_there(table: Table, network: Network) -> None:
    there = item().serialize()
    network.answers = [error("ConditionalCheckFailedException", Item=there)]

    assert table.put(item(), Item.pk.does_not_exist()) == Refused(there)
    assert len(network.requests) == 1


def test_a_cancelled_transaction_is_one_request_and_says_of_each_part_why(table: Table, network: Network) -> None:
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Message": "no"}]
    network.answers = [error("TransactionCanceledException", CancellationReasons=reasons)]
    ops = [table.put_op(name, item(), Item.pk.does_not_exist()) for name in ("one", "two")]

    assert table.transact(ops) == Cancelled({"two": Refused(None)})
    assert len(network.requests) == 1


PASSING: dict[str, tuple[int, bytes, dict[str, str]] | Exception] = {
    "throttled": error("ThrottlingException"),
    "a server's fault": (500, b'{"__type":"InternalServerError"}', {}),
    "the connection timed out": ConnectTimeoutError(endpoint_url="x"),
    "the answer was lost": ReadTimeoutError(endpoint_url="x"),
    "a broken answer": (200, b"{}", {"x-amz-crc32": "1"}),
    "half an answer": (
        200,
        b'{"Attributes": {"pk"',
        {"x-amz-crc32": str(zlib.crc32(b'{"Attributes": {"pk": {"S": "x"}}}'))},
    ),
    "a proxy's page": (503, b"<html>", {}),
}


@pytest.mark.parametrize("what", PASSING)
def test_transient_failures_are_retried_by_the_sdk(table: Table, network: Network, what: str) -> None:
    network.answers = [PASSING[what]]

    assert table.put(item()) == Written()
    assert len(network.requests) == 2
    assert network.requests[0].body == network.requests[1].body


def test_a_write_whose_answer_was_lost_meets_its_own_success(table: Table, network: Network) -> None:
    mine = item().serialize()
    network.answers = [ReadTimeoutError(endpoint_url="x"), error("ConditionalCheckFailedException", Item=mine)]

    assert table.put(item(), Item.pk.does_not_exist()) == Refused(mine)
    assert len(network.requests) == 2


def test_a_transaction_is_repeated_under_the_same_token(table: Table, network: Network) -> None:
    network.answers = [ReadTimeoutError(endpoint_url="x")]

    table.transact([table.put_op("one", item())])

    first, second = [body["ClientRequestToken"] for body in network.bodies()]
    assert first == second


def test_there_are_three_attempts_in_all(table: Table, network: Network) -> None:
    network.answers = [error("ThrottlingException")] * 4

    with pytest.raises(Unavailable):
        table.put(item())

    assert len(network.requests) == 3


def test_an_answer_with_its_checksum_is_taken(table: Table, network: Network) -> None:
    content = json.dumps({"Item": item(message="ü").serialize()}).encode()
    network.answers = [(200, content, {"x-amz-crc32": str(zlib.crc32(content))})]

    found = table.get(AttemptItem, PK, "ä")

    assert found is not None
    assert found.message == "ü"
    assert len(network.requests) == 1


def test_a_client_without_credentials_says_so(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    table = Table("bench", SystemClock(), SystemChance(), region="eu-west-1")
    table.open()

    with pytest.raises(Unavailable) as unavailable:
        table.put(item())

    assert isinstance(unavailable.value.__cause__, NoCredentialsError)
    assert network.requests == []


@pytest.fixture
def queue(network: Network) -> RunQueue:
    """Returns the queue as a function has it."""
    assert network
    urls = {Lane.FAST: "https://queue/fast", Lane.SLOW: "https://queue/slow"}
    settings = Settings("sweephand", "bench", region="eu-west-1", queue_urls=urls)
    return build(settings, clock=SystemClock(), chance=SystemChance()).queue


def test_the_messages_of_a_batch_are_postponed_in_one_request(queue: RunQueue, network: Network) -> None:
    network.answers = [(200, b'{"Successful": [], "Failed": []}', {})]

    queue.postpone(Lane.SLOW, {"a": 1, "b": 70_000})

    (request,) = network.requests
    assert request.url == "https://sqs.eu-west-1.amazonaws.com/"
    assert request.headers["X-Amz-Target"] == b"AmazonSQS.ChangeMessageVisibilityBatch"
    assert network.bodies() == [
        {
            "QueueUrl": "https://queue/slow",
            "Entries": [
                {"Id": "0", "ReceiptHandle": "a", "VisibilityTimeout": 1},
                {"Id": "1", "ReceiptHandle": "b", "VisibilityTimeout": 43_200},
            ],
        }
    ]


def test_a_postponement_refused_by_sqs_is_ignored(queue: RunQueue, network: Network) -> None:
    gone = 400, json.dumps({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"}).encode(), {}
    network.answers = [gone]

    queue.postpone(Lane.FAST, {"a": 1})

    assert len(network.requests) == 1
