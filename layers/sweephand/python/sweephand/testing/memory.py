"""DynamoDB and KMS in memory, below boto3: a history of the whole service in milliseconds, not in tenths of a second.

Only the operations and parameters that the service uses; anything else is refused, so that nothing passes by a guess.
tests/faults/test_memory.py holds every answer against moto's (and an emulator's) by the same sequences of operations.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from botocore.exceptions import ClientError

from sweephand.testing import expressions, statements
from sweephand.testing.taps import Passing, Taps

Item = dict[str, Any]
Key = tuple[str, str]
Items = dict[Key, Item]
Request = Mapping[str, Any]
Place = tuple[Any, str, str]
Ordered = tuple[list[Place], list[Item]]

KNOWN = {
    "TableName",
    "Key",
    "Item",
    "ConditionExpression",
    "UpdateExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
    "ReturnValues",
    "ReturnValuesOnConditionCheckFailure",
    "ConsistentRead",
    "ReturnConsumedCapacity",
}
KNOWN_OF_QUERY = {
    "KeyConditionExpression",
    "FilterExpression",
    "ProjectionExpression",
    "IndexName",
    "ScanIndexForward",
    "Limit",
    "ExclusiveStartKey",
    "Select",
}


@dataclass(frozen=True)
class Index:
    """carried: the attributes that a query of it gives; None: all. The table itself is one."""

    hash_name: str
    range_name: str
    carried: frozenset[str] | None


def _index(declared: Request) -> Index:
    hash_name, range_name = (key["AttributeName"] for key in declared["KeySchema"])
    projection = declared["Projection"]
    if projection["ProjectionType"] == "ALL":
        return Index(hash_name, range_name, None)
    carried = {"pk", "sk", hash_name, range_name, *projection.get("NonKeyAttributes", [])}
    return Index(hash_name, range_name, frozenset(carried))


@dataclass
class Dynamo:
    """One table.

    states: where it is asked to remember, all that it was, the newest last, so that a stale index is an old one.
    index: which state a query of an index answers from (None: the newest). Items are never changed, only replaced.
    """

    schema: Request
    remembers: bool = False
    items: Items = field(default_factory=dict)
    states: list[Items] = field(default_factory=lambda: [{}])
    index: Callable[[Request], Items] | None = None
    _partitions: dict[tuple[str | None, str], Items] = field(default_factory=dict)
    _ordered: dict[tuple[str | None, str], Ordered] = field(default_factory=dict)
    _indexes: dict[str | None, Index] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._indexes = {None: Index("pk", "sk", None)}
        for index in self.schema["GlobalSecondaryIndexes"]:
            self._indexes[index["IndexName"]] = _index(index)

    def __call__(self, operation: str, request: Request) -> Any:
        answer = getattr(self, f"_{operation}", None)
        if answer is None:
            raise NotImplementedError(operation)
        return answer(request)

    # Reading

    def _GetItem(self, request: Request) -> Any:  # noqa: N802 - named as DynamoDB names it
        _check(request)
        item = self.items.get(_key(request["Key"]))
        return {} if item is None else {"Item": dict(item)}

    def _BatchGetItem(self, request: Request) -> Any:  # noqa: N802
        ((table, wanted),) = request["RequestItems"].items()
        _check(wanted, {"Keys", "ProjectionExpression"})
        keys = [_key(key) for key in wanted["Keys"]]
        if not 1 <= len(keys) <= 100 or len(set(keys)) != len(keys):
            raise _error("ValidationException", "BatchGetItem")
        names, _ = _places(wanted)
        items = [_cut(self.items[key], None, wanted, names) for key in keys if key in self.items]
        return {"Responses": {table: items}, "UnprocessedKeys": {}}

    def _Scan(self, _request: Request) -> Any:  # noqa: N802 - of tests only
        return {"Items": [dict(item) for item in self.items.values()]}

    def _Query(self, request: Request) -> Any:  # noqa: N802
        _check(request, KNOWN_OF_QUERY)
        names, values = _places(request)
        index = self._indexes[request.get("IndexName")]
        hash_name, range_name = index.hash_name, index.range_name
        if "IndexName" in request and self.index is not None:
            candidates: Sequence[Item] = _in_order(self.index(request).values(), range_name)[1]
        else:
            candidates = self._candidates(request, index)
        wanted = expressions.condition(request["KeyConditionExpression"])
        items = [
            item for item in candidates if hash_name in item and range_name in item and wanted(item, names, values)
        ]
        if not request.get("ScanIndexForward", True):
            items.reverse()
        if "ExclusiveStartKey" in request:
            items = _behind(items, request["ExclusiveStartKey"], range_name, request.get("ScanIndexForward", True))
        limit = request.get("Limit")
        page = items if limit is None else items[:limit]
        answer: dict[str, Any] = {}
        if limit is not None and len(items) >= limit:
            answer["LastEvaluatedKey"] = {name: page[-1][name] for name in {"pk", "sk", hash_name, range_name}}
        if "FilterExpression" in request:
            keep = expressions.condition(request["FilterExpression"])
            page = [item for item in page if keep(item, names, values)]
        if request.get("Select") != "COUNT":
            answer["Items"] = [_cut(item, index.carried, request, names) for item in page]
        return answer | {"Count": len(page)}

    def _candidates(self, request: Request, index: Index) -> Sequence[Item]:
        """Returns the items of a partition in order, without most of those that the key condition leaves out."""
        text = request["KeyConditionExpression"]
        partition = request.get("IndexName"), _hash(_compared(text, index.hash_name, request))
        if partition not in self._ordered:
            stored = self._partitions.get(partition, {})
            self._ordered[partition] = _in_order(stored.values(), index.range_name)
        places, items = self._ordered[partition]
        low, high = _bounds(text, index.range_name, request)
        begin = 0 if low is None else bisect_left(places, low, key=lambda place: place[0])
        end = len(items) if high is None else bisect_right(places, high, key=lambda place: place[0])
        return items[begin:end]

    # Writing

    def _PutItem(self, request: Request) -> Any:  # noqa: N802
        return self._single("PutItem", "Put", request)

    def _UpdateItem(self, request: Request) -> Any:  # noqa: N802
        return self._single("UpdateItem", "Update", request)

    def _DeleteItem(self, request: Request) -> Any:  # noqa: N802
        return self._single("DeleteItem", "Delete", request)

    def _single(self, operation: str, verb: str, request: Request) -> Any:
        key, old = self._old(request)
        if not _holds(request, old):
            raise _error("ConditionalCheckFailedException", operation, **_shown(request, old))
        new = _carried_out(verb, request, old)
        self._write({key: new})
        match request.get("ReturnValues", "NONE"):
            case "NONE":
                return {}
            case "ALL_OLD":
                return {"Attributes": old} if old else {}
            case "ALL_NEW":
                return {"Attributes": new}
            case "UPDATED_NEW" if new is not None:
                names, _ = _places(request)
                updated = {step.name(names) for step in expressions.update(request["UpdateExpression"])}
                return {"Attributes": {name: value for name, value in new.items() if name in updated}}
        raise NotImplementedError(request["ReturnValues"])

    def _TransactWriteItems(self, request: Request) -> Any:  # noqa: N802
        written: dict[Key, Item | None] = {}
        reasons: list[dict[str, Any]] = []
        parts = [next(iter(part.items())) for part in request["TransactItems"]]
        for verb, part in parts:
            key, old = self._old(part)
            if key in written or len(parts) > 100:
                raise _error("ValidationException", "TransactWriteItems")
            holds = _holds(part, old)
            reasons.append({"Code": "None"} if holds else {"Code": "ConditionalCheckFailed", **_shown(part, old)})
            written[key] = old if verb == "ConditionCheck" or not holds else _carried_out(verb, part, old)
        if any(reason["Code"] != "None" for reason in reasons):
            raise _error("TransactionCanceledException", "TransactWriteItems", CancellationReasons=reasons)
        self._write(written)
        return {}

    def _BatchExecuteStatement(self, request: Request) -> Any:  # noqa: N802
        return statements.carry_out(dict(request), self._UpdateItem)

    def _old(self, request: Request) -> tuple[Key, Item | None]:
        _check(request)
        key = _key(request.get("Key") or request["Item"])
        return key, self.items.get(key)

    def _write(self, written: Mapping[Key, Item | None]) -> None:
        for key, item in written.items():
            self._file(key, self.items.pop(key, None), present=False)
            if item is not None:
                self.items[key] = item
                self._file(key, item, present=True)
        if self.remembers:
            self.states.append(dict(self.items))

    def least(self, index: str) -> float | None:
        """Returns the lowest number in an index's range key, over all its partitions; None if it has no items."""
        name = self._indexes[index].range_name
        partitions = [items for (of, _), items in self._partitions.items() if of == index]
        return min((float(item[name]["N"]) for items in partitions for item in items.values()), default=None)

    def _file(self, key: Key, item: Item | None, *, present: bool) -> None:
        """Files an item into its partition of the table and of each index, or removes it from them."""
        for name, index in self._indexes.items():
            if item is None or index.hash_name not in item or index.range_name not in item:
                continue
            place = name, _hash(item[index.hash_name])
            partition = self._partitions.setdefault(place, {})
            self._ordered.pop(place, None)
            if present:
                partition[key] = item
            else:
                partition.pop(key, None)


