"""The Azure facade within one test: requests as API Gateway hands them over, answers as Azure's clients get them.

Microsoft's own client drives the whole stack in tests/local_stack/test_azure_client.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

from sweephand.server.facades.azure.errors import STATUS
from sweephand.server.facades.azure.routes import AzureApi
from sweephand.testing.taps import Passing
from tests.contract.calls import Calls, Reply, check_no_job_written
from tests.contract.native.api import OTHER, Api
from tests.contract.native.api import api as native_api
from tests.support.stage import TENANT

VERSION = "2016-03-01"
GROUPS = "/subscriptions/sub-1/resourceGroups"
COLLECTIONS = f"{GROUPS}/group/providers/Microsoft.Scheduler/jobCollections"
COLLECTION = f"{COLLECTIONS}/Nightly"
JOB = f"{COLLECTION}/jobs/Report"
CODES = {code for _, code in STATUS.values()} | {"BadRequest", "MethodNotAllowed"}


@dataclass
class Azure(Calls):
    """native: the same stage."""

    native: Api

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str | None = VERSION,
        query: Mapping[str, object] | str = "",
        **more: Any,
    ) -> Reply:
        asked = query if isinstance(query, str) else urlencode(query, quote_via=quote)
        given = "&".join(filter(None, (asked, f"api-version={version}" if version else "")))
        return super().__call__(method, path, body, query=given, **more)

    def check(self, event: Mapping[str, Any], reply: Reply, request_id: str, passed: list[Passing]) -> None:
        assert reply.headers["x-ms-request-id"]
        if reply.status >= 400:
            check_refusal(reply)
            check_no_job_written(reply, passed)

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
        yield Azure(native.stage, facade, native.credentials, native)


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
