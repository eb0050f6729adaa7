"""A meter of DynamoDB's capacity units by AWS's rules, from the items before and after each write.

The emulators' own figures leave out indexes in transactions and in PartiQL. Rules (DynamoDB developer guide): a write
costs a unit for each KB of the larger of the old and the new item, twice that in a transaction; an index costs a unit
where an entry appears, disappears or changes, and two where its key moves; an unchanged entry costs nothing. A strong
read costs a unit for each 4 KB, also of an item that is not there; an eventual one half of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from unittest import mock

from botocore.client import BaseClient

Item = Mapping[str, Mapping[str, Any]]
Key = dict[str, dict[str, str]]
Call = Callable[[Any, str, dict[str, Any]], Any]

INDEXES: Mapping[str, tuple[str, str, frozenset[str]]] = {
    "next-run": ("shard", "next_run_at", frozenset({"sweep", "generation", "planned_total"})),
    "catalogue": ("shard", "schedule_id", frozenset()),
    "attention": ("attention_day", "attention_at", frozenset()),
}
"""Hash and range attribute, and what is projected in addition to the keys: as template.yaml has them."""

SINGLE_WRITES = {"PutItem": "Item", "UpdateItem": "Key", "DeleteItem": "Key"}


@dataclass
class Meter:
    """Units and calls since the last `take`. details: each write with its units, for a look.

    partitions: write units by index ("table" for the table itself) and partition.
    """

    reads: float = 0
    writes: float = 0
    calls: Counter[str] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)
    partitions: Counter[tuple[str, str]] = field(default_factory=Counter)

    def take(self) -> Meter:
        taken = Meter(self.reads, self.writes, self.calls, self.details, self.partitions)
        self.reads, self.writes, self.calls, self.details, self.partitions = 0, 0, Counter(), [], Counter()
        return taken


@contextmanager
def metered() -> Iterator[Meter]:
    """Sends every AWS call of this process through the meter, and on to the client that answered it before."""
    meter, counting = Meter(), Lock()
    call = BaseClient._make_api_call

    def metering(client: Any, operation: str, arguments: dict[str, Any]) -> Any:
        meter.calls[operation] += 1
        if client.meta.service_model.service_name != "dynamodb":
            return call(client, operation, arguments)
        touched = list(_touched(operation, arguments))
        before = [_item(call, client, table, key) for table, key in touched]
        answer = call(client, operation, arguments)
        factor = 2 if operation == "TransactWriteItems" else 1
        for (table, key), old in zip(touched, before, strict=True):
            written = list(_written(old, _item(call, client, table, key), factor))
            units = sum(each for _, each in written)
            meter.writes += units
            meter.partitions.update(Counter(dict(written)))
            meter.details.append(f"{operation} {key['sk']['S'][:12]}: {units}")
        whole = _whole(operation, arguments)
        units_read = _read_units(operation, whole, answer if whole == arguments else call(client, operation, whole))
        with counting:
            meter.reads += units_read
        return answer

    with mock.patch.object(BaseClient, "_make_api_call", metering):
        yield meter


@contextmanager
def billed() -> Iterator[None]:
    """Adds to every read what it consumed, if it is asked to, as DynamoDB does and emulators do not."""
    call = BaseClient._make_api_call

    def billing(client: Any, operation: str, arguments: dict[str, Any]) -> Any:
        answer = call(client, operation, arguments)
        if arguments.get("ReturnConsumedCapacity") != "TOTAL":
            return answer
        whole = _whole(operation, arguments)
        units = _read_units(operation, whole, answer if whole == arguments else call(client, operation, whole))
        consumed = {"TableName": "", "CapacityUnits": units}
        return {**answer, "ConsumedCapacity": [consumed] if operation == "BatchGetItem" else consumed}

    with mock.patch.object(BaseClient, "_make_api_call", billing):
        yield


def write_units(old: Item | None, new: Item | None, factor: int = 1) -> int:
    """Returns the write units of the table (times the factor) and of the three indexes."""
    return sum(units for _, units in _written(old, new, factor))


def _written(old: Item | None, new: Item | None, factor: int) -> Iterator[tuple[tuple[str, str], int]]:
    """Yields the units in each partition of the table and of the three indexes."""
    item = new or old
    yield ("table", item["pk"]["S"] if item else ""), max(_kb(old), _kb(new), 1) * factor
    for name, index in INDEXES.items():
        for partition, units in _in_index(old, new, *index).items():
            yield (name, partition), units


def _in_index(
    old: Item | None, new: Item | None, hash_key: str, range_key: str, projected: frozenset[str]
) -> Mapping[str, int]:
    names = {"pk", "sk", hash_key, range_key, *projected}

    def entry(item: Item | None) -> Item | None:
        if item is None or hash_key not in item or range_key not in item:
            return None
        return {name: value for name, value in item.items() if name in names}

    was, now = entry(old), entry(new)
    units: Counter[str] = Counter()
    if was == now:
        return units
    moved = was and now and (was[hash_key], was[range_key]) != (now[hash_key], now[range_key])
    if was is not None and (moved or now is None):
        units[_text(was[hash_key])] += _kb(was)
    if now is not None:
        units[_text(now[hash_key])] += _kb(now) if moved or was is None else max(_kb(was), _kb(now))
    return units


def _text(value: Mapping[str, Any]) -> str:
    return str(next(iter(value.values())))


def _kb(item: Item | None) -> int:
    return 0 if item is None else math.ceil(size(item) / 1024)


def size(item: Item) -> int:
    """Returns the size in bytes: UTF-8 of names and texts, about a byte for each two digits of a number, one for a
    boolean.
    """
    return sum(len(name.encode()) + _value_size(*next(iter(value.items()))) for name, value in item.items())


def _value_size(kind: str, value: Any) -> int:
    if kind == "S":
        return len(value.encode())
    if kind == "N":
        return math.ceil(len(value.lstrip("-")) / 2) + 1
    if kind == "SS":
        return sum(len(each.encode()) for each in value)
    return 1


def _touched(operation: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Key]]:
    if operation in SINGLE_WRITES:
        yield arguments["TableName"], _key(arguments[SINGLE_WRITES[operation]])
    elif operation == "TransactWriteItems":
        for part in arguments["TransactItems"]:
            ((verb, request),) = part.items()
            yield request["TableName"], _key(request["Item" if verb == "Put" else "Key"])
    elif operation == "BatchExecuteStatement":
        for statement in arguments["Statements"]:
            table = statement["Statement"].split('"')[1]
            first = statement["Statement"].partition(" WHERE ")[0].count("?")
            pk, sk = statement["Parameters"][first : first + 2]
            yield table, {"pk": pk, "sk": sk}


def _read_units(operation: str, arguments: Mapping[str, Any], answer: Mapping[str, Any]) -> float:
    if operation == "GetItem":
        return _four_kb(answer.get("Item", {})) * (1 if arguments.get("ConsistentRead") else 0.5)
    if operation == "BatchGetItem":
        units = 0.0
        for table, request in arguments["RequestItems"].items():
            found = answer["Responses"].get(table, [])
            absent = len(request["Keys"]) - len(found)
            weight = 1 if request.get("ConsistentRead") else 0.5
            units += (absent + sum(_four_kb(item) for item in found)) * weight
        return units
    if operation == "Query":
        units = max(1, math.ceil(sum(size(item) for item in answer["Items"]) / 4096))
        return units * (1 if arguments.get("ConsistentRead") else 0.5)
    return 0


def _whole(operation: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the request without projections, which save no units."""
    if operation == "BatchGetItem":
        asked = arguments["RequestItems"].items()
        return {**arguments, "RequestItems": {table: _unprojected(each) for table, each in asked}}
    return _unprojected(arguments) if operation == "Query" else arguments


def _unprojected(request: Mapping[str, Any]) -> Mapping[str, Any]:
    if "ProjectionExpression" not in request:
        return request
    used = request.get("KeyConditionExpression", "")
    names = {name: real for name, real in request["ExpressionAttributeNames"].items() if name in used}
    rest = {
        name: value for name, value in request.items() if not name.startswith(("Projection", "ExpressionAttributeN"))
    }
    return {**rest, "ExpressionAttributeNames": names} if names else rest


def _four_kb(item: Item) -> int:
    return max(1, math.ceil(size(item) / 4096))


def _key(item: Mapping[str, Any]) -> Key:
    return {"pk": item["pk"], "sk": item["sk"]}


def _item(call: Call, client: Any, table: str, key: Key) -> Item | None:
    found: Item | None = call(client, "GetItem", {"TableName": table, "Key": key, "ConsistentRead": True}).get("Item")
    return found
