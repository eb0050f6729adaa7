"""Every call of every history meets every fault that can befall it: nothing is lost, doubled, open or miscounted."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable

import pytest

from tests.faults import sites
from tests.faults.crash_points import COUNTS, PLAYED, calls, counts, plans, sample, written
from tests.faults.kinds import KINDS
from tests.faults.play import Plan, Scenario, play
from tests.faults.scenarios import SCENARIOS, Retry

ELSEWHERE = {
    "server/flow/runs/workers._send_again send_one": "under a fault: the answer to a report was lost",
    "sdk/worker/worker.Worker.call carry_out": "contract/sdk/test_worker.py: a test calls a task",
    "sdk/worker/attempts.Attempts.take hide": "contract/sdk/test_worker.py: a worker that stops gives back",
    "sdk/worker/attempts.Attempts.take hide 2": "under a fault: the API does not answer",
    "server/flow/runs/results.give_back send_one": "contract/native/test_nack.py: whatever becomes of a nack",
    "server/store/runs/ledger.end_wait update": "the same",
    "server/flow/series/late_starts.follow send_one": (
        "unit/server/flow: a run that starts over 60 s late moves its series"
    ),
    "server/flow/series/late_starts.follow transact": "the same",
    "server/flow/series/catch_up._restarted send": (
        "unit/server/flow/runs/test_actual_start.py: an interval that is found minutes late"
    ),
    "server/flow/series/catch_up._restarted transact": "the same",
    "server/flow/deletes/clean_up.clean send_one": (
        "unit/server/flow/deletes/test_unbegun.py: more rows than one look takes"
    ),
    "server/flow/deletes/clean_up._end_and_clear send_one": (
        "unit/server/flow/deletes/test_unbegun.py: schedules that went before their job"
    ),
    "server/flow/deletes/clean_up._end_and_clear send_one 2": (
        "unit/server/flow/deletes/test_deletes.py: more runs than a look takes"
    ),
    "server/flow/deletes/clean_up._end_and_clear update": "the same",
    "server/flow/deletes/clean_up._end_and_clear update 2": "the same",
    "server/flow/job_parts/clean_up_rows.note_delay update": (
        "unit/server/flow/deletes/test_unbegun.py: a second passes while a delete is written"
    ),
    "server/flow/deletes/clean_up.end delete": "unit/server/flow/deletes/test_unbegun.py: what no tick had sent",
    "server/flow/deletes/clean_up.end query_all": "the same",
    "server/store/jobs/directory.is_name_taken get": "contract/native/test_jobs.py: a job gets another name",
    "server/store/consumers/consumers.drop_wake delete": "after the end of the history: nothing is held any more",
    "server/store/consumers/consumers.release update": "contract/native/test_consumers.py: a lease is given back",
    "server/store/consumers/consumers.stand_for transact": "unit/server/flow/consumers/test_replay.py: the mode count",
    "server/store/job_sets/job_sets.read_member get": "under a fault: the answer to a change of a set's job was lost",
    "server/store/job_sets/job_sets.begin update 2": "contract/native/test_job_sets.py: a set whose last list crashed",
    "server/store/job_sets/job_sets.delete_set delete": "contract/native/test_job_sets.py: a set is deleted",
    "server/flow/idempotency.note_deleted put": "the same",
    "server/flow/idempotency.was_deleted get": "the same",
    "server/store/job_sets/job_sets.forget delete": "contract/native/test_job_sets.py: a deleted job leaves the set",
    "server/store/runs/ledger.finish_without_attempt carry_out": (
        "unit/server/flow/deletes/test_unbegun.py: a schedule that is gone"
    ),
    "server/store/tenants/counts.adopt transact": (
        "unit/server/store/test_clauses.py: users that version 0.1 has counted"
    ),
    "server/store/tenants/rates.count_descendant update": (
        "unit/server/flow/runs/test_budgets.py: a run that another one started"
    ),
    "server/store/tenants/rates.uncount_descendant update": (
        "unit/server/flow/runs/test_budgets.py: such a run could not begin"
    ),
    "server/flow/delivery/dead_letters.batch postpone_dead": (
        "unit/server/flow/delivery/test_dead_letters.py: its run is under way"
    ),
    "server/flow/lifecycle/ended_jobs._stay update": "unit/server/flow: weeks after the end of a job",
    "server/flow/flow_keys/waiting_line._call_hopeless send": (
        "unit/server/flow/flow_keys/test_flow_keys.py: whatever call of a look goes wrong"
    ),
    "server/flow/jobs/large_changes.wake_up delete": (
        "under a fault: a change is carried out, and its row asks once more"
    ),
    "server/flow/bulk/carry_on.batch postpone": (
        "unit/server/flow/operations/test_operations.py: a wait longer than a queue delays"
    ),
    "server/flow/lifecycle/pause_end.wake_up delete": (
        "under a fault: the job of a pause went between the row and its pointer"
    ),
    "server/flow/audit/reconcile._recount transact": (
        "under a race that is known and allowed: a run within a line of missed ones"
    ),
    "server/flow/audit/reconcile._settle update": "unit/server/flow/audit/test_audit.py",
    "server/flow/audit/write_off.forget transact": "unit/server/flow/audit/test_absence.py: weeks without an audit",
    "server/flow/audit/write_off.expire send_one": "the same",
    "server/flow/audit/write_off.expire transact": "the same",
    "server/flow/lifecycle/ended_jobs.check_unused update": "contract/sap/test_unused.py: what was touched meanwhile",
    "server/flow/series/holding.go_on send_one": "test_held_model.py: more schedules than one look releases",
    "server/store/calendars/calendars.read_version get": (
        "under a fault: the answer to a change was lost; and a list of the API"
    ),
    "server/store/errors/failures.archive_run update": (
        "unit/server/flow/errors/test_failures.py: what users say may be said again"
    ),
    "server/flow/errors/failures._change carry_out": (
        "unit/server/flow/errors/test_failures.py: what users say may be said again"
    ),
    "server/flow/errors/failures._change transact": "contract/native/test_once.py: a note with a key",
    "server/store/errors/failures.delete_redirect delete": "the same",
    "server/store/errors/failures.put_redirect put": "the same",
    "server/store/errors/failures.forget_group delete": (
        "unit/server/flow/errors/test_failures.py: a look that is cut off is made again"
    ),
    "server/store/flow_keys/flow_key_lines.entries batch_get": (
        "unit/server/flow/flow_keys/test_flow_keys.py: who ended while it waited, came late"
    ),
    "server/store/flow_keys/flow_keys.forget delete": (
        "unit/server/flow/flow_keys/test_flow_keys.py: a key of a failed target goes"
    ),
    "server/store/flow_keys/circuits.forget_circuits delete": (
        "unit/server/flow/flow_keys/test_flow_keys.py: circuits are off"
    ),
    "server/store/flow_keys/flow_key_lines.end_patience put": (
        "unit/server/flow/flow_keys/test_flow_keys.py: whatever call of a look goes wrong"
    ),
    "server/store/runs/ledger._end_late transact": "unit/server/flow: a run that ends days after its instant",
    "server/store/runs/ledger.late_ends get": "the same",
    "server/store/tenants/rates.count increase": (
        "a count of requests, which no run waits for: tests of the API's rates"
    ),
    "server/store/views/resources.groups query_all": "lists of the API",
    "server/store/views/resources.redirects listed": "lists of the API",
    "server/store/views/jobs._by_creation query_all": "lists of the API: they only read",
    "server/store/views/jobs._entries batch_get": "lists of the API",
    "server/store/views/jobs._filtered batch_get": "lists of the API",
    "server/store/views/holds._read batch_get": "contract/native/test_load.py: of a collection that is disabled",
    "server/flow/tenants/applications.delete remove": "contract/native/test_absent_workers.py: one that was given up",
    "server/store/tenants/applications.delete transact": (
        "contract/native/test_absent_workers.py: one that was given up"
    ),
    "server/flow/delivery/unclaimed.look send_one": "contract/native/test_absent_workers.py: a worker dies in a run",
    "server/flow/jobs/large_changes.followed send": "test_large_changes_kept.py: what the plan before owed",
    "server/flow/runs/execute._apply send_one": (
        "test_large_changes_kept.py: an occurrence waits for its schedule's part"
    ),
    "server/flow/series/moving.follow send": "unit/server/flow/series/test_moving.py: newer zone data",
    "server/flow/series/moving.follow update": "the same",
    "server/store/job_sets/job_sets.claim update": "contract/sdk/test_custom_resource_faults.py: a stack adopts a set",
    "server/store/job_sets/job_sets.release update": "the same: the stack is deleted",
    "server/flow/delivery/backlogs._write backlog_of": (
        "contract/native/test_own_metrics.py: a number that an operator wants"
    ),
    "server/store/tenants/applications.keep_tasks update": (
        "contract/sdk/test_worker.py: two versions with tasks of their own"
    ),
    "server/store/views/resources.changes query_all": "explain of the API, which only reads",
    "server/store/views/runs._few_pages query": "lists of the API: they only read",
    "server/store/index/next_run_index.oldest query": (
        "unit/server/flow/sweep/test_sweep.py: a tick is cut short by its deadline"
    ),
    "server/flow/delivery/dispatch.Hand.more receive": (
        "unit/server/flow/delivery/test_hanging_calls.py: a call that hangs"
    ),
    "server/flow/delivery/dispatch.Hand.more delete": "the same",
    "server/flow/jobs/change._leave_workers send": "contract/native/test_absent_workers.py: a job leaves its workers",
    "server/flow/delivery/unclaimed.send_on send": "the same",
    "server/store/runs/ledger.wake_elsewhere update": "the same",
    "server/store/index/shards.Shards.learn update": "unit/server/flow/sweep/test_shards.py: shards are raised",
    "server/store/jobs/jobs.schedules_at batch_get": "unit/server/flow/series/test_moving.py: newer time-zone data",
    "server/store/runs/spread._is_noted update": "unit/server/store/test_spread.py: a busy day",
    "server/store/tenants/watches.forget delete": "contract/native/test_absent_workers.py: a deleted tenant",
    "server/store/views/jobs._entries query_all": "contract/native/test_jobs.py: lists of jobs",
    "server/flow/audit/lost_messages.send_again send": "contract/native/test_posted.py: a queue was purged",
    "server/store/runs/messages.forget_day update": "the same",
    "server/store/views/messages.open_of query_all": "the same",
    "server/flow/idempotency.is_used get": "contract/native/test_posted.py: a known dedupe key",
    "server/flow/runs/execute._within_quotas send_one": "contract/native/test_posted.py: over the quota of a minute",
}
"""Calls that no history here makes: where in `tests` they are made."""
CRASHES = {"crash-before", "crash-after"}


def test_the_number_of_crash_plans_is_the_recorded_one() -> None:
    """A call that is added or goes changes these numbers: look at the new plans, then make crash-points PLAN=write."""
    assert written(counts()) == COUNTS.read_text()


def test_every_call_in_the_code_occurs_in_some_history() -> None:
    """Another call in flow/ or store/ needs a history that makes it: see scenarios.py."""
    met = {str(met.site) for name in SCENARIOS for met, _ in calls(name)}

    assert {str(site) for site in sites.of_the_code("sdk/worker")} - met == set(ELSEWHERE)
    assert met <= {str(site) for site in sites.of_the_code("server/facades/azure", "sdk/worker")}


def test_every_kind_of_fault_occurs() -> None:
    assert {kind for found in counts().values() for kind in found} == set(KINDS)


@pytest.mark.scaled
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_service_recovers_from_one_fault_at_any_call(
    scenario: Scenario, record_property: Callable[[str, object], None]
) -> None:
    """A sample; each fault at each place of the code is in it. The closing line says how many plans were left out."""
    chosen = sample(scenario)

    record_property(PLAYED, len(chosen))
    sound(scenario, chosen)


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_service_recovers_from_every_fault_at_every_call(
    scenario: Scenario, record_property: Callable[[str, object], None]
) -> None:
    every = plans(scenario)

    record_property(PLAYED, len(every))
    sound(scenario, every)


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_service_recovers_from_two_crashes_at_any_calls(scenario: Scenario) -> None:
    firsts = [plan for plan in plans(scenario) if plan[0][1] in CRASHES]

    sound(scenario, (plan for first in firsts for plan in plans(scenario, first) if plan[1][1] in CRASHES))


def sound(scenario: Scenario, chosen: Iterable[Plan]) -> None:
    """Fails with every plan that was not made good; each replays: python -m tests.faults NAME 7 crash-after."""
    failures = {plan: failure for plan in chosen if (failure := _failure(scenario, plan)) is not None}
    plain = [f"{' '.join(f'{number} {kind}' for number, kind in plan)}: {why}" for plan, why in failures.items()]
    assert not plain, f"{len(plain)} plans of {scenario.name}:\n" + "\n".join(plain[:20])


def _failure(scenario: Scenario, plan: Plan) -> str | None:
    try:
        played = play(scenario, plan)
    except BaseException as broken:  # noqa: BLE001 - a Crash that nobody survived is one of them
        place = traceback.extract_tb(broken.__traceback__)[-1]
        return f"{type(broken).__name__} {broken} at {place.filename.rpartition('/')[2]}:{place.lineno}"
    return None if played.met else "did not take place"


# The harness itself


class Wrong(Retry):  # not in SCENARIOS: those are listed when scenarios.py is read
    """Expects what does not come."""

    def check(self, at: object) -> None:
        raise AssertionError("as it shall")


def test_a_history_with_an_unexpected_outcome_fails() -> None:
    with pytest.raises(AssertionError, match="as it shall"):
        play(Wrong())


def test_a_plan_that_names_no_call_injects_nothing() -> None:
    assert not play(Retry(), ((9_999, "crash-before"),)).met


def test_a_plan_is_replayed_the_same_way_each_time() -> None:
    plan = ((14, "crash-after"),)

    first, second = play(Retry(), plan), play(Retry(), plan)

    assert [str(met) for met in first.calls] == [str(met) for met in second.calls]
    assert first.ledger == second.ledger
