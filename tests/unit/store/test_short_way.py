"""The short way of a call: request, signature and answer are botocore's, and what goes wrong is left to botocore.

botocore makes the first request of each operation, and the next are made like it: so most is asked twice.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSPreparedRequest, AWSRequest, AWSResponse
from botocore.credentials import Credentials
from botocore.exceptions import ConnectTimeoutError, NoCredentialsError, ReadTimeoutError
from botocore.httpsession import URLLib3Session
from moto import mock_aws

from sweephand.domain.schedule import Lane
from sweephand.errors import Unavailable
from sweephand.messaging.run_queue import RunQueue
from sweephand.settings import Settings
from sweephand.sources import SystemChance, SystemClock
from sweephand.store import short_way
from sweephand.store.conditional import Cancelled, Refused, Table, Written
from sweephand.store.expressions import assign
from sweephand.store.table import AttemptItem, Item, StatsItem
from sweephand.wiring import build
from tests.support import aws

NOW = datetime(2027, 3, 1, 12, 30, 5, tzinfo=UTC)
PK = "TENANT#acme#X"
OTHER_TYPE = "com.amazonaws.dynamodb.v20120810#"


class Network:
    """Answers in the place of the network: what is on the list, one after the other, then {}."""

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

    def after_the_first(self, call: Callable[[], object]) -> None:
        """Lets the first call go by, so that the next goes past botocore."""
        answers, self.answers = self.answers, []
        call()
        self.requests.clear()
        self.answers = answers

    def ways(self) -> list[str]:
        """Of each request: botocore counts its own."""
        return ["long" if "amz-sdk-request" in request.headers else "short" for request in self.requests]


class StillClock(SystemClock):
    def now(self) -> datetime:
        return NOW


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
    table = Table("bench", StillClock(), SystemChance(), region="eu-west-1")
    table.open()
    return table


def item(**members: Any) -> AttemptItem:
    return AttemptItem(pk=PK, sk="ä", attempt=1, started_at=0, finished_at=0, reason="no", **members)


@pytest.fixture(params=["first", "later"])
def turn(request: pytest.FixtureRequest, table: Table, network: Network) -> None:
    """Of a put."""
    if request.param == "later":
        network.after_the_first(lambda: table.put(item()))


def error(code: str, **members: Any) -> tuple[int, bytes, dict[str, str]]:
    return 400, json.dumps({"__type": OTHER_TYPE + code, "message": "no", **members}).encode(), {}


def test_a_plain_call_is_one_request_the_short_way(table: Table, network: Network) -> None:
    assert table.put(item(), Item.pk.does_not_exist()) == Written()

    (request,) = network.requests
    assert network.ways() == ["short"]
    assert (request.method, request.url) == ("POST", "https://dynamodb.eu-west-1.amazonaws.com/")
    assert request.headers["X-Amz-Target"] == "DynamoDB_20120810.PutItem"
    assert json.loads(request.body)["Item"]["sk"] == {"S": "ä"}
    assert request.headers["Content-Length"] == str(len(request.body))


@pytest.mark.parametrize("token", [None, "a token"])
@pytest.mark.parametrize("url", ["https://dynamodb.eu-west-1.amazonaws.com/", "http://127.0.0.1:4566/"])
def test_the_signature_is_that_of_botocore(monkeypatch: pytest.MonkeyPatch, url: str, token: str | None) -> None:
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda **_: NOW.replace(tzinfo=None), raising=False)
    headers = {"X-Amz-Target": "DynamoDB_20120810.PutItem", "Content-Type": "application/x-amz-json-1.0"}
    theirs = AWSRequest("POST", url, headers, '{"x":"ä"}'.encode())
    SigV4Auth(Credentials("key", "secret", token), "dynamodb", "eu-west-1").add_auth(theirs)

    signer = short_way.Signer("key", "secret", token, "eu-west-1")
    for _ in range(2):
        ours = signer.headers(url, {**headers, "User-Agent": "x"}, '{"x":"ä"}'.encode(), NOW)

        assert ours == {name: theirs.headers[name] for name in theirs.headers if name not in headers}
    assert ours["X-Amz-Date"] == "20270301T123005Z"
    tomorrow = signer.headers(url, headers, b"", NOW.replace(day=2))
    assert tomorrow == short_way.Signer("key", "secret", token, "eu-west-1").headers(
        url, headers, b"", NOW.replace(day=2)
    )


def test_the_next_call_is_the_same_request_past_botocore(table: Table, network: Network) -> None:
    asked: list[str] = []
    table.client.meta.events.register("provide-client-params", lambda model, **_: asked.append(model.name))

    for _ in range(3):
        table.put(item(message="ü\x00"), Item.pk.does_not_exist())

    first, *others = [(request.url, request.body, dict(request.headers)) for request in network.requests]
    assert others == [first, first]
    assert asked == ["PutItem"]


def test_a_call_is_signed_by_the_credentials_of_its_time(table: Table, network: Network) -> None:
    table.put(item())
    credentials = table.session.get_credentials()
    credentials.token = "another"
    table.put(item())

    assert [request.headers["X-Amz-Security-Token"] for request in network.requests] == ["a token", "another"]


@pytest.mark.usefixtures("turn")
def test_a_failed_condition_is_one_request_and_brings_what_was_there(table: Table, network: Network) -> None:
    there = item().serialize()
    network.answers = [error("ConditionalCheckFailedException", Item=there)]

    assert table.put(item(), Item.pk.does_not_exist()) == Refused(there)
    assert network.ways() == ["short"]


def test_a_cancelled_transaction_is_one_request_and_says_of_each_part_why(table: Table, network: Network) -> None:
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Message": "no"}]
    network.answers = [error("TransactionCanceledException", CancellationReasons=reasons)]
    ops = [table.put_op(name, item(), Item.pk.does_not_exist()) for name in ("one", "two")]

    assert table.transact(ops) == Cancelled({"two": Refused(None)})
    assert network.ways() == ["short"]


OTHERWISE: dict[str, tuple[int, bytes, dict[str, str]] | Exception] = {
    "throttled": error("ThrottlingException"),
    "a server's fault": (500, b'{"__type":"InternalServerError"}', {}),
    "the connection timed out": ConnectTimeoutError(endpoint_url="x"),
    "the answer was lost": ReadTimeoutError(endpoint_url="x"),
    "half an answer": (200, b'{"Item": {"pk"', {}),
    "not an object": (200, b"[]", {}),
    "a broken answer": (200, b"{}", {"x-amz-crc32": "1"}),
    "a proxy's page": (400, b"<html>", {}),
}


@pytest.mark.usefixtures("turn")
@pytest.mark.parametrize("what", OTHERWISE)
def test_what_goes_wrong_is_made_once_more_by_botocore(table: Table, network: Network, what: str) -> None:
    network.answers = [OTHERWISE[what]]

    assert table.put(item()) == Written()
    assert network.ways() == ["short", "long"]
    assert network.requests[0].body == network.requests[1].body


@pytest.mark.usefixtures("turn")
def test_a_write_whose_answer_was_lost_meets_its_own_success(table: Table, network: Network) -> None:
    mine = item().serialize()
    network.answers = [ReadTimeoutError(endpoint_url="x"), error("ConditionalCheckFailedException", Item=mine)]

    assert table.put(item(), Item.pk.does_not_exist()) == Refused(mine)
    assert network.ways() == ["short", "long"]


def test_a_transaction_is_repeated_under_the_same_token(table: Table, network: Network) -> None:
    network.answers = [ReadTimeoutError(endpoint_url="x")]

    table.transact([table.put_op("one", item())])

    tokens = [json.loads(request.body)["ClientRequestToken"] for request in network.requests]
    assert network.ways() == ["short", "long"]
    assert tokens[0] == tokens[1]


@pytest.mark.usefixtures("turn")
def test_there_are_three_attempts_in_all(table: Table, network: Network) -> None:
    network.answers = [error("ThrottlingException")] * 4

    with pytest.raises(Unavailable):
        table.put(item())

    assert network.ways() == ["short", "long", "long"]


def test_an_answer_with_its_checksum_is_taken(table: Table, network: Network) -> None:
    content = json.dumps({"Item": item(message="ü").serialize()}).encode()
    network.answers = [(200, content, {"x-amz-crc32": str(zlib.crc32(content))})]

    found = table.get(AttemptItem, PK, "ä")

    assert found is not None
    assert found.message == "ü"
    assert network.ways() == ["short"]


def test_a_client_without_credentials_says_so(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    table = Table("bench", StillClock(), SystemChance(), region="eu-west-1")
    table.open()

    with pytest.raises(Unavailable) as unavailable:
        table.put(item())

    assert isinstance(unavailable.value.__cause__, NoCredentialsError)
    assert network.requests == []


def test_a_botocore_without_that_session_goes_the_long_way(network: Network) -> None:
    table = Table("bench", StillClock(), SystemChance(), region="eu-west-1")
    hidden = SimpleNamespace(meta=table.client.meta)
    short_way.lay(hidden, table.session.get_credentials(), StillClock())

    assert table.put(item()) == Written()
    assert network.ways() == ["long"]


@pytest.fixture
def queue(network: Network) -> RunQueue:
    """As a function has it."""
    assert network
    urls = {Lane.FAST: "https://queue/fast", Lane.SLOW: "https://queue/slow"}
    settings = Settings(
        "sweephand", "bench", region="eu-west-1", queue_urls=urls, archive_queue_url="https://queue/archive"
    )
    return build(settings, clock=StillClock(), chance=SystemChance()).queue


def test_a_batch_s_messages_are_put_off_the_short_way(queue: RunQueue, network: Network) -> None:
    """As botocore does it, but for what it counts: its first request is the model of the next."""
    network.answers = [(200, b'{"Successful": [], "Failed": []}', {})] * 2

    queue.postpone(Lane.FAST, {"first": 25})
    queue.postpone(Lane.SLOW, {"a": 1, "b": 70_000})

    assert network.ways() == ["short", "short"]
    first, second = network.requests
    assert {first.url, second.url} == {"https://sqs.eu-west-1.amazonaws.com/"}
    assert second.headers["X-Amz-Target"] == "AmazonSQS.ChangeMessageVisibilityBatch"
    assert first.headers.keys() == second.headers.keys()
    assert "/eu-west-1/sqs/aws4_request" in second.headers["Authorization"]
    assert json.loads(second.body) == {
        "QueueUrl": "https://queue/slow",
        "Entries": [
            {"Id": "0", "ReceiptHandle": "a", "VisibilityTimeout": 1},
            {"Id": "1", "ReceiptHandle": "b", "VisibilityTimeout": 43_200},
        ],
    }


def test_what_sqs_refuses_is_asked_of_botocore_and_then_left(queue: RunQueue, network: Network) -> None:
    gone = 400, json.dumps({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"}).encode(), {}
    network.after_the_first(lambda: queue.postpone(Lane.FAST, {"first": 25}))
    network.answers = [gone, gone]

    queue.postpone(Lane.FAST, {"a": 1})

    assert network.ways() == ["short", "long"]


def test_other_calls_of_the_queue_are_botocore_s(queue: RunQueue, network: Network) -> None:
    network.after_the_first(lambda: queue.postpone(Lane.FAST, {"first": 25}))
    network.answers = [(200, b'{"MessageId": "m", "MD5OfMessageBody": "0"}', {})]

    queue.archive("a letter")

    assert network.ways() == ["long"]


CALLS: dict[str, Callable[[Table], object]] = {
    "put": lambda table: table.put(item(message="ü\x00#%")),
    "refused": lambda table: table.put(item(), Item.pk.does_not_exist()),
    "get": lambda table: table.call("get_item", TableName=table.name, Key={"pk": {"S": PK}, "sk": {"S": "ä"}}),
    "get none": lambda table: table.get(AttemptItem, PK, "none"),
    "update": lambda table: table.update(PK, "ä", [assign(AttemptItem.reason, None)], AttemptItem.attempt == 1),
    "increase": lambda table: table.increase(PK, "n", StatsItem.failed),
    "batch get": lambda table: table.batch_get([(PK, "ä"), (PK, "none")]),
    "query": lambda table: table.query(PK, limit=1),
    "transaction": lambda table: table.transact([table.put_op("a", item()), table.delete_op("b", PK, "n")]),
    "cancelled": lambda table: table.transact([table.put_op("a", item(), Item.pk.does_not_exist())]),
    "delete": lambda table: table.delete(PK, "ä", Item.pk.exists()),
}


def test_both_ways_bring_the_same_answers() -> None:
    def answers(*, short: bool) -> tuple[list[list[object]], list[str]]:
        went: list[str] = []
        with mock_aws():
            table = Table("bench", StillClock(), SystemChance(), region="eu-west-1")
            if short:
                table.open()
            events = table.client.meta.events
            events.register("request-created.dynamodb", lambda operation_name, **_: went.append(operation_name))
            table.client.create_table(**aws.table_request(table.name))
            went.clear()
            return [[_without_metadata(call(table)) for call in CALLS.values()] for _ in range(2)], went

    (by_short_way, again), of_botocore = answers(short=True)
    (by_long_way, all_again), all_calls = answers(short=False)

    assert by_short_way == by_long_way
    assert again == all_again
    assert (of_botocore, len(all_calls)) == ([], 2 * len(CALLS))
    assert isinstance(by_short_way[1], Refused)
    assert by_short_way[1].old is not None


def _without_metadata(answer: object) -> object:
    return {k: v for k, v in answer.items() if k != "ResponseMetadata"} if isinstance(answer, dict) else answer
