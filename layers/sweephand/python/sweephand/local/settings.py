"""What the user may choose about the local stack, and what the stack is told of it."""

from __future__ import annotations

import ipaddress
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sweephand.local.failures import LocalFailure
from sweephand.local.folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PORT = 8080
PACKAGE_ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = PACKAGE_ROOT.parents[2]
# What the local stack sets itself, or what the rows that it keeps depend on.
NOT_TO_CHOOSE = frozenset({"EndpointUrl", "PublicBaseUrl"})
TARGET_ROLE = "arn:aws:iam::000000000000:role/sweephand-targets"
"""By which jobs act on the embedded AWS, which asks no role whom it trusts."""
TASK_CLUSTER, TASK_FAMILY = "sweephand-tasks", "sweephand-task"
TASK_DEFINITIONS = f"arn:aws:ecs:us-east-1:000000000000:task-definition/{TASK_FAMILY}:*"
"""What jobs may run as tasks on the embedded AWS, once the user has registered it there."""
# Between the background process and its starter only: two started at once, and the other was first.
ALREADY_RUNNING = 9


@dataclass(frozen=True)
class Settings:
    """template: path of template.yaml. port: of the base URL. aws_port: of the emulator, None for the usual one.

    aws_also_on: an address beside loopback at which the emulator listens, or None. chosen: parameters of the template.
    """

    folder: StateFolder
    template: Path
    port: int
    aws_port: str | None
    aws_also_on: str | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)


def parameters(base_url: str, chosen: Mapping[str, str] | None = None) -> dict[str, str]:
    """The template's parameters on a user's machine: jobs may call loopback, and by http. chosen: goes before that."""
    return {
        "AllowedPrivateTargets": "127.0.0.0/8,::1/128",
        "PlainHttpTargets": "allow",
        "TargetRoleArns": TARGET_ROLE,
        "TaskCluster": TASK_CLUSTER,
        "TaskDefinitionArns": TASK_DEFINITIONS,
        "TaskSubnets": "subnet-0123abcd",
        **(chosen or {}),
        "PublicBaseUrl": base_url,
    }


def read(environment: Mapping[str, str]) -> Settings:
    """SWEEPHAND_STATE: state folder. SWEEPHAND_PORT: of the base URL, 0 for a free one. SWEEPHAND_AWS_PORT: of the
    emulator. SWEEPHAND_AWS_ALSO_ON: an address beside loopback at which it listens, for `sam local` on Linux.
    SWEEPHAND_PARAMETERS: of the template, `Name=value Other='a b'`. SWEEPHAND_TEMPLATE: another template than the
    checkout's. Raises LocalFailure."""
    port = environment.get("SWEEPHAND_PORT") or str(DEFAULT_PORT)
    if not port.isdigit() or int(port) > 65_535:
        raise LocalFailure(f"SWEEPHAND_PORT={port} is no port: 0 to 65535.")
    state = Path(environment.get("SWEEPHAND_STATE") or CHECKOUT / ".local").absolute()
    if any(place.exists() and not place.is_dir() for place in (state, *state.parents)):
        raise LocalFailure(f"SWEEPHAND_STATE={state} cannot be a folder: a file is in its way.")
    return Settings(
        folder=StateFolder(state),
        template=Path(environment.get("SWEEPHAND_TEMPLATE") or CHECKOUT / "template.yaml").absolute(),
        port=int(port),
        aws_port=environment.get("SWEEPHAND_AWS_PORT") or None,
        aws_also_on=_bridge(environment.get("SWEEPHAND_AWS_ALSO_ON") or None),
        chosen=_chosen(environment.get("SWEEPHAND_PARAMETERS") or ""),
    )


def _chosen(text: str) -> dict[str, str]:
    """Parameters as a shell would read them; whether the template knows them, its deploy will say."""
    try:
        pairs = [word.partition("=") for word in shlex.split(text)]
    except ValueError as wrong:
        raise LocalFailure(f"SWEEPHAND_PARAMETERS cannot be read: {wrong}.") from None
    for name, sign, _ in pairs:
        if not sign or not name.isalnum():
            raise LocalFailure(f"SWEEPHAND_PARAMETERS: {name} is not written Name=value.")
        if name in NOT_TO_CHOOSE:
            raise LocalFailure(f"SWEEPHAND_PARAMETERS: {name} is the local stack's own.")
    return {name: value for name, _, value in pairs}


def _bridge(address: str | None) -> str | None:
    """The address, if it can be that of a container engine's bridge. Whoever reaches the emulator may run code as a
    function, so an address that stands for all of them, or is reached from everywhere, is refused."""
    if address is None:
        return None
    try:
        parsed = ipaddress.IPv4Address(address)
    except ValueError:
        raise LocalFailure(f"SWEEPHAND_AWS_ALSO_ON={address} is no IPv4 address, such as 172.17.0.1.") from None
    if parsed.is_unspecified or parsed.is_loopback or not parsed.is_private:
        raise LocalFailure(f"SWEEPHAND_AWS_ALSO_ON={address} is not the address of a container engine's bridge.")
    return address
