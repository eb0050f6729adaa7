"""Create: everything or nothing, once, within the quota, under its name; secrets sealed on the way."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from sweephand.base.errors import Conflict, InvalidRequest, QuotaExceeded, SweephandError, Unavailable
from sweephand.domain.collection import Collection, Quota
from sweephand.domain.job import JobDraft, Payload
from sweephand.domain.run import State
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.flow.idempotency import Once, earlier
from sweephand.server.flow.jobs import creation, lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.tenants import tenancy
from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import jobs
from sweephand.testing.taps import Act, Passing
from tests.support.endpoint import OK, WRONG
from tests.support.limits import as_dynamodb
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before, refused
from tests.unit.server.flow.common import DAY, MINUTE, NOON, SECOND, once

EACH_MINUTE = {"cron": "* * * * *"}
TRANSACTION = "dynamodb.TransactWriteItems"


def items_of_jobs(stage: Stage) -> list[dict[str, Any]]:
    """Returns the items of jobs, without the counts of collections, which are always there, and the last number."""
    found = [item for item in stage.items() if item["pk"]["S"].startswith(f"{keys.tenant(TENANT)}#")]
    return [item for item in found if item["sk"]["S"].partition("#")[0] not in {keys.LAST_NUMBER, "COL"}]


def with_key_for_secrets(stage: Stage) -> None:
    """Makes the key that a tenant's first secret makes, in a transaction of its own."""
    stage.world.secrets.encrypt(TENANT, "job", "field", "first")
    stage.taps.passed.clear()


def test_a_whole_job_is_written_in_one_transaction(stage: Stage) -> None:
    with_key_for_secrets(stage)

    planned = stage.create(
        EACH_MINUTE,
        {"every": "PT1H"},
        name="nightly",
        tags=("a", "b"),
        resource_id="inv-1",
        action=stage.action(payload={"n": 1}, authentication={"type": "bearer", "token": "hush"}),
    )

    assert stage.taps.count(TRANSACTION) == 1
    assert lookup.find(stage.world, TENANT, planned.job.id) == planned
    assert planned.job.schedule_ids == tuple(schedule.id for schedule in planned.schedules)
    kinds = sorted(item["sk"]["S"].partition("#")[0] for item in items_of_jobs(stage))
    assert kinds == sorted(["JOB", "SCH", "SCH", "PAY", "SECRET", "REV", "NAME", *["JOB"] * 4, "BLOCK", "USAGE"])
    assert _count(stage) == 1


def test_an_occurrence_due_soon_is_sent_by_the_create_and_not_moved(stage: Stage) -> None:
    planned = stage.create({"every": "PT1M"})

    assert len(stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST])) == 3
    schedule = stage.stored(planned)
    assert (schedule.next_run_at, schedule.planned_total) == (NOON + MINUTE + SECOND, 0)
    stage.run(63)
    assert len(stage.endpoint.received) == 1


def test_occurrences_due_after_the_next_horizon_are_left_to_the_sweep(stage: Stage) -> None:
    stage.create(once(timedelta(seconds=211)))

    assert stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST]) == []


def test_an_unavailable_queue_fails_no_create_and_loses_no_run(stage: Stage) -> None:
    def no_sends(passing: Passing, act: Act) -> Any:
        return refused(passing, act) if passing.service == "sqs" else act()

    with stage.taps.faulty(no_sends):
        stage.create(once())
    stage.run(90)

    assert len(stage.endpoint.received) == 1


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"schedules": ({"cron": "0 0 30 2 *"},)}, "schedules[0].cron"),
        ({"schedules": (EACH_MINUTE, {"at": "2020-01-01T00:00:00Z"})}, "schedules[1].at"),
        (
            {"schedules": (EACH_MINUTE, {"cron": "* * * * *", "endTime": "2026-01-01T00:00:00Z"})},
            "schedules[1].endTime",
        ),
        ({"collection": "nowhere", "schedules": (EACH_MINUTE,)}, "collection"),
    ],
)
def test_an_invalid_create_names_the_mistake_and_writes_nothing(
    stage: Stage, members: dict[str, Any], field: str
) -> None:
    before = stage.items()
    timings = members.pop("schedules")

    with pytest.raises(InvalidRequest) as mistake:
        stage.create(*timings, **members)

    assert mistake.value.field == field
    assert stage.items() == before
    assert stage.sqs.bodies(stage.world.settings.queue_urls[Lane.FAST]) == []


