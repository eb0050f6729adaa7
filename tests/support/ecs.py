"""ECS as the executor meets it: one task a token, and what the template's rules tell of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError, ReadTimeoutError

from sweephand.domain.run import Outcome
from sweephand.server import actions
from sweephand.server.actions.call import Call
from sweephand.server.security.guard import GuardSettings, Outbound, TaskSettings
from sweephand.server.security.tasks import settings
from sweephand.testing.queues import VirtualSqs
from sweephand.testing.service import URLS
from sweephand.testing.taps import Passing, Taps
from tests.support import aws
from tests.support.endpoint import Received

if TYPE_CHECKING:
    from tests.support.stage import Stage

ACCOUNT, REGION, CLUSTER = "123456789012", "eu-central-1", "jobs"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/reports"
TASKS: TaskSettings = settings(
    cluster=CLUSTER,
    definition_arns=(
        f"arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/report:*,"
        f"arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/fixed:7"
    ),
    network="subnet-0a1b2c3d,subnet-4e5f6a7b,sg-0a1b2c3d",
    role_arns=ROLE,
)
GUARD = GuardSettings(tasks=TASKS)
ACTION: Mapping[str, Any] = {"type": "ecs", "taskDefinition": "report", "container": "main"}
RULES = ("TaskBegunRule", "TaskEndedRule")


def arn(kind: str, name: str) -> str:
    return f"arn:aws:ecs:{REGION}:{ACCOUNT}:{kind}/{name}"


def refusal(code: str, status: int = 400, **more: Any) -> ClientError:
    error = {"Error": {"Code": code, "Message": "because"}, "ResponseMetadata": {"HTTPStatusCode": status}, **more}
    return ClientError(cast("Any", error), "RunTask")


@dataclass
class VirtualEcs:
    """begun: the requests of all tasks by ARN, in their order. stopped: ARN -> reason, as StopTask was asked."""

    taps: Taps = field(default_factory=Taps)
    sqs: VirtualSqs | None = None
    begun: dict[str, dict[str, Any]] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

    def __call__(self, limit_s: float) -> VirtualEcs:
        """Returns the client, as the wiring's factory of clients does."""
        self.limits.append(limit_s)
        return self

    def run_task(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        return cast("dict[str, Any]", self.taps(Passing("ecs", "RunTask", request), lambda: self._run(request)))

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        for task_arn, first in self.begun.items():
            if first["clientToken"] == request["clientToken"]:
                if first != request:
                    raise refusal("ConflictException", resourceIds=[task_arn])
                return {"tasks": [{"taskArn": task_arn}], "failures": []}
        task = arn("task", f"{CLUSTER}/{len(self.begun) + 1:032x}")
        self.begun[task] = deepcopy(request)
        return {"tasks": [{"taskArn": task}], "failures": []}

    def stop_task(self, **request: Any) -> dict[str, Any]:
        return cast("dict[str, Any]", self.taps(Passing("ecs", "StopTask", request), lambda: self._stop(request)))

    def _stop(self, request: dict[str, Any]) -> dict[str, Any]:
        assert request["cluster"] == CLUSTER
        if request["task"] not in self.begun:
            raise refusal("InvalidParameterException")
        self.stopped.setdefault(request["task"], request["reason"])
        return {"task": {"taskArn": request["task"]}}

    # Events of the cluster, as they are published

    def tells(self, status: str, task: str | None = None, **more: Any) -> None:
        """Publishes a change of the last task's state (or of `task`), through the rules of the template into the run
        queue.
        """
        assert self.sqs is not None
        task = task or [*self.begun][-1]
        for body in passed_on(self.event(task, status, **more)):
            self.sqs.send_message(QueueUrl=next(iter(URLS.values())), MessageBody=body)

    def ends(self, exit_code: int | None = 0, task: str | None = None, reason: str | None = None) -> None:
        containers = [{"name": "main", "lastStatus": "STOPPED"}]
        if exit_code is not None:
            containers[0]["exitCode"] = exit_code  # type: ignore[assignment]
        self.tells("STOPPED", task, containers=containers, stoppedReason=reason or "Essential container in task exited")

    def event(self, task: str, status: str, **more: Any) -> dict[str, Any]:
        """Builds the event as ECS sends it, with what only it knows."""
        request = self.begun[task]
        detail = {
            "clusterArn": arn("cluster", CLUSTER),
            "taskArn": task,
            "lastStatus": status,
            "desiredStatus": status,
            "startedBy": request["startedBy"],
            "overrides": request["overrides"],
            "containers": [{"name": "main", "lastStatus": status}],
            **more,
        }
        return {"source": "aws.ecs", "detail-type": "ECS Task State Change", "resources": [task], "detail": detail}


@dataclass
class Cluster(VirtualEcs):
    """silent_at: of runs planned then RunTask begins the task, and does not answer."""

    silent_at: str | None = None

    @classmethod
    def of(cls, stage: Stage) -> Cluster:
        """Makes ECS for a stage: its jobs' tasks run here; all else its endpoint does, which hears of every call."""
        made = cls(stage.taps, stage.sqs)

        def perform(kind: str, params: Any, call: Call, passed: Outbound) -> Outcome:
            if kind != "ecs":
                return stage.endpoint.perform(kind, params, call, passed)
            stage.endpoint.received.append(Received(stage.clock.now(), dict(params), call))
            return actions.perform(kind, params, call, passed)

        stage.world = replace(stage.world, perform=perform, outbound=outbound(made))
        return made

    def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = super()._run(request)
        if self.silent_at is not None and self.silent_at == planned_at(request):
            raise ReadTimeoutError(endpoint_url="ecs")
        return answer

    def at(self, planned: str) -> str:
        """Returns the task of the run planned then; empty where none has begun."""
        return next((task for task, request in self.begun.items() if planned_at(request) == planned), "")


def planned_at(request: Mapping[str, Any]) -> str:
    """Returns the planned instant as a task receives it."""
    (container,) = request["overrides"]["containerOverrides"]
    return next(str(each["value"]) for each in container["environment"] if each["name"] == "SWEEPHAND_PLANNED_AT")


def outbound(ecs: VirtualEcs | None) -> Outbound:
    return Outbound(GUARD, ecs=ecs)


def passed_on(event: Mapping[str, Any]) -> list[str]:
    """Returns what the rules of the template make of an event: one message for each that it matches."""
    return [
        _transformed(target["InputTransformer"], event)
        for rule in (aws.resources()[name]["Properties"] for name in RULES)
        if _matches(rule["EventPattern"], event)
        for target in rule["Targets"]
    ]


def _matches(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    return all(
        _matches(wanted, event.get(name, {}))
        if isinstance(wanted, Mapping)
        else any(_fits(each, event.get(name)) for each in wanted)
        for name, wanted in pattern.items()
    )


def _fits(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, Mapping) and "prefix" in wanted:
        return isinstance(value, str) and value.startswith(wanted["prefix"])
    if isinstance(wanted, Mapping):  # Fn::Sub
        text = wanted["Fn::Sub"].replace("${TaskCluster}", CLUSTER)
        return isinstance(value, str) and fnmatchcase(value, re.sub(r"\$\{AWS::[A-Za-z]+\}", "*", text))
    return bool(wanted == value)


def _transformed(transformer: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    """Transforms the event. A variable in the place of a value becomes JSON. One that is not there is a mistake of the
    template.
    """

    def value(match: re.Match[str]) -> str:
        part: Any = event
        for step in transformer["InputPathsMap"][match[1]].removeprefix("$.").split("."):
            part = part[step]
        return json.dumps(part)

    return re.sub("<([A-Za-z]+)>", value, transformer["InputTemplate"])
