"""The table in memory answers as moto does: by the same sequences of operations, which are those of whole histories."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sweephand.testing import expressions, memory
from sweephand.testing.memory import Memory
from sweephand.testing.taps import Taps
from tests.faults.play import Plan, Scenario, play
from tests.faults.scenarios import SCENARIOS
from tests.support import aws
from tests.support.stage import TABLE, _clients, on_moto

PLANS: dict[str, list[Plan]] = {
    "retry": [((number, kind),) for number in (1, 5, 12, 14) for kind in ("answer-lost", "second-sweeper")],
    "catch-up-all": [((number, "second-sweeper"),) for number in (20, 30, 40)],
    "delete": [((number, "second-executor"),) for number in (12, 20)],
}
"""In addition to the plain histories: what makes conditions fail."""


@dataclass(frozen=True)
class Asked:
    operation: str
    request: dict[str, Any]
    answer: Any


@contextmanager
def recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Asked]]:
    """Records the requests to the table in memory, and its answers."""
    asked: list[Asked] = []
    real = Memory.__call__

    def call(self: Memory, service: str, operation: str, request: dict[str, Any]) -> Any:
        if service != "dynamodb":
            return real(self, service, operation, request)
        before = copy.deepcopy(request)
        try:
            answer = real(self, service, operation, request)
        except ClientError as refused:
            asked.append(Asked(operation, before, _refusal(refused)))
            raise
        asked.append(Asked(operation, before, _answer(operation, answer)))
        return answer

    monkeypatch.setattr(Memory, "__call__", call)
    yield asked


def _answer(operation: str, answer: Any) -> Any:
    if operation == "CreateTable":
        return {}
    kept = {name: answer[name] for name in ("Item", "Items", "Responses", "Attributes") if name in answer}
    kept["more"] = "LastEvaluatedKey" in answer
    return _plain(kept)


def _refusal(refused: ClientError) -> Any:
    reasons = [(reason.get("Code"), reason.get("Item")) for reason in refused.response.get("CancellationReasons", [])]
    return refused.response["Error"]["Code"], _plain(refused.response.get("Item")), _plain(reasons)


def _plain(value: Any) -> Any:
    """Sets without order, numbers by their size; messages of errors differ."""
    if isinstance(value, dict):
        return {
            name: sorted(inner) if name == "SS" else _plain(inner) for name, inner in value.items() if name != "Message"
        }
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def answered(client: Any, asked: list[Asked]) -> Iterator[tuple[Asked, Any]]:
    """Sends the same requests to another table: what it was, and what is answered here."""
    for each in asked:
        try:
            answer = _answer(each.operation, client._make_api_call(each.operation, copy.deepcopy(each.request)))
        except ClientError as refused:
            answer = _refusal(refused)
        yield each, answer


def idle(before: Asked | None, now: Asked) -> bool:
    """Tells whether this is a look into an index that had nothing, like the look before it."""
    return before is not None and (now.operation, now.answer) == (before.operation, before.answer) == ("Query", NOTHING)


NOTHING = {"Items": [], "more": False}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", SCENARIOS)
def test_each_answer_of_a_history_equals_motos(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for plan in [(), *PLANS.get(name, [])]:
        asked = asked_in(SCENARIOS[name], plan, monkeypatch)

        with on_moto(Taps()):
            for each, answer in answered(_clients()[0].client, asked):
                assert comparable(each.request, answer) == comparable(each.request, each.answer), each


def comparable(request: dict[str, Any], answer: Any) -> Any:
    """Leaves out what DynamoDB leaves open: the order of a scan and of equal places in an index, and whether a full
    page says that it is the last. And without the keys that moto adds to what an update gives back (tests/engine holds
    that).
    """
    if request.get("ReturnValues") == "UPDATED_NEW" and "Attributes" in answer:
        return {name: value for name, value in answer["Attributes"].items() if name not in request["Key"]}
    if "Items" not in answer:
        return answer
    items = answer["Items"]
    if "IndexName" in request or "KeyConditionExpression" not in request:
        items = sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
    return items, None if "Limit" in request else answer["more"]


def asked_in(scenario: Scenario, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    with recording(monkeypatch) as asked:
        play(scenario, plan)
    monkeypatch.undo()
    return [now for before, now in zip([None, *asked], asked, strict=False) if not idle(before, now)]


# Requests that the histories do not make


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("attribute_exists(a) AND NOT attribute_not_exists(a)", True),
        ("a = :one OR b = :one AND c = :one", True),
        ("(a = :one OR b = :one) AND c = :one", False),
        ("a <> :two", True),
        ("missing <> :one", True),
        ("missing = :one", False),
        ("missing < :one", False),
        ("a BETWEEN :one AND :two", True),
        ("a IN (:two, :one)", True),
        ("size(s) >= :two", True),
        ("begins_with(s, :x)", True),
        ("contains(t, :x)", True),
        ("s < :one", False),
    ],
)
def test_conditions_are_evaluated_as_dynamodb_documents_them(text: str, holds: bool) -> None:
    item = {"a": {"N": "1"}, "s": {"S": "xyz"}, "t": {"SS": ["x", "y"]}}
    values = {":one": {"N": "1.0"}, ":two": {"N": "2"}, ":x": {"S": "x"}}

    assert expressions.condition(text)(item, {}, values) is holds


def test_every_value_in_an_update_comes_from_the_old_item() -> None:
    item = {"a": {"N": "1"}, "b": {"N": "2"}, "t": {"SS": ["x"]}}
    steps = expressions.update("SET a = b, b = a + :one, c = if_not_exists(c, :one) REMOVE d ADD e :one DELETE t :x")

    changed = expressions.apply(steps, item, {}, {":one": {"N": "1"}, ":x": {"SS": ["x"]}})

    assert changed == {"a": {"N": "2"}, "b": {"N": "2"}, "c": {"N": "1"}, "e": {"N": "1"}}


@pytest.mark.parametrize(
    "text", ["a.b = :one", "a = :one AND", "attribute_type(a, :one)", "a LIKE :one", "a[0] = :one"]
)
def test_an_unknown_expression_is_refused_and_not_guessed(text: str) -> None:
    with pytest.raises(NotImplementedError):
        expressions.condition(text)


def test_an_unknown_request_is_refused_and_not_guessed() -> None:
    table = memory.Dynamo(aws.table_request(TABLE))
    key = {"pk": {"S": "a"}, "sk": {"S": "b"}}

    with pytest.raises(NotImplementedError):
        table("GetItem", {"TableName": TABLE, "Key": key, "AttributesToGet": ["a"]})
    with pytest.raises(NotImplementedError):
        table("DescribeTable", {"TableName": TABLE})
