"""AWS as the targets of jobs meet it in tests: moto, and roles that need no assuming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from botocore.config import Config
from botocore.session import get_session

from sweephand.server.security.guard import AwsSettings, GuardSettings, Outbound
from sweephand.server.security.target_roles import TargetRoles
from tests.support.ecs import TASKS

ACCOUNT = "123456789012"
REGION = "eu-west-1"
KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/jobs"
SETTINGS = AwsSettings(
    roles=frozenset({ROLE}), account=ACCOUNT, region="eu-central-1", stack_name="sweephand", bus_name="sweephand"
)
GUARD = GuardSettings(aws=SETTINGS, identity=True, tasks=TASKS)


@dataclass
class Roles:
    """In the place of TargetRoles: clients of moto, or what stands in `instead` for a service. asked: all requests."""

    instead: Mapping[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str, str, str, int]] = field(default_factory=list)

    def credentials(self, role: str, tenant: str) -> Mapping[str, str]:
        answer = self.instead.get("sts")
        if isinstance(answer, Exception):
            raise answer
        return {
            "aws_access_key_id": "AKIDEXAMPLE",
            "aws_secret_access_key": KEY,
            "aws_session_token": f"{tenant}-token",
        }

    def client(self, service: str, region: str, role: str, tenant: str, timeout_s: int) -> Any:
        self.asked.append((service, region, role, tenant, timeout_s))
        answer = self.instead.get(service)
        if isinstance(answer, Exception):
            raise answer
        return answer or client(service, region)


def client(service: str, region: str = REGION) -> Any:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    return get_session().create_client(service, region_name=region, config=config, **keys)


def outbound(roles: Roles | TargetRoles | None = None) -> Outbound:
    return Outbound(GUARD, roles=cast("TargetRoles", roles or Roles()))


def arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"
