"""All plans of all scenarios: which faults each call meets, and how many there are."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

from tests.faults.kinds import KINDS, READS, fits
from tests.faults.play import Met, Plan, Play, Scenario, play
from tests.faults.scenarios import SCENARIOS
from tests.support.examples import scaled

COUNTS = Path(__file__).with_name("plans.txt")
PLAYED = "plans played"
"""The property under which a test tells how many; tests/faults/conftest.py adds them up."""
ONCE_A_STATE = {"purged-queue"}
"""A queue that is purged between two reads is purged before the first."""
SAME_CALLS = 2
"""A tick with nothing to do asks twice: what is fresh, what is overdue. Further ones ask the same of the same state."""


def plans(scenario: Scenario, after: Plan = ()) -> list[Plan]:
    """Yields all plans with one fault more than `after`."""
    played = play(scenario, after)
    return [(*after, (number, kind)) for number, kinds in enumerate(kinds_for(scenario, played)) for kind in kinds]


def sample(scenario: Scenario) -> list[Plan]:
    """Returns those of its plans that an ordinary run of the tests plays: what no scenario before it has (this fault at
    this place of the code), and of each call that has nothing new one fault, another kind from call to call. A shorter
    run plays some of these, evenly spread.
    """
    plans = [plan for plan, chosen in _chosen()[scenario.name] if chosen]
    return plans[:: max(1, len(plans) // scaled(len(plans)))]


@cache
def calls(name: str) -> list[tuple[Met, list[str]]]:
    """Returns the calls of a scenario without a fault, and the kinds of faults that each can meet."""
    played = play(SCENARIOS[name])
    return list(zip(played.calls, kinds_for(SCENARIOS[name], played), strict=True))


@cache
def _chosen() -> dict[str, list[tuple[Plan, bool]]]:
    seen: set[tuple[object, ...]] = set()
    found: dict[str, list[tuple[Plan, bool]]] = {}
    turn = 0
    for name in SCENARIOS:
        found[name] = []
        for number, (met, kinds) in enumerate(calls(name)):
            chosen = [kind for kind in kinds if (met.site, met.passing.operation, kind) not in seen]
            seen |= {(met.site, met.passing.operation, kind) for kind in kinds}
            if kinds and not chosen:
                turn += 1
                chosen = [kinds[turn % len(kinds)]]
            found[name] += [(((number, kind),), kind in chosen) for kind in kinds]
    return found


def kinds_for(scenario: Scenario, played: Play) -> list[list[str]]:
    """Returns the kinds of faults that each call can meet. Nothing where the same read has met it all on the same state
    of table and queues.
    """
    asked: Counter[tuple[object, ...]] = Counter()
    found = []
    before: object = None
    for met in played.calls:
        asked[_place(met)] += 1
        idle = met.passing.operation in READS and asked[_place(met)] > SAME_CALLS
        kinds = [kind for kind in KINDS if fits(kind, met, callbacks=scenario.callbacks)]
        if met.state == before:
            kinds = [kind for kind in kinds if kind not in ONCE_A_STATE]
        before = met.state
        found.append([] if idle else [kind for kind in kinds if kind not in scenario.not_yet])
    return found


def _place(met: Met) -> tuple[object, ...]:
    return met.site, met.state, met.in_flight


def counts() -> dict[str, Counter[str]]:
    """Returns the counts by scenario: how many plans of each kind."""
    return {name: Counter(kind for _, kinds in calls(name) for kind in kinds) for name in SCENARIOS}


def written(found: dict[str, Counter[str]]) -> str:
    lines = [
        f"{name}: {sum(kinds.values())} plans. " + ", ".join(f"{kind} {kinds[kind]}" for kind in KINDS if kinds[kind])
        for name, kinds in found.items()
    ]
    return "\n".join([*lines, f"all: {sum(sum(kinds.values()) for kinds in found.values())} plans"]) + "\n"
