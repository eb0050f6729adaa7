"""The action `ecs`: a container runs as a task on Fargate, and its end is the run's: exit code 0 is success.

RunTask only begins it, so the run always waits, until ECS tells the end (flow.tasks) or its time is over. A repeat of
the same attempt is harmless: it has the same clientToken, and ECS answers with the task that is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from sweephand.actions import aws
from sweephand.actions import rules as outcome_rules
from sweephand.actions.call import Call
from sweephand.actions.dialects import facts
from sweephand.actions.headers import MASK
from sweephand.actions.payloads import BadPayloadError, parse_payload
from sweephand.actions.proof import secret as secret_of
from sweephand.actions.redaction import hidden
from sweephand.actions.rules import Rules, failed
from sweephand.domain.job import Payload
from sweephand.domain.members import fields as read
from sweephand.domain.members.fields import below
from sweephand.domain.members.json_text import dumps
from sweephand.domain.run import Outcome, Reason, Verdict
from sweephand.domain.runs import ecs_task
from sweephand.errors import InvalidRequest, Mistakes, Unavailable
from sweephand.security.guard import CallFailed, GuardSettings, Outbound, TaskSettings
from sweephand.security.tasks import check_definition, check_role

MOST_VARIABLES = 20
LONGEST_VALUE = 1_024
MOST_ARGUMENTS = 50
MAX_PAYLOAD = 4_096
MAX_GIVEN = 2_304
"""Bytes as JSON of command and environment: with payload and facts no more than ECS takes."""
MAX_OVERRIDES = 8_192
CPU_UNITS, MEMORY_MIB, DISK_GIB = (256, 16_384), (512, 122_880), (21, 200)
STOP_S = 6.0
"""Seconds for StopTask with its repeat: it is a part of the effects, which have what the lease leaves."""
OUTCOME = ("answerTimeoutSeconds", "callbackTimeoutSeconds")
SIZES = {"cpuUnits": CPU_UNITS, "memoryMiB": MEMORY_MIB, "diskGiB": DISK_GIB}
_MEMBERS = (
    *("type", "taskDefinition", "container", "command", "environment", "roleArn", *SIZES),
    *("payload", "body", "outcome", "retry"),
)
_CONTAINER = re.compile(r"[A-Za-z0-9_-]{1,255}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_OURS = "SWEEPHAND_"
_GONE = frozenset({"InvalidParameterException", "ClusterNotFoundException"})
"""What StopTask says of a task that stopped long ago."""


@dataclass(frozen=True)
class TaskParams:
    """definition: `family` or `family:7`. container: whose exit code decides, and who gets what follows.

    variables: names only, their values are secrets. sizes: in place of the definition's own, under the API's names.
    """

    definition: str
    container: str
    command: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    role: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    payload: Payload | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> tuple[object, ...]:
        """Who learns what the variables hold: the code that runs, and by whose right."""
        return self.definition, self.container, self.command, self.role


# Reading


def parse(fields: object, *, field: str, guard: GuardSettings) -> TaskParams:
    wrong = Mistakes()
    given = read.members(fields, field, _MEMBERS, wrong)
    brought = wrong.of(parse_payload, given, field)
    variables = wrong.of(_environment, given.get("environment", {}), below(field, "environment")) or {}
    outcome = wrong.of(read.members, given.get("outcome", {}), below(field, "outcome"), OUTCOME) or {}
    params = TaskParams(
        definition=wrong.of(_checked, given, "taskDefinition", field, guard.tasks),
        container=wrong.of(_container, given, field),
        command=wrong.of(_command, given.get("command", []), below(field, "command")),
        variables=tuple(variables),
        role=wrong.of(_checked, given, "roleArn", field, guard.tasks) if "roleArn" in given else None,
        sizes={
            name: wrong.of(read.whole, given[name], below(field, name), *SIZES[name]) for name in SIZES if name in given
        },
        rules=wrong.of(outcome_rules.parse, outcome, below(field, "outcome")),
        secrets={_secret(name): value for name, value in variables.items() if value != MASK},
    )
    wrong.check()
    where, payload = brought
    params = replace(params, payload=payload)
    if len(dumps([list(params.command), variables]).encode()) > MAX_GIVEN:
        raise InvalidRequest(field, f"command and environment must have at most {MAX_GIVEN:,} bytes together")
    check_payload(params, payload, where)
    return params


def _checked(given: Mapping[str, Any], name: str, field: str, allowed: TaskSettings) -> str:
    path = below(field, name)
    if name not in given:
        raise InvalidRequest(path, "is required")
    check = check_definition if name == "taskDefinition" else check_role
    try:
        return check(read.text(given[name], path, 1, 2_048), allowed)
    except InvalidRequest as wrong:
        raise (wrong if wrong.field else wrong.within(path)) from wrong


def _container(given: Mapping[str, Any], field: str) -> str:
    path = below(field, "container")
    if "container" not in given:
        raise InvalidRequest(path, "is required")
    if not _CONTAINER.fullmatch(read.text(given["container"], path, 1, 255)):
        raise InvalidRequest(path, "must have letters, digits, hyphens and underscores only")
    return str(given["container"])


def _command(value: object, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_ARGUMENTS:
        raise InvalidRequest(field, f"must be a list of at most {MOST_ARGUMENTS} strings, not {read.shown(value)}")
    return tuple(_plain(each, f"{field}[{n}]") for n, each in enumerate(value))


def _environment(value: object, field: str) -> dict[str, str]:
    if not isinstance(value, Mapping) or len(value) > MOST_VARIABLES:
        raise InvalidRequest(field, f"must be an object with at most {MOST_VARIABLES} members")
    for name in value:
        if not _VARIABLE.fullmatch(name):
            raise InvalidRequest(below(field, name), "is not the name of a variable")
        if name.startswith(_OURS):
            raise InvalidRequest(below(field, name), "is set by the service")
    return {name: _plain(each, below(field, name)) for name, each in value.items()}


def _plain(value: object, path: str) -> str:
    text = read.text(value, path, 0, LONGEST_VALUE)
    if "\0" in text:
        raise InvalidRequest(path, "holds the character NUL, which ends a text", position=text.index("\0"))
    return text


def check_payload(params: TaskParams, payload: Payload | None, field: str) -> None:  # noqa: ARG001 - one interface for all kinds
    if payload is None:
        return
    if "\0" in payload.text:
        raise InvalidRequest(field, "holds the character NUL, which ends a text", position=payload.text.index("\0"))
    if len(dumps(payload.text).encode()) > MAX_PAYLOAD:
        raise InvalidRequest(field, f"must have at most {MAX_PAYLOAD:,} bytes as a text in JSON: a task gets no more")


def to_json(params: TaskParams) -> dict[str, Any]:
    rules = outcome_rules.to_json(params.rules)
    return {
        "type": "ecs",
        "taskDefinition": params.definition,
        "container": params.container,
        "command": list(params.command),
        "environment": dict.fromkeys(params.variables, MASK),
        "roleArn": params.role,
        **{name: params.sizes.get(name) for name in SIZES},
        "outcome": {name: rules[name] for name in OUTCOME},
    }


def from_json(stored: Mapping[str, Any]) -> TaskParams:
    return TaskParams(
        definition=stored["taskDefinition"],
        container=stored["container"],
        command=tuple(stored["command"]),
        variables=tuple(stored["environment"]),
        role=stored["roleArn"],
        sizes={name: stored[name] for name in SIZES if stored[name] is not None},
        rules=outcome_rules.from_json({**stored["outcome"], "onAccepted": None}),
    )


def kept_secrets(
    new: TaskParams,
    old: TaskParams | None,
    *,
    field: str,
    guard: GuardSettings,  # noqa: ARG001 - one interface for all kinds
) -> frozenset[str]:
    """A variable keeps its value while the same code learns it, by the same right."""
    kept = [name for name in new.variables if _secret(name) not in new.secrets]
    for name in kept:
        path = below(below(field, "environment"), name)
        if old is None or name not in old.variables:
            raise InvalidRequest(path, "is required")
        if new.place != old.place:
            raise InvalidRequest(path, "is required: the task is another one than it was given for")
    return frozenset(map(_secret, kept))


def carried_over(new: TaskParams, _old: TaskParams, _kept: frozenset[str]) -> TaskParams:
    return new


def _secret(variable: str) -> str:
    return f"environment.{variable}"


# Acting


def perform(params: TaskParams, call: Call, outbound: Outbound) -> Outcome:
    """Begins the task of one attempt. What is refused is a failed attempt; where no answer comes, the run waits."""
    try:
        request = _request(params, call, outbound.settings.tasks)
    except InvalidRequest as refused:
        return failed(Reason.GUARD, refused.reason, retryable=False)
    except CallFailed as missing:
        return failed(missing.reason, missing.message, retryable=False)
    except BadPayloadError as wrong:
        return failed(Reason.BAD_PAYLOAD, str(wrong), retryable=False)
    if outbound.ecs is None:
        return failed(Reason.GUARD, "this function runs no tasks", retryable=False)
    return _run(outbound.ecs(min(params.rules.answer_timeout_s, call.deadline_s)), request, call)


def _run(client: Any, request: dict[str, Any], call: Call) -> Outcome:
    """Silence is no failure here: the task may run, and a second one would do its work twice."""
    try:
        return _begun(client.run_task(**request))
    except ClientError as refused:
        return _there_already(refused) or aws.failure_of(_without_secrets(refused, call))
    except BotoCoreError as broken:
        outcome = aws.failure_of(broken)
        return Outcome(Verdict.SILENT, message=outcome.message) if outcome.reason is Reason.NO_ANSWER else outcome


def _request(params: TaskParams, call: Call, allowed: TaskSettings) -> dict[str, Any]:
    """Raises InvalidRequest for what the stack allows no more, CallFailed where a secret is missing, BadPayloadError
    where the task would be told more than ECS takes: a schedule's payload beside values that were kept.
    """
    check_definition(params.definition, allowed)
    if params.role is not None:
        check_role(params.role, allowed)
    network = {"subnets": list(allowed.subnets), "assignPublicIp": "ENABLED" if allowed.public_ip else "DISABLED"}
    if allowed.security_groups:
        network["securityGroups"] = list(allowed.security_groups)
    return {
        "cluster": allowed.cluster,
        "taskDefinition": params.definition,
        "count": 1,
        "launchType": "FARGATE",
        "networkConfiguration": {"awsvpcConfiguration": network},
        "startedBy": ecs_task.mark(call.tenant, call.run_id, call.attempt),
        "clientToken": ecs_task.client_token(call.tenant, call.run_id, call.attempt),
        "overrides": _overrides(params, call),
    }


def _overrides(params: TaskParams, call: Call) -> dict[str, Any]:
    told = {name.upper().replace("-", "_"): value for name, value in facts(call).items()}
    if call.payload is not None:
        told[f"{_OURS}PAYLOAD"] = call.payload
    told |= {name: secret_of(call.secrets, _secret(name)) for name in params.variables}
    container: dict[str, Any] = {
        "name": params.container,
        "environment": [{"name": name, "value": value} for name, value in told.items()],
    }
    if params.command:
        container["command"] = list(params.command)
    overrides: dict[str, Any] = {"containerOverrides": [container]}
    if params.role is not None:
        overrides["taskRoleArn"] = params.role
    # ECS takes processor and memory as texts.
    named = {"cpuUnits": "cpu", "memoryMiB": "memory"}
    overrides |= {theirs: str(params.sizes[ours]) for ours, theirs in named.items() if ours in params.sizes}
    if "diskGiB" in params.sizes:
        overrides["ephemeralStorage"] = {"sizeInGiB": params.sizes["diskGiB"]}
    if len(dumps(overrides)) > MAX_OVERRIDES:
        raise BadPayloadError(f"what the task is told has more than {MAX_OVERRIDES:,} characters")
    return overrides


def _there_already(refused: ClientError) -> Outcome | None:
    """An attempt that is repeated after its job was changed: its task was begun, as the job was then."""
    if refused.response.get("Error", {}).get("Code") != "ConflictException":
        return None
    tasks = refused.response.get("resourceIds") or [None]
    return _waiting(tasks[0])


def _without_secrets(refused: ClientError, call: Call) -> ClientError:
    """A refusal may quote what it refuses, whole or cut off later."""
    said = refused.response.get("Error", {})
    message = str(said.get("Message", ""))
    told = {**said, "Message": hidden(message, call.confidences)}
    return ClientError({**refused.response, "Error": told}, refused.operation_name)


def _begun(answer: Mapping[str, Any]) -> Outcome:
    """ECS answers 200 also where nothing was begun: no capacity, no agent."""
    if answer.get("tasks"):
        return _waiting(str(answer["tasks"][0]["taskArn"]))
    failures = [
        ": ".join(str(each[member]) for member in ("reason", "detail") if each.get(member))
        for each in answer.get("failures", [])
    ]
    message = "; ".join(failures)[: aws.MAX_MESSAGE] or "ECS began no task, and said nothing of why"
    return failed(Reason.TARGET_ERROR, message, retryable=True)


def _waiting(arn: str | None) -> Outcome:
    return Outcome(Verdict.ACCEPTED, answer=arn, task=arn)


def stop(arn: str, reason: str, outbound: Outbound) -> str | None:
    """Stops a task, also one that has stopped. Returns why ECS does not do it.

    Raises Unavailable for what may pass: throttling, 5xx, no connection.
    """
    if outbound.ecs is None:
        return "this function runs no tasks"
    cluster = arn.split("/")[1] if arn.count("/") > 1 else outbound.settings.tasks.cluster
    try:
        outbound.ecs(STOP_S).stop_task(cluster=cluster, task=arn, reason=reason)
    except ClientError as refused:
        if aws.failure_of(refused).retryable:
            raise Unavailable("ECS stops no task just now") from refused
        code = str(refused.response.get("Error", {}).get("Code", "Unknown"))
        return None if code in _GONE else code
    except BotoCoreError as broken:
        raise Unavailable("ECS cannot be reached") from broken
    return None
