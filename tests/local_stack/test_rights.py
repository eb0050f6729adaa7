"""Every AWS call that the functions make in an eventful day, held against the rights that the template gives them.

The emulator checks no rights, so a missing one would show on AWS alone. The day runs the real handlers in this process,
against the emulator, with the template's own variables.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import sys
import threading
from contextlib import contextmanager, redirect_stdout
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from types import SimpleNamespace
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from sweephand.base.errors import Unavailable
from sweephand.base.sources import SystemClock
from sweephand.local.aws.deploy import put_secret
from sweephand.local.settings import TARGET_ROLE, TASK_CLUSTER, TASK_FAMILY
from sweephand.server import one_processor
from sweephand.server.flow.bulk import export_runs
from sweephand.server.store.dynamo import keys
from sweephand.server.store.operations.files import Files
from tests.local_stack import aws_calls, quiet
from tests.local_stack.runtime_emulator import ROOT
from tests.template.test_permissions import APPLICATIONS, GRANTED, LISTS, ROLE_OF

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.emulator

LANES = (
    ("ExecutorFunction", "RunQueue"),
    ("ExecutorSlowFunction", "SlowQueue"),
    ("OperationsFunction", "OperationsQueue"),
)
NAMED = (
    "Table",
    "RunQueue",
    "SlowQueue",
    "OperationsQueue",
    "DeadLetterQueue",
    "ArchiveQueue",
    "EventBus",
    "FilesBucket",
    "Key",
    "StackSecret",
)
FOLDERS = {
    "ApiFunction": "api",
    "SapApiFunction": "api",
    "AzureApiFunction": "api",
    "SweeperFunction": "sweeper",
    "ExecutorFunction": "executor",
    "ExecutorSlowFunction": "executor",
    "AuditorFunction": "auditor",
    "OperationsFunction": "operations",
}
# Used by Lambda on the function's behalf: its logs, its event source, what it does with a failed tick.
BY_LAMBDA_ITSELF = {"logs:CreateLogStream", "logs:PutLogEvents", "sqs:ReceiveMessage", "sqs:DeleteMessage"} | {
    "sqs:GetQueueAttributes"
}
# Roles of the parameters TargetRoleArns and Task*, as the local stack sets them; tests/template says that no other role
# has them.
TASKS = {(TASK_FAMILY, "ecs:RunTask"), (TASK_CLUSTER, "ecs:StopTask")}
BY_PARAMETER = {
    name: {(TARGET_ROLE, "sts:AssumeRole"), *TASKS} for name in ("ExecutorFunction", "ExecutorSlowFunction")
}
APPLICATIONS_OF = "sweephand-{}-app-"
"""The beginning of names as the template writes it, with the part of the stack's id."""
METRICS_OF = "acme/default,acme/app:billing"
ORDERS = "arn:aws:sqs:us-east-1:000000000000:orders"
KEPT_FOR_FAILURES = {("TickDeadLetterQueue", "sqs:SendMessage")}
# Used by whoever follows a link that the function has signed.
BY_LINK = {"ApiFunction": {("${FilesBucket.Arn}/*", "s3:GetObject")}}
# Rights that this day does not need. The own key signs calls over https alone (tests/local_stack/test_who_calls.py);
# the last run of a series writes its end by PartiQL, here in the fast lane only
# (tests/unit/server/flow/lifecycle/test_endings_soon.py). The native API makes the tenant's key for
# secrets, to which the other APIs then seal. They read the lists for tokens of other issuers only.
NOT_CALLED_HERE = {
    "ApiFunction": {("IdentityKey", "kms:GetPublicKey")},
    "SapApiFunction": {("Key", "kms:Encrypt"), (LISTS, "ssm:GetParameter")},
    "AzureApiFunction": {("Key", "kms:Encrypt"), (LISTS, "ssm:GetParameter")},
    "ExecutorFunction": {("IdentityKey", "kms:Sign")},
    "ExecutorSlowFunction": {("IdentityKey", "kms:Sign"), ("Table", "dynamodb:PartiQLUpdate")},
}


