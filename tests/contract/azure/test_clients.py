"""Microsoft's own clients, 7.0.0 and 2.0.0, unchanged, against the facade over HTTP.

`make setup-azure-client` installs them (`make test-all` does so first).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.contract.azure.api import EVERY_HOUR, HTTP, Azure
from tests.contract.azure.microsofts_client import IN_COLLECTION, OF_JOB, VERSIONS, Client, Refused, driven
from tests.contract.calls import event
from tests.support.endpoint import BUSY, WRONG

pytestmark = pytest.mark.extended  # each client has an environment of its own


@contextmanager
def served(api: Azure) -> Iterator[str]:
    """Serves the facade over HTTP, as API Gateway does."""

    class Handler(BaseHTTPRequestHandler):
        def handle_all(self) -> None:
            path, _, query = self.path.partition("?")
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            reply = api.send(event(self.command, path, query, headers, body.decode() or None))
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.text.encode())))
            self.end_headers()
            self.wfile.write(reply.text.encode())

        def __getattr__(self, name: str) -> Any:
            """Returns one method for all of HTTP's, which http.server looks up as do_GET and so on."""
            if name.startswith("do_"):
                return self.handle_all
            raise AttributeError(name)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(params=VERSIONS)
def client(api: Azure, request: pytest.FixtureRequest) -> Iterator[Client]:
    token = api.native(
        "POST",
        "/oauth/token",
        raw="grant_type=client_credentials",
        headers={"content-type": "application/x-www-form-urlencoded"},
    )
    with served(api) as base_url, driven(request.param, base_url, token.json["access_token"]) as client:
        yield client


def test_collections_are_created_read_changed_listed_switched_and_deleted(client):
    made = client.collection(sku={"name": "Standard"}, quota={"maxJobCount": 5})
    collection = "job_collections"

    assert (made["name"], made["location"], made["properties"]["quota"]) == ("Nightly", "West US", {"max_job_count": 5})
    assert client(collection, "get", *IN_COLLECTION) == made
    change = ("JobCollectionDefinition", {"tags": {"team": "ops"}})
    assert client(collection, "patch", *IN_COLLECTION, body=change)["tags"] == {"team": "ops"}
    assert [each["name"] for each in client(collection, "list_by_subscription")] == ["Nightly"]
    assert [each["name"] for each in client(collection, "list_by_resource_group", "GROUP")] == ["Nightly"]
    assert client(collection, client.poll("disable"), *IN_COLLECTION) is None
    assert client(collection, "get", *IN_COLLECTION)["properties"]["state"] == "Disabled"
    assert client(collection, client.poll("enable"), *IN_COLLECTION) is None
    assert client(collection, client.poll("delete"), *IN_COLLECTION) is None
    assert client(collection, "list_by_subscription") == []


def test_jobs_are_created_read_changed_listed_run_and_deleted(api, client):
    client.collection()
    policy = {"retryType": "Fixed", "retryInterval": "PT1M", "retryCount": 2}

    made = client.job(recurrence=EVERY_HOUR, startTime=api.at(3600), action={**HTTP, "retryPolicy": policy})

    assert made["name"] == "Nightly/Report"
    assert made["properties"]["state"] == "Enabled"
    assert made["properties"]["recurrence"] == {"frequency": "Hour", "interval": 1}
    assert made["properties"]["status"]["execution_count"] == 0
    assert client("jobs", "get", *OF_JOB) == made
    assert client("jobs", "list", *IN_COLLECTION, filter="state eq 'Enabled'", top=10) == [made]
    change = ("JobDefinition", {"properties": {"state": "Disabled"}})
    assert client("jobs", "patch", *OF_JOB, body=change)["properties"]["state"] == "Disabled"
    assert client("jobs", "run", *OF_JOB) is None
    api.stage.run(10)
    assert client("jobs", "get", *OF_JOB)["properties"]["status"]["execution_count"] == 1
    assert client("jobs", "delete", *OF_JOB) is None
    assert client("jobs", "list", *IN_COLLECTION) == []


def test_each_execution_appears_in_the_history(api, client):
    api.stage.endpoint.script = [BUSY]
    client.collection()
    client.job()
    api.stage.run(60)

    job = client("jobs", "get", *OF_JOB)["properties"]
    records = [each["properties"] for each in client("jobs", "list_job_history", *OF_JOB)]

    status = job["status"]
    assert job["state"] == "Completed"
    assert (status["execution_count"], status["failure_count"], status["faulted_count"]) == (1, 1, 0)
    assert [(each["status"], each["retry_count"], each["repeat_count"]) for each in records] == [
        ("Completed", 1, 1),
        ("Failed", 0, 1),
    ]
    assert records[0]["start_time"] > records[0]["expected_execution_time"]
    failed = client("jobs", "list_job_history", *OF_JOB, filter="status eq 'Failed'", top=1)
    assert [each["properties"]["action_name"] for each in failed] == ["MainAction"]


def test_a_faulted_job_and_its_error_action_are_reported(api, client):
    api.stage.endpoint.script = [WRONG]
    client.collection()
    once = {"retryType": "None"}
    client.job(action={**HTTP, "retryPolicy": once, "errorAction": {**HTTP, "retryPolicy": once}})
    api.stage.run(60)

    records = client("jobs", "list_job_history", *OF_JOB)

    assert client("jobs", "get", *OF_JOB)["properties"]["state"] == "Faulted"
    assert [each["properties"]["action_name"] for each in records] == ["ErrorAction", "MainAction"]


def test_a_job_can_be_read_changed_and_sent_back_and_keeps_its_secrets(api, client):
    client.collection()
    proof = {"type": "Basic", "username": "joe", "password": "canary"}
    action = {**HTTP, "request": {**HTTP["request"], "authentication": proof}}
    schedule = {"monthlyOccurrences": [{"day": "Friday", "Occurrence": -1}], "hours": [5]}
    recurrence = {"frequency": "Month", "schedule": schedule}
    made = client.job(action=action, recurrence=recurrence, startTime=api.at(60))

    shown = made["properties"]
    assert shown["action"]["request"]["authentication"] == {"type": "Basic", "username": "joe"}
    assert shown["recurrence"]["schedule"]["monthly_occurrences"] == [{"day": "Friday", "occurrence": -1}]
    proof.pop("password")
    again = client.job(action=action, recurrence=recurrence, startTime=api.at(60))
    assert again == made


def test_refusals_raise_the_clients_exceptions(client):
    with pytest.raises(Refused) as missing:
        client("job_collections", "get", *IN_COLLECTION)
    client.collection(quota={"maxJobCount": 1})
    client.job()
    with pytest.raises(Refused) as full:
        client.job("Other")
    with pytest.raises(Refused) as wrong:
        client("jobs", "list", *IN_COLLECTION, filter="name eq 'x'")

    assert [each.value.status for each in (missing, full, wrong)] == [404, 409, 400]
    assert "Nightly" in missing.value.message
    if client.version == "7.0.0":
        assert [each.value.kind for each in (missing, full, wrong)] == [
            "ResourceNotFoundError",
            "ResourceExistsError",
            "HttpResponseError",
        ]
