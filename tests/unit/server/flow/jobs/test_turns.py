"""Many changes of one job at once: whoever has lost a try waits for a turn, and nobody starves."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sweephand.base.errors import Unavailable
from sweephand.server.flow.jobs import lookup
from sweephand.server.flow.jobs.change import LASTS
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.flow.jobs.requested import ScheduleRequest
from sweephand.server.store.dynamo import keys
from sweephand.server.store.jobs import turns
from sweephand.testing.taps import Act, Passing
from tests.support.stage import TENANT, Stage
from tests.support.taps import Crash, answer_lost, crash_after, refused
from tests.support.turns import at_once

HOURLY = {"cron": "0 * * * *"}


def add_schedule(stage: Stage, planned: Planned, n: int = 0) -> Planned:
    return stage.change_schedules(planned, lambda _: [ScheduleRequest(None, stage.schedule({"every": f"PT{n + 1}H"}))])


def about_turns(passing: Passing) -> str | None:
    """Returns the operation of a call that is about a turn."""
    key = passing.request.get("Item") or passing.request.get("Key") or {}
    return passing.operation if key.get("sk", {}).get("S") == keys.TURN else None


def calls_about_turns(stage: Stage) -> list[str]:
    return [operation for passing in stage.taps.passed if (operation := about_turns(passing))]


def disturbed(stage: Stage, planned: Planned, fault: Any = None, of: str = "") -> Any:
    """Lets somebody else change the job before the first transaction. fault: of the first such call about turns."""
    met: set[str] = set()

    def once(passing: Passing, act: Act) -> Any:
        if passing.operation == "TransactWriteItems" and "change" not in met:
            met.add("change")
            mine, stage.taps.fault = stage.taps.fault, None
            stage.set_state(planned, description=f"other than {stage.job(planned).revision}")
            stage.taps.fault = mine
        if fault is not None and about_turns(passing) == of and of not in met:
            met.add(of)
            return fault(passing, act)
        return act()

    return stage.taps.faulty(once)


def schedules(stage: Stage, planned: Planned) -> int:
    return len(lookup.find(stage.world, TENANT, planned.job.id).schedules)


def take(stage: Stage, planned: Planned, owner: str) -> bool:
    return turns.take(stage.world.table, TENANT, planned.job.id, owner, stage.clock.now(), LASTS)


@pytest.mark.parametrize(("many", "within_s", "seed"), [(20, 4, 0), (20, 4, 1), (50, 8, 0)])
def test_many_concurrent_changes_all_succeed(stage: Stage, many: int, within_s: float, seed: int) -> None:
    stage.world.chance._seed = seed  # type: ignore[attr-defined]
    planned = stage.create()
    began = stage.clock.monotonic()

    with at_once(stage) as run:
        done = run([lambda n=n: add_schedule(stage, planned, n) for n in range(many)])

    assert [each for each in done if isinstance(each, Exception)] == []
    assert stage.clock.monotonic() - began < within_s
    there = lookup.find(stage.world, TENANT, planned.job.id)
    assert (len(there.schedules), there.job.schedule_count, there.job.revision) == (many, many, many + 1)
    assert not any(item["sk"]["S"] == keys.TURN for item in stage.items())


def test_an_undisturbed_change_takes_no_turn(stage: Stage) -> None:
    add_schedule(stage, stage.create(HOURLY))

    assert calls_about_turns(stage) == []


def test_a_disturbed_change_takes_a_turn_and_returns_it(stage: Stage) -> None:
    planned = stage.create(HOURLY)

    with disturbed(stage, planned):
        add_schedule(stage, planned)

    assert calls_about_turns(stage) == ["PutItem", "DeleteItem"]
    assert (schedules(stage, planned), stage.job(planned).description) == (2, "other than 1")


def test_a_turn_whose_answer_was_lost_belongs_to_its_caller(stage: Stage) -> None:
    planned = stage.create(HOURLY)
    began = stage.clock.now()

    with disturbed(stage, planned, answer_lost, "PutItem"):
        add_schedule(stage, planned)

    assert calls_about_turns(stage) == ["PutItem", "DeleteItem"]
    assert stage.clock.now() - began < timedelta(seconds=1)


def test_a_crash_during_a_turn_delays_the_others_by_seconds(stage: Stage) -> None:
    planned = stage.create(HOURLY)
    with disturbed(stage, planned, crash_after, "PutItem"), suppress(Crash):
        add_schedule(stage, planned)
    began = stage.clock.now()

    with disturbed(stage, planned):
        add_schedule(stage, planned)

    assert LASTS <= stage.clock.now() - began < LASTS + timedelta(seconds=1)
    assert schedules(stage, planned) == 2


def test_a_turn_that_cannot_be_returned_expires_and_its_change_stays(stage: Stage) -> None:
    planned = stage.create(HOURLY)

    with disturbed(stage, planned, refused, "DeleteItem"):
        changed = add_schedule(stage, planned)

    assert len(changed.schedules) == schedules(stage, planned) == 2
    assert stage.journal.at("warning") == ["a turn was not given back; it will expire"]
    stage.clock.advance(LASTS.total_seconds())
    assert take(stage, planned, "another")


def test_a_turn_belongs_to_its_owner_until_it_expires(stage: Stage) -> None:
    planned = stage.create(HOURLY)

    assert [take(stage, planned, owner) for owner in ("one", "other", "one")] == [True, False, True]

    stage.clock.advance(LASTS.total_seconds())
    assert take(stage, planned, "other")


def test_only_the_owner_of_a_turn_can_return_it(stage: Stage) -> None:
    planned = stage.create(HOURLY)
    take(stage, planned, "one")

    turns.give_back(stage.world.table, TENANT, planned.job.id, "other")
    assert not take(stage, planned, "other")

    turns.give_back(stage.world.table, TENANT, planned.job.id, "one")
    assert take(stage, planned, "other")


def test_a_refused_change_returns_its_turn(stage: Stage) -> None:
    planned = stage.create(HOURLY)
    tries = iter(range(2))

    def request(there: Planned) -> list[ScheduleRequest]:
        if next(tries):
            raise Unavailable("for a reason")
        return [ScheduleRequest(None, replace(stage.schedule(HOURLY), name="another"))]

    with disturbed(stage, planned), pytest.raises(Unavailable):
        stage.change_schedules(planned, request)

    assert take(stage, planned, "another")
