"""A schedule of a single instant after a change: how it stands x what is sent -> when it runs again, case by case."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.sap.api import FORM
from tests.support.endpoint import ACCEPTED, BUSY

AHEAD, OTHER, PAST = "2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z", "2027-02-01T00:00:00Z"
DATE = "2027-03-01T12:01:00Z"
MADE = {
    "waiting": {"time": AHEAD, "active": True},
    "ran": {"time": "in 1 minute", "active": True},
    "ran at once": {"time": "now", "active": True},
    "ran at a date": {"time": DATE, "active": True},
    "ran, then off": {"time": "in 1 minute", "active": True},
    "off": {"time": AHEAD, "active": False},
    "off, past": {"time": "in 1 minute", "active": False},
    "off, ended": {"time": "in 1 minute", "endTime": "2027-03-01T12:02:00Z", "active": False},
}
NEVER, AT_ONCE = None, "at once"
CASES = [
    ("waiting", {"description": "x"}, AHEAD),
    ("waiting", {"active": True}, AHEAD),
    ("waiting", {"time": AHEAD, "active": True}, AHEAD),
    ("waiting", {"time": OTHER}, OTHER),
    ("waiting", {"time": OTHER, "active": True}, OTHER),
    ("waiting", {"time": PAST}, AT_ONCE),
    ("waiting", {"active": False}, NEVER),
    ("ran", {"description": "x"}, NEVER),
    ("ran", {"data": {"a": 1}}, NEVER),
    ("ran", {"endTime": "2029-01-01"}, NEVER),
    ("ran", {"time": "in 1 minute"}, 60),
    ("ran", {"time": "in 1 minute", "modifiedAt": "2027-03-01 12:00:00"}, NEVER),
    ("ran", {"time": AHEAD}, AHEAD),
    ("ran", {"time": AHEAD, "active": True}, AHEAD),
    ("ran", {"time": PAST}, AT_ONCE),
    ("ran", {"time": PAST, "active": True}, AT_ONCE),
    ("ran", {"time": "in 1 minute", "active": True}, 60),
    ("ran", {"time": "in 4 minutes", "active": True}, 240),
    ("ran", {"active": True}, AT_ONCE),
    ("ran", {"active": True, "description": "x"}, AT_ONCE),
    ("ran", {"active": False}, NEVER),
    ("ran", {"time": AHEAD, "active": False}, NEVER),
    ("ran at once", {"description": "x"}, NEVER),
    ("ran at once", {"time": "now"}, AT_ONCE),
    ("ran at once", {"time": "now", "active": True}, AT_ONCE),
    ("ran at once", {"time": "in 4 minutes", "active": True}, 240),
    ("ran at once", {"active": True}, AT_ONCE),
    ("ran, then off", {"description": "x"}, NEVER),
    ("ran, then off", {"time": AHEAD}, NEVER),
    ("ran, then off", {"time": "in 1 minute"}, NEVER),
    ("ran at a date", {"time": DATE}, NEVER),
    ("ran at a date", {"time": "2027-03-01 12:01:00 +0000"}, NEVER),
    ("ran at a date", {"time": DATE, "active": True}, AT_ONCE),
    ("ran, then off", {"time": AHEAD, "active": True}, AHEAD),
    ("ran, then off", {"active": True}, AT_ONCE),
    ("off", {"active": True}, AHEAD),
    ("off", {"time": OTHER}, NEVER),
    ("off", {"time": OTHER, "active": True}, OTHER),
    ("off", {"time": AHEAD, "active": True}, AHEAD),
    ("off", {"time": PAST, "active": True}, AT_ONCE),
    ("off, past", {"description": "x"}, NEVER),
    ("off, past", {"active": True}, AT_ONCE),
    ("off, past", {"time": AHEAD, "active": True}, AHEAD),
    ("off, past", {"time": "in 1 minute", "active": True}, 60),
]


def path_of(made):
    return f"/jobs/{made['_id']}/schedules/{made['schedules'][0]['scheduleId']}"


def stands(api, how):
    """Makes a schedule that has reached this state, and returns how often it has run by then."""
    made = api.create(MADE[how])
    api.stage.run(300)
    if how == "ran, then off":
        assert api("PUT", path_of(made), {"active": False}).status == 200
        api.stage.run(300)
    return made, len(api.stage.endpoint.received)


def planned(api, then):
    if isinstance(then, int):
        return api.now(then + 1)  # the second that has begun counts whole
    return f"{then[:10]} {then[11:19]}"


@pytest.mark.parametrize(("how", "sent", "then"), CASES)
def test_a_change_runs_a_one_time_schedule_when_the_table_says(api, how, sent, then):
    made, ran = stands(api, how)

    reply = api("PUT", path_of(made), sent)
    answered_at = api.stage.clock.now()

    assert reply.status == 200, reply.text
    if then not in {NEVER, AT_ONCE}:
        assert (reply.json["active"], reply.json["nextRunAt"]) == (True, planned(api, then))
    elif then is NEVER:
        assert (reply.json["active"], reply.json["nextRunAt"]) == (False, None)
    api.stage.run(50)
    runs = api.stage.endpoint.received[ran:]
    assert len(runs) == (then == AT_ONCE)
    assert all(each.at - answered_at < timedelta(seconds=8) for each in runs)
    api.stage.run(300)
    due = then == AT_ONCE or isinstance(then, int)
    assert len(api.stage.endpoint.received) == ran + due
    again = api.get(path_of(made)).json
    if then not in {AHEAD, OTHER}:
        assert (again["active"], again["nextRunAt"]) == (False, None)


def test_a_one_time_schedule_can_be_activated_again_after_each_run(api):
    made, _ = stands(api, "ran")
    where = f"/jobs/{made['_id']}/schedules/activationStatus"

    for n in range(3):
        assert api("PUT", path_of(made), {"active": True}).json["active"] is True
        api.stage.run(200)
        assert api("POST", where, {"activationStatus": True}).status == 200
        api.stage.run(200)
        assert len(api.stage.endpoint.received) == 1 + 2 * (n + 1)
    later = api("PUT", path_of(made), {"time": "in 4 minutes", "active": True}).json
    assert (later["active"], later["nextRunAt"]) == (True, api.now(241))


@pytest.mark.parametrize("how", ["off", "off, past", "ran", "waiting"])
def test_activating_all_schedules_follows_the_same_rule(api, how):
    made, ran = stands(api, how)
    where = f"/jobs/{made['_id']}/schedules/activationStatus"

    assert api("POST", where, {"activationStatus": True}).status == 200
    api.stage.run(120)

    assert len(api.stage.endpoint.received) - ran == (how in {"off, past", "ran"})
    planned_next = {"off": f"{AHEAD[:10]} 00:00:00", "waiting": f"{AHEAD[:10]} 00:00:00"}
    assert api.get(path_of(made)).json["nextRunAt"] == planned_next.get(how)


def test_a_one_time_schedule_is_not_activated_after_its_end(api):
    made, _ = stands(api, "off, ended")
    where = f"/jobs/{made['_id']}/schedules/activationStatus"

    with api.native.unchanged():
        refused = [api("PUT", path_of(made), {"active": True}), api("POST", where, {"activationStatus": True})]

    assert [reply.status for reply in refused] == [400, 400]
    assert all("endTime" in reply.json["message"] for reply in refused)


def test_activating_a_one_time_schedule_twice_runs_it_once(api):
    """Its answer may have been lost: SAP's client sends it again."""
    made, ran = stands(api, "ran")

    first = api("PUT", path_of(made), {"active": True}).json
    api.stage.clock.advance(2)
    second = api("PUT", path_of(made), {"active": True}).json
    api.stage.run(200)

    assert first["active"] is second["active"] is True
    assert first["nextRunAt"] == f"{api.stage.endpoint.received[-1].call.planned_at:{FORM}}"
    assert len(api.stage.endpoint.received) == ran + 1


