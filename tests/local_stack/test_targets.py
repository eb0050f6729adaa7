"""Targets other than HTTP through the whole local stack: real functions act by a role on queues, topics and the
rest.
"""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from sweephand.local.settings import TARGET_ROLE, TASK_CLUSTER, TASK_FAMILY
from tests.local_stack.waiting import until

if TYPE_CHECKING:
    from tests.local_stack.conftest import LocalStack

pytestmark = pytest.mark.emulator

ACCOUNT = "000000000000"
FUNCTION = "def handler(event, _):\n    if event.get('bad'):\n        raise ValueError('no rows')\n    return event\n"
PASS = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})


class Targets:
    """The targets that a user has in their account, made on the embedded AWS."""

    def __init__(self, stack: LocalStack) -> None:
        self.stack = stack
        self.queue = stack.boto("sqs").create_queue(QueueName="orders")["QueueUrl"]
        self.fifo = stack.boto("sqs").create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true"})
        self.topic = stack.boto("sns").create_topic(Name="news")["TopicArn"]
        stack.boto("sns").subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=self.arn("sqs", "orders"))
        with suppress(ClientError):
            stack.boto("events").create_event_bus(Name="elsewhere")
        self.listen("elsewhere", {"source": ["acme.orders"]})
        self.listen(stack.file.event_bus_name, {"source": ["scheduler.acme"]})
        self.function()
        self.machine = stack.boto("stepfunctions").create_state_machine(
            name="steps", definition=PASS, roleArn=TARGET_ROLE
        )["stateMachineArn"]

    def arn(self, service: str, resource: str) -> str:
        return f"arn:aws:{service}:{self.stack.file.region}:{ACCOUNT}:{resource}"

    def listen(self, bus: str, pattern: dict[str, list[str]]) -> None:
        events = self.stack.boto("events")
        events.put_rule(Name="targets-test", EventBusName=bus, EventPattern=json.dumps(pattern))
        target = {"Id": "queue", "Arn": self.arn("sqs", "orders")}
        events.put_targets(Rule="targets-test", EventBusName=bus, Targets=[target])

    def function(self) -> None:
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as packed:
            packed.writestr("app.py", FUNCTION)
        self.stack.boto("lambda").create_function(
            FunctionName="target",
            Runtime="python3.13",
            Handler="app.handler",
            Role=TARGET_ROLE,
            Code={"ZipFile": code.getvalue()},
        )

    def received(self, url: str | None = None) -> list[str]:
        """Returns the messages that are there, and removes them."""
        sqs, found = self.stack.boto("sqs"), []
        while got := sqs.receive_message(QueueUrl=url or self.queue, MaxNumberOfMessages=10).get("Messages", []):
            for message in got:
                sqs.delete_message(QueueUrl=url or self.queue, ReceiptHandle=message["ReceiptHandle"])
                found.append(message["Body"])
        return found

    def ran(self, action: dict[str, Any]) -> dict[str, Any]:
        """Returns the finished run of a job with this action."""
        client = self.stack.client()
        if "targetArn" in action:
            action["roleArn"] = TARGET_ROLE
        job = client.post("/v1/jobs", json={"action": action}).raise_for_status().json()
        run = client.post(f"/v1/jobs/{job['id']}/run", json={}).raise_for_status().json()["runId"]
        ended = until(lambda: self.run(run), lambda there: there["status"] == "COMPLETED")
        client.delete(f"/v1/jobs/{job['id']}").raise_for_status()
        return ended

    def run(self, run: str) -> dict[str, Any]:
        there: dict[str, Any] = self.stack.client().get(f"/v1/runs/{run}").raise_for_status().json()
        return there

    def until(self, run: str, state: str, *, said: bool = False) -> dict[str, Any]:
        """Waits until the run has this state. said: also until there is a message; one from outside is shown once it
        has been read over for secrets.
        """
        return until(lambda: self.run(run), lambda there: there["state"] == state and (there["message"] or not said))

    def succeeds(self, action: dict[str, Any]) -> dict[str, Any]:
        run = self.ran(action)
        assert run["state"] == "SUCCESS", run
        return run


@pytest.fixture(scope="module")
def targets(stack: LocalStack) -> Targets:
    return Targets(stack)


def test_a_queue_and_a_topic_get_the_payload(targets: Targets) -> None:
    targets.succeeds({"type": "sqs", "targetArn": targets.arn("sqs", "orders"), "payload": {"n": 1}})
    targets.succeeds({"type": "sns", "targetArn": targets.topic, "body": "to all"})
    fifo = {"type": "sqs", "targetArn": targets.arn("sqs", "orders.fifo"), "payload": {"n": 2}}
    targets.succeeds(fifo)

    mine, published = targets.received()
    assert (json.loads(mine), json.loads(published)["Message"]) == ({"n": 1}, "to all")
    assert targets.received(targets.fifo["QueueUrl"]) == ['{"n":2}']


def test_events_reach_another_bus_and_the_stacks_own(targets: Targets) -> None:
    elsewhere = {
        "type": "events",
        "targetArn": targets.arn("events", "event-bus/elsewhere"),
        "source": "acme.orders",
        "detailType": "due",
        "payload": {"n": 1},
    }

    targets.succeeds(elsewhere)
    run = targets.succeeds({"type": "event", "payload": {"n": 2}})

    theirs, ours = map(json.loads, targets.received())
    assert (theirs["detail-type"], theirs["detail"]) == ("due", {"n": 1})
    assert (ours["source"], ours["detail"]["id"], ours["detail"]["payload"]) == ("scheduler.acme", run["id"], {"n": 2})


