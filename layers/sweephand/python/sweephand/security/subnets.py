"""Tells which services of AWS the subnets of the functions do not reach. Only for a stack in a network of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from sweephand.threads import at_once

SERVICES = ("dynamodb", "sqs", "events", "kms", "sts", "secretsmanager", "s3", "ssm")
"""The services that functions call. Without tasks, no function calls another one."""
HTTPS, WAIT_S = 443, 2.0


def unreachable(hosts: Mapping[str, str], connects: Callable[[str], bool] | None = None) -> list[str]:
    """Returns the services to whose hosts no connection can be made within two seconds. hosts: by service."""
    answers = at_once(connects or _connects, list(hosts.values()), len(hosts))
    return [service for service, answered in zip(hosts, answers, strict=True) if not answered]


def _connects(host: str) -> bool:
    try:
        socket.create_connection((host, HTTPS), timeout=WAIT_S).close()
    except OSError:
        return False
    return True
