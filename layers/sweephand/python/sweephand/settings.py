"""The environment of a function, parsed once. Names and bounds are the template's parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from sweephand import ids
from sweephand.domain.schedule import Lane


@dataclass(frozen=True)
class Settings:
    """look_ahead_s: how far ahead of its instant an occurrence is taken up.

    call_deadline_s < lease_s < function < visibility_s.
    """

    stack_name: str
    table_name: str
    region: str | None = None
    shards: int = ids.SHARDS
    look_ahead_s: int = 150
    queue_urls: Mapping[Lane, str] = field(default_factory=dict)
    dead_letter_queue_url: str = ""
    archive_queue_url: str = ""
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
    task_subnets: str = ""
    task_security_groups: str = ""
    task_public_ip: bool = False
    task_role_arns: str = ""
    account: str = ""
    azure_storage_suffix: str = "core.windows.net"
    azure_service_bus_suffix: str = "servicebus.windows.net"
    oidc_issuers: str = ""
    oidc_audiences: str = ""
    oidc_tenant_claim: str = ""
    oidc_scope_claims: str = ""
    oidc_scopes: str = ""
    oidc_provider_claim: str = ""
    aws_endpoint_url: str = ""
    runtime_api_url: str = ""
    lane: Lane = Lane.FAST
    call_deadline_s: float = 15.0
    lease_s: float = 25.0
    visibility_s: float = 180.0
    callback_timeout_s: int = 1_800
    rate_slow_from: int = 0
    rate_most: int = 0
    client_rate_slow_from: int = 0
    client_rate_most: int = 0
    facade: str = "native"


def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Raises KeyError for a variable that every function needs, ValueError for a number that is none."""
    env = os.environ if environment is None else environment
    defaults = Settings("", "")
    rate_most = int(env.get("RATE_MOST", defaults.rate_most))
    client_rate_most = int(env.get("CLIENT_RATE_MOST", defaults.client_rate_most))
    return Settings(
        stack_name=env.get("STACK_NAME", "sweephand"),
        table_name=env["TABLE_NAME"],
        region=env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION"),
        look_ahead_s=int(env.get("LOOK_AHEAD_S", defaults.look_ahead_s)),
        queue_urls={lane: url for lane in Lane if (url := env.get(f"{lane.name}_QUEUE_URL"))},
        dead_letter_queue_url=env.get("DEAD_LETTER_QUEUE_URL", ""),
        archive_queue_url=env.get("ARCHIVE_QUEUE_URL", ""),
        event_bus_name=env.get("EVENT_BUS_NAME", ""),
        files_bucket=env.get("FILES_BUCKET", ""),
        key_id=env.get("KEY_ID", ""),
        stack_secret_id=env.get("STACK_SECRET_ID", ""),
        identity_key_id=env.get("IDENTITY_KEY_ID", ""),
        public_base_url=env.get("PUBLIC_BASE_URL", "").rstrip("/"),
        allowed_private_targets=env.get("ALLOWED_PRIVATE_TARGETS", ""),
        aws_endpoint_url=env.get("AWS_ENDPOINT_URL", ""),
        runtime_api_url=f"http://{runtime_api}" if (runtime_api := env.get("AWS_LAMBDA_RUNTIME_API")) else "",
        plain_http_targets=env.get("PLAIN_HTTP_TARGETS", "refuse") == "allow",
        target_role_arns=env.get("TARGET_ROLE_ARNS", ""),
        task_cluster=env.get("TASK_CLUSTER", ""),
        task_definition_arns=env.get("TASK_DEFINITION_ARNS", ""),
        task_subnets=env.get("TASK_SUBNETS", ""),
        task_security_groups=env.get("TASK_SECURITY_GROUPS", ""),
        task_public_ip=env.get("TASK_PUBLIC_IP", "off") == "on",
        task_role_arns=env.get("TASK_ROLE_ARNS", ""),
        account=env.get("ACCOUNT", ""),
        azure_storage_suffix=env.get("AZURE_STORAGE_SUFFIX", defaults.azure_storage_suffix),
        azure_service_bus_suffix=env.get("AZURE_SERVICE_BUS_SUFFIX", defaults.azure_service_bus_suffix),
        oidc_issuers=env.get("OIDC_ISSUERS", ""),
        oidc_audiences=env.get("OIDC_AUDIENCES", ""),
        oidc_tenant_claim=env.get("OIDC_TENANT_CLAIM", ""),
        oidc_scope_claims=env.get("OIDC_SCOPE_CLAIMS", ""),
        oidc_scopes=env.get("OIDC_SCOPES", ""),
        oidc_provider_claim=env.get("OIDC_PROVIDER_CLAIM", ""),
        lane=Lane(env.get("LANE", defaults.lane)),
        call_deadline_s=float(env.get("CALL_DEADLINE_S", defaults.call_deadline_s)),
        lease_s=float(env.get("LEASE_S", defaults.lease_s)),
        visibility_s=float(env.get("VISIBILITY_S", defaults.visibility_s)),
        callback_timeout_s=int(env.get("CALLBACK_TIMEOUT_S", defaults.callback_timeout_s)),
        rate_slow_from=rate_most // 2,
        rate_most=rate_most,
        client_rate_slow_from=client_rate_most // 2,
        client_rate_most=client_rate_most,
        facade=env.get("FACADE", defaults.facade),
    )
