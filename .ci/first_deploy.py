"""`make first-deploy STACK=name`: deploys a new stack, drives it, measures what only AWS can answer, deletes it again.

Asks before it spends anything. Writes first-deploy.json: one entry for each step and for each of the unknowns U1 to
U14. With --local it runs against the local stack's emulator, and says why each step that it leaves out needs AWS.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import httpx
from botocore.exceptions import ClientError

from sweephand import __version__, ids
from sweephand.local.aws import deploy as local_deploy
from sweephand.local.aws.template import load
from sweephand.local.failures import DeployFailed
from sweephand.sources import SystemClock

if TYPE_CHECKING:
    from examples.demo.endpoint import DemoEndpoint

ROOT = Path(__file__).resolve().parent.parent
CLOCK = SystemClock()
LEAST_SAM = (1, 156)
TENANT = "accept"
UNKNOWNS = {
    "U1": "Does the HTTP API import at create, route settings included?",
    "U2": "Does an event source start right after its role was made?",
    "U3": "How late do calls arrive (p50, p99, in ms), and are any early, lost or doubled?",
    "U4": "How many messages come with one receive?",
    "U5": "How many empty receives has a queue in a month?",
    "U6": "Does the table cause KMS requests?",
    "U7": "How long do an idle tick, a cold start and an audit take?",
    "U8": "How do 401, 404, 413 and 429 look from outside?",
    "U9": "Do messages with a group keep their delay?",
    "U10": "How does the sweep bear a burst (throttles, advances sent again, seconds until all have begun)?",
    "U11": "Do the alarms begin and end?",
    "U12": "Do an update and a roll-back under load lose a run?",
    "U13": "What stays after sam delete, and can the same name be deployed again?",
    "U14": "Does a stack for arm64 seal a client certificate?",
}
KEPT_TYPES = {
    *("AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::SecretsManager::Secret", "AWS::S3::Bucket"),
}


class StepFailed(Exception):
    """A step that cannot go on; its text says why."""


@dataclass
class Run:
    """One first deploy. answers: by unknown; steps: what each one found."""

    stack: str
    region: str
    minutes: float
    burst: int
    idle_hours: float
    endpoint: str | None
    build_dir: Path
    answers: dict[str, Any] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    credential: tuple[str, str] = ("", "")
    target: str = ""
    demo: DemoEndpoint | None = None

    @property
    def local(self) -> bool:
        return self.endpoint is not None

    def client(self, service: str) -> Any:
        if self.endpoint is not None:
            return local_deploy.Aws(self.endpoint, self.region).client(service)
        return boto3.client(service, region_name=self.region)

    def sam(self, *arguments: str) -> str:
        """Raises StepFailed with the last lines of what the SAM CLI said."""
        emulator = {
            "AWS_ENDPOINT_URL": self.endpoint or "",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }
        own = ROOT / ".venv-sam" / "bin"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run(  # noqa: S603 - the SAM CLI
            [str(own / "sam") if (own / "sam").exists() else "sam", *arguments],
            cwd=ROOT,
            env=inherited
            | {"SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": self.region, "PATH": f"{own}:{os.environ['PATH']}"}
            | (emulator if self.local else {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise StepFailed(f"sam {arguments[0]}: {(done.stdout + done.stderr)[-1_500:]}")
        return done.stdout

    def described(self) -> local_deploy.Stack:
        found = self.client("cloudformation").describe_stacks(StackName=self.stack)["Stacks"][0]
        resources = self.client("cloudformation").describe_stack_resources(StackName=self.stack)["StackResources"]
        return local_deploy.Stack(
            self.stack,
            {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])},
            {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in resources},
        )

    def api(self, credential: tuple[str, str] | None = None) -> httpx.Client:
        """Sends a request with the tenant's credential, or with another one."""
        stack = self.described()
        root = stack.outputs["ApiUrl"]
        if self.endpoint is not None:
            root = f"{self.endpoint}/_aws/execute-api/{stack.physical['Api']}/$default"
        return httpx.Client(
            base_url=root, auth=credential or self.credential, timeout=120 if self.local else 40, trust_env=False
        )


