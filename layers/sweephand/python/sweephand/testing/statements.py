"""BatchExecuteStatement as DynamoDB answers it, on top of moto.

moto carries out an UPDATE whose WHERE clause does not match as if nothing were wrong. Here each statement becomes the
conditional UpdateItem that it means. tests/local_stack/test_advance.py holds the answers against another emulator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

STATEMENT = re.compile(r'UPDATE "(?P<table>[^"]+)" (?P<sets>SET .+) WHERE (?P<where>.+)')
ASSIGNMENT = re.compile(r'SET "(\w+)"=\?')
CONDITION = re.compile(r'"(\w+)"=\?')


def carry_out(request: dict[str, Any], update_item: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Returns the answer to a batch of UPDATE statements. update_item: carries out one UpdateItem request."""
    statements = request["Statements"]
    if not 1 <= len(statements) <= 25:
        raise ClientError(
            {"Error": {"Code": "ValidationException", "Message": "1 to 25 statements"}}, "BatchExecuteStatement"
        )
    return {"Responses": [_one(statement, update_item) for statement in statements]}


def _one(statement: dict[str, Any], update_item: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    read = STATEMENT.fullmatch(statement["Statement"])
    assert read is not None, statement["Statement"]
    assigned, compared = ASSIGNMENT.findall(read["sets"]), CONDITION.findall(read["where"])
    values = list(statement["Parameters"])
    assert len(values) == len(assigned) + len(compared)
    where = dict(zip(compared, values[len(assigned) :], strict=True))
    key = {name: where.pop(name) for name in ("pk", "sk")}
    names = list(dict.fromkeys([*assigned, *where]))
    place = {name: f"#n{n}" for n, name in enumerate(names)}
    bound = {f":s{n}": value for n, value in enumerate(values[: len(assigned)])}
    bound |= {f":c{n}": value for n, value in enumerate(where.values())}
    holds = [f"{place[name]} = :c{n}" for n, name in enumerate(where)]
    update = {
        "TableName": read["table"],
        "Key": key,
        "UpdateExpression": "SET " + ", ".join(f"{place[name]} = :s{n}" for n, name in enumerate(assigned)),
        "ConditionExpression": " AND ".join(["attribute_exists(pk)", *holds]),
        "ExpressionAttributeNames": {short: name for name, short in place.items()},
        "ExpressionAttributeValues": bound,
        "ReturnValuesOnConditionCheckFailure": statement.get("ReturnValuesOnConditionCheckFailure", "NONE"),
    }
    try:
        update_item(update)
    except ClientError as refused:
        code = refused.response["Error"]["Code"].removesuffix("Exception")
        error = {"Code": code, "Message": refused.response["Error"]["Message"]}
        if "Item" in refused.response:
            error["Item"] = refused.response["Item"]
        return {"Error": error, "TableName": read["table"]}
    return {"TableName": read["table"]}
