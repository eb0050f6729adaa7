"""The SAP facade within one test: requests as API Gateway hands them over, answers as SAP's clients get them.

SAP's own client and plain HTTP drive the whole stack in tests/local_stack: test_sap_client.py (its 23 methods, also
by a service binding) and test_sap_http.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sweephand.server.facades.native.api import NativeApi
from sweephand.server.facades.sap.routes import TYPES, SapApi
from sweephand.testing.taps import Passing
from tests.contract.calls import Calls, Reply, check_no_job_written
from tests.contract.native.api import OTHER, Api
from tests.contract.native.api import api as native_api
from tests.support.stage import TENANT

FORM = "%Y-%m-%d %H:%M:%S"


@dataclass
class Sap(Calls):
    """native: the same stage."""

    native: Api

    def __call__(self, method: str, path: str, body: object = None, **more: Any) -> Reply:
        """Sends a request. path: below /scheduler."""
        return super().__call__(method, f"/scheduler{path}", body, **more)

    def check(self, event: Mapping[str, Any], reply: Reply, request_id: str, passed: list[Passing]) -> None:
        if reply.status >= 400:
            check_refusal(reply)
            check_no_job_written(reply, passed)

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
        yield Sap(native.stage, facade, native.credentials, native)


JOB = {
    "name": "report",
    "description": "every night",
    "action": "https://example.org/run",
    "active": True,
    "httpMethod": "POST",
}
__all__ = ["FORM", "JOB", "OTHER", "TENANT", "Sap", "sap"]
