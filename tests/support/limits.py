"""Requests that DynamoDB refuses and moto takes: sizes of keys and items, the parts of a transaction, empty ranges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from sweephand.testing.taps import Passing

LONGEST = {"pk": 2_048, "sk": 1_024}
LARGEST_ITEM = 400 * 1_024
MOST_PARTS = 100
LARGEST_TRANSACTION = 4 * 1_024 * 1_024
_EQUAL = re.compile(r"#\w+ = (:\w+)")
_PREFIX = re.compile(r"begins_with ?\(#\w+, (:\w+)\)")
_RANGE = re.compile(r"BETWEEN (:\w+) AND (:\w+)")

Request = Mapping[str, Any]


def as_dynamodb(passing: Passing, act: Callable[[], Any]) -> Any:
    """Refuses as a fault of sweephand.testing.taps: ValidationException where the real service has one."""
    if passing.service == "dynamodb":
        for problem in _problems(passing.operation, passing.request):
            error = {"Code": "ValidationException", "Message": problem}
            raise ClientError({"Error": error, "ResponseMetadata": {}}, passing.operation)
    return act()


def _problems(operation: str, request: Request) -> Iterator[str]:
    match operation:
        case "GetItem" | "UpdateItem" | "DeleteItem":
            yield from _of_key(request["Key"])
        case "PutItem":
            yield from _of_item(request["Item"])
        case "BatchGetItem":
            for table in request["RequestItems"].values():
                for key in table["Keys"]:
                    yield from _of_key(key)
        case "TransactWriteItems":
            yield from _of_transaction([dict(*part.values()) for part in request["TransactItems"]])
        case "Query":
            yield from _of_query(request)


def _of_key(key: Request) -> Iterator[str]:
    for name, longest in LONGEST.items():
        size = len(key[name]["S"].encode())
        if not 0 < size <= longest:
            yield f"{name} has {size} bytes"


def _of_item(item: Request) -> Iterator[str]:
    yield from _of_key(item)
    if _size(item) > LARGEST_ITEM:
        yield "Item size has exceeded the maximum allowed size"


def _of_transaction(parts: list[dict[str, Any]]) -> Iterator[str]:
    for part in parts:
        yield from _of_item(part["Item"]) if "Item" in part else _of_key(part["Key"])
    if not 0 < len(parts) <= MOST_PARTS:
        yield f"{len(parts)} parts of a transaction"
    touched = [tuple(part.get("Key", part.get("Item", {}))[name]["S"] for name in LONGEST) for part in parts]
    if len(set(touched)) != len(touched):
        yield "Transaction request cannot include multiple operations on one item"
    if sum(_size(part.get("Item", {})) for part in parts) > LARGEST_TRANSACTION:
        yield "the transaction is larger than 4 MB"


def _of_query(request: Request) -> Iterator[str]:
    condition = request["KeyConditionExpression"]
    values = {name: value.get("S", "") for name, value in request["ExpressionAttributeValues"].items()}
    if request.get("Limit", 1) < 1:
        yield "Limit below 1"
    if "IndexName" not in request:
        partition = _EQUAL.search(condition)
        assert partition, condition
        for name, text in values.items():
            longest = LONGEST["pk" if name == partition[1] else "sk"]
            if not 0 < len(text.encode()) <= longest:
                yield f"{name} has {len(text.encode())} bytes"
    bounds = _RANGE.search(condition)
    if bounds and values[bounds[1]].encode() > values[bounds[2]].encode():
        yield "The BETWEEN operator requires upper bound to be greater than or equal to lower bound"
    prefix, start = _PREFIX.search(condition), request.get("ExclusiveStartKey")
    if prefix and start and not start["sk"]["S"].startswith(values[prefix[1]]):
        yield "The provided starting key is outside query boundaries based on provided conditions"


def _size(item: Request) -> int:
    return sum(
        len(name.encode()) + sum(len(str(inner).encode()) for inner in value.values()) for name, value in item.items()
    )