def sums(run: Run, namespace: str, metric: str, dimension: tuple[str, str], hours: float, what: str = "Sum") -> float:
    """Returns a CloudWatch statistic of the last hours: of all values together, or the greatest."""
    now = CLOCK.now()
    points = run.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=metric,
        Dimensions=[{"Name": dimension[0], "Value": dimension[1]}],
        StartTime=now - timedelta(hours=hours),
        EndTime=now,
        Period=60,
        Statistics=[what],
    )["Datapoints"]
    values = [float(point[what]) for point in points]
    return (sum(values) if what == "Sum" else max(values, default=0.0)) if values else 0.0


def mean(run: Run, metric: str, function: str, hours: float) -> float | None:
    now = CLOCK.now()
    points = run.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName=metric,
        Dimensions=[{"Name": "FunctionName", "Value": function}],
        StartTime=now - timedelta(hours=hours),
        EndTime=now,
        Period=3600,
        Statistics=["Average"],
    )["Datapoints"]
    return sum(point["Average"] for point in points) / len(points) if points else None


# ---- The steps -------------------------------------------------------------------------------------------------------


def before(run: Run) -> dict[str, Any]:
    said = re.search(r"(\d+)\.(\d+)\.\d+", run.sam("--version"))
    if said is None or (int(said[1]), int(said[2])) < LEAST_SAM:
        raise StepFailed("the SAM CLI must be 1.156 or newer: make setup-sam installs one")
    try:
        run.client("cloudformation").describe_stacks(StackName=run.stack)
    except ClientError:
        pass
    else:
        raise StepFailed(f"a stack {run.stack} exists already: choose another name, this one would be deleted")
    account = run.client("sts").get_caller_identity()["Account"]
    executions = None if run.local else run.client("lambda").get_account_settings()["AccountLimit"]
    return {
        "sam": said[0],
        "account": f"...{account[-4:]}",
        "executions": executions and executions["ConcurrentExecutions"],
    }


def deployed(run: Run) -> dict[str, Any]:
    began = CLOCK.monotonic()
    if not (run.build_dir / "template.yaml").exists():
        run.sam("build")
    deploy(run)
    stack = run.described()
    types = run.client("cloudformation").describe_stack_resources(StackName=run.stack)["StackResources"]
    run.kept = {
        each["PhysicalResourceId"]: each["ResourceType"] for each in types if each["ResourceType"] in KEPT_TYPES
    }
    if run.local:
        aws = local_deploy.Aws(run.endpoint or "", run.region)
        local_deploy.repair(aws, stack, load(ROOT / "template.yaml"))
        local_deploy.put_secret(aws, stack.outputs["StackSecretArn"], "provider.admin", "first-deploy-secret")
    else:
        events = run.client("cloudformation").describe_stack_events(StackName=run.stack)["StackEvents"]
        run.answers["U1"] = {"failedResources": sum(each["ResourceStatus"].endswith("_FAILED") for each in events)}
        sources = run.client("lambda").list_event_source_mappings(FunctionName=stack.outputs["ExecutorFunctionName"])[
            "EventSourceMappings"
        ]
        run.answers["U2"] = {"states": [each["State"] for each in sources]}
    return {"seconds": round(CLOCK.monotonic() - began), "resources": len(types)}


def deploy(run: Run, **parameters: str) -> None:
    if run.local:
        parameters = {"AllowedPrivateTargets": "127.0.0.0/8", "PlainHttpTargets": "allow", **parameters}
    chosen = [f"{name}={value}" for name, value in parameters.items()]
    run.sam(
        *("deploy", "--template-file", str(run.build_dir / "template.yaml")),
        *("--config-file", str(ROOT / "samconfig.toml"), "--stack-name", run.stack, "--region", run.region),
        *("--no-confirm-changeset", "--no-progressbar"),
        *(("--parameter-overrides", *chosen) if chosen else ()),
    )


