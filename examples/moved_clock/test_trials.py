"""Tests of the trials, which take two weeks and run in a moment. Run them with pytest; no stack is needed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trials

from sweephand.sdk import FakeSweephand
from sweephand.sdk.fake.service import Occurrence

STARTED = datetime(2027, 3, 20, 15, 30)  # noqa: DTZ001 - wall time; the clocks change on 28 March


@pytest.fixture
def called() -> list[str]:
    return []


@pytest.fixture
def fake(called: list[str]) -> FakeSweephand:
    def on_run(each: Occurrence) -> None:
        called.append(f"{each.run.planned_at:%d %H:%M} {each.payload['step']}")

    return FakeSweephand(now=datetime(2027, 3, 20, 14, 30, tzinfo=UTC), on_run=on_run)


def test_the_reminder_comes_at_nine_despite_the_clock_change(fake: FakeSweephand, called: list[str]) -> None:
    trials.begin(fake, "ada", STARTED, "Europe/Berlin")

    fake.advance("20d")

    assert called == ["31 07:00 reminder", "03 13:30 end"]  # UTC: in summer Berlin is two hours ahead


def test_a_customer_who_buys_is_not_reminded(fake: FakeSweephand, called: list[str]) -> None:
    trials.begin(fake, "ada", STARTED, "Europe/Berlin")
    trials.begin(fake, "bob", STARTED, "Europe/Berlin")
    fake.advance("5d")

    trials.buy(fake, "ada")
    runs = fake.advance("20d")

    assert [run.state for run in runs] == ["SUCCESS", "SUCCESS"]
    assert len(called) == 2


def test_a_call_that_fails_is_a_failed_run() -> None:
    def down(each: Occurrence) -> None:
        raise ConnectionError(f"{each.payload['step']}: the shop is down")

    fake = FakeSweephand(now=datetime(2027, 3, 20, 14, 30, tzinfo=UTC), on_run=down)
    trials.begin(fake, "ada", STARTED, "Europe/Berlin")

    assert [run.state for run in fake.advance("20d")] == ["ERROR", "ERROR"]
