"""Occurrences that were found late: what runs, how fast, and how the rest stands. test_outages.py has a row for each
policy.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from sweephand.domain.job import Pause
from sweephand.domain.message import decode
from sweephand.domain.run import Kind, Reason, Run, State
from sweephand.domain.schedule import Lane
from sweephand.testing.sources import START
from tests.support.stage import Stage, stage
from tests.support.taps import Crash, crash_before

MINUTE = 60
EVERY_MINUTE = {"every": "PT1M"}
LATEST = {"misfire": {"type": "latest"}}


def planned_runs(scene: Stage, planned) -> list[Run]:
    return [run for run in scene.runs(planned, Kind.SCHEDULED) if run.range_count is None]


def ranges(scene: Stage, planned) -> list[Run]:
    return [run for run in scene.runs(planned, Kind.SCHEDULED) if run.range_count is not None]


def settled(scene: Stage, planned) -> None:
    """Checks that nothing is open but what lies ahead, and that the totals equal a count of the rows."""
    assert scene.totals(planned).ended == scene.fold(planned).ended
    ahead = [run for run in planned_runs(scene, planned) if not run.finished]
    assert not ahead


def unsent_at(scene: Stage, planned) -> timedelta:
    """Returns how long ago the oldest unsent occurrence was due."""
    at = scene.stored(planned).next_run_at
    assert at is not None
    return scene.clock.now() - at


def until_oldest_is(scene: Stage, planned, age_s: int) -> None:
    """Lets time go by without a tick until the oldest unsent occurrence is exactly this old."""
    scene.pass_time((timedelta(seconds=age_s) - unsent_at(scene, planned)).total_seconds())


def test_latest_runs_only_the_last_occurrence_even_after_five_minutes() -> None:
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE, policies=LATEST)
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 5 * MINUTE)

        scene.run(10 * MINUTE)

        (line,) = ranges(scene, planned)
        assert line.range_count == 3
        settled(scene, planned)


def test_fresh_occurrences_do_not_wait_for_missed_ones() -> None:
    with stage() as scene:
        planned = scene.create({"every": "PT10S"})
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 19 * MINUTE)
        recovered_at = scene.clock.now()

        scene.run(5 * MINUTE)

        fresh = [run for run in planned_runs(scene, planned) if run.planned_at > recovered_at + timedelta(seconds=60)]
        assert fresh
        assert max(run.lateness_ms or 0 for run in fresh) <= 1_000
        settled(scene, planned)


def test_a_catch_up_is_paced_by_its_rate() -> None:
    with stage() as scene:
        policies = {"misfire": {"type": "sap", "ratePerMinute": 6}}
        planned = scene.create({"every": "PT30S"}, policies=policies)
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 10 * MINUTE)
        first_missed = scene.stored(planned).next_run_at
        last_missed = scene.clock.now() - timedelta(minutes=2)

        scene.run(10 * MINUTE)

        late = [run for run in planned_runs(scene, planned) if first_missed <= run.planned_at <= last_missed]
        starts = sorted(run.started_at for run in late if run.started_at)
        assert len(starts) == 17
        assert starts[-1] - starts[0] >= timedelta(seconds=150)
        settled(scene, planned)


def test_a_single_missed_occurrence_is_simply_sent() -> None:
    with stage() as scene:
        planned = scene.create({"every": "PT1H"})
        scene.run(58 * MINUTE)
        scene.pass_time(30 * MINUTE)

        scene.run(2 * MINUTE)

        (run,) = planned_runs(scene, planned)
        assert (run.state, run.reason) == (State.SUCCESS, Reason.LATE)
        assert ranges(scene, planned) == []


def test_a_split_whose_answer_was_lost_is_not_made_twice() -> None:
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE, policies=LATEST)
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 30 * MINUTE)

        scene.tick()
        scene.tick()
        scene.run(10 * MINUTE)

        assert len(ranges(scene, planned)) == 1
        settled(scene, planned)


def test_a_count_that_ends_during_the_outage_is_not_exceeded() -> None:
    with stage() as scene:
        planned = scene.create({"every": "PT1M", "count": 10})
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 15 * MINUTE)

        scene.run(60 * MINUTE)

        assert len(planned_runs(scene, planned)) == 10
        assert scene.stored(planned).state.value == "COMPLETED"


def test_an_end_during_a_long_outage_completes_the_schedule_after_its_last_missed_run() -> None:
    with stage() as scene:
        end = (scene.clock.now() + timedelta(minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        planned = scene.create({"every": "PT1M", "endTime": end})
        scene.run(3 * MINUTE)
        until_oldest_is(scene, planned, 90 * MINUTE)

        scene.run(60 * MINUTE)

        (line,) = ranges(scene, planned)
        assert line.range_count == scene.totals(planned).missed
        assert scene.stored(planned).state.value == "COMPLETED"
        settled(scene, planned)


@pytest.mark.parametrize("off", [{"active": False}, {"pause": Pause(since=START)}])
def test_occurrences_due_while_a_schedule_was_off_are_one_line_when_it_continues(off: dict[str, object]) -> None:
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE)
        scene.run(150)
        scene.set_state(planned, **off)
        scene.run(10 * MINUTE)
        scene.set_state(planned, active=True, pause=None)
        scene.run(3 * MINUTE)

        (line,) = ranges(scene, planned)
        assert (line.state, line.reason) == (State.SKIPPED, Reason.PAUSED if "pause" in off else Reason.DISABLED)
        ran = {run.planned_at for run in planned_runs(scene, planned) if run.state is State.SUCCESS}
        skipped = {line.planned_at + n * timedelta(minutes=1) for n in range(line.range_count or 0)}
        assert max(skipped) == line.range_until
        assert not ran & skipped
        every = sorted(ran | skipped)
        assert every == [every[0] + n * timedelta(minutes=1) for n in range(len(every))]
        settled(scene, planned)


# The greatest lateness


def outage(scene: Stage, policy: dict[str, object], age_s: int) -> tuple[object, list, list]:
    """Takes the tick away until the oldest unsent occurrence is `age_s` old. Returns those older than two minutes."""
    planned = scene.create(EVERY_MINUTE, policies={"misfire": {"ratePerMinute": 6_000, **policy}})
    scene.run(3 * MINUTE)
    first = scene.stored(planned).next_run_at
    assert first is not None
    until_oldest_is(scene, planned, age_s)
    limit = scene.clock.now() - timedelta(minutes=2)
    missed = [first + n * timedelta(minutes=1) for n in range(age_s // 60 + 1)]
    scene.run(5 * MINUTE)
    ran = {run.planned_at for run in planned_runs(scene, planned)}
    older = [at for at in missed if at <= limit]
    assert ran >= {at for at in missed if at > limit}
    return planned, older, [at for at in older if at in ran]


@pytest.mark.parametrize(
    ("policy", "kept"),
    [("all", slice(None)), ("sap", slice(None)), ("latest", slice(-1, None)), ("skip", slice(0))],
)
def test_runs_over_the_greatest_lateness_expire_under_every_policy(policy: str, kept: slice) -> None:
    with stage() as scene:
        planned, older, ran = outage(scene, {"type": policy, "maxLatenessSeconds": 360}, 900)

        young = [at for at in older if older[-1] - at <= timedelta(seconds=240)]
        assert 0 < len(young) < len(older)
        assert ran == young[kept]
        expired, *missed = sorted(ranges(scene, planned), key=lambda line: line.planned_at)
        assert (expired.state, expired.reason) == (State.EXPIRED, Reason.MAX_LATENESS)
        assert (expired.planned_at, expired.range_count) == (older[0], len(older) - len(young))
        assert expired.range_until is not None
        assert expired.range_until < young[0]
        assert [line.state for line in missed] == ([] if len(ran) == len(young) else [State.MISSED])
        assert scene.totals(planned).missed == len(older) - len(ran)
        settled(scene, planned)


def test_nothing_runs_if_all_occurrences_are_too_late() -> None:
    with stage() as scene:
        planned, older, ran = outage(scene, {"type": "latest", "maxLatenessSeconds": 60}, 900)

        assert ran == []
        (line,) = ranges(scene, planned)
        assert (line.state, line.range_count) == (State.EXPIRED, len(older))


# The executor asks the same


def executors_away(scene: Stage, policy: dict[str, object], seconds: int, timing: dict[str, object]) -> list[Run]:
    """Ticks go on, nothing is worked on; then everything is."""
    planned = scene.create(timing, policies={"misfire": policy})
    for _ in range(seconds // 60):
        scene.clock.advance(60)
        scene.tick()
    scene.run(60)
    return planned_runs(scene, planned)


@pytest.mark.parametrize(
    ("policy", "ended"),
    [
        ({"type": "all"}, {State.SUCCESS}),
        ({"type": "skip"}, {State.MISSED}),
        ({"type": "all", "maxLatenessSeconds": 600}, {State.EXPIRED}),
    ],
)
def test_a_late_message_is_judged_by_the_same_policy(policy: dict[str, object], ended: set[State]) -> None:
    with stage() as scene:
        runs = executors_away(scene, policy, 3_600, {"every": "PT1M"})

        old = [run for run in runs if run.planned_at < scene.clock.now() - timedelta(minutes=15)]
        assert old
        assert {run.state for run in old} == ended
        fresh = [run for run in runs if run.planned_at > scene.clock.now() - timedelta(seconds=90)]
        assert {run.state for run in fresh} == {State.SUCCESS}


def test_a_run_that_the_executor_finds_too_late_counts_as_missed() -> None:
    with stage() as scene:
        planned = scene.create({"every": "PT1M"}, policies={"misfire": {"type": "all", "maxLatenessSeconds": 600}})
        for _ in range(60):
            scene.clock.advance(60)
            scene.tick()
        scene.run(60)

        expired = [run for run in planned_runs(scene, planned) if run.state is State.EXPIRED]
        assert len(expired) > 40
        totals = scene.totals(planned)
        assert (totals.missed_sent, totals.skipped) == (len(expired), 0)


def test_the_only_occurrence_runs_late_under_latest_but_not_under_skip() -> None:
    for policy, state in (("latest", State.SUCCESS), ("skip", State.MISSED)):
        with stage() as scene:
            at = (scene.clock.now() + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
            (run,) = executors_away(scene, {"type": policy}, 600, {"at": at})
            assert run.state is state


def test_a_greatest_lateness_under_two_minutes_is_respected() -> None:
    with stage() as scene:
        at = (scene.clock.now() + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        policy = {"type": "sap", "maxLatenessSeconds": 30}
        (run,) = executors_away(scene, policy, 120, {"at": at})

        assert (run.state, run.reason) == (State.EXPIRED, Reason.MAX_LATENESS)


# Sentences of the protocol


@pytest.mark.parametrize("rate", [1, 7, 60, 6_000])
def test_each_minute_of_a_catch_up_sends_exactly_its_rate_evenly(rate: int) -> None:
    with stage() as scene:
        planned = scene.create({"every": "PT5S"}, policies={"misfire": {"type": "all", "ratePerMinute": rate}})
        scene.tick()
        first = scene.stored(planned).next_run_at
        assert first is not None
        scene.pass_time(900)
        queue = scene.sqs._queues[scene.world.settings.queue_urls[Lane.FAST]]
        queue.messages.clear()
        last = scene.clock.now() - timedelta(minutes=2)
        left = (last - first) // timedelta(seconds=5) + 1
        scene.tick()  # the split
        for _ in range(2):
            scene.clock.advance(60)
            queue.messages.clear()
            scene.tick()

            sent = [message for message in queue.messages if decode(message.body).decided]
            assert len(sent) == min(rate, left)
            begin = scene.clock.now()
            for n, message in enumerate(sent):
                due = begin + n * timedelta(seconds=60) / rate
                assert timedelta(0) <= message.visible_at - due <= timedelta(seconds=1)
            left -= len(sent)


def test_a_policy_changed_after_the_split_does_not_change_the_decision() -> None:
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE, policies={"misfire": {"type": "all", "ratePerMinute": 1}})
        scene.run(3 * MINUTE)
        first = scene.stored(planned).next_run_at
        assert first is not None
        until_oldest_is(scene, planned, 15 * MINUTE)
        scene.tick()

        scene.change(planned, policies={"misfire": {"type": "skip"}})
        scene.run(30 * MINUTE)

        assert ranges(scene, planned) == []
        assert {run.state for run in planned_runs(scene, planned) if run.planned_at >= first} == {State.SUCCESS}
        totals, fold = scene.totals(planned), scene.fold(planned)
        assert (totals.ended, totals.open) == (fold.ended, totals.planned - fold.ended)


def test_a_message_from_before_the_split_leaves_the_decision_to_it() -> None:
    """It was sent by a tick that died before it advanced: not decided, no row, at or before missed_to."""
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE, policies=LATEST)
        scene.run(3 * MINUTE)
        scene.clock.advance(60)
        with scene.taps.once("dynamodb.BatchExecuteStatement", crash_before), pytest.raises(Crash):
            scene.tick()
        scene.pass_time(3_600)
        scene.tick()
        scene.run(5 * MINUTE)

        (line,) = ranges(scene, planned)
        assert line.range_until is not None
        inside = [run for run in planned_runs(scene, planned) if line.planned_at <= run.planned_at <= line.range_until]
        assert inside == []
        assert scene.totals(planned).missed == line.range_count
        settled(scene, planned)


def test_a_run_that_exists_in_the_range_is_counted_by_the_split() -> None:
    """A tick died before it advanced, and its message ran."""
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE, policies=LATEST)
        scene.run(3 * MINUTE)
        scene.clock.advance(60)
        with scene.taps.once("dynamodb.BatchExecuteStatement", crash_before), pytest.raises(Crash):
            scene.tick()
        for _ in range(3):
            scene.clock.advance(60)
            scene.deliver_all()
        scene.pass_time(3_600)
        scene.run(5 * MINUTE)

        (line,) = ranges(scene, planned)
        assert line.range_until is not None
        inside = [run for run in planned_runs(scene, planned) if line.planned_at <= run.planned_at <= line.range_until]
        assert inside
        whole = (line.range_until - line.planned_at) // timedelta(minutes=1) + 1
        assert line.range_count == whole - len(inside)
        totals, fold = scene.totals(planned), scene.fold(planned)
        assert totals.planned - totals.open == fold.ended
        settled(scene, planned)
        assert scene.audit().corrected == 0


def test_occurrences_sent_before_a_full_outage_are_judged_and_not_dropped_by_the_split() -> None:
    """It was advanced over, so it does not count as missed: without a row it would be lost until the audit."""
    with stage() as scene:
        planned = scene.create(EVERY_MINUTE, policies={"misfire": {"type": "all", "ratePerMinute": 6_000}})
        scene.tick()
        sent_to = scene.stored(planned).next_run_at
        assert sent_to is not None
        scene.pass_time(3_700)
        scene.tick()
        scene.run(5 * MINUTE)

        ran = {run.planned_at for run in planned_runs(scene, planned)}
        before = {at for at in (START + n * timedelta(minutes=1) for n in range(1, 3)) if at < sent_to}
        assert len([at for at in ran if at < sent_to]) == len(before) > 0
        settled(scene, planned)
        assert scene.totals(planned).planned - scene.totals(planned).open == scene.fold(planned).ended
        assert scene.audit().lost == 0
