"""Microsoft's own clients of Azure Scheduler, 7.0.0 and 2.0.0, against the running stack.

`make setup-azure-client` installs them (`make test-all` does so first). Retries wait at least 15 seconds, so the
jobs that retry are created together, before the first test that looks at them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from sweephand.local.settings import CHECKOUT, TARGET_ROLE
from tests.contract.azure.microsofts_client import ROOT, SUBSCRIPTION, VERSIONS, Client, Refused, driven
from tests.local_stack.waiting import CLOCK, WITHIN_S, until

if TYPE_CHECKING:
    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

GROUP = "local"
HERE = [GROUP, "Nightly"]
NO_RETRY = {"retryType": "None"}
ONE_RETRY = {"retryType": "Fixed", "retryInterval": "PT15S", "retryCount": 1}
WITHIN = timedelta(seconds=2)


@dataclass(frozen=True)
class Call:
    at: datetime
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Endpoint:
    """A target: /fails answers 500, /recovers 500 to the first call of a job, everything else 200."""

    url: str = ""
    received: list[Call] = field(default_factory=list)

    def status(self, path: str) -> int:
        if path.startswith("/recovers"):
            return 500 if sum(each.path == path for each in self.received) == 1 else 200
        return 500 if path.startswith("/fails") else 200

    def calls(self, path: str) -> list[Call]:
        return [each for each in self.received if each.path == path]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    there = Endpoint()

    class Target(BaseHTTPRequestHandler):
        def take(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            there.received.append(Call(CLOCK.now(), self.command, self.path, headers, body))
            answer = b"done: " + body
            self.send_response(there.status(self.path))
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_PUT = do_POST = do_DELETE = take  # noqa: N815 - the names are those of http.server

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Target)
    there.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield there
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def clients(stack: LocalStack) -> Iterator[dict[str, Client]]:
    """Both clients, each with a group and a collection of its own."""
    asked = {"grant_type": "client_credentials"}
    token = stack.client().post("/oauth/token", data=asked).raise_for_status().json()["access_token"]
    old, new = sorted(VERSIONS)
    with driven(old, stack.base_url, token) as one, driven(new, stack.base_url, token) as other:
        one.group, other.group = f"{GROUP}-2", GROUP
        made = [each.collection() for each in (one, other)]
        assert [each["properties"]["state"] for each in made] == ["Enabled", "Enabled"]
        yield {old: one, new: other}
        for each in (one, other):
            each("job_collections", each.poll("delete"), each.group, "Nightly")


@pytest.fixture(scope="module")
def client(clients: dict[str, Client]) -> Client:
    """The newer client."""
    return clients["7.0.0"]


def http(url: str, method: str = "POST", **more: Any) -> dict[str, Any]:
    request = {"uri": url, "method": method, **more.pop("request", {})}
    return {"type": "Http", "request": request, "retryPolicy": NO_RETRY, **more}


def ended(client: Client, name: str, state: str = "Completed") -> dict[str, Any]:
    """Returns the properties of a job once it has this state."""
    of_job = (client.group, "Nightly", name)
    read = lambda: client("jobs", "get", *of_job)["properties"]  # noqa: E731
    found: dict[str, Any] = until(read, lambda job: job["state"] == state)
    return found


def history(client: Client, name: str, **more: Any) -> list[dict[str, Any]]:
    records = client("jobs", "list_job_history", client.group, "Nightly", name, **more)
    return [each["properties"] for each in records]


def counts(job: dict[str, Any]) -> tuple[int, int, int]:
    """Returns executions, failures and faults."""
    status = job["status"]
    return status["execution_count"], status["failure_count"], status["faulted_count"]


# Success


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_runs_and_its_execution_is_read(clients: dict[str, Client], endpoint: Endpoint, version: str):
    client, path = clients[version], f"/ok/{version}"
    request = {"body": "hello", "headers": {"x-own": "mine"}}

    client.job("Once", action=http(f"{endpoint.url}{path}", "PUT", request=request))
    job = ended(client, "Once")
    (record,) = history(client, "Once")

    (call,) = endpoint.calls(path)
    assert (call.method, call.body, call.headers["x-own"]) == ("PUT", b"hello", "mine")
    own = {name.removeprefix("x-ms-scheduler-"): value for name, value in call.headers.items()}
    assert (own["jobid"], own["jobcollectionid"], own["region"]) == ("Once", "Nightly", "West US")
    assert counts(job) == (1, 0, 0)
    assert (record["action_name"], record["status"], record["repeat_count"]) == ("MainAction", "Completed", 1)
    told, _, answer = record["message"].partition("\r\n Body: ")
    assert told.startswith("Http Action - Response from host '127.0.0.1': 'OK' Response Headers: ")
    assert "\r\ncontent-length: 11" in told
    assert answer == "done: hello"
    assert record["end_time"] >= record["start_time"] >= record["expected_execution_time"]
    assert [each["name"] for each in client("jobs", "list", client.group, "Nightly")] == ["Nightly/Once"]
    with pytest.raises(Refused) as final:
        client("jobs", "run", client.group, "Nightly", "Once")
    assert final.value.status == 409


def test_the_first_call_comes_within_two_seconds_of_the_put_and_never_early(client: Client, endpoint: Endpoint):
    """Tries until one call is quick, at most ten times: what else the machine does is not the service's."""
    took: list[timedelta] = []
    while len(took) < 10 and not any(each < WITHIN for each in took):
        n = len(took)
        asked_at = CLOCK.now()
        client.job(f"Now-{n}", action=http(f"{endpoint.url}/now/{n}"))
        answered_at = CLOCK.now()
        (call,) = until(lambda path=f"/now/{n}": endpoint.calls(path))
        planned = datetime.fromisoformat(call.headers["x-ms-scheduler-expectedexecutiontime"])
        assert call.at >= max(asked_at, planned)
        took.append(call.at - answered_at)

    assert min(took) < WITHIN, took


