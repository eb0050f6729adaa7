"""Forms of requests that DynamoDB refuses and emulators let pass. Source: its guide and API reference.

Complements tests/support/limits.py, which has sizes: here expressions, names, values, keys of indexes and start keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Request = Mapping[str, Any]

LONGEST_EXPRESSION = 4_096
MOST_OPERATORS = 300
KEYS = ("pk", "sk")
INDEX_KEYS = {
    "shard": "N",
    "next_run_at": "N",
    "schedule_id": "S",
    "attention_day": "S",
    "attention_at": "N",
}
"""Attributes that are keys of an index, and the one type that each may have."""
EXPRESSIONS = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
WORDS = frozenset({*("AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE")})
FUNCTIONS = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size", "if_not_exists"}
    | {"list_append"}
)
_TOKEN = re.compile(r"#\w+|:\w+|[A-Za-z_]\w*|<=|>=|<>|[=<>(),+\-.\[\]]")
_OPERATOR = re.compile(r"<=|>=|<>|[=<>]|\b(?:AND|OR|NOT|BETWEEN|IN)\b|\w+ ?\(")


def problems(operation: str, request: Request) -> Iterator[str]:
    """Yields what DynamoDB would refuse in a request that the emulators carry out."""
    if operation == "TransactWriteItems":
        for part in request["TransactItems"]:
            ((verb, inner),) = part.items()
            yield from _of_one(verb, inner)
    elif operation in {"PutItem", "UpdateItem", "DeleteItem", "Query", "GetItem"}:
        yield from _of_one(operation, request)
    elif operation == "BatchGetItem":
        for wanted in request["RequestItems"].values():
            yield from _of_one(operation, wanted)
        keys = [_text(key) for wanted in request["RequestItems"].values() for key in wanted["Keys"]]
        if len(set(keys)) != len(keys):
            yield "a batch names one key twice"


def _of_one(operation: str, request: Request) -> Iterator[str]:
    used: set[str] = set()
    for name in EXPRESSIONS:
        if name in request:
            yield from _of_expression(name, request[name], used)
    for member, sign in (("ExpressionAttributeNames", "#"), ("ExpressionAttributeValues", ":")):
        given = request.get(member)
        if given is not None and not given:
            yield f"{member} is empty"
        wanted = {each for each in used if each.startswith(sign)}
        if wanted != set(given or ()):
            yield f"{member}: unused or undefined: {sorted(wanted ^ set(given or ()))}"
    for value in request.get("ExpressionAttributeValues", {}).values():
        yield from _of_value(value)
    if "Item" in request:
        yield from _of_item(request["Item"])
    if "UpdateExpression" in request:
        yield from _of_update(request)
    if operation == "Query":
        yield from _of_query(request)


def _of_expression(name: str, text: str, used: set[str]) -> Iterator[str]:
    if not 0 < len(text.encode()) <= LONGEST_EXPRESSION:
        yield f"{name} has {len(text.encode())} bytes"
    if len(_OPERATOR.findall(text)) > MOST_OPERATORS:
        yield f"{name} has more than {MOST_OPERATORS} operators"
    for token in _TOKEN.findall(text):
        if token[0] in "#:":
            used.add(token)
        elif token[0].isalpha() and token not in WORDS | FUNCTIONS:
            yield f"{name}: {token} is no placeholder, and may be one of the reserved words"
    if _TOKEN.sub("", text).strip():
        yield f"{name}: {_TOKEN.sub('', text).strip()!r} is no part of an expression"


def _of_value(value: Request) -> Iterator[str]:
    ((kind, held),) = value.items()
    if kind == "N":
        digits = re.sub(r"^-?|\.|[eE].*$", "", held).strip("0")
        if len(digits) > 38:
            yield f"a number has {len(digits)} digits"
    if kind in {"SS", "NS", "BS"} and (not held or len(set(held)) != len(held)):
        yield "a set is empty or has a member twice"


def _of_item(item: Request) -> Iterator[str]:
    for name in KEYS:
        if "S" not in item.get(name, {}):
            yield f"{name} is no string"
    for name, value in item.items():
        yield from _of_value(value)
        if name in INDEX_KEYS and (set(value) != {INDEX_KEYS[name]} or value[INDEX_KEYS[name]] == ""):
            yield f"{name} is the key of an index, and is {value}"


def _of_update(request: Request) -> Iterator[str]:
    names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
    clauses = re.split(r"\b(SET|REMOVE|ADD|DELETE)\b", request["UpdateExpression"])[1:]
    verbs = clauses[::2]
    if len(set(verbs)) != len(verbs):
        yield "an update names a clause twice"
    touched: list[str] = []
    for verb, text in zip(verbs, clauses[1::2], strict=True):
        for action in re.split(r",(?![^(]*\))", text):
            path = re.match(r"\s*(#?\w+)", action)
            attribute = names.get(path[1], path[1]) if path else ""
            touched.append(attribute)
            if attribute in KEYS:
                yield f"an update changes the key {attribute}"
            value = re.search(r"= (:\w+)\s*$", action)
            if verb == "SET" and attribute in INDEX_KEYS and value and set(values[value[1]]) != {INDEX_KEYS[attribute]}:
                yield f"{attribute} is the key of an index, and becomes {values[value[1]]}"
    if len(set(touched)) != len(touched):
        yield f"an update names an attribute twice: {sorted(touched)}"


def _of_query(request: Request) -> Iterator[str]:
    names, condition = request.get("ExpressionAttributeNames", {}), request["KeyConditionExpression"]
    keys = {names.get(each, each) for each in re.findall(r"#\w+", condition)}
    if len(re.findall(r"\bAND\b", re.sub(r"BETWEEN :\w+ AND", "BETWEEN", condition))) > 1:
        yield "a key condition has more than two parts"
    filtered = {names[each] for each in re.findall(r"#\w+", request.get("FilterExpression", ""))}
    if filtered & keys:
        yield f"a filter names the keys {sorted(filtered & keys)}"
    start = request.get("ExclusiveStartKey")
    if start is not None and not set(KEYS) <= set(start) <= {*KEYS, *keys, *INDEX_KEYS}:
        yield f"a start key of {sorted(start)}"
    if "IndexName" in request and request.get("ConsistentRead"):
        yield "a consistent read of an index"


def _text(key: Request) -> str:
    return repr(sorted((name, *value.items()) for name, value in key.items()))