_EQUAL = re.compile(r"(#?\w+) = (:\w+)")


def _compared(text: str, name: str, request: Request) -> Mapping[str, Any]:
    """Returns the value that a key condition requires of this attribute."""
    names, values = _places(request)
    return next(values[value] for placed, value in _EQUAL.findall(text) if names.get(placed, placed) == name)


_RANGE = re.compile(r"(#?\w+) (<=?|>=?|BETWEEN) (:\w+)(?: AND (:\w+))?")


def _bounds(text: str, name: str, request: Request) -> tuple[Any, Any]:
    """Returns the lowest and the highest range key that a key condition allows, as far as it compares; None: any."""
    names, values = _places(request)
    low = high = None
    for placed, operator, first, second in _RANGE.findall(text):
        if names.get(placed, placed) != name:
            continue
        if operator[0] in ">B":
            low = expressions.plain(values[first])
        if operator[0] in "<B":
            high = expressions.plain(values[second if operator == "BETWEEN" else first])
    return low, high


def _in_order(items: Iterable[Item], range_name: str) -> Ordered:
    placed = sorted(((_place(item, range_name), item) for item in items if range_name in item), key=itemgetter(0))
    return [place for place, _ in placed], [item for _, item in placed]


def _hash(value: Mapping[str, Any]) -> str:
    return f"{expressions.plain(value)!r}"


