"""Requests that a job that has ended still takes, and policies about its end and its results."""

import pytest

HTTP = {"type": "http", "url": "https://example.org/run"}
SOON = [{"at": "2027-03-01T12:00:05Z"}]
LATER = {"at": "2027-03-01T13:00:00Z"}


def ended(api, **policies):
    made = api.create({"action": HTTP, "schedules": SOON, "policies": policies})
    api.stage.run(10)
    job = api.get(f"/v1/jobs/{made['id']}", query="include=schedules").json
    assert job["state"] == "COMPLETED"
    return job


def requests(job):
    path, schedule = f"/v1/jobs/{job['id']}", job["schedules"][0]["id"]
    run = f"/v1/runs/{job['schedules'][0]['lastRun']['id']}/rerun"
    return [
        ("PATCH", path, {"description": "x"}),
        ("PATCH", path, {"policies": {"afterEnd": "open"}}),
        ("PUT", path, {"action": HTTP, "schedules": [LATER]}),
        ("POST", f"{path}/deactivate", None),
        ("POST", f"{path}/pause", {}),
        ("POST", f"{path}/run", None),
        ("POST", f"{path}/run", {"ifActive": "drop"}),
        ("POST", run, None),
        ("POST", f"{path}/schedules", LATER),
        ("PATCH", f"{path}/schedules/{schedule}", LATER),
        ("DELETE", f"{path}/schedules/{schedule}", None),
    ]


@pytest.mark.parametrize("n", range(11))
def test_a_job_that_ended_for_good_is_neither_changed_nor_run(api, n):
    job = ended(api, afterEnd="final")
    method, path, body = requests(job)[n]

    reply = api(method, path, body)

    assert (reply.status, reply.json["code"]) == (409, "STATE_CONFLICT"), reply.text
    assert "COMPLETED" in reply.json["detail"]
    assert len(api.stage.endpoint.received) == 1


def test_a_job_that_ended_for_good_can_be_read_and_deleted(api):
    job = ended(api, afterEnd="final")

    assert api.get(f"/v1/jobs/{job['id']}").status == 200
    assert api("DELETE", f"/v1/jobs/{job['id']}").status == 204


@pytest.mark.parametrize("n", range(11))
def test_an_ended_job_can_be_changed_and_run_by_default(api, n):
    job = ended(api)
    method, path, body = requests(job)[n]

    assert api(method, path, body).status < 300


def test_a_final_job_can_be_changed_until_it_ends(api):
    made = api.create({"action": HTTP, "schedules": [LATER], "policies": {"afterEnd": "final"}})

    assert api("PATCH", f"/v1/jobs/{made['id']}", {"description": "x"}).status == 200
    assert api("POST", f"/v1/jobs/{made['id']}/run").status == 202


RETRY = {"type": "fixed", "maxRetries": 2}
WAITS = {"on202": "wait"}


@pytest.mark.parametrize(
    ("action", "policies", "refused"),
    [
        ({"retry": RETRY, "outcome": WAITS}, {}, False),
        ({"retry": RETRY, "outcome": {"onNoAnswer": "wait"}}, {}, False),
        ({"retry": RETRY}, {"callbackToken": True}, False),
        ({"retry": RETRY}, {}, True),
        ({"outcome": WAITS}, {}, True),
    ],
)
def test_on_no_result_retry_needs_a_run_that_waits_and_has_an_attempt_left(api, action, policies, refused):
    reply = api("POST", "/v1/jobs", {"action": {**HTTP, **action}, "policies": {"onNoResult": "retry", **policies}})

    if not refused:
        assert reply.status == 201, reply.text
        return
    assert reply.status == 422
    assert [each["field"] for each in reply.json["errors"]] == ["policies.onNoResult"]
    assert "has no effect" in reply.json["errors"][0]["reason"]


def test_the_end_of_a_job_is_not_a_policy_of_a_schedule(api):
    schedule = {**LATER, "policies": {"afterEnd": "final"}}

    reply = api("POST", "/v1/jobs", {"action": HTTP, "schedules": [schedule]})

    assert reply.status == 422
    assert reply.json["errors"][0]["field"] == "schedules[0].policies.afterEnd"
