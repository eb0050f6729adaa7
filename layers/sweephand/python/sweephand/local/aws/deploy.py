"""Deploys the template to the emulator without the SAM CLI, and adds what the emulator leaves out.

MiniStack 1.5.33 ignores the body of an HTTP API (every route), a table's TimeToLiveSpecification and the
ExcludePunctuation of a generated secret, and reads a concurrency from a parameter as a string. Each repair has a test
that fails as soon as the emulator no longer needs the repair.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session

from sweephand.local.aws import template as templates
from sweephand.local.failures import DeployFailed

if TYPE_CHECKING:
    from pathlib import Path

    from sweephand.base.sources import Clock

BUCKET = "sweephand-local-code"
DEPLOYED_WITHIN_S = 120.0
HASH_TAG = "sweephand:deployed"
# (name in the file, variable, default, conversion): no variable is read, and the files are empty.
NO_PROFILE = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}
CLIENT_CONFIG = Config(
    retries={"max_attempts": 2}, connect_timeout=5, read_timeout=120, max_pool_connections=32, proxies={}
)


@dataclass(frozen=True)
class Aws:
    """The emulator's address and credentials, as if it were AWS."""

    endpoint_url: str
    region: str
    access_key_id: str = "test"
    secret_access_key: str = "test"  # noqa: S105 - the emulator checks none
    _clients: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def client(self, service: str) -> Any:
        """Returns a cached client of the AWS SDK, safe for threads. Ignores the user's own AWS settings."""
        if service not in self._clients:
            self._clients[service] = Session(session_vars=NO_PROFILE).create_client(
                service,
                endpoint_url=self.endpoint_url,
                region_name=self.region,
                aws_access_key_id=self.access_key_id,
                aws_secret_access_key=self.secret_access_key,
                config=CLIENT_CONFIG,
            )
        return self._clients[service]

    def invoke(self, function: str, event: Any) -> Any:
        """Returns the function's answer. Raises DeployFailed with its error if it raised one."""
        answer = self.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event).encode())
        payload = json.loads(answer["Payload"].read() or b"null")
        if "FunctionError" in answer:
            message = payload.get("errorMessage", payload) if isinstance(payload, Mapping) else payload
            raise DeployFailed(f"{function} failed: {message}")
        return payload


@dataclass(frozen=True)
class Stack:
    """A deployed stack. outputs: of the template; physical: physical id by logical id."""

    name: str
    outputs: Mapping[str, str]
    physical: Mapping[str, str]


def deploy(aws: Aws, clock: Clock, *, path: Path, stack_name: str, parameters: Mapping[str, str]) -> Stack:
    """Creates the stack, or updates it if code, template or parameters have changed. Raises DeployFailed.

    path: template.yaml; code addresses in it are relative to its folder.
    """
    source = templates.load(path)
    packed, objects = templates.pack(source, path.parent, BUCKET)
    fingerprint = hashlib.sha256(
        json.dumps([packed, dict(parameters)], sort_keys=True, default=str).encode()
    ).hexdigest()
    try:
        if _deployed(aws, stack_name) != fingerprint:
            # A template may have 51,200 bytes in a request, and 1 MB in an object; `sam deploy` also uploads it.
            key = f"{fingerprint[:32]}.json"
            _upload(aws, {**objects, key: json.dumps(packed, default=str).encode()})
            url = f"{aws.endpoint_url}/{BUCKET}/{key}"
            _put_stack(aws, clock, stack_name, _request(stack_name, url, parameters, fingerprint))
        stack = read_stack(aws, stack_name)
        repair(aws, stack, source)
    except (ClientError, ValueError) as error:
        raise DeployFailed(f"The deploy of {path.name} failed: {error}") from error
    return stack


def _describe(aws: Aws, stack_name: str) -> dict[str, Any] | None:
    try:
        stacks = aws.client("cloudformation").describe_stacks(StackName=stack_name)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":  # unknown
            return None
        raise
    stack: dict[str, Any] | None = stacks[0] if stacks else None
    return None if stack is None or stack["StackStatus"] == "DELETE_COMPLETE" else stack