def _check(request: Request, more: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    strange = request.keys() - KNOWN - more
    if strange:
        raise NotImplementedError(strange)


def _key(key: Request) -> Key:
    return key["pk"]["S"], key["sk"]["S"]


def _places(request: Request) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    return request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})


def _holds(request: Request, old: Item | None) -> bool:
    text = request.get("ConditionExpression")
    return text is None or expressions.condition(text)(old or {}, *_places(request))


def _carried_out(verb: str, request: Request, old: Item | None) -> Item | None:
    match verb:
        case "Put":
            return dict(request["Item"])
        case "Delete":
            return None
    steps = expressions.update(request["UpdateExpression"]) if "UpdateExpression" in request else ()
    return expressions.apply(steps, old or dict(request["Key"]), *_places(request))


def _shown(request: Request, old: Item | None) -> dict[str, Any]:
    asked = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
    return {"Item": dict(old)} if asked and old is not None else {}


def _place(item: Item, range_name: str) -> Place:
    """Returns the place of an item in its partition. Within an index, equal places are told apart by the table's
    key.
    """
    return expressions.plain(item[range_name]), item["pk"]["S"], item["sk"]["S"]


def _behind(items: list[Item], start: Item, range_name: str, forward: bool) -> list[Item]:
    mark = _place(start, range_name)
    return [item for item in items if (_place(item, range_name) > mark) is forward and _place(item, range_name) != mark]


def _cut(item: Item, projected: frozenset[str] | None, request: Request, names: Mapping[str, str]) -> Item:
    if "ProjectionExpression" in request:
        asked = {names.get(name.strip(), name.strip()) for name in request["ProjectionExpression"].split(",")}
        return {name: value for name, value in item.items() if name in asked}
    return {name: value for name, value in item.items() if projected is None or name in projected}


def _error(code: str, operation: str, **more: Any) -> ClientError:
    answer = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": 400}, **more}
    return ClientError(answer, operation)


class Kms:
    """One key. A text opens under the context that it was closed under, and under no other."""

    def __call__(self, operation: str, request: Request) -> Any:
        match operation:
            case "CreateKey":
                return {"KeyMetadata": {"KeyId": "key-1"}}
            case "Encrypt":
                return {"CiphertextBlob": json.dumps([_context(request), request["Plaintext"].hex()]).encode()}
            case "Decrypt":
                context, plain = json.loads(request["CiphertextBlob"])
                if context != _context(request):
                    raise _error("InvalidCiphertextException", "Decrypt")
                return {"Plaintext": bytes.fromhex(plain)}
        raise NotImplementedError(operation)


def _context(request: Request) -> list[list[str]]:
    return sorted([name, value] for name, value in request.get("EncryptionContext", {}).items())


@dataclass
class Memory:
    """All AWS services below boto3. dynamo: made by the stage's CreateTable. remembers: its states."""

    remembers: bool = False
    dynamo: Dynamo | None = None
    kms: Kms = field(default_factory=Kms)

    def __call__(self, service: str, operation: str, request: dict[str, Any]) -> Any:
        if service == "kms":
            return self.kms(operation, request)
        if service != "dynamodb":
            raise NotImplementedError(service)
        if operation == "CreateTable":
            self.dynamo = Dynamo(request, self.remembers)
            return {}
        assert self.dynamo is not None
        return self.dynamo(operation, request)


class Client:
    """The methods of botocore's client of a service, answered in memory."""

    def __init__(self, service: str, memory: Memory, taps: Taps) -> None:
        self._service, self._memory, self._taps = service, memory, taps

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = "".join(word.capitalize() for word in name.split("_"))

        def call(**request: Any) -> Any:
            passing = Passing(self._service, operation, request)
            return self._taps(passing, lambda: self._memory(self._service, operation, request))

        self.__dict__[name] = call
        return call
