"""The native API within one test: requests as API Gateway hands them over, answers as it is given them.

Each answer is checked for what all answers promise; each call to the table for what DynamoDB refuses and moto does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from sweephand.base.errors import MOST_SHOWN
from sweephand.base.json_text import Number
from sweephand.server.facades.native.api import NativeApi
from sweephand.server.facades.native.problems import STATUS
from sweephand.server.flow.tenants import access, tenancy
from sweephand.server.security import guard
from sweephand.server.security.caller import TENANT_SCOPES, Door
from sweephand.server.security.tokens import derive_keys
from sweephand.server.store.dynamo import keys
from sweephand.server.store.tenants import credentials as stored
from sweephand.testing.taps import Passing
from tests.contract.calls import CANARY, WRITES, Calls, Reply, basic
from tests.support.acting import GUARD
from tests.support.limits import as_dynamodb
from tests.support.stage import STACK_SECRET, TENANT, stage

HTML = "text/html; charset=utf-8"
FILES = {"text/csv; charset=utf-8", "application/x-ndjson"}
OTHER = "globex"


@dataclass
class Api(Calls):
    """credentials: Authorization by who calls: the tenants `acme` and `globex`, `provider`."""

    def create(self, body: Mapping[str, Any] | None = None, *, caller: str = TENANT, **members: Any) -> dict[str, Any]:
        """Creates a job, which must succeed, and returns its answer."""
        reply = self("POST", "/v1/jobs", {**(body or JOB), **members}, caller=caller)
        assert reply.status == 201, reply.text
        return reply.json

    def check(self, event: Mapping[str, Any], reply: Reply, request_id: str, passed: list[Passing]) -> None:
        assert reply.headers["x-request-id"] == request_id
        if reply.headers["cache-control"] != "no-store":
            public = ("openapi", '"kty"', "jwks_uri")
            assert reply.status == 304 or any(word in reply.text for word in public), "nothing else may be kept"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["strict-transport-security"] == "max-age=31536000"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
        if event["requestContext"]["http"]["method"].upper() == "HEAD":
            assert reply.text == ""
        elif reply.headers["content-type"] == "application/problem+json":
            check_problem(reply, request_id)
        elif reply.headers["content-type"] in FILES | {HTML}:
            assert reply.status == 200
        else:
            assert reply.headers["content-type"] == "application/json"
            oauth = {"error", "error_description"}
            assert reply.status < 400 or reply.json.keys() == oauth, "only OAuth's errors have another form"
        if reply.status >= 400 and not event["rawPath"].startswith("/v1/runs/"):  # what comes late is noted there
            self._check_nothing_written(reply, passed)

    def _check_nothing_written(self, reply: Reply, passed: list[Passing]) -> None:
        """Checks that a refusal has written nothing and sent nothing; one by the table's own conditions has tried to.

        A job that tried may have taken a number, which then stays a gap; a list that tried has counted itself. A change
        ends an overdue pause before its own checks, as the service would a little later.
        """
        passed = passed[_end_of_pause(passed) :]
        tried = {"TransactWriteItems"} if reply.status in {409, 412} or '"KEY_REUSED"' in reply.text else set()
        numbers = [
            each for each in passed if tried and each.request.get("Key", {}).get("sk", {}).get("S") == keys.LAST_NUMBER
        ]
        numbers += [each for each in passed if "RATE#" in str(each.request.get("Key"))]  # refused ones count too
        numbers += [each for each in passed if tried and "'SET#" in str(each.request.get("Key"))]
        written = [each.name for each in passed if each.operation in WRITES - tried and each not in numbers]
        assert reply.status >= 500 or not written, (reply.text, written)

    # State before and after

    def picture(self) -> list[str]:
        """Returns the whole table except the last number given out, and all messages, to compare before and after."""
        messages = [body for queue in self.stage.sqs._queues.values() for body in map(str, queue.messages)]
        items = [item for item in self.stage.items() if item["sk"]["S"] != keys.LAST_NUMBER]
        return sorted(json.dumps(item, sort_keys=True) for item in items) + messages

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before = self.picture()
        yield
        gone, come = set(before) - set(after := self.picture()), set(after) - set(before)
        assert not gone | come, "\n".join(["gone:", *sorted(gone), "come:", *sorted(come)])[:4_000]

    def log(self) -> str:
        return str(self.stage.journal.lines)


def _end_of_pause(passed: list[Passing]) -> int:
    """Returns how many calls end an overdue pause: those up to its transaction, and the messages sent after it."""
    key = {"sk": {"S": keys.pause()}}
    ends = [
        n
        for n, each in enumerate(passed, 1)
        for op in each.request.get("TransactItems", [])
        if op.get("Delete", {}).get("Key", {}).items() >= key.items()
    ]
    if not ends:
        return 0
    sent = takewhile(lambda each: each.operation == "SendMessageBatch", passed[ends[-1] :])
    return ends[-1] + sum(1 for _ in sent)


def check_problem(reply: Reply, request_id: str) -> None:
    """Checks a problem by RFC 9457, and what this API adds to it."""
    body = reply.json
    assert body.keys() - {"errors", "plan", "current"} == {"type", "title", "status", "code", "detail", "requestId"}
    assert ("plan" in body) == (body["code"] in {"PLAN_STALE", "TOO_MANY_DELETES"})
    status, title = STATUS[body["code"]]
    assert (body["status"], body["title"]) == (reply.status, title) == (status, title)
    assert body["type"] == "/problems/" + body["code"].lower().replace("_", "-")
    assert body["requestId"] == request_id
    assert isinstance(body["detail"], str)
    assert body["detail"]
    if reply.status in {400, 413, 415, 422}:
        errors = body["errors"]
        assert 1 <= len(errors) <= MOST_SHOWN
        assert len({error["field"] for error in errors}) == len(errors), "one reason for each field"
        for error in errors:
            check_field_problem(error)
    else:
        assert "errors" not in body
    assert ("www-authenticate" in reply.headers) == (reply.status == 401)
    assert ("allow" in reply.headers) == (reply.status == 405)


def check_field_problem(error: dict[str, Any]) -> None:
    assert error.keys() - {"position"} == {"field", "reason"}
    assert isinstance(error["field"], str)
    assert error["field"]
    assert isinstance(error["reason"], str)
    assert error["reason"]
    assert len(json.dumps(error)) < 2_000, "a refusal does not repeat all that was sent"
    assert isinstance(error.get("position", 0), int)


@contextmanager
def api(*, guarded: guard.GuardSettings | None = None, **settings: Any) -> Iterator[Api]:
    """Makes the stage with the tenants acme and globex, each with a credential of every scope.

    guarded: what jobs may call; without it, public addresses, and targets on AWS by one role.
    """
    with stage(**settings) as there:
        world = there.world
        tenancy.create_tenant(world, OTHER, None)
        token_keys = derive_keys("test", STACK_SECRET, None)

        def find(tenant: str | None, name: str) -> Any:
            return stored.find_credential(world.table, tenant, name)

        door = Door(token_keys, STACK_SECRET, find, callback_key=world.callback_keys.current)
        credentials = {"provider": basic("provider.admin", STACK_SECRET)}
        for tenant in (TENANT, OTHER):
            issued = access.create_credential(world, tenant, None, TENANT_SCOPES)
            credentials[tenant] = basic(issued.credential.client_id, issued.secret)
        there.taps.fault = as_dynamodb
        there.taps.passed.clear()
        yield Api(there, NativeApi(world, guarded or GUARD, lambda: door), credentials)
        assert CANARY not in str(there.journal.lines).lower()


JOB = {
    "action": {"type": "http", "url": "https://example.org/run"},
    "schedules": [{"name": "daily", "cron": "0 3 * * *"}],
}
"""The least job with a schedule."""

EXAMPLE = r"""
{"name": "nightly-report", "collection": "default", "active": true,
 "resourceId": "inv-4711", "tags": ["finance"], "startTime": null, "endTime": null,
 "action": {"type": "http", "method": "POST", "url": "https://x.org/run",
   "headers": {"X-A": "b"}, "payload": {"r": 1}, "authentication": {"type": "none"},
   "outcome": {"answerTimeoutSeconds": 15, "successStatuses": ["2xx"], "on202": "success",
               "onNoAnswer": "fail", "callbackTimeoutSeconds": 1800},
   "retry": {"type": "exponential", "maxRetries": 5, "delaySeconds": 10, "maxDelaySeconds": 3600,
             "retryOn": "transient", "maxAgeSeconds": null}},
 "errorAction": {"type": "http", "url": "https://x.org/alarm", "retry": {"type": "none"}},
 "policies": {"misfire": {"type": "sap", "ratePerMinute": 60, "maxLatenessSeconds": null},
   "overlap": "allow", "onPastStart": "refuse", "delivery": "at_least_once",
   "keepAnswer": "failures", "callbackToken": false},
 "schedules": [
  {"name": "weekdays", "active": true, "cron": "30 2 * * 1-5", "timezone": "Europe/Berlin",
   "dstGap": "next_valid", "dstOverlap": "first", "monthOverflow": "skip", "startTime": null,
   "endTime": "2027-12-31T00:00:00Z", "count": null, "jitterSeconds": 0, "payload": {"r": 2}},
  {"name": "beat", "every": "PT10S", "align": "start"},
  {"name": "once", "at": "2027-04-01T09:00:00+01:00"}]}
"""
"""The body that the description of the API shows, word for word (the virtual clock stands in March 2027)."""


def example() -> dict[str, Any]:
    body: dict[str, Any] = json.loads(EXAMPLE, parse_float=Number)
    return body
