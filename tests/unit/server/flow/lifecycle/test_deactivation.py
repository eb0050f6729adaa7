"""The beginning and the end of a streak of attempts that got no connection."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.job import ActionSpec
from sweephand.domain.run import UNREACHABLE, Outcome, Reason, State, Verdict
from sweephand.server.flow.lifecycle.unreachable import (
    LIMIT,
    Streak,
    is_due,
    is_out_of_reach,
    streak_after,
    was_contact,
)
from tests.unit.domain.nouns import NOW, run

ACTION = ActionSpec("http", {"url": "https://example.org/a"}, {})
MOVED = replace(ACTION, params={"url": "https://example.org/b"})
SECOND = timedelta(seconds=1)


def failed(reason: Reason) -> Outcome:
    return Outcome(Verdict.FAILED, reason)


DOWN = failed(Reason.CONNECT)


@pytest.mark.parametrize("reason", sorted(UNREACHABLE))
def test_a_failed_connection_begins_a_streak_and_further_failures_keep_its_start(reason: Reason) -> None:
    first = streak_after(None, ACTION, failed(reason), NOW)

    assert first is not None
    assert Streak.read(first).since == NOW
    assert streak_after(first, ACTION, DOWN, NOW + SECOND) == first


CONTACTS = [
    Outcome(Verdict.SUCCEEDED, http_status=200),
    Outcome(Verdict.ACCEPTED, http_status=202),
    Outcome(Verdict.SILENT),
    Outcome(Verdict.FAILED, Reason.HTTP_STATUS, 404),
    Outcome(Verdict.FAILED, Reason.HTTP_STATUS, 500),
    failed(Reason.NO_ANSWER),
    failed(Reason.TARGET_ERROR),
    failed(Reason.NO_TARGET),
]


@pytest.mark.parametrize("outcome", CONTACTS, ids=lambda outcome: f"{outcome.verdict} {outcome.http_status}")
def test_every_contact_ends_a_streak_whatever_the_target_answered(outcome: Outcome) -> None:
    assert streak_after(streak_after(None, ACTION, DOWN, NOW), ACTION, outcome, NOW + SECOND) is None
    assert streak_after(None, ACTION, outcome, NOW) is None


@pytest.mark.parametrize("reason", [Reason.GUARD, Reason.BAD_PAYLOAD, Reason.DEADLINE])
def test_runs_without_a_call_say_nothing_about_the_target(reason: Reason) -> None:
    streak = streak_after(None, ACTION, DOWN, NOW)

    assert streak_after(streak, ACTION, failed(reason), NOW + SECOND) == streak
    assert streak_after(None, ACTION, failed(reason), NOW) is None


def test_another_target_begins_a_new_streak() -> None:
    streak = streak_after(None, ACTION, DOWN, NOW)

    moved = streak_after(streak, MOVED, DOWN, NOW + SECOND)

    assert moved is not None
    assert Streak.read(moved).since == NOW + SECOND
    assert not is_due(streak, MOVED, NOW + LIMIT)


def test_the_order_of_an_actions_members_does_not_change_the_target() -> None:
    params = {"url": "https://example.org/a", "headers": {"a": "1", "b": "2"}}
    turned = {"headers": {"b": "2", "a": "1"}, "url": "https://example.org/a"}

    streak = streak_after(None, replace(ACTION, params=params), DOWN, NOW)

    assert is_due(streak, replace(ACTION, params=turned), NOW + LIMIT)


def test_deactivation_is_due_at_the_first_failure_240_hours_after_the_first() -> None:
    streak = streak_after(None, ACTION, DOWN, NOW)

    assert not is_due(streak, ACTION, NOW + LIMIT - timedelta(milliseconds=1))
    assert is_due(streak, ACTION, NOW + LIMIT)
    assert timedelta(hours=240) == LIMIT
    assert not is_due(None, ACTION, NOW + LIMIT)


@pytest.mark.parametrize(
    ("reason", "http_status", "out_of_reach"),
    [
        (Reason.DNS, None, True),
        (Reason.MAX_AGE, None, True),
        (Reason.MAX_AGE, 503, False),
        (Reason.HTTP_STATUS, 503, False),
        (Reason.CALLBACK, None, False),
        (Reason.UNDELIVERED, None, False),
        (None, None, False),
    ],
)
def test_only_an_attempt_without_a_connection_leads_to_deactivation(
    reason: Reason | None, http_status: int | None, out_of_reach: bool
) -> None:
    assert is_out_of_reach(run(State.ERROR, reason=reason, http_status=http_status)) is out_of_reach


@pytest.mark.parametrize(
    ("members", "contact"),
    [
        ({"state": State.SUCCESS}, True),
        ({"reason": Reason.HTTP_STATUS, "http_status": 500}, True),
        ({"reason": Reason.NO_ANSWER}, True),
        ({"reason": Reason.CONNECT}, False),
        ({"reason": Reason.GUARD}, False),
        ({"state": State.SUCCESS, "result_digest": "reported"}, False),
        ({"state": State.SUCCESS, "finished_at": NOW}, False),
        ({"state": State.TRIGGERED, "finished_at": None}, False),
    ],
)
def test_an_end_counts_as_a_contact_if_the_target_answered_after_the_streak_began(
    members: dict[str, Any], contact: bool
) -> None:
    ended = run(**{"state": State.ERROR, "finished_at": NOW + SECOND, **members})

    assert was_contact(ended, str(Streak(NOW, "target"))) is contact
