"""Stacks with a job set whose function dies at any of its requests: no job is left over, and none stands twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from sweephand.sdk import custom_resource
from tests.contract.native.api import Api
from tests.contract.sdk.stack import Gateway, connected
from tests.contract.sdk.test_custom_resource import entry
from tests.support.taps import Crash

BROKEN = {**entry("broken"), "action": {"type": "event", "detailType": "x"}, "collection": "nowhere"}
"""A job that the service refuses once it comes to it."""
AT_BEST = 12
"""No request of these stacks sends more than this to the service."""


@dataclass
class CloudFormation:
    """Stacks with one job set each, as CloudFormation keeps them. Reads the physical id from each answer, even failed.

    dies_at: the request of the function, counted in all, at which its process dies: before it or after. retries: how
    often Lambda then calls it again with the same event; roll-backs and deletions are repeated at least once. there:
    physical id and properties, by stack and logical id.
    """

    gateway: Gateway
    dies_at: int = 10**6
    after: bool = False
    retries: int = 2
    there: dict[tuple[str, str], tuple[str, dict[str, Any]]] = field(default_factory=dict)
    _sent: int = 0
    _ids: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        carry = self.gateway.send

        def send(*request: Any) -> Any:
            self._sent += 1
            if self._sent - 1 == self.dies_at and not self.after:
                raise Crash
            answer = carry(*request)
            if self._sent - 1 == self.dies_at:
                raise Crash
            return answer

        self.gateway.send = send  # type: ignore[method-assign]

    def create(self, stack: str, logical: str, **properties: Any) -> bool:
        made_up = f"{stack}-{logical}-{next(self._ids)}"
        answer = self._ask("Create", stack, logical, None, properties)
        physical = made_up if answer is None else answer["PhysicalResourceId"]
        if answer is not None and answer["Status"] == "SUCCESS":
            self.there[stack, logical] = physical, properties
            return True
        self._ask("Delete", stack, logical, physical, properties)
        return False

    def update(self, stack: str, logical: str, *, fails_elsewhere: bool = False, **properties: Any) -> bool:
        before, old = self.there[stack, logical]
        answer = self._ask("Update", stack, logical, before, properties, old)
        now = before if answer is None else answer["PhysicalResourceId"]
        if answer is not None and answer["Status"] == "SUCCESS" and not fails_elsewhere:
            self._replaced(stack, logical, before, old, now, properties)
            return True
        back = self._ask("Update", stack, logical, now, old, properties, insist=True)
        assert back is not None
        assert back["Status"] == "SUCCESS", back
        self._replaced(stack, logical, now, properties, back["PhysicalResourceId"], old)
        return False

    def delete(self, stack: str, logical: str) -> None:
        physical, properties = self.there.pop((stack, logical))
        answer = self._ask("Delete", stack, logical, physical, properties)
        assert answer is not None
        assert answer["Status"] == "SUCCESS", answer

    def _replaced(
        self, stack: str, logical: str, before: str, old: dict[str, Any], now: str, new: dict[str, Any]
    ) -> None:
        self.there[stack, logical] = now, new
        if now != before:
            self._ask("Delete", stack, logical, before, old)

    def _ask(
        self,
        kind: str,
        stack: str,
        logical: str,
        physical: str | None,
        properties: dict[str, Any],
        old: dict[str, Any] | None = None,
        *,
        insist: bool = False,
    ) -> dict[str, Any] | None:
        given = {"ServiceToken": "arn", **properties, "Jobs": json.dumps(properties["Jobs"])}
        event = {"RequestType": kind, "StackId": stack, "RequestId": f"{next(self._ids)}", "LogicalResourceId": logical}
        event |= {"ResponseURL": "https://s3.example/answer", "ResourceProperties": given}
        if physical is not None:
            event["PhysicalResourceId"] = physical
        if old is not None:
            event["OldResourceProperties"] = old
        for _ in range(1 + max(self.retries, insist or kind == "Delete")):
            try:
                return custom_resource.answered(event, lambda: 100)
            except Crash:
                continue
        return None


@pytest.fixture
def cloud(api: Api, monkeypatch: pytest.MonkeyPatch) -> CloudFormation:
    made, gateway = connected(api)
    monkeypatch.setattr("sweephand.sdk.sync.client.Sweephand", lambda: made)
    monkeypatch.setattr("sweephand.server.facades.native.jobs.job_sets.APPLIED_S", -1.0)  # a request makes one change
    return CloudFormation(gateway)


def keys(api: Api) -> list[str]:
    return sorted(f"{job['jobSet']}/{job['key']}" for job in api.get("/v1/jobs").json["items"])


A, B, C = entry("a"), entry("b"), entry("c")


def renamed(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="old", Jobs=[A, B]):
        cloud.update("one", "Jobs", Set="new", Jobs=[A, B])


def renamed_and_refused(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="old", Jobs=[A, B]):
        cloud.update("one", "Jobs", Set="new", Jobs=[A, B, BROKEN])


def renamed_and_rolled_back(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="old", Jobs=[A, B]):
        cloud.update("one", "Jobs", Set="new", Jobs=[A, C], fails_elsewhere=True)


def changed_and_refused(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="old", Jobs=[A, B]):
        cloud.update("one", "Jobs", Set="old", Jobs=[A, C, BROKEN])


def refused(cloud: CloudFormation) -> None:
    cloud.create("one", "Jobs", Set="old", Jobs=[A, BROKEN])


def another_logical_id(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="old", Jobs=[A, B]):
        assert not cloud.create("one", "Renamed", Set="old", Jobs=[A])


def another_stack(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="old", Jobs=[A]):
        assert not cloud.create("two", "Jobs", Set="old", Jobs=[B])


def exchanged(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="x", Jobs=[A]) and cloud.create("one", "Others", Set="y", Jobs=[B]):
        assert not cloud.update("one", "Jobs", Set="y", Jobs=[A])


HISTORIES = [
    renamed,
    renamed_and_refused,
    renamed_and_rolled_back,
    changed_and_refused,
    refused,
    another_logical_id,
    another_stack,
    exchanged,
]


def _as_in_templates(cloud: CloudFormation) -> list[str]:
    return sorted(f"{new['Set']}/{job['key']}" for _, new in cloud.there.values() for job in new["Jobs"])


@pytest.mark.parametrize("history", HISTORIES)
def test_jobs_are_those_of_the_templates(
    api: Api, cloud: CloudFormation, history: Callable[[CloudFormation], None]
) -> None:
    history(cloud)

    assert keys(api) == _as_in_templates(cloud)
    for stack, logical in list(cloud.there):
        cloud.delete(stack, logical)
    assert keys(api) == []


@pytest.mark.sampled(7)
@pytest.mark.repeats
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize(("after", "retries"), [(True, 0), (False, 2)])
@pytest.mark.parametrize("dies_at", range(AT_BEST))
def test_a_function_that_dies_leaves_no_job(
    api: Api, cloud: CloudFormation, history: Callable[[CloudFormation], None], dies_at: int, after: bool, retries: int
) -> None:
    cloud.dies_at, cloud.after, cloud.retries = dies_at, after, retries

    history(cloud)

    assert keys(api) == _as_in_templates(cloud)
    for stack, logical in list(cloud.there):
        cloud.delete(stack, logical)
    assert keys(api) == []


@pytest.mark.parametrize("owner", [None, "somebody else"])
def test_a_stack_deletes_no_set_of_others(api: Api, cloud: CloudFormation, owner: str | None) -> None:
    query = {} if owner is None else {"owner": owner}
    for _ in range(2):
        api("PUT", "/v1/job-sets/old", {"jobs": [A, B]}, query=query)

    refused(cloud)

    assert keys(api) == ["old/a", "old/b"]
    assert api.get("/v1/job-sets/old").json["owner"] == owner


def adopted(cloud: CloudFormation) -> None:
    cloud.create("one", "Jobs", Set="old", Jobs=[A, B])


def adopted_and_rolled_back(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="old", Jobs=[A, B]):
        cloud.delete("one", "Jobs")


def adopted_and_refused(cloud: CloudFormation) -> None:
    cloud.create("one", "Jobs", Set="old", Jobs=[A, B, BROKEN])


def adopted_and_changed(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="old", Jobs=[A]):
        cloud.update("one", "Jobs", Set="old", Jobs=[A, C], fails_elsewhere=True)
        cloud.update("one", "Jobs", Set="old", Jobs=[A, B])


def adopted_by_a_renamed_resource(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="new", Jobs=[C]):
        cloud.update("one", "Jobs", Set="old", Jobs=[A, B])


def adopted_by_a_rename_that_is_rolled_back(cloud: CloudFormation) -> None:
    if cloud.create("one", "Jobs", Set="new", Jobs=[C]):
        cloud.update("one", "Jobs", Set="old", Jobs=[A, B], fails_elsewhere=True)


def adopted_again(cloud: CloudFormation) -> None:
    adopted_and_rolled_back(cloud)
    cloud.create("two", "Jobs", Set="old", Jobs=[A, B])


ADOPTIONS = [
    adopted,
    adopted_and_rolled_back,
    adopted_and_refused,
    adopted_and_changed,
    adopted_by_a_renamed_resource,
    adopted_by_a_rename_that_is_rolled_back,
    adopted_again,
]


@pytest.fixture
def first(api: Api) -> str:
    """The id of a job in a set that existed before any stack."""
    api("PUT", "/v1/job-sets/old", {"jobs": [A]})
    job: str = api.get("/v1/jobs").json["items"][0]["id"]
    return job


def _check_what_outlives(api: Api, cloud: CloudFormation, first: str) -> None:
    """Deletes the stacks. Checks that the set that existed before stays with its job, and no other set."""
    for stack, logical in list(cloud.there):
        cloud.delete(stack, logical)

    assert api.get("/v1/job-sets/old").json["owner"] is None
    assert api.get(f"/v1/jobs/{first}").status == 200
    assert set(keys(api)) <= {"old/a", "old/b", "old/c"}


@pytest.mark.parametrize("history", ADOPTIONS)
def test_a_set_that_existed_before_its_stack_outlives_it(
    api: Api, cloud: CloudFormation, first: str, history: Callable[[CloudFormation], None]
) -> None:
    history(cloud)

    _check_what_outlives(api, cloud, first)


@pytest.mark.sampled(7)
@pytest.mark.repeats
@pytest.mark.parametrize("history", ADOPTIONS)
@pytest.mark.parametrize(("after", "retries"), [(True, 0), (False, 2)])
@pytest.mark.parametrize("dies_at", range(AT_BEST))
def test_a_function_that_dies_deletes_no_adopted_set(
    api: Api,
    cloud: CloudFormation,
    first: str,
    history: Callable[[CloudFormation], None],
    dies_at: int,
    after: bool,
    retries: int,
) -> None:
    cloud.dies_at, cloud.after, cloud.retries = dies_at, after, retries

    history(cloud)

    _check_what_outlives(api, cloud, first)


@pytest.mark.usefixtures("first")
def test_an_adopted_set_keeps_its_name(api: Api, cloud: CloudFormation) -> None:
    assert cloud.create("one", "Jobs", Set="old", Jobs=[A])

    assert not cloud.update("one", "Jobs", Set="new", Jobs=[A])
    assert keys(api) == ["old/a"]

    api("DELETE", "/v1/job-sets/old")
    assert cloud.update("one", "Jobs", Set="new", Jobs=[A])
    assert keys(api) == ["new/a"]
