"""Tests of the trials, which take two weeks and run in a moment. Run them with pytest; no stack is needed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import trials

from sweephand.testing import Call, Stack, stack

STARTED = datetime(2027, 3, 20, 15, 30)  # noqa: DTZ001 - wall time; the clocks change on 28 March


@pytest.fixture
def sh() -> Iterator[Stack]:
    with stack(now=datetime(2027, 3, 20, 14, 30, tzinfo=UTC)) as sh:
        yield sh


def steps(calls: list[Call]) -> list[str]:
    return [f"{call.at:%d %H:%M} {call.json['step']}" for call in calls]


def test_the_reminder_comes_at_nine_despite_the_clock_change(sh: Stack) -> None:
    trials.begin(sh, "ada", STARTED, "Europe/Berlin")

    assert steps(sh.advance("20d")) == ["31 07:00 reminder", "03 13:30 end"]  # UTC: in summer Berlin is two hours ahead


def test_a_customer_who_buys_is_not_reminded(sh: Stack) -> None:
    trials.begin(sh, "ada", STARTED, "Europe/Berlin")
    trials.begin(sh, "bob", STARTED, "Europe/Berlin")
    sh.advance("5d")

    trials.buy(sh, "ada")

    assert [call.json["customer"] for call in sh.advance("20d")] == ["bob", "bob"]


def test_a_shop_that_is_down_for_a_minute_is_called_again(sh: Stack) -> None:
    trials.begin(sh, "ada", STARTED, "Europe/Berlin")

    sh.answer = lambda _: 503
    sh.advance(datetime(2027, 3, 31, 7, 0, tzinfo=UTC))
    sh.answer = None

    assert steps(sh.advance("2m")) == ["31 07:01 reminder"]