def _deployed(aws: Aws, stack_name: str) -> str | None:
    """Returns the fingerprint in a tag of the deployed stack, None without a complete stack."""
    stack = _describe(aws, stack_name)
    if stack is None or stack["StackStatus"] not in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}:
        return None
    return next((tag["Value"] for tag in stack.get("Tags", []) if tag["Key"] == HASH_TAG), None)


def _upload(aws: Aws, objects: Mapping[str, bytes]) -> None:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    stored_keys = {item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])}
    for key, content in objects.items():
        if key not in stored_keys:
            s3.put_object(Bucket=BUCKET, Key=key, Body=content)
    for key in stored_keys - objects.keys():
        s3.delete_object(Bucket=BUCKET, Key=key)


def _request(stack_name: str, template_url: str, parameters: Mapping[str, str], fingerprint: str) -> dict[str, Any]:
    return {
        "StackName": stack_name,
        "TemplateURL": template_url,
        "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in sorted(parameters.items())],
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        "Tags": [{"Key": HASH_TAG, "Value": fingerprint}],
    }


def _put_stack(aws: Aws, clock: Clock, stack_name: str, request: Mapping[str, Any]) -> None:
    cloudformation = aws.client("cloudformation")
    before = _describe(aws, stack_name)
    if before is not None and before["StackStatus"] in {"ROLLBACK_COMPLETE", "CREATE_FAILED"}:
        cloudformation.delete_stack(StackName=stack_name)
        _await(aws, clock, stack_name, {"DELETE_COMPLETE"})
        before = None
    if before is None:
        cloudformation.create_stack(**request)
        _await(aws, clock, stack_name, {"CREATE_COMPLETE"})
    else:
        cloudformation.update_stack(**request)
        _await(aws, clock, stack_name, {"UPDATE_COMPLETE"})


def _await(aws: Aws, clock: Clock, stack_name: str, wanted: set[str]) -> None:
    end = clock.monotonic() + DEPLOYED_WITHIN_S
    while clock.monotonic() < end:
        stack = _describe(aws, stack_name)
        status = "DELETE_COMPLETE" if stack is None else stack["StackStatus"]
        if status in wanted:
            return
        if status.endswith(("_FAILED", "ROLLBACK_COMPLETE")):
            raise DeployFailed(f"The stack {stack_name} ended as {status}: {_first_failure(aws, stack_name)}")
        clock.sleep(0.05)
    raise DeployFailed(f"The stack {stack_name} was not ready in {DEPLOYED_WITHIN_S:.0f} s.")


def _first_failure(aws: Aws, stack_name: str) -> str:
    events = aws.client("cloudformation").describe_stack_events(StackName=stack_name)["StackEvents"]
    failed = [event for event in events if event.get("ResourceStatus", "").endswith("_FAILED")]
    if not failed:
        return "no reason given"
    return f"{failed[-1]['LogicalResourceId']}: {failed[-1].get('ResourceStatusReason', 'no reason given')}"


def read_stack(aws: Aws, stack_name: str) -> Stack:
    """Returns the deployed stack. Raises DeployFailed if there is none."""
    described = _describe(aws, stack_name)
    if described is None:
        raise DeployFailed(f"There is no stack {stack_name}.")
    resources = aws.client("cloudformation").describe_stack_resources(StackName=stack_name)["StackResources"]
    return Stack(
        name=stack_name,
        outputs={output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])},
        physical={resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in resources},
    )


def repair(aws: Aws, stack: Stack, source: Mapping[str, Any]) -> None:
    """Adds everything that the emulator leaves out. source: the stack's template, read by `template.load`."""
    repair_routes(aws, stack)
    repair_time_to_live(aws, stack, source)
    repair_concurrency(aws)


