"""The action `ecs`: runs a container as a task on Fargate. The run ends with the task; exit code 0 is success.

RunTask only starts the task. The run then waits until ECS reports the end of the task (flow.runs.ecs_tasks) or until
the deadline passes. An attempt may be repeated: the repetition has the same clientToken, and ECS returns the task that
it started before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, final

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.base.errors import InvalidRequest, Unavailable
from sweephand.base.json_schema import items, text
from sweephand.base.json_text import dumps
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.base.records import dataclass
from sweephand.domain.job import MASK, Payload
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.runs import ecs_task
from sweephand.server.actions.aws.service import MAX_MESSAGE, failure_of
from sweephand.server.actions.call import Call
from sweephand.server.actions.kind import Action, Reading, checked, member, number, string
from sweephand.server.actions.outcome import TaskRules, failed, outcome_of, schemas
from sweephand.server.actions.payloads import BadPayloadError
from sweephand.server.actions.redaction import hidden
from sweephand.server.actions.run_headers import facts, traceparent
from sweephand.server.security.guard import CallFailed, GuardSettings, Outbound, TaskSettings
from sweephand.server.security.tasks import check_definition, check_role

MOST_VARIABLES = 20
LONGEST_VALUE = 1_024
MOST_ARGUMENTS = 50
MAX_PAYLOAD = 4_096
MAX_GIVEN = 2_304
"""The limit for command and environment, in bytes of JSON. It leaves room for the payload and the run's facts."""
MAX_OVERRIDES = 8_192
CPU_UNITS, MEMORY_MIB, DISK_GIB = (256, 16_384), (512, 122_880), (21, 200)
STOP_S = 6.0
"""The time limit of StopTask, including its retry.

The effects of a run, including this call, must end within its lease.
"""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_OURS = "SWEEPHAND_"
_GONE = frozenset({"InvalidParameterException", "ClusterNotFoundException"})
"""The codes with which StopTask refuses a task that stopped long ago."""


def _command(value: Any, path: str, _: Reading) -> tuple[str, ...]:
    listed = read.listed(value, path, MOST_ARGUMENTS, "a list of strings")
    return tuple(_plain(each, f"{path}[{n}]") for n, each in enumerate(listed))


def _environment(value: Any, path: str, reading: Reading) -> tuple[str, ...]:
    """Returns the names of the variables. Keeps their values as secrets."""
    if not isinstance(value, Mapping) or len(value) > MOST_VARIABLES:
        raise InvalidRequest(path, f"must be an object with at most {MOST_VARIABLES} members")
    for name in value:
        if not _VARIABLE.fullmatch(name):
            raise InvalidRequest(below(path, name), "is not the name of a variable")
        if name.startswith(_OURS):
            raise InvalidRequest(below(path, name), "is set by the service")
    reading.keep({_secret(name): _plain(each, below(path, name)) for name, each in value.items()})
    return tuple(value)


def _plain(value: object, path: str) -> str:
    text = read.text(value, path, 0, LONGEST_VALUE)
    if "\0" in text:
        raise InvalidRequest(path, "contains the character NUL, which ends a string", position=text.index("\0"))
    return text


def _secret(variable: str) -> str:
    return f"environment.{variable}"


