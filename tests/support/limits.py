"""What DynamoDB refuses and moto takes: sizes of keys and items, the parts of a transaction, a page's limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from tests.support.taps import Passing

LONGEST = {"pk": 2_048, "sk": 1_024}
LARGEST_ITEM = 400 * 1_024
MOST_PARTS = 100
LARGEST_TRANSACTION = 4 * 1_024 * 1_024


def as_dynamodb(passing: Passing, act: Callable[[], Any]) -> Any:
    """A fault of tests.support.taps: ValidationException where the real service has one."""
    if passing.service == "dynamodb":
        for problem in _problems(passing.operation, passing.request):
            raise ClientError(
                {"Error": {"Code": "ValidationException", "Message": problem}, "ResponseMetadata": {}},
                passing.operation,
            )
    return act()


def _problems(operation: str, request: Mapping[str, Any]) -> Iterator[str]:
    for text, name in _keys(operation, request):
        size = len(text.encode())
        if not 0 < size <= LONGEST[name]:
            yield f"{name} has {size} bytes"
    for item in _items(operation, request):
        if _size(item) > LARGEST_ITEM:
            yield "Item size has exceeded the maximum allowed size"
    if operation == "TransactWriteItems":
        parts = request["TransactItems"]
        if not 0 < len(parts) <= MOST_PARTS:
            yield f"{len(parts)} parts of a transaction"
        touched = [tuple(sorted(_key_of(part).items())) for part in parts]
        if len(set(touched)) != len(touched):
            yield "Transaction request cannot include multiple operations on one item"
        if sum(_size(item) for item in _items(operation, request)) > LARGEST_TRANSACTION:
            yield "the transaction is larger than 4 MB"
    if operation == "Query":
        if request.get("Limit", 1) < 1:
            yield "Limit below 1"
        yield from _start(request)


def _start(request: Mapping[str, Any]) -> Iterator[str]:
    """A page begins within what the query asks for."""
    start = request.get("ExclusiveStartKey")
    if start is None:
        return
    values = {name: value.get("S", value.get("N")) for name, value in request["ExpressionAttributeValues"].items()}
    condition = request["KeyConditionExpression"]
    if "begins_with" in condition:
        prefix = values[condition.rpartition(", ")[2].rstrip(") ")]
        if not start["sk"]["S"].startswith(prefix):
            yield "The provided starting key is outside query boundaries based on provided conditions"


def _keys(operation: str, request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if operation == "TransactWriteItems":
        for part in request["TransactItems"]:
            yield from ((value, name) for name, value in _key_of(part).items())
    elif operation == "BatchGetItem":
        for wanted in request["RequestItems"].values():
            for key in wanted["Keys"]:
                yield from ((key[name]["S"], name) for name in LONGEST)
    elif operation == "Query":
        if "IndexName" not in request:
            values = request["ExpressionAttributeValues"]
            for name, place in (("pk", 0), ("sk", 1)):
                bound = [value["S"] for value in list(values.values())[place : None if place else 1]]
                yield from ((text, name) for text in bound)
    elif operation in {"GetItem", "UpdateItem", "DeleteItem"}:
        yield from ((request["Key"][name]["S"], name) for name in LONGEST)
    elif operation == "PutItem":
        yield from ((request["Item"][name]["S"], name) for name in LONGEST)


def _key_of(part: Mapping[str, Any]) -> dict[str, str]:
    (request,) = part.values()
    found = request.get("Key") or request["Item"]
    return {name: found[name]["S"] for name in LONGEST}


def _items(operation: str, request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if operation == "PutItem":
        yield request["Item"]
    elif operation == "TransactWriteItems":
        yield from (part["Put"]["Item"] for part in request["TransactItems"] if "Put" in part)


def _size(item: Mapping[str, Any]) -> int:
    return sum(len(name.encode()) + sum(len(str(inner).encode()) for inner in value.values()) for name, value in item.items())