def test_a_recurring_job_runs_up_to_its_count_and_run_adds_an_execution(client: Client, endpoint: Endpoint):
    later = f"{CLOCK.now() + timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}"
    each_day = {"frequency": "Day", "interval": 1, "count": 3}
    client.job("Daily", startTime=later, recurrence=each_day, action=http(f"{endpoint.url}/daily", "GET"))
    where = (*HERE, "Daily")

    for _ in range(2):
        assert client("jobs", "run", *where, request_id="5b0e5a6e-0b3c-4b5e-9d3c-6f6d0c1f4e2a") is None
    until(lambda: client("jobs", "get", *where)["properties"]["status"]["execution_count"])
    assert client("jobs", "run", *where) is None
    until(lambda: client("jobs", "get", *where)["properties"]["status"]["execution_count"] == 2)

    assert [each.method for each in endpoint.calls("/daily")] == ["GET", "GET"]
    assert [each["repeat_count"] for each in history(client, "Daily")] == [2, 1]
    job = client("jobs", "get", *where)["properties"]
    assert (job["state"], job["status"]["next_execution_time"]) == ("Enabled", later.replace("Z", ".000Z"))
    assert client("jobs", "delete", *where) is None


# Failure


@pytest.fixture(scope="module")
def retrying(client: Client, endpoint: Endpoint) -> None:
    """The jobs that retry: one recovers, one fails for good and has an error action, one fails in that as well."""
    url = endpoint.url
    client.job("Recovers", action={**http(f"{url}/recovers"), "retryPolicy": ONE_RETRY})
    told = {"errorAction": http(f"{url}/told")}
    client.job("Faults", action={**http(f"{url}/fails/1"), "retryPolicy": ONE_RETRY, **told})
    lost = {"errorAction": http(f"{url}/fails/2/error")}
    client.job("Lost", action={**http(f"{url}/fails/2"), **lost})


@pytest.mark.usefixtures("retrying")
def test_a_failed_attempt_is_repeated_after_the_interval(client: Client, endpoint: Endpoint):
    job = ended(client, "Recovers")

    first, second = endpoint.calls("/recovers")
    assert second.at - first.at >= timedelta(seconds=15)
    tag = "x-ms-scheduler-executiontag"
    assert first.headers[tag] == second.headers[tag]
    assert counts(job) == (1, 1, 0)
    assert [(each["status"], each["retry_count"]) for each in history(client, "Recovers")] == [
        ("Completed", 1),
        ("Failed", 0),
    ]


@pytest.mark.usefixtures("retrying")
def test_the_error_action_follows_the_last_retry_once(client: Client, endpoint: Endpoint):
    job = ended(client, "Faults", "Faulted")
    until(lambda: len(history(client, "Faults")) == 3)

    assert len(endpoint.calls("/fails/1")) == 2
    assert len(endpoint.calls("/told")) == 1
    assert counts(job) == (1, 2, 1)
    error, *attempts = history(client, "Faults")
    assert (error["action_name"], error["status"]) == ("ErrorAction", "Completed")
    assert [(each["action_name"], each["status"], each["retry_count"]) for each in attempts] == [
        ("MainAction", "Failed", 1),
        ("MainAction", "Failed", 0),
    ]
    assert {each["repeat_count"] for each in (error, *attempts)} == {1}
    assert attempts[0]["message"].startswith("Http Action - Response from host '127.0.0.1': 'Internal Server Error'")
    failed = history(client, "Faults", filter="status eq 'Failed'")
    assert failed == attempts


