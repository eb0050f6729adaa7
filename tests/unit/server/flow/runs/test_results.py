"""Ends from outside: the callback of an asynchronous run, and a user's cancel."""

from __future__ import annotations

import pytest

from sweephand.base.errors import Conflict, NotFound, Unavailable
from sweephand.domain.run import Outcome, Reason, Run, State, Verdict
from sweephand.server.flow.manual import rerun
from sweephand.server.flow.runs import results
from sweephand.server.security.tokens import CallbackKey
from tests.support.endpoint import BUSY
from tests.support.stage import TENANT, Stage

ACCEPTED = Outcome(Verdict.ACCEPTED, http_status=202)
ASYNC = {"outcome": {"on202": "wait", "callbackTimeoutSeconds": 600}}


def accepted(stage: Stage) -> tuple[object, Run]:
    """Makes a run whose target took the work and will report later."""
    stage.endpoint.answer = ACCEPTED
    planned = stage.create({"every": "PT1H"}, action=stage.action(**ASYNC))
    stage.run(3_605)
    return planned, stage.only_run(planned)


def report(stage: Stage, run: Run, *, success: bool = True, message: str | None = "done") -> Run:
    assert run.schedule_id is not None
    return results.record(stage.world, TENANT, run.schedule_id, run.uuid, success=success, message=message)


def test_every_attempt_of_a_run_is_sent_the_same_token(stage: Stage) -> None:
    stage.endpoint.script = [BUSY, BUSY, ACCEPTED]
    retry = {"type": "fixed", "delaySeconds": 1}
    stage.create({"every": "PT1H"}, action=stage.action(retry=retry), policies={"callbackToken": True})

    stage.run(3_610)

    tokens = {received.call.callback_token for received in stage.endpoint.received}
    assert len(stage.endpoint.received) == 3
    assert len(tokens) == 1
    assert None not in tokens


def test_a_run_that_needs_a_token_waits_for_the_callback_key_while_others_continue(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable() -> CallbackKey:
        raise Unavailable("the key service does not answer")

    monkeypatch.setattr(stage.world.callback_keys, "current", unreadable)
    asks = stage.create({"every": "PT1H"}, policies={"callbackToken": True})
    other = stage.create({"every": "PT1H"})

    stage.run(3_605)

    assert stage.runs(asks) == []  # its claim was taken back, and its message waits
    assert stage.only_run(other).state is State.SUCCESS
    monkeypatch.undo()
    stage.run(900)
    assert stage.only_run(asks).state is State.SUCCESS


def test_a_202_waits_for_its_callback_with_a_deadline(stage: Stage) -> None:
    _, run = accepted(stage)

    assert run.state is State.ACK_RECVD
    assert run.deadline_at is not None
    assert run.wake_at == run.deadline_at


@pytest.mark.parametrize(("success", "state"), [(True, State.SUCCESS), (False, State.ERROR)])
def test_a_callback_ends_the_run_and_the_executor_performs_the_effects(
    stage: Stage, success: bool, state: State
) -> None:
    planned, run = accepted(stage)

    report(stage, run, success=success)
    stage.run(5)

    ended = stage.only_run(planned)
    assert (ended.state, ended.message) == (state, "done")
    assert ended.wake_at is None
    assert stage.totals(planned).ended == 1
    assert stage.totals(planned).failed == (0 if success else 1)


def test_a_repeated_result_changes_nothing_and_a_different_one_is_refused_and_noted(stage: Stage) -> None:
    planned, run = accepted(stage)

    first = report(stage, run)
    again = report(stage, run)
    with pytest.raises(Conflict) as refused:
        report(stage, run, success=False, message="no")

    assert (again.state, again.finished_at) == (first.state, stage.only_run(planned).finished_at)
    assert refused.value.code == "RESULT_CONFLICT"
    assert stage.only_run(planned).state is State.SUCCESS
    assert stage.only_run(planned).notes == ("result after the end: failure: no",)


def test_a_repeated_result_with_another_message_is_refused_and_the_message_is_noted(stage: Stage) -> None:
    planned, run = accepted(stage)
    report(stage, run, message="4,711 rows")

    for message in ("4,712 rows", None, "x" * 5_000):
        with pytest.raises(Conflict):
            report(stage, run, message=message)

    end = "result after the end: success"
    assert set(stage.only_run(planned).notes) == {f"{end}: 4,712 rows", end, f"{end}: {'x' * 1_000}"}


def test_a_line_for_many_occurrences_accepts_no_result_cancel_or_rerun(stage: Stage) -> None:
    planned = stage.create({"cron": "* * * * *"}, policies={"misfire": {"type": "skip"}})
    stage.run(60)
    stage.pass_time(3_600)
    stage.run(120)
    (line,) = [run for run in stage.runs(planned) if run.range_count is not None]
    place = stage.world, TENANT, line.schedule_id or "", line.uuid

    for refused in (
        lambda: results.record(*place, success=True, message=None),
        lambda: results.cancel(*place),
        lambda: rerun.rerun(*place),
    ):
        with pytest.raises(Conflict, match=f"stands for {line.range_count} occurrences"):
            refused()
    assert line in stage.runs(planned)


def test_a_run_without_a_callback_ends_as_unknown_after_its_deadline(stage: Stage) -> None:
    planned, run = accepted(stage)

    stage.run(700)

    ended = stage.only_run(planned)
    assert (ended.state, ended.reason) == (State.UNKNOWN, Reason.DEADLINE)
    assert ended.wake_at is None
    with pytest.raises(Conflict):
        report(stage, run)


def test_a_result_can_arrive_before_the_202_is_recorded(stage: Stage) -> None:
    planned = stage.create({"every": "PT1H"}, action=stage.action(**ASYNC))

    def reports_at_once(_call: object) -> Outcome:
        report(stage, stage.only_run(planned))
        return ACCEPTED

    stage.endpoint.answer = reports_at_once
    stage.run(3_605)

    ended = stage.only_run(planned)
    assert (ended.state, ended.reason) == (State.SUCCESS, Reason.ON_TIME)
    assert ended.wake_at is None
    assert stage.totals(planned).open == stage.totals(planned).planned - 1


def test_a_cancel_ends_an_open_run_and_a_finished_one_cannot_be_cancelled(stage: Stage) -> None:
    planned, run = accepted(stage)
    assert run.schedule_id is not None

    results.cancel(stage.world, TENANT, run.schedule_id, run.uuid)
    stage.run(5)

    ended = stage.only_run(planned)
    assert (ended.state, ended.reason) == (State.CANCELLED, Reason.BY_USER)
    assert stage.totals(planned).skipped == 1
    with pytest.raises(Conflict):
        report(stage, run)


def test_a_result_of_an_unknown_run_is_refused(stage: Stage) -> None:
    with pytest.raises(NotFound):
        results.record(stage.world, TENANT, "a", "b", success=True, message=None)


def test_a_reported_success_counts_as_succeeded(stage: Stage) -> None:
    planned, run = accepted(stage)

    report(stage, run)
    stage.run(5)

    totals = stage.totals(planned)
    assert (totals.succeeded, totals.skipped, totals.failed) == (1, 0, 0)
