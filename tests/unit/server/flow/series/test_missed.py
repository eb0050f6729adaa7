"""Where the misfire policy meets a count, an actual start, a change, or a single missed occurrence."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sweephand.domain.instants import text
from sweephand.domain.job import Pause
from sweephand.domain.occurrences import upcoming
from sweephand.domain.run import Reason, State
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.schedules.timing import load
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.tenants import tenancy
from sweephand.testing.service import DEAD, URLS
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, crash_before
from tests.unit.server.flow.common import MINUTE, NOON, SECOND, exact, minutes
from tests.unit.server.flow.lifecycle.test_outages import time_goes_by

ENDINGS = {"sap": 30, "latest": 10}
"""Minutes of an outage after which the policy runs the last occurrence only."""


def made(stage: Stage, timing: dict[str, object], policy: str, **more: object) -> Planned:
    return stage.create(timing, policies={"misfire": {"type": policy, "ratePerMinute": 600, **more}})


def lived_on(stage: Stage, *plans: Planned) -> None:
    """Lets some more minutes pass, after which counts and ledger agree and nothing is open."""
    time_goes_by(stage, stage.clock.now() + 5 * MINUTE)
    for planned in plans:
        stage.set_state(planned, active=False)
        time_goes_by(stage, stage.clock.now() + 2 * MINUTE)
        exact(stage, planned)


def told(stage: Stage, planned: Planned) -> int:
    """Returns how many occurrences the ledger records, by a row each or by lines."""
    return sum(run.range_count or 1 for run in stage.runs(planned))


# A count


@pytest.mark.parametrize("policy", ENDINGS)
@pytest.mark.parametrize(
    ("timing", "last"), [({"cron": "* * * * *", "count": 3}, 3), ({"cron": "1/15 * * * *", "count": 1}, 1)]
)
def test_the_last_occurrence_of_a_count_runs_however_late_the_executors_are(stage, policy, timing, last):
    planned = made(stage, timing, policy)

    time_goes_by(stage, NOON + ENDINGS[policy] * MINUTE, executing=False)
    time_goes_by(stage, stage.clock.now() + 5 * MINUTE)

    assert stage.endpoint.planned == minutes(last)
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    exact(stage, planned)


# An interval from the actual start


@pytest.mark.parametrize("policy", ENDINGS)
@pytest.mark.parametrize("count", [None, 1])
def test_the_only_missed_link_of_a_chain_runs(stage, policy, count):
    timing = {"every": "PT5M", "align": "actual_start"} | ({} if count is None else {"count": count})
    planned = made(stage, timing, policy)
    (first,) = [stage.stored(planned).next_run_at]

    time_goes_by(stage, NOON + ENDINGS[policy] * MINUTE, sweeping=False)
    time_goes_by(stage, stage.clock.now() + 2 * MINUTE)

    assert stage.endpoint.planned == [first]
    assert [run.state for run in stage.runs(planned) if run.range_count is None] == [State.SUCCESS]
    if count is None:
        assert stage.stored(planned).next_run_at > first + 5 * MINUTE


def test_executors_run_the_last_of_several_late_links_of_a_chain(stage):
    made(stage, {"every": "PT5M", "align": "actual_start"}, "latest")

    time_goes_by(stage, NOON + 19 * MINUTE, executing=False)
    time_goes_by(stage, stage.clock.now() + 30 * SECOND)

    assert [at.minute for at in stage.endpoint.planned] == [15]


@pytest.mark.sampled(7)
@pytest.mark.repeats
@pytest.mark.parametrize("interval_s", [15, 60, 300, 3_600])
@pytest.mark.parametrize("out_s", [130, 200, 700, 5_000])
@pytest.mark.parametrize("executing", [False, True])
@pytest.mark.parametrize("more", [{}, {"count": 30}, {"count": 3}, {"endTime": text(NOON + 70 * MINUTE)}])
def test_occurrences_announced_before_a_chain_was_found_late_are_in_the_ledger(
    stage, interval_s, out_s, executing, more
):
    planned = made(stage, {"every": f"PT{interval_s}S", "align": "actual_start"} | more, "sap")
    (first,) = [stage.stored(planned).next_run_at]
    time_goes_by(stage, first + (out_s // 2) * SECOND, sweeping=False, executing=executing)
    there = stage.stored(planned)
    announced = upcoming.next_runs(there, load(there.packed), stage.clock.now(), 5).instants
    time_goes_by(stage, first + out_s * SECOND, sweeping=False, executing=executing)
    back_at = stage.clock.now()

    time_goes_by(stage, max([back_at, *announced]) + MINUTE)

    lines = [run for run in stage.runs(planned) if run.range_count is not None]
    rows = {run.planned_at for run in stage.runs(planned) if run.range_count is None}
    following = min((at for at in rows if at > back_at), default=announced[-1] + SECOND if announced else NOON)
    named = {at for at in announced if any(each.planned_at <= at <= each.range_until for each in lines)}
    assert {at for at in announced if at < following} <= rows | named
    assert {(each.state, each.reason) for each in lines} <= {(State.MISSED, Reason.SERVICE_OUTAGE)}
    assert sorted({*stage.endpoint.planned}) == sorted(stage.endpoint.planned)
    lived_on(stage, planned)


def test_a_chain_that_was_found_late_drops_nothing_of_a_plan_that_follows_it(stage):
    planned = made(stage, {"every": "PT1H", "align": "actual_start"}, "sap")
    (first,) = [stage.stored(planned).next_run_at]
    time_goes_by(stage, first + 5 * MINUTE, sweeping=False)
    time_goes_by(stage, first + 7 * MINUTE)
    begun = len(stage.endpoint.planned)

    stage.change(planned, timings=[{"cron": "* * * * *"}])
    time_goes_by(stage, first + 17 * MINUTE)

    assert len(stage.endpoint.planned) - begun == 10
    lived_on(stage, planned)


# A change


@pytest.mark.parametrize(
    ("policy", "more", "ran"),
    [
        ("sap", {}, 1),
        ("latest", {}, 1),
        ("skip", {}, 0),
        ("all", {"maxLatenessSeconds": 600}, 9),
        ("skip", {"maxLatenessSeconds": 600}, 0),
    ],
)
@pytest.mark.parametrize("change", ["timing", "off", "off and on", "pause"])
def test_a_change_during_an_outage_treats_missed_occurrences_by_the_policy(stage, policy, more, ran, change):
    """The tick is away for 16 hours; an operator changes the job before it is back."""
    planned = made(stage, {"cron": "* * * * *"}, policy, **more)
    time_goes_by(stage, NOON + 2 * MINUTE)
    time_goes_by(stage, NOON + 960 * MINUTE, sweeping=False)
    changed_at = stage.clock.now()

    if change == "timing":
        stage.change(planned, timings=[{"cron": "0 3 * * *"}])
    elif change == "pause":
        stage.set_state(planned, pause=Pause(changed_at))
    else:
        stage.set_state(planned, active=False)
        if change == "off and on":
            stage.set_state(planned, active=True)
    time_goes_by(stage, changed_at + 10 * SECOND)
    time_goes_by(stage, changed_at + 3 * MINUTE)

    late = [at for at in stage.endpoint.planned if NOON + 6 * MINUTE < at <= changed_at - 2 * MINUTE]
    assert len(late) == (0 if change in {"off", "pause"} else ran)
    reasons = {run.reason for run in stage.runs(planned) if run.range_count is not None}
    assert reasons & {Reason.SERVICE_OUTAGE, Reason.MAX_LATENESS}
    lived_on(stage, planned)


def test_a_job_can_be_stopped_when_one_change_cannot_send_all_missed_occurrences(stage):
    planned = made(stage, {"every": "PT1S"}, "sap")
    time_goes_by(stage, NOON + 1_300 * SECOND, sweeping=False)

    stage.set_state(planned, active=False)

    assert stage.stored(planned).state is ScheduleState.INACTIVE
    time_goes_by(stage, stage.clock.now() + 5 * MINUTE)
    exact(stage, planned)


@pytest.mark.parametrize("policy", ["sap", "latest"])
def test_late_messages_of_an_old_plan_are_judged_by_that_plan(stage, policy):
    planned = made(stage, {"cron": "* * * * *"}, policy)
    time_goes_by(stage, NOON + 10 * MINUTE + 30 * SECOND, executing=False)
    stage.change(planned, timings=[{"cron": "0 3 * * *"}])

    time_goes_by(stage, NOON + 35 * MINUTE, executing=False)
    time_goes_by(stage, stage.clock.now() + 2 * MINUTE)

    assert stage.endpoint.planned == minutes(10)
    lived_on(stage, planned)


# A missed occurrence next to a fresh one


@pytest.mark.parametrize("policy", ["sap", "latest"])
def test_a_single_missed_occurrence_runs_even_if_a_fresh_one_is_due(stage, policy):
    """More than one must be older than two minutes before the policy decides."""
    planned = made(stage, {"every": "PT21M"}, policy)
    first = stage.stored(planned).next_run_at

    time_goes_by(stage, first + 22 * MINUTE, sweeping=False)
    time_goes_by(stage, stage.clock.now() + 30 * SECOND)

    assert stage.endpoint.planned == [first, first + 21 * MINUTE]


def test_a_single_missed_occurrence_is_omitted_if_the_policy_runs_none(stage):
    planned = made(stage, {"every": "PT21M"}, "skip")
    first = stage.stored(planned).next_run_at

    time_goes_by(stage, first + 22 * MINUTE, sweeping=False)
    time_goes_by(stage, stage.clock.now() + 30 * SECOND)

    assert stage.endpoint.planned == [first + 21 * MINUTE]


# Very late


@pytest.mark.parametrize(
    ("timing", "policy", "ran"), [({"cron": "0 3 * * *"}, "all", 5), ({"cron": "0 3 2 * *"}, "sap", 1)]
)
def test_an_occurrence_missed_for_over_four_days_still_runs(stage, timing, policy, ran):
    """Only a message that is four days old itself is not acted on."""
    planned = made(stage, timing, policy)

    stage.clock.advance(timedelta(days=5, hours=4).total_seconds())
    time_goes_by(stage, stage.clock.now() + 5 * MINUTE)

    assert len(stage.endpoint.planned) == ran
    assert {run.reason for run in stage.runs(planned)} == {Reason.LATE}


# Two outages, with messages from before the first that nobody has taken yet


@pytest.mark.parametrize("rest", [2, 70])
@pytest.mark.parametrize("policy", ["sap", "latest", "skip", "all"])
def test_messages_from_before_two_outages_are_reported_once(stage, policy, rest):
    """rest: minutes between the two in which the sweeper works, and the executors do not."""
    planned = made(stage, {"cron": "* * * * *"}, policy)

    for _ in range(2):
        stage.pass_time(3_700)
        time_goes_by(stage, stage.clock.now() + rest * MINUTE, executing=False)
    time_goes_by(stage, stage.clock.now() + 5 * MINUTE)

    assert told(stage, planned) == (stage.clock.now() - NOON) // MINUTE
    lived_on(stage, planned)


def test_a_dead_letter_from_before_two_outages_is_reported_once(stage):
    planned = made(stage, {"cron": "* * * * *"}, "sap")
    sent_at_creation = stage.sqs.bodies(URLS[Lane.FAST])
    for _ in range(2):
        stage.pass_time(3_700)
        stage.tick()

    for body in sent_at_creation:
        stage.sqs.send_message(QueueUrl=DEAD, MessageBody=body)

    assert stage.deliver_dead() == len(sent_at_creation) == 3
    assert all(run.range_count for run in stage.runs(planned))


@pytest.mark.parametrize("policy", ["sap", "latest"])
@pytest.mark.parametrize("change", [False, True], ids=["a tick", "a change"])
def test_one_run_is_sent_for_all_missed_occurrences_even_if_the_first_tick_was_interrupted(stage, policy, change):
    planned = made(stage, {"cron": "* * * * *"}, policy)
    stage.pass_time(3_700)
    with pytest.raises(Crash), stage.taps.once("dynamodb.TransactWriteItems", crash_before):
        stage.tick()
    stage.pass_time(90)

    if change:
        stage.change(planned, name="another")
    time_goes_by(stage, stage.clock.now() + 5 * MINUTE)

    assert told(stage, planned) == (stage.clock.now() - NOON) // MINUTE
    lived_on(stage, planned)


def test_messages_of_an_interrupted_sweep_do_not_run_after_omission_as_disabled(stage):
    planned = made(stage, {"cron": "* * * * *"}, "sap")
    stage.pass_time(3_700)
    with pytest.raises(Crash), stage.taps.once("dynamodb.TransactWriteItems", crash_before):
        stage.tick()

    tenancy.switch_tenant(stage.world, TENANT, on=False)
    tenancy.switch_tenant(stage.world, TENANT, on=True)
    stage.tick()
    stage.run(300, most=1)

    assert told(stage, planned) == (stage.clock.now() - NOON) // MINUTE
    lived_on(stage, planned)
