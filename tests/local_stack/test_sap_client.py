"""SAP's own client, as it comes from its registry, against the running stack: each of its methods, good and bad.

`make setup-sap-client` installs it (`make test-all` does so first).
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import pytest

from sweephand.local.settings import CHECKOUT
from tests.local_stack.conftest import LocalStack
from tests.local_stack.waiting import CLOCK, WITHIN_S, until

pytestmark = pytest.mark.emulator

INSTALLED = CHECKOUT / ".cache" / "sap-client"
DRIVE = CHECKOUT / "tests" / "contract" / "sap" / "client" / "drive.js"
NAMES = (f"job-{n}" for n in count(1))


@dataclass
class Refused(Exception):
    message: str
    status: int | None


@dataclass
class Client:
    """options: of the client's constructor. environment: of its process, for a service binding."""

    options: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, method: str, **argument: Any) -> Any:
        """Returns the result. Raises Refused with what the client shows its user."""
        node = (INSTALLED / "node").read_text().strip()
        package = INSTALLED / "node_modules" / "@sap" / "jobs-client"
        done = subprocess.run(
            [node, DRIVE, package],
            input=json.dumps({"options": self.options, "method": method, "argument": argument}),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=True,
        )
        told = json.loads(done.stdout)
        if "error" in told:
            raise Refused(told["error"].get("message", ""), told["error"].get("statusCode"))
        return told.get("result")


@pytest.fixture(scope="module")
def client(stack: LocalStack) -> Client:
    credential = stack.file.tenants["acme"]
    return Client({"baseURL": stack.base_url, "user": credential.client_id, "password": credential.secret})


@dataclass
class Endpoint:
    """An action endpoint: /ok answers 200, /later 202, /fails 500. received: path, headers and body."""

    url: str
    received: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with _serving() as there:
        yield there


@contextmanager
def _serving() -> Iterator[Endpoint]:
    class Action(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            there.received.append((self.path, headers, body))
            self.send_response({"/ok": 200, "/later": 202, "/fails": 500}[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Action)
    there = Endpoint(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield there
    finally:
        server.shutdown()
        server.server_close()


def job(url: str, *schedules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": next(NAMES),
        "description": "by SAP's client",
        "action": url,
        "active": True,
        "httpMethod": "POST",
        "schedules": [{"active": True, **each} for each in schedules],
        **more,
    }


@pytest.fixture
def made(client: Client) -> dict[str, Any]:
    hourly, nightly = {"repeatInterval": "1 hour", "description": "hourly"}, {"cron": "* * * * 2 30 0"}
    return client("createJob", job=job("https://example.org/run", hourly, nightly))


# Jobs


def test_a_job_can_be_created_fetched_updated_and_deleted(client, made):
    id_ = made["_id"]

    assert client("fetchJob", jobId=id_, displaySchedules=True)["schedules"] == made["schedules"]
    assert client("fetchJob", name=made["name"])["_id"] == id_
    assert client("updateJob", jobId=id_, job={"description": "changed"}) == {"success": True}
    assert client("fetchJob", jobId=id_)["description"] == "changed"
    assert client("deleteJob", jobId=id_) == {"success": True}
    with pytest.raises(Refused) as gone:
        client("fetchJob", jobId=id_)
    assert gone.value == Refused("Error while fetching job details: Job Not Found", 404)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"cron": "* * * 10:12 */30 0"}, "Invalid cron specified"),
        ({"repeatInterval": "some time"}, "repeatInterval"),
        ({"repeatInterval": "1 hour", "repeatAt": "4pm"}, "Extra scheduling parameters passed"),
    ],
)
def test_an_invalid_job_is_refused_with_a_message_that_the_client_shows(client, schedule, message):
    with pytest.raises(Refused) as refused:
        client("createJob", job=job("https://example.org/run", schedule))

    assert refused.value.status == 400
    assert refused.value.message.startswith("Error while creating job: ")
    assert message in refused.value.message


