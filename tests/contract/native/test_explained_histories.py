"""In random histories, every explanation follows from the ledger, and lists agree with it."""

from __future__ import annotations

from random import Random  # noqa: TID251 - a history is played again by its seed

import pytest

from sweephand.domain.instants import text
from sweephand.domain.run import State
from tests.contract.native.api import api as made
from tests.contract.native.explained_histories import History, check_future, check_now, check_past
from tests.unit.server.flow.common import MINUTE, NOON, SECOND

STEPS = 14


def play(seed: int) -> None:
    with made() as api:
        history = History(api, Random(seed))
        history.begin()
        try:
            for n in range(STEPS):
                history.step()
                if n % 2:
                    check_now(history)
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


@pytest.mark.parametrize("policy", ["skip", "all"])
@pytest.mark.parametrize("ends", [{"count": 9}, {"endTime": "2027-03-01T12:25:00Z"}, {}])
def test_no_step_between_actual_starts_is_announced_without_a_row(ends: dict[str, object], policy: str) -> None:
    """After an outage, the steps follow other seconds than the rule's own."""
    with made() as api:
        schedules = [{"every": "PT1M", "align": "actual_start", **ends}]
        job = api.create(schedules=schedules, policies={"misfire": {"type": policy}})
        place = f"/v1/jobs/{job['id']}/schedules/{job['schedules'][0]['id']}"
        api.stage.run(280)
        api.stage.pass_time(900)
        api.stage.run(400)

        steps = [NOON + SECOND + n * MINUTE for n in range((api.stage.clock.now() - NOON) // MINUTE)]
        answers = [api.get(f"{place}/explain", query={"at": text(at)}).json for at in steps]

        assert api.get(place).json["state"] == ("COMPLETED" if ends else "ACTIVE")
        assert [each["at"] for each in answers if each["occurs"] and each["runId"] is None] == []
        assert [each["at"] for each in answers if each["runId"] is not None]


@pytest.mark.parametrize(("off", "on"), [("pause", "resume"), ("deactivate", "activate")])
def test_a_step_that_a_late_start_moved_is_in_one_range_although_it_comes_while_the_job_is_off(
    off: str, on: str
) -> None:
    with made() as api:
        job = api.create(schedules=[{"every": "PT1M", "align": "actual_start"}])
        place, schedule = f"/v1/jobs/{job['id']}", job["schedules"][0]["id"]
        api.stage.pass_time(400)
        api.stage.run(3)
        assert api("POST", f"{place}/{off}", {} if off == "pause" else None).status == 200
        api.stage.run(90)
        assert api("POST", f"{place}/{on}").status == 200
        api.stage.run(200)

        moved = {"at": text(NOON + SECOND + 7 * MINUTE)}
        answer = api.get(f"{place}/schedules/{schedule}/explain", query=moved).json
        window = {"scheduleId": schedule, "from": moved["at"], "until": moved["at"], "limit": 100}
        covering = api.get("/v1/runs", query=window).json["items"]

        assert [(each["state"], each["reason"]) for each in covering] == [("MISSED", "SERVICE_OUTAGE")]
        assert (answer["state"], answer["runId"]) == ("MISSED", covering[0]["id"])


@pytest.mark.parametrize("ends", [{"count": 9}, {"endTime": "2027-03-01T12:10:10Z"}])
def test_each_step_of_a_moved_rhythm_is_announced_up_to_the_last_and_none_before_the_move(
    ends: dict[str, object],
) -> None:
    with made() as api:
        job = api.create(schedules=[{"every": "PT1M", "align": "actual_start", **ends}])
        schedule = job["schedules"][0]["id"]
        place = f"/v1/jobs/{job['id']}"
        announced: list[tuple[str, list[str], str | None]] = []
        api.stage.pass_time(400)
        for _ in range(7):
            api.stage.run(55)
            now = text(api.stage.clock.now())
            window = {"from": text(NOON), "until": text(NOON + 20 * MINUTE), "limit": 100}
            listed = api.get(f"{place}/occurrences", query=window).json["items"]
            ahead = [each["plannedAt"] for each in listed if each["state"] == "SCHEDULED"]
            shown = api.get(f"{place}/schedules/{schedule}").json
            announced.append((now, ahead, shown["nextRunAt"]))
        ran = {text(run.planned_at) for run in api.stage.runs(schedule) if run.range_count is None}

    for now, ahead, upcoming in announced:
        assert ahead == sorted(at for at in ran if at > now), now
        assert upcoming == (ahead[0] if ahead else None), now


@pytest.mark.parametrize("change", ["a new rule", "a pause"])
def test_a_change_may_plan_the_steps_again_that_an_outage_left_out(change: str) -> None:
    """They are left out up to the next occurrence, so the last one may be still to come."""
    with made() as api:
        job = api.create(schedules=[{"every": "PT10M", "align": "actual_start"}])
        schedule = job["schedules"][0]["id"]
        place, own = f"/v1/jobs/{job['id']}", f"/v1/jobs/{job['id']}/schedules/{schedule}"
        api.stage.run(300)
        api.stage.pass_time(2_000)
        api.stage.run(30)
        (line,) = [run for run in api.stage.runs(schedule) if run.range_until is not None]
        assert line.range_until > api.stage.clock.now()

        if change == "a new rule":
            assert api("PATCH", own, {"every": "PT1M", "align": None}).status == 200
        else:
            assert api("POST", f"{place}/pause").status == api("POST", f"{place}/resume").status == 200
            assert api.get(own).json["nextRunAt"] == text(line.range_until)
        announced = api.get(own).json["nextRuns"][:2]
        query = {"from": text(NOON), "until": announced[-1], "limit": 100}
        listed = {
            each["plannedAt"]: each["state"] for each in api.get(f"{place}/occurrences", query=query).json["items"]
        }
        answers = [api.get(f"{own}/explain", query={"at": at}).json for at in announced]
        api.stage.run(1_300)

        assert [listed[at] for at in announced] == [each["state"] for each in answers] == ["SCHEDULED"] * 2
        ran = {text(run.planned_at): run.state for run in api.stage.runs(schedule) if run.range_until is None}
        assert [ran.get(at) for at in announced] == [State.SUCCESS] * 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1_000, 1_400))
def test_every_instant_of_many_random_histories_is_explained_by_the_ledger(seed: int) -> None:
    play(seed)