def test_forty_schedules_are_one_transaction_and_41_are_refused(stage: Stage) -> None:
    before = stage.items()
    with pytest.raises(InvalidRequest):
        stage.create(*[{"cron": f"{n} * * * *"} for n in range(41)])
    assert stage.items() == before

    with stage.taps.faulty(as_dynamodb):
        planned = stage.create(
            *[{"cron": f"{n} * * * *"} for n in range(40)],
            tags=tuple(f"tag {n}" for n in range(10)),
            resource_id="r",
            action=stage.action(payload={"n": 1}),
        )
    assert len(lookup.find(stage.world, TENANT, planned.job.id).schedules) == 40


def test_forty_schedules_with_payloads_of_their_own_fit_too(stage: Stage) -> None:
    payload = Payload('{"n":1}', is_json=True)
    schedules = tuple(stage.schedule({"cron": f"{n} * * * *"}, payload=payload) for n in range(40))
    draft = replace(stage.draft(tags=tuple(f"tag {n}" for n in range(10)), resource_id="r"), schedules=schedules)

    with stage.taps.faulty(as_dynamodb):
        planned = creation.create_job(stage.world, TENANT, draft)

    assert len(lookup.find(stage.world, TENANT, planned.job.id).schedules) == 40


def largest(stage: Stage) -> JobDraft:
    """Returns the largest request: 40 schedules with payloads, 10 tags, payloads of both actions, secrets."""
    payload = Payload('{"n":1}', is_json=True)
    action = stage.action(payload={"n": 1}, authentication={"type": "bearer", "token": "hush"})
    schedules = tuple(stage.schedule({"cron": f"{n} * * * *"}, payload=payload) for n in range(40))
    tags = tuple(f"tag {n}" for n in range(10))
    draft = stage.draft(action=action, error_action=action, tags=tags, resource_id="r")
    return replace(draft, schedules=schedules)


def test_parts_that_exceed_one_transaction_are_written_after_the_job(stage: Stage) -> None:
    with stage.taps.faulty(as_dynamodb):
        planned = creation.create_job(stage.world, TENANT, largest(stage), Once("key", "digest"))

    assert planned == lookup.find(stage.world, TENANT, planned.job.id)
    assert (len(planned.schedules), planned.job.open_change) == (40, None)
    assert len(lookup.payloads_of(stage.world, planned)) == 42


@pytest.mark.parametrize("nth", range(3))
def test_an_interrupted_large_create_is_complete_or_absent(stage: Stage, nth: int) -> None:
    with_key_for_secrets(stage)

    with stage.taps.once(TRANSACTION, crash_before, skip=nth), pytest.raises(Crash):
        creation.create_job(stage.world, TENANT, largest(stage), Once("key", "digest"))

    stage.run(15 * 60)

    jobs_there = [item for item in stage.items() if item["sk"]["S"] == keys.JOB]
    schedules_there = [item for item in stage.items() if item["sk"]["S"].startswith("SCH#")]
    assert (len(jobs_there), len(schedules_there)) == ((0, 0) if nth == 0 else (1, 40))


def test_two_schedules_with_the_same_name_are_refused(stage: Stage) -> None:
    twins = (stage.schedule(EACH_MINUTE, "beat"), stage.schedule(EACH_MINUTE, "beat"))

    with pytest.raises(InvalidRequest) as mistake:
        creation.create_job(stage.world, TENANT, replace(stage.draft(), schedules=twins))

    assert mistake.value.field == "schedules[1].name"


# Crashes and lost answers


@pytest.mark.parametrize("fault", [crash_before, conflict, refused])
def test_a_create_that_did_not_happen_runs_nothing(stage: Stage, fault: Any) -> None:
    before = items_of_jobs(stage)

    def always(passing: Passing, act: Act) -> Any:
        return fault(passing, act) if passing.operation == "TransactWriteItems" else act()

    with stage.taps.faulty(always), pytest.raises((Crash, Unavailable)):
        stage.create(EACH_MINUTE)

    assert items_of_jobs(stage) == before
    stage.run(180)
    assert stage.endpoint.received == []


