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
    "flow/runs/workers._send_again send_one": "under a fault: the answer to a report was lost",
    "sdk/worker/worker.Worker.call carry_out": "contract/sdk/test_worker.py: a test calls a task",
    "sdk/worker/attempts.Attempts.take hide": "contract/sdk/test_worker.py: a worker that stops gives back",
    "sdk/worker/attempts.Attempts.take hide 2": "under a fault: the API does not answer",
    "flow/runs/results.give_back send_one": "contract/native/test_nack.py: whatever becomes of a nack",
    "store/runs/ledger.end_wait update": "the same",
    "flow/series/late_starts.follow send_one": "unit/flow: a run that starts over 60 s late moves its series",
    "flow/series/late_starts.follow transact": "the same",
    "flow/series/catch_up._restarted send": (
        "unit/flow/runs/test_actual_start.py: an interval that is found minutes late"
    ),
    "flow/series/catch_up._restarted transact": "the same",
    "flow/deletes/clean_up.clean send_one": "unit/flow/deletes/test_unbegun.py: more rows than one look takes",
    "flow/deletes/clean_up._end_and_clear send_one": (
        "unit/flow/deletes/test_unbegun.py: schedules that went before their job"
    ),
    "flow/deletes/clean_up._end_and_clear send_one 2": "unit/flow/deletes/test_deletes.py: more runs than a look takes",
    "flow/deletes/clean_up._end_and_clear update": "the same",
    "flow/deletes/clean_up._end_and_clear update 2": "the same",
    "flow/job_parts/clean_up_rows.note_delay update": (
        "unit/flow/deletes/test_unbegun.py: a second passes while a delete is written"
    ),
    "flow/deletes/clean_up.end delete": "unit/flow/deletes/test_unbegun.py: what no tick had sent",
    "flow/deletes/clean_up.end query_all": "the same",
    "store/jobs/directory.is_name_taken get": "contract/native/test_jobs.py: a job gets another name",
    "store/consumers/consumers.drop_wake delete": "after the end of the history: nothing is held any more",
    "store/consumers/consumers.release update": "contract/native/test_consumers.py: a lease is given back",
    "store/consumers/consumers.stand_for transact": "unit/flow/consumers/test_replay.py: the mode count",
    "store/job_sets/job_sets.read_member get": "under a fault: the answer to a change of a set's job was lost",
    "store/job_sets/job_sets.read_set get": "contract/native/test_job_sets.py: a set is deleted",
    "store/job_sets/job_sets.delete_set delete": "the same",
    "flow/idempotency.note_deleted put": "the same",
    "flow/idempotency.was_deleted get": "the same",
    "store/job_sets/job_sets.forget delete": "contract/native/test_job_sets.py: a deleted job leaves the set",
    "flow/job_sets/apply.forget carry_out": "contract/native/test_job_sets.py: a set is filled while it is deleted",
    "store/runs/ledger.finish_without_attempt carry_out": "unit/flow/deletes/test_unbegun.py: a schedule that is gone",
    "store/tenants/counts.adopt transact": "unit/store/test_clauses.py: users that version 0.1 has counted",
    "store/tenants/rates.count_descendant update": "unit/flow/runs/test_budgets.py: a run that another one started",
    "store/tenants/rates.uncount_descendant update": "unit/flow/runs/test_budgets.py: such a run could not begin",
    "flow/delivery/dead_letters.batch postpone_dead": "unit/flow/delivery/test_dead_letters.py: its run is under way",
    "flow/lifecycle/ended_jobs._stay update": "unit/flow: weeks after the end of a job",
    "flow/flow_keys/waiting_line._call_hopeless send": (
        "unit/flow/flow_keys/test_flow_keys.py: whatever call of a look goes wrong"
    ),
    "flow/jobs/large_changes.wake_up delete": "under a fault: a change is carried out, and its row asks once more",
    "flow/bulk/carry_on.batch postpone": "unit/flow/operations/test_operations.py: a wait longer than a queue delays",
    "flow/lifecycle/pause_end.wake_up delete": "under a fault: the job of a pause went between the row and its pointer",
    "flow/audit/reconcile._recount transact": (
        "under a race that is known and allowed: a run within a line of missed ones"
    ),
    "flow/audit/reconcile._settle update": "unit/flow/audit/test_audit.py",
    "flow/audit/write_off.forget transact": "unit/flow/audit/test_absence.py: weeks without an audit",
    "flow/audit/write_off.expire send_one": "the same",
    "flow/audit/write_off.expire transact": "the same",
    "flow/lifecycle/ended_jobs.check_unused update": "contract/sap/test_unused.py: what was touched meanwhile",
    "flow/series/holding.go_on send_one": "test_held_model.py: more schedules than one look releases",
    "store/calendars/calendars.read_version get": (
        "under a fault: the answer to a change was lost; and a list of the API"
    ),
    "store/errors/failures.archive_run update": "unit/flow/errors/test_failures.py: what users say may be said again",
    "flow/errors/failures._change carry_out": "unit/flow/errors/test_failures.py: what users say may be said again",
    "flow/errors/failures._change transact": "contract/native/test_once.py: a note with a key",
    "store/errors/failures.delete_redirect delete": "the same",
    "store/errors/failures.put_redirect put": "the same",
    "store/errors/failures.forget_group delete": (
        "unit/flow/errors/test_failures.py: a look that is cut off is made again"
    ),
    "store/flow_keys/flow_key_lines.entries batch_get": (
        "unit/flow/flow_keys/test_flow_keys.py: who ended while it waited, came late"
    ),
    "store/flow_keys/flow_keys.forget delete": "unit/flow/flow_keys/test_flow_keys.py: a key of a failed target goes",
    "store/flow_keys/circuits.forget_circuits delete": "unit/flow/flow_keys/test_flow_keys.py: circuits are off",
    "store/flow_keys/flow_key_lines.end_patience put": (
        "unit/flow/flow_keys/test_flow_keys.py: whatever call of a look goes wrong"
    ),
    "store/runs/ledger._end_late transact": "unit/flow: a run that ends days after its instant",
    "store/runs/ledger.late_ends get": "the same",
    "store/tenants/rates.count increase": "a count of requests, which no run waits for: tests of the API's rates",
    "store/views/resources.groups query_all": "lists of the API",
    "store/views/resources.redirects listed": "lists of the API",
    "store/views/jobs._by_creation query_all": "lists of the API: they only read",
    "store/views/jobs._entries batch_get": "lists of the API",
    "store/views/jobs._filtered batch_get": "lists of the API",
    "store/views/holds._read batch_get": "contract/native/test_load.py: of a collection that is disabled",
    "flow/tenants/applications.delete remove": "contract/native/test_absent_workers.py: one that was given up",
    "store/tenants/applications.delete transact": "contract/native/test_absent_workers.py: one that was given up",
    "flow/runs/unclaimed.look send_one": "contract/native/test_absent_workers.py: a worker that dies in a run",
    "flow/jobs/large_changes.followed send": "test_large_changes_kept.py: what the plan before owed",
    "flow/runs/execute._apply send_one": "test_large_changes_kept.py: an occurrence waits for its schedule's part",
    "flow/series/moving.follow send": "unit/flow/series/test_moving.py: newer zone data",
    "flow/series/moving.follow update": "the same",
    "store/job_sets/job_sets.claim update": "contract/sdk/test_custom_resource_faults.py: a stack adopts a set",
    "store/job_sets/job_sets.release update": "the same: the stack is deleted",
    "flow/delivery/backlogs._write backlog_of": "contract/native/test_own_metrics.py: a number that an operator wants",
    "store/tenants/applications.keep_tasks update": "contract/sdk/test_worker.py: two versions with tasks of their own",
    "store/views/resources.changes query_all": "explain of the API, which only reads",
    "store/views/runs._few_pages query": "lists of the API: they only read",
    "store/index/next_run_index.oldest query": "unit/flow/sweep/test_sweep.py: a tick is cut short by its deadline",
    "flow/delivery/dispatch.Hand.more receive": "unit/flow/delivery/test_hanging_calls.py: a call that hangs",
    "flow/delivery/dispatch.Hand.more delete": "the same",
    "flow/jobs/change._leave_workers send": "contract/native/test_absent_workers.py: a job leaves its workers",
    "flow/runs/unclaimed.send_on send": "the same",
    "store/runs/ledger.wake_elsewhere update": "the same",
    "store/index/shards.Shards.learn update": "unit/flow/sweep/test_shards.py: shards are raised",
    "store/jobs/jobs.schedules_at batch_get": "unit/flow/series/test_moving.py: newer time-zone data",
    "store/runs/spread._is_noted update": "unit/store/test_spread.py: a busy day",
    "store/tenants/watches.forget delete": "contract/native/test_absent_workers.py: a deleted tenant",
    "store/views/jobs._entries query_all": "contract/native/test_jobs.py: lists of jobs",
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
    assert met <= {str(site) for site in sites.of_the_code("facades/azure", "sdk/worker")}


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