# Used up: its run has begun, and it still stands as switched on

STANDS = {
    "goes on, no tick since": (ACCEPTED, {"seconds": 3, "tick_in_s": 40}),
    "goes on": (ACCEPTED, {"seconds": 100}),
}
USED_UP = [
    ("now", {"time": "now"}, AT_ONCE),
    ("now", {"time": "now", "active": True}, AT_ONCE),
    ("now", {"active": True}, AT_ONCE),
    ("now", {"active": True, "description": "x"}, AT_ONCE),
    ("now", {"time": "in 1 minute"}, 60),
    ("now", {"time": "in 4 minutes", "active": True}, 240),
    ("now", {"time": PAST}, AT_ONCE),
    ("now", {"time": PAST, "active": True}, AT_ONCE),
    ("now", {"time": AHEAD}, AHEAD),
    ("now", {"description": "x"}, NEVER),
    ("now", {"data": {"a": 1}}, NEVER),
    ("now", {"time": "now", "active": False}, NEVER),
    ("now", {"active": False}, NEVER),
    ("now", {"endTime": "2029-01-01"}, NEVER),
    (PAST, {"time": PAST}, NEVER),
    (PAST, {"time": PAST, "active": True}, NEVER),
    (PAST, {"active": True}, AT_ONCE),
    ("2027-03-01T12:00:02Z", {"time": "2027-03-01T12:00:02Z", "active": True}, NEVER),
    ("2027-03-01T12:00:02Z", {"time": "now"}, AT_ONCE),
]


def used_up(api, how, time="now"):
    answer, passed = STANDS[how]
    api.stage.endpoint.script[:] = [answer] if answer else []
    made = api.create({"time": time})
    api.stage.run(**passed)
    shown = api.get(path_of(made)).json
    assert (shown["active"], shown["nextRunAt"], len(api.stage.endpoint.received)) == (True, None, 1)
    return made


@pytest.mark.parametrize("answer", [None, BUSY], ids=["success", "failure"])
@pytest.mark.parametrize("tick_in_s", [1, 4, 40, 59])
def test_a_one_time_schedule_is_inactive_within_seconds_of_its_run(api, answer, tick_in_s):
    """Whenever the next tick comes."""
    api.stage.endpoint.script[:] = [answer] if answer else []
    made = api.create({"time": "now"})

    api.stage.run(5, tick_in_s=tick_in_s)

    shown = api.get(path_of(made)).json
    assert (shown["active"], shown["nextRunAt"], len(api.stage.endpoint.received)) == (False, None, 1)


