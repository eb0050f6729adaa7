"""The SAP facade within one test: requests as API Gateway hands them over, answers as SAP's clients get them.

SAP's own client and plain HTTP drive the whole stack in tests/local_stack: test_sap_client.py (its 23 methods, also
by a service binding) and test_sap_http.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from sweephand.facades.native.api import NativeApi
from sweephand.facades.sap.routes import TYPES, SapApi
from sweephand.store.dynamo.keys import TURN
from tests.contract.native.api import CANARY, OTHER, WRITES, Api, Reply, event
from tests.contract.native.api import api as native_api
from tests.support.stage import TENANT, Stage
from tests.support.taps import Passing

FORM = "%Y-%m-%d %H:%M:%S"


@dataclass
class Sap:
    """credentials: Authorization by who calls: the tenants `acme` and `globex`, `provider`. native: the same stage."""

    stage: Stage
    facade: SapApi
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
        query: Mapping[str, object] | str = "",
        headers: Mapping[str, str] | None = None,
        raw: str | bytes | None = None,
    ) -> Reply:
        """Sends a request. path: below /scheduler. caller None: without the header."""
        if body is not None:
            raw = json.dumps(body)
        sent = {"content-type": "application/json"} if raw is not None else {}
        if caller is not None:
            sent["authorization"] = self.credentials[caller]
        query = query if isinstance(query, str) else urlencode(query)
        return self.send(event(method, f"/scheduler{path}", query, sent | dict(headers or {}), raw))

    def send(self, event: Mapping[str, Any]) -> Reply:
        self.answers += 1
        passed = len(self.stage.taps.passed)
        answer = self.facade.handle(event, f"request-{self.answers}")
        reply = Reply(answer["statusCode"], answer["headers"], answer["body"])
        assert json.loads(json.dumps(answer)) == answer, "Lambda writes it as JSON"
        assert reply.status < 500 or reply.status in self.tolerated, (reply.text, self.stage.journal.lines[-3:])
        assert CANARY not in reply.text.lower()
        if reply.status >= 400:
            check_refusal(reply)
            self._check_nothing_written(reply, self.stage.taps.passed[passed:])
        return reply

    def _check_nothing_written(self, reply: Reply, passed: list[Passing]) -> None:
        """Checks that nothing of a job was written. Numbers, ordinals and the collection may have been made for one
        that was then refused, and a turn may have been taken for it.
        """
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

    def create(self, *schedules: Mapping[str, Any], caller: str = TENANT, **members: Any) -> dict[str, Any]:
        """Creates a job, which must succeed, and returns its answer."""
        body = {**JOB, **members, "schedules": [{"active": True, **each} for each in schedules]}
        reply = self("POST", "/jobs", body, caller=caller)
        assert reply.status == 201, reply.text
        return reply.json

    def now(self, seconds: float = 0) -> str:
        """Returns the virtual clock's time, as the service shows times."""
        return f"{self.stage.clock.now() + timedelta(seconds=seconds):{FORM}}"


def check_refusal(reply: Reply) -> None:
    body = reply.json
    assert body.keys() - {"retryAfter"} == {"code", "message", "type", "detailedError"}
    assert (body["code"], body["type"]) == (reply.status, TYPES[reply.status])
    assert isinstance(body["message"], str)
    assert body["message"] == body["detailedError"] != ""
    assert ("www-authenticate" in reply.headers) == (reply.status == 401)


@contextmanager
def sap(**settings: Any) -> Iterator[Sap]:
    with native_api(**settings) as native:
        facade = SapApi(native.stage.world, native.facade.guard, native.facade.door)
        assert isinstance(native.facade, NativeApi)
        yield Sap(native.stage, facade, native, native.credentials)


JOB = {
    "name": "report",
    "description": "every night",
    "action": "https://example.org/run",
    "active": True,
    "httpMethod": "POST",
}
__all__ = ["FORM", "JOB", "OTHER", "TENANT", "Sap", "sap"]
