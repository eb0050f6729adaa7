"""The steps of a first deploy. Each one answers its unknowns and returns its results, or raises StepFailed."""

from __future__ import annotations

import concurrent.futures
import json
import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from sweephand.base import ids
from sweephand.local.aws import deploy as local_deploy
from sweephand.local.aws.template import load
from tools.aws.first_deploy_run import CLOCK, ROOT, Run, StepFailed, arrivals, create, metric, runs_of, target, total

LEAST_SAM = (1, 156)
TENANT = "accept"
KEPT_TYPES = {
    *("AWS::DynamoDB::Table", "AWS::KMS::Key", "AWS::SecretsManager::Secret", "AWS::S3::Bucket"),
}


def before(run: Run) -> dict[str, Any]:
    said = re.search(r"(\d+)\.(\d+)\.\d+", run.sam("--version"))
    if said is None or (int(said[1]), int(said[2])) < LEAST_SAM:
        raise StepFailed("the SAM CLI must be 1.156 or newer: make setup-sam installs one")
    try:
        run.client("cloudformation").describe_stacks(StackName=run.stack)
    except ClientError:
        pass
    else:
        raise StepFailed(f"the stack {run.stack} already exists: choose another name, because it would be deleted")
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
        raise StepFailed(f"requests without access get unexpected answers: {found}")
    if not run.local:
        run.answers["U8"] = found
    return {"version": version, **found}


def _challenge(headers: Mapping[str, str]) -> str | None:
    return next((name for name in headers if name.lower().endswith("www-authenticate")), None)


def load_for_minutes(run: Run) -> dict[str, Any]:
    """Runs schedules on the minute, spread, every 5 s, failing at first, and slow. Returns counts and lateness."""
    run.target = target(run)
    schedules: dict[str, list[dict[str, Any]]] = {
        "at second 0": [{"cron": "* * * * *"} for _ in range(30)],
        "spread": [{"every": "PT1M", "startTime": _text(n)} for n in range(30)],
        "each 5 s": [{"every": "PT5S"}],
    }
    with run.api() as api:
        for name, timings in schedules.items():
            create(api, name, f"{run.target}/sync", timings)
        retry = {"type": "fixed", "maxRetries": 3, "delaySeconds": 5}
        each_minute = {"every": "PT1M", "startTime": _text(0)}
        create(api, "flaky", f"{run.target}/flaky", [each_minute], retry=retry)
        create(api, "slow", f"{run.target}/slow", [each_minute], outcome={"answerTimeoutSeconds": 50})
        began = CLOCK.now()
        CLOCK.sleep(run.minutes * 60)
        ids_ = [job["id"] for job in api.get("/v1/jobs").json()["items"]]
        for job in ids_:
            api.post(f"/v1/jobs/{job}/deactivate")
        CLOCK.sleep(5 if run.local else 90)
        runs = [each for job in ids_ for each in runs_of(api, job)]
    arrived = arrivals(run)
    late = sorted(late_ms(each) for each in arrived if each["attempt"] == 1)
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
        received = total(run, "AWS/SQS/NumberOfMessagesReceived", queue, hours)
        invoked = total(run, "AWS/Lambda/Invocations", function, hours)
        run.answers["U4"] = {"messages": received, "invocations": invoked, "aReceive": received / max(1, invoked)}
    if not late:
        raise StepFailed(f"no call arrived: {found}; the run queue: {_queued(run)}")
    if found["early"] or found["lost"] or found["doubled"]:
        raise StepFailed(f"calls are early, lost or doubled: {found}")
    return found


def late_ms(arrival: Mapping[str, Any]) -> int:
    """Returns the milliseconds from the planned instant, which is part of the run's id, to the arrival."""
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


