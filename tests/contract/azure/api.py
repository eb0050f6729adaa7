"""The Azure facade within one test: requests as API Gateway hands them over, answers as Azure's clients get them.

Microsoft's own client drives the whole stack in tests/local_stack/test_azure_client.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

from sweephand.facades.azure.errors import STATUS
from sweephand.facades.azure.routes import AzureApi
from sweephand.store.dynamo.keys import TURN
from tests.contract.native.api import CANARY, OTHER, WRITES, Api, Reply, event
from tests.contract.native.api import api as native_api
from tests.support.stage import TENANT, Stage
from tests.support.taps import Passing

VERSION = "2016-03-01"
GROUPS = "/subscriptions/sub-1/resourceGroups"
COLLECTIONS = f"{GROUPS}/group/providers/Microsoft.Scheduler/jobCollections"
COLLECTION = f"{COLLECTIONS}/Nightly"
JOB = f"{COLLECTION}/jobs/Report"
CODES = {code for _, code in STATUS.values()} | {"BadRequest", "MethodNotAllowed"}


@dataclass
class Azure:
    """credentials: Authorization by who calls: the tenants `acme` and `globex`, `provider`. native: the same stage."""

    stage: Stage
    facade: AzureApi
    native: Api
    credentials: dict[str, str]
    answers: int = 0
    tolerated: set[int] = field(default_factory=set)

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        caller: str | None = TENANT,
        version: str | None = VERSION,
        query: Mapping[str, object] | str = "",
        headers: Mapping[str, str] | None = None,
        raw: str | bytes | None = None,
    ) -> Reply:
        if body is not None:
            raw = json.dumps(body)
        sent = {"content-type": "application/json"} if raw is not None else {}
        if caller is not None:
            sent["authorization"] = self.credentials[caller]
        asked = query if isinstance(query, str) else urlencode(query, quote_via=quote)
        given = "&".join(filter(None, (asked, f"api-version={version}" if version else "")))
        return self.send(event(method, path, given, sent | dict(headers or {}), raw))

    def send(self, event: Mapping[str, Any]) -> Reply:
        self.answers += 1
        passed = len(self.stage.taps.passed)
        answer = self.facade.handle(event, f"request-{self.answers}")
        reply = Reply(answer["statusCode"], answer["headers"], answer["body"])
        assert json.loads(json.dumps(answer)) == answer, "Lambda writes it as JSON"
        assert reply.status < 500 or reply.status in self.tolerated, (reply.text, self.stage.journal.lines[-3:])
        assert reply.headers["x-ms-request-id"]
        assert CANARY not in reply.text.lower()
        if reply.status >= 400:
            check_refusal(reply)
            self._check_nothing_written(reply, self.stage.taps.passed[passed:])
        return reply

    def _check_nothing_written(self, reply: Reply, passed: list[Passing]) -> None:
        """Checks that no job was written. A turn may have been taken for it, and a transaction refused."""
        jobs = [
            each
            for each in passed
            if each.operation in WRITES - {"UpdateItem", "TransactWriteItems"}
            and "#JOB#" in str(each.request)
            and f"'{TURN}'" not in str(each.request)
        ]
        assert reply.status >= 500 or not jobs, (reply.text, jobs)

    def get(self, path: str, **more: Any) -> Reply:
        return self("GET", path, **more)

    def collection(self, path: str = COLLECTION, **properties: Any) -> dict[str, Any]:
        """Creates a collection and returns the answer."""
        reply = self("PUT", path, {"location": "West US", "properties": properties})
        assert reply.status == 201, reply.text
        return reply.json

    def job(self, path: str = JOB, **properties: Any) -> dict[str, Any]:
        """Creates a job, and its collection if there is none. Returns the properties of the answer."""
        collection = path.split("/jobs/", maxsplit=1)[0]
        if self.get(collection).status == 404:
            self.collection(collection)
        reply = self("PUT", path, job(**properties))
        assert reply.status == 201, reply.text
        return reply.json["properties"]

    def properties(self, path: str = JOB) -> dict[str, Any]:
        reply = self.get(path)
        assert reply.status == 200, reply.text
        return reply.json["properties"]

    def history(self, path: str = JOB, **more: Any) -> list[dict[str, Any]]:
        """Returns the properties of the records."""
        return [each["properties"] for each in self.get(f"{path}/history", **more).json["value"]]

    def at(self, seconds: float = 0) -> str:
        """Returns the virtual clock's time in the form of the service."""
        return f"{self.stage.clock.now() + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def check_refusal(reply: Reply) -> None:
    assert reply.json.keys() == {"error"}
    assert reply.json["error"].keys() == {"code", "message"}
    assert reply.json["error"]["code"] in CODES
    assert reply.json["error"]["message"]
    assert reply.headers["content-type"] == "application/json; charset=utf-8"


HTTP: dict[str, Any] = {"type": "Http", "request": {"uri": "https://example.org/run", "method": "POST"}}
EVERY_HOUR = {"frequency": "Hour", "interval": 1}


def job(**properties: Any) -> dict[str, Any]:
    return {"properties": {"action": HTTP, **properties}}


@contextmanager
def azure(**settings: Any) -> Iterator[Azure]:
    with native_api(**settings) as native:
        facade = AzureApi(native.stage.world, native.facade.guard, native.facade.door)
        yield Azure(native.stage, facade, native, native.credentials)


__all__ = [
    "COLLECTION",
    "COLLECTIONS",
    "EVERY_HOUR",
    "GROUPS",
    "HTTP",
    "JOB",
    "OTHER",
    "TENANT",
    "Azure",
    "azure",
    "job",
]
