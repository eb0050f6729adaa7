"""The order in which runs are called out of the line of a flow key: pure rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.flow_keys.circuits import CircuitRule
from sweephand.domain.flow_keys.flow_key_lines import COMES_LATE, Line, Patience, Waiting, call, mark_is_over
from sweephand.domain.flow_keys.flow_keys import (
    AHEAD,
    COMES_WITHIN,
    Go,
    Holds,
    Join,
    Place,
    Rate,
    Terms,
    Wait,
    Why,
    answer,
)
from tests.unit.domain.turnstile import NOON, SECOND, enter, turnstile, waiting


@pytest.mark.parametrize("holds", [Holds.CALL, Holds.RESULT])
def test_a_run_with_a_place_of_an_earlier_attempt_is_called_into_it(holds):
    own = Place(NOON + 300 * SECOND, holds)
    there = replace(turnstile(parallelism=1, rate=Rate(1, 60)), places={"who-1": own}, wake_at=NOON)

    calls = call(there, Line(fresh=waiting("1", "2")), {}, NOON)

    assert [each.order for each in calls.called] == ["1"]
    assert calls.turnstile.places == {"who-1": own}
    assert enter(calls.turnstile, "who-1", order="1")[1] == Go(NOON)


def test_a_run_that_joins_the_line_late_is_still_called():
    there = replace(turnstile(parallelism=2), wake_at=NOON, called="5", called_to=NOON)
    there, (look,) = answer(there, [Join("who-4", "4")], NOON)

    calls = call(there, Line(again=waiting("4"), fresh=waiting("6")), {}, NOON)

    assert (look, there.late) == (True, ("4",))
    assert [each.order for each in calls.called] == ["4", "6"]
    assert (calls.turnstile.late, calls.turnstile.called) == ((), "6")


def test_a_run_called_before_it_confirms_joining_has_one_turn():
    there = replace(turnstile(rate=Rate(1, 10)), wake_at=NOON, next_at=NOON + 10 * SECOND)
    there = call(there, Line(fresh=waiting("1", "2")), {}, NOON).turnstile

    same, said = answer(there, [Join("who-1", "1"), Join("who-2", "2")], NOON + 0.1 * SECOND)

    assert (same, said) == (there, [False, False])
    assert call(same, Line(fresh=waiting("3")), {}, NOON).called[0].at == NOON + 29 * SECOND


def test_an_early_run_keeps_its_own_turn_and_takes_no_other():
    """It comes by a copy of the message that it had before it joined."""
    there = replace(turnstile(rate=Rate(1, 10)), wake_at=NOON, next_at=NOON + 10 * SECOND)
    there = call(there, Line(fresh=waiting("1", "2")), {}, NOON).turnstile
    soon = NOON + 9 * SECOND

    there, early = enter(there, "who-2", soon, "2")
    there, (look,) = answer(there, [Join("who-2", "2", again=True)], soon)
    there, first = enter(there, "who-1", soon, "1")
    there, second = enter(there, "who-2", NOON + 19 * SECOND, "2")

    assert (early, look) == (Wait(Why.RATE), False)
    assert (first, second) == (Go(soon), Go(NOON + 19 * SECOND))
    assert (there.late, there.places) == ((), {})


def test_a_run_whose_turn_fails_is_called_again():
    there = replace(turnstile(rate=Rate(1, 10)), wake_at=NOON)
    there = replace(call(there, Line(fresh=waiting("1")), {}, NOON).turnstile, next_at=NOON + 20 * SECOND)

    there, said = enter(there, "who-1", NOON, "1")
    there, (look,) = answer(there, [Join("who-1", "1", again=True)], NOON)

    assert (said, look, there.late) == (Wait(Why.RATE), True, ("1",))
    assert [each.order for each in call(there, Line(again=waiting("1")), {}, NOON).called] == ["1"]


def test_a_run_called_under_former_limits_is_called_under_the_current_ones():
    there = replace(turnstile(rate=Rate(1, 30)), wake_at=NOON, next_at=NOON + 30 * SECOND)
    there = call(there, Line(fresh=waiting("1", "2")), {}, NOON).turnstile

    anew = replace(there, terms=Terms(rate=Rate(1, 2)), called="", called_to=None, mark="", mark_at=None, next_at=None)
    calls = call(anew, Line(fresh=waiting("1", "2")), {}, NOON)

    assert [each.at for each in calls.called] == [NOON, NOON + SECOND]
    assert [place.comes_at for place in calls.turnstile.places.values()] == [NOON - SECOND, NOON + SECOND]


def test_waiting_runs_are_called_in_order_as_places_allow():
    there = replace(turnstile(parallelism=2), wake_at=NOON + 60 * SECOND)

    calls = call(there, Line(fresh=waiting("1", "2", "3")), {}, NOON)

    assert [each.order for each in calls.called] == ["1", "2"]
    assert calls.turnstile.called == "2"
    assert {place.holds for place in calls.turnstile.places.values()} == {Holds.CALLED}
    assert call(calls.turnstile, Line(fresh=waiting("3")), {}, NOON).called == ()


def test_turns_are_spaced_by_the_rate_and_given_a_minute_ahead():
    there = replace(turnstile(rate=Rate(1, 25)), wake_at=NOON + 60 * SECOND, next_at=NOON + 25 * SECOND)

    calls = call(there, Line(fresh=waiting("1", "2", "3", "4")), {}, NOON)

    assert [each.at for each in calls.called] == [NOON + 24 * SECOND, NOON + 49 * SECOND]
    assert calls.turnstile.called == "2"
    later = NOON + 20 * SECOND
    assert [each.order for each in call(calls.turnstile, Line(fresh=waiting("3", "4")), {}, later).called] == ["3"]


def test_a_called_run_that_did_not_arrive_is_called_again():
    there = replace(turnstile(parallelism=1), wake_at=NOON + 60 * SECOND)
    there = call(there, Line(fresh=waiting("1", "2")), {}, NOON).turnstile

    soon, late = NOON + COMES_WITHIN - SECOND, NOON + COMES_WITHIN + SECOND

    assert not mark_is_over(there, soon)
    assert mark_is_over(there, late)
    assert [each.order for each in call(there, Line(again=waiting("1")), {}, late).called] == ["1"]


def test_an_open_circuit_admits_one_run_when_it_can_be_probed():
    there = replace(turnstile(circuit=CircuitRule(10, 5)), wake_at=NOON + 60 * SECOND)
    line = Line(fresh=[*waiting("1", "2", target="shut"), *waiting("3", target="open")])

    due = call(there, line, {"shut": NOON}, NOON)
    not_yet = call(there, line, {"shut": NOON + 3 * SECOND}, NOON)

    assert [each.order for each in due.called] == ["1", "3"]
    assert due.check_at == NOON + 5 * SECOND
    assert [each.order for each in not_yet.called] == ["3"]
    assert not_yet.check_at == NOON + 3 * SECOND


def test_a_requested_check_is_not_requested_again():
    there = replace(turnstile(circuit=CircuitRule()), wake_at=NOON + 60 * SECOND, look_at=NOON + 2 * SECOND)
    line = Line(fresh=waiting("1", target="shut"))

    assert call(there, line, {"shut": NOON + 3 * SECOND}, NOON).check_at is None
    assert call(there, line, {"shut": NOON + 3 * SECOND}, NOON + 2 * SECOND).check_at == NOON + 3 * SECOND


@given(
    places=st.none() | st.integers(1, 4),
    rate=st.none() | st.builds(Rate, st.integers(1, 20), st.integers(1, 100)),
    orders=st.lists(st.integers(0, 99), max_size=20, unique=True),
)
def test_a_call_never_gives_more_places_or_turns_than_there_are(places, rate, orders):
    there = replace(turnstile(parallelism=places, rate=rate), wake_at=NOON)
    line = Line(fresh=waiting(*[f"{order:02}" for order in sorted(orders)]))

    calls = call(there, line, {}, NOON)

    assert places is None or calls.turnstile.running(NOON) <= places
    if rate is None and places is None:
        assert len(calls.called) == len(orders)
    if rate is not None:
        assert len(calls.called) <= AHEAD / rate.interval + 1


# Runs that wait no longer


def patient(order: str, until: float | None = None, tries_until: float | None = None, target: str = "t") -> Waiting:
    """Returns patient runs. until, tries_until: seconds past noon."""
    ends = [None if end is None else NOON + end * SECOND for end in (until, tries_until)]
    return Waiting(order, f"who-{order}", target, Patience(*ends))


def test_a_run_that_would_be_too_late_takes_no_turn_and_ends_at_its_time():
    there = replace(turnstile(rate=Rate(1, 25)), wake_at=NOON + 60 * SECOND)
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
    assert calls.turnstile.called_to == NOON + 75 * SECOND


def test_a_run_that_would_be_too_late_takes_no_place():
    there = replace(turnstile(parallelism=1), wake_at=NOON + 60 * SECOND)

    calls = call(there, Line(fresh=[patient("1", -5), *waiting("2")]), {}, NOON)

    assert [each.order for each in calls.called] == ["1", "2"]
    assert calls.turnstile.places.keys() == {"who-2"}


@pytest.mark.parametrize("ends", [{"until": -5}, {"tries_until": -5}])
def test_a_run_that_would_be_too_late_does_not_try_a_circuit(ends):
    there = replace(turnstile(circuit=CircuitRule(10, 5)), wake_at=NOON + 60 * SECOND)
    line = Line(fresh=[patient("1", **ends), patient("2", **ends), patient("3"), patient("4")])

    due = call(there, line, {"t": NOON}, NOON)
    not_yet = call(there, line, {"t": NOON + 9 * SECOND}, NOON)

    assert [each.order for each in due.called] == ["1", "2", "3"]
    assert [each.order for each in not_yet.called] == ["1", "2"]
    assert not_yet.check_at == NOON + COMES_LATE  # the runs after them may not have been read


def test_the_time_for_a_circuit_counts_only_while_it_is_open():
    there = replace(turnstile(rate=Rate(1, 25)), wake_at=NOON + 60 * SECOND)

    calls = call(there, Line(fresh=[patient("1", tries_until=-5)]), {}, NOON)

    assert calls.turnstile.called_to == NOON + 25 * SECOND
