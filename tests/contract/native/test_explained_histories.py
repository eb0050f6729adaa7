"""In random histories, every explanation follows from the ledger, and lists agree with it."""

from __future__ import annotations

from random import Random  # noqa: TID251 - a history is played again by its seed

import pytest

from tests.contract.native.api import api as made
from tests.contract.native.explained_histories import History, check_future, check_past

STEPS = 14


def play(seed: int) -> None:
    with made() as api:
        history = History(api, Random(seed))
        history.begin()
        try:
            for n in range(STEPS):
                history.step()
                if n in {5, 10}:
                    check_past(history)
            check_past(history)
            check_future(history)
            check_past(history)
        except AssertionError as failed:
            raise AssertionError("\n".join([f"seed {seed}", *history.steps, str(failed)])) from failed


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(18))
def test_every_instant_of_a_random_history_is_explained_by_the_ledger(seed: int) -> None:
    play(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1_000, 1_400))
def test_every_instant_of_many_random_histories_is_explained_by_the_ledger(seed: int) -> None:
    play(seed)
