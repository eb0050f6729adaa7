"""Workers that do not come: their runs get rows and end by their policies, and their application is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from bench.meter import metered
from sweephand.domain.event import EventType
from sweephand.domain.instants import text
from sweephand.domain.run import Kind, State
from sweephand.domain.schedule import Lane
from sweephand.server.facades.native.overview import timeline
from sweephand.server.store.dynamo import keys
from sweephand.server.store.runs import run_rows
from sweephand.testing.service import URLS
from tests.contract.native.api import Api
from tests.contract.native.test_workers import REPORT, Hand, create, due, register, runs
from tests.support.stage import TENANT

EVERY_10_S, EVERY_MINUTE = [{"every": "PT10S"}], [{"every": "PT1M"}]
SKIP = {"misfire": {"type": "skip", "maxLatenessSeconds": 10}}
ALL = {"misfire": {"type": "all"}}
ON_MISSED = {"onMissed": {"type": "http", "url": "https://example.org/missed"}}
AWAY, BACK = EventType.APPLICATION_AWAY, EventType.APPLICATION_BACK


@pytest.fixture
def hand(api: Api) -> Hand:
    return Hand(api, register(api))


def states(api: Api, job: Mapping[str, Any]) -> Counter[str]:
    return Counter(run.state.value for run in api.stage.runs(job["schedules"][0]["id"], Kind.SCHEDULED))


def attention(api: Api) -> list[dict[str, Any]]:
    items = api.get("/v1/attention").json["items"]
    return [each for each in items if each["kind"] == "application"]


def away(api: Api) -> list[Mapping[str, Any]]:
    return api.stage.bus.of(AWAY)


def back(api: Api) -> list[Mapping[str, Any]]:
    return api.stage.bus.of(BACK)


def totals(api: Api, job: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/v1/jobs/{job['id']}").json["totals"]
    return found


def days(api: Api, number: int) -> None:
    """Lets days go by. The stack works for ten minutes of each, around the time of day at which this begins."""
    for _ in range(number):
        api.stage.pass_time(86_400 - 600)
        api.stage.run(600)


def test_a_run_that_no_worker_takes_gets_its_row_within_a_minute(api, hand):
    job = create(api)

    due(api, 3_600 + 58)
    assert runs(api, job) == []
    api.stage.run(3)

    [run] = runs(api, job)
    assert (run["state"], run["reason"], run["status"], run["attempt"]) == ("HELD", "CONSUMER_AWAY", "RUNNING", 1)
    assert run["enqueuedAt"] < run["plannedAt"]
    assert run["startedAt"] is None


def test_an_absent_worker_is_reported_within_two_minutes_and_its_runs_end_with_their_hooks(api, hand):
    job = create(api, schedules=EVERY_10_S, policies=SKIP, hooks=ON_MISSED)
    first = job["nextRunAt"][:19]

    api.stage.run(10 + 120)

    assert states(api, job).keys() == {"EXPIRED"}
    assert api.stage.endpoint.received
    [item] = attention(api)
    assert (item["id"], item["since"][:19], item["nextStep"]["verb"]) == ("billing", first, "start")
    assert item["sentence"].startswith("No worker of billing has taken a run for 1")
    [event] = away(api)
    assert (event["application"], event["applicationVersion"], event["tenant"]) == ("billing", None, TENANT)
    assert event["since"][:19] == first
    [listed] = api.get("/v1/health", caller="provider").json["away"]
    assert (listed["kind"], listed["tenant"], listed["name"]) == ("application", TENANT, "billing")
    assert listed["waiting"] >= 6
    assert api.stage.journal.counts["Away"] >= 1


def test_a_worker_that_comes_back_takes_each_held_run_once_and_is_reported_once(api, hand):
    job = create(api, schedules=EVERY_MINUTE, policies=ALL)
    due(api, 4 * 3_600)
    assert states(api, job) == {"HELD": 240 - 1}

    tasks = hand.work()
    api.stage.run(59)

    planned = [task["plannedAt"] for task in tasks]
    assert len(planned) == len(set(planned)) == 240
    assert hand.work() == []
    assert states(api, job) == {"SUCCESS": 240}
    shown = totals(api, job)
    assert shown["planned"] - shown["open"] == 240
    assert len(away(api)) == 1
    [event] = back(api)
    assert (event["reason"], event["since"]) == ("RECEIVED", away(api)[0]["since"])
    assert attention(api) == []
    assert api.get("/v1/health", caller="provider").json["away"] == []


def test_the_default_policy_acts_while_the_worker_is_away(api, hand):
    """Occurrences of up to 20 minutes may still run; before that, only the last one waits."""
    job = create(api, schedules=EVERY_MINUTE, hooks=ON_MISSED)

    due(api, 4 * 3_600)

    found = states(api, job)
    assert found["HELD"] == pytest.approx(20, abs=2)
    assert found["MISSED"] + found["HELD"] == 239
    assert len(api.stage.endpoint.received) == found["MISSED"]
    shown = totals(api, job)
    assert shown["planned"] - shown["open"] >= found["MISSED"]


def test_a_worker_that_was_away_for_weeks_gets_the_last_occurrence_alone(api, hand):
    job = create(api, schedules=[{"every": "P1D"}])
    for _ in range(60):
        days(api, 1)
    assert states(api, job) == {"MISSED": 58, "HELD": 1}

    register(api)
    tasks = hand.work()
    api.stage.run(60)

    assert len(tasks) == 1
    assert states(api, job) == {"MISSED": 58, "SUCCESS": 1}
    assert (len(away(api)), len(back(api))) == (1, 1)


def test_a_run_that_nobody_takes_for_four_days_expires_under_any_policy(api, hand):
    job = create(api, schedules=[{"at": text(api.stage.clock.now() + timedelta(hours=1))}], policies=ALL)

    api.stage.run(3_600 + 120)
    days(api, 5)

    [run] = runs(api, job)
    assert (run["state"], run["reason"]) == ("EXPIRED", "MAX_AGE")
    assert api.get(f"/v1/jobs/{job['id']}").json["state"] == "COMPLETED"
    assert hand.work() == []


def test_a_worker_that_never_came_is_away(api):
    register(api)
    create(api)

    due(api, 3_600 + 120)

    assert len(attention(api)) == 1


def test_one_of_two_workers_is_enough(api, hand):
    create(api, schedules=EVERY_10_S, policies={"overlap": "allow"})

    for _ in range(30):
        api.stage.run(10)
        hand.work()

    assert (attention(api), away(api), back(api)) == ([], [], [])


def test_a_busy_worker_is_not_away(api, hand):
    """Its only thread carries out one run while others wait."""
    job = create(api, schedules=EVERY_10_S, policies={"overlap": "allow", **ALL})
    api.stage.run(11)
    [message] = hand.receive(1)
    task = hand.claim(message).json["task"]

    for _ in range(30):
        api.stage.run(10)
        hidden = {"VisibilityTimeout": 60, "ReceiptHandle": message.receipt}
        api.stage.sqs.change_message_visibility(QueueUrl=hand.url, **hidden)
        owner = {"owner": f"hand/{message.receipt}"}
        assert api("POST", f"/v1/runs/{task['runId']}/heartbeat", owner).status == 200

    assert (attention(api), away(api)) == ([], [])
    assert states(api, job)["HELD"] > 20
    assert hand.report(task, message).status == 200
    hand.delete(message)
    hand.work()
    assert states(api, job).keys() == {"SUCCESS"}
    assert back(api) == []


ALLOW = {"overlap": "allow", **ALL}


def hide(hand: Hand, message: Any, seconds: int) -> None:
    hidden = {"VisibilityTimeout": seconds, "ReceiptHandle": message.receipt}
    hand.api.stage.sqs.change_message_visibility(QueueUrl=hand.url, **hidden)


def receive_alone(hand: Hand, seconds: int, hidden_s: int, most: int = 10) -> None:
    """Lets a worker receive for this long whose claims fail: its messages come back after `hidden_s`."""
    for _ in range(seconds // 5):
        for message in hand.receive(most):
            hide(hand, message, hidden_s)
        hand.api.stage.run(5)


@pytest.mark.parametrize("schedules", [EVERY_10_S, EVERY_MINUTE], ids=["busy", "quiet"])
@pytest.mark.parametrize("hidden_s", [30, 70], ids=["the credential was revoked", "it crashes before its claim"])
def test_a_worker_that_receives_but_never_claims_is_away_within_two_minutes(api, hand, hidden_s, schedules):
    job = create(api, schedules=schedules, policies=ALLOW)
    first_in_s = 10 if schedules is EVERY_10_S else 60
    api.stage.run(first_in_s)

    receive_alone(hand, 120, hidden_s)

    [item] = attention(api)
    assert (item["id"], item["since"][:19]) == ("billing", job["nextRunAt"][:19])
    assert len(away(api)) == 1
    assert [each["name"] for each in api.get("/v1/health", caller="provider").json["away"]] == ["billing"]
    assert api.stage.journal.counts["Away"] >= 1
    receive_alone(hand, 600, hidden_s)
    assert (len(away(api)), back(api)) == (1, []), "it does not come back by receiving"

    api.stage.run(hidden_s)
    assert hand.work()
    api.stage.run(5)
    assert ([event["reason"] for event in back(api)], attention(api)) == (["RECEIVED"], [])


def test_a_worker_that_registers_at_each_start_and_crashes_before_its_claim_is_away(api, hand):
    create(api, schedules=EVERY_10_S, policies=ALLOW)
    api.stage.run(10)

    for _ in range(12):
        register(api)
        receive_alone(hand, 10, 70, most=1)

    assert (len(away(api)), back(api)) == (1, [])


@pytest.mark.parametrize("schedules", [EVERY_10_S, EVERY_MINUTE], ids=["busy", "quiet"])
def test_a_worker_that_crashes_among_healthy_ones_makes_nobody_away(api, hand, schedules):
    """It gets each message first, and again when the message comes back; the healthy ones get all others."""
    create(api, schedules=schedules, policies=ALLOW)
    api.stage.run(11 if schedules is EVERY_10_S else 61)
    [poison] = hand.receive(1)
    hide(hand, poison, 30)

    for _ in range(120):
        for message in hand.receive():
            if message.body == poison.body:
                hide(hand, message, 30)
            elif (said := hand.claim(message).json)["verdict"] == "run":
                assert hand.report(said["task"], message).status == 200
                hand.delete(message)
        api.stage.run(5)

    assert (attention(api), away(api), back(api)) == ([], [], [])


@pytest.mark.parametrize(("lease_s", "seconds"), [(60, 600), (120, 215), (600, 600)])
def test_ten_busy_workers_with_a_backlog_are_not_away(api, hand, lease_s, seconds):
    """Only those with the usual lease send heartbeats."""
    job = create(api, schedules=EVERY_10_S, policies=ALLOW)
    held: list[tuple[Any, dict[str, Any]]] = []

    for second in range(1, seconds, 5):
        for message in hand.receive(1) if len(held) < 10 else []:
            said = hand.claim(message, leaseSeconds=lease_s).json
            hide(hand, message, said["waitSeconds"] or lease_s + 10)
            held += [(message, said["task"])] if said["verdict"] == "run" else []
        for message, task in held if lease_s == 60 and second % 20 == 1 else []:
            beat = {"owner": f"hand/{message.receipt}"}
            assert api("POST", f"/v1/runs/{task['runId']}/heartbeat", beat).status == 200
            hide(hand, message, 70)
        api.stage.run(5)

    assert len(held) == 10
    assert (attention(api), away(api), back(api)) == ([], [], [])
    assert states(api, job)["HELD"] >= 4


def test_a_busy_worker_that_dies_is_away_within_two_minutes_of_its_lease(api, hand):
    create(api, schedules=EVERY_10_S, policies=ALLOW)
    api.stage.run(11)
    [message] = hand.receive(1)
    task = hand.claim(message).json["task"]
    for _ in range(15):
        hide(hand, message, 70)
        beat = {"owner": f"hand/{message.receipt}"}
        assert api("POST", f"/v1/runs/{task['runId']}/heartbeat", beat).status == 200
        api.stage.run(20)
    assert away(api) == []

    api.stage.run(40 + 120)

    assert len(away(api)) == 1


def test_a_worker_whose_message_was_deleted_by_hand_is_busy_all_the_same(api, hand):
    create(api, schedules=EVERY_10_S, policies=ALLOW)
    api.stage.run(11)
    [message] = hand.receive(1)
    assert hand.claim(message, leaseSeconds=600).json["verdict"] == "run"

    hand.delete(message)
    api.stage.run(300)

    assert (attention(api), away(api)) == ([], [])


def test_a_busy_worker_of_one_version_says_nothing_about_another(api, hand):
    pinned = Hand(api, register(api, version="2"), version="2")
    create(api, schedules=EVERY_10_S, policies=ALLOW)
    create(api, {**REPORT, "version": "2"}, schedules=EVERY_10_S, policies=ALLOW)
    api.stage.run(11)
    [message] = hand.receive(1)
    assert hand.claim(message, leaseSeconds=600).json["verdict"] == "run"

    receive_alone(pinned, 120, 30)

    [event] = away(api)
    assert event["applicationVersion"] == "2"


def test_claims_and_heartbeats_cost_nothing_more_while_nothing_is_watched(api, hand):
    create(api, policies={"overlap": "allow"})
    due(api)
    [message] = hand.receive()
    api.stage.clock.advance(1)
    with metered() as meter:
        task = hand.claim(message).json["task"]
        assert meter.take().writes == 1
        for _ in range(8):
            api.stage.run(20)
            hide(hand, message, 70)
            meter.take()
            assert (
                api("POST", f"/v1/runs/{task['runId']}/heartbeat", {"owner": f"hand/{message.receipt}"}).status == 200
            )
            assert meter.take().writes == 1


def test_only_the_version_without_workers_is_away(api, hand):
    pinned = register(api, version="2")
    create(api, {**REPORT, "version": "2"})
    create(api)

    due(api, 3_600)
    hand.work()
    due(api, 120)

    [item] = attention(api)
    assert (item["name"], away(api)[0]["applicationVersion"]) == ("billing version 2", "2")
    Hand(api, pinned, version="2").work()
    api.stage.run(60)
    assert attention(api) == []
    assert len(back(api)) == 1


def test_an_application_without_due_runs_is_never_away_and_costs_nothing(api, hand):
    create(api, schedules=[])
    api.stage.tick()

    with metered() as meter:
        due(api, 24 * 3_600)

        assert meter.take().writes == 0
    assert (attention(api), away(api)) == ([], [])
    assert api.stage.waiting() == {}


def test_a_worker_that_comes_and_goes_is_reported_each_time(api, hand):
    create(api, schedules=EVERY_MINUTE, policies={**SKIP, "overlap": "allow"})

    for _ in range(3):
        due(api, 600)
        hand.work()
        due(api, 30)

    assert (len(away(api)), len(back(api))) == (3, 3)
    assert len({event["since"] for event in away(api)}) == 3
    assert [event["since"] for event in away(api)] == [event["since"] for event in back(api)]


def test_a_job_that_is_paused_while_its_worker_is_away_does_not_run_afterwards(api, hand):
    job = create(api, policies=ALL)
    due(api, 3_600 + 120)

    api("POST", f"/v1/jobs/{job['id']}/pause")
    assert hand.work() == []
    api.stage.run(60)

    [run] = [each for each in runs(api, job) if each["kind"] == "scheduled"]
    assert (run["state"], run["reason"]) == ("SKIPPED", "PAUSED")


def test_a_job_that_is_deleted_while_its_worker_is_away_leaves_nothing_open(api, hand):
    job = create(api, schedules=EVERY_MINUTE, policies=ALL)
    due(api, 600)

    assert api("DELETE", f"/v1/jobs/{job['id']}").status == 204
    api.stage.run(300)

    assert states(api, job).keys() <= {"CANCELLED"}
    assert hand.work() == []
    api.stage.run(300)
    assert not any(api.stage.sqs.bodies(url) for url in [hand.url, *URLS.values()])
    assert attention(api) == []


@pytest.mark.parametrize("how", ["manual", "hook", "retry"])
def test_runs_that_have_rows_before_their_messages_are_looked_after_too(api, hand, how):
    failing = {"type": "http", "url": "https://example.org/run"}
    if how == "hook":
        job = api.create(action=failing, schedules=[], hooks={"onSuccess": REPORT})
    else:
        job = create(api, REPORT | {"retry": {"type": "fixed", "delaySeconds": 60, "maxRetries": 3}}, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")
    if how == "retry":
        hand.work("failure")
        api.stage.run(60)
    assert away(api) == []

    api.stage.run(120)

    assert len(away(api)) == 1
    assert len(hand.work()) == 1
    api.stage.run(60)
    assert len(back(api)) == 1


def test_a_worker_that_dies_in_a_run_is_away_after_the_lease(api, hand):
    create(api, schedules=[])
    job = create(api, schedules=[])
    api("POST", f"/v1/jobs/{job['id']}/run")
    [message] = hand.receive()
    assert hand.claim(message).json["verdict"] == "run"

    api.stage.run(60 + 60 + 60)

    assert len(away(api)) == 1
    assert len(hand.work()) == 1


def test_a_purged_queue_ends_the_report_and_the_audit_refills_it(api, hand):
    job = create(api, policies=ALL)
    due(api, 3_600 + 120)
    api.stage.sqs.purge(hand.url)

    due(api, 1_200)
    [event] = back(api)
    assert event["reason"] == "NOTHING_WAITS"
    api.stage.audit()

    assert len(hand.work()) == 1
    assert states(api, job)["SUCCESS"] == 1


def test_a_job_that_no_longer_goes_to_workers_runs_elsewhere(api, hand):
    job = create(api, schedules=EVERY_MINUTE, policies=ALL)
    due(api, 60)

    action = dict.fromkeys(("application", "task", "version")) | {"type": "http", "url": "https://example.org/run"}
    changed = api("PATCH", f"/v1/jobs/{job['id']}", {"action": action})
    assert changed.status == 200, changed.text
    due(api, 180)

    assert states(api, job).keys() == {"SUCCESS"}
    assert not [body for body in api.stage.sqs.bodies(URLS[Lane.FAST]) if "unclaimed" in body]


def test_looking_after_a_run_writes_nothing_if_a_worker_has_taken_it(api, hand):
    create(api, policies={"overlap": "allow"})
    due(api)
    hand.work()

    with metered() as meter:
        api.stage.run(120)

        assert meter.take().writes == 0


def lanes(api: Api) -> dict[str, dict[str, Any]]:
    shown = api.get("/v1/timeline").json
    return {each["name"]: each for each in shown["items"]}


def test_the_overview_shows_no_success_for_an_instant_without_a_row(api, hand):
    create(api, name="worker", schedules=EVERY_MINUTE, policies={"overlap": "allow"})
    api.create(name="call", action={"type": "http", "url": "https://example.org/run"}, schedules=EVERY_MINUTE)
    due(api, 130)
    hand.work()
    due(api, 240)

    found = lanes(api)

    worker, call = found["worker"], found["call"]
    assert (len(call["noFailure"]["seconds"]), call["noRow"]["seconds"], call["dueSince"]) == (6, [], None)
    assert len(worker["noFailure"]["seconds"]) == 2
    assert [mark["state"] for mark in worker["marks"]] == ["HELD"] * 3
    assert len(worker["noRow"]["seconds"]) == 1, "the instant of the last minute"
    assert worker["dueSince"] == "2027-03-01T12:03:01Z"
    assert worker["sentence"] == "No worker of billing has taken what is due since 2027-03-01T12:03:01Z."


def test_the_overview_shows_what_executors_have_not_begun(api):
    api.create(name="call", action={"type": "http", "url": "https://example.org/run"}, schedules=EVERY_MINUTE)
    due(api, 130)

    for _ in range(4):
        api.stage.tick()
        api.stage.clock.advance(60)

    [lane] = lanes(api).values()
    assert (len(lane["noFailure"]["seconds"]), len(lane["noRow"]["seconds"])) == (2, 4)
    assert lane["dueSince"] == "2027-03-01T12:03:01Z"
    assert lane["sentence"] == "What is due since 2027-03-01T12:03:01Z has not begun."


def test_an_application_that_was_given_up_is_deleted_with_its_report(api, hand):
    job = create(api, policies=ALL)
    due(api, 3_600 + 120)
    [listed] = api.get("/v1/applications").json["items"]
    assert (listed["name"], listed["awayAt"] is None, listed["waiting"]) == ("billing", False, 1)
    refused = api("DELETE", "/v1/applications/billing")
    assert (refused.status, job["id"] in refused.json["detail"]) == (409, True)

    assert api("DELETE", f"/v1/jobs/{job['id']}").status == 204
    api.stage.run(120)
    assert api("DELETE", "/v1/applications/billing").status == 204

    assert [event["reason"] for event in back(api)] == ["DELETED"]
    assert (attention(api), api.get("/v1/health", caller="provider").json["away"]) == ([], [])
    assert api.get("/v1/applications").json["items"] == []
    assert api.get("/v1/applications/billing").status == 404
    assert hand.url not in api.stage.sqs.created
    api.stage.run(300)
    assert api.stage.waiting() == {}


@pytest.mark.parametrize("place", ["errorAction", "hook", "schedule"])
def test_an_application_that_a_hook_names_is_not_deleted(api, hand, place):
    action = {"type": "http", "url": "https://example.org/run"}
    hooks = {"onFailure": REPORT}
    members: dict[str, Any] = {"errorAction": {"errorAction": REPORT}, "hook": {"hooks": hooks}}.get(place, {})
    schedules = [{"every": "PT1H", "hooks": hooks}] if place == "schedule" else EVERY_MINUTE
    api.create(action=action, schedules=schedules, **members)

    assert api("DELETE", "/v1/applications/billing").status == 409


def test_versions_are_listed_read_and_deleted_by_themselves(api, hand):
    register(api, version="2")

    assert [each["version"] for each in api.get("/v1/applications").json["items"]] == [None, "2"]
    first = api.get("/v1/applications", query="limit=1").json
    second = api.get("/v1/applications", query={"limit": "1", "cursor": first["nextCursor"]}).json
    assert [each["version"] for each in second["items"]] == ["2"]
    assert api.get("/v1/applications/billing", query="version=2").json["version"] == "2"
    assert api("DELETE", "/v1/applications/billing", query="version=2").status == 204
    assert api.get("/v1/applications/billing", query="version=2").status == 404
    assert api.get("/v1/applications/billing").status == 200


def test_the_overview_shows_a_gap_between_rows(api):
    made = api.create(action={"type": "http", "url": "https://example.org/run"}, schedules=EVERY_MINUTE)
    due(api, 10 * 60 + 10)
    lost = api.stage.runs(made["schedules"][0]["id"])[3]
    api.stage.world.table.delete(*run_rows.key_of(lost))

    [lane] = lanes(api).values()

    assert (len(lane["noFailure"]["seconds"]), len(lane["noRow"]["seconds"])) == (9, 1)
    assert lane["dueSince"] == text(lost.planned_at)


def test_the_overview_of_many_jobs_shows_gaps_among_their_newest_rows(api, monkeypatch):
    monkeypatch.setattr(timeline, "MOST_ROWS", 1)
    made = api.create(action={"type": "http", "url": "https://example.org/run"}, schedules=EVERY_MINUTE)
    due(api, 10 * 60 + 10)
    for number in (2, 7):
        api.stage.world.table.delete(*run_rows.key_of(api.stage.runs(made["schedules"][0]["id"])[number]))

    [lane] = lanes(api).values()

    assert len(lane["noRow"]["seconds"]) == 1


@pytest.mark.parametrize("lost", [["shard"], ["shard", "next_run_at"], ["next_run_at"]])
def test_the_overview_shows_a_schedule_that_has_left_the_next_run_index(api, lost):
    made = api.create(action={"type": "http", "url": "https://example.org/run"}, schedules=EVERY_MINUTE)
    due(api, 130)
    key = keys.job(TENANT, made["id"]), keys.schedule(made["schedules"][0]["id"])
    api.stage.edit_item(*key, **dict.fromkeys(lost))
    api.stage.run(300)

    [lane] = lanes(api).values()

    assert len(lane["noFailure"]["seconds"]) <= 4, "what was sent before"
    assert lane["dueSince"] is not None
    assert lane["sentence"].startswith("What is due since 2027-03-01T12:0")


def test_the_overview_shows_a_broken_schedule(api):
    made = api.create(name="call", action={"type": "http", "url": "https://example.org/run"}, schedules=EVERY_MINUTE)
    due(api, 130)
    key = keys.job(TENANT, made["id"]), keys.schedule(made["schedules"][0]["id"])
    api.stage.edit_item(*key, sweep={"S": "S;fast;;{broken"})
    api.stage.run(240)

    [lane] = lanes(api).values()

    assert lane["schedules"][0]["state"] == "BROKEN"
    assert {mark["reason"] for mark in lane["marks"]} >= {"BAD_PAYLOAD"}
    assert len(lane["noFailure"]["seconds"]) <= 4
    items = api.get("/v1/attention").json["items"]
    assert [(each["kind"], each["reason"]) for each in items] == [("errors", "BAD_PAYLOAD")]


@pytest.mark.parametrize("times", [1, 2])
def test_held_runs_follow_a_job_to_its_new_action(api, hand, times):
    job = create(api, schedules=EVERY_MINUTE, policies=ALL)
    due(api, 10 * 60 + 30)
    held = {run.id for run in api.stage.runs(job["schedules"][0]["id"]) if run.state is State.HELD}
    assert len(held) == 9

    call = {"type": "http", "url": "https://example.org/new"}
    for action in [call, REPORT, call][: 2 * times - 1]:
        reply = api("PUT", f"/v1/jobs/{job['id']}", {"policies": ALL, "action": action})
        assert reply.status == 200, reply.text
    api.stage.run(90)

    called = Counter(call.call.run_id for call in api.stage.endpoint.received)
    assert set(called.values()) == {1}
    assert held <= called.keys()
    assert states(api, job).keys() == {"SUCCESS"}
    assert hand.work() == [], "whoever comes back does not repeat them"


def test_held_runs_follow_a_job_to_another_application(api, hand):
    other = Hand(api, register(api, "invoices"), "invoices")
    job = create(api, schedules=EVERY_MINUTE, policies=ALL)
    due(api, 5 * 60 + 30)

    assert api("PATCH", f"/v1/jobs/{job['id']}", {"action": {**REPORT, "application": "invoices"}}).status == 200
    api.stage.run(20)

    assert len(other.work()) == states(api, job)["SUCCESS"] >= 4
    assert hand.work() == []


HTTP = dict.fromkeys(("application", "task", "version")) | {"type": "http", "url": "https://example.org/run"}


@pytest.mark.parametrize("deleted", [False, True], ids=["the application stays", "the application is deleted"])
@pytest.mark.parametrize("how", ["manual", "retry", "changed hook", "removed hook"])
def test_runs_that_wait_for_workers_go_on_or_end_if_their_action_leaves_the_workers(api, hand, how, deleted):
    calls = {"type": "http", "url": "https://example.org/run"}
    if "hook" in how:
        job = api.create(action=calls, schedules=[], hooks={"onSuccess": REPORT})
        change: Any = {"hooks": {"onSuccess": HTTP} if how == "changed hook" else None}
    else:
        job = create(api, REPORT | {"retry": {"type": "fixed", "delaySeconds": 60, "maxRetries": 3}}, schedules=[])
        change = {"action": HTTP}
    api("POST", f"/v1/jobs/{job['id']}/run")
    if how == "retry":
        hand.work("failure")
    api.stage.run(30)

    changed = api("PATCH", f"/v1/jobs/{job['id']}", change)
    assert changed.status == 200, changed.text
    if deleted:
        assert api("DELETE", "/v1/applications/billing").status == 204
    api.stage.run(120)

    [run] = [run for run in runs(api, job) if run["kind"] == ("on_success" if "hook" in how else "manual")]
    wanted = ("CANCELLED", "OWNER_GONE") if how == "removed hook" else ("SUCCESS", run["reason"])
    assert (run["state"], run["reason"]) == wanted
    if not deleted:
        assert hand.work() == [], "whoever comes back does not repeat it"
    api.stage.run(1_800)
    assert api.stage.waiting() == {}
