"""A row of the caller's own and its job: what deaths and repetitions do to the two. Contract of Root, R26."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from sweephand.sdk import InvalidArgument, TransportError, event, every
from sweephand.sdk.outbox import DynamoOutbox
from sweephand.testing import Stack, stack
from sweephand.testing.sources import START

KEY = "order-4711/reminder"
JOB = {"action": event(payload={"order": 4711}), "schedules": every("PT1H"), "resource_id": "order-4711"}


@pytest.fixture
def dynamo() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("dynamodb", region_name="eu-central-1", aws_access_key_id="a", aws_secret_access_key="b")
        for table in ("orders", "outbox"):
            client.create_table(
                TableName=table,
                KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
        yield client


@pytest.fixture
def sh() -> Iterator[Stack]:
    with stack(now=START) as made:
        yield made


def order(**more: Any) -> dict[str, Any]:
    return {"Put": {"TableName": "orders", "Item": {"id": {"S": "4711"}}, **more}}


def rows(dynamo: Any, table: str) -> int:
    count: int = dynamo.scan(TableName=table)["Count"]
    return count


def test_a_row_and_its_job_are_created_once_however_often_both_calls_are_repeated(sh, dynamo):
    outbox = DynamoOutbox("outbox", client=dynamo)

    for _ in range(2):
        outbox.write(KEY, [order()], **JOB)
    assert [outbox.relay(sh) for _ in range(2)] == [1, 0]
    outbox.write(KEY, [order()], **JOB)
    assert outbox.relay(sh) == 1

    (job,) = sh.jobs.list()
    assert (job.name, job.resource_id, job.next_run_at is not None) == (KEY, "order-4711", True)
    assert (rows(dynamo, "orders"), rows(dynamo, "outbox")) == (1, 0)


def test_a_row_that_is_refused_leaves_no_job(sh, dynamo):
    outbox = DynamoOutbox("outbox", client=dynamo)

    with pytest.raises(ClientError, match="TransactionCanceledException"):
        outbox.write(KEY, [order(ConditionExpression="attribute_exists(id)")], **JOB)

    assert (outbox.relay(sh), list(sh.jobs.list())) == (0, [])
    assert rows(dynamo, "orders") == 0


@pytest.mark.parametrize("key_is_known", [True, False])
def test_a_relay_that_dies_after_the_job_makes_no_second_one(sh, dynamo, key_is_known):
    """The Idempotency-Key counts for a day; after it, the name does."""
    outbox = DynamoOutbox("outbox", client=dynamo)
    outbox.write(KEY, [order()], **JOB)
    dies = mock.patch.object(outbox, "_asked", side_effect=[dynamo.scan(TableName="outbox"), TransportError("died")])
    with dies, pytest.raises(TransportError):
        outbox.relay(sh)
    assert rows(dynamo, "outbox") == 1

    if not key_is_known:
        sh.advance("2d")

    assert outbox.relay(sh) == 1
    assert len(list(sh.jobs.list())) == 1
    assert rows(dynamo, "outbox") == 0


def test_a_job_that_the_service_refuses_delays_no_other(sh, dynamo, caplog):
    outbox = DynamoOutbox("outbox", client=dynamo)
    outbox.write("wrong", [order()], **JOB | {"schedules": every("often")})
    outbox.write("right", [order()], **JOB)

    assert outbox.relay(sh) == 1

    assert [job.name for job in sh.jobs.list()] == ["right"]
    assert rows(dynamo, "outbox") == 1
    assert "the job wrong stays in the outbox outbox: POST /v1/jobs: 422" in caplog.text


def test_an_impossible_job_is_refused_before_anything_is_written(dynamo):
    outbox = DynamoOutbox("outbox", client=dynamo)

    for key in ("", "k" * 129, "kéy"):
        with pytest.raises(InvalidArgument, match="key must"):
            outbox.write(key, [order()], **JOB)
    with pytest.raises(TypeError, match="resourceId"):
        outbox.write(KEY, [order()], **JOB, resourceId="r")

    assert rows(dynamo, "orders") == rows(dynamo, "outbox") == 0


def test_a_job_that_cannot_be_sent_is_refused_before_anything_is_written(dynamo):
    outbox = DynamoOutbox("outbox", client=dynamo)

    for key, payload in (("a", float("nan")), (None, 1), (5, 1)):
        with pytest.raises(InvalidArgument):
            outbox.write(key, [order()], action=event(payload=payload), schedules=every("PT1H"))

    assert (rows(dynamo, "orders"), rows(dynamo, "outbox")) == (0, 0)


def test_a_job_that_the_client_refuses_delays_no_other(sh, dynamo):
    outbox = DynamoOutbox("outbox", client=dynamo)
    outbox.write("b", [], **JOB)
    poison = '{"action": {"type": "event", "detailType": "job", "payload": NaN}}'
    dynamo.put_item(TableName="outbox", Item={"id": {"S": "a"}, "job": {"S": poison}})

    assert outbox.relay(sh) == 1
    assert [job.name for job in sh.jobs.list()] == ["b"]
