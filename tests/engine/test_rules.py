"""Each rule finds what it is about, and a request of the service has none of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine import rules

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
UPDATE: dict[str, Any] = {
    "Key": KEY,
    "UpdateExpression": "SET #0 = :0 REMOVE #1",
    "ConditionExpression": "attribute_exists(#2) AND #0 <> :0",
    "ExpressionAttributeNames": {"#0": "state", "#1": "owner", "#2": "pk"},
    "ExpressionAttributeValues": {":0": {"S": "x"}},
}
QUERY: dict[str, Any] = {
    "KeyConditionExpression": "#0 = :0 AND #1 BETWEEN :1 AND :2",
    "ExpressionAttributeNames": {"#0": "pk", "#1": "sk"},
    "ExpressionAttributeValues": {":0": {"S": "a"}, ":1": {"S": "a"}, ":2": {"S": "b"}},
}


@pytest.mark.parametrize(("operation", "request_"), [("UpdateItem", UPDATE), ("Query", QUERY)])
def test_a_sound_request_has_no_problem(operation: str, request_: Any) -> None:
    assert list(rules.problems(operation, request_)) == []
    if operation == "UpdateItem":
        assert list(rules.problems("TransactWriteItems", {"TransactItems": [{"Update": request_}]})) == []


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"UpdateExpression": "SET state = :0 REMOVE #0, #1"}, "state is no placeholder"),
        (
            {"ExpressionAttributeNames": {**UPDATE["ExpressionAttributeNames"], "#3": "x"}},
            "unused or undefined: ['#3']",
        ),
        ({"ExpressionAttributeValues": {}}, "ExpressionAttributeValues is empty"),
        ({"ExpressionAttributeValues": {":0": {"N": "1" * 39}}}, "a number has 39 digits"),
        ({"ExpressionAttributeValues": {":0": {"SS": []}}}, "a set is empty"),
        ({"ExpressionAttributeValues": {":0": {"SS": ["a", "a"]}}}, "has a member twice"),
        ({"UpdateExpression": "SET #0 = :0 REMOVE #0, #1"}, "names an attribute twice"),
        ({"UpdateExpression": "SET #0 = :0 SET #1 = :0"}, "names a clause twice"),
        ({"UpdateExpression": "SET #0 = :0, #2 = :0 REMOVE #1"}, "changes the key pk"),
        (
            {"ExpressionAttributeNames": {"#0": "next_run_at", "#1": "owner", "#2": "pk"}},
            "next_run_at is the key of an index",
        ),
        ({"ConditionExpression": "attribute_exists(#2) AND " + "#0 <> :0 AND " * 400 + "#0 <> :0"}, "operators"),
        ({"ConditionExpression": "attribute_exists(#2) AND #0 <> :0" + " " * 5_000}, "bytes"),
        ({"ConditionExpression": "attribute_exists(#2) AND #0 <> :0 ; #1"}, "is no part of an expression"),
    ],
)
def test_the_rules_find_what_dynamodb_refuses_in_an_update(members: dict[str, Any], said: str) -> None:
    found = list(rules.problems("UpdateItem", {**UPDATE, **members}))

    assert any(said in each for each in found), found


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"KeyConditionExpression": "#0 = :0 AND #1 BETWEEN :1 AND :2 AND #1 = :1"}, "more than two parts"),
        ({"FilterExpression": "#1 = :1"}, "a filter names the keys"),
        ({"ExclusiveStartKey": {"pk": {"S": "a"}}}, "a start key of ['pk']"),
        ({"ExclusiveStartKey": {**KEY, "color": {"S": "a"}}}, "a start key of"),
        ({"IndexName": "next-run", "ConsistentRead": True}, "a consistent read of an index"),
    ],
)
def test_the_rules_find_what_dynamodb_refuses_in_a_query(members: dict[str, Any], said: str) -> None:
    found = list(rules.problems("Query", {**QUERY, **members}))

    assert any(said in each for each in found), found


@pytest.mark.parametrize("item", [{"pk": {"S": "a"}}, {**KEY, "shard": {"S": "1"}}, {**KEY, "schedule_id": {"S": ""}}])
def test_an_item_invalid_for_a_key_or_an_index_is_found(item: Any) -> None:
    assert list(rules.problems("PutItem", {"Item": item}))


def test_a_batch_that_names_a_key_twice_is_found() -> None:
    assert list(rules.problems("BatchGetItem", {"RequestItems": {"t": {"Keys": [KEY, KEY]}}}))
    assert not list(rules.problems("BatchGetItem", {"RequestItems": {"t": {"Keys": [KEY]}}}))


@pytest.mark.parametrize(("names", "sound"), [({"#0": "state"}, True), ({"#0": "state", "#1": "kind"}, False)])
def test_names_of_a_projection_in_a_batch_are_checked(names: dict[str, str], sound: bool) -> None:
    part = {"Keys": [KEY], "ProjectionExpression": "#0", "ExpressionAttributeNames": names}

    assert (not list(rules.problems("BatchGetItem", {"RequestItems": {"t": part}}))) is sound