def test_a_create_that_died_after_its_write_still_runs(stage: Stage) -> None:
    with stage.taps.once(TRANSACTION, crash_after), pytest.raises(Crash):
        stage.create(once())

    stage.run(90)

    assert len(stage.endpoint.received) == 1


@pytest.mark.parametrize("key", [None, Once("key", "body")])
def test_a_create_whose_answer_was_lost_recognizes_its_own_write(stage: Stage, key: Once | None) -> None:
    with stage.taps.once(TRANSACTION, answer_lost):
        planned = stage.create(EACH_MINUTE, name="nightly", once=key)

    assert stage.job(planned) == planned.job
    assert _count(stage) == 1


def test_a_conflict_with_another_change_is_tried_again(stage: Stage) -> None:
    with stage.taps.once(TRANSACTION, conflict):
        planned = stage.create(EACH_MINUTE)

    assert stage.job(planned) == planned.job
    assert stage.clock.slept_s > 0


def _count(stage: Stage) -> int:
    """Jobs of the default collection, as its item says."""
    jobs_in_it = stage.job_counts()["default"]
    assert jobs_in_it == sum(item["sk"]["S"] == keys.JOB for item in stage.items())
    return jobs_in_it


# Idempotency-Key


def test_the_same_request_again_returns_the_job_that_it_created(stage: Stage) -> None:
    first = stage.create(EACH_MINUTE, once=Once("key", "body"))
    stage.clock.advance(3)

    again = stage.create(EACH_MINUTE, once=Once("key", "body"))

    assert again.job.id == first.job.id
    assert earlier(stage.world, TENANT, Once("key", "body")) == first.job.id
    assert _count(stage) == 1


def test_a_key_reused_with_another_body_is_refused(stage: Stage) -> None:
    stage.create(EACH_MINUTE, once=Once("key", "body"))

    with pytest.raises(InvalidRequest) as reused:
        stage.create(EACH_MINUTE, once=Once("key", "another"))
    assert reused.value.code == "KEY_REUSED"
    with pytest.raises(InvalidRequest):
        earlier(stage.world, TENANT, Once("key", "another"))


def test_a_key_is_free_again_after_a_day(stage: Stage) -> None:
    first = stage.create(EACH_MINUTE, once=Once("key", "body"))
    stage.clock.advance(DAY.total_seconds())

    assert earlier(stage.world, TENANT, Once("key", "another")) is None
    second = stage.create(EACH_MINUTE, once=Once("key", "another"))

    assert second.job.id != first.job.id


def test_a_refused_request_does_not_use_up_its_key(stage: Stage) -> None:
    stage.create(EACH_MINUTE, name="taken")
    with pytest.raises(Conflict):
        stage.create(EACH_MINUTE, name="taken", once=Once("key", "body"))

    assert stage.create(EACH_MINUTE, name="free", once=Once("key", "body")).job.name == "free"


def test_twenty_concurrent_copies_of_a_request_create_one_job(stage: Stage) -> None:
    made = at_once(stage, lambda _n: stage.create(EACH_MINUTE, once=Once("key", "body")))

    assert len({planned.job.id for planned in made if isinstance(planned, Planned)}) == 1
    assert all(isinstance(planned, Planned) for planned in made)
    assert _count(stage) == 1


def test_the_same_key_of_another_tenant_is_a_different_key(stage: Stage) -> None:
    tenancy.create_tenant(stage.world, "globex", None)
    first = stage.create(EACH_MINUTE, once=Once("key", "body"))

    second = creation.create_job(stage.world, "globex", stage.draft(EACH_MINUTE), Once("key", "body"))

    assert (second.job.tenant, second.job.id != first.job.id) == ("globex", True)


# Names and quotas


def at_once(stage: Stage, make: Callable[[int], Planned], times: int = 20) -> list[Planned | SweephandError]:
    """Makes all of them read before the first one writes."""
    together = Barrier(times)

    def wait_for_all(passing: Passing, act: Act) -> Any:
        if passing.operation == "TransactWriteItems":
            together.wait(60)
        return act()

    def one(n: int) -> Planned | SweephandError:
        try:
            return make(n)
        except SweephandError as refusal:
            return refusal

    with stage.taps.faulty(wait_for_all), ThreadPoolExecutor(times) as pool:
        return list(pool.map(one, range(times)))


