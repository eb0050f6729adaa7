"""Requests at the same time: quotas hold exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock

import pytest

from sweephand.formats.azure import collection_fields
from sweephand.testing.taps import Act, Passing
from tests.contract.azure.api import COLLECTION, COLLECTIONS, Azure, job
from tests.contract.calls import Reply

MANY = 20


def at_once(api: Azure, ask: Callable[[int], Reply]) -> Counter[int]:
    """Returns how often each status was answered. All have read what is there before one of them writes."""
    barrier, lock, come = Barrier(MANY), Lock(), 0
    checked = api.stage.taps.fault
    assert checked is not None

    def wait_for_all(passing: Passing, act: Act) -> object:
        nonlocal come
        if passing.operation == "TransactWriteItems":
            with lock:
                come += 1
                first = come <= MANY
            if first:
                barrier.wait(30)
        return checked(passing, act)

    api.stage.taps.fault = wait_for_all
    with ThreadPoolExecutor(MANY) as pool:
        found = Counter(reply.status for reply in pool.map(ask, range(MANY)))
    api.stage.taps.fault = checked
    return found


def test_one_job_below_the_maximum_only_one_of_twenty_is_created(api):
    api.collection(quota={"maxJobCount": 5})
    for n in range(4):
        api.job(f"{COLLECTION}/jobs/there-{n}", startTime=api.at(3_600))

    found = at_once(api, lambda n: api("PUT", f"{COLLECTION}/jobs/new-{n}", job(startTime=api.at(3_600))))

    assert found == {201: 1, 409: MANY - 1}
    assert len(api.get(f"{COLLECTION}/jobs").json["value"]) == 5


def test_twenty_puts_of_one_job_name_make_one_job(api):
    api.collection()

    found = at_once(api, lambda _: api("PUT", f"{COLLECTION}/jobs/same", job(startTime=api.at(3_600))))

    assert found == {201: 1, 200: MANY - 1}
    assert len(api.get(f"{COLLECTION}/jobs").json["value"]) == 1


def put(api, n, plan="Standard"):
    body = {"location": "West US", "properties": {"sku": {"name": plan}}}
    return api("PUT", f"{COLLECTIONS}/new-{n}", body)


@pytest.mark.parametrize(("plan", "there"), [("Free", 0), ("Standard", 2)])
def test_one_collection_below_the_maximum_only_one_of_twenty_is_created(api, monkeypatch, plan, there):
    standard = collection_fields.Plan(50, "Minute", 3)
    monkeypatch.setitem(collection_fields.PLANS, "Standard", standard)
    for n in range(there):
        api.collection(f"{COLLECTIONS}/there-{n}")

    found = at_once(api, lambda n: put(api, n, plan))

    assert found == {201: 1, 409: MANY - 1}
    assert len(api.get(COLLECTIONS).json["value"]) == there + 1


def test_only_one_of_twenty_collections_can_change_to_free(api):
    for n in range(MANY):
        api.collection(f"{COLLECTIONS}/c-{n}")

    change = {"properties": {"sku": {"name": "Free"}}}
    found = at_once(api, lambda n: api("PATCH", f"{COLLECTIONS}/c-{n}", change))

    assert found == {200: 1, 409: MANY - 1}


def test_all_twenty_collections_below_the_maximum_are_created(api):
    found = at_once(api, lambda n: put(api, n))

    assert found == {201: MANY}


def test_twenty_puts_of_one_collection_name_make_one_collection(api):
    found = at_once(api, lambda _: put(api, 1))

    assert found == {201: 1, 200: MANY - 1}
    assert len(api.get(COLLECTIONS).json["value"]) == 1