class _Names(dict):
    """The template's resources by physical name. The queues of applications have a pattern of names in their place."""

    def __init__(self, names, aws):
        super().__init__(names)
        (stack,) = aws.client("cloudformation").describe_stacks()["Stacks"]
        self._applications = APPLICATIONS_OF.format(stack["StackId"].split("/")[2])

    def __missing__(self, name):
        if not name.startswith(self._applications):
            raise KeyError(name)
        return APPLICATIONS


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """Function -> resource -> actions, of the whole day."""
    folder = tmp_path_factory.mktemp("emulator")
    with quiet.stack(folder, MetricsOf=METRICS_OF) as (aws, stack), _endpoint() as endpoint:
        put_secret(aws, stack.outputs["StackSecretArn"], "provider.admin", "first-secret")
        names = {stack.physical[name].rpartition("/")[2]: name for name in NAMED}
        names[stack.physical["Lists"]] = LISTS
        with aws_calls.recorded(_Names(names, aws)) as recorder, _functions(aws, stack) as handlers:
            day = _Day(aws, stack, endpoint, handlers, recorder)
            with day.time():
                day.whole()
        yield recorder.used


@pytest.mark.parametrize("function", FOLDERS)
def test_a_function_makes_only_calls_that_its_role_allows(used, function):
    granted = _pairs(GRANTED[ROLE_OF[function]]) | BY_PARAMETER.get(function, set())

    assert _pairs(used[function]) - granted == set()


@pytest.mark.parametrize("function", FOLDERS)
def test_a_functions_role_allows_only_calls_that_the_function_makes(used, function):
    granted = {pair for pair in _pairs(GRANTED[ROLE_OF[function]]) if pair[1] not in BY_LAMBDA_ITSELF}
    granted |= BY_PARAMETER.get(function, set())
    ahead = NOT_CALLED_HERE.get(function, set())

    assert granted - KEPT_FOR_FAILURES - BY_LINK.get(function, set()) - _pairs(used[function]) == ahead


