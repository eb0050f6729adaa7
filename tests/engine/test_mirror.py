"""The mirror detects answers of the in-memory table that differ from the engine's.

conftest.py skips this file on machines without an engine; `make test-rest` says so, and fails in CI.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sweephand.testing.memory import Dynamo
from tests.engine.mirror import GRAMMAR, Engine, Mirror
from tests.support import aws

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture
def table(engine: Engine) -> Iterator[Mirror]:
    mirror = Mirror(Dynamo(aws.table_request("t")), engine)
    yield mirror
    mirror.close()


def test_the_same_answers_pass(table: Mirror) -> None:
    table("PutItem", {"TableName": "t", "Item": {**KEY, "n": {"N": "1"}}})

    assert table("GetItem", {"TableName": "t", "Key": KEY})["Item"]["n"] == {"N": "1"}


def test_a_different_answer_is_detected(table: Mirror) -> None:
    table("PutItem", {"TableName": "t", "Item": {**KEY, "n": {"N": "1"}}})
    table._own.items[("a", "b")] = {**KEY, "n": {"N": "2"}}

    with pytest.raises(AssertionError):
        table("GetItem", {"TableName": "t", "Key": KEY})


def test_a_request_that_only_aws_refuses_is_detected(table: Mirror) -> None:
    request: dict[str, Any] = {
        "TableName": "t",
        "Key": KEY,
        "UpdateExpression": "SET #0 = :0",
        "ExpressionAttributeNames": {"#0": "n", "#1": "unused"},
        "ExpressionAttributeValues": {":0": {"N": "1"}},
    }

    with pytest.raises(AssertionError, match="unused"):
        table("UpdateItem", request)


def test_statements_follow_the_grammar_of_aws() -> None:
    assert GRAMMAR.fullmatch('UPDATE "t" SET "a"=? SET "b"=? WHERE "pk"=? AND "sk"=?')
    assert not GRAMMAR.fullmatch('UPDATE "t" SET "a"=?, "b"=? WHERE "pk"=?')
    assert not GRAMMAR.fullmatch('UPDATE "t" SET "a"=?')
