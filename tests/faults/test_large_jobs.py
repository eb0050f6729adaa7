"""A change of more schedules than one transaction takes, cut off at each call: it happens whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.instants import epoch_ms
from sweephand.domain.job import JobDraft, Pause, ScheduleDraft
from sweephand.domain.jobs.job_state import wanted_state
from sweephand.domain.run import Kind, Reason
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.flow.jobs import change, deletion, large_changes, lookup
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import jobs
from tests.faults.at_calls import KINDS, Faults, fits, surviving
from tests.support.stage import TENANT, Stage, stage
from tests.unit.server.flow.common import HOUR, NOON, exact

EACH_MINUTE = {"cron": "* * * * *"}
EACH_TWO = {"cron": "*/2 * * * *"}
HOURLY = {"cron": "0 * * * *"}
Verb = Callable[[Stage, Planned], object]


def replaced(scene: Stage, planned: Planned) -> Planned:
    """Deletes the first third, changes the timing of the second, keeps the third, and adds as many as it deletes."""
    third = len(planned.schedules) // 3
    changed = [
        ScheduleDraft(each.name, EACH_TWO if n < third else each.timing, id=each.id)
        for n, each in enumerate(planned.schedules[third:])
    ]
    new = [scene.schedule(planned.schedules[0].timing, name=f"new{n}") for n in range(third)]

    def edit(there: Planned, _stored: Any) -> JobDraft:
        # Like a PUT by name: a repetition of it finds its own schedules.
        return JobDraft(there.job.name, scene.action(), schedules=(*changed, *new))

    return change.change_job(scene.world, TENANT, planned.job.id, edit, None)


VERBS: dict[str, Verb] = {
    "deactivate": lambda scene, planned: scene.set_state(planned, active=False),
    "pause": lambda scene, planned: scene.set_state(planned, pause=Pause(NOON)),
    "activate": lambda scene, planned: scene.set_state(planned, active=True, pause=None),
    "other policy": lambda scene, planned: scene.change(planned, policies={"misfire": {"type": "latest"}}),
    "replace": replaced,
    "delete": lambda scene, planned: scene.delete(planned),
}
STARTS_OFF = {"activate"}


def many(scene: Stage, size: int, *, active: bool = True) -> Planned:
    """Makes a job of so many schedules, 40 at a time. The schedules of the largest job are due in an hour only."""
    timing = EACH_MINUTE if size < 40 else HOURLY
    planned = scene.create(active=active, name="many")
    for begin in range(0, size, 40):
        drafts = tuple(scene.schedule(timing, name=f"s{n}") for n in range(min(begin + 40, size)))
        planned = change.change_job(
            scene.world,
            TENANT,
            planned.job.id,
            lambda there, _, drafts=drafts: JobDraft("many", scene.action(), active=active, schedules=drafts),
            None,
        )
    assert len(planned.schedules) == size
    return planned


@contextmanager
def cut_off(verb: str, size: int, faults: Faults) -> Iterator[tuple[Stage, Planned, Planned | None]]:
    """Calls the verb under these faults, then two minutes of ordinary service. Gives what there was, and what there
    is.
    """
    with stage(shards=1) as scene:
        before = many(scene, size, active=verb not in STARTS_OFF)
        with scene.taps.faulty(faults):
            surviving(lambda: VERBS[verb](scene, before))
        scene.run(125)
        there = jobs.read_job(scene.world.table, TENANT, before.job.id)
        yield scene, before, lookup.find(scene.world, TENANT, before.job.id) if there else None


def whole(scene: Stage, before: Planned, after: Planned | None) -> None:
    """Checks that nothing is half done: rows agree with their job, nothing of the change is left, the ledger says what
    was planned.
    """
    kinds = {item["sk"]["S"].partition("#")[0] for item in scene.items() if item["pk"]["S"].endswith(before.job.id)}
    assert not kinds & {"PART", "CHANGE"}, "something still has to follow"
    if after is None:
        assert not kinds
        assert not scene.waiting()
        return
    assert after.job.open_change is None
    assert after.job.revision in {before.job.revision, before.job.revision + 1}
    changed = after.job.revision > before.job.revision
    for schedule in after.schedules:
        wanted, _ = wanted_state(after.job, schedule.active)
        assert schedule.state is wanted, "a schedule did not follow its job"
        assert (schedule.next_run_at is not None) is (wanted is ScheduleState.ACTIVE)
    policies = {schedule.misfire for schedule in after.schedules}
    assert len(policies) == 1
    names = [schedule.name for schedule in after.schedules]
    assert len(set(names)) == len(before.schedules)
    if any(name.startswith("new") for name in names):
        third = len(before.schedules) // 3
        assert changed
        assert sum(name.startswith("new") for name in names) == third
        assert sum(schedule.timing == EACH_TWO for schedule in after.schedules) == third
    else:
        assert all(schedule.timing != EACH_TWO for schedule in after.schedules)


def settled(scene: Stage, after: Planned | None) -> None:
    """Returns some of its schedules, once nothing is planned any more: planned is what the ledger has."""
    if after is None:
        return
    scene.set_state(after, active=False, pause=None)
    scene.run(400)
    for schedule in after.schedules[::7]:
        exact(scene, schedule)
        planned_at = [run.planned_at for run in scene.runs(schedule, Kind.SCHEDULED) if run.range_count is None]
        assert len(planned_at) == len(set(planned_at))
    early = [received for received in scene.endpoint.received if received.at < received.call.planned_at]
    assert not early


@pytest.fixture
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of 12 schedules as one of 200: four schedules or so in each part."""
    monkeypatch.setattr(deletion, "IN_JOBS_TRANSACTION", 6)
    monkeypatch.setattr(change, "IN_JOBS_TRANSACTION", 6)
    monkeypatch.setattr(large_changes, "WRITES_IN_PART", 12)