@pytest.mark.usefixtures("retrying")
def test_an_error_action_that_fails_adds_a_record_and_is_not_counted(client: Client):
    job = ended(client, "Lost", "Faulted")
    until(lambda: len(history(client, "Lost")) == 2)

    assert [(each["action_name"], each["status"]) for each in history(client, "Lost")] == [
        ("ErrorAction", "Failed"),
        ("MainAction", "Failed"),
    ]
    assert counts(job) == (1, 1, 1)


# Queues and topics


def redirect(stack: LocalStack, group: str, places: dict[str, str]) -> None:
    """Leads queues and topics of the group's one collection to SQS and SNS."""
    native = stack.client()
    listed = native.get("/v1/collections", params={"limit": 200}).raise_for_status().json()["items"]
    (collection,) = [each["name"] for each in listed if each["attributes"].get("group") == group]
    redirects = {place: {"targetArn": target, "roleArn": TARGET_ROLE} for place, target in places.items()}
    native.patch(f"/v1/collections/{collection}", json={"redirects": redirects}).raise_for_status()


@pytest.fixture(scope="module")
def arrived(stack: LocalStack, client: Client) -> Iterator[Any]:
    """Redirects Azure's queues and a topic to SQS and SNS. Yields arrived(): the messages so far, by their receiver."""
    sqs, sns = stack.boto("sqs"), stack.boto("sns")
    arn = lambda service, name: f"arn:aws:{service}:{stack.file.region}:000000000000:{name}"  # noqa: E731
    queues = {name: sqs.create_queue(QueueName=f"azure-{name}")["QueueUrl"] for name in ("storage", "bus", "topic")}
    topic = sns.create_topic(Name="azure-news")["TopicArn"]
    subscribed = {"TopicArn": topic, "Protocol": "sqs", "Endpoint": arn("sqs", "azure-topic")}
    sns.subscribe(**subscribed, Attributes={"RawMessageDelivery": "true"})
    redirect(
        stack,
        client.group,
        {
            "acme/orders": arn("sqs", "azure-storage"),
            "acmebus/orders": arn("sqs", "azure-bus"),
            "acmebus/news": topic,
        },
    )
    found: dict[str, list[Any]] = {name: [] for name in queues}

    def look() -> dict[str, list[Any]]:
        for name, url in queues.items():
            told = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
            found[name] += told.get("Messages", [])
        return found

    yield look
    sns.delete_topic(TopicArn=topic)
    for url in queues.values():
        sqs.delete_queue(QueueUrl=url)


def test_queues_and_a_topic_get_their_messages_through_a_redirect_of_the_collection(client: Client, arrived: Any):
    storage = {"storageAccount": "acme", "queueName": "orders", "sasToken": "sv=1&sig=canary", "message": "<stored>"}
    proof = {"type": "SharedAccessKey", "sasKeyName": "sender", "sasKey": "canary"}
    bus = {"namespace": "acmebus", "authentication": proof, "customMessageProperties": {"colour": "red"}}
    queue = {**bus, "queueName": "orders", "message": "queued", "brokeredMessageProperties": {"label": "new"}}
    actions = {
        "ToStorage": {"type": "StorageQueue", "queueMessage": storage},
        "ToQueue": {"type": "ServiceBusQueue", "serviceBusQueueMessage": queue},
        "ToTopic": {
            "type": "ServiceBusTopic",
            "serviceBusTopicMessage": {**bus, "topicPath": "news", "message": "published"},
        },
    }
    for name, action in actions.items():
        shown = client.job(name, action={**action, "retryPolicy": NO_RETRY})
        assert "canary" not in json.dumps(shown)
    jobs = {name: ended(client, name) for name in actions}
    found = until(arrived, lambda there: all(there.values()))

    assert Counter({name: len(each) for name, each in found.items()}) == {"storage": 1, "bus": 1, "topic": 1}
    envelope = ET.fromstring(found["storage"][0]["Body"].partition("\n")[2])
    assert (envelope.findtext("SchedulerJobId"), envelope.findtext("Message")) == ("ToStorage", "<stored>")
    (to_queue,) = found["bus"]
    assert (to_queue["Body"], found["topic"][0]["Body"]) == ("queued", "published")
    attributes = {name: each["StringValue"] for name, each in to_queue["MessageAttributes"].items()}
    assert attributes["colour"] == "red"
    assert json.loads(attributes["BrokerProperties"])["Label"] == "new"
    assert {name: counts(job) for name, job in jobs.items()} == dict.fromkeys(actions, (1, 0, 0))
    told = [history(client, name)[0]["message"].partition(" - ")[2] for name in actions]
    assert told == [
        "Post to storage account 'acme' queue 'orders' succeeded.",
        "ok: queue 'orders' namespace 'acmebus'",
        "ok: topic 'news' namespace 'acmebus'",
    ]


# Collections