def test_a_functions_answer_is_awaited_and_its_error_reported(targets: Targets) -> None:
    target = {"type": "lambda", "targetArn": targets.arn("lambda", "function:target")}

    done = targets.succeeds({**target, "payload": {"n": 1}})
    slow = targets.succeeds({**target, "payload": {"n": 2}, "outcome": {"answerTimeoutSeconds": 60}})
    failed = targets.ran({**target, "payload": {"bad": True}})

    assert [json.loads(run["answer"]) for run in (done, slow)] == [{"n": 1}, {"n": 2}]
    assert (failed["state"], failed["reason"]) == ("ERROR", "TARGET_ERROR")
    assert "no rows" in failed["message"]


def test_a_state_machine_starts_under_the_id_of_the_run(targets: Targets) -> None:
    run = targets.succeeds({"type": "states", "targetArn": targets.machine, "payload": {"n": 1}})

    (execution,) = targets.stack.boto("stepfunctions").list_executions(stateMachineArn=targets.machine)["executions"]
    assert execution["name"] == run["id"]


def _twins(events: Any) -> list[str]:
    """Copies the rules for tasks as they are deployed, except the source that they listen to."""
    names = []
    for rule in events.list_rules()["Rules"]:
        if "aws.ecs" not in rule.get("EventPattern", ""):
            continue
        names.append(f"{rule['Name']}-twin")
        events.put_rule(Name=names[-1], EventPattern=rule["EventPattern"].replace("aws.ecs", "test.ecs"))
        events.put_targets(Rule=names[-1], Targets=events.list_targets_by_rule(Rule=rule["Name"])["Targets"])
    return names


def test_an_ecs_task_ends_its_run_and_is_stopped_with_it(targets: Targets) -> None:
    """The embedded ECS runs nothing, and tells nobody, and nobody may speak in the name of ECS: its events come under
    another source, through twins of the template's rules.
    """
    ecs, events = targets.stack.boto("ecs"), targets.stack.boto("events")
    twins = _twins(events)
    ecs.register_task_definition(family=TASK_FAMILY, containerDefinitions=[{"name": "main", "image": "busybox"}])
    action = {"type": "ecs", "taskDefinition": TASK_FAMILY, "container": "main", "environment": {"A": "hidden"}}
    client = targets.stack.client()
    job = client.post("/v1/jobs", json={"action": action}).raise_for_status().json()
    runs = [client.post(f"/v1/jobs/{job['id']}/run", json={}).json()["runId"] for _ in range(3)]

    tasks = []
    for run, code in zip(runs, (0, 3, None), strict=True):
        waiting = targets.until(run, "ACK_RECVD")
        (task,) = ecs.describe_tasks(cluster=TASK_CLUSTER, tasks=[waiting["answer"]])["tasks"]
        tasks.append(task["taskArn"])
        detail = {name: task[name] for name in ("clusterArn", "taskArn", "startedBy", "overrides")}
        detail |= {"lastStatus": "STOPPED", "stoppedReason": 'a "reason"', "containers": [{"name": "main"}]}
        if code is None:
            client.post(f"/v1/runs/{run}/cancel", json={}).raise_for_status()
            continue
        detail["containers"][0]["exitCode"] = code
        entry = {"Source": "test.ecs", "DetailType": "ECS Task State Change", "Detail": json.dumps(detail)}
        assert events.put_events(Entries=[entry])["FailedEntryCount"] == 0

    done = targets.until(runs[0], "SUCCESS", said=True)
    failed = targets.until(runs[1], "ERROR", said=True)
    cancelled = targets.until(runs[2], "CANCELLED")
    assert (done["message"], failed["message"]) == ('exit code 0: a "reason"', 'exit code 3: a "reason"')
    assert (failed["reason"], cancelled["reason"]) == ("TARGET_ERROR", "BY_USER")

    def stopped() -> dict[str, str]:
        told = ecs.describe_tasks(cluster=TASK_CLUSTER, tasks=tasks)["tasks"]
        return {task["taskArn"]: task["stoppedReason"] for task in told if task["lastStatus"] == "STOPPED"}

    assert until(stopped) == {tasks[2]: f"Sweephand: the run {runs[2]} is CANCELLED"}
    assert len(twins) == 2, "one for tasks that run, one for those that stopped"
    client.delete(f"/v1/jobs/{job['id']}").raise_for_status()


def test_a_job_can_run_another_job(targets: Targets) -> None:
    client = targets.stack.client()
    queue = {"type": "sqs", "targetArn": targets.arn("sqs", "orders"), "roleArn": TARGET_ROLE}
    other = client.post("/v1/jobs", json={"action": queue}).raise_for_status().json()["id"]

    run = targets.succeeds({"type": "job", "jobId": other})

    child = until(lambda: targets.run(run["answer"]), lambda there: there["status"] == "COMPLETED")
    assert (child["state"], child["parentRunId"]) == ("SUCCESS", run["id"])
    assert [json.loads(body)["runId"] for body in targets.received()] == [child["id"]]


def test_a_missing_queue_fails_the_run(targets: Targets) -> None:
    run = targets.ran({"type": "sqs", "targetArn": targets.arn("sqs", "nowhere")})

    assert (run["state"], run["reason"], run["httpStatus"]) == ("REQUEST_ERROR", "HTTP_STATUS", 400)
    assert "NonExistentQueue" in run["message"]


def test_the_stacks_own_queue_is_refused_as_a_target(targets: Targets) -> None:
    own = targets.stack.file.run_queue_url.rpartition("/")[2]
    action = {"type": "sqs", "targetArn": targets.arn("sqs", own), "roleArn": TARGET_ROLE}

    refused = targets.stack.client().post("/v1/jobs", json={"action": action})

    assert refused.status_code == 422
    assert refused.json()["errors"] == [{"field": "action.targetArn", "reason": "is a resource of this service itself"}]
