"""Weeks without an audit: nothing that may have run is called again, and every total still ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from sweephand.domain.collection import Retention
from sweephand.domain.instants import epoch_s, text
from sweephand.domain.job import DEFAULT_COLLECTION, Pause
from sweephand.domain.run import FAILED, Kind, Reason, Run, State
from sweephand.domain.schedule import Lane, ScheduleState
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.tenants import tenancy
from sweephand.server.messaging.run_queue import Delivery
from sweephand.server.store.runs import ledger
from tests.support.endpoint import WRONG
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, conflict, crash_after, crash_before
from tests.unit.server.flow.common import DAY, MINUTE, NOON, SECOND

DAILY = {"cron": "5 12 * * *"}
TIMINGS: dict[str, dict[str, object]] = {
    "daily": DAILY,
    "several a day": {"cron": "1,3,5,7 12 * * *"},
    "weekly": {"cron": "5 12 * * 3"},
    "in steps": {"every": "P1D"},
    "with a count": {"cron": "5 12 * * *", "count": 70},
    "with jitter": {"cron": "1 12 * * *", "jitterSeconds": 60},
    "from the actual start": {"every": "P1D", "align": "actual_start"},
    "other zone": {"cron": "5 13 * * *", "timezone": "Europe/Berlin"},
}


def expire(stage: Stage) -> None:
    """Deletes what its retention is over for, as DynamoDB does."""
    now = epoch_s(stage.clock.now())
    with stage.untapped():
        for item in stage.items():
            if int(item.get("expires_at", {"N": "99999999999"})["N"]) <= now:
                stage.world.table.delete(item["pk"]["S"], item["sk"]["S"])


def live(stage: Stage, days: int, *, audited: bool = False, minutes: int = 8) -> None:
    """Lets days go by, of which the minutes after noon matter. Rows expire; nothing else happens for the rest."""
    for _ in range(days):
        now = stage.clock.now()
        if now > NOON + MINUTE:
            stage.pass_time(((now + DAY).replace(hour=11, minute=59, second=30) - now).total_seconds())
        stage.run(60 * minutes)
        if audited:
            audit(stage)
        expire(stage)


def away(stage: Stage, days: int) -> None:
    """Lets days go by for the table alone: the stack was deleted, and its queues with it."""
    for url in stage.world.settings.queue_urls.values():
        stage.sqs.purge(url)
    stage.pass_time(days * 86_400)
    expire(stage)


def audit(stage: Stage) -> Any:
    """Audits twice, and lets everything that was sent arrive."""
    stage.clock.advance(1_200)
    found = stage.audit()
    stage.run(900)
    stage.audit()
    stage.run(60)
    return found


def repeated(stage: Stage) -> dict[datetime, int]:
    """Returns the instants that were called more than once."""
    return {at: times for at, times in Counter(stage.endpoint.planned).items() if times > 1}


def ranges(stage: Stage, planned: Planned) -> list[Run]:
    return [run for run in stage.runs(planned) if run.range_count is not None]


def settled(stage: Stage, planned: Planned) -> None:
    """Checks that all that was planned has ended."""
    totals = stage.totals(planned)
    assert (totals.planned, totals.open) == (totals.ended, 0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("timing", TIMINGS.values(), ids=TIMINGS)
def test_no_target_is_called_again_after_60_days_without_an_audit(stage: Stage, timing: Mapping[str, object]) -> None:
    planned = stage.create(timing)
    live(stage, 60)
    calls = list(stage.endpoint.planned)
    assert len(calls) >= 8

    found = audit(stage)

    assert (found.lost, found.expired > 0) == (0, True)
    assert stage.endpoint.planned == calls
    (line,) = ranges(stage, planned)
    assert (line.state, line.reason, line.range_count) == (State.EXPIRED, Reason.RETENTION, found.expired)
    assert line.planned_at <= (line.range_until or NOON) < stage.clock.now() - 14 * DAY
    assert stage.totals(planned).planned == stage.totals(planned).succeeded == len(calls)
    settled(stage, planned)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("days", [10, 18, 30, 60])
@pytest.mark.parametrize("before", [3, 20])
def test_a_deleted_stack_that_is_restored_calls_nothing_again(stage: Stage, before: int, days: int) -> None:
    planned = stage.create(DAILY)
    live(stage, before, audited=before > 10)
    away(stage, days)

    stage.run(600)
    audit(stage)

    assert repeated(stage) == {}
    settled(stage, planned)
    live(stage, 3, audited=True)
    assert audit(stage).expired == 0
    settled(stage, planned)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("days", [4, 14, 16, 25, 40, 60])
def test_a_disabled_audit_rule_repeats_nothing_once_it_is_enabled(stage: Stage, days: int) -> None:
    planned = stage.create(DAILY)
    live(stage, 20, audited=True)
    live(stage, days)
    calls = list(stage.endpoint.planned)

    found = audit(stage)

    assert found.lost == 0
    assert stage.endpoint.planned == calls
    assert stage.totals(planned).ended == len(calls)
    settled(stage, planned)


def lost(stage: Stage, planned: Planned) -> None:
    """Loses the message of the next occurrence with its queue."""
    stage.pass_time(86_400 - 600)
    while stage.stored(planned).next_run_at == (before := stage.stored(planned).next_run_at):
        stage.clock.advance(60)
        stage.tick()
        if stage.stored(planned).next_run_at != before:
            break
    stage.sqs.purge(stage.world.settings.queue_urls[Lane.FAST])


@pytest.mark.parametrize(
    ("days", "end"), [(2, None), (6, Reason.MAX_AGE), (12, Reason.MAX_AGE), (30, Reason.RETENTION)]
)
def test_a_series_with_a_count_completes_although_one_of_its_messages_was_lost(
    stage: Stage, days: int, end: Reason | None
) -> None:
    planned = stage.create({**DAILY, "count": 3})
    live(stage, 1)
    lost(stage, planned)
    live(stage, days)
    assert (len(stage.endpoint.planned), stage.stored(planned).state) == (2, ScheduleState.ENDING)

    found = audit(stage)

    assert len(stage.endpoint.planned) == (3 if end is None else 2)
    assert (found.lost, [line.reason for line in ranges(stage, planned)]) == (end is None, [end] if end else [])
    assert stage.stored(planned).state is ScheduleState.COMPLETED
    settled(stage, planned)


@pytest.mark.parametrize("run_days", [15, 30, 400])
@pytest.mark.parametrize("raised", [False, True])
def test_each_retention_keeps_what_has_run_from_running_again(stage: Stage, run_days: int, *, raised: bool) -> None:
    """A retention that was raised on the last day proves nothing about the days before."""
    planned = stage.create(DAILY)
    if raised:
        live(stage, 59)
    keep(stage, run_days)
    live(stage, 1 if raised else 60)
    calls = list(stage.endpoint.planned)
    kept = sum(run.range_count is None for run in stage.runs(planned))

    found = audit(stage)

    assert (found.lost, found.expired) == (0, len(calls) - kept)
    assert stage.endpoint.planned == calls
    settled(stage, planned)


def keep(stage: Stage, days: int) -> None:
    retention = Retention(run_days=days)
    tenancy.change_collection(
        stage.world, TENANT, DEFAULT_COLLECTION, lambda there: replace(there, retention=retention), None
    )


POLICIES: dict[str, dict[str, object]] = {
    "one at a time": {"overlap": "skip"},
    "queued": {"overlap": "queue_one"},
    "replaced": {"overlap": "replace"},
    "latest": {"misfire": {"type": "latest"}},
    "all": {"misfire": {"type": "all"}},
    "none": {"misfire": {"type": "skip"}},
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("policies", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("outage_after", [3, 18])
def test_ranges_and_slots_that_have_expired_bring_nothing_back(
    stage: Stage, policies: dict[str, object], outage_after: int
) -> None:
    planned = stage.create(DAILY, policies=policies)
    live(stage, outage_after)
    away(stage, 3)
    live(stage, 38 - outage_after)
    calls, before = list(stage.endpoint.planned), stage.totals(planned)

    found = audit(stage)

    assert (found.lost, stage.endpoint.planned) == (0, calls)
    assert repeated(stage) == {}
    after = stage.totals(planned)
    assert (after.planned, after.missed) == (before.planned, before.missed)
    settled(stage, planned)


def test_plans_that_have_expired_bring_nothing_back(stage: Stage) -> None:
    planned = stage.create(DAILY)
    for minute in (3, 4, 6, 7):
        live(stage, 12)
        planned = stage.change(planned, timings=[{"cron": f"{minute} 12 * * *"}])
    live(stage, 2)
    calls = list(stage.endpoint.planned)

    found = audit(stage)

    assert (found.lost, stage.endpoint.planned) == (0, calls)
    assert stage.totals(planned).ended == len(calls)
    settled(stage, planned)


@pytest.mark.parametrize("off", [{"active": False}, {"pause": Pause(NOON)}])
@pytest.mark.parametrize("days", [2, 20, 60])
def test_a_schedule_that_was_switched_off_is_settled_without_a_call(stage: Stage, off: Any, days: int) -> None:
    planned = stage.create(DAILY)
    live(stage, 20)
    stage.set_state(planned, **off)
    live(stage, days)
    calls = list(stage.endpoint.planned)

    audit(stage)

    assert stage.endpoint.planned == calls
    assert not [item for item in stage.items() if "schedule_id" in item]
    settled(stage, planned)


def test_a_series_that_stopped_weeks_ago_goes_on_without_a_repetition(stage: Stage) -> None:
    planned = stage.create(DAILY, policies={"misfire": {"type": "all"}})
    live(stage, 20)
    stage.edit_schedule(planned, next_run_at=None)
    live(stage, 20)

    assert stage.audit().stopped == 1
    live(stage, 2)
    audit(stage)

    assert repeated(stage) == {}
    settled(stage, planned)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("days", [18, 40])
def test_what_an_interrupted_sweep_had_sent_is_not_sent_by_the_catch_up(stage: Stage, days: int) -> None:
    """The tick that sent them died before it advanced the row, and the stack with it."""
    planned = stage.create({"cron": "* 12 * * *"}, policies={"misfire": {"type": "all"}})
    live(stage, 1)
    before = stage.stored(planned)
    stage.run(240)
    stage.edit_schedule(planned, next_run_at={"N": str(epoch_s(before.next_run_at or NOON))})
    called = len(stage.endpoint.planned)
    away(stage, days)

    stage.run(7_200)
    audit(stage)

    assert repeated(stage) == {}
    assert len(stage.endpoint.planned) > called
    settled(stage, planned)


@pytest.mark.parametrize("days", [1, 12, 30])
def test_a_pointer_that_the_audit_sent_does_not_act_days_later(stage: Stage, days: int) -> None:
    planned = stage.create(DAILY)
    live(stage, 1)
    lost(stage, planned)
    stage.pass_time(3 * 86_400)
    assert stage.audit().lost == 1

    stage.pass_time(days * 86_400)
    expire(stage)
    stage.run(60)

    assert (NOON + DAY + 5 * MINUTE in stage.endpoint.planned) is (days == 1)
    audit(stage)
    settled(stage, planned)


def test_effects_that_are_repeated_do_not_repeat_a_run_whose_row_has_expired(stage: Stage) -> None:
    planned = stage.create(DAILY)
    live(stage, 1)
    (run,) = stage.runs(planned)
    stage.world.queue.send_one(Delivery(ledger.pointer_to(run), stage.clock.now() + 60 * SECOND, Lane.FAST))

    stage.world.table.delete(*ledger.key_of(run))
    stage.run(120)

    assert len(stage.endpoint.planned) == 1


@pytest.mark.parametrize("days", [2, 20])
def test_hooks_of_a_run_that_ended_weeks_ago_are_not_started_again(stage: Stage, days: int) -> None:
    keep(stage, 100)
    stage.endpoint.script = [WRONG]
    planned = stage.create(DAILY, error_action=stage.action(url="https://example.org/mend"))
    live(stage, 1)
    reaction = next(run for run in stage.runs(planned) if run.kind is Kind.ERROR_ACTION)
    stage.pass_time(days * 86_400)
    stage.world.table.delete(*ledger.key_of(reaction))  # as if its own retention were shorter
    calls = len(stage.endpoint.received)

    (run,) = stage.runs(planned, Kind.SCHEDULED)
    stage.world.queue.send_one(Delivery(ledger.pointer_to(run), stage.clock.now(), Lane.FAST))
    stage.deliver_all()

    assert len(stage.endpoint.received) - calls == (1 if days < 15 else 0)


def test_a_schedule_deleted_after_weeks_gets_no_rows_for_what_has_run(stage: Stage) -> None:
    planned = stage.create(DAILY)
    live(stage, 40)
    before = {run.uuid for run in stage.runs(planned)}

    stage.delete(planned)
    stage.run(3_600)

    assert {run.uuid for run in stage.runs(planned)} == before


def test_a_failed_run_that_has_expired_leaves_its_schedule_faulted(stage: Stage) -> None:
    stage.endpoint.answer = WRONG
    planned = stage.create({"at": text(NOON + 5 * MINUTE)})
    with suppress(Crash), stage.taps.once("dynamodb.TransactWriteItems", crash_after):
        stage.run(302)
    assert stage.only_run(planned).state in FAILED
    away(stage, 40)
    assert stage.runs(planned) == []
    stage.run(1_800)

    audit(stage)

    assert stage.stored(planned).state is ScheduleState.FAULTED
    settled(stage, planned)


@pytest.mark.parametrize("fault", [crash_before, crash_after, answer_lost, conflict])
@pytest.mark.parametrize("write", [0, 1])
def test_writing_off_is_safe_to_repeat(stage: Stage, write: int, fault: Any) -> None:
    planned = stage.create(DAILY)
    live(stage, 20)
    lost(stage, planned)
    live(stage, 7)
    totals = stage.totals(planned)

    with suppress(Crash), stage.taps.once("dynamodb.TransactWriteItems", fault, skip=write):
        stage.audit()
    audit(stage)

    assert [line.range_count for line in ranges(stage, planned)].count(1) == 1
    assert stage.totals(planned).missed == 1
    assert stage.totals(planned).planned == totals.planned - 1
    settled(stage, planned)


def test_two_audits_at_once_write_off_once(stage: Stage) -> None:
    planned = stage.create(DAILY)
    live(stage, 20)
    lost(stage, planned)
    live(stage, 7)

    def raced(_passing: Any, act: Any) -> Any:
        fault, stage.taps.fault = stage.taps.fault, None
        stage.audit()
        stage.taps.fault = fault
        return act()

    with stage.taps.once("dynamodb.TransactWriteItems", raced):
        stage.audit()
    audit(stage)

    assert stage.totals(planned).missed == 1
    settled(stage, planned)