def test_a_disabled_collection_runs_nothing_and_a_deleted_one_is_gone(client: Client, endpoint: Endpoint):
    name = "Short-lived"
    body = ("JobCollectionDefinition", {"location": "West US", "properties": {"state": "Disabled"}})
    client("job_collections", "create_or_update", GROUP, name, body=body)
    each_minute = {"frequency": "Minute", "interval": 1}
    job = ("JobDefinition", {"properties": {"action": http(f"{endpoint.url}/never"), "recurrence": each_minute}})
    client("jobs", "create_or_update", GROUP, name, "Never", body=job)

    with pytest.raises(Refused) as disabled:
        client("jobs", "run", GROUP, name, "Never")
    assert client("job_collections", "begin_delete", GROUP, name) is None
    with pytest.raises(Refused) as gone:
        client("jobs", "get", GROUP, name, "Never")

    assert (disabled.value.status, gone.value.status) == (409, 404)
    assert [each["name"] for each in client("job_collections", "list_by_resource_group", GROUP)] == ["Nightly"]
    assert endpoint.calls("/never") == []


# The guide


def test_the_guides_client_and_its_policy_for_plain_http_work(stack: LocalStack, clients: dict[str, Client]):
    page = (CHECKOUT / "docs" / "migrate" / "azure.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    asked = {"grant_type": "client_credentials"}
    token = stack.client().post("/oauth/token", data=asked).raise_for_status().json()["access_token"]
    given = f"token, expires_on, api_url = {token!r}, 2_000_000_000, {stack.base_url!r}"
    shown = "print([each.name for each in client.job_collections.list_by_resource_group('local')])"
    script = "\n".join([given, *blocks, shown]).replace("my-subscription", SUBSCRIPTION)

    done = subprocess.run(
        [ROOT / VERSIONS["7.0.0"] / "bin" / "python", "-c", script],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )

    assert (len(blocks), len(clients)) == (2, 2)
    assert (done.returncode, done.stdout) == (0, "['Nightly']\n"), done.stderr


# The import


def test_the_ten_jobs_of_a_template_are_imported_and_run(
    stack: LocalStack, client: Client, endpoint: Endpoint, tmp_path: Path
):
    values = {"target": endpoint.url, "apiPassword": "canary", "storageSas": "sv=1&sig=canary"}
    (tmp_path / "parameters.json").write_text(json.dumps({name: {"value": each} for name, each in values.items()}))
    place = ["--subscription", SUBSCRIPTION, "--group", "imported", "--location", "West Europe"]
    more = [*place, "--parameters", str(tmp_path / "parameters.json")]

    said = [run_import(stack, *more, *how) for how in (["--dry-run"], [], [])]

    assert [lines[-1] for lines in said] == [
        "would be created 11, changed 0, unchanged 0, failed 0",
        "created 11, changed 0, unchanged 0, failed 0",
        "created 0, changed 0, unchanged 11, failed 0",
    ]
    queue = stack.boto("sqs").create_queue(QueueName="azure-parcels")["QueueUrl"]
    parcels = f"arn:aws:sqs:{stack.file.region}:000000000000:azure-parcels"
    redirect(stack, "imported", {"acmeshop/parcels": parcels})
    shop = ("imported", "Shop")
    names = [each["name"].partition("/")[2] for each in client("jobs", "list", *shop)]
    assert len(names) == 10
    for name in set(names) - {"Welcome"}:  # which ran at once, being without a start time
        assert client("jobs", "run", *shop, name) is None

    def counted() -> dict[str, Any]:
        return {each["name"]: each["properties"]["status"] for each in client("jobs", "list", *shop)}

    status = until(counted, lambda there: all(each["execution_count"] for each in there.values()))

    assert {each["failure_count"] for each in status.values()} == {0}
    called = {(each.method, each.path) for each in endpoint.received if each.headers["x-ms-scheduler-jobid"] in names}
    stock = {("POST", f"/stock?region={region}") for region in ("north", "south", "west")}
    assert called == stock | {
        *(("GET", "/prices"), ("POST", "/invoices"), ("PUT", "/meeting"), ("DELETE", "/week")),
        *(("GET", "/stopped"), ("POST", "/welcome")),
    }
    (message,) = stack.boto("sqs").receive_message(QueueUrl=queue)["Messages"]
    assert '<Message>["collect"]</Message>' in message["Body"]
    client("job_collections", "begin_delete", *shop)


def run_import(stack: LocalStack, *more: str) -> list[str]:
    """Imports the example as a user does. Returns the lines."""
    credential = stack.file.tenants["acme"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sweephand", "import", "azure"),
            *(str(CHECKOUT / "examples" / "azure_import" / "template.json"), *more),
        ],
        env={
            **os.environ,
            "SWEEPHAND_URL": stack.base_url,
            "SWEEPHAND_CREDENTIALS": f"{credential.client_id}:{credential.secret}",
        },
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "canary" not in done.stdout
    return done.stdout.splitlines()
