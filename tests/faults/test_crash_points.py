"""Every call of a small history meets every fault that can befall it: nothing is lost, doubled, open or miscounted."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.scenario import KINDS, Plan, fits, play


def plans(after: Plan = ()) -> list[Plan]:
    """All plans with one fault more than `after`."""
    calls = play(after).calls
    return [(*after, (number, kind)) for number, passing in enumerate(calls) for kind in KINDS if fits(kind, passing)]


@pytest.fixture(scope="module")
def single() -> list[Plan]:
    return plans()


def test_the_history_itself_is_sound_and_its_plans_are_these(single: list[Plan]) -> None:
    """A call that is added or goes changes these numbers: look at the new plans before you change them."""
    assert Counter(kind for ((_, kind),) in single) == {
        "crash-before": 55,
        "crash-after": 25,
        "answer-lost": 22,
        "throttled": 22,
        "failed-entries": 4,
        "conflict": 2,
    }
    assert {passing.name for passing in play(()).calls} == {
        "dynamodb.BatchExecuteStatement",
        "dynamodb.BatchGetItem",
        "dynamodb.GetItem",
        "dynamodb.PutItem",
        "dynamodb.Query",
        "dynamodb.TransactWriteItems",
        "dynamodb.UpdateItem",
        "endpoint.http",
        "sqs.ChangeMessageVisibilityBatch",
        "sqs.SendMessageBatch",
    }


def sound(plan: Plan) -> None:
    """Fails with the plan, which replays: play(((7, "crash-after"),))."""
    try:
        outcome = play(plan)
    except BaseException as broken:
        raise AssertionError(f"plan {plan}") from broken
    assert outcome.met, f"plan {plan} did not take place"


@pytest.mark.parametrize("kind", KINDS)
def test_one_fault_at_any_call_is_made_good(single: list[Plan], kind: str) -> None:
    chosen = [plan for plan in single if plan[0][1] == kind]

    assert chosen
    for plan in chosen:
        sound(plan)


@pytest.mark.long
def test_two_crashes_anywhere_are_made_good(single: list[Plan]) -> None:
    crashes = {"crash-before", "crash-after"}
    for first in single:
        if first[0][1] in crashes:
            for plan in plans(first):
                if plan[1][1] in crashes:
                    sound(plan)
