"""The stack of a first deploy: its clients, metrics and jobs, and the calls that arrive at their target."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import httpx

from sweephand.base.sources import SystemClock
from sweephand.local.aws import deploy as local_deploy
from sweephand.local.demo.endpoint import DemoEndpoint

ROOT = Path(__file__).resolve().parents[2]
CLOCK = SystemClock()


class StepFailed(Exception):
    """A step that cannot continue. Its text says why."""


@dataclass
class Run:
    """One first deploy. answers: by unknown. steps: the results of each step."""

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
        """Runs the SAM CLI and returns its output. Raises StepFailed with the last lines of the output."""
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
        """Returns a client of the API with the tenant's credential, or with another one."""
        stack = self.described()
        root = stack.outputs["ApiUrl"]
        if self.endpoint is not None:
            root = f"{self.endpoint}/_aws/execute-api/{stack.physical['Api']}/$default"
        return httpx.Client(
            base_url=root, auth=credential or self.credential, timeout=120 if self.local else 40, trust_env=False
        )


def metric(
    run: Run, name: str, dimension: tuple[str, str], hours: float, *, statistic: str = "Sum", period_s: int = 60
) -> list[float]:
    """Returns a CloudWatch statistic of the last hours, a value for each period. name: with its namespace."""
    now = CLOCK.now()
    namespace, _, short = name.rpartition("/")
    points = run.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=short,
        Dimensions=[{"Name": dimension[0], "Value": dimension[1]}],
        StartTime=now - timedelta(hours=hours),
        EndTime=now,
        Period=period_s,
        Statistics=[statistic],
    )["Datapoints"]
    return [float(point[statistic]) for point in points]


def total(run: Run, name: str, dimension: tuple[str, str], hours: float) -> float:
    return sum(metric(run, name, dimension, hours))


def runs_of(api: httpx.Client, job: str) -> list[dict[str, Any]]:
    """Returns the latest runs of a job. Raises StepFailed with the answer if it cannot be read."""
    answer = api.get("/v1/runs", params={"jobId": job, "limit": 200})
    if answer.is_error:
        raise StepFailed(f"the runs of a job cannot be read: {answer.text}")
    return list(answer.json()["items"])


def create(
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
        run.demo = run.demo or DemoEndpoint(CLOCK, run.stack, 0)
        return run.demo.url
    cloudformation = run.client("cloudformation")
    cloudformation.create_stack(
        StackName=f"{run.stack}-target",
        TemplateBody=(ROOT / "tools" / "aws" / "first_deploy_target.yaml").read_text(),
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