def repair_routes(aws: Aws, stack: Stack) -> None:
    """Creates the routes in the body of each HTTP API. Each route leads to a function, without an authorizer.

    Leaves an API alone if its routes are right. Raises ValueError for a body that it cannot rebuild.
    """
    body = aws.client("cloudformation").get_template(StackName=stack.name, TemplateStage="Processed")["TemplateBody"]
    processed = json.loads(body) if isinstance(body, str) else body
    for logical_id, properties in templates.resources(processed, "AWS::ApiGatewayV2::Api"):
        wanted = {
            route: stack.physical[function]
            for route, function in templates.routes_of(properties.get("Body", {})).items()
            if function in stack.physical
        }
        _put_routes(aws, stack.physical[logical_id], wanted)


def _put_routes(aws: Aws, api_id: str, wanted: Mapping[str, str]) -> None:
    """Replaces the routes of an API. wanted: function name by route key."""
    gateway = aws.client("apigatewayv2")
    arns = {
        name: aws.client("lambda").get_function(FunctionName=name)["Configuration"]["FunctionArn"]
        for name in set(wanted.values())
    }
    integrations = {
        item["IntegrationId"]: item.get("IntegrationUri") for item in _all(gateway, "get_integrations", api_id)
    }
    routes = list(_all(gateway, "get_routes", api_id))
    current = {
        route["RouteKey"]: integrations.get(route.get("Target", "").removeprefix("integrations/")) for route in routes
    }
    if current == {route: arns[name] for route, name in wanted.items()}:
        return
    for route in routes:
        gateway.delete_route(ApiId=api_id, RouteId=route["RouteId"])
    for integration_id in integrations:
        gateway.delete_integration(ApiId=api_id, IntegrationId=integration_id)
    made = {
        name: gateway.create_integration(
            ApiId=api_id,
            IntegrationType="AWS_PROXY",
            IntegrationUri=arn,
            PayloadFormatVersion="2.0",
            IntegrationMethod="POST",
        )["IntegrationId"]
        for name, arn in sorted(arns.items())
    }
    for route_key, name in wanted.items():
        gateway.create_route(ApiId=api_id, RouteKey=route_key, Target=f"integrations/{made[name]}")


def _all(gateway: Any, operation: str, api_id: str) -> Iterator[dict[str, Any]]:
    yield from gateway.get_paginator(operation).paginate(ApiId=api_id).search("Items[]")


def repair_time_to_live(aws: Aws, stack: Stack, source: Mapping[str, Any]) -> None:
    """Enables the time to live that the template gives a table."""
    dynamodb = aws.client("dynamodb")
    for logical_id, properties in templates.resources(source, "AWS::DynamoDB::Table"):
        wanted = properties.get("TimeToLiveSpecification")
        if wanted is None:
            continue
        table = stack.physical[logical_id]
        current = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        if current.get("TimeToLiveStatus") != "ENABLED" or current.get("AttributeName") != wanted["AttributeName"]:
            dynamodb.update_time_to_live(
                TableName=table,
                TimeToLiveSpecification={"AttributeName": wanted["AttributeName"], "Enabled": True},
            )


def repair_concurrency(aws: Aws) -> None:
    """Turns each event source's MaximumConcurrency into a number. A string breaks every poll of every queue.

    The SDK reads the string as a number, so a wrong value cannot be recognised and all values are written.
    """
    functions = aws.client("lambda")
    for source in functions.get_paginator("list_event_source_mappings").paginate().search("EventSourceMappings[]"):
        if source.get("ScalingConfig"):
            functions.update_event_source_mapping(UUID=source["UUID"], ScalingConfig=source["ScalingConfig"])


def put_secret(aws: Aws, secret_id: str, client_id: str, secret: str) -> None:
    """Replaces the stack's generated secret, which contains quotes and backslashes on the emulator."""
    manager = aws.client("secretsmanager")
    wanted = {"clientId": client_id, "secret": secret}
    if json.loads(manager.get_secret_value(SecretId=secret_id)["SecretString"]) != wanted:
        manager.put_secret_value(SecretId=secret_id, SecretString=json.dumps(wanted))
