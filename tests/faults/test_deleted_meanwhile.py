"""All jobs are deleted between two calls of a history, at each place: nothing fails, and everything comes to rest."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from typing import Any

import pytest

from sweephand.server.flow.jobs import deletion
from sweephand.server.store.dynamo import keys
from sweephand.testing.taps import Act
from tests.faults import invariants, kinds
from tests.faults.kinds import Kind
from tests.faults.play import Met, Play, Scenario, play, playing
from tests.faults.scenarios import SCENARIOS
from tests.support.stage import TENANT

EACH = 12
"""Every twelfth call of a history, beginning elsewhere in each; the long test takes all of them."""
DELETED = "deleted"
EDITED = {"unreadable", "stopped-series"}
"""Histories that edit a row as a defect would: they would make a new row in place of the deleted one."""
FAILURES = {"a message failed", "a dead letter failed", "a message cannot be read", "an operation's page failed"}
NAMES = [name for name in SCENARIOS if name not in EDITED]


def delete_jobs(at: Play) -> None:
    for row in at.scene.items():
        if row["sk"]["S"] == keys.JOB:
            deletion.delete_job(at.scene.world, TENANT, keys.parts(row["pk"]["S"])[-1], None)


def _delete_first(at: Play, _met: Met, act: Act) -> Any:
    at.aside(lambda: delete_jobs(at))
    at.faults.add("second-caller")  # a caller may now be told that it is gone
    return act()


@pytest.fixture(autouse=True)
def _only_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds.KINDS, DELETED, Kind(lambda _met: True, _delete_first))
    monkeypatch.setattr(invariants, "check", lambda _at: None)  # they speak of what the history expects of its jobs


def failures(scenario: Scenario, number: int) -> list[str]:
    """Plays the history with the delete before this call, then recovers. Returns the failures that were logged."""
    bare = copy(scenario)
    bare.check = lambda _at: None  # type: ignore[method-assign]
    with playing(bare, ((number, DELETED),)) as at, suppress(Exception):  # its caller looks for what is gone
        scenario.history(at)
    return [f"{number}: {line} {members}" for _, line, members in at.scene.journal.lines if line in FAILURES]


def places(scenario: Scenario, each: int) -> range:
    return range(sum(map(ord, scenario.name)) % each, len(play(scenario).calls), each)


@pytest.mark.sampled(5)
@pytest.mark.repeats
@pytest.mark.parametrize("name", NAMES)
def test_a_delete_between_two_calls_fails_nothing(name: str) -> None:
    met = [line for number in places(SCENARIOS[name], EACH) for line in failures(SCENARIOS[name], number)]

    assert met == []


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("name", NAMES)
def test_a_delete_between_any_two_calls_fails_nothing(name: str) -> None:
    met = [line for number in places(SCENARIOS[name], 1) for line in failures(SCENARIOS[name], number)]

    assert met == []
