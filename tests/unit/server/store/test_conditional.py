"""Reads and conditional writes: what AWS answers becomes a value or one of our errors."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from pynamodb.expressions.condition import Condition

from sweephand.base.errors import Unavailable
from sweephand.server.store.dynamo.conditional import (
    BATCH_GET_MOST,
    TRANSACTION_TRIES,
    Cancelled,
    Refused,
    Table,
    Written,
)
from sweephand.server.store.dynamo.expressions import add, assign
from sweephand.server.store.dynamo.table import AttemptItem, Item, StatsItem
from sweephand.testing.taps import Act, Passing
from tests.support.stage import Stage
from tests.support.taps import answer_lost, conflict

PK = "TENANT#acme#X"
ABSENT: Condition = Item.pk.does_not_exist()


def item(sk: str = "a", reason: str = "j", **members: Any) -> AttemptItem:
    return AttemptItem(pk=PK, sk=sk, attempt=1, started_at=0, finished_at=0, reason=reason, **members)


@pytest.fixture
def table(stage: Stage) -> Table:
    return stage.world.table


def refusing(code: str, status: int = 400) -> Any:
    def refuse(passing: Passing, _act: Act) -> Any:
        answer = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise ClientError(answer, passing.operation)

    return refuse


def test_a_put_item_can_be_read(table: Table) -> None:
    assert table.put(item(message="ü\x00#%")) == Written()

    found = table.get(AttemptItem, PK, "a")
    assert found is not None
    assert (found.reason, found.message, found.http_status) == ("j", "ü\x00#%", None)
    assert table.get(AttemptItem, PK, "b") is None


def test_a_failed_condition_is_a_value_with_what_was_there(table: Table) -> None:
    table.put(item(reason="first"))

    for refused in (
        table.put(item(reason="second"), ABSENT),
        table.update(PK, "a", [assign(AttemptItem.reason, "second")], AttemptItem.reason == "other"),
        table.delete(PK, "a", AttemptItem.reason == "other"),
    ):
        assert isinstance(refused, Refused)
        there = refused.read(AttemptItem)
        assert there is not None
        assert there.reason == "first"


def test_a_failed_condition_on_nothing_says_that_there_was_nothing(table: Table) -> None:
    refused = table.update(PK, "a", [assign(AttemptItem.reason, "x")], Item.pk.exists())

    assert refused == Refused(None)
    assert isinstance(refused, Refused)
    assert refused.read(AttemptItem) is None


# Transactions


def test_a_transaction_is_all_or_nothing_and_names_what_refused(table: Table) -> None:
    table.put(item("taken", "first"))
    table.put(item("checked"))

    done = table.transact(
        [
            table.put_op("free", item("free")),
            table.put_op("taken", item("taken", "second"), ABSENT),
            table.check_op("check", PK, "checked", AttemptItem.reason == "j"),
        ]
    )

    assert isinstance(done, Cancelled)
    assert done.refused.keys() == {"taken"}
    there = done.refused["taken"].read(AttemptItem)
    assert there is not None
    assert there.reason == "first"
    assert table.get(AttemptItem, PK, "free") is None


def test_a_transaction_repeated_by_the_sdk_meets_its_own_conditions(table: Table, stage: Stage) -> None:
    ops = [
        table.put_op("row", item(), ABSENT),
        table.update_op("stats", PK, "s", [add(StatsItem.failed, 1)]),
    ]

    with stage.taps.once("dynamodb.TransactWriteItems", answer_lost):
        done = table.transact(ops)

    assert isinstance(done, Cancelled)
    found = table.get(StatsItem, PK, "s")
    assert found is not None
    assert found.failed == 1


def test_conflicts_are_tried_again_with_growing_waits_and_then_given_up(table: Table, stage: Stage) -> None:
    with stage.taps.faulty(conflict), pytest.raises(Unavailable):
        table.transact([table.put_op("row", item())])

    assert stage.taps.count("dynamodb.TransactWriteItems") == TRANSACTION_TRIES
    assert 0.1 <= stage.clock.slept_s <= 5


def test_a_cancellation_that_no_repetition_can_help_is_raised(table: Table, stage: Stage) -> None:
    def too_large(passing: Passing, _act: Act) -> Any:
        answer = {
            "Error": {"Code": "TransactionCanceledException", "Message": ""},
            "CancellationReasons": [{"Code": "ItemCollectionSizeLimitExceeded"}],
        }
        raise ClientError(answer, passing.operation)

    with stage.taps.faulty(too_large), pytest.raises(ClientError):
        table.transact([table.put_op("row", item())])
    assert stage.taps.count("dynamodb.TransactWriteItems") == 1


# Errors


@pytest.mark.parametrize(
    "fault",
    [
        refusing("ThrottlingException"),
        refusing("ProvisionedThroughputExceededException"),
        refusing("TransactionConflictException"),
        refusing("InternalServerError", 500),
        refusing("WhateverElse", 503),
    ],
)
def test_throttling_and_faults_of_the_table_are_unavailable(table: Table, stage: Stage, fault: Any) -> None:
    with stage.taps.faulty(fault), pytest.raises(Unavailable):
        table.get(AttemptItem, PK, "a")


def test_a_time_out_is_unavailable(table: Table, stage: Stage) -> None:
    def silent(_passing: Passing, _act: Act) -> Any:
        raise ConnectTimeoutError(endpoint_url="https://dynamodb")

    with stage.taps.faulty(silent), pytest.raises(Unavailable):
        table.put(item())


def test_a_mistake_of_ours_is_raised_as_it_is(table: Table, stage: Stage) -> None:
    with stage.taps.faulty(refusing("ValidationException")), pytest.raises(ClientError):
        table.put(item())


# Reading many


def test_many_items_are_read_in_pages_of_a_hundred(table: Table, stage: Stage) -> None:
    for n in range(BATCH_GET_MOST + 20):
        table.put(item(f"{n:03d}", str(n)))
    stage.taps.passed.clear()

    found = table.batch_get((PK, f"{n:03d}") for n in range(BATCH_GET_MOST + 30))

    assert len(found) == BATCH_GET_MOST + 20
    assert found[PK, "007"]["reason"] == {"S": "7"}
    assert stage.taps.count("dynamodb.BatchGetItem") == 2


def test_keys_that_are_asked_for_twice_are_read_once(table: Table) -> None:
    table.put(item())

    assert list(table.batch_get([(PK, "a"), (PK, "a")])) == [(PK, "a")]


def test_keys_left_over_by_dynamodb_are_requested_again(table: Table, stage: Stage) -> None:
    for sk in "abc":
        table.put(item(sk))

    def first_key_only(passing: Passing, act: Act) -> Any:
        (name, wanted), *_ = passing.request["RequestItems"].items()
        left, wanted["Keys"] = wanted["Keys"][1:], wanted["Keys"][:1]
        answer = act()
        return {**answer, "UnprocessedKeys": {name: {"Keys": left}} if left else {}}

    with stage.taps.faulty(first_key_only):
        assert len(table.batch_get([(PK, sk) for sk in "abc"])) == 3


def test_keys_left_over_for_too_long_are_unavailable(table: Table, stage: Stage) -> None:
    def nothing(passing: Passing, _act: Act) -> Any:
        return {"Responses": {}, "UnprocessedKeys": passing.request["RequestItems"]}

    with stage.taps.faulty(nothing), pytest.raises(Unavailable):
        table.batch_get([(PK, "a")])


def test_a_query_continues_over_all_its_pages_in_both_directions(table: Table) -> None:
    for n in range(7):
        table.put(item(f"{n}"))

    forward = [row["sk"]["S"] for row in table.query_all(PK, limit=3)]
    backward = [row["sk"]["S"] for row in table.query_all(PK, Item.sk.between("1", "5"), limit=2, forward=False)]

    assert forward == [str(n) for n in range(7)]
    assert backward == ["5", "4", "3", "2", "1"]


def test_a_query_that_is_read_on_takes_more_at_once(stage: Stage, table: Table) -> None:
    for n in range(200):
        table.put(item(f"{n:03d}"))
    stage.taps.passed.clear()

    rows = table.query_all(PK, limit=3)
    first = [next(rows)["sk"]["S"] for _ in range(3)]

    assert [passing.request["Limit"] for passing in stage.taps.passed] == [3]
    assert [*first, *(row["sk"]["S"] for row in rows)] == [f"{n:03d}" for n in range(200)]
    assert [passing.request["Limit"] for passing in stage.taps.passed] == [3, 48, 768]
