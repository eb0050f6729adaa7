"""The environment of a function, parsed once. Names and bounds are the template's parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from sweephand.base import ids
from sweephand.base.records import dataclass
from sweephand.domain.schedule import Lane


@dataclass(frozen=True)
class Settings:
    """The settings of a function. look_ahead_s: how far ahead of its instant an occurrence is sent.

    application_queues: the prefix of the names of applications' queues. relief_s: how long after its start an executor
    takes more messages while calls hang. call_deadline_s < lease_s < time-out of the
    function < visibility_s.
    """

    stack_name: str
    table_name: str
    region: str | None = None
    shards: int = ids.SHARDS
    look_ahead_s: int = 150
    queue_urls: Mapping[Lane, str] = field(default_factory=dict)
    dead_letter_queue_url: str = ""
    dead_letter_queue_arn: str = ""
    archive_queue_url: str = ""
    application_queues: str = "sweephand"
    metrics_of: str = ""
    queue_key_id: str = ""
    vpc_subnets: str = ""
    event_bus_name: str = ""
    files_bucket: str = ""
    key_id: str = ""
    stack_secret_id: str = ""
    identity_key_id: str = ""
    public_base_url: str = ""
    allowed_private_targets: str = ""
    plain_http_targets: bool = False
    target_role_arns: str = ""
    task_cluster: str = ""
    task_definition_arns: str = ""
    task_network: str = ""
    task_role_arns: str = ""
    account: str = ""
    azure_suffixes: str = "core.windows.net,servicebus.windows.net"
    lists_parameter: str = ""
    foreign_issuers: bool = False
    oidc_issuers: str = ""
    oidc_claims: str = ""
    oidc_scopes: str = ""
    aws_endpoint_url: str = ""
    runtime_api_url: str = ""
    lane: Lane = Lane.FAST
    call_deadline_s: float = 15.0
    lease_s: float = 25.0
    visibility_s: float = 180.0
    relief_s: float = 60.0
    callback_timeout_s: int = 1_800
    rate_slow_from: int = 0
    rate_most: int = 0
    client_rate_slow_from: int = 0
    client_rate_most: int = 0
    tenant_rate_most: int = 0
    facade: str = "native"


_READ = {"str": str, "int": int, "float": float}
_OTHERS = {"rate_slow_from", "client_rate_slow_from", "runtime_api_url"}
"""Settings that are not read from a variable of their name."""


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Returns the settings, each from the variable with its name in upper case.

    Raises KeyError if a required variable is missing, ValueError for an invalid number.
    """
    env = os.environ if environment is None else environment
    members: dict[str, Any] = {
        each.name: _READ[str(each.type)](env[each.name.upper()])
        for each in fields(Settings)
        if each.name not in _OTHERS and each.type in _READ and each.name.upper() in env
    }
    runtime_api = env.get("AWS_LAMBDA_RUNTIME_API")
    rate_most, tenant_rate_most = 60 * int(env.get("API_RATE_LIMIT", "0")), members.get("tenant_rate_most", 0)
    members |= {
        "stack_name": env.get("STACK_NAME", "sweephand"),
        "table_name": env["TABLE_NAME"],
        "region": env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION"),
        "queue_urls": {lane: url for lane in Lane if (url := env.get(f"{lane.name}_QUEUE_URL"))},
        "public_base_url": env.get("PUBLIC_BASE_URL", "").rstrip("/"),
        "runtime_api_url": f"http://{runtime_api}" if runtime_api else "",
        "plain_http_targets": env.get("PLAIN_HTTP_TARGETS", "refuse") == "allow",
        "foreign_issuers": env.get("FOREIGN_ISSUERS", "off") == "on",
        "lane": Lane(env.get("LANE", Lane.FAST)),
        "rate_slow_from": rate_most // 2,
        "rate_most": rate_most,
        "client_rate_slow_from": tenant_rate_most // 2,
        "client_rate_most": tenant_rate_most,
    }
    return Settings(**members)