@final
@dataclass(frozen=True)
class Ecs(Action):
    """A task on Fargate. definition: `family` or `family:7`. variables: names only; their values are secrets.

    container: the container whose exit code decides. It gets the command, the variables and the payload.
    """

    definition: str = member(
        "taskDefinition",
        text(1, 265, description="One of the parameter TaskDefinitionArns: `family`, or `family:7`."),
        checked(lambda text, guard: check_definition(text, guard.tasks)),
    )
    container: str = string(
        "container",
        1,
        255,
        like=(r"[A-Za-z0-9_-]+", "must have letters, digits, hyphens and underscores only"),
        more={"pattern": "^[A-Za-z0-9_-]+$", "description": "Its exit code decides; it gets the rest."},
    )
    command: tuple[str, ...] = member(
        "command",
        items(text(longest=LONGEST_VALUE), maxItems=MOST_ARGUMENTS),
        _command,
        stored=list,
        loaded=tuple,
        default=(),
    )
    variables: tuple[str, ...] = member(
        "environment",
        {
            "type": "object",
            "additionalProperties": text(longest=LONGEST_VALUE),
            "maxProperties": MOST_VARIABLES,
            "description": "Values are encrypted; `***` in a change: the stored one.",
        },
        _environment,
        shown={"type": "object", "additionalProperties": {"const": MASK}},
        stored=lambda names: dict.fromkeys(names, MASK),
        loaded=tuple,
        default=(),
    )
    role: str | None = member(
        "roleArn",
        text(1, 2_048, description="One of the parameter TaskRoleArns; else the definition's own."),
        checked(lambda arn, guard: check_role(arn, guard.tasks)),
        default=None,
    )
    cpu_units: int | None = number("cpuUnits", *CPU_UNITS, default=None)
    memory_mib: int | None = number("memoryMiB", *MEMORY_MIB, default=None)
    disk_gib: int | None = number("diskGiB", *DISK_GIB, default=None)
    outcome: TaskRules = outcome_of(TaskRules, "TaskOutcome")

    kind = "ecs"
    shows = ("own",)
    never: ClassVar = {"unproven": "uses the permission of the stack"}
    description = "To create, change or remove such an action, a caller also needs the scope `tasks:write`."
    components = schemas("TaskOutcome", TaskRules)
    moved = "the task"

    def check(self, field: str, guard: GuardSettings) -> None:  # noqa: ARG002 - no rule of the stack
        """Raises InvalidRequest if command and environment together are too long for ECS."""
        variables = {name: self.secrets.get(_secret(name), MASK) for name in self.variables}
        if len(dumps([list(self.command), variables]).encode()) > MAX_GIVEN:
            raise InvalidRequest(field, f"command and environment must have at most {MAX_GIVEN:,} bytes together")

    def check_payload(self, payload: Payload, field: str) -> None:
        """Raises InvalidRequest if an environment variable of the task cannot contain the payload."""
        if "\0" in payload.text:
            raise InvalidRequest(
                field, "contains the character NUL, which ends a string", position=payload.text.index("\0")
            )
        if len(dumps(payload.text).encode()) > MAX_PAYLOAD:
            why = f"must have at most {MAX_PAYLOAD:,} bytes as a string in JSON, the limit for a task"
            raise InvalidRequest(field, why)

    @property
    def secret_fields(self) -> tuple[str, ...]:
        """Returns the names of the secrets that hold the values of its variables."""
        return tuple(map(_secret, self.variables))

    @property
    def destination(self) -> tuple[object, ...]:
        """Returns the members that decide who sees the variables: the code that runs, and its role."""
        return self.definition, self.container, self.command, self.role

    def perform(self, call: Call, outbound: Outbound) -> Outcome:
        """Starts the task of one attempt. A refusal is a failed attempt; if no answer comes, the run waits."""
        try:
            request = self._request(call, outbound.settings.tasks)
        except InvalidRequest as refused:
            return failed(Reason.GUARD, refused.reason, retryable=False)
        except CallFailed as missing:
            return failed(missing.reason, missing.message, retryable=False)
        except BadPayloadError as wrong:
            return failed(Reason.BAD_PAYLOAD, str(wrong), retryable=False)
        if outbound.ecs is None:
            return failed(Reason.GUARD, "this function runs no tasks", retryable=False)
        return _run(outbound.ecs(min(self.outcome.answer_timeout_s, call.deadline_s)), request, call)

    def _request(self, call: Call, allowed: TaskSettings) -> dict[str, Any]:
        """Returns the request of RunTask.

        Raises InvalidRequest if the stack no longer allows it, CallFailed if a secret is missing, and BadPayloadError
        if the whole is too long for ECS, such as a schedule's payload in addition to kept secrets.
        """
        check_definition(self.definition, allowed)
        if self.role is not None:
            check_role(self.role, allowed)
        network = {"subnets": list(allowed.subnets), "assignPublicIp": "ENABLED" if allowed.public_ip else "DISABLED"}
        if allowed.security_groups:
            network["securityGroups"] = list(allowed.security_groups)
        return {
            "cluster": allowed.cluster,
            "taskDefinition": self.definition,
            "count": 1,
            "launchType": "FARGATE",
            "networkConfiguration": {"awsvpcConfiguration": network},
            "startedBy": ecs_task.mark(call.tenant, call.run_id, call.attempt),
            "clientToken": ecs_task.client_token(call.tenant, call.run_id, call.attempt),
            "overrides": self._overrides(call),
        }

    def _overrides(self, call: Call) -> dict[str, Any]:
        environment = {
            name.upper().replace("-", "_"): value
            for name, value in {**facts(call), "traceparent": traceparent(call)}.items()
        }
        if call.payload is not None:
            environment[f"{_OURS}PAYLOAD"] = call.payload
        environment |= {name: call.secret(_secret(name)) for name in self.variables}
        container: dict[str, Any] = {
            "name": self.container,
            "environment": [{"name": name, "value": value} for name, value in environment.items()],
        }
        if self.command:
            container["command"] = list(self.command)
        overrides: dict[str, Any] = {"containerOverrides": [container]}
        if self.role is not None:
            overrides["taskRoleArn"] = self.role
        # ECS takes processor and memory as strings.
        sizes = {"cpu": self.cpu_units, "memory": self.memory_mib}
        overrides |= {name: str(size) for name, size in sizes.items() if size is not None}
        if self.disk_gib is not None:
            overrides["ephemeralStorage"] = {"sizeInGiB": self.disk_gib}
        if len(dumps(overrides)) > MAX_OVERRIDES:
            raise BadPayloadError(f"command, environment and payload have more than {MAX_OVERRIDES:,} characters")
        return overrides


