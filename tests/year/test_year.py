"""Whole lives of the service: tenants, people, targets and bad luck of all kinds, over hours, days, months and years.

A life that fails says how it is lived again: `python -m tests.year <seed> <length>`.
"""

from __future__ import annotations

import pytest

from tests.year.__main__ import told
from tests.year.mutants import MUTANTS

pytestmark = pytest.mark.repeats
LIVES = [*((seed, "hours") for seed in range(1, 7)), (7, "days"), (8, "days"), (9, "days"), (10, "month")]
LIVES_IN_A_PART, PARTS = 25, 8
LIVES_OF_A_MUTANT = 20


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("seed", "length"), LIVES)
def test_all_promises_hold_in_a_life(seed: int, length: str) -> None:
    assert not (account := told(seed, length)), account


@pytest.mark.long
@pytest.mark.parametrize("length", ["hours", "days", "month"])
@pytest.mark.parametrize("part", range(PARTS))
def test_all_promises_hold_in_hundreds_of_lives(part: int, length: str) -> None:
    for seed in range(1_000 + part * LIVES_IN_A_PART, 1_000 + (part + 1) * LIVES_IN_A_PART):
        assert not (account := told(seed, length)), account


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2_000, 2_020))
def test_all_promises_hold_over_years(seed: int) -> None:
    assert not (account := told(seed, "year")), account


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_the_oracle_notices_a_defect_of_the_product(name: str) -> None:
    mutant = MUTANTS[name]

    for seed in range(1, LIVES_OF_A_MUTANT):
        with mutant.made():
            if not told(seed, "hours", mutant.luck):
                continue
        assert not (account := told(seed, "hours", mutant.luck)), account
        return

    pytest.fail(f"no life of {LIVES_OF_A_MUTANT} shows that {name}")
