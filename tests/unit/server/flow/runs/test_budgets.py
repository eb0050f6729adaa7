"""The provider's quotas of runs: how many follow from one run, how many begin in a minute, and what that costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sweephand.base.errors import QuotaExceeded, Unavailable
from sweephand.domain.collection import DESCENDANTS, Pace, Usage
from sweephand.domain.job import ActionDraft
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.server.flow.delivery import dispatch
from sweephand.server.flow.jobs import change
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.flow.manual import manual, rerun
from sweephand.server.flow.rates import RUNS_STEP
from sweephand.server.flow.tenants import tenancy
from sweephand.server.flow.world import FlowMemory
from sweephand.server.store.dynamo.table import RunItem
from sweephand.server.store.runs import run_rows
from sweephand.server.store.tenants import tenants
from sweephand.testing.service import URLS
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage, stage
from tests.support.taps import refused
from tests.unit.server.flow.common import NOON, SECOND, once
from tests.unit.server.flow.runs.test_inner_actions import NOBODY, draft

SUCCEEDS = draft(type="event")
FAILS = draft(type="job", jobId=NOBODY)
EVERY_SECOND = {"every": "PT1S"}


@pytest.fixture
def there() -> Iterator[Stage]:
    with stage() as made:
        tenancy.create_tenant(made.world, TENANT, None)
        made.act_for_real()
        yield made


def starts(planned: Planned) -> ActionDraft:
    return draft(type="job", jobId=planned.job.id)


def pace(stage: Stage, **members: int) -> None:
    tenancy.change_tenant(stage.world, TENANT, None, Usage(), Pace(**members))


def everything(stage: Stage) -> list[Run]:
    """Returns all runs in the table."""
    return [
        run_rows.run_of(RunItem.from_raw_data(row)) for row in stage.items() if "planned_at" in row and "kind" in row
    ]


def over_budget(found: list[Run]) -> list[Run]:
    return [run for run in found if (run.state, run.reason) == (State.SKIPPED, Reason.QUOTA)]


def doubling(stage: Stage, levels: int, *timings: dict[str, object], hook: str = "onSuccess") -> Planned:
    """Jobs of which each one starts the first job of the next level, and its hook the second: the first of them."""
    action, hooks = SUCCEEDS, {}
    for level in range(levels):
        second = stage.create(action=action, hooks=hooks)
        first = stage.create(*(timings if level == levels - 1 else ()), action=action, hooks=hooks)
        action, hooks = starts(first), {hook: starts(second)}
    return stage.create(*timings, action=action, hooks=hooks)


# Runs that follow from one run


def test_a_run_that_could_not_begin_during_an_outage_counts_once(there: Stage) -> None:
    follower = there.create(action=SUCCEEDS)
    leader = there.create(action=starts(follower))
    pace(there, descendants=1)
    manual.run_now(there.world, TENANT, leader.job.id, None, None)

    def no_bus(passing: Passing, act: Act) -> object:
        return refused(passing, act) if passing.name == "events.PutEvents" else act()

    with there.taps.faulty(no_bus):
        there.run(600)
    there.run(900)

    (run,) = there.runs(follower.job.id)
    assert run.state is State.SUCCESS


def test_thirteen_jobs_started_by_one_request_stay_within_the_budget(there: Stage) -> None:
    first = doubling(there, 6)

    manual.run_now(there.world, TENANT, first.job.id, None, None)
    there.run(600)

    found = everything(there)
    assert len(found) - len(over_budget(found)) == 1 + DESCENDANTS
    assert len(found) < 1 + 3 * (DESCENDANTS + 1)


@pytest.mark.parametrize("levels", [2, 3, 4, 10])
@pytest.mark.parametrize("budget", [0, 1, 5, 20])
def test_the_budget_holds_at_any_depth(there: Stage, levels: int, budget: int) -> None:
    pace(there, descendants=budget)
    first = doubling(there, levels)

    manual.run_now(there.world, TENANT, first.job.id, None, None)
    there.run(600)

    found = everything(there)
    possible = 3 * 2**levels - 3
    assert len(found) - len(over_budget(found)) == 1 + min(budget, possible)
    assert len(found) <= 3 * (budget + 1)


def test_error_actions_and_both_kinds_of_hooks_count_like_job_actions(there: Stage) -> None:
    pace(there, descendants=7)
    leaf = there.create(action=FAILS)
    for _ in range(4):
        leaf = there.create(action=FAILS, error_action=starts(leaf), hooks={"onFailure": starts(leaf)})

    manual.run_now(there.world, TENANT, leaf.job.id, None, None)
    there.run(600)

    found = everything(there)
    assert len(found) - len(over_budget(found)) == 1 + 7


def test_a_run_over_the_budget_says_so_and_starts_nothing(there: Stage) -> None:
    pace(there, descendants=0)
    told = there.create(action=SUCCEEDS)
    second = there.create(action=SUCCEEDS, hooks={"onSuccess": starts(told), "onFailure": starts(told)})
    first = there.create(once(), action=starts(second))

    there.run(600)

    root = there.only_run(first)
    skipped = there.only_run(second.job.id)
    assert root.state is State.SUCCESS
    assert (skipped.state, skipped.reason, skipped.parent_id) == (State.SKIPPED, Reason.QUOTA, root.id)
    assert skipped.message == (
        "the provider allows 0 runs to follow from one run (quota.maxDescendants), "
        f"and as many have followed from {root.id}"
    )
    assert there.runs(told.job.id) == []


def test_each_occurrence_has_a_budget_of_its_own(there: Stage) -> None:
    pace(there, descendants=1)
    second = there.create(action=SUCCEEDS)
    first = there.create({"every": "PT1M", "count": 3}, action=starts(second))

    there.run(600)

    assert len(there.runs(first)) == 3
    assert [run.state for run in there.runs(second.job.id)] == [State.SUCCESS] * 3


def test_a_rerun_adds_nothing_to_the_budget_of_the_run_that_it_repeats(there: Stage) -> None:
    pace(there, descendants=5)
    first = doubling(there, 6)
    root_id = manual.run_now(there.world, TENANT, first.job.id, None, None).run_id
    there.run(600)
    before = everything(there)

    for run in before:
        if run.finished:
            rerun.rerun(there.world, TENANT, run.schedule_id or run.job_id, run.uuid)
    there.run(600)

    after = everything(there)
    repeats = [run for run in after if run.rerun_of is not None]
    started = {run.id for run in after} - {run.id for run in before} - {run.id for run in repeats}
    assert len(repeats) == len(before)
    assert {run.root for run in repeats} == {root_id}
    assert {run.id for run in over_budget(after)} >= started


def test_error_actions_that_start_no_job_are_not_counted(there: Stage) -> None:
    pace(there, descendants=0)
    first = there.create(once(), action=FAILS, error_action=SUCCEEDS)

    there.run(600)

    states = Counter(run.kind for run in there.runs(first) if run.state is State.SUCCESS)
    assert states == {Kind.ERROR_ACTION: 1}
    assert not [row for row in there.items() if row["sk"]["S"].startswith("FAMILY#")]


def test_the_count_expires_with_the_ledger(there: Stage) -> None:
    second = there.create(action=SUCCEEDS)
    first = there.create(once(), action=starts(second))
    there.run(600)

    (row,) = [row for row in there.items() if row["sk"]["S"].startswith("FAMILY#")]
    root = there.only_run(first)

    assert row["pk"]["S"] == run_rows.key_of(root)[0]
    assert int(row["expires_at"]["N"]) > there.clock.now().timestamp() + 7 * 86_400


def test_a_count_whose_answer_is_lost_lets_no_run_exceed_the_budget(there: Stage) -> None:
    pace(there, descendants=0)
    second = there.create(action=SUCCEEDS)
    there.create(once(), action=starts(second))

    def unanswered(passing: Passing, act: Act) -> object:
        if "FAMILY#" in str(passing):
            raise Unavailable("the table does not answer")
        return act()

    with there.taps.faulty(unanswered):
        there.run(120)
    there.run(600)

    assert [run.state for run in there.runs(second.job.id)] == [State.SKIPPED]


# Runs a minute


def begun(stage: Stage, planned: Planned) -> int:
    return sum(run.state is State.SUCCESS for run in stage.runs(planned))


def test_occurrences_over_the_quota_of_a_minute_are_skipped_with_a_reason(there: Stage) -> None:
    pace(there, runs_per_minute=20)
    planned = there.create({**EVERY_SECOND, "count": 60}, action=SUCCEEDS)

    there.run(300)

    found = there.runs(planned)
    by_minute = Counter(run.planned_at.replace(second=0) for run in found if run.state is State.SUCCESS)
    assert list(by_minute.values()) == [20, 2]
    assert {(run.state, run.reason) for run in found} == {
        (State.SUCCESS, Reason.ON_TIME),
        (State.SKIPPED, Reason.QUOTA),
    }
    (message,) = {run.message for run in over_budget(found)}
    assert message == "the provider allows this tenant 20 runs a minute (quota.runsPerMinute)"


def test_runs_begin_again_in_the_next_minute(there: Stage) -> None:
    pace(there, runs_per_minute=1)
    planned = there.create({"every": "PT30S", "count": 6}, action=SUCCEEDS)

    there.run(300)

    states = [run.state for run in there.runs(planned)]
    assert State.SKIPPED in states
    assert sum(state is State.SUCCESS for state in states) >= 3


def test_manual_runs_and_runs_that_follow_count_too(there: Stage) -> None:
    pace(there, runs_per_minute=15, descendants=10_000)
    first = doubling(there, 5)

    manual.run_now(there.world, TENANT, first.job.id, None, None)
    there.run(5)

    found = everything(there)
    assert len(found) - len(over_budget(found)) == 15


def test_a_retry_does_not_count_as_another_run(there: Stage) -> None:
    pace(there, runs_per_minute=1)
    retry = {"type": "fixed", "maxRetries": 3, "delaySeconds": 1, "retryOn": "any"}
    planned = there.create(once(), action=draft(type="job", jobId=NOBODY, retry=retry))

    there.run(600)

    assert [(run.reason, run.attempt) for run in there.runs(planned)] == [(Reason.NO_TARGET, 4)]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same process", "another process"])
def test_a_second_copy_of_a_message_does_not_count_against_the_quota(there: Stage, elsewhere: bool) -> None:
    pace(there, runs_per_minute=1)
    planned = there.create(once(), action=SUCCEEDS)
    there.tick()
    there.clock.advance(60)
    batch = [there._delivered(message) for message in there.sqs.receive(URLS[Lane.FAST], 10)]
    other = replace(there.world, memory=FlowMemory()) if elsewhere else there.world
    claims = []

    def copy_comes(passing: Passing, act: Act) -> object:
        if passing.operation in {"PutItem", "TransactWriteItems"} and not claims:
            claims.append(passing)
            dispatch.batch(other, Lane.FAST, "second", batch)
        return act()

    with there.taps.faulty(copy_comes):
        dispatch.batch(there.world, Lane.FAST, "first", batch)
    there.run(300)

    assert claims
    assert [run.state for run in there.runs(planned)] == [State.SUCCESS]
    again = there.create(once(there.clock.now() - NOON + 5 * SECOND), action=SUCCEEDS)
    there.run(120)
    assert [run.state for run in there.runs(again)] == [State.SUCCESS]


def test_each_process_exceeds_the_quota_by_less_than_one_step(there: Stage) -> None:
    pace(there, runs_per_minute=30)
    planned = there.create(action=SUCCEEDS)
    worlds = [replace(there.world, memory=FlowMemory()) for _ in range(4)]

    for n in range(400):
        manual.run_now(there.world, TENANT, planned.job.id, None, None)
        there.world = worlds[n % 4]
        there.deliver_all(1)

    ran = sum(run.state is State.SUCCESS for run in there.runs(planned.job.id))
    assert 30 <= ran < 30 + 4 * RUNS_STEP


def test_runs_are_reported_in_steps_and_never_without_a_quota(there: Stage) -> None:
    planned = there.create({**EVERY_SECOND, "count": 40}, action=SUCCEEDS)
    there.run(30)
    unlimited = reports(there)

    pace(there, runs_per_minute=1_000)
    there.run(120)

    assert unlimited == []
    assert 1 <= len(reports(there)) <= 2
    assert begun(there, planned) == 40


def reports(stage: Stage) -> list[dict[str, object]]:
    return [row for row in stage.items() if row["sk"]["S"].startswith("RATE#runs#")]


# Limits that the provider sets


def test_the_job_limit_of_the_provider_applies_with_and_without_schedules(there: Stage) -> None:
    tenancy.change_tenant(there.world, TENANT, None, Usage(most_jobs=2))
    first = there.create()
    there.create({"every": "PT1H"})

    with pytest.raises(QuotaExceeded, match=r"2 jobs at most \(quota.maxJobs"):
        there.create()

    there.delete(first)
    there.create()


def test_the_shortest_interval_of_the_provider_applies_to_every_collection_and_change(there: Stage) -> None:
    planned = there.create({"every": "PT1M"})
    tenancy.change_tenant(there.world, TENANT, None, Usage(least_interval_s=300))

    with pytest.raises(QuotaExceeded, match="the provider of this tenant allows at most one occurrence every 300 sec"):
        there.create({"every": "PT4M59S"})
    with pytest.raises(QuotaExceeded, match="two of this schedule may be 240 seconds apart"):
        there.change(planned, timings=[{"every": "PT4M"}])
    with pytest.raises(QuotaExceeded, match="300 seconds"):
        change.change_schedules(
            there.world,
            TENANT,
            planned.job.id,
            lambda _: [ScheduleRequest(None, there.schedule({"cron": "* * * * *"}))],
            None,
        )

    there.change(planned, timings=[{"every": "PT5M"}])


def test_a_collection_cannot_raise_a_quota_of_the_provider(there: Stage) -> None:
    tenancy.change_tenant(there.world, TENANT, None, Usage(most_jobs=1, least_interval_s=60))
    there.create()

    tenancy.change_collection(
        there.world,
        TENANT,
        "default",
        lambda found: replace(found, quota=replace(found.quota, max_jobs=None, min_interval_s=1)),
        None,
    )

    with pytest.raises(QuotaExceeded, match="1 jobs at most"):
        there.create()


def test_a_tenant_keeps_its_quotas_when_disabled_and_enabled(there: Stage) -> None:
    pace(there, runs_per_minute=5, descendants=3)

    tenancy.switch_tenant(there.world, TENANT, on=False)
    tenancy.switch_tenant(there.world, TENANT, on=True)

    found = tenants.read_tenant(there.world.table, TENANT)
    assert found is not None
    assert found.pace == Pace(5, 3)