def _run(client: Any, request: dict[str, Any], call: Call) -> Outcome:
    """Calls RunTask.

    If no answer comes, the run waits, because the task may run and a second one would repeat its work.
    """
    try:
        return _begun(client.run_task(**request))
    except ClientError as refused:
        return _there_already(refused) or failure_of(_without_secrets(refused, call))
    except BotoCoreError as broken:
        outcome = failure_of(broken)
        return Outcome(Verdict.SILENT, message=outcome.message) if outcome.reason is Reason.NO_ANSWER else outcome


def _there_already(refused: ClientError) -> Outcome | None:
    """Returns the waiting outcome of an attempt that started its task before its job was changed; None for others."""
    if refused.response.get("Error", {}).get("Code") != "ConflictException":
        return None
    tasks = refused.response.get("resourceIds") or [None]
    return _waiting(tasks[0])


def _without_secrets(refused: ClientError, call: Call) -> ClientError:
    """Returns the refusal with its secrets masked. Cutting off the message first could leave part of a secret."""
    said = refused.response.get("Error", {})
    message = str(said.get("Message", ""))
    masked = {**said, "Message": hidden(message, call.confidences)}
    return ClientError({**refused.response, "Error": masked}, refused.operation_name)


def _begun(answer: Mapping[str, Any]) -> Outcome:
    """Reads an answer with status 200. ECS sends it even if it started nothing: no capacity, no agent."""
    if answer.get("tasks"):
        return _waiting(str(answer["tasks"][0]["taskArn"]))
    failures = [
        ": ".join(str(each[member]) for member in ("reason", "detail") if each.get(member))
        for each in answer.get("failures", [])
    ]
    message = "; ".join(failures)[:MAX_MESSAGE] or "ECS started no task and gave no reason"
    return failed(Reason.TARGET_ERROR, message, retryable=True)


def _waiting(arn: str | None) -> Outcome:
    return Outcome(Verdict.ACCEPTED, answer=arn, task=arn)


def stop(arn: str, reason: str, outbound: Outbound) -> str | None:
    """Stops a task. Returns None, even if it has already stopped, or the reason why it cannot be stopped.

    Raises Unavailable for errors that may pass: throttling, 5xx, no connection.
    """
    if outbound.ecs is None:
        return "this function runs no tasks"
    cluster = arn.split("/")[1] if arn.count("/") > 1 else outbound.settings.tasks.cluster
    try:
        outbound.ecs(STOP_S).stop_task(cluster=cluster, task=arn, reason=reason)
    except ClientError as refused:
        if failure_of(refused).retryable:
            raise Unavailable("ECS cannot stop the task at the moment") from refused
        code = str(refused.response.get("Error", {}).get("Code", "Unknown"))
        return None if code in _GONE else code
    except BotoCoreError as broken:
        raise Unavailable("ECS cannot be reached") from broken
    return None