def _text(seconds_ahead: int) -> str:
    return (CLOCK.now() + timedelta(seconds=5 + seconds_ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")


def burst(run: Run) -> dict[str, Any]:
    """Runs many one-time schedules in the same second, in jobs of 40 schedules each."""
    at = CLOCK.now() + timedelta(seconds=(10 if run.local else 30) + run.burst / 20)
    instant = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    with run.api() as api, concurrent.futures.ThreadPoolExecutor(8) as pool:
        jobs = [f"burst {n}" for n in range(-(-run.burst // 40))]
        list(pool.map(lambda name: create(api, name, f"{run.target}/sync", [{"at": instant}] * 40), jobs))
    wanted, end = 40 * len(jobs), CLOCK.monotonic() + 600
    planned_ms = int(at.timestamp()) * 1000
    while len(_planned_at(run, planned_ms)) < wanted and CLOCK.monotonic() < end:
        CLOCK.sleep(1 if run.local else 10)
    CLOCK.sleep(2 if run.local else 60)  # a call that is made twice arrives after the others
    mine = _planned_at(run, planned_ms)
    late = [each["atMs"] - planned_ms for each in mine]
    found = {"wanted": wanted, "arrived": len(mine), "early": sum(each < 0 for each in late)}
    found["doubled"] = len(mine) - len({(each["runId"], each["attempt"]) for each in mine})
    found["lastAfterMs"] = max(late, default=0)
    if not run.local:
        table = "TableName", run.described().outputs["TableName"]
        resent = total(run, "Sweephand/Resent", ("stack", run.stack), 0.5)
        throttles = total(run, "AWS/DynamoDB/WriteThrottleEvents", table, 0.5)
        run.answers["U9"] = {"early": found["early"]}
        run.answers["U10"] = {**found, "resent": resent, "writeThrottles": throttles}
    if found["arrived"] != found["wanted"] or found["early"] or found["doubled"]:
        raise StepFailed(f"the burst is incomplete: {found}; the run queue: {_queued(run)}")
    return found


def faults(run: Run) -> dict[str, Any]:
    """Switches off the sweeper's rule for seven minutes, then purges the queue and runs the whole audit."""
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
    """Updates and rolls back while a schedule runs every 5 s. The second update reserves too many executions."""
    with run.api() as api:
        job = create(api, "during the update", f"{run.target}/sync", [{"every": "PT5S"}])
        deploy(run, LogLevel="DEBUG")
        try:
            deploy(run, LogLevel="DEBUG", ReservedConcurrency="1000,1000,1000")
            rolled_back = "the account had room for it"
        except StepFailed:
            rolled_back = run.client("cloudformation").describe_stacks(StackName=run.stack)["Stacks"][0]["StackStatus"]
        api.post(f"/v1/jobs/{job}/deactivate")
        CLOCK.sleep(60)
        runs = runs_of(api, job)
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
    subprocess.run(  # noqa: S603 - openssl, for a certificate that is valid for a day
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
            month * total(run, "AWS/SQS/NumberOfEmptyReceives", ("QueueName", url.rpartition("/")[2]), run.idle_hours)
        )
        for name, url in outputs.items()
        if name in {"RunQueueUrl", "SlowQueueUrl", "OperationsQueueUrl", "DeadLetterQueueUrl"}
    }
    run.answers["U5"] = {"emptyReceivesAMonth": empty}
    run.answers["U6"] = {"kmsDecryptsByTheTable": _decrypts(run)}
    names = ("SweeperFunctionName", "ExecutorFunctionName", "AuditorFunctionName")
    durations: dict[str, float | None] = {}
    for name in names:
        each = ("FunctionName", outputs[name])
        found = metric(run, "AWS/Lambda/Duration", each, run.idle_hours, statistic="Average", period_s=3_600)
        durations[name] = sum(found) / len(found) if found else None
    run.answers["U7"] = {"meanMs": durations}
    reads = total(run, "AWS/DynamoDB/ConsumedReadCapacityUnits", ("TableName", outputs["TableName"]), run.idle_hours)
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
    """Deletes the stack and the resources that it retains. Touches nothing that this run did not create."""
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
    """Deletes a resource. Returns whether it still existed."""
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