def test_only_one_of_two_concurrent_creates_of_a_name_succeeds(stage: Stage) -> None:
    made = at_once(stage, lambda _n: stage.create(EACH_MINUTE, name="nightly"), times=2)

    refusals = [answer for answer in made if isinstance(answer, Conflict)]
    assert [refusal.code for refusal in refusals] == ["NAME_TAKEN"]
    assert _count(stage) == 1
    assert len(stage.waiting()) == 1


def test_a_name_is_free_again_when_its_job_is_deleted_or_renamed(stage: Stage) -> None:
    first = stage.create(EACH_MINUTE, name="one")
    stage.change(first, name="two")
    second = stage.create(EACH_MINUTE, name="one")
    stage.delete(second)

    third = stage.create(EACH_MINUTE, name="one")

    assert third.job.id != second.job.id
    with pytest.raises(Conflict):
        stage.change(third, name="two")


@pytest.mark.parametrize("name", ["a#b", "%23", "NAME#x", "#", "ä/ö", "x" * 128, " "])
def test_no_name_collides_with_the_key_of_another_name(stage: Stage, name: str) -> None:
    with stage.taps.faulty(as_dynamodb):
        first = stage.create(EACH_MINUTE, name=name)
        with pytest.raises(Conflict):
            stage.create(EACH_MINUTE, name=name)
        stage.create(EACH_MINUTE, name=name.replace("#", "%23") + ".")

    assert stage.job(first).name == name


def test_twenty_concurrent_creates_do_not_exceed_the_quota(stage: Stage) -> None:
    tenancy.change_collection(
        stage.world, TENANT, "default", lambda there: replace(there, quota=Quota(max_jobs=5)), None
    )

    made = at_once(stage, lambda n: stage.create(EACH_MINUTE, name=f"job {n}"))

    assert sum(isinstance(answer, Planned) for answer in made) == 5
    assert sum(isinstance(answer, QuotaExceeded) for answer in made) == 15
    assert _count(stage) == 5
    assert len(stage.waiting()) == 5


def test_a_deleted_job_makes_room_and_counts_once(stage: Stage) -> None:
    planned = [stage.create(EACH_MINUTE, name=f"job {n}") for n in range(3)]

    with stage.taps.once(TRANSACTION, answer_lost):
        stage.delete(planned[0])

    assert _count(stage) == 2


def test_a_schedule_that_runs_too_often_for_its_collection_is_refused(stage: Stage) -> None:
    tenancy.change_collection(
        stage.world, TENANT, "default", lambda there: replace(there, quota=Quota(min_interval_s=60)), None
    )

    stage.create({"every": "PT1M"})
    with pytest.raises(QuotaExceeded):
        stage.create({"every": "PT59S"})
    assert _count(stage) == 1


def test_a_job_that_moves_to_another_collection_is_counted_there(stage: Stage) -> None:
    tenancy.create_collection(stage.world, Collection(TENANT, "other"))
    planned = stage.create(EACH_MINUTE, name="nightly")

    stage.change(planned, collection="other")

    assert stage.job_counts() == {"default": 0, "other": 1}
    stage.create(EACH_MINUTE, name="nightly")


def test_a_collection_in_use_is_not_deleted(stage: Stage) -> None:
    tenancy.create_collection(stage.world, Collection(TENANT, "other"))
    planned = stage.create(EACH_MINUTE, collection="other")
    with pytest.raises(Conflict):
        tenancy.delete_collection(stage.world, TENANT, "other", None)

    stage.delete(planned)
    tenancy.delete_collection(stage.world, TENANT, "other", None)

    assert tenancy.tenants.read_collection(stage.world.table, TENANT, "other") is None


# Secrets and payloads


def secret_items(stage: Stage, planned: Planned) -> list[str]:
    pk = keys.job(TENANT, planned.job.id)
    own = [item["sk"]["S"] for item in stage.items() if item["pk"]["S"] == pk]
    return [sk for sk in own if sk.startswith("SECRET#")]


def basic(password: str) -> dict[str, str]:
    return {"type": "basic", "username": "u", "password": password}