def door(run: Run) -> dict[str, Any]:
    secret = json.loads(
        run.client("secretsmanager").get_secret_value(SecretId=run.described().outputs["StackSecretArn"])[
            "SecretString"
        ]
    )
    provider = secret["clientId"], secret["secret"]
    with run.api(provider) as api:
        api.post("/v1/tenants", json={"tenant": TENANT}).raise_for_status()
        scopes = ["jobs:read", "jobs:write", "runs:write", "admin"]
        made = api.post(
            "/v1/credentials", json={"name": "first", "scopes": scopes}, headers={"Sweephand-Tenant": TENANT}
        )
        made.raise_for_status()
        run.credential = made.json()["clientId"], made.json()["secret"]
    with run.api() as api:
        version = api.get("/v1/health").json()["version"]
        form = {"grant_type": "client_credentials"}
        token = api.post("/oauth/token", data=form).status_code
        wrong = api.get("/v1/jobs", auth=("accept.nobody", "wrong"))
        unknown = api.get("/v1/there-is-no-such-path").status_code
        large = api.post("/v1/jobs", content=b" " * 300_000, headers={"Content-Type": "application/json"}).status_code
        count = 5 if run.local else 30
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            at_once = list(pool.map(lambda _: api.post("/oauth/token", data=form).status_code, range(count)))
    found = {
        "token": token,
        "wrongCredential": {"status": wrong.status_code, "challenge": _challenge(wrong.headers)},
        "unknownPath": unknown,
        "largeBody": large,
        "tokensAtOnce": {str(status): at_once.count(status) for status in sorted(set(at_once))},
    }
    if (token, wrong.status_code, unknown) != (200, 401, 404):
        raise StepFailed(f"the door answers otherwise than it should: {found}")
    if not run.local:
        run.answers["U8"] = found
    return {"version": version, **found}


def _challenge(headers: Mapping[str, str]) -> str | None:
    return next((name for name in headers if name.lower().endswith("www-authenticate")), None)