def calls_of(verb: str, size: int) -> Faults:
    seen = Faults([])
    with cut_off(verb, size, seen) as (scene, before, after):
        whole(scene, before, after)
    return seen


FAULTS = ("crash-before", "crash-after", "answer-lost", "conflict", "throttled")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.usefixtures("small_transactions")
def test_a_large_change_interrupted_anywhere_is_completed(verb: str) -> None:
    calls = calls_of(verb, 12).seen
    transactions = sum(passing.operation == "TransactWriteItems" for passing in calls)
    assert transactions > 3 or verb == "delete"
    for number, passing in enumerate(calls):
        for kind in FAULTS:
            if fits(kind, passing):
                faults = Faults([(number, kind)])
                with cut_off(verb, 12, faults) as (scene, before, after):
                    try:
                        whole(scene, before, after)
                        settled(scene, after)
                    except BaseException as broken:
                        raise AssertionError(f"{verb}, call {number} ({passing.name}): {kind}") from broken
                assert not faults.plan, "the fault did not take place"


@pytest.mark.parametrize("verb", VERBS)
def test_two_hundred_schedules_follow_after_a_crash_that_comes_after_the_commit(verb: str) -> None:
    with stage(shards=1) as scene:
        before = many(scene, 200, active=verb not in STARTS_OFF)
        with scene.taps.once("dynamodb.TransactWriteItems", KINDS["crash-after"]):
            assert not surviving(lambda: VERBS[verb](scene, before))
        there = jobs.read_job(scene.world.table, TENANT, before.job.id)
        assert there is None or there.open_change == there.revision

        scene.run(125)

        after = lookup.find(scene.world, TENANT, before.job.id) if there else None
        whole(scene, before, after)


@pytest.mark.long
@pytest.mark.parametrize("verb", VERBS)
def test_two_hundred_schedules_are_completed_after_a_crash_anywhere(verb: str) -> None:
    for number, passing in enumerate(calls_of(verb, 200).seen):
        for kind in ("crash-before", "crash-after"):
            if fits(kind, passing):
                with cut_off(verb, 200, Faults([(number, kind)])) as (scene, before, after):
                    try:
                        whole(scene, before, after)
                    except BaseException as broken:
                        raise AssertionError(f"{verb}, call {number} ({passing.name}): {kind}") from broken


