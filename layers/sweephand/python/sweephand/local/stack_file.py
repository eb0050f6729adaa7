"""The file `stack.json` with all addresses of the running stack, for tools and tests. A stop removes it."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from sweephand.local.folder import read_json, write_private

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sweephand.local.aws.deploy import Aws, Stack
    from sweephand.local.folder import StateFolder

T = TypeVar("T", "Credential", "StackFile")
PROVIDER_CLIENT = "provider.admin"
# Output of the template, by the function's role.
FUNCTION_OUTPUTS = {
    "api": "ApiFunctionName",
    "console": "ConsoleFunctionName",
    "sapApi": "SapApiFunctionName",
    "azureApi": "AzureApiFunctionName",
    "sweeper": "SweeperFunctionName",
    "executor": "ExecutorFunctionName",
    "executorSlow": "ExecutorSlowFunctionName",
    "auditor": "AuditorFunctionName",
    "operations": "OperationsFunctionName",
}
OPTIONAL = frozenset({"sapApi", "azureApi"})
"""Functions that a parameter of the template can leave out."""


@dataclass(frozen=True)
class Credential:
    client_id: str
    secret: str


@dataclass(frozen=True)
class StackFile:
    """The content of stack.json. functions: physical name by role; tenants: credential by tenant."""

    base_url: str
    console_url: str
    aws_endpoint_url: str
    region: str
    stack_name: str
    table_name: str
    run_queue_url: str
    slow_queue_url: str
    dead_letter_queue_url: str
    event_bus_name: str
    provider: Credential
    functions: Mapping[str, str]
    tenants: Mapping[str, Credential]

    def as_json(self) -> dict[str, Any]:
        tenants = [{"tenant": tenant, **_members(credential)} for tenant, credential in self.tenants.items()]
        return {**_members(self), "provider": _members(self.provider), "tenants": tenants}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StackFile:
        tenants = {item["tenant"]: _record(Credential, item) for item in value["tenants"]}
        return replace(_record(cls, value), provider=_record(Credential, value["provider"]), tenants=tenants)


def _members(record: Credential | StackFile) -> dict[str, Any]:
    return {_camel(each.name): getattr(record, each.name) for each in fields(record)}


def _record(kind: type[T], value: Mapping[str, Any]) -> T:
    return kind(**{each.name: value[_camel(each.name)] for each in fields(kind)})


def _camel(name: str) -> str:
    return re.sub("_(.)", lambda match: match[1].upper(), name)


def describe(
    base_url: str, aws: Aws, stack: Stack, *, provider: Credential, tenants: Mapping[str, Credential]
) -> StackFile:
    """Returns the file for a deployed stack. Raises KeyError if the template lacks an output that the file needs."""
    outputs = stack.outputs
    roles = {role: output for role, output in FUNCTION_OUTPUTS.items() if output in outputs or role not in OPTIONAL}
    return StackFile(
        base_url=base_url,
        console_url=outputs["ConsoleUrl"],
        aws_endpoint_url=aws.endpoint_url,
        region=aws.region,
        stack_name=stack.name,
        table_name=outputs["TableName"],
        run_queue_url=_here(outputs["RunQueueUrl"], aws),
        slow_queue_url=_here(outputs["SlowQueueUrl"], aws),
        dead_letter_queue_url=_here(outputs["DeadLetterQueueUrl"], aws),
        event_bus_name=outputs["EventBusName"],
        provider=provider,
        functions={role: outputs[output] for role, output in roles.items()},
        tenants=tenants,
    )


def _here(queue_url: str, aws: Aws) -> str:
    """Returns the queue's address with the current port, because an SDK may use it as its endpoint."""
    return aws.endpoint_url + urlsplit(queue_url).path


def write(folder: StateFolder, stack: StackFile) -> None:
    write_private(folder.stack_file, stack.as_json())


def read(folder: StateFolder) -> StackFile | None:
    """Reads the file. Returns None if no stack runs in the folder or it has not started yet."""
    value = read_json(folder.stack_file)
    return None if value is None else StackFile.from_json(value)