def test_upsert_creates_and_replaces(client):
    body = job("https://example.org/run", {"repeatInterval": "1 hour"})

    created = client("upsertJob", name=body["name"], job=body)
    replaced = client("upsertJob", name=body["name"], job={**body, "description": "again"})

    assert replaced["_id"] == created["_id"]
    assert replaced["description"] == "again"
    with pytest.raises(Refused) as refused:
        client("upsertJob", name="another-name", job=body)
    assert refused.value.status == 400


def test_jobs_are_listed_counted_and_searched(client, made):
    page = client("fetchJobs", page_size=100, offset=0)
    everything = client("fetchAllJobs")
    count_ = client("getJobCount", activeStatus=True)

    assert made["_id"] in [each["_id"] for each in page["results"]]
    assert everything["total"] == page["total"] == len(everything["results"])
    assert count_["active"] >= 1
    assert "active" not in client("getJobCount", activeStatus=False)
    assert client("searchJobs", q=made["name"])["results"][0]["_id"] == made["_id"]
    found = client("searchSchedules", q="hourly")["results"]
    assert made["_id"] in [each["parent"]["_id"] for each in found]
    with pytest.raises(Refused) as refused:
        client("searchJobs", q="color:red")
    assert refused.value == Refused("Error in Job Scheduler action: Field not recognized", 400)


# Schedules


def test_schedules_are_created_changed_activated_and_deleted(client, made):
    id_ = made["_id"]
    in_half_a_day = f"{CLOCK.now() + timedelta(hours=12):%H:%M}"  # the test ends before
    new = client("createJobSchedule", jobId=id_, schedule={"repeatAt": in_half_a_day, "active": True, "data": {"a": 1}})
    where = {"jobId": id_, "scheduleId": new["scheduleId"]}

    assert len(client("fetchJobSchedules", jobId=id_)["results"]) == 3
    assert client("updateJobSchedule", **where, schedule={"active": False})["active"] is False
    assert client("fetchJobSchedule", **where, displayLogs=True)["logs"] == []
    assert client("activateAllSchedules", jobId=id_) == {"success": True}
    assert client("fetchJobSchedule", **where, displayLogs=False)["active"] is True
    assert client("deactivateAllSchedules", jobId=id_) == {"success": True}
    types = [line["type"] for line in client("getScheduleActionLogs", **where)["results"]]
    assert {"SCHEDULE_CREATION", "SCHEDULE_UPDATE"} <= set(types)
    assert client("getJobActionLogs", jobId=id_)["results"][-1]["type"] in {"JOB_CREATION", "SCHEDULE_CREATION"}
    assert client("deleteJobSchedule", **where) == {"success": True}
    assert client("deleteAllJobSchedules", jobId=id_) == {"success": True}
    assert client("fetchJobSchedules", jobId=id_)["results"] == []


@pytest.mark.parametrize(
    ("method", "argument"),
    [
        ("fetchJobSchedules", {}),
        ("createJobSchedule", {"schedule": {"repeatAt": "4pm", "active": True}}),
        ("fetchJobSchedule", {"scheduleId": "x", "displayLogs": False}),
        ("updateJobSchedule", {"scheduleId": "x", "schedule": {"active": True}}),
        ("deleteJobSchedule", {"scheduleId": "x"}),
        ("deleteAllJobSchedules", {}),
        ("activateAllSchedules", {}),
        ("deactivateAllSchedules", {}),
        ("getRunLogs", {"scheduleId": "x"}),
        ("getRunLogsById", {"scheduleId": "x", "runId": "x"}),
        ("updateJobRunLog", {"scheduleId": "x", "runId": "x", "data": {"success": True}}),
        ("getJobActionLogs", {}),
        ("getScheduleActionLogs", {"scheduleId": "x"}),
        ("updateJob", {"job": {"active": True}}),
        ("deleteJob", {}),
    ],
)
def test_a_missing_resource_is_404_for_every_method(client, method, argument):
    with pytest.raises(Refused) as refused:
        client(method, jobId=999_999, **argument)

    assert refused.value.status == 404
    assert refused.value.message.endswith("Job Not Found")


