"""The ledger's record of a call whose executor stopped before it reported a result: it was made, and nobody knows what
came of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from sweephand.domain.instants import text_ms
from sweephand.domain.run import Reason, Run, State
from sweephand.domain.runs.admission import MAX_LOST_LAST
from sweephand.domain.runs.run_file import Format, lines
from sweephand.domain.runs.run_members import ATTEMPT, attempts_of
from sweephand.server.flow.jobs.lookup import Planned
from sweephand.server.store.views import runs as views
from tests.support.endpoint import BUSY, OK
from tests.support.stage import Stage
from tests.support.taps import Crash, answer_lost
from tests.unit.server.flow.common import exact, fixed

AT_ONE = {"at": "2027-03-01T12:01:00Z"}
LOST = ("UNKNOWN", "EXECUTOR_LOST")


def kill(stage: Stage, *calls: int) -> None:
    """Makes the calls of these numbers, from 1, take their executor along."""
    made = 0

    def answer(_call: object) -> Any:
        nonlocal made
        made += 1
        if made in calls:
            raise Crash
        return stage.endpoint.script_of.pop(0) if stage.endpoint.script_of else OK  # type: ignore[attr-defined]

    stage.endpoint.script_of = []  # type: ignore[attr-defined]
    stage.endpoint.answer = answer


def go_on(stage: Stage, seconds: int) -> None:
    for _ in range(seconds):
        try:
            stage.deliver_all()
        except Crash:
            continue
        stage.clock.advance(1)


def shown(stage: Stage, planned: Planned) -> list[dict[str, Any]]:
    run = stage.only_run(planned)
    return ATTEMPT.show_all(attempts_of(run, views.attempts_of(stage.world.table, run)))


def told(stage: Stage, planned: Planned) -> list[tuple[int, str, str | None]]:
    return [(each["attempt"], each["state"], each["reason"]) for each in shown(stage, planned)]


def starts(stage: Stage) -> list[datetime]:
    return [each.at for each in stage.endpoint.received]


def test_a_lost_call_is_an_attempt_with_an_unknown_end_and_its_own_start(stage: Stage) -> None:
    planned = stage.create(AT_ONE)
    kill(stage, 1)

    go_on(stage, 120)

    lost, last = shown(stage, planned)
    assert [lost["startedAt"], last["startedAt"]] == [text_ms(at) for at in starts(stage)]
    assert (lost["attempt"], lost["state"], lost["reason"]) == (1, *LOST)
    assert (lost["finishedAt"], lost["durationMs"], lost["answer"]) == (None, None, None)
    assert (lost["plannedAt"], lost["enqueuedAt"]) == (last["plannedAt"], last["enqueuedAt"])
    assert (last["attempt"], last["state"]) == (1, "SUCCESS")
    assert stage.only_run(planned).state is State.SUCCESS


def test_a_lost_call_of_a_later_attempt_is_listed_between_the_others(stage: Stage) -> None:
    planned = stage.create(AT_ONE, action=stage.action(retry=fixed(15)))
    kill(stage, 2)
    stage.endpoint.script_of += [BUSY, BUSY]  # type: ignore[attr-defined]

    go_on(stage, 180)

    assert told(stage, planned) == [
        (1, "ERROR", "HTTP_STATUS"),
        (2, *LOST),
        (2, "ERROR", "HTTP_STATUS"),
        (3, "SUCCESS", None),
    ]
    bodies = shown(stage, planned)
    assert [each["startedAt"] for each in bodies] == [text_ms(at) for at in starts(stage)]
    assert bodies[1]["plannedAt"] == bodies[2]["plannedAt"]


def test_a_run_that_ends_as_lost_shows_all_calls(stage: Stage) -> None:
    planned = stage.create(AT_ONE)
    kill(stage, *range(1, 20))

    go_on(stage, 600)

    run = stage.only_run(planned)
    assert (run.state, run.reason) == (State.UNKNOWN, Reason.EXECUTOR_LOST)
    assert told(stage, planned) == [(1, *LOST)] * (MAX_LOST_LAST + 1)
    assert [each["startedAt"] for each in shown(stage, planned)] == [text_ms(at) for at in starts(stage)]


def test_a_lost_at_most_once_call_is_one_line(stage: Stage) -> None:
    planned = stage.create(AT_ONE, policies={"delivery": "at_most_once"})
    kill(stage, 1)

    go_on(stage, 120)

    assert told(stage, planned) == [(1, *LOST)]


def test_a_lost_call_is_shown_while_it_is_repeated(stage: Stage) -> None:
    planned = stage.create(AT_ONE)
    kill(stage, 1)
    go_on(stage, 62)
    during: list[tuple[int, str, str | None]] = []
    stage.endpoint.answer = lambda _: (during.extend(told(stage, planned)), OK)[1]

    go_on(stage, 60)

    assert during == [(1, *LOST), (1, "TRIGGERED", None)]


def test_an_export_of_runs_includes_lost_calls(stage: Stage) -> None:
    planned = stage.create(AT_ONE)
    kill(stage, 1)

    go_on(stage, 120)

    run = stage.only_run(planned)
    assert '"reason":"EXECUTOR_LOST"' in lines(Format.JSON_LINES, [run], {run.job_id: None})


def test_a_takeover_is_one_write_and_is_recorded_once(stage: Stage) -> None:
    planned = stage.create(AT_ONE)
    kill(stage, 1)
    go_on(stage, 62)
    stage.pass_time(stage.world.settings.lease_s + 12)
    stage.taps.passed.clear()

    with stage.taps.once("dynamodb.UpdateItem", answer_lost):
        stage.deliver()

    writes = [each for each in stage.taps.passed if each.name == "dynamodb.UpdateItem"]
    of_the_run = [each for each in writes if each.request["Key"]["sk"]["S"].startswith("RUN#")]
    assert len(of_the_run) == 2, "the take-over and the success"
    assert "dynamodb.TransactWriteItems" not in stage.taps.names()[:4]
    assert told(stage, planned) == [(1, *LOST), (1, "SUCCESS", None)]


# How many may be lost


def test_each_attempt_can_be_repeated_once(stage: Stage) -> None:
    """An executor lost with one attempt takes nothing from the others: each crash is repeated once at most."""
    planned = stage.create(AT_ONE, action=stage.action(retry=fixed(15)))
    kill(stage, 1, 3)
    stage.endpoint.script_of += [BUSY]  # type: ignore[attr-defined]

    go_on(stage, 240)

    assert told(stage, planned) == [(1, *LOST), (1, "ERROR", "HTTP_STATUS"), (2, *LOST), (2, "SUCCESS", None)]


@pytest.mark.parametrize("lost", [2, 3, 4, 5, 7])
def test_at_least_once_makes_the_call_however_many_executors_die_before_it(stage: Stage, lost: int) -> None:
    """Without a retry policy the only attempt is made again."""
    planned = stage.create(AT_ONE)
    kill(stage, *range(1, lost + 1))

    go_on(stage, 600)

    assert told(stage, planned) == [(1, *LOST)] * lost + [(1, "SUCCESS", None)]
    exact(stage, planned)


def test_the_next_attempt_follows_two_executors_lost_in_one_attempt(stage: Stage) -> None:
    planned = stage.create(AT_ONE, action=stage.action(retry=fixed(15)))
    kill(stage, 2, 3)
    stage.endpoint.script_of += [BUSY]  # type: ignore[attr-defined]

    go_on(stage, 300)

    assert told(stage, planned) == [(1, "ERROR", "HTTP_STATUS"), (2, *LOST), (2, *LOST), (3, "SUCCESS", None)]
    assert stage.totals(planned).failed_attempts == 2
    exact(stage, planned)


def test_the_attempt_after_lost_executors_waits_as_the_policy_says(stage: Stage) -> None:
    planned = stage.create(AT_ONE, action=stage.action(retry=fixed(15)))
    kill(stage, 1, 2)

    go_on(stage, 300)

    second, third = starts(stage)[1:]
    assert (third - second).total_seconds() >= stage.world.settings.lease_s + 15
    assert stage.only_run(planned).attempt == 2


def test_the_attempts_of_a_policy_are_used_up_by_lost_executors(stage: Stage) -> None:
    planned = stage.create(AT_ONE, action=stage.action(retry=fixed(1, retries=2)))
    kill(stage, *range(1, 40))

    go_on(stage, 1_500)

    run = stage.only_run(planned)
    assert (run.state, run.reason, run.attempt) == (State.UNKNOWN, Reason.EXECUTOR_LOST, 3)
    assert len(stage.endpoint.received) == 2 + 2 + MAX_LOST_LAST + 1
    exact(stage, planned)


def test_a_policy_that_excludes_the_reason_makes_no_further_attempt(stage: Stage) -> None:
    planned = stage.create(AT_ONE, action=stage.action(retry=fixed(15, neverOn=["EXECUTOR_LOST"])))
    kill(stage, 1, 2)

    go_on(stage, 300)

    run = stage.only_run(planned)
    assert (run.state, run.reason, len(stage.endpoint.received)) == (State.UNKNOWN, Reason.EXECUTOR_LOST, 2)


def test_at_most_once_ends_with_the_first_lost_executor_even_with_attempts_left(stage: Stage) -> None:
    policies = {"delivery": "at_most_once"}
    planned = stage.create(AT_ONE, action=stage.action(retry=fixed(15)), policies=policies)
    kill(stage, 1)

    go_on(stage, 300)

    assert told(stage, planned) == [(1, *LOST)]


def test_an_executor_that_returns_while_the_next_attempt_waits_ends_the_run(stage: Stage) -> None:
    """Its success is a success, whoever gave it up."""
    planned = stage.create(AT_ONE, action=stage.action(retry=fixed(200)))
    kill(stage, 1)
    go_on(stage, 62)
    stage.endpoint.answer = lambda _: (go_on_without(stage, 100), OK)[1]

    go_on(stage, 400)

    run = stage.only_run(planned)
    assert run.state is State.SUCCESS
    exact(stage, planned)


def go_on_without(stage: Stage, seconds: int) -> None:
    """Freezes the holder while others work."""
    stage.endpoint.answer = OK
    for _ in range(seconds):
        stage.clock.advance(1)
        stage.deliver()


@pytest.mark.parametrize("lost_at", [(1,), (1, 3), (1, 3, 5)])
def test_the_number_of_calls_is_the_attempts_plus_the_lost_calls(stage: Stage, lost_at: tuple[int, ...]) -> None:
    planned = stage.create(AT_ONE, action=stage.action(retry=fixed(15)))
    kill(stage, *lost_at)
    stage.endpoint.script_of += [BUSY, BUSY]  # type: ignore[attr-defined]

    go_on(stage, 300)

    run: Run = stage.only_run(planned)
    assert run.lost == len(lost_at)
    assert len(shown(stage, planned)) == len(stage.endpoint.received) == run.attempt + run.lost