def load_for_minutes(run: Run) -> dict[str, Any]:
    """Schedules at the full minute, spread, each 5 s, one failing first and one slow; then what arrived."""
    run.target = target(run)
    schedules: dict[str, list[dict[str, Any]]] = {
        "at second 0": [{"cron": "* * * * *"} for _ in range(30)],
        "spread": [{"every": "PT1M", "startTime": _text(n)} for n in range(30)],
        "each 5 s": [{"every": "PT5S"}],
    }
    with run.api() as api:
        for name, timings in schedules.items():
            _create(api, name, f"{run.target}/sync", timings)
        retry = {"type": "fixed", "maxRetries": 3, "delaySeconds": 5}
        each_minute = {"every": "PT1M", "startTime": _text(0)}
        _create(api, "flaky", f"{run.target}/flaky", [each_minute], retry=retry)
        _create(api, "slow", f"{run.target}/slow", [each_minute], outcome={"answerTimeoutSeconds": 50})
        began = CLOCK.now()
        CLOCK.sleep(run.minutes * 60)
        ids_ = [job["id"] for job in api.get("/v1/jobs").json()["items"]]
        for job in ids_:
            api.post(f"/v1/jobs/{job}/deactivate")
        CLOCK.sleep(5 if run.local else 90)
        runs = [each for job in ids_ for each in _runs(api, job)]
    arrived = arrivals(run)
    late = sorted(_late_ms(each) for each in arrived if each["attempt"] == 1)
    keys = [(each["runId"], each["attempt"]) for each in arrived]
    called = {run_id for run_id, _ in keys}
    found = {
        "minutes": round((CLOCK.now() - began).total_seconds() / 60, 1),
        "jobs": len(ids_),
        "runs": Counter(f"{each['state']} {each.get('reason')}" for each in runs),
        "calls": len(keys),
        "early": sum(lateness < 0 for lateness in late),
        "lost": sum(each["state"] == "SUCCESS" and each["id"] not in called for each in runs),
        "doubled": len(keys) - len(set(keys)),
        "p50": late[len(late) // 2] if late else None,
        "p99": late[len(late) * 99 // 100] if late else None,
    }
    if not run.local:
        run.answers["U3"] = found
        stack, hours = run.described(), run.minutes / 60 + 0.1
        queue = "QueueName", stack.outputs["RunQueueUrl"].rpartition("/")[2]
        function = "FunctionName", stack.outputs["ExecutorFunctionName"]
        received = sums(run, "AWS/SQS", "NumberOfMessagesReceived", queue, hours)
        invoked = sums(run, "AWS/Lambda", "Invocations", function, hours)
        run.answers["U4"] = {"messages": received, "invocations": invoked, "aReceive": received / max(1, invoked)}
    if not late:
        raise StepFailed(f"no call arrived: {found}; the run queue: {_queued(run)}")
    if found["early"] or found["lost"] or found["doubled"]:
        raise StepFailed(f"calls are early, lost or doubled: {found}")
    return found


def _late_ms(arrival: Mapping[str, Any]) -> int:
    """Milliseconds from the planned instant, which the end of a run's id carries, to the arrival."""
    return int(arrival["atMs"]) - _planned_ms(arrival)


def _planned_ms(arrival: Mapping[str, Any]) -> int:
    return ids.instant_ms_of(arrival["runId"].rpartition("_")[2])


def _planned_at(run: Run, instant_ms: int) -> list[dict[str, Any]]:
    """Returns the arrivals of runs that were planned for one instant, without late retries of the load."""
    return [each for each in arrivals(run) if _planned_ms(each) == instant_ms]


def _queued(run: Run) -> dict[str, str]:
    """Counts the messages that wait in the queue of runs, are being worked on, and are delayed."""
    names = ("", "NotVisible", "Delayed")
    wanted = [f"ApproximateNumberOfMessages{name}" for name in names]
    url = run.described().outputs["RunQueueUrl"]
    return dict(run.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"])


def _runs(api: httpx.Client, job: str) -> list[dict[str, Any]]:
    """Returns the latest runs of a job. Raises StepFailed with the answer if it cannot be read."""
    answer = api.get("/v1/runs", params={"jobId": job, "limit": 200})
    if answer.is_error:
        raise StepFailed(f"the runs of a job are not to be had: {answer.text}")
    return list(answer.json()["items"])


def _text(seconds_ahead: int) -> str:
    return (CLOCK.now() + timedelta(seconds=5 + seconds_ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _create(
    api: httpx.Client,
    name: str,
    url: str,
    schedules: Sequence[Mapping[str, Any]],
    **of_action: Any,
) -> str:
    job = {"name": name, "action": {"type": "http", "url": url, **of_action}, "schedules": schedules}
    answer = api.post("/v1/jobs", json=job)
    if answer.is_error:
        raise StepFailed(f"the job {name} was refused: {answer.text}")
    return str(answer.json()["id"])


def target(run: Run) -> str:
    if run.local:
        sys.path.append(str(ROOT))
        from examples.demo.endpoint import DemoEndpoint  # noqa: PLC0415 - found by its place in the checkout

        run.demo = run.demo or DemoEndpoint(CLOCK, run.stack, 0)
        return run.demo.url
    cloudformation = run.client("cloudformation")
    cloudformation.create_stack(
        StackName=f"{run.stack}-target",
        TemplateBody=(ROOT / ".ci" / "first_deploy_target.yaml").read_text(),
        Capabilities=["CAPABILITY_IAM"],
    )
    cloudformation.get_waiter("stack_create_complete").wait(StackName=f"{run.stack}-target")
    return _output(run, "Url").rstrip("/")


def _output(run: Run, name: str) -> str:
    stack = run.client("cloudformation").describe_stacks(StackName=f"{run.stack}-target")["Stacks"][0]
    return next(str(each["OutputValue"]) for each in stack["Outputs"] if each["OutputKey"] == name)


def arrivals(run: Run) -> list[dict[str, Any]]:
    if run.demo is not None:
        return run.demo.book.after(0)
    pages = (
        run.client("logs")
        .get_paginator("filter_log_events")
        .paginate(logGroupName=_output(run, "Logs"), filterPattern='"runId"')
    )
    lines = [json.loads(event["message"]) for page in pages for event in page["events"]]
    return [json.loads(line["message"]) if "message" in line else line for line in lines]


def burst(run: Run) -> dict[str, Any]:
    """Runs many one-time schedules on one second, by jobs of 40 schedules each."""
    at = CLOCK.now() + timedelta(seconds=(10 if run.local else 30) + run.burst / 20)
    instant = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    with run.api() as api, concurrent.futures.ThreadPoolExecutor(8) as pool:
        jobs = [f"burst {n}" for n in range(-(-run.burst // 40))]
        list(pool.map(lambda name: _create(api, name, f"{run.target}/sync", [{"at": instant}] * 40), jobs))
    wanted, end = 40 * len(jobs), CLOCK.monotonic() + 600
    planned_ms = int(at.timestamp()) * 1000
    while len(_planned_at(run, planned_ms)) < wanted and CLOCK.monotonic() < end:
        CLOCK.sleep(1 if run.local else 10)
    CLOCK.sleep(2 if run.local else 60)  # a call that is made twice comes after the others
    mine = _planned_at(run, planned_ms)
    late = [each["atMs"] - planned_ms for each in mine]
    found = {"wanted": wanted, "arrived": len(mine), "early": sum(each < 0 for each in late)}
    found["doubled"] = len(mine) - len({(each["runId"], each["attempt"]) for each in mine})
    found["lastAfterMs"] = max(late, default=0)
    if not run.local:
        table = "TableName", run.described().outputs["TableName"]
        resent = sums(run, "Sweephand", "Resent", ("stack", run.stack), 0.5)
        throttles = sums(run, "AWS/DynamoDB", "WriteThrottleEvents", table, 0.5)
        run.answers["U9"] = {"early": found["early"]}
        run.answers["U10"] = {**found, "resent": resent, "writeThrottles": throttles}
    if found["arrived"] != found["wanted"] or found["early"] or found["doubled"]:
        raise StepFailed(f"the burst is not whole: {found}; the run queue: {_queued(run)}")
    return found


def faults(run: Run) -> dict[str, Any]:
    """Switches the sweeper's rule off for seven minutes; then a purge and the whole audit."""
    stack, events = run.described(), run.client("events")
    rule = stack.physical["MinuteRule"].rpartition("|")[2]
    events.disable_rule(Name=rule)
    try:
        CLOCK.sleep(7 * 60)
        silent = _alarm(run, stack, "SweeperSilentAlarm")
    finally:
        events.enable_rule(Name=rule)
    CLOCK.sleep(7 * 60)
    found = {"whileOff": silent, "afterwards": _alarm(run, stack, "SweeperSilentAlarm")}
    run.client("sqs").purge_queue(QueueUrl=stack.outputs["RunQueueUrl"])
    CLOCK.sleep(60)
    answer = run.client("lambda").invoke(FunctionName=stack.outputs["AuditorFunctionName"], Payload=b'{"all": true}')
    found["audit"] = json.loads(answer["Payload"].read())
    run.answers["U11"] = found
    return found


def _alarm(run: Run, stack: local_deploy.Stack, name: str) -> str:
    alarms = run.client("cloudwatch").describe_alarms(AlarmNames=[stack.physical[name]])["MetricAlarms"]
    return str(alarms[0]["StateValue"])


def update(run: Run) -> dict[str, Any]:
    """Updates and rolls back while a schedule runs each 5 s: no account can reserve so many executions."""
    with run.api() as api:
        job = _create(api, "during the update", f"{run.target}/sync", [{"every": "PT5S"}])
        deploy(run, LogLevel="DEBUG")
        try:
            deploy(run, LogLevel="DEBUG", ExecutorReservedConcurrency="1000")
            rolled_back = "the account had room for it"
        except StepFailed:
            rolled_back = run.client("cloudformation").describe_stacks(StackName=run.stack)["Stacks"][0]["StackStatus"]
        api.post(f"/v1/jobs/{job}/deactivate")
        CLOCK.sleep(60)
        runs = _runs(api, job)
    states = [each["state"] for each in runs]
    found = {"rollBack": rolled_back, "runs": {state: states.count(state) for state in set(states)}}
    run.answers["U12"] = found
    return found


def other_processor(run: Run) -> dict[str, Any]:
    """Updates the stack to arm64, and runs a job with a client certificate, which loads the compiled code."""
    deploy(run, Architecture="arm64")
    folder = ROOT / ".cache" / "first-deploy"
    folder.mkdir(parents=True, exist_ok=True)
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(  # noqa: S603 - openssl, for a certificate that lives a day
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=first-deploy"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    pem = certificate.read_text() + key.read_text()
    action = {
        "type": "http",
        "url": f"{run.target}/sync",
        "authentication": {"type": "clientCertificate", "pem": pem},
    }
    with run.api() as api:
        answer = api.post("/v1/jobs", json={"name": "certificate", "action": action, "schedules": [{"every": "PT1H"}]})
    found = {"status": answer.status_code, "body": None if answer.is_success else answer.text[:300]}
    run.answers["U14"] = found
    return found


def idle(run: Run) -> dict[str, Any]:
    """Measures an idle stack for some hours, projected to a month."""
    with run.api() as api:
        for job in api.get("/v1/jobs", params={"limit": 200}).json()["items"]:
            api.post(f"/v1/jobs/{job['id']}/deactivate")
    CLOCK.sleep(run.idle_hours * 3600 + 300)
    stack, month = run.described(), 730 / run.idle_hours
    outputs = stack.outputs
    empty = {
        name: round(
            month * sums(run, "AWS/SQS", "NumberOfEmptyReceives", ("QueueName", url.rpartition("/")[2]), run.idle_hours)
        )
        for name, url in outputs.items()
        if name in {"RunQueueUrl", "SlowQueueUrl", "OperationsQueueUrl", "DeadLetterQueueUrl"}
    }
    run.answers["U5"] = {"emptyReceivesAMonth": empty}
    run.answers["U6"] = {"kmsDecryptsByTheTable": _decrypts(run)}
    names = ("SweeperFunctionName", "ExecutorFunctionName", "AuditorFunctionName")
    durations = {name: mean(run, "Duration", outputs[name], run.idle_hours) for name in names}
    run.answers["U7"] = {"meanMs": durations}
    reads = sums(run, "AWS/DynamoDB", "ConsumedReadCapacityUnits", ("TableName", outputs["TableName"]), run.idle_hours)
    return {"hours": run.idle_hours, "emptyReceivesAMonth": empty, "meanMs": durations, "readUnits": reads}


def _decrypts(run: Run) -> int:
    pages = (
        run.client("cloudtrail")
        .get_paginator("lookup_events")
        .paginate(
            LookupAttributes=[{"AttributeKey": "EventName", "AttributeValue": "Decrypt"}],
            StartTime=CLOCK.now() - timedelta(hours=run.idle_hours),
        )
    )
    return sum("dynamodb.amazonaws.com" in event["CloudTrailEvent"] for page in pages for event in page["Events"])


def deleted(run: Run) -> dict[str, Any]:
    """Deletes the stack and what it keeps on purpose. Touches nothing that this run has not made."""
    if run.demo is not None:
        run.demo.close()
    else:
        run.client("cloudformation").delete_stack(StackName=f"{run.stack}-target")
    run.sam("delete", "--stack-name", run.stack, "--region", run.region, "--no-prompts")
    stayed = [kind for name, kind in run.kept.items() if _remove(run, kind, name)]
    if not run.local:
        run.answers["U13"] = {"stayedAfterDelete": sorted(stayed)}
    return {"stayedAfterDelete": sorted(stayed), "deletedAfterwards": len(stayed)}


def _remove(run: Run, kind: str, name: str) -> bool:
    """Returns whether it was still there."""
    try:
        if kind == "AWS::DynamoDB::Table":
            table = run.client("dynamodb")
            table.update_table(TableName=name, DeletionProtectionEnabled=False)
            table.delete_table(TableName=name)
        elif kind == "AWS::KMS::Key":
            run.client("kms").schedule_key_deletion(KeyId=name, PendingWindowInDays=7)
        elif kind == "AWS::SecretsManager::Secret":
            run.client("secretsmanager").delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
        else:
            bucket = run.client("s3")
            for page in bucket.get_paginator("list_objects_v2").paginate(Bucket=name):
                for each in page.get("Contents", []):
                    bucket.delete_object(Bucket=name, Key=each["Key"])
            bucket.delete_bucket(Bucket=name)
    except ClientError:
        return False
    return True


@dataclass(frozen=True)
class Step:
    """unknowns: what it answers on AWS. needs_aws: why the emulator cannot carry it; empty if it does."""

    name: str
    do: Callable[[Run], dict[str, Any]]
    unknowns: tuple[str, ...]
    needs_aws: str = ""


STEPS = (
    Step("before", before, ()),
    Step("deploy", deployed, ("U1", "U2")),
    Step("door", door, ("U8",)),
    Step("load", load_for_minutes, ("U3", "U4")),
    Step("burst", burst, ("U9", "U10")),
    Step(
        *("faults", faults, ("U11",)),
        needs_aws="the emulator judges an alarm only when a metric is put, so the alarm for no tick never begins",
    ),
    Step(
        *("update", update, ("U12",)),
        needs_aws="the emulator accepts any number of reserved executions, so it never rolls an update back",
    ),
    Step(
        *("idle", idle, ("U5", "U6", "U7")),
        needs_aws="the emulator counts no receive of a queue and records no KMS request, and its durations are its own",
    ),
    Step(
        *("other processor", other_processor, ("U14",)),
        needs_aws="the emulator runs each function on the processor of this machine, whatever the template names",
    ),
)
LAST = Step("delete", deleted, ("U13",))


def drive(run: Run) -> bool:
    """Goes through the steps; the last one cleans up whatever came before. Returns whether none failed."""
    whole = True
    made = False
    try:
        for step in STEPS:
            made = made or step.do is deployed
            if not _taken(run, step):
                whole = False
                break
    finally:
        if made:
            whole = _taken(run, LAST) and whole
    return whole


def _taken(run: Run, step: Step) -> bool:
    if run.local and step.needs_aws:
        _say(f"{step.name}: only AWS can answer {', '.join(step.unknowns)}: {step.needs_aws}")
        run.steps.append({"step": step.name, "outcome": "only AWS can answer", "why": step.needs_aws})
        return True
    _say(f"{step.name} ...")
    began = CLOCK.monotonic()
    try:
        found = step.do(run)
    except (StepFailed, ClientError, httpx.HTTPError, DeployFailed) as failure:
        _say(f"{step.name}: FAILED: {failure}")
        run.steps.append({"step": step.name, "outcome": "failed", "why": str(failure)})
        return False
    took = round(CLOCK.monotonic() - began)
    _say(f"{step.name}: {json.dumps(found, default=str)} ({took} s)")
    run.steps.append({"step": step.name, "outcome": "done", "tookSeconds": took, "found": found})
    return True


def report(run: Run) -> dict[str, Any]:
    by = {unknown: step.name for step in (*STEPS, LAST) for unknown in step.unknowns}
    return {
        "version": __version__,
        "at": CLOCK.now().isoformat(timespec="seconds"),
        "region": run.region,
        "where": "local stack" if run.local else "AWS",
        "steps": run.steps,
        "unknowns": {
            name: {"question": question, "step": by[name], "answer": run.answers.get(name)}
            for name, question in UNKNOWNS.items()
        },
    }


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _agreed(run: Run) -> bool:
    minutes = run.minutes + run.idle_hours * 60 + 45
    _say(
        f"This deploys the stack {run.stack} to {run.region}, drives it for {minutes:.0f} minutes, and deletes it.\n"
        "It costs about a dollar: some 20,000 runs, and by the hour a KMS key, a secret and alarms.\n"
        "The keys are deleted after seven days, during which they cost nothing."
    )
    return input(f"Type the name of the stack ({run.stack}) to go on: ").strip() == run.stack


def _endpoint() -> str:
    """Starts the local stack, or attaches to the one that runs."""
    subprocess.run([sys.executable, "-m", "sweephand.local", "stack"], cwd=ROOT, check=True)
    return str(json.loads((ROOT / ".local" / "stack.json").read_text())["awsEndpointUrl"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", required=True, help="name of a stack that does not exist yet")
    parser.add_argument("--region", default=os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"))
    parser.add_argument("--minutes", type=float, help="of load; default: 20, or 1.2 on the emulator")
    parser.add_argument("--burst", type=int, help="runs on one second; default: 10,000, or 40 on the emulator")
    parser.add_argument("--idle-hours", type=float, default=1)
    parser.add_argument("--local", action="store_true", help="against the local stack")
    parser.add_argument("--endpoint", help="of an emulator; implies --local")
    parser.add_argument("--build-dir", type=Path, default=ROOT / ".aws-sam" / "build")
    parser.add_argument("--out", type=Path, default=ROOT / "first-deploy.json")
    given = parser.parse_args()
    local = given.local or given.endpoint is not None
    region = given.region or ("us-east-1" if local else None)
    if region is None:
        parser.error("name a region: --region, or AWS_REGION")
    endpoint = (given.endpoint or _endpoint()) if local else None
    minutes = given.minutes or (1.2 if local else 20)
    of_burst = given.burst or (40 if local else 10_000)
    run = Run(given.stack, region, minutes, of_burst, given.idle_hours, endpoint, given.build_dir)
    if not local and not _agreed(run):
        _say("Nothing was done.")
        return 1
    try:
        whole = drive(run)
    finally:
        given.out.write_text(json.dumps(report(run), indent=2, default=str) + "\n")
        _say(f"Written: {given.out}")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
