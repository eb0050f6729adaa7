"""Secrets of jobs: sealed by whoever cannot open them, opened at the price of one request for many, never lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from sweephand.base.errors import Conflict, InvalidRequest, NotFound, Unavailable
from sweephand.domain.run import State
from sweephand.server.flow.bulk import purge_tenant
from sweephand.server.flow.tenants import subscriptions, tenancy
from sweephand.server.security.key_service import KeyService
from sweephand.server.store.dynamo import keys
from sweephand.server.store.tenants.secret_box import KEPT_S, LARGEST, SecretBox
from sweephand.testing.taps import Act, Fault, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before, refused
from tests.unit.server.flow.common import once

YEAR_S = 366 * 86_400
BEARER = {"authentication": {"type": "bearer", "token": "s3cret"}}


def another(stage: Stage) -> SecretBox:
    """Makes another process of the same stack."""
    return SecretBox(stage.world.table, service_of(stage), stage.clock, stage.world.chance)


def service_of(stage: Stage) -> KeyService:
    return stage.world.callback_keys._key_service


def key_rows(stage: Stage) -> list[dict[str, Any]]:
    return [item for item in stage.items() if item["sk"]["S"].startswith("SECRETS#")]


def without_kms(passing: Passing, act: Act) -> Any:
    return refused(passing, act) if passing.service == "kms" else act()


@pytest.mark.parametrize("plaintext", ["p", "", "\x00", "\u20ac\U0001f600", "x" * LARGEST])
def test_a_sealed_secret_opens_again(stage: Stage, plaintext: str) -> None:
    sealed = stage.world.secrets.encrypt(TENANT, "j", "action.authentication.password", plaintext)

    assert sealed.isascii()
    assert len(plaintext) < 2 or plaintext not in sealed
    assert another(stage).decrypt(TENANT, "j", "action.authentication.password", sealed) == plaintext


@pytest.mark.parametrize("place", [("globex", "j", "f"), (TENANT, "k", "f"), (TENANT, "j", "g"), (TENANT, "jf", "")])
def test_it_opens_only_for_its_tenant_job_and_field(stage: Stage, place: tuple[str, str, str]) -> None:
    tenancy.create_tenant(stage.world, "globex", None)
    stage.world.secrets.encrypt("globex", "j", "f", "other")
    sealed = stage.world.secrets.encrypt(TENANT, "j", "f", "s3cret")

    with pytest.raises(NotFound):
        stage.world.secrets.decrypt(*place, sealed)


@pytest.mark.parametrize(
    "broken",
    [
        lambda _: "not base64!",
        lambda _: "\u00e4",
        lambda _: "",
        lambda _: ".",
        lambda sealed: sealed.replace(".", ""),
        lambda sealed: sealed[:-4],
        lambda sealed: sealed[:-5] + ("A" if sealed[-5] != "A" else "B") + sealed[-4:],
        lambda sealed: "1" + sealed,
        lambda sealed: "9" * 40 + sealed,
        lambda sealed: sealed.split(".")[0] + ".AAAA",
    ],
)
def test_a_broken_secret_does_not_open(stage: Stage, broken: Callable[[str], str]) -> None:
    sealed = stage.world.secrets.encrypt(TENANT, "j", "f", "s3cret")

    with pytest.raises(NotFound, match="the secret f cannot be opened"):
        stage.world.secrets.decrypt(TENANT, "j", "f", broken(sealed))


def test_a_secret_that_is_too_long_is_refused_before_a_key_is_made(stage: Stage) -> None:
    with pytest.raises(InvalidRequest) as caught:
        stage.world.secrets.encrypt(TENANT, "j", "action.f", "\u20ac" * LARGEST)

    assert caught.value.field == "action.f"
    assert stage.taps.passed == []


def test_whoever_seals_keeps_nothing_that_opens_a_secret(stage: Stage) -> None:
    """Without a right to decrypt with KMS, the process that sealed a secret cannot open it."""
    sealed = stage.world.secrets.encrypt(TENANT, "j", "f", "s3cret")

    with stage.taps.faulty(without_kms), pytest.raises(Unavailable):
        stage.world.secrets.decrypt(TENANT, "j", "f", sealed)


def test_the_row_of_a_key_does_not_hold_its_private_half_in_the_clear(stage: Stage) -> None:
    stage.world.secrets.encrypt(TENANT, "j", "f", "s3cret")
    (asked,) = [passing.request for passing in stage.taps.passed if passing.name == "kms.Encrypt"]

    (row,) = key_rows(stage)

    assert asked["EncryptionContext"] == {"tenant": TENANT, "purpose": "secrets"}
    assert row.keys() == {"pk", "sk", "public", "sealed", "created_at"}
    assert asked["Plaintext"] not in {row["public"]["S"].encode(), row["sealed"]["S"].encode()}


# Costs


def test_many_secrets_of_a_tenant_cost_one_request_in_fifteen_minutes(stage: Stage) -> None:
    box = stage.world.secrets
    sealed = [box.encrypt(TENANT, f"job-{number}", "f", str(number)) for number in range(200)]
    assert stage.taps.count("kms.Encrypt") == 1

    for seconds in (0.0, KEPT_S - 1):
        stage.clock.advance(seconds)
        opened = [box.decrypt(TENANT, f"job-{number}", "f", text) for number, text in enumerate(sealed)]
        assert opened == [str(number) for number in range(200)]
    assert stage.taps.count("kms.Decrypt") == 1

    stage.clock.advance(1)
    box.decrypt(TENANT, "job-0", "f", sealed[0])
    assert stage.taps.count("kms.Decrypt") == 2


def test_one_time_jobs_with_a_secret_share_one_request(stage: Stage) -> None:
    for _ in range(30):
        stage.create(once(), action=stage.action(**BEARER))

    stage.run(180)

    assert [received.call.secrets for received in stage.endpoint.received] == [{"authentication.token": "s3cret"}] * 30
    assert stage.taps.count("kms.Decrypt") == 1


def test_threads_that_need_a_key_at_once_share_one_request(stage: Stage) -> None:
    sealed = stage.world.secrets.encrypt(TENANT, "j", "f", "s3cret")
    together = Barrier(4)

    def opened(_: int) -> str:
        together.wait()
        return stage.world.secrets.decrypt(TENANT, "j", "f", sealed)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(opened, range(4))) == ["s3cret"] * 4
    assert stage.taps.count("kms.Decrypt") == 1


# The life of a key


def test_each_year_has_a_key_and_older_secrets_still_open(stage: Stage) -> None:
    box = stage.world.secrets
    first = box.encrypt(TENANT, "j", "f", "one")
    stage.clock.advance(YEAR_S)
    second = box.encrypt(TENANT, "j", "f", "two")

    assert [row["sk"]["S"] for row in key_rows(stage)] == ["SECRETS#2027", "SECRETS#2028"]
    assert [another(stage).decrypt(TENANT, "j", "f", sealed) for sealed in (first, second)] == ["one", "two"]


@pytest.mark.parametrize("skip", range(4))
def test_two_processes_that_need_the_first_key_at_once_use_the_same(stage: Stage, skip: int) -> None:
    """The second one comes between any two calls of the first."""
    box, texts, count = another(stage), [], 0

    def meanwhile(_: Passing, act: Act) -> Any:
        nonlocal count
        count += 1
        if count == skip + 1:
            stage.taps.fault = None
            texts.append(stage.world.secrets.encrypt(TENANT, "j", "f", "other"))
        return act()

    stage.taps.fault = meanwhile
    texts.append(box.encrypt(TENANT, "j", "f", "mine"))
    stage.taps.fault = None

    assert len(key_rows(stage)) == 1
    assert [another(stage).decrypt(TENANT, "j", "f", sealed) for sealed in texts] == ["other", "mine"]


@pytest.mark.parametrize("skip", range(4))
@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, refused, conflict])
def test_a_key_whose_making_fails_at_any_call_is_made_by_the_next_request(
    stage: Stage, fault: Fault, skip: int
) -> None:
    count = 0

    def at_one_call(passing: Passing, act: Act) -> Any:
        nonlocal count
        count += 1
        return fault(passing, act) if count == skip + 1 else act()

    with stage.taps.faulty(at_one_call):
        try:
            sealed = stage.world.secrets.encrypt(TENANT, "j", "f", "s3cret")
        except (Crash, Unavailable):
            sealed = another(stage).encrypt(TENANT, "j", "f", "s3cret")

    assert len(key_rows(stage)) == 1
    assert another(stage).decrypt(TENANT, "j", "f", sealed) == "s3cret"


def test_secrets_are_sealed_without_the_key_service_once_the_tenant_has_a_key(stage: Stage) -> None:
    stage.world.secrets.encrypt(TENANT, "j", "f", "first")

    with stage.taps.faulty(without_kms):
        sealed = another(stage).encrypt(TENANT, "j", "f", "second")

    assert stage.world.secrets.decrypt(TENANT, "j", "f", sealed) == "second"


def test_a_failure_of_the_key_service_is_not_remembered(stage: Stage) -> None:
    sealed = stage.world.secrets.encrypt(TENANT, "j", "f", "s3cret")
    for fault in (refused, crash_before):
        with stage.taps.once("kms.Decrypt", fault), pytest.raises((Unavailable, Crash)):
            stage.world.secrets.decrypt(TENANT, "j", "f", sealed)

    assert stage.world.secrets.decrypt(TENANT, "j", "f", sealed) == "s3cret"


def test_runs_go_on_through_an_outage_of_the_key_service_for_fifteen_minutes_and_then_wait(stage: Stage) -> None:
    planned = stage.create({"every": "PT1M"}, action=stage.action(**BEARER))
    stage.run(90)

    with stage.taps.faulty(without_kms):
        stage.run(KEPT_S - 120)
        called = len(stage.endpoint.received)
        stage.run(600)
        assert called >= 12
        assert len(stage.endpoint.received) < called + 4
    stage.run(1_200)

    assert {run.state for run in stage.runs(planned) if run.finished} <= {State.SUCCESS, State.SKIPPED}
    assert len(stage.endpoint.received) >= called + 15


def test_a_secret_whose_key_was_lost_is_missing_in_its_call_and_can_be_given_anew(stage: Stage) -> None:
    planned = stage.create({"every": "PT2M"}, action=stage.action(**BEARER))
    stage.world.table.delete(keys.tenant(TENANT), keys.secret_key("2027"))

    stage.run(130)
    stage.change(planned, action=stage.action(**BEARER))
    stage.run(120)

    assert [received.call.secrets for received in stage.endpoint.received] == [{}, {"authentication.token": "s3cret"}]


# The end of a tenant


def purged(stage: Stage) -> None:
    begun = subscriptions.unsubscribe(stage.world, TENANT, "app", "provider.admin")
    assert begun is not None
    stage.run(120)


def test_the_keys_of_a_tenant_are_deleted_with_it_and_the_next_one_of_its_name_has_its_own(stage: Stage) -> None:
    subscriptions.subscribe(stage.world, TENANT, "app")
    former = stage.world.secrets.encrypt(TENANT, "j", "f", "former")
    executor = another(stage)
    assert executor.decrypt(TENANT, "j", "f", former) == "former"

    purged(stage)
    assert key_rows(stage) == []
    tenancy.create_tenant(stage.world, TENANT, None)
    fresh = stage.world.secrets.encrypt(TENANT, "j", "f", "fresh")

    assert executor.decrypt(TENANT, "j", "f", fresh) == "fresh"
    with pytest.raises(NotFound):
        another(stage).decrypt(TENANT, "j", "f", former)


def test_a_tenant_that_is_being_deleted_gets_no_key(stage: Stage) -> None:
    """A request that was admitted before would otherwise leave a row for ever."""
    subscriptions.subscribe(stage.world, TENANT, "app")
    subscriptions.unsubscribe(stage.world, TENANT, "app", "provider.admin")

    with pytest.raises(Conflict, match="being deleted"):
        stage.world.secrets.encrypt(TENANT, "j", "f", "s3cret")
    with pytest.raises(NotFound):
        stage.world.secrets.encrypt("nobody", "j", "f", "s3cret")

    assert key_rows(stage) == []
    assert purge_tenant.KEPT.isdisjoint({keys.secret_key("2027")})
