"""Calls of a facade within one test: requests as API Gateway hands them over, answers as callers get them."""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlencode

from sweephand.base.json_text import Number, dumps
from sweephand.server.store.dynamo.keys import TURN
from sweephand.testing.gateway import event
from sweephand.testing.taps import Passing
from tests.support.stage import TENANT, Stage

CANARY = "canary"
"""Stands in every secret of these tests, and in no answer and no log line."""
WRITES = {
    *("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem", "BatchExecuteStatement"),
    *("SendMessage", "SendMessageBatch", "ChangeMessageVisibilityBatch"),
}


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        """Numbers keep their digits."""
        return json.loads(self.text, parse_float=Number, parse_int=_whole)

    @property
    def code(self) -> str:
        return self.json["code"]

    @property
    def fields(self) -> list[str]:
        return [each["field"] for each in self.json["errors"]]

    @property
    def id(self) -> str:
        return self.json["id"]

    @property
    def revision(self) -> int:
        return int(self.headers["etag"].strip('"'))


def _whole(text: str) -> int | Number:
    return Number(text) if text == "-0" else int(text)


def basic(client_id: str, secret: str) -> str:
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


class Facade(Protocol):
    def handle(self, event: Mapping[str, Any], request_id: str) -> dict[str, Any]: ...


@dataclass
class Calls(ABC):
    """Sends requests, and checks each answer for what all answers of its facade promise.

    credentials: Authorization by who calls: the tenants `acme` and `globex`, `provider`. tolerated: statuses from 500
    on that a test expects.
    """

    stage: Stage
    facade: Facade
    credentials: dict[str, str]
    answers: int = field(default=0, kw_only=True)
    tolerated: set[int] = field(default_factory=set, kw_only=True)

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        caller: str | None = TENANT,
        query: Mapping[str, object] | str = "",
        headers: Mapping[str, str] | None = None,
        raw: str | bytes | None = None,
    ) -> Reply:
        """Sends a request. caller None: without the header. raw: the body's text as it is."""
        if body is not None:
            raw = dumps(body)
        sent = {"content-type": "application/json"} if raw is not None else {}
        if caller is not None:
            sent["authorization"] = self.credentials[caller]
        query = query if isinstance(query, str) else urlencode(query)
        return self.send(event(method, path, query, sent | dict(headers or {}), raw))

    def send(self, event: Mapping[str, Any]) -> Reply:
        self.answers += 1
        request_id = f"request-{self.answers}"
        passed = len(self.stage.taps.passed)
        answer = self.facade.handle(event, request_id)
        body = answer["body"]
        text = base64.b64decode(body).decode() if answer["isBase64Encoded"] else body
        reply = Reply(answer["statusCode"], answer["headers"], text)
        assert json.loads(json.dumps(answer)) == answer, "Lambda writes it as JSON"
        assert reply.status < 500 or reply.status in self.tolerated, (reply.text, self.stage.journal.lines[-3:])
        assert CANARY not in reply.text.lower()
        assert CANARY not in str(reply.headers).lower()
        self.check(event, reply, request_id, self.stage.taps.passed[passed:])
        return reply

    def get(self, path: str, **more: Any) -> Reply:
        return self("GET", path, **more)

    @abstractmethod
    def check(self, event: Mapping[str, Any], reply: Reply, request_id: str, passed: list[Passing]) -> None:
        """Checks an answer. passed: the calls to AWS that it took."""


def check_no_job_written(reply: Reply, passed: list[Passing]) -> None:
    """Checks that a refusal wrote nothing of a job.

    Numbers, ordinals and a collection may have been made for one that was then refused, a turn may have been taken for
    it, and a transaction refused.
    """
    jobs = [
        each
        for each in passed
        if each.operation in WRITES - {"UpdateItem", "TransactWriteItems"}
        and "#JOB#" in str(each.request)
        and f"'{TURN}'" not in str(each.request)
    ]
    assert reply.status >= 500 or not jobs, (reply.text, jobs)
