"""Keys that sign the calls of a collection: what is sent with them, and what a fault in the middle leaves."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.base.errors import Conflict, NotFound
from sweephand.domain.run import State
from sweephand.server.flow.tenants import signing, tenancy
from sweephand.testing.taps import Act, Passing
from tests.support import taps
from tests.support.stage import TENANT, Stage


def calls(stage: Stage) -> list[tuple[str, ...]]:
    return [received.call.signing_secrets for received in stage.endpoint.received]


def test_a_collection_without_keys_signs_nothing_and_makes_no_requests(stage: Stage) -> None:
    stage.create({"every": "PT1H"})

    stage.run(3_605)

    assert calls(stage) == [()]
    assert not [each for each in stage.taps.passed if each.operation == "Decrypt"]


def test_a_new_key_signs_the_next_calls_next_to_the_old_one(stage: Stage) -> None:
    stage.create({"every": "PT1M"})
    _, first = signing.create(stage.world, TENANT, "default")
    stage.run(61)

    key, second = signing.create(stage.world, TENANT, "default")
    stage.run(61)
    old = next(each.id for each in tenancy.find_collection(stage.world, TENANT, "default").signing if each != key)
    signing.delete(stage.world, TENANT, "default", old)
    stage.run(61)

    assert calls(stage)[0] == (first,)
    assert (first, second) in calls(stage)
    assert calls(stage)[-1] == (second,)


def test_a_third_key_and_an_unknown_key_are_refused(stage: Stage) -> None:
    for _ in range(2):
        signing.create(stage.world, TENANT, "default")

    with pytest.raises(Conflict):
        signing.create(stage.world, TENANT, "default")
    with pytest.raises(NotFound):
        signing.delete(stage.world, TENANT, "default", "x")
    with pytest.raises(NotFound):
        signing.create(stage.world, TENANT, "none")


def test_a_lost_answer_makes_one_key(stage: Stage) -> None:
    with stage.taps.once("dynamodb.TransactWriteItems", taps.answer_lost):
        key, _ = signing.create(stage.world, TENANT, "default")

    assert [each.id for each in tenancy.find_collection(stage.world, TENANT, "default").signing] == [key.id]


def test_a_delete_whose_answer_was_lost_succeeds(stage: Stage) -> None:
    key, _ = signing.create(stage.world, TENANT, "default")

    with stage.taps.once("dynamodb.TransactWriteItems", taps.answer_lost):
        signing.delete(stage.world, TENANT, "default", key.id)

    assert tenancy.find_collection(stage.world, TENANT, "default").signing == ()


def test_two_concurrently_created_keys_both_exist(stage: Stage) -> None:
    made: list[str] = []

    def meanwhile(_: Passing, act: Act) -> Any:
        stage.taps.fault = None
        made.append(signing.create(stage.world, TENANT, "default")[0].id)
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", meanwhile):
        key, _ = signing.create(stage.world, TENANT, "default")

    there = [each.id for each in tenancy.find_collection(stage.world, TENANT, "default").signing]
    assert there == [made[0], key.id]


def test_changing_a_collection_keeps_its_keys(stage: Stage) -> None:
    key, _ = signing.create(stage.world, TENANT, "default")

    tenancy.change_collection(stage.world, TENANT, "default", lambda there: tenancy.enabled(there, on=False), None)

    assert [each.id for each in tenancy.find_collection(stage.world, TENANT, "default").signing] == [key.id]


def test_a_key_cannot_be_opened_for_another_collection(stage: Stage) -> None:
    """Whoever copies a row in the table gains nothing."""
    key, _ = signing.create(stage.world, TENANT, "default")

    with pytest.raises(NotFound):
        stage.world.secrets.decrypt(TENANT, signing.owner_of("other"), signing.field_of(key.id), key.sealed)


def test_a_run_waits_while_the_key_service_is_unavailable(stage: Stage) -> None:
    signing.create(stage.world, TENANT, "default")
    planned = stage.create({"every": "PT1H"})

    with stage.taps.once("kms.Decrypt", taps.refused):
        stage.run(3_605)
        assert stage.endpoint.received == []

    stage.run(60)
    assert stage.only_run(planned).state is State.SUCCESS
