"""DynamoDB and KMS in memory, below boto3: a history of the whole service in milliseconds, not in tenths of a second.

Only the operations and parameters that the service uses; anything else is refused, so that nothing passes by a guess.
test_memory.py holds every answer against moto's (and an emulator's) by the same sequences of operations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from tests.faults import expressions
from tests.support import statements, taps
from tests.support.taps import Taps

Item = dict[str, Any]
Key = tuple[str, str]
Items = dict[Key, Item]
Request = Mapping[str, Any]

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
        found = [_cut(self.items[key], None, wanted, names) for key in keys if key in self.items]
        return {"Responses": {table: found}, "UnprocessedKeys": {}}

    def _Scan(self, request: Request) -> Any:  # noqa: N802 - of tests only
        return {"Items": [dict(item) for item in self.items.values()]}

    def _Query(self, request: Request) -> Any:  # noqa: N802
        _check(request, KNOWN_OF_QUERY)
        names, values = _places(request)
        index = self._indexes[request.get("IndexName")]
        hash_name, range_name = index.hash_name, index.range_name
        if "IndexName" in request and self.index is not None:
            items = self.index(request)
        else:
            partition = (
                request.get("IndexName"),
                _hash(_compared(request["KeyConditionExpression"], hash_name, request)),
            )
            items = self._partitions.get(partition, {})
        wanted = expressions.condition(request["KeyConditionExpression"])
        found = [
            item for item in items.values() if hash_name in item and range_name in item and wanted(item, names, values)
        ]
        found.sort(key=lambda item: _place(item, range_name), reverse=not request.get("ScanIndexForward", True))
        if "ExclusiveStartKey" in request:
            found = _behind(found, request["ExclusiveStartKey"], range_name, request.get("ScanIndexForward", True))
        limit = request.get("Limit")
        page = found if limit is None else found[:limit]
        answer: dict[str, Any] = {}
        if limit is not None and len(found) >= limit:
            answer["LastEvaluatedKey"] = {name: page[-1][name] for name in {"pk", "sk", hash_name, range_name}}
        if "FilterExpression" in request:
            keep = expressions.condition(request["FilterExpression"])
            page = [item for item in page if keep(item, names, values)]
        if request.get("Select") != "COUNT":
            answer["Items"] = [_cut(item, index.carried, request, names) for item in page]
        return answer | {"Count": len(page)}

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
            self._file(key, self.items.pop(key, None), there=False)
            if item is not None:
                self.items[key] = item
                self._file(key, item, there=True)
        if self.remembers:
            self.states.append(dict(self.items))

    def _file(self, key: Key, item: Item | None, *, there: bool) -> None:
        """Files an item into its partition of the table and of each index, or removes it from them."""
        for name, index in self._indexes.items():
            if item is None or index.hash_name not in item or index.range_name not in item:
                continue
            partition = self._partitions.setdefault((name, _hash(item[index.hash_name])), {})
            if there:
                partition[key] = item
            else:
                partition.pop(key, None)


_EQUAL = re.compile(r"(#?\w+) = (:\w+)")


def _compared(text: str, name: str, request: Request) -> Mapping[str, Any]:
    """Returns the value that a key condition requires of this attribute."""
    names, values = _places(request)
    return next(values[value] for placed, value in _EQUAL.findall(text) if names.get(placed, placed) == name)


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


def _place(item: Item, range_name: str) -> tuple[Any, str, str]:
    """Returns the place of an item in its partition. Within an index, equal places are told apart by the table's
    key.
    """
    return expressions.plain(item[range_name]), item["pk"]["S"], item["sk"]["S"]


def _behind(found: list[Item], start: Item, range_name: str, forward: bool) -> list[Item]:
    mark = _place(start, range_name)
    return [item for item in found if (_place(item, range_name) > mark) is forward and _place(item, range_name) != mark]


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


@contextmanager
def in_memory(tap: Taps, *, remembers: bool = False) -> Iterator[Memory]:
    """Makes a backend for tests.support.stage.stage."""
    memory = Memory(remembers)
    with taps.on_botocore(tap, memory):
        yield memory