# Runs


def test_a_job_is_called_on_time_and_its_run_is_in_the_log(client, endpoint):
    body = job(f"{endpoint.url}/ok", {"time": "now", "data": {"hello": "me"}})
    made = client("createJob", job=body)
    where = {"jobId": made["_id"], "scheduleId": made["schedules"][0]["scheduleId"]}

    run = until(lambda: _ended(client, where))

    (headers, sent) = next(
        (headers, sent) for _, headers, sent in endpoint.received if headers["x-sap-job-id"] == str(made["_id"])
    )
    assert (run["runStatus"], run["runState"], run["httpStatus"]) == ("COMPLETED", "SUCCESS", 200)
    assert json.loads(sent) == {"hello": "me"}
    assert headers["x-sap-job-run-id"] == run["runId"]
    assert headers["x-sap-job-schedule-id"] == where["scheduleId"]
    assert headers["x-sap-run-at"] == run["scheduleTimestamp"]
    assert client("getRunLogsById", **where, runId=run["runId"]) == run


def test_a_failed_job_is_shown_as_an_error(client, endpoint):
    made = client("createJob", job=job(f"{endpoint.url}/fails", {"time": "now"}))
    where = {"jobId": made["_id"], "scheduleId": made["schedules"][0]["scheduleId"]}

    run = until(lambda: _ended(client, where))

    assert (run["runState"], run["httpStatus"]) == ("ERROR", 500)


def test_an_asynchronous_job_reports_with_the_same_client_to_the_address_in_its_headers(client, endpoint):
    made = client("createJob", job=job(f"{endpoint.url}/later", {"time": "now"}))
    mine = lambda: [each for each in endpoint.received if each[1]["x-sap-job-id"] == str(made["_id"])]  # noqa: E731
    _, headers, _ = until(mine)[0]
    where = {"jobId": int(headers["x-sap-job-id"]), "scheduleId": headers["x-sap-job-schedule-id"]}
    run_id = headers["x-sap-job-run-id"]
    until(lambda: client("getRunLogsById", **where, runId=run_id)["runState"] == "ACK_RECVD")

    there = Client({**client.options, "baseURL": headers["x-sap-scheduler-host"]})
    reported = there("updateJobRunLog", **where, runId=run_id, data={"success": True, "message": "4711 rows"})

    run = client("getRunLogsById", **where, runId=run_id)
    assert reported == {"success": True}
    assert (run["runState"], run["runText"]) == ("SUCCESS", "4711 rows")


def _ended(client: Client, where: dict[str, Any]) -> Any:
    lines = client("getRunLogs", **where, page_size=10, offset=0)["results"]
    return next((line for line in lines if line["runStatus"] == "COMPLETED"), None)


# Callers


def test_wrong_credentials_are_401(client):
    with pytest.raises(Refused) as refused:
        Client({**client.options, "password": "wrong"})("fetchJobs")

    assert refused.value == Refused("Unauthorized", 401)


def test_a_service_binding_fetches_its_token(client, stack):
    credential = stack.file.tenants["acme"]
    uaa = {"url": stack.base_url, "clientid": credential.client_id, "clientsecret": credential.secret}
    binding = {"label": "jobscheduler", "tags": ["jobscheduler"], "name": "js"}
    services = {"jobscheduler": [binding | {"credentials": {"url": stack.base_url, "uaa": uaa}}]}

    bound = Client({}, {"VCAP_SERVICES": json.dumps(services)})

    assert bound("fetchJobs")["total"] == client("fetchJobs")["total"]


def test_another_tenant_sees_none_of_it(client, stack, made):
    credential = stack.file.tenants["globex"]
    other = Client({"baseURL": stack.base_url, "user": credential.client_id, "password": credential.secret})

    with pytest.raises(Refused) as refused:
        other("fetchJob", jobId=made["_id"])

    assert refused.value.status == 404
