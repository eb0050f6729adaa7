"""Alerts: what a job's ansConfig and calmConfig ask for goes out on the bus, and nothing else does."""

from __future__ import annotations

from unittest import mock

import pytest

from sweephand.domain.collection import Events
from sweephand.domain.event import EventType
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.testing.taps import Passing
from tests.contract.sap.test_runs import path
from tests.support.bus import refused_by_bus

RAISED, STATUS = EventType.ALERT_RAISED, EventType.ALERT_STATUS
SOON = {"time": "in 5 minutes", "description": "month's end"}
WRONG = Outcome(Verdict.FAILED, Reason.HTTP_STATUS, http_status=404)
ALL = {"onSuccess": True, "onError": True, "onDelay": True}


def told(api, kind):
    return [event.detail for event in api.stage.bus.told if event.kind is kind]


def run(api, *outcomes, **members):
    """Makes a job of one occurrence that ends in this way."""
    api.stage.endpoint.script.extend(outcomes)
    made = api.create(SOON, **members)
    api.stage.run(400)
    return made


@pytest.mark.parametrize(
    ("config", "outcome", "occasions"),
    [
        ({"onSuccess": True}, None, ["onSuccess"]),
        ({"onSuccess": True}, WRONG, None),
        ({"onError": True}, WRONG, ["onError"]),
        ({"onError": True}, None, None),
        ({"onDelay": True}, None, None),
        ({"onSuccess": False, "onError": False}, WRONG, None),
        (ALL, WRONG, ["onError"]),
        (None, WRONG, None),
    ],
)
def test_a_run_raises_the_alerts_that_its_job_requests(api, config, outcome, occasions):
    run(api, *([outcome] if outcome else []), ansConfig=config)

    alerts = told(api, RAISED)
    assert [alert["occasions"] for alert in alerts] == ([occasions] if occasions else [])
    assert told(api, STATUS) == []


def test_an_alert_has_the_content_of_saps_alerts(api):
    made = run(api, WRONG, ansConfig={"onError": True})

    (alert,) = told(api, RAISED)
    line = api.get(f"{path(made)}/runs").json["results"][0]
    assert alert["integerJobId"] == made["_id"]
    assert alert["runId"] == f"{made['schedules'][0]['scheduleId']}_{line['runId']}"
    assert alert["alert"] == {
        "eventType": "JobSchedulerJobExecution",
        "severity": "ERROR",
        "category": "ALERT",
        "subject": "Job report: REQUEST_ERROR",
        "body": f"The run {line['runId']} of the job report, planned at 2027-03-01T12:05:01.000Z, failed.",
        "resource": {"resourceName": "report", "resourceType": "job"},
        "tags": {"runStatus": "COMPLETED", "runState": "REQUEST_ERROR", "scheduleDescription": "month's end"},
    }


def test_a_run_that_starts_more_than_twenty_minutes_late_raises_a_delay_alert(api):
    api.create(SOON, ansConfig=ALL)
    api.stage.pass_time(200)
    api.stage.tick()
    api.stage.pass_time(1_310)

    api.stage.deliver_all()

    (alert,) = told(api, RAISED)
    assert alert["occasions"] == ["onSuccess", "onDelay"]
    assert 1_200_000 < alert["latenessMs"] < 1_220_000


@pytest.mark.parametrize(("outcome", "state"), [(None, "SUCCESS"), (WRONG, "REQUEST_ERROR")])
def test_a_monitored_job_reports_how_each_run_ended(api, outcome, state):
    run(api, *([outcome] if outcome else []), calmConfig={"enabled": True})

    (status,) = told(api, STATUS)
    assert (status["executionStatus"], status["applicationStatus"]) == ("COMPLETED", state)
    assert told(api, RAISED) == []


@pytest.mark.parametrize("success", [True, False])
def test_an_asynchronous_run_raises_its_alert_when_it_reports(api, success):
    made = run(api, Outcome(Verdict.ACCEPTED, http_status=202), ansConfig=ALL, calmConfig={"enabled": True})
    assert told(api, RAISED) == told(api, STATUS) == []

    line = api.get(f"{path(made)}/runs").json["results"][0]
    api("PUT", f"{path(made)}/runs/{line['runId']}", {"success": success})
    api.stage.run(60)

    (alert,), (status,) = told(api, RAISED), told(api, STATUS)
    assert alert["occasions"] == ["onSuccess" if success else "onError"]
    assert status["applicationStatus"] == alert["alert"]["tags"]["runState"] == ("SUCCESS" if success else "ERROR")


def test_changes_apply_to_the_next_run(api):
    made = api.create({"repeatInterval": "5 minutes"})
    api.stage.run(320)
    api("PUT", f"/jobs/{made['_id']}", {"ansConfig": {"onSuccess": True}})
    api.stage.run(300)
    api("PUT", f"/jobs/{made['_id']}", {"ansConfig": {"onSuccess": False}})
    api.stage.run(300)

    assert len(told(api, RAISED)) == 1


def test_a_collection_that_publishes_no_events_sends_no_alerts(api):
    api.create(SOON, ansConfig=ALL, calmConfig={"enabled": True})
    api.stage.tell(Events.NONE, "sap")
    api.stage.run(400)

    assert api.stage.bus.told == []


def test_a_success_that_nobody_wants_reported_makes_no_call(api):
    api.create(SOON, calmConfig={"enabled": False}, ansConfig={"onError": True})
    api.stage.run(400)

    assert api.stage.taps.count("events.PutEvents") == 0


def test_an_alert_that_the_bus_refuses_is_noted_on_its_run(api):
    api.create(SOON, ansConfig={"onSuccess": True})
    with mock.patch.object(
        api.stage.bus, "put_events", lambda **asked: refused_by_bus(Passing("events", "", asked), None)
    ):
        api.stage.run(400)

    (job,) = api.native.get("/v1/jobs").json["items"]
    (ledger,) = api.native.get("/v1/runs", query={"jobId": job["id"]}).json["items"]
    assert ledger["state"] == "SUCCESS"
    assert api.native.get(f"/v1/runs/{ledger['id']}").json["notes"] == ["the event alert.raised could not be published"]
