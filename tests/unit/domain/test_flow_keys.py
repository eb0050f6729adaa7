"""The turnstile of a flow key: pure rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.flow_keys import flow_keys
from sweephand.domain.flow_keys.flow_keys import (
    AHEAD,
    Enter,
    Go,
    Holds,
    Join,
    Leave,
    Place,
    Rate,
    Stay,
    Wait,
    Why,
    answer,
)
from tests.unit.domain.turnstile import LEASE, NOON, SECOND, enter, turnstile

# Places


def test_the_limit_of_runs_pass_and_the_next_waits_for_a_place():
    there = turnstile(parallelism=2)
    there, first = enter(there, "a")
    there, second = enter(there, "b")

    same, third = enter(there, "c")

    assert (first, second, third) == (Go(NOON), Go(NOON), Wait(Why.PLACES))
    assert same == there


def test_a_place_is_free_when_the_lease_of_its_run_expires_and_not_before():
    there, _ = enter(turnstile(parallelism=1), "a")

    assert enter(there, "b", NOON + LEASE - SECOND)[1] == Wait(Why.PLACES)
    assert enter(there, "b", NOON + LEASE)[1] == Go(NOON + LEASE)


def test_a_repeated_claim_passes_again_in_the_same_place():
    there, _ = enter(turnstile(parallelism=1, rate=Rate(1, 3_600)), "a")

    again, (said,) = answer(there, [Enter("a", NOON + LEASE)], NOON + SECOND)

    assert said == Go(NOON + SECOND)
    assert again == there


def test_a_run_that_passed_with_a_lost_answer_gets_the_same_turn():
    there, _ = enter(turnstile(parallelism=2, rate=Rate(1, 10)), "a")
    there, first = enter(there, "b", NOON + 8.5 * SECOND)

    _, again = answer(there, [Enter("b", NOON + 8.5 * SECOND + LEASE)], NOON + 8.6 * SECOND)

    assert [first] == again == [Go(NOON + 9 * SECOND)]


@pytest.mark.parametrize("holds", [Holds.CALL, Holds.RESULT])
def test_a_run_with_a_place_of_an_earlier_attempt_takes_its_own_turn(holds):
    own = Place(NOON + 5 * SECOND, holds)
    there = replace(turnstile(parallelism=1, rate=Rate(1, 60)), places={"a": own}, next_at=NOON + 2 * SECOND)

    there, soon = enter(there, "a")
    _, later = enter(replace(there, places={"a": own}), "a", NOON + SECOND)

    assert (soon, later) == (Go(NOON + SECOND), Wait(Why.RATE))
    assert there.next_at == NOON + 62 * SECOND


def test_a_run_that_waits_for_its_result_keeps_its_place_until_then():
    there, _ = enter(turnstile(parallelism=1), "a")
    due = NOON + timedelta(hours=1)

    there, _ = answer(there, [Stay("a", due)], NOON + SECOND)

    assert there.places == {"a": Place(due, Holds.RESULT)}
    assert enter(there, "b", NOON + 2 * LEASE)[1] == Wait(Why.PLACES)


@pytest.mark.parametrize(("holds", "own", "free"), [("w", True, True), ("w", False, False), ("r", False, True)])
def test_only_the_caller_returns_a_place_while_its_call_may_be_active(holds, own, free):
    there = replace(turnstile(parallelism=1), places={"a": Place(NOON + LEASE, Holds(holds))})

    after, _ = answer(there, [Leave("a", own=own)], NOON)

    assert (after.running(NOON) == 0) is free


def test_a_paused_key_admits_no_run_not_even_a_called_one():
    there = replace(turnstile(parallelism=1, paused=True), places={"a": Place(NOON + LEASE, Holds.CALLED)})

    assert enter(there, "a", order="1")[1] == Wait(Why.PAUSED)


# The rate


def test_calls_are_spaced_by_the_rate():
    there = turnstile(rate=Rate(6, 60))
    there, first = enter(there, "a")

    _, too_early = enter(there, "b", NOON + 7.9 * SECOND)
    there, second = enter(there, "b", NOON + 9 * SECOND)

    assert (first, too_early, second) == (Go(NOON), Wait(Why.RATE), Go(NOON + 9 * SECOND))
    assert there.next_at == NOON + 20 * SECOND  # what came early is taken from what follows


def test_a_wait_of_at_most_a_second_is_slept():
    there, _ = enter(turnstile(rate=Rate(1, 10)), "a")

    assert enter(there, "b", NOON + 8.2 * SECOND)[1] == Go(NOON + 9 * SECOND)


@given(
    limit=st.integers(1, 50),
    period=st.integers(1, 100),
    steps=st.lists(st.integers(0, 3_000), min_size=1, max_size=80),
)
def test_no_window_holds_more_calls_than_the_rate_plus_one_second(limit, period, steps):
    rate = Rate(limit, period)
    there, at, begun = turnstile(rate=rate), NOON, []
    for n, step in enumerate(steps):
        at += timedelta(milliseconds=step)
        there, said = enter(there, f"r{n}", at)
        if isinstance(said, Go):
            assert at <= said.at <= at + flow_keys.NAP
            begun.append(said.at)

    for i, first in enumerate(begun):
        for j in range(i, len(begun)):
            window = begun[j] - first
            assert j - i + 1 <= (window + flow_keys.TOGETHER) / rate.interval + 1 + 1e-6


# The line


def test_a_run_that_arrives_while_others_wait_joins_the_end_of_the_line():
    there, _ = answer(turnstile(parallelism=2), [Join("who-9", "9")], NOON)

    assert enter(there, "new")[1] == Wait(Why.LINE)
    assert enter(there, "not yet called", order="1")[1] == Wait(Why.LINE)
    assert enter(replace(there, called="1"), "called", order="1")[1] == Go(NOON)


def test_the_first_run_in_the_line_requests_a_check_and_sets_the_wake_row():
    there, (look,) = answer(turnstile(parallelism=1), [Join("who-9", "9")], NOON)

    assert look is True
    assert there.wake_at == NOON + flow_keys.RECHECK_AFTER


def test_joining_wakes_the_line_only_if_a_place_or_a_turn_is_near():
    there, _ = enter(turnstile(parallelism=1), "a")
    there, _ = answer(there, [Join("who-9", "9")], NOON)
    assert answer(there, [Join("who-9", "9")], NOON)[1] == [False]
    assert answer(there, [Join("who-9", "9")], NOON + LEASE)[1] == [True]

    rated = replace(turnstile(rate=Rate(1, 60)), wake_at=NOON + 60 * SECOND, called_to=NOON + AHEAD + SECOND)
    assert answer(rated, [Join("who-9", "9")], NOON)[1] == [False]
    assert answer(replace(rated, called_to=NOON + AHEAD), [Join("who-9", "9")], NOON)[1] == [True]


def test_leaving_wakes_the_line_if_a_run_waits():
    there, _ = enter(turnstile(parallelism=1), "a")
    assert answer(there, [Leave("a", own=True)], NOON)[1] == [False]

    there, _ = answer(there, [Join("who-9", "9")], NOON)
    assert answer(there, [Leave("a", own=True)], NOON)[1] == [True]
