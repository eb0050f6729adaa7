"""Limits of requests a minute: of all callers, and of each tenant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.server.facades.sap.routes import SapApi
from tests.contract.sap.api import OTHER, Sap
from tests.support.taps import refused


def limited(api: Sap, **limits: int) -> Sap:
    """Makes the facade with other limits."""
    world = replace(api.stage.world, settings=replace(api.stage.world.settings, **limits))
    api.facade = SapApi(world, api.native.facade.guard, api.native.facade.door)
    return api


def statuses(api: Sap, times: int, caller: str = "acme") -> list[int]:
    return [api.get("/jobs", caller=caller).status for _ in range(times)]


def test_a_tenant_over_its_limit_learns_when_to_retry(api):
    limited(api, client_rate_most=5)

    assert statuses(api, 6) == [*[200] * 5, 429]
    reply = api.get("/jobs")
    assert reply.json["type"] == "Rate Limit Exceeded"
    assert reply.headers["retry-after"] == str(reply.json["retryAfter"])
    assert 1 <= reply.json["retryAfter"] <= 60
    assert statuses(api, 2, OTHER) == [200, 200]
    api.stage.clock.advance(reply.json["retryAfter"])
    assert statuses(api, 1) == [200]


def test_all_callers_together_have_their_own_limit(api):
    limited(api, rate_most=4)
    api.tolerated.add(503)

    assert statuses(api, 2) + statuses(api, 3, OTHER) == [200, 200, 200, 200, 503]
    reply = api.get("/jobs")
    assert (reply.json["type"], int(reply.headers["retry-after"])) == ("Service Unavailable", reply.json["retryAfter"])
    assert int(reply.headers["throttling"]) == reply.json["retryAfter"] * 1000
    assert reply.json["message"].startswith("Error while fetching list of jobs: ")


def test_near_a_limit_an_answer_is_delayed_and_says_by_how_much(api):
    limited(api, client_rate_slow_from=2, rate_slow_from=3)

    def waited() -> tuple[str | None, float]:
        before = api.stage.clock.monotonic()
        reply = api.get("/jobs")
        return reply.headers.get("throttling"), round(api.stage.clock.monotonic() - before, 3)

    assert [waited() for _ in range(4)] == [(None, 0), (None, 0), ("250", 0.25), ("1250", 1.25)]


def test_instances_share_one_count(api):
    limited(api, client_rate_most=6)
    one, other = api.facade, SapApi(*(getattr(api.facade, name) for name in ("world", "guard", "door")))

    found = []
    for n in range(8):
        api.facade = one if n % 2 else other
        found += statuses(api, 1)

    assert found == [*[200] * 6, 429, 429]


def test_a_large_limit_costs_only_occasional_writes(api):
    limited(api, client_rate_most=20_000)
    api.stage.taps.passed.clear()

    assert statuses(api, 250) == [200] * 250

    counted = [each for each in api.stage.taps.passed if "RATE#" in str(each.request.get("Key"))]
    assert len(counted) == 3


def test_a_table_that_cannot_count_limits_nobody(api):
    limited(api, client_rate_most=1)
    api.stage.taps.fault = lambda passing, act: (
        refused(passing, act) if passing.operation == "UpdateItem" and "RATE#" in str(passing.request) else act()
    )

    assert statuses(api, 3) == [200, 200, 200]


@pytest.mark.parametrize("limits", [{}, {"rate_most": 0, "client_rate_most": 0}])
def test_nothing_is_counted_without_limits(api, limits):
    limited(api, **limits)
    api.stage.taps.passed.clear()

    statuses(api, 3)

    assert not [each for each in api.stage.taps.passed if each.operation == "UpdateItem"]