@pytest.mark.usefixtures("small_transactions")
def test_the_next_change_waits_until_all_schedules_have_followed() -> None:
    with stage(shards=1) as scene:
        before = many(scene, 12)
        with scene.taps.once("dynamodb.TransactWriteItems", KINDS["crash-after"]):
            assert not surviving(lambda: VERBS["deactivate"](scene, before))

        after = scene.set_state(before, active=True)

        assert after.job.revision == before.job.revision + 2
        assert {schedule.state for schedule in after.schedules} == {ScheduleState.ACTIVE}
        assert {schedule.generation for schedule in after.schedules} == {3}
        whole(scene, replace(before, job=replace(before.job, revision=after.job.revision)), after)


@pytest.mark.usefixtures("small_transactions")
def test_deleting_a_job_while_its_schedules_follow_deletes_all_of_them() -> None:
    with stage(shards=1) as scene:
        before = many(scene, 12)
        with scene.taps.once("dynamodb.TransactWriteItems", KINDS["crash-after"], skip=2):
            assert not surviving(lambda: replaced(scene, before))

        scene.delete(before)
        scene.run(125)

        whole(scene, before, None)


@pytest.mark.usefixtures("small_transactions")
def test_a_delete_while_schedules_follow_the_end_of_a_pause_leaves_the_pause_its_own_instants() -> None:
    with stage(shards=1) as scene:
        before = scene.set_state(many(scene, 12), pause=Pause(NOON))
        scene.run(5 * 60)
        with scene.taps.once("dynamodb.TransactWriteItems", KINDS["crash-after"]):
            assert not surviving(lambda: scene.set_state(before, pause=None))
        scene.pass_time(10 * 60)

        scene.delete(before)
        scene.run(125)

        whole(scene, before, None)
        for each in before.schedules:
            [paused] = [run for run in scene.runs(each) if run.reason is Reason.PAUSED]
            assert paused.range_until == NOON + timedelta(minutes=5)


@pytest.mark.usefixtures("small_transactions")
def test_a_second_executor_repeats_nothing() -> None:
    """Both have read the same part: one transaction goes through."""
    with stage(shards=1) as scene:
        before = many(scene, 12)
        with scene.taps.once("dynamodb.TransactWriteItems", KINDS["crash-after"]):
            assert not surviving(lambda: VERBS["deactivate"](scene, before))
        job = jobs.read_job(scene.world.table, TENANT, before.job.id)
        assert job is not None

        def meanwhile(_passing: Any, act: Callable[[], Any]) -> Any:
            scene.taps.fault = None
            large_changes.finish(scene.world, job)
            return act()

        with scene.taps.faulty(lambda p, act: meanwhile(p, act) if p.operation == "TransactWriteItems" else act()):
            large_changes.finish(scene.world, job)

        after = lookup.find(scene.world, TENANT, before.job.id)
        whole(scene, before, after)
        assert {schedule.generation for schedule in after.schedules} == {2}


@pytest.mark.usefixtures("small_transactions")
def test_the_schedules_of_a_deleted_job_are_deleted_although_a_run_is_still_held() -> None:
    """Else the sweep would go on with those that did not fit into the delete's transaction."""
    with stage(shards=1) as scene:
        before = many(scene, 12)
        scene.run(59)
        scene.clock.advance(2)
        with scene.taps.once("endpoint.http", KINDS["crash-before"]):
            assert not surviving(lambda: scene.deliver(most=1))
        (held,) = [run for each in before.schedules for run in scene.runs(each) if not run.finished]
        key = keys.runs(TENANT, held.schedule_id or ""), keys.run(held.uuid)
        scene.edit_item(*key, lease_until={"N": str(epoch_ms(NOON + HOUR))})
        scene.sqs.purge(scene.world.settings.queue_urls[Lane.FAST])
        with scene.taps.once("dynamodb.TransactWriteItems", KINDS["crash-after"]):
            assert not surviving(lambda: scene.delete(before))

        scene.run(125)

        left = {item["sk"]["S"].partition("#")[0] for item in scene.items() if before.job.id in item["pk"]["S"]}
        assert "CLEAN" in left, "the clean-up is over: nothing held it up"
        assert "SCH" not in left
