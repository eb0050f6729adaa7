"""A tenant's limit of requests a minute, and the document that is open to all."""

from __future__ import annotations

import base64
import gzip
from dataclasses import replace

import pytest

from sweephand.server.facades.native import document
from sweephand.server.facades.native.api import NativeApi
from tests.contract.calls import event
from tests.contract.native.api import Api
from tests.contract.native.test_runs import report, reporting
from tests.support.taps import refused

DOCUMENT = "/v1/openapi.json"


def limited(api: Api, most: int) -> Api:
    """Makes the same API, whose tenants may send so many requests a minute."""
    settings = replace(api.stage.world.settings, tenant_rate_most=most)
    api.facade = NativeApi(replace(api.stage.world, settings=settings), api.facade.guard, api.facade.door)
    return api


def statuses(api: Api, times: int, caller: str | None = "acme") -> list[int]:
    return [api.get("/v1/jobs", caller=caller).status for _ in range(times)]


def test_a_tenant_over_its_limit_gets_429_and_the_time_to_retry(api):
    limited(api, 5)

    assert statuses(api, 6) == [*[200] * 5, 429]
    reply = api.get("/v1/jobs")
    assert (reply.code, reply.headers["content-type"]) == ("RATE_LIMITED", "application/problem+json")
    wait_s = int(reply.headers["retry-after"])
    assert f"5 are allowed; send the next one in {wait_s} seconds" in reply.json["detail"]
    api.stage.clock.advance(wait_s)
    assert statuses(api, 1) == [200]


def test_one_tenants_requests_do_not_limit_another_tenant_or_the_provider(api):
    limited(api, 2)

    assert statuses(api, 4) == [200, 200, 429, 429]
    assert statuses(api, 2, "globex") == [200, 200]
    assert [api.get("/v1/tenants", caller="provider").status for _ in range(5)] == [200] * 5


def test_refused_callers_use_up_nobodys_limit(api):
    limited(api, 2)

    assert [api.get("/v1/jobs", headers={"authorization": "Basic eDp5"}).status for _ in range(9)] == [401] * 9
    assert statuses(api, 2) == [200, 200]


def test_results_of_runs_have_a_count_of_their_own(api):
    limited(api, 2)
    run, token = reporting(api)
    assert statuses(api, 2)[-1] == 429

    found = [report(api, run, token) for _ in range(3)]

    assert [each.status for each in found] == [200, 200, 429]
    assert found[-1].code == "RATE_LIMITED"
    api.stage.clock.advance(int(found[-1].headers["retry-after"]))
    assert [*statuses(api, 2), report(api, run, token).status] == [200, 200, 200]


def test_nothing_is_counted_without_a_limit(api):
    assert statuses(api, 3) == [200] * 3

    assert not [row for row in api.stage.items() if row["sk"]["S"].startswith("RATE#")]


def test_a_table_that_cannot_count_limits_nobody(api):
    limited(api, 1)
    api.stage.taps.fault = lambda passing, act: (
        refused(passing, act) if passing.operation == "UpdateItem" and "RATE#" in str(passing.request) else act()
    )

    assert statuses(api, 3) == [200, 200, 200]


# The document


def sent(api: Api, accepted: str | None) -> dict[str, object]:
    headers = {} if accepted is None else {"accept-encoding": accepted}
    return api.facade.handle(event("GET", DOCUMENT, "", headers), "a-request")


@pytest.mark.parametrize("accepted", ["gzip", "gzip, deflate, br", "br;q=1.0, GZIP;q=0.8", "*", "gzip;q=0.001"])
def test_the_document_is_compressed_for_clients_that_accept_it(api, accepted):
    answer = sent(api, accepted)

    packed = base64.b64decode(answer["body"])
    assert answer["isBase64Encoded"] is True
    assert answer["headers"]["content-encoding"] == "gzip"
    assert answer["headers"]["vary"] == "Accept-Encoding"
    assert gzip.decompress(packed) == document.FILE.read_bytes()
    assert len(packed) < len(document.FILE.read_bytes()) / 8


@pytest.mark.parametrize("accepted", [None, "", "identity", "br", "gzip;q=0", "gzip; q=0.000, *", "*;q=0"])
def test_other_clients_get_the_document_uncompressed(api, accepted):
    answer = sent(api, accepted)

    assert answer["isBase64Encoded"] is False
    assert "content-encoding" not in answer["headers"]
    assert answer["body"] == document.FILE.read_text(encoding="utf-8")


def test_a_head_request_for_the_document_has_no_body(api):
    answer = api.facade.handle(event("HEAD", DOCUMENT, "", {"accept-encoding": "gzip"}), "a-request")

    assert (answer["statusCode"], answer["body"], answer["headers"]["content-encoding"]) == (200, "", "gzip")
