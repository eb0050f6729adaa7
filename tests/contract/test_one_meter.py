"""One limit of requests a minute for each tenant, by whichever facade it sends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from urllib.parse import urlencode

import pytest

from sweephand.server.facades.api import Api as Facade
from sweephand.server.facades.azure.routes import AzureApi
from sweephand.server.facades.native.api import NativeApi
from sweephand.server.facades.sap.routes import SapApi
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import FlowMemory
from tests.contract.azure.api import Azure
from tests.contract.azure.api import check_refusal as check_azure
from tests.contract.calls import Calls, Reply
from tests.contract.native.api import OTHER, Api, check_problem
from tests.contract.native.api import api as native_api
from tests.contract.sap.api import Sap
from tests.contract.sap.api import check_refusal as check_sap

MOST = 14
JOB = "01998f3e-0000-7000-8000-000000000000"


@dataclass
class Meters:
    """The three functions of a stack, each in a process of its own, with a limit of MOST requests."""

    native: Api
    azure: Azure
    sap: Sap


@pytest.fixture
def apis() -> Iterator[Meters]:
    with native_api() as native:
        own = native.facade
        assert isinstance(own, NativeApi)
        stage, credentials = native.stage, native.credentials

        def served(facade: type[Facade]) -> Facade:
            settings = replace(stage.world.settings, tenant_rate_most=MOST)
            return facade(replace(stage.world, settings=settings, memory=FlowMemory()), own.guard, own.door)

        native.facade = served(NativeApi)
        yield Meters(
            native,
            Azure(stage, served(AzureApi), credentials, native),
            Sap(stage, served(SapApi), credentials, native),
        )


Send = Callable[[Meters, str], Reply]


def _token(apis: Meters, caller: str) -> Reply:
    form = {"content-type": "application/x-www-form-urlencoded"}
    return apis.native("POST", "/oauth/token", caller=caller, headers=form, raw=urlencode(GRANT))


GRANT = {"grant_type": "client_credentials"}
BY: dict[str, Send] = {
    "native": lambda apis, caller: apis.native.get("/v1/jobs", caller=caller),
    "a write": lambda apis, caller: apis.native("POST", "/v1/jobs", {}, caller=caller),
    "no such job": lambda apis, caller: apis.native.get(f"/v1/jobs/{JOB}", caller=caller),
    "a missing scope": lambda apis, caller: apis.native.get("/v1/tenants", caller=caller),
    "no such path": lambda apis, caller: apis.native.get("/v1/nothing", caller=caller),
    "no such method": lambda apis, caller: apis.native("TRACE", "/v1/jobs", caller=caller),
    "the console": lambda apis, caller: apis.native.get("/v1/timeline", caller=caller),
    "a token": _token,
    "azure": lambda apis, caller: apis.azure.get("/providers/Microsoft.Scheduler/operations", caller=caller),
    "azure, no such path": lambda apis, caller: apis.azure.get("/subscriptions", caller=caller),
    "azure, no version": lambda apis, caller: apis.azure.get("/subscriptions/a", caller=caller, version=None),
    "sap": lambda apis, caller: apis.sap.get("/jobs", caller=caller),
    "sap, no such path": lambda apis, caller: apis.sap.get("/nothing", caller=caller),
}


def check_shape(of: str, reply: Reply) -> None:
    """Checks that the refusal has the form of its facade, and says when to send the next request."""
    assert 1 <= int(reply.headers["retry-after"]) <= 60
    if of.startswith("azure"):
        check_azure(reply)
        assert reply.json["error"]["code"] == "TooManyRequests"
    elif of.startswith("sap"):
        check_sap(reply)
    elif of == "a token":
        assert reply.json.keys() == {"error", "error_description"}
    else:
        check_problem(reply, reply.json["requestId"])
        assert reply.code == "RATE_LIMITED"


@pytest.mark.parametrize("of", BY)
def test_each_facade_counts_every_request_of_an_identified_tenant(apis, of):
    send = BY[of]

    replies = [send(apis, "acme") for _ in range(MOST + 2)]

    assert 429 not in [each.status for each in replies[:MOST]]
    assert [each.status for each in replies[MOST:]] == [429, 429]
    check_shape(of, replies[-1])
    assert send(apis, OTHER).status != 429
    apis.native.stage.clock.advance(int(replies[-1].headers["retry-after"]))
    assert send(apis, "acme").status != 429


def test_requests_by_all_facades_count_together(apis):
    mixed = list(islice(cycle(BY.items()), MOST))
    assert 429 not in [send(apis, "acme").status for _, send in mixed]

    for of, send in BY.items():
        reply = send(apis, "acme")
        assert reply.status == 429, of
        check_shape(of, reply)
        assert send(apis, OTHER).status != 429, of


def test_a_disabled_tenant_has_its_limit_too(apis):
    tenancy.switch_tenant(apis.native.stage.world, "acme", on=False)

    for of in ("native", "azure", "sap"):
        assert BY[of](apis, "acme").status == 403
    assert [BY["azure"](apis, "acme").status for _ in range(MOST)][-1] == 429


def test_the_provider_has_no_limit(apis):
    calls: list[Calls] = [apis.native, apis.azure, apis.sap]

    found = [each.get("/jobs", caller="provider").status for _ in range(MOST) for each in calls]

    assert 429 not in found


def test_strangers_use_up_no_tenants_limit(apis):
    stranger = {"authorization": "Basic YWNtZS5zb21lYm9keTp3cm9uZw=="}
    for _ in range(MOST + 1):
        assert apis.azure.get("/subscriptions/a", headers=stranger).status == 401

    assert BY["azure"](apis, "acme").status == 200
