"""Jobs: create, read, list, replace, patch, delete, states."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import pytest

from tests.contract.azure.api import COLLECTION, EVERY_HOUR, HTTP, JOB, job

FIXED = {"retryType": "fixed", "retryInterval": "00:01:00", "retryCount": 2}


def test_a_job_is_shown_with_its_names_states_and_defaults(api):
    api.collection()
    start = api.at(3600)

    reply = api("PUT", JOB, job(startTime=start, recurrence={"frequency": "hour"}, action={**HTTP, "type": "http"}))

    assert reply.status == 201
    assert reply.json == {
        "id": JOB,
        "type": "Microsoft.Scheduler/jobCollections/jobs",
        "name": "Nightly/Report",
        "properties": {
            "startTime": start,
            "action": HTTP,
            "recurrence": {"frequency": "Hour", "interval": 1},
            "state": "Enabled",
            "status": {"executionCount": 0, "failureCount": 0, "faultedCount": 0, "nextExecutionTime": start},
        },
    }
    assert api.get(JOB.lower()).json == reply.json


def test_job_names_ignore_case(api):
    api.job(startTime=api.at(3600))

    reply = api("PUT", JOB.lower(), job(startTime=api.at(7200)))

    assert (reply.status, reply.json["name"]) == (200, "Nightly/Report")
    assert [each["name"] for each in api.get(f"{COLLECTION}/jobs").json["value"]] == ["Nightly/Report"]


@pytest.mark.parametrize("given", ["PT1M", "00:01:00", "pt1m".upper()])
def test_durations_are_read_in_both_forms(api, given):
    policy = {"retryType": "Fixed", "retryInterval": given}

    assert api.job(action={**HTTP, "retryPolicy": policy})["action"]["retryPolicy"] == {
        "retryType": "Fixed",
        "retryInterval": "PT1M",
        "retryCount": 4,
    }


@pytest.mark.parametrize(
    ("agent", "single", "listed"),
    [
        ("azsdk-python-mgmt-scheduler/7.0.0 Python/3.11", "P1DT2H", "P1DT2H"),
        ("", "P1DT2H", "P1DT2H"),
        ("python/3.11 azure-mgmt-scheduler/2.0.0 Azure-SDK-For-Python", "1.02:00:00", "P1DT2H"),
        ("schedulermanagementclient/1.1.3", "1.02:00:00", "P1DT2H"),
        ("Microsoft.Azure.Management.Scheduler.SchedulerManagementClient/4.0", "1.02:00:00", "1.02:00:00"),
    ],
)
def test_durations_are_written_in_the_form_that_each_client_reads(api, agent, single, listed):
    api.job(action={**HTTP, "retryPolicy": {"retryType": "Fixed", "retryInterval": "1.02:00:00"}})
    headers = {"user-agent": agent}

    one = api.get(JOB, headers=headers).json
    (first,) = api.get(f"{COLLECTION}/jobs", headers=headers).json["value"]

    assert one["properties"]["action"]["retryPolicy"]["retryInterval"] == single
    assert first["properties"]["action"]["retryPolicy"]["retryInterval"] == listed


def test_monthly_occurrences_are_shown_under_both_keys_and_can_be_sent_back(api):
    schedule = {"monthlyOccurrences": [{"day": "friday", "Occurrence": -1}], "hours": [5], "minutes": [0]}
    api.job(recurrence={"frequency": "Month", "schedule": schedule}, startTime=api.at(60))
    shown = api.get(JOB).json

    (occurrence,) = shown["properties"]["recurrence"]["schedule"]["monthlyOccurrences"]
    assert occurrence == {"day": "Friday", "occurrence": -1, "Occurrence": -1}
    assert api("PUT", JOB, shown).json == shown


def test_the_version_of_2014_creates_a_job_without_a_name(api):
    api.collection()
    headers = {"x-ms-client-request-id": "8f6a-1"}
    body = job(startTime=api.at(3600))

    first = api("POST", f"{COLLECTION}/jobs", body, version="2014-08-01-preview", headers=headers)
    again = api("POST", f"{COLLECTION}/jobs", body, version="2014-08-01-preview", headers=headers)
    other = api("POST", f"{COLLECTION}/jobs", body, version="2014-08-01-preview")

    assert (first.status, again.status, other.status) == (201, 201, 201)
    assert str(UUID(first.json["name"].removeprefix("Nightly/"))) in first.json["id"]
    assert again.json == first.json
    assert {each["name"] for each in api.get(f"{COLLECTION}/jobs").json["value"]} == {
        first.json["name"],
        other.json["name"],
    }


def test_newer_versions_put_jobs_by_their_names(api):
    api.collection()

    reply = api("POST", f"{COLLECTION}/jobs", job())

    assert (reply.status, reply.json["error"]["code"]) == (405, "MethodNotAllowed")
    assert api.get(f"{COLLECTION}/jobs").json["value"] == []


def test_an_identical_put_keeps_plan_and_counters(api):
    api.job(recurrence=EVERY_HOUR)
    api.stage.run(30)
    before = api.properties()
    assert before["status"]["executionCount"] == 1

    reply = api("PUT", JOB, job(recurrence=EVERY_HOUR))

    assert reply.status == 200
    api.stage.run(30)
    assert api.properties() == before


def test_a_different_put_plans_the_job_anew(api):
    api.job(recurrence=EVERY_HOUR)
    api.stage.run(600)

    api("PUT", JOB, job(recurrence={"frequency": "Day"}))
    api.stage.run(60)

    status = api.properties()["status"]
    assert status["executionCount"] == 2
    assert status["nextExecutionTime"] == api.at(86_400 - 60 + 1)[:-3] + status["nextExecutionTime"][-3:]


def test_a_put_of_another_recurrence_resets_the_count(api):
    minutely = {"frequency": "Minute", "count": 2}
    api.job(recurrence={"frequency": "Minute"}, startTime=api.at(60))
    api.stage.run(200)
    before = api.properties()["status"]["executionCount"]

    api("PUT", JOB, job(recurrence=minutely, startTime=api.at(120)))
    api.stage.run(600)

    assert api.properties()["status"]["executionCount"] == before + 2
    assert api.properties()["state"] == "Completed"


def test_a_patch_merges_objects_replaces_lists_and_null_deletes(api):
    headers = {"X-One": "1", "X-Two": "2"}
    request = {**HTTP["request"], "headers": headers, "body": "text"}
    schedule = {"hours": [1, 2], "minutes": [0]}
    api.job(
        startTime=api.at(3600),
        action={**HTTP, "request": request, "retryPolicy": FIXED},
        recurrence={"frequency": "Day", "schedule": schedule, "count": 9},
    )

    change = {
        "action": {"retryPolicy": None, "REQUEST": {"headers": {"X-Two": None, "X-Three": "3"}}},
        "recurrence": {"schedule": {"hours": [5]}},
    }
    shown = api("PATCH", JOB, {"properties": change}).json["properties"]

    assert shown["action"] == {"type": "Http", "request": {**request, "headers": {"X-One": "1", "X-Three": "3"}}}
    assert shown["recurrence"] == {
        "frequency": "Day",
        "interval": 1,
        "count": 9,
        "schedule": {"hours": [5], "minutes": [0]},
    }
    assert api.properties() == shown


def test_a_patch_of_the_action_keeps_the_plan(api):
    before = api.job(recurrence=EVERY_HOUR, startTime=api.at(1800))

    shown = api("PATCH", JOB, {"properties": {"action": {"request": {"method": "put"}}}}).json["properties"]

    assert shown["status"] == before["status"]
    api.stage.run(1801)
    (received,) = api.stage.endpoint.received
    assert received.params["method"] == "PUT"


def test_a_job_can_be_disabled_and_enabled_again(api):
    api.job(recurrence=EVERY_HOUR, startTime=api.at(3600))

    off = api("PATCH", JOB, {"properties": {"state": "disabled"}}).json["properties"]
    api.stage.run(5400)
    assert (off["state"], api.stage.endpoint.received) == ("Disabled", [])
    assert "nextExecutionTime" not in off["status"]
    on = api("PATCH", JOB, {"properties": {"state": "Enabled"}}).json["properties"]

    assert on["status"]["nextExecutionTime"] == api.at(1800)
    api.stage.run(1860)
    assert len(api.stage.endpoint.received) == 1


@pytest.mark.parametrize("start_s", [None, 60])
def test_a_patch_of_only_the_state_keeps_the_rhythm(api, start_s):
    times = {} if start_s is None else {"startTime": api.at(start_s)}
    first = api.job(**times, recurrence={"frequency": "Minute", "interval": 10})["status"]["nextExecutionTime"]
    api.stage.run(700)
    before = api.history()

    api("PATCH", JOB, {"properties": {"state": "Disabled"}})
    api.stage.run(300)
    on = api("PATCH", JOB, {"properties": {"state": "Enabled"}}).json["properties"]["status"]
    api.stage.run(30)

    assert api.history() == before
    gone_s = (datetime.fromisoformat(on["nextExecutionTime"]) - datetime.fromisoformat(first)).total_seconds()
    assert gone_s == 1_200


def test_a_disabled_one_time_job_that_is_overdue_runs_when_enabled(api):
    api.job(startTime=api.at(600), state="Disabled")
    api.stage.run(1200)
    assert api.stage.endpoint.received == []

    api("PATCH", JOB, {"properties": {"state": "Enabled"}})
    api.stage.run(60)

    assert len(api.stage.endpoint.received) == 1
    assert api.properties()["state"] == "Completed"


def test_a_recurrence_with_no_remaining_instant_completes_without_a_run(api):
    api.collection()
    past = {"frequency": "Day", "endTime": "2020-01-01"}

    reply = api("PUT", JOB, job(startTime="2019-01-01T00:00Z", recurrence=past))

    assert (reply.status, reply.json["properties"]["state"]) == (201, "Completed")
    api.stage.run(60)
    assert api.stage.endpoint.received == []


@pytest.mark.parametrize("answer", ["Completed", "Faulted"])
def test_a_job_in_a_final_state_can_only_be_read_and_deleted(api, answer):
    from tests.support.endpoint import WRONG  # noqa: PLC0415 - one case

    if answer == "Faulted":
        api.stage.endpoint.answer = WRONG
    api.job(action={**HTTP, "retryPolicy": {"retryType": "none"}})
    api.stage.run(10)
    assert api.properties()["state"] == answer

    assert api("PUT", JOB, job(startTime=api.at(60))).status == 409
    assert api("PATCH", JOB, {"properties": {"state": "Disabled"}}).status == 409
    assert api("POST", f"{JOB}/run").status == 409
    assert api("DELETE", JOB).status == 200
    assert api.get(JOB).status == 404


def test_final_jobs_are_deleted_after_60_days(api):
    api.job()
    api.stage.run(10)
    assert api.properties()["state"] == "Completed"

    api.stage.pass_time(59 * 86_400)
    assert api.get(JOB).status == 200
    api.stage.pass_time(2 * 86_400)
    api.stage.run(120)

    assert api.get(JOB).status == 404


def test_lists_are_filtered_by_state_and_come_in_pages(api):
    for n in range(4):
        api.job(f"{COLLECTION}/jobs/job-{n}", startTime=api.at(3600), state="Disabled" if n % 2 else "Enabled")

    def names(**query):
        reply = api.get(f"{COLLECTION}/jobs", query=query)
        return [each["name"][-1] for each in reply.json["value"]], reply.json["nextLink"]

    assert names() == (["0", "1", "2", "3"], None)
    assert names(**{"$filter": "state eq 'Disabled'"})[0] == ["1", "3"]
    assert names(**{"$filter": "STATE  eq disabled"})[0] == ["1", "3"]
    assert names(**{"$top": 2}) == (["0", "1"], None)
    assert names(**{"$top": 1, "$skip": 1, "$filter": "state eq 'Enabled'"})[0] == ["2"]


def test_a_link_to_the_next_page_keeps_every_parameter(api):
    api.collection(sku={"name": "P20Premium"})
    for n in range(101):
        api.job(f"{COLLECTION}/jobs/job-{n:03}", startTime=api.at(3600))

    first = api.get(f"{COLLECTION}/jobs", query={"$filter": "state eq 'Enabled'"}).json
    address, _, query = first["nextLink"].partition("?")

    assert len(first["value"]) == 100
    assert address.endswith(f"{COLLECTION}/jobs")
    second = api.get(f"{COLLECTION}/jobs", query=query, version=None).json
    assert [each["name"] for each in second["value"]] == ["Nightly/job-100"]
    assert second["nextLink"] is None


def test_a_job_needs_its_collection(api):
    assert api("PUT", JOB, job()).status == 404
    assert api.native.get("/v1/jobs").json["items"] == []
    assert [each["name"] for each in api.native.get("/v1/collections").json["items"]] == ["default"]


def test_deleted_jobs_are_gone_and_no_longer_run(api):
    api.job(startTime=api.at(60), recurrence={"frequency": "Minute"})

    assert api("DELETE", JOB).status == 200
    assert api("DELETE", JOB).status == 404
    api.stage.run(300)
    assert api.stage.endpoint.received == []


@pytest.mark.parametrize(
    "recurrence", [{"frequency": "minute", "count": 5}, {"frequency": "Minute", "interval": 1, "count": 5}]
)
def test_a_patch_with_an_equivalent_recurrence_keeps_plan_and_count(api, recurrence):
    api.job(recurrence={"frequency": "Minute", "count": 5})
    api.stage.run(150)
    before = api.properties()["status"]

    changed = {"recurrence": recurrence, "action": {"request": {"body": "new"}}}
    assert api("PATCH", JOB, {"properties": changed}).json["properties"]["status"] == before

    api.stage.run(900)
    assert api.properties()["status"]["executionCount"] == 5


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_sending_back_an_answer_with_its_defaults_changes_nothing(api, method):
    inner = {**HTTP, "retryPolicy": {"retryType": "fixed"}}
    api.job(recurrence={"frequency": "Hour"}, action={**HTTP, "retryPolicy": {}, "errorAction": inner})
    api.stage.run(600)
    before = api.get(JOB).json

    assert api(method, JOB, before).json == before

    api.stage.run(600)
    assert api.get(JOB).json == before


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("2027-03-02T12:00:00.5Z", "2027-03-02T12:00:00.5Z"),
        ("2027-03-02T13:00:59.1230000+01:00", "2027-03-02T12:00:59.123Z"),
        ("2027-03-02T12:00:00.000Z", "2027-03-02T12:00:00Z"),
    ],
)
def test_a_fraction_of_the_start_second_is_shown_and_delays_the_first_run(api, sent, shown):
    first = api.job(startTime=sent)

    assert first["startTime"] == shown
    assert datetime.fromisoformat(first["status"]["nextExecutionTime"]) >= datetime.fromisoformat(shown)
    assert api("PUT", JOB, job(startTime=sent)).json["properties"] == first


def test_headers_in_a_patch_ignore_case(api):
    headers = {"X-Team": "night", "X-Api-Key": "canary"}
    api.job(startTime=api.at(60), action={**HTTP, "request": {**HTTP["request"], "headers": headers}})

    def patched(**changed):
        return api("PATCH", JOB, {"properties": {"action": {"request": {"headers": changed}}}})

    shown = patched(**{"x-team": "day", "x-api-key": "***"}).json["properties"]["action"]["request"]["headers"]
    assert shown == {"x-team": "day", "x-api-key": "***"}
    assert patched(**{"X-TEAM": None}).json["properties"]["action"]["request"]["headers"] == {"x-api-key": "***"}
    assert patched(**{"X-A": "1", "x-a": "2"}).status == 400
    api.stage.run(61)
    (received,) = api.stage.endpoint.received
    assert received.call.secrets == {"headers.x-api-key": "canary"}


def test_parameter_names_ignore_case(api):
    for n in range(3):
        api.job(f"{COLLECTION}/jobs/job-{n}", startTime=api.at(3600), state="Disabled" if n else "Enabled")

    query = "Api-Version=2016-03-01&$Filter=state%20eq%20Disabled&$TOP=1&$Skip=1"
    reply = api.get(f"{COLLECTION}/jobs", query=query, version=None)

    assert [each["name"] for each in reply.json["value"]] == ["Nightly/job-2"]


def test_a_repeated_run_request_gets_the_first_answer_even_after_the_job_completed(api):
    api.job(startTime=api.at(60))
    headers = {"x-ms-client-request-id": "8f6a-1"}
    assert api("POST", f"{JOB}/run", headers=headers).status == 200
    api.stage.run(90)
    assert api.properties()["state"] == "Completed"

    again = api("POST", f"{JOB}/run", headers=headers)
    other = api("POST", f"{JOB}/run", headers={"x-ms-client-request-id": "8f6a-2"})

    assert (again.status, other.status) == (200, 409)
    assert other.json["error"]["message"] == "the job is Completed, which is final: it can only be read or deleted"
