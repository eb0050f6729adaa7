"""Tells which services of AWS the subnets of the functions do not reach. Only for a stack in a network of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from sweephand.server.threads import at_once

SERVICES = ("dynamodb", "sqs", "events", "kms", "sts", "secretsmanager", "s3", "ssm")
"""The services that functions call. Without tasks, no function calls another one."""
HTTPS, WAIT_S = 443, 2.0


def unreachable(hosts: Mapping[str, str], connects: Callable[[str], bool] | None = None) -> list[str]:
    """Returns the services to whose hosts no connection can be made within two seconds. hosts: by service.

    Tries one address of each host: S3 has eight, and a function has ten seconds to begin.
    """
    answers = at_once(connects or _connects, list(hosts.values()), len(hosts))
    return [service for service, answered in zip(hosts, answers, strict=True) if not answered]


def _connects(host: str) -> bool:
    try:
        address = socket.getaddrinfo(host, HTTPS, type=socket.SOCK_STREAM)[0][4]
        socket.create_connection((str(address[0]), HTTPS), timeout=WAIT_S).close()
    except OSError:
        return False
    return True
