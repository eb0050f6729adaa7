"""Every call to the table in memory is made to a second engine too, and the answers must be the same.

The engine (dynoxide) passes a public suite that was recorded from DynamoDB itself. It reads commas between the
assignments of a PartiQL UPDATE, where AWS documents a SET for each, and leaves `Item` out of a failed statement: so
statements reach it as the conditional updates that they mean, and their form is held against AWS's grammar here.
"""

from __future__ import annotations

import atexit
import itertools
import json
import re
import socket
import subprocess
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from sweephand.testing import memory, statements
from tests.engine import rules

BINARY = Path(__file__).parents[2] / ".cache/table-engine/node_modules/@dynoxide/linux-x64/dynoxide"
OURS_ALONE = frozenset({"Scan"})
"""Operations that only tests request, to look at the whole table."""
KEPT = ("Item", "Items", "Responses", "Attributes", "Count")
# UPDATE "table" SET "a"=? SET "b"=? WHERE "c"=? AND "d"=?: each assignment has a SET of its own.
_NAME = r'"[A-Za-z_][A-Za-z0-9_]*"'
GRAMMAR = re.compile(rf'UPDATE "[A-Za-z0-9_.-]+"(?: SET {_NAME}=\?)+ WHERE {_NAME}=\?(?: AND {_NAME}=\?)+')
_names = (f"mirror-{number}" for number in itertools.count())


class Engine:
    """A process of the engine, and one connection to it."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._process = subprocess.Popen(
            [str(BINARY), "serve", "--port", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        atexit.register(self.close)
        self._connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        self._connect()

    def close(self) -> None:
        """Ends the process."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _connect(self) -> None:
        for _ in range(400):
            try:
                self._connection.connect()
            except OSError:
                if self._process.poll() is not None:
                    raise RuntimeError("the engine ended as it began") from None
                self._pause()
            else:
                return
        raise RuntimeError("the engine does not listen")

    def _pause(self) -> None:
        try:
            self._process.wait(0.025)
        except subprocess.TimeoutExpired:
            return

    def __call__(self, operation: str, request: Mapping[str, Any]) -> Any:
        """Returns the answer. Raises ClientError, as botocore would."""
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=test/20270101/us-east-1/dynamodb/aws4_request, "
            "SignedHeaders=host, Signature=test",
            "X-Amz-Date": "20270101T000000Z",
        }
        body = json.dumps(request).encode()
        try:
            answered = self._ask(body, headers)
        except (HTTPException, OSError):
            self._connection.close()
            answered = self._ask(body, headers)
        status, answer = answered
        if status == 200:
            return answer
        code = answer["__type"].rpartition("#")[2]
        more = {name: value for name, value in answer.items() if name not in {"__type", "message", "Message"}}
        message = str(answer.get("message") or answer.get("Message"))
        raise ClientError({"Error": {"Code": code, "Message": message}, **more}, operation)

    def _ask(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, Any]:
        self._connection.request("POST", "/", body, dict(headers))
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")


class Mirror:
    """Stands for sweephand.testing.memory.Dynamo, and asks both."""

    def __init__(self, own: memory.Dynamo, engine: Engine) -> None:
        self._own = own
        self._engine = engine
        self._table = next(_names)
        engine("CreateTable", {**own.schema, "TableName": self._table})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def __call__(self, operation: str, request: Mapping[str, Any]) -> Any:
        problems = list(rules.problems(operation, request))
        assert not problems, (operation, request, problems)
        theirs = None if operation in OURS_ALONE else _answer(self._theirs, operation, request)
        ours = _answer(self._own, operation, request)
        if theirs is not None and _as_it_stands(ours) != _as_it_stands(theirs):
            same = _comparable(operation, request, ours), _comparable(operation, request, theirs)
            assert same[0] == same[1], (operation, request)
        if isinstance(ours, ClientError):
            raise ours
        return ours

    def _theirs(self, operation: str, request: Mapping[str, Any]) -> Any:
        if operation == "BatchExecuteStatement":
            for statement in request["Statements"]:
                assert GRAMMAR.fullmatch(statement["Statement"]), statement["Statement"]
            return statements.carry_out(dict(request), lambda update: self._engine("UpdateItem", self._named(update)))
        return self._engine(operation, self._named(request))

    def _named(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the request with the name of this test's table on the engine."""
        named = dict(request)
        if "TableName" in named:
            named["TableName"] = self._table
        if "RequestItems" in named:
            ((_, wanted),) = named["RequestItems"].items()
            named["RequestItems"] = {self._table: wanted}
        if "TransactItems" in named:
            named["TransactItems"] = [
                {verb: self._named(part) for verb, part in each.items()} for each in named["TransactItems"]
            ]
        return named

    def close(self) -> None:
        self._engine("DeleteTable", {"TableName": self._table})


def _answer(ask: Callable[[str, Mapping[str, Any]], Any], operation: str, request: Mapping[str, Any]) -> Any:
    try:
        return ask(operation, request)
    except ClientError as refused:
        return refused


def _as_it_stands(answer: Any) -> Any:
    """Returns what is mostly the same in both answers already, because `_comparable` takes long."""
    if isinstance(answer, ClientError):
        return answer
    kept = [answer[name] for name in KEPT if answer.get(name) not in (None, {}, [])]
    if isinstance(answer.get("Responses"), Mapping):
        (items,) = answer["Responses"].values()
        kept = sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
    return kept, "LastEvaluatedKey" in answer


def _comparable(operation: str, request: Mapping[str, Any], answer: Any) -> Any:
    """Returns the members that a caller can rely on: no texts of errors, no order within a batch or among equal places
    of an index.
    """
    if isinstance(answer, ClientError):
        cancelled = answer.response.get("CancellationReasons", [])
        reasons = [(each.get("Code"), _plain(each.get("Item"))) for each in cancelled]
        return answer.response["Error"]["Code"], _plain(answer.response.get("Item")), reasons
    kept = {name: _plain(answer[name]) for name in KEPT if answer.get(name) not in (None, {}, [])}
    if operation == "BatchGetItem":
        return {"Responses": sorted(_text(_plain(item)) for items in answer["Responses"].values() for item in items)}
    if operation == "BatchExecuteStatement":
        return [
            (each.get("Error", {}).get("Code"), _plain(each.get("Error", {}).get("Item")))
            for each in answer["Responses"]
        ]
    if operation == "Query":
        kept["more"] = "LastEvaluatedKey" in answer
        if "IndexName" in request:
            kept["Items"] = sorted(map(_text, kept.get("Items", [])))
    return kept


def _text(item: Any) -> str:
    return json.dumps(item, sort_keys=True)


def _plain(value: Any) -> Any:
    """Sets without order, numbers by their size."""
    if isinstance(value, Mapping):
        if set(value) == {"N"}:
            return {"N": float(value["N"])}
        if set(value) == {"SS"}:
            return {"SS": sorted(value["SS"])}
        return {name: _plain(inner) for name, inner in value.items() if name != "Message"}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
