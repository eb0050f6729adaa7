"""The worst inputs of each operation of each facade, by class: no request costs more than some 100 ms of work.

Work is counted in calls within the package, which are the same on every machine.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import pytest

from sweephand.server.facades.azure.routes import AzureApi
from sweephand.server.facades.http import Route
from sweephand.server.facades.native.routes import ROUTES
from sweephand.server.facades.sap.routes import SapApi
from tests.contract.azure.api import Azure
from tests.contract.azure.api import job as azure_job
from tests.contract.calls import Calls, Reply
from tests.contract.native import everything
from tests.contract.native.api import api as native_api
from tests.contract.sap.api import JOB as SAP_JOB
from tests.contract.sap.api import Sap
from tests.support.work import OURS, few_calls

MOST = 500_000
"""Function calls, of Python and of C, in a whole request: some 80 ms."""


def names(count: int) -> list[str]:
    return [f"n{n}" for n in range(count)]


BODIES: Mapping[str, str | bytes] = {
    "deep lists": "[" * 130_000 + "]" * 130_000,
    "deep objects": '{"a":' * 50_000,
    "open brackets": "[" * 260_000,
    "open strings": '["' * 130_000,
    "escapes": '"' + "\\" * 250_000,
    "escaped quotes": '{"a":"' + '\\"' * 125_000 + '"}',
    "empty lists": "[" + ",".join(["[]"] * 80_000) + "]",
    "empty objects": '{"jobs":[' + ",".join(["{}"] * 80_000) + "]}",
    "one number": '{"a":' + "9" * 250_000 + "}",
    "an exponent": '{"count":1e1000000,"limit":1E999999999,"attempt":-1e-999999999}',
    "many exponents": "[" + ",".join(["1e99"] * 50_000) + "]",
    "many zeros": "[" + ",".join(["-0"] * 80_000) + "]",
    "one member twice": '{"a":1,' + ",".join(f'"n{n}":1' for n in range(20_000)) + ',"a":2}',
    "unknown members": json.dumps(dict.fromkeys(names(20_000), 1)),
    "a long name": json.dumps({"n" * 250_000: 1}),
    "halves of characters": '{"a":"' + "\\ud800" * 40_000 + '"}',
    "whole characters": '{"a":"' + "\\ud83d\\ude00" * 20_000 + '"}',
    "marks over a letter": json.dumps({"name": "a" + "\u0300" * 100_000}, ensure_ascii=False),
    "blanks": " " * 260_000,
    "not UTF-8": b"\xff" * 200_000,
    "a byte order mark": "\ufeff{}",
    "control characters": json.dumps({"name": "\x01" * 40_000}),
}
"""Texts that no operation takes."""
VALUES: Mapping[str, Any] = {
    "a long string": "a" * 100_000,
    "digits": "9" * 100_000,
    "stars": "* " * 50_000,
    "ranges": "1-" * 50_000,
    "commas": "1," * 50_000,
    "quotes": "'" * 100_000,
    "percents": "%41" * 30_000,
    "a rule": "RRULE:FREQ=DAILY;BYSETPOS=" + "1," * 40_000,
    "an address": "https://" + "a." * 40_000 + "example/" + "../" * 10_000,
    "words": names(20_000),
    "numbers": list(range(30_000)),
    "lists": [[]] * 40_000,
    "objects": [{}] * 40_000,
    "members": dict.fromkeys(names(15_000), "x"),
    "members of members": {
        "schedule": {name: [1] for name in names(7_000)},
        "headers": dict.fromkeys(names(7_000), "\n"),
    },
    "a large number": 10**99,
    "a fraction": 1e308,
}
"""Values that take the place of each value of a body that the operation takes."""
HEADERS: Mapping[str, Mapping[str, str]] = {
    "many": dict.fromkeys(names(3_000), "x"),
    "own names": {f"sweephand-{n}": "x" for n in range(1_000)},
    "If-Match": {"if-match": '"1",' * 3_000},
    "If-None-Match": {"if-none-match": 'W/"a", ' * 2_000},
    "Idempotency-Key": {"idempotency-key": "k" * 9_000},
    "a tenant": {"sweephand-tenant": "t" * 9_000},
    "a run's token": {"sweephand-callback-token": "a." * 4_500},
    "a type": {"content-type": "application/json;" + "a=b;" * 2_500},
    "a coding": {"content-encoding": "gzip," * 1_800},
    "agents": {"user-agent": "a/1 (" * 2_000},
    "traces": {"traceparent": "00-" * 3_000, "tracestate": "a=b," * 2_000},
}
CREDENTIALS: Mapping[str, str] = {
    "colons": "Basic " + base64.b64encode(b":" * 6_000).decode(),
    "not Base64": "Basic " + "=" * 9_000,
    "points": "Bearer " + "a." * 4_000,
    "many scopes": "Bearer "
    + ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
        for part in ({"alg": "HS256"}, {"scope": "a " * 2_500}, "x")
    ),
    "a deep header": "Bearer " + base64.urlsafe_b64encode(b"[" * 5_000).rstrip(b"=").decode() + ".e30.x",
    "blanks": " " * 9_000,
    "schemes": "Basic Bearer " * 700,
}
QUERIES: Mapping[str, str] = {
    "10,000 parameters": "&".join(f"{name}=1" for name in names(10_000)),
    "1,000 parameters": "&".join(f"{name}=1" for name in names(1_000)),
    "1 MB": "a=" + "b" * 1_000_000,
    "percents": "a=" + "%41" * 2_700,
    "pluses": "+" * 8_000,
    "ampersands": "&" * 8_000,
    "equals": "=" * 8_000,
}
LONG: Mapping[str, str] = {
    "letters": "a" * 7_900,
    "digits": "9" * 7_900,
    "commas": "a," * 3_900,
    "quotes": "'" * 7_900,
    "brackets": "(" * 7_900,
    "conditions": "a%20eq%20'b'%20and%20" * 400,
    "contains": "contains(name,'a')%20or%20" * 330,
    "blanks": "%20" * 2_600,
    "instants": "2027-03-01T" * 700,
    "a cursor": base64.urlsafe_b64encode(b"[" * 5_000).decode(),
}
"""Values for each parameter that an operation knows, and for those of the Azure and SAP facades."""
PARAMETERS = {
    Sap: ("filter", "sort_by", "page_size", "offset", "displaySchedules", "q", "name", "jobId", "query", "search"),
    Azure: ("$filter", "$top", "$skip", "$skiptoken"),
}
AZURE = {"subscription": "sub-1", "group": "group", "collection": "Nightly", "job": "Report"}


@dataclass
class Facades:
    """The three facades on one stage. things, paths: what their paths name."""

    native: Calls
    sap: Sap
    azure: Azure
    things: everything.Things
    paths: Mapping[type, Mapping[str, str]]


@pytest.fixture(scope="module")
def facades() -> Iterator[Facades]:
    with native_api() as native:
        own = native.facade
        sap = Sap(native.stage, SapApi(native.stage.world, own.guard, own.door), native.credentials, native)
        azure = Azure(native.stage, AzureApi(native.stage.world, own.guard, own.door), native.credentials, native)
        made = sap.create({"cron": "* * * * 3 0 0", "description": "nightly"})
        azure.job()
        schedule = sap.get(f"/jobs/{made['_id']}/schedules").json["results"][0]["scheduleId"]
        paths = {Sap: {"job": str(made["_id"]), "schedule": schedule, "run": schedule}, Azure: AZURE}
        yield Facades(native, sap, azure, everything.furnish(native, "acme"), paths)


@dataclass(frozen=True)
class Case:
    """An operation of a facade."""

    facade: type | None
    route: Route

    def __str__(self) -> str:
        return everything.title(self.route)

    def send(self, facades: Facades, **more: Any) -> Reply:
        if self.facade is None:
            return everything.send(facades.native, self.route, facades.things, **more)
        path = _filled(self.route.path, facades.paths[self.facade])
        if self.facade is Sap:
            return facades.sap(self.route.method, path.removeprefix("/scheduler"), **more)
        return facades.azure(self.route.method, path, **more)

    @property
    def sound(self) -> Any:
        """Returns a body that the operation takes."""
        if self.facade is None:
            return everything.body_of(self.route)
        return {**SAP_JOB, "schedules": [{"cron": "* * * * 3 0 0"}]} if self.facade is Sap else azure_job()


def _filled(path: str, known: Mapping[str, str]) -> str:
    pieces = (known.get(each.strip("{}"), "x") if each.startswith("{") else each for each in path.split("/"))
    return "/".join(pieces)


CASES = [
    *(Case(None, route) for route in ROUTES.all),
    *(Case(Sap, route) for route in SapApi.routes.all),
    *(Case(Azure, route) for route in AzureApi.routes.all),
]
CHANGES = {"POST", "PUT", "PATCH"}
WITH_BODY = [
    case
    for case in CASES
    if (case.route.body in {"required", "optional"} if case.facade is None else case.route.method in CHANGES)
]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("case", WITH_BODY, ids=str)
def test_no_text_of_a_body_costs_much(facades: Facades, case: Case) -> None:
    case.send(facades, body=None, raw='{"unknown": 1}')
    for name, text in BODIES.items():
        with few_calls(MOST, OURS):
            reply = case.send(facades, body=None, raw=text)

        assert reply.status < 500, (name, reply.text[:500])


@pytest.mark.sampled(20)
@pytest.mark.parametrize("case", WITH_BODY, ids=str)
def test_no_value_of_a_member_costs_much(facades: Facades, case: Case) -> None:
    case.send(facades, body=None, raw='{"unknown": 1}')
    for n, place in enumerate(everything.places(case.sound)):
        for name in islice(cycle(VALUES), n, n + len(VALUES), 6):  # each place gets some, and each value some places
            text = json.dumps(everything.replaced(case.sound, place, VALUES[name]))
            with few_calls(MOST, OURS):
                reply = case.send(facades, body=None, raw=text)

            assert reply.status < 500, (name, place, reply.text[:500])


@pytest.mark.sampled(20)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_header_costs_much(facades: Facades, case: Case) -> None:
    if case.route.method not in {"GET", "POST", "PUT"}:
        return  # so that what the paths name stays
    for name, headers in HEADERS.items():
        with few_calls(MOST, OURS):
            reply = case.send(facades, body=None, raw="[]", headers=headers)

        assert reply.status < 500, (name, reply.text[:500])
    for name, credential in CREDENTIALS.items():
        with few_calls(MOST, OURS):
            reply = case.send(facades, body=None, raw="[]", headers={"authorization": credential}, caller=None)

        assert reply.status == 401 or case.route.scope is None, (name, reply.text[:500])


@pytest.mark.sampled(20)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_query_costs_much(facades: Facades, case: Case) -> None:
    if case.route.method != "GET":
        return
    known = case.route.query or PARAMETERS.get(case.facade, ())
    for query in (*QUERIES.values(), *(f"{name}={value}" for name in known for value in LONG.values())):
        with few_calls(MOST, OURS):
            reply = case.send(facades, query=query)

        assert reply.status < 500, (query[:100], reply.text[:500])
