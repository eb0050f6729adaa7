"""The turnstile of a flow key, and who is called out of its line: pure rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain import flow_keys
from sweephand.domain.circuits import CircuitRule, Sign, sign_of
from sweephand.domain.flow_keys import (
    AHEAD,
    COMES_WITHIN,
    Enter,
    Go,
    Holds,
    Join,
    Leave,
    Line,
    Patience,
    Place,
    Rate,
    Stay,
    Terms,
    Turnstile,
    Wait,
    Waiting,
    Why,
    answer,
    call,
)
from sweephand.domain.run import Outcome, Reason, Verdict

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEASE = 25 * SECOND


def stile(**terms: object) -> Turnstile:
    return Turnstile("acme", "k", Terms(**terms))  # type: ignore[arg-type]


def enter(there: Turnstile, who: str, at: datetime = NOON, order: str = "") -> tuple[Turnstile, Go | Wait]:
    after, (said,) = answer(there, [Enter(who, at + LEASE, order)], at)
    assert isinstance(said, Go | Wait)
    return after, said


def waiting(*orders: str, target: str = "t") -> list[Waiting]:
    return [Waiting(order, f"who-{order}", target) for order in orders]


# Places


def test_so_many_pass_and_the_next_waits_for_a_place():
    there = stile(parallelism=2)
    there, first = enter(there, "a")
    there, second = enter(there, "b")

    same, third = enter(there, "c")

    assert (first, second, third) == (Go(NOON), Go(NOON), Wait(Why.PLACES))
    assert same == there


def test_a_place_is_free_when_the_lease_of_its_run_is_over_and_not_before():
    there, _ = enter(stile(parallelism=1), "a")

    assert enter(there, "b", NOON + LEASE - SECOND)[1] == Wait(Why.PLACES)
    assert enter(there, "b", NOON + LEASE)[1] == Go(NOON + LEASE)


def test_who_has_passed_in_the_same_claim_passes_again_in_the_same_place():
    there, _ = enter(stile(parallelism=1, rate=Rate(1, 3_600)), "a")

    again, (said,) = answer(there, [Enter("a", NOON + LEASE)], NOON + SECOND)

    assert said == Go(NOON + SECOND)
    assert again == there


def test_a_lost_answer_to_who_passed_gives_it_the_same_turn():
    there, _ = enter(stile(parallelism=2, rate=Rate(1, 10)), "a")
    there, first = enter(there, "b", NOON + 8.5 * SECOND)

    _, again = answer(there, [Enter("b", NOON + 8.5 * SECOND + LEASE)], NOON + 8.6 * SECOND)

    assert [first] == again == [Go(NOON + 9 * SECOND)]


@pytest.mark.parametrize("holds", [Holds.CALL, Holds.RESULT])
def test_who_holds_a_place_of_an_earlier_attempt_takes_a_turn_of_its_own(holds):
    own = Place(NOON + 5 * SECOND, holds)
    there = replace(stile(parallelism=1, rate=Rate(1, 60)), places={"a": own}, next_at=NOON + 2 * SECOND)

    there, soon = enter(there, "a")
    _, later = enter(replace(there, places={"a": own}), "a", NOON + SECOND)

    assert (soon, later) == (Go(NOON + SECOND), Wait(Why.RATE))
    assert there.next_at == NOON + 62 * SECOND


@pytest.mark.parametrize("holds", [Holds.CALL, Holds.RESULT])
def test_who_waits_with_a_place_of_an_earlier_attempt_is_called_into_it(holds):
    own = Place(NOON + 300 * SECOND, holds)
    there = replace(stile(parallelism=1, rate=Rate(1, 60)), places={"who-1": own}, wake_at=NOON)

    calls = call(there, Line(fresh=waiting("1", "2")), {}, NOON)

    assert [each.order for each in calls.called] == ["1"]
    assert calls.stile.places == {"who-1": own}
    assert enter(calls.stile, "who-1", order="1")[1] == Go(NOON)


def test_a_run_that_waits_for_its_result_keeps_its_place_until_then():
    there, _ = enter(stile(parallelism=1), "a")
    due = NOON + timedelta(hours=1)

    there, _ = answer(there, [Stay("a", due)], NOON + SECOND)

    assert there.places == {"a": Place(due, Holds.RESULT)}
    assert enter(there, "b", NOON + 2 * LEASE)[1] == Wait(Why.PLACES)


@pytest.mark.parametrize(("holds", "own", "free"), [("w", True, True), ("w", False, False), ("r", False, True)])
def test_only_who_makes_a_call_gives_its_place_back_while_it_may_be_under_way(holds, own, free):
    there = replace(stile(parallelism=1), places={"a": Place(NOON + LEASE, Holds(holds))})

    after, _ = answer(there, [Leave("a", own=own)], NOON)

    assert (after.running(NOON) == 0) is free


def test_a_key_that_is_paused_lets_nobody_pass_not_even_who_was_called():
    there = replace(stile(parallelism=1, paused=True), places={"a": Place(NOON + LEASE, Holds.CALLED)})

    assert enter(there, "a", order="1")[1] == Wait(Why.PAUSED)


# The rate


def test_calls_are_spaced_by_the_rate():
    there = stile(rate=Rate(6, 60))
    there, first = enter(there, "a")

    _, too_early = enter(there, "b", NOON + 7.9 * SECOND)
    there, second = enter(there, "b", NOON + 9 * SECOND)

    assert (first, too_early, second) == (Go(NOON), Wait(Why.RATE), Go(NOON + 9 * SECOND))
    assert there.next_at == NOON + 20 * SECOND  # what came early is taken from what follows


def test_a_wait_of_a_second_at_most_is_slept_through():
    there, _ = enter(stile(rate=Rate(1, 10)), "a")

    assert enter(there, "b", NOON + 8.2 * SECOND)[1] == Go(NOON + 9 * SECOND)


@given(
    limit=st.integers(1, 50),
    period=st.integers(1, 100),
    steps=st.lists(st.integers(0, 3_000), min_size=1, max_size=80),
)
def test_no_window_holds_more_calls_than_the_rate_and_a_second_s_worth(limit, period, steps):
    rate = Rate(limit, period)
    there, at, begun = stile(rate=rate), NOON, []
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


def test_who_comes_while_others_wait_stands_behind_them():
    there, _ = answer(stile(parallelism=2), [Join("who-9", "9")], NOON)

    assert enter(there, "new")[1] == Wait(Why.LINE)
    assert enter(there, "not yet called", order="1")[1] == Wait(Why.LINE)
    assert enter(replace(there, called="1"), "called", order="1")[1] == Go(NOON)


def test_the_first_in_the_line_has_it_looked_at_and_sets_its_wake():
    there, (look,) = answer(stile(parallelism=1), [Join("who-9", "9")], NOON)

    assert look is True
    assert there.wake_at == NOON + flow_keys.LOOKS_AGAIN


def test_who_joins_has_the_line_looked_at_only_where_there_is_a_place_or_a_turn_soon():
    there, _ = enter(stile(parallelism=1), "a")
    there, _ = answer(there, [Join("who-9", "9")], NOON)
    assert answer(there, [Join("who-9", "9")], NOON)[1] == [False]
    assert answer(there, [Join("who-9", "9")], NOON + LEASE)[1] == [True]

    rated = replace(stile(rate=Rate(1, 60)), wake_at=NOON + 60 * SECOND, called_to=NOON + AHEAD + SECOND)
    assert answer(rated, [Join("who-9", "9")], NOON)[1] == [False]
    assert answer(replace(rated, called_to=NOON + AHEAD), [Join("who-9", "9")], NOON)[1] == [True]


def test_who_leaves_has_the_line_looked_at_if_anybody_waits():
    there, _ = enter(stile(parallelism=1), "a")
    assert answer(there, [Leave("a", own=True)], NOON)[1] == [False]

    there, _ = answer(there, [Join("who-9", "9")], NOON)
    assert answer(there, [Leave("a", own=True)], NOON)[1] == [True]


def test_who_comes_late_into_its_place_in_the_line_is_called_all_the_same():
    there = replace(stile(parallelism=2), wake_at=NOON, called="5", called_to=NOON)
    there, (look,) = answer(there, [Join("who-4", "4")], NOON)

    calls = call(there, Line(again=waiting("4"), fresh=waiting("6")), {}, NOON)

    assert (look, there.late) == (True, ("4",))
    assert [each.order for each in calls.called] == ["4", "6"]
    assert (calls.stile.late, calls.stile.called) == ((), "6")


def test_who_is_called_before_it_says_that_it_has_joined_has_one_turn():
    there = replace(stile(rate=Rate(1, 10)), wake_at=NOON, next_at=NOON + 10 * SECOND)
    there = call(there, Line(fresh=waiting("1", "2")), {}, NOON).stile

    same, said = answer(there, [Join("who-1", "1"), Join("who-2", "2")], NOON + 0.1 * SECOND)

    assert (same, said) == (there, [False, False])
    assert call(same, Line(fresh=waiting("3")), {}, NOON).called[0].at == NOON + 29 * SECOND


def test_who_comes_before_its_turn_takes_no_other_s_and_keeps_its_own():
    """By a copy of the message that it had before it joined."""
    there = replace(stile(rate=Rate(1, 10)), wake_at=NOON, next_at=NOON + 10 * SECOND)
    there = call(there, Line(fresh=waiting("1", "2")), {}, NOON).stile
    soon = NOON + 9 * SECOND

    there, early = enter(there, "who-2", soon, "2")
    there, (look,) = answer(there, [Join("who-2", "2", again=True)], soon)
    there, first = enter(there, "who-1", soon, "1")
    there, second = enter(there, "who-2", NOON + 19 * SECOND, "2")

    assert (early, look) == (Wait(Why.RATE), False)
    assert (first, second) == (Go(soon), Go(NOON + 19 * SECOND))
    assert (there.late, there.places) == ((), {})


def test_who_comes_to_its_turn_in_vain_is_called_again():
    there = replace(stile(rate=Rate(1, 10)), wake_at=NOON)
    there = replace(call(there, Line(fresh=waiting("1")), {}, NOON).stile, next_at=NOON + 20 * SECOND)

    there, said = enter(there, "who-1", NOON, "1")
    there, (look,) = answer(there, [Join("who-1", "1", again=True)], NOON)

    assert (said, look, there.late) == (Wait(Why.RATE), True, ("1",))
    assert [each.order for each in call(there, Line(again=waiting("1")), {}, NOON).called] == ["1"]


def test_who_was_called_by_other_terms_is_called_by_these():
    there = replace(stile(rate=Rate(1, 30)), wake_at=NOON, next_at=NOON + 30 * SECOND)
    there = call(there, Line(fresh=waiting("1", "2")), {}, NOON).stile

    anew = replace(there, terms=Terms(rate=Rate(1, 2)), called="", called_to=None, mark="", mark_at=None, next_at=None)
    calls = call(anew, Line(fresh=waiting("1", "2")), {}, NOON)

    assert [each.at for each in calls.called] == [NOON, NOON + SECOND]
    assert [place.comes_at for place in calls.stile.places.values()] == [NOON - SECOND, NOON + SECOND]


def test_as_many_are_called_as_there_are_places_in_order():
    there = replace(stile(parallelism=2), wake_at=NOON + 60 * SECOND)

    calls = call(there, Line(fresh=waiting("1", "2", "3")), {}, NOON)

    assert [each.order for each in calls.called] == ["1", "2"]
    assert calls.stile.called == "2"
    assert {place.holds for place in calls.stile.places.values()} == {Holds.CALLED}
    assert call(calls.stile, Line(fresh=waiting("3")), {}, NOON).called == ()


def test_turns_are_spaced_by_the_rate_and_given_a_minute_ahead():
    there = replace(stile(rate=Rate(1, 25)), wake_at=NOON + 60 * SECOND, next_at=NOON + 25 * SECOND)

    calls = call(there, Line(fresh=waiting("1", "2", "3", "4")), {}, NOON)

    assert [each.at for each in calls.called] == [NOON + 24 * SECOND, NOON + 49 * SECOND]
    assert calls.stile.called == "2"
    later = NOON + 20 * SECOND
    assert [each.order for each in call(calls.stile, Line(fresh=waiting("3", "4")), {}, later).called] == ["3"]


def test_who_was_called_and_did_not_come_is_called_again():
    there = replace(stile(parallelism=1), wake_at=NOON + 60 * SECOND)
    there = call(there, Line(fresh=waiting("1", "2")), {}, NOON).stile

    soon, late = NOON + COMES_WITHIN - SECOND, NOON + COMES_WITHIN + SECOND

    assert not flow_keys.mark_is_over(there, soon)
    assert flow_keys.mark_is_over(there, late)
    assert [each.order for each in call(there, Line(again=waiting("1")), {}, late).called] == ["1"]


def test_of_a_target_whose_circuit_is_open_one_is_called_when_it_may_be_tried():
    there = replace(stile(circuit=CircuitRule(10, 5)), wake_at=NOON + 60 * SECOND)
    line = Line(fresh=[*waiting("1", "2", target="shut"), *waiting("3", target="open")])

    due = call(there, line, {"shut": NOON}, NOON)
    not_yet = call(there, line, {"shut": NOON + 3 * SECOND}, NOON)

    assert [each.order for each in due.called] == ["1", "3"]
    assert due.look == NOON + 5 * SECOND
    assert [each.order for each in not_yet.called] == ["3"]
    assert not_yet.look == NOON + 3 * SECOND


def test_a_look_that_somebody_has_asked_for_is_not_asked_for_again():
    there = replace(stile(circuit=CircuitRule()), wake_at=NOON + 60 * SECOND, look_at=NOON + 2 * SECOND)
    line = Line(fresh=waiting("1", target="shut"))

    assert call(there, line, {"shut": NOON + 3 * SECOND}, NOON).look is None
    assert call(there, line, {"shut": NOON + 3 * SECOND}, NOON + 2 * SECOND).look == NOON + 3 * SECOND


@given(
    places=st.none() | st.integers(1, 4),
    rate=st.none() | st.builds(Rate, st.integers(1, 20), st.integers(1, 100)),
    orders=st.lists(st.integers(0, 99), max_size=20, unique=True),
)
def test_a_call_never_gives_more_places_or_turns_than_there_are(places, rate, orders):
    there = replace(stile(parallelism=places, rate=rate), wake_at=NOON)
    line = Line(fresh=waiting(*[f"{order:02}" for order in sorted(orders)]))

    calls = call(there, line, {}, NOON)

    assert places is None or calls.stile.running(NOON) <= places
    if rate is None and places is None:
        assert len(calls.called) == len(orders)
    if rate is not None:
        assert len(calls.called) <= AHEAD / rate.interval + 1


# Circuits


@pytest.mark.parametrize(
    ("outcome", "sign"),
    [
        (Outcome(Verdict.SUCCEEDED, http_status=200), Sign.ALIVE),
        (Outcome(Verdict.ACCEPTED, http_status=202), Sign.ALIVE),
        (Outcome(Verdict.SILENT), Sign.NONE),
        (Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=503, retryable=True), Sign.FAILED),
        (Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=404), Sign.ALIVE),
        (Outcome(Verdict.FAILED, Reason.CONNECT), Sign.FAILED),
        (Outcome(Verdict.FAILED, Reason.NO_ANSWER), Sign.FAILED),
        (Outcome(Verdict.FAILED, Reason.BAD_PAYLOAD), Sign.NONE),
        (Outcome(Verdict.FAILED, Reason.GUARD), Sign.NONE),
    ],
)
def test_what_an_attempt_says_of_its_target(outcome, sign):
    assert sign_of(outcome) is sign


# Who waits no longer than so long


def patient(order: str, until: float | None = None, tries_until: float | None = None, target: str = "t") -> Waiting:
    """until, tries_until: seconds past noon."""
    ends = [None if end is None else NOON + end * SECOND for end in (until, tries_until)]
    return Waiting(order, f"who-{order}", target, Patience(*ends))


def test_who_would_come_too_late_takes_no_turn_and_is_sent_for_when_its_time_is_over():
    there = replace(stile(rate=Rate(1, 25)), wake_at=NOON + 60 * SECOND)
    line = Line(fresh=[patient("1", -5), patient("2", 90), patient("3", 20), patient("4", 26), *waiting("5", "6")])

    calls = call(there, line, {}, NOON)

    assert [(each.order, (each.at - NOON).total_seconds()) for each in calls.called] == [
        ("1", 0),
        ("2", 0),
        ("3", 21),
        ("4", 27),
        ("5", 24),
        ("6", 49),
    ]
    assert calls.stile.called_to == NOON + 75 * SECOND


def test_who_would_come_too_late_takes_no_place():
    there = replace(stile(parallelism=1), wake_at=NOON + 60 * SECOND)

    calls = call(there, Line(fresh=[patient("1", -5), *waiting("2")]), {}, NOON)

    assert [each.order for each in calls.called] == ["1", "2"]
    assert calls.stile.places.keys() == {"who-2"}


@pytest.mark.parametrize("ends", [{"until": -5}, {"tries_until": -5}])
def test_who_would_come_too_late_does_not_try_a_circuit(ends):
    there = replace(stile(circuit=CircuitRule(10, 5)), wake_at=NOON + 60 * SECOND)
    line = Line(fresh=[patient("1", **ends), patient("2", **ends), patient("3"), patient("4")])

    due = call(there, line, {"t": NOON}, NOON)
    not_yet = call(there, line, {"t": NOON + 9 * SECOND}, NOON)

    assert [each.order for each in due.called] == ["1", "2", "3"]
    assert [each.order for each in not_yet.called] == ["1", "2"]
    assert not_yet.look == NOON + flow_keys.COMES_LATE  # whoever stands behind them may not have been read


def test_the_time_for_a_circuit_counts_only_while_it_is_open():
    there = replace(stile(rate=Rate(1, 25)), wake_at=NOON + 60 * SECOND)

    calls = call(there, Line(fresh=[patient("1", tries_until=-5)]), {}, NOON)

    assert calls.stile.called_to == NOON + 25 * SECOND