class _Day:
    """A day: requests of users, due runs, failures: each line is there for a call that no other line makes."""

    def __init__(self, aws, stack, endpoint, handlers, recorder):
        self.aws, self.stack, self.endpoint, self.handlers, self.recorder = aws, stack, endpoint, handlers, recorder
        self.later = timedelta(0)
        self.sqs = aws.client("sqs")
        self.table = stack.outputs["TableName"]
        self.basic = "provider.admin:first-secret"

    @contextmanager
    def time(self):
        """Returns the functions' clock, which `later` moves on; the queues' delays stay as they are."""
        real = SystemClock.now
        with mock.patch.object(SystemClock, "now", lambda clock: real(clock) + self.later):
            yield

    def whole(self):
        self.tenant_and_collections()
        self.jobs_and_their_changes()
        self.runs_of_every_kind()
        self.the_key_of_callbacks()
        self.targets()
        self.tasks()
        self.long_work()
        self.dead_letters()
        self.a_purged_queue()
        self.an_outage()
        self.rows_that_went_wrong()
        self.reading()
        self.as_sap_s_client()
        self.as_microsoft_s_client()
        self.flow_keys()
        self.workers()
        self.deletes()
        self.the_end_of_a_tenant()

    def tenant_and_collections(self):
        self.api("POST", "/v1/tenants", {"tenant": "acme"}, expect=201)
        self.api("GET", "/v1/tenants")
        self.api("GET", "/v1/health")
        self.api("GET", "/v1/tenants/acme")
        self.api("POST", "/v1/tenants/acme/disable")
        self.api("POST", "/v1/tenants/acme/enable")
        issued = self.api(
            "POST",
            "/v1/credentials",
            {"name": "day", "scopes": ["tasks:write", "jobs:read", "jobs:write", "runs:write", "errors:edit", "admin"]},
            headers={"sweephand-tenant": "acme"},
            expect=201,
        )
        self.basic = f"{issued['clientId']}:{issued['secret']}"
        spare = self.api("POST", "/v1/credentials", {"name": "spare", "scopes": ["jobs:read"]}, expect=201)
        self.api("GET", "/v1/credentials")
        self.api("DELETE", f"/v1/credentials/{spare['clientId']}", expect=204)
        self.api("POST", "/oauth/token", "grant_type=client_credentials", form=True)
        self.api("POST", "/v1/collections", {"name": "night"}, expect=201)
        self.api("PATCH", "/v1/collections/night", {"quota": {"maxJobs": 5}, "events": "all"})
        self.api("POST", "/v1/collections/night/disable")
        self.api("POST", "/v1/collections/night/enable")
        self.api("GET", "/v1/collections")
        self.api("DELETE", "/v1/collections/night", expect=204)

    def jobs_and_their_changes(self):
        self.job = self.create(
            "hourly",
            "/ok",
            schedules=[{"name": "h", "every": "PT1H"}],
            tags=["a"],
            resourceId="r",
            payload={"n": 1},
            authentication={"type": "basic", "username": "u", "password": "p"},
        )
        path = f"/v1/jobs/{self.job}"
        self.api("PATCH", path, {"tags": ["b"], "name": "hourly-2"})
        self.api("POST", f"{path}/pause", {"note": "lunch"})
        self.api("POST", f"{path}/resume")
        added = self.api("POST", f"{path}/schedules", {"name": "x", "cron": "0 0 * * *"}, expect=201)
        self.api("PATCH", f"{path}/schedules/{added['id']}", {"cron": "0 1 * * *"})
        self.api("POST", f"{path}/schedules/{added['id']}/deactivate")
        self.api("POST", f"{path}/schedules/{added['id']}/activate")
        self.api("DELETE", f"{path}/schedules/{added['id']}", expect=204)

    def runs_of_every_kind(self):
        self.create("due", "/ok", schedules=[{"at": self.ago(20)}], payload={"n": 2})
        self.create("slow-due", "/ok", schedules=[{"at": self.ago(20)}], answerTimeoutSeconds=30)
        in_turn = {"overlap": "skip"}
        self.create("in-turn", "/ok", schedules=[{"at": self.ago(20)}], policies=in_turn)
        self.create("slow-in-turn", "/ok", schedules=[{"at": self.ago(20)}], policies=in_turn, answerTimeoutSeconds=30)
        reports = {"policies": {"callbackToken": True}}
        self.create("reports", "/ok", schedules=[{"at": self.ago(20)}], **reports)
        self.create("slow-reports", "/ok", schedules=[{"at": self.ago(20)}], answerTimeoutSeconds=30, **reports)
        alarm = {"type": "http", "url": f"{self.endpoint}/alarm"}
        slow_alarm = {**alarm, "outcome": {"answerTimeoutSeconds": 30}}
        once = {"type": "fixed", "maxRetries": 1, "delaySeconds": 0, "retryOn": "any"}
        for lane, more in (("fast", {}), ("slow", {"answerTimeoutSeconds": 30})):
            secret = {"type": "bearer", "token": "t"}
            self.create(
                f"failing-{lane}",
                "/fails",
                schedules=[{"at": self.ago(20)}],
                authentication=secret,
                retry=once,
                errorAction=slow_alarm if lane == "fast" else alarm,
                payload={"n": 3},
                **more,
            )
            later = {"type": "fixed", "maxRetries": 1, "delaySeconds": 3600, "retryOn": "any"}
            setattr(self, f"waiting_{lane}", self.create(f"later-{lane}", "/fails", retry=later, **more))
            self.api("POST", f"/v1/jobs/{getattr(self, f'waiting_{lane}')}/run", {}, expect=202)
        self.api("POST", f"/v1/jobs/{self.job}/run", {}, headers={"idempotency-key": "k"}, expect=202)
        self.api("POST", f"/v1/jobs/{self.job}/run", {}, headers={"idempotency-key": "k"}, expect=202)
        self.tick()
        self.work_off()

    def the_key_of_callbacks(self):
        """Checks the key that the fast executor has made. A target reports; the key is lost, and the slow executor
        makes another.
        """
        reporting = {"sweephand-callback-token": "acme." + "x" * 43}
        (run, *_) = self.api("GET", "/v1/runs")["items"]
        result = f"/v1/runs/{run['id']}/result"
        self.api("PUT", result, {"success": True}, headers=reporting, anonymous=True, expect=401)
        row = {"pk": {"S": keys.STACK_KEYS}, "sk": {"S": keys.CALLBACK_KEY}}
        self.aws.client("dynamodb").delete_item(TableName=self.table, Key=row)
        self.later += timedelta(minutes=6)
        again = self.create("again", "/ok", answerTimeoutSeconds=30, policies={"callbackToken": True})
        self.api("POST", f"/v1/jobs/{again}/run", {}, expect=202)
        self.work_off()

    def targets(self):
        """Calls targets other than HTTP: by a role of the job's in each lane, on the stack's own bus, and another
        job.
        """
        url = self.sqs.create_queue(QueueName="orders")["QueueUrl"]
        queue = {"type": "sqs", "targetArn": ORDERS, "roleArn": TARGET_ROLE}
        for seconds in (15, 30):
            outcome = {"outcome": {"answerTimeoutSeconds": seconds}}
            for action in (queue | outcome, {"type": "event"} | outcome):
                job = self.api("POST", "/v1/jobs", {"action": action}, expect=201)["id"]
                self.api("POST", f"/v1/jobs/{job}/run", {}, expect=202)
        other = self.api("POST", "/v1/jobs", {"action": {"type": "job", "jobId": job}}, expect=201)["id"]
        self.api("POST", f"/v1/jobs/{other}/run", {}, expect=202)
        self.work_off()
        assert len(self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]) == 2

    def flow_keys(self):
        """Deletes a key after a change and a pause; in each lane runs wait under it, and a circuit opens."""
        key = "/v1/flow-keys/shared"
        self.api("POST", "/v1/flow-keys", {"name": "shared", "parallelism": 1, "circuit": {"failures": 1}}, expect=201)
        self.api("PATCH", key, {"rate": {"limit": 10, "periodSeconds": 1}})
        made = []
        for seconds in (15, 30):
            for place in ("/fails", "/ok", "/ok"):
                action = {"type": "http", "url": self.endpoint + place, "outcome": {"answerTimeoutSeconds": seconds}}
                job = self.api("POST", "/v1/jobs", {"action": action, "policies": {"flowKey": "shared"}}, expect=201)
                made.append(job["id"])
        self.api("POST", f"{key}/pause", {"note": "lunch"})
        for job in made:
            self.api("POST", f"/v1/jobs/{job}/run", {}, expect=202)
        self.work_off()
        assert self.api("GET", key)["live"]["waiting"] == len(made)
        self.api("POST", f"{key}/resume")
        for _ in range(4):
            self.work_off()

    def tasks(self):
        """Runs tasks on ECS, in each lane: begun, and stopped as its run is cancelled."""
        family = {"family": TASK_FAMILY, "containerDefinitions": [{"name": "main", "image": "busybox"}]}
        self.aws.client("ecs").register_task_definition(**family)
        task = {"type": "ecs", "taskDefinition": TASK_FAMILY, "container": "main"}
        for seconds in (15, 30):
            action = {**task, "outcome": {"answerTimeoutSeconds": seconds}}
            job = self.api("POST", "/v1/jobs", {"action": action}, expect=201)["id"]
            run = self.api("POST", f"/v1/jobs/{job}/run", {}, expect=202)["runId"]
            self.work_off()
            assert self.api("GET", f"/v1/runs/{run}")["state"] == "ACK_RECVD"
            self.api("POST", f"/v1/runs/{run}/cancel", {})
            self.work_off()

    def long_work(self):
        """Runs failed runs again in both lanes, one run a page; a message that is lost, and one that nobody reads."""
        failed = [run["id"] for run in self.api("GET", "/v1/runs", query="state=ERROR")["items"]]
        many = {"runs": failed, "ratePerMinute": 6}
        begun = self.api("POST", "/v1/errors:redrive", many, expect=202)["operation"]
        self.received("OperationsQueue")
        self.later += timedelta(minutes=6)
        self.tick()
        self.call("OperationsFunction", _records(["nothing"], self.stack.physical["OperationsQueue"]))
        for _ in failed:
            self.work_off()
            self.later += timedelta(minutes=1)
        self.work_off()
        self.api("POST", f"/v1/runs/{failed[0]}/rerun", {"payload": {"n": 4}}, expect=202)
        self.api("GET", "/v1/operations")
        self.errors()
        self.files()
        assert self.api("GET", f"/v1/operations/{begun['id']}")["progress"]["done"] > 0

    def files(self):
        """Writes files of several pieces, one of which is continued; once they cannot be joined."""
        wanted = {"jobId": self.job, "format": "jsonl"}
        with mock.patch.object(export_runs, "PAGE_S", -1.0), mock.patch.object(export_runs, "LEAST_PIECE", 700):
            begun = self.api("POST", "/v1/runs:export", wanted, expect=202)
            self.work_off()
            result = self.api("GET", f"/v1/operations/{begun['id']}")["result"]
            assert (result["runs"] > 1, result["link"] is None) == (True, False)
            with mock.patch.object(Files, "_copied", side_effect=Unavailable("S3 is slow")):
                begun = self.api("POST", "/v1/runs:export", wanted, expect=202)
                self.work_off()
        self.api("POST", f"/v1/operations/{begun['id']}/cancel")

    def errors(self):
        """Resolves one group, and lets another expire with its runs."""
        (group, *_) = self.api("GET", "/v1/errors")["items"]
        path = f"/v1/errors/{group['id']}"
        self.api("GET", path)
        self.api("GET", f"{path}/runs")
        self.api("POST", f"{path}/notes", {"text": "seen"}, expect=201)
        self.api("POST", f"{path}/archive")
        self.api("POST", f"{path}/restore")
        (failed, *_) = self.api("GET", f"{path}/runs")["items"]
        self.api("POST", f"{path}/runs/{failed['runId']}/archive")
        self.api("POST", f"{path}/runs/{failed['runId']}/restore")
        redirect = f"/v1/error-redirects/{group['jobId']}"
        self.api("PUT", redirect, {"to": self.job})
        self.api("GET", "/v1/error-redirects")
        begun = self.api("POST", "/v1/errors:redrive", {"group": group["id"], "ratePerMinute": 6_000}, expect=202)
        self.work_off()
        assert self.api("GET", f"/v1/operations/{begun['operation']['id']}")["state"] == "DONE"
        self.api("DELETE", redirect, expect=204)
        (other, *_) = self.api("GET", "/v1/errors")["items"]
        sample = json.loads((ROOT / "events" / "operations" / "page.json").read_text())["Records"][0]["body"]
        look = json.dumps(json.loads(sample) | {"subject": "errors", "run": other["id"]})
        now = self.later
        for days in (14, 120):
            self.later = now + timedelta(days=days)
            self.call("OperationsFunction", _records([look], self.stack.physical["OperationsQueue"]))
        self.later = now
        self.api("GET", f"/v1/errors/{other['id']}", expect=404)

    def dead_letters(self):
        """Makes dead letters, in the slow lane too: both end in one queue, and an errorAction goes where its job's runs
        go.
        """
        alarm = {"type": "http", "url": f"{self.endpoint}/alarm"}
        for queue, more in (("RunQueue", {}), ("SlowQueue", {"answerTimeoutSeconds": 30})):
            at = self.ago(20)
            job = self.create(f"undelivered-{queue}", "/ok", schedules=[{"at": at}], errorAction=alarm, **more)
            body = next(body for body in self.received(queue) if json.loads(body)["job"] == job)
            ahead = json.loads(body) | {
                "run": "00000000-0000-8000-8000-000000000000",
                "instant": int(SystemClock().now().timestamp()) + 600,
            }
            given_up = json.loads(body) | {"returns": 24, "sent": int(SystemClock().now().timestamp())}
            # The second one's time has not come: it is put off. The third one finds that its run has ended.
            for letter in (json.dumps(given_up), json.dumps(ahead), body):
                self.sqs.send_message(QueueUrl=self.stack.physical["DeadLetterQueue"], MessageBody=letter)
            self.call("ExecutorFunction", {"deadLetters": True})
        self.work_off()

    def a_purged_queue(self):
        """Occurrences that were sent and advanced over, and whose messages are gone: the audit sends them again."""
        self.create("lost-fast", "/ok", schedules=[{"every": "PT5M"}])
        self.create("lost-slow", "/ok", schedules=[{"every": "PT5M"}], answerTimeoutSeconds=30)
        changed = self.create("lost-by-an-old-plan", "/ok", schedules=[{"every": "PT5M"}])
        self.later += timedelta(minutes=6)
        self.tick()
        while any([self.received("RunQueue"), self.received("SlowQueue")]):
            pass
        self.api("POST", f"/v1/jobs/{changed}/deactivate")
        row = self.row_of(changed)  # as if twenty changes had come since
        ended = json.loads(row["ended_at"]["S"])
        forgotten = {":e": {"S": json.dumps({"21": max(ended.values())})}, ":g": {"N": "22"}}
        self.write(row, "SET ended_at = :e, generation = :g", forgotten)
        self.later += timedelta(minutes=20)
        self.audit()
        self.work_off()

    def an_outage(self):
        """Leaves out the ticks of a quarter of an hour: all of it is sent, paced. For an hour: the last, the rest is a
        line.
        """
        for minutes in (1, 15, 2, 60):
            self.later += timedelta(minutes=minutes)
            self.tick()
        self.work_off()

    def rows_that_went_wrong(self):
        """Writes a spec that no version of the code wrote, and a series without its next time: never silent."""
        self.write(self.row_of(self.job), "REMOVE next_run_at")
        self.audit()
        self.work_off()
        spoiled = self.create("spoiled", "/ok", schedules=[{"every": "PT1H"}])
        row = self.row_of(spoiled)
        yesterday = int((SystemClock().now() - timedelta(days=1)).timestamp())
        *kind, _ = row["sweep"]["S"].split(";", 3)
        spec = ";".join([*kind, "rubbish"])
        self.write(row, "SET sweep = :s, next_run_at = :n", {":s": {"S": spec}, ":n": {"N": str(yesterday)}})
        self.tick()
        self.audit()

    def workers(self):
        """Queues of applications: registered, mended, sent to by every function, and in the end deleted."""
        url = self.api("PUT", "/v1/applications/billing", {})["queueUrl"]
        self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "1"})
        self.api("PUT", "/v1/applications/billing", {})  # in another form by hand: it is brought back
        self.api("PUT", "/v1/applications/given-up", {})
        self.api("DELETE", "/v1/applications/given-up", expect=204)
        task = {"type": "queue", "application": "billing", "task": "report"}
        body = {"action": task, "schedules": [{"every": "PT5M"}]}
        job = self.api("POST", "/v1/jobs", body, expect=201)["id"]
        self.later += timedelta(minutes=6)
        self.tick()  # the sweeper
        assert "Open" in self.metrics_of_billing()
        assert self.emptied(url)
        self.later += timedelta(minutes=20)
        self.audit()  # the auditor, for what was sent and is lost
        assert self.emptied(url)
        self.api("POST", f"/v1/jobs/{job}/run", {}, expect=202)  # the API
        (message,) = self.emptied(url)
        failed = self.failed_by_a_worker(message)
        self.api("POST", "/v1/errors:redrive", {"runs": [failed]}, expect=202)
        self.work_off()  # the function of operations
        assert self.emptied(url)
        for seconds in (15, 30):  # both executors
            told = {"type": "event", "application": "billing", "outcome": {"answerTimeoutSeconds": seconds}}
            job = self.api("POST", "/v1/jobs", {"action": told}, expect=201)["id"]
            self.api("POST", f"/v1/jobs/{job}/run", {}, expect=202)
            self.work_off()
            assert self.emptied(url)

    def metrics_of_billing(self):
        """Returns the names of the metrics that the check for dead letters writes for the application."""
        with redirect_stdout(StringIO()) as log:
            self.call("ExecutorFunction", {"deadLetters": True})
        lines = [json.loads(line) for line in log.getvalue().splitlines()]
        return {name for line in lines if line.get("application") == "acme/billing" for name in line}

    def failed_by_a_worker(self, message):
        """Returns the id of a run that its worker has claimed and reported as failed for good."""
        pointer = json.loads(message)
        path = f"/v1/runs/{pointer['schedule'] or pointer['job']}_{pointer['run']}"
        owner = {"owner": "day/1"}
        claim = owner | {"message": message, "application": "billing", "sentAt": self.ago(0)}
        assert self.api("POST", f"{path}/claim", claim)["verdict"] == "run"
        self.api("POST", f"{path}/settle", owner | {"attempt": 1, "outcome": "failure", "retry": False})
        return path.rpartition("/")[2]

    def emptied(self, url):
        """Returns the bodies of all that waits in a queue, and deletes it."""
        bodies = []
        while got := self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for message in got:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                bodies.append(message["Body"])
        return bodies

    def reading(self):
        path = f"/v1/jobs/{self.job}"
        self.api("GET", "/v1/health")
        for query in (
            "",
            "collection=default",
            "state=ACTIVE",
            "tag=b",
            "resourceId=r",
            "name=hourly-2",
            "search=o&include=total",
        ):
            self.api("GET", "/v1/jobs", query=query)
        self.api("GET", path, query="include=schedules")
        for under in ("/next", "/occurrences", "/schedules"):
            self.api("GET", path + under)
        self.api("POST", "/v1/schedules:preview", {"every": "PT1H"})
        (schedule, *_) = self.api("GET", f"{path}/schedules")["items"]
        self.api("GET", f"{path}/schedules/{schedule['id']}/explain", query="at=2030-01-01T00:00:00Z")
        self.api("GET", "/v1/runs")
        for run in self.api("GET", "/v1/runs", query=f"jobId={self.job}")["items"]:
            self.api("GET", f"/v1/runs/{run['id']}")
        for run in self.api("GET", "/v1/runs")["items"]:
            self.api("GET", f"/v1/runs/{run['id']}")

    def deletes(self):
        for lane in ("fast", "slow"):
            self.api("DELETE", f"/v1/jobs/{getattr(self, f'waiting_{lane}')}", expect=204)
        self.api("DELETE", f"/v1/jobs/{self.job}", expect=204)
        self.later += timedelta(minutes=1)
        self.tick()
        self.work_off()
        self.audit()

    def the_end_of_a_tenant(self):
        """Ends a tenant. Its last jobs go with it, and are published where their collection publishes everything."""
        self.api("PATCH", "/v1/collections/default", {"events": "all"})
        self.create("left", "/ok", schedules=[{"every": "PT1H"}])
        self.basic = "provider.admin:first-secret"
        self.api("PATCH", "/v1/tenants/acme", {"quota": {"maxSchedules": 100}})
        place = "/v1/tenants/acme/subscriptions/app"
        self.api("PUT", place)
        begun = self.api("DELETE", place, expect=202)
        self.work_off()
        self.later += timedelta(minutes=6)  # beyond the time in which its callers still know of their tenant
        self.tick()
        self.work_off()
        assert self.api("GET", f"/v1/operations/{begun['id']}")["state"] == "DONE"

    # How each is done

    def create(self, name, where, *, schedules=(), tags=(), resourceId=None, errorAction=None, policies=None, **action):  # noqa: N803
        outcome = {"answerTimeoutSeconds": action.pop("answerTimeoutSeconds", 15)}
        body = {
            "name": name,
            "action": {"type": "http", "url": self.endpoint + where, "outcome": outcome} | action,
            "schedules": list(schedules),
            "tags": list(tags),
            "resourceId": resourceId,
            "errorAction": errorAction,
            "policies": policies,
        }
        return self.api("POST", "/v1/jobs", {k: v for k, v in body.items() if v is not None}, expect=201)["id"]

    def as_sap_s_client(self):
        """Acts as SAP's client. The job's last schedule uses the slow queue, to which a native change has sent it."""
        job = {"name": "sap", "action": self.endpoint + "/ok", "active": True, "user": "joe", "password": "secret"}
        made = self.sap("POST", "/jobs", {**job, "schedules": [{"active": True, "time": "now"}]}, expect=201)
        where = f"/jobs/{made['_id']}"
        self.api("PATCH", "/v1/collections/sap", {"events": "all"})
        native = next(each for each in self.api("GET", "/v1/jobs", query="collection=sap")["items"])
        slow = {"action": {"outcome": {"answerTimeoutSeconds": 30}}}
        self.api("PATCH", f"/v1/jobs/{native['id']}", slow)
        self.sap("POST", f"{where}/schedules", {"active": True, "time": "now"}, expect=201)
        self.sap("GET", "/jobs")
        self.sap("GET", "/jobCount")
        self.sap("PUT", "/globalParameters", {"ASYNC_EXEC_TIMEOUT": "600"})
        self.sap("DELETE", where)

    def as_microsoft_s_client(self):
        """Sends what the client sends: a message goes by the fast queue, and a deleted collection is an operation."""
        where = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Scheduler/jobCollections/c"
        self.azure("PUT", where, {"location": "here"}, expect=201)
        native = next(each for each in self.api("GET", "/v1/collections")["items"] if each["facade"] == "azure")
        self.api("PATCH", f"/v1/collections/{native['name']}", {"events": "all"})
        request = {"method": "GET", "uri": self.endpoint + "/ok"}
        properties = {"action": {"type": "Http", "request": request}}
        self.azure("PUT", f"{where}/jobs/j", {"properties": properties}, expect=201)
        signed = {**request, "authentication": {"type": "Basic", "username": "joe", "password": "secret"}}
        later = {"recurrence": {"frequency": "Day"}, "action": {"type": "Http", "request": signed}}
        self.azure("PUT", f"{where}/jobs/later", {"properties": later}, expect=201)
        self.azure("POST", f"{where}/jobs/later/run")
        message = {"storageAccount": "account", "queueName": "queue", "sasToken": "sv=1&sig=x", "message": "go"}
        queued = {"action": {"type": "StorageQueue", "queueMessage": message, "retryPolicy": {"retryType": "None"}}}
        self.azure("PUT", f"{where}/jobs/queued", {"properties": queued}, expect=201)
        self.work_off()
        self.azure("GET", f"{where}/jobs/j")
        self.azure("GET", f"{where}/jobs/later/history")
        self.azure("POST", f"{where}/disable")
        self.azure("DELETE", where)
        self.work_off()

    def azure(self, method, path, body=None, *, expect=200):
        query = "api-version=2016-03-01"
        return self.api(method, path, body, query=query, expect=expect, function="AzureApiFunction")

    def ago(self, seconds):
        return (SystemClock().now() - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def sap(self, method, path, body=None, *, query="", expect=200):
        return self.api(method, f"/scheduler{path}", body, query=query, expect=expect, function="SapApiFunction")

    def api(
        self,
        method,
        path,
        body=None,
        *,
        query="",
        headers=None,
        form=False,
        anonymous=False,
        expect=200,
        function="ApiFunction",
    ):
        credential = base64.b64encode(self.basic.encode()).decode()
        event = json.loads((ROOT / "events" / "api" / "get_health.json").read_text())
        event["rawPath"] = event["requestContext"]["http"]["path"] = path
        event["requestContext"]["http"]["method"] = method
        event["rawQueryString"] = query
        event["headers"] |= ({} if anonymous else {"authorization": f"Basic {credential}"}) | (headers or {})
        if body is not None:
            event["headers"]["content-type"] = "application/x-www-form-urlencoded" if form else "application/json"
            event["body"] = body if form else json.dumps(body)
        answer = self.call(function, event)
        assert answer["statusCode"] == expect, f"{method} {path}: {answer}"
        return json.loads(answer["body"]) if answer.get("body") else None

    def tick(self):
        return self.call("SweeperFunction", json.loads((ROOT / "events" / "sweeper" / "tick.json").read_text()))

    def audit(self):
        for event in ("everything", "hour"):
            self.call("AuditorFunction", json.loads((ROOT / "events" / "auditor" / f"{event}.json").read_text()))

    def work_off(self):
        """Works off all lanes until none has a message that is due."""
        worked = True
        while worked:
            worked = False
            for function, queue in LANES:
                bodies = self.received(queue)
                if bodies:
                    self.call(function, _records(bodies, self.stack.physical[queue]))
                    worked = True

    def received(self, queue):
        """Bodies of up to ten messages that are due, taken off the queue."""
        url = self.stack.physical[queue]
        got = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for message in got:
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return [message["Body"] for message in got]

    def row_of(self, job):
        """Returns the row of its (first) schedule."""
        rows = self.aws.client("dynamodb").scan(TableName=self.table)["Items"]
        return next(row for row in rows if row["pk"]["S"].endswith(job) and row["sk"]["S"].startswith("SCH#"))

    def write(self, row, expression, values=None):
        self.aws.client("dynamodb").update_item(
            TableName=self.table,
            Key={"pk": row["pk"], "sk": row["sk"]},
            UpdateExpression=expression,
            **({"ExpressionAttributeValues": values} if values else {}),
        )

    def call(self, function, event):
        with self.recorder.acting_as(function):
            return self.handlers[function](event, SimpleNamespace(aws_request_id=f"request-{id(event)}"))


def _records(bodies, queue_url):
    sample = json.loads((ROOT / "events" / "executor" / "runs.json").read_text())["Records"][0]
    now_ms = int(SystemClock().now().timestamp() * 1000)
    return {
        "Records": [
            sample
            | {
                "messageId": f"message-{n}",
                "receiptHandle": f"receipt-{n}-{now_ms}",
                "body": body,
                "attributes": sample["attributes"] | {"SentTimestamp": str(now_ms)},
                "eventSourceARN": f"arn:aws:sqs:us-east-1:000000000000:{queue_url.rpartition('/')[2]}",
            }
            for n, body in enumerate(bodies)
        ]
    }


@contextmanager
def _functions(aws, stack):
    """Runs the real handlers in this process, each made with its own environment."""
    handlers: dict[str, Callable] = {}
    for function, folder in FOLDERS.items():
        environment = {"PATH": os.environ["PATH"]} | quiet.variables(aws, stack, function)
        # This process has more to do than the executor.
        with mock.patch.dict(os.environ, environment, clear=True), mock.patch.object(one_processor, "stay"):
            spec = importlib.util.spec_from_file_location(f"day_{function}", ROOT / "functions" / folder / "app.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        handlers[function] = _within(environment, module.handler)
    yield handlers
    for function in FOLDERS:
        sys.modules.pop(f"day_{function}", None)


def _within(environment, handler):
    """Clients are made at their first call: that too must see the function's own environment."""

    def call(event, context):
        with mock.patch.dict(os.environ, environment, clear=True):
            return handler(event, context)

    return call


@contextmanager
def _endpoint():
    """Answers 500 below /fails, else 200."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(500 if self.path.startswith("/fails") else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _pairs(by_resource):
    return {(resource, action) for resource, actions in by_resource.items() for action in actions}
