"""A tenant's quota of jobs under a thousand creations a second, by whichever facade and request: exactly so many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from sweephand.domain.collection import Usage
from sweephand.server.facades.azure.routes import AzureApi
from sweephand.server.facades.sap.routes import SapApi
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.tenants import counts, usage
from tests.contract.azure.api import COLLECTION, Azure
from tests.contract.azure.api import job as azure_job
from tests.contract.calls import Reply
from tests.contract.native.api import JOB, OTHER, Api
from tests.contract.native.api import api as native_api
from tests.contract.sap.api import JOB as SAP_JOB
from tests.contract.sap.api import Sap
from tests.support.turns import at_once

QUOTA, EACH, IN_SET = 40, 16, 3
SAP_REFUSED = 403
"""The status that SAP's documents give a quota."""
SLOW_S = 0.4


@dataclass
class Facades:
    native: Api
    azure: Azure
    sap: Sap


@pytest.fixture
def facades(monkeypatch: pytest.MonkeyPatch) -> Iterator[Facades]:
    """The facades of one stack, whose answers are not looked at one by one, because requests of others are between."""
    with native_api() as native:
        stage, credentials, own = native.stage, native.credentials, native.facade
        azure = Azure(stage, AzureApi(stage.world, own.guard, own.door), credentials, native)
        sap = Sap(stage, SapApi(stage.world, own.guard, own.door), credentials, native)
        for caller in ("acme", OTHER):
            made = azure("PUT", COLLECTION, {"location": "West US", "properties": {}}, caller=caller)
            assert made.status == 201, made.text
        for each in (Api, Azure, Sap):
            monkeypatch.setattr(each, "check", lambda *_: None)
        yield Facades(native, azure, sap)


Counts = tuple[int, int]
"""How many jobs were created, and how many were refused for the quota."""


def one(reply: Reply, refused: int = 409) -> Counts:
    assert reply.status in {201, refused}, reply.text
    return (1, 0) if reply.status == 201 else (0, 1)


def native(by: Facades, n: int, caller: str) -> Counts:
    return one(by.native("POST", "/v1/jobs", {**JOB, "name": f"native-{n}"}, caller=caller))


def by_name(by: Facades, n: int, caller: str) -> Counts:
    return one(by.native("PUT", "/v1/jobs", JOB, query={"name": f"named-{n}"}, caller=caller))


def azure(by: Facades, n: int, caller: str) -> Counts:
    return one(by.azure("PUT", f"{COLLECTION}/jobs/azure-{n}", azure_job(), caller=caller))


def sap(by: Facades, n: int, caller: str) -> Counts:
    job = {**SAP_JOB, "name": f"sap{n}", "schedules": []}
    return one(by.sap("POST", "/jobs", job, caller=caller), SAP_REFUSED)


def job_set(by: Facades, n: int, caller: str) -> Counts:
    """Applies a list of three jobs: those that find no place are refused, each for itself."""
    jobs = [{"key": f"{k}", **JOB} for k in range(IN_SET)]
    reply = by.native("PUT", f"/v1/job-sets/set-{n}", {"jobs": jobs}, caller=caller)
    if reply.status == 409:
        return 0, IN_SET
    assert (reply.status, {each["code"] for each in reply.json["failed"]} <= {"QUOTA_EXCEEDED"}) == (200, True)
    return len(reply.json["created"]), len(reply.json["failed"])


WAYS: Mapping[str, Callable[[Facades, int, str], Counts]] = {
    "native": native,
    "by name": by_name,
    "azure": azure,
    "sap": sap,
    "job sets": job_set,
}


@pytest.mark.parametrize("ways", [*([name] for name in WAYS), list(WAYS)], ids=", ".join)
@pytest.mark.parametrize("few", [True, False], ids=["in one row", "in all rows"])
def test_a_thousand_creations_a_second_fill_a_quota_exactly_and_move_no_other_tenant(
    facades: Facades, monkeypatch: pytest.MonkeyPatch, ways: list[str], few: bool
) -> None:
    stage = facades.native.stage
    monkeypatch.setattr(counts, "FEW", 1_000 if few else 1)
    tenancy.change_tenant(stage.world, "acme", None, Usage(most_jobs=QUOTA))
    others_s: list[float] = []

    def create(name: str, n: int, caller: str) -> Counts:
        stage.clock.sleep(n * (0.02 if few else 0.001) / len(ways))
        began = stage.clock.monotonic()
        answer = WAYS[name](facades, n, caller)
        if caller == OTHER:
            others_s.append(stage.clock.monotonic() - began)
        return answer

    asked = [(name, n) for name in ways for n in range(EACH if len(ways) > 1 or name == "job sets" else EACH * 3)]
    with at_once(stage) as run:
        mine = [lambda each=each: create(*each, "acme") for each in asked]
        theirs = [lambda each=each: create(*each, OTHER) for each in asked[::8]]
        found = run([*mine, *theirs])

    made, refused = (sum(each) for each in zip(*found[: len(mine)], strict=True))
    assert made == QUOTA == usage.read(stage.world.table, "acme").jobs
    assert refused == sum(IN_SET if name == "job sets" else 1 for name, _ in asked) - QUOTA
    assert all(made and not refused for made, refused in found[len(mine) :])
    assert max(others_s) < SLOW_S, "as if the other tenant were not there"