@pytest.mark.parametrize("how", STANDS)
@pytest.mark.parametrize(("time", "sent", "then"), USED_UP)
def test_a_finished_one_time_schedule_runs_again_when_the_table_says(api, how, time, sent, then):
    made = used_up(api, how, time)

    reply = api("PUT", path_of(made), sent)
    answered_at = api.stage.clock.now()

    assert reply.status == 200, reply.text
    if then not in {NEVER, AT_ONCE}:
        assert (reply.json["active"], reply.json["nextRunAt"]) == (True, planned(api, then))
    api.stage.run(400)
    later = api.stage.endpoint.received[1:]
    assert len(later) == (then == AT_ONCE or isinstance(then, int))
    if then == AT_ONCE:
        assert all(each.at - answered_at < timedelta(seconds=3) for each in later)
    assert len(set(api.stage.endpoint.run_ids)) == 1 + len(later)


@pytest.mark.parametrize("how", STANDS)
def test_activating_all_schedules_includes_finished_one_time_schedules(api, how):
    made = used_up(api, how)

    assert api("POST", f"/jobs/{made['_id']}/schedules/activationStatus", {"activationStatus": True}).status == 200
    api.stage.run(200)

    assert len(api.stage.endpoint.received) == 2


@pytest.mark.parametrize("how", STANDS)
def test_sending_back_a_job_or_schedule_as_read_starts_no_further_run(api, how):
    made = used_up(api, how)
    job = api.get(f"/jobs/{made['_id']}", query="displaySchedules=true").json

    assert api("PUT", path_of(made), api.get(path_of(made)).json | {"description": "x"}).status == 200
    assert api("PUT", f"/jobs/{made['_id']}", job | {"description": "x"}).status == 200
    api.stage.run(400)

    assert len(api.stage.endpoint.received) == 1


@pytest.mark.parametrize("sent", [{"time": "now"}, {"active": True}, {"time": "now", "active": True}])
@pytest.mark.parametrize("waits_s", [0, 0.25, 0.5, 2])
def test_a_request_during_a_pending_run_starts_no_further_run(api, sent, waits_s):
    made = api.create({"time": "now"})
    api.stage.clock.advance(waits_s)

    for _ in range(3):
        assert api("PUT", path_of(made), sent).status == 200
    api.stage.run(400)

    assert len(api.stage.endpoint.received) == 1
    assert api.get(path_of(made)).json["active"] is False


@pytest.mark.parametrize("tick_in_s", [0, 1, 4, 30])
@pytest.mark.parametrize("again_s", [0, 0.1, 1, 8])
def test_each_request_after_the_run_began_adds_one_run(api, tick_in_s, again_s):
    made = api.create({"time": "now"})
    api.stage.run(1, tick_in_s=tick_in_s)  # to the very second of its run

    for n in range(1, 6):
        assert len(api.stage.endpoint.received) == n
        assert api("PUT", path_of(made), {"time": "now", "active": True}).status == 200
        api.stage.run(1 + again_s)
    api.stage.run(400)

    assert len(set(api.stage.endpoint.run_ids)) == 6
    assert len(api.stage.endpoint.received) == 6
    totals = api.stage.runs(made["schedules"][0]["scheduleId"])
    assert [run.state for run in totals] == ["SUCCESS"] * 6
    assert api.get(path_of(made)).json["active"] is False
    events = [each["type"] for each in api.get("/actionLogs", query=f"jobId={made['_id']}").json["results"]]
    assert "DEACTIVATION_ON_COMPLETION" in events


def test_a_finished_one_time_schedule_does_not_run_again_after_its_end(api):
    api.stage.endpoint.script[:] = [ACCEPTED]
    made = api.create({"time": "now", "endTime": "2027-03-01T12:01:00Z"})
    api.stage.run(100)
    switch = f"/jobs/{made['_id']}/schedules/activationStatus"

    with api.native.unchanged():
        refused = [api("PUT", path_of(made), sent) for sent in ({"active": True}, {"time": "now"})]
        refused.append(api("POST", switch, {"activationStatus": True}))

    assert [reply.status for reply in refused] == [400, 400, 400]


@pytest.mark.parametrize("time", [PAST, {"date": "01/02/2026", "format": "DD/MM/YYYY"}, "now"])
def test_a_one_time_schedule_created_in_the_past_shows_when_it_runs(api, time):
    made = api.create({"time": time})
    line = api.get(path_of(made) + "/runs").json["results"][0]
    api.stage.run(1)

    assert made["schedules"][0]["nextRunAt"] == line["scheduleTimestamp"] == api.now()
    assert line["runStatus"] == "SCHEDULED"
    assert [run["runId"] for run in api.get(path_of(made) + "/runs").json["results"]] == [line["runId"]]
    assert len(api.stage.endpoint.received) == 1