def test_secrets_reach_the_target_and_are_stored_nowhere_in_clear_text(stage: Stage) -> None:
    planned = stage.create(
        once(),
        action=stage.action(authentication=basic("hunter2")),
        error_action=stage.action(authentication={"type": "bearer", "token": "swordfish"}),
    )
    stage.run(62)

    (received,) = stage.endpoint.received
    assert received.call.secrets == {"authentication.password": "hunter2"}
    everything = repr(stage.items()) + repr(stage.journal.lines) + repr(received.call) + repr(planned)
    assert "hunter2" not in everything
    assert "swordfish" not in everything


def test_the_error_action_gets_its_own_secrets_only(stage: Stage) -> None:
    stage.endpoint.script = [WRONG, OK]
    stage.create(
        once(),
        action=stage.action(authentication=basic("hunter2")),
        error_action=stage.action(authentication={"type": "bearer", "token": "swordfish"}),
    )

    stage.run(70)

    assert stage.endpoint.received[1].call.secrets == {"authentication.token": "swordfish"}


def test_a_kept_secret_stays_and_a_new_one_takes_its_place(stage: Stage) -> None:
    planned = stage.create(once(), action=stage.action(authentication=basic("one")))
    kept = stage.action(authentication=basic("ignored"))
    kept = replace(kept, secrets={}, kept=frozenset({"authentication.password"}))

    stage.change(planned, action=kept, description="new")
    assert secret_items(stage, planned) == ["SECRET#1"]
    stage.change(planned, action=stage.action(authentication=basic("two")))
    stage.run(62)

    assert stage.endpoint.received[0].call.secrets == {"authentication.password": "two"}


def test_a_kept_secret_that_does_not_exist_is_refused(stage: Stage) -> None:
    planned = stage.create(once())
    kept = replace(stage.action(authentication=basic("x")), secrets={}, kept=frozenset({"authentication.password"}))

    with pytest.raises(InvalidRequest):
        stage.change(planned, action=kept)


def test_no_job_is_created_while_the_key_service_is_unavailable(stage: Stage) -> None:
    before = stage.items()

    with stage.taps.once("kms.Encrypt", refused), pytest.raises(Unavailable):
        stage.create(once(), action=stage.action(authentication=basic("one")))

    assert stage.items() == before


def test_a_run_is_tried_again_while_the_key_service_is_unavailable(stage: Stage) -> None:
    planned = stage.create(once(), action=stage.action(authentication=basic("one")))

    with stage.taps.once("kms.Decrypt", refused):
        stage.run(240)

    run = stage.only_run(planned)
    assert (run.state, run.attempt, len(stage.endpoint.received)) == (State.SUCCESS, 1, 1)


def test_a_secret_of_another_job_cannot_be_opened(stage: Stage) -> None:
    """An item copied to another job is no use there: its context is part of the ciphertext."""
    mine = stage.create(once(), name="mine", action=stage.action(authentication=basic("one")))
    other = stage.create(once(), name="other", action=stage.action(authentication=basic("two")))
    sealed = next(
        item["sealed"]
        for item in stage.items()
        if "sealed" in item and item["pk"]["S"] == keys.job(TENANT, mine.job.id)
    )
    stage.edit_item(keys.job(TENANT, other.job.id), keys.secret(1), sealed=sealed)

    stage.run(62)

    secrets = [received.call.secrets for received in stage.endpoint.received]
    assert {"authentication.password": "one"} in secrets
    assert len([each for each in secrets if each]) == 1


def test_a_payload_comes_back_as_it_was_written(stage: Stage) -> None:
    text = '{"b":1.10,"a":[],"ü":"\\u0000"}'
    planned = stage.create(once())
    draft = replace(stage.action(), payload=Payload(text, is_json=True))

    stage.change(planned, action=draft)
    stage.run(62)

    assert stage.endpoint.received[0].call.payload == text
    assert jobs.read_payload(stage.world.table, TENANT, planned.job.id, "action", 2) == Payload(text, is_json=True)


# Ids


def test_ids_are_new_and_not_derived_from_the_name(stage: Stage) -> None:
    first = stage.create(EACH_MINUTE, name="nightly")
    stage.delete(first)
    second = stage.create(EACH_MINUTE, name="nightly")

    assert first.job.id != second.job.id
    assert first.schedules[0].id != second.schedules[0].id
    assert first.job.id < second.job.id
    assert second.schedules[0].state is ScheduleState.ACTIVE
