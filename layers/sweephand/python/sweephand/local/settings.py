"""The user's settings of the local stack, and the template's parameters for it."""

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
_PACKAGED = Path(__file__).resolve().parent / "project"
"""The template and the functions within the wheel."""
PROJECT = _PACKAGED if _PACKAGED.is_dir() else CHECKOUT
IS_CHECKOUT = PROJECT == CHECKOUT
START = "make stack" if IS_CHECKOUT else "sweephand dev --detach"
LOGS = "make logs" if IS_CHECKOUT else "python -m sweephand.local logs"
# Parameters that the local stack sets itself.
NOT_TO_CHOOSE = frozenset({"EndpointUrl", "PublicBaseUrl"})
TARGET_ROLE = "arn:aws:iam::000000000000:role/sweephand-targets"
"""The role of jobs on the embedded AWS, which does not check trust policies."""
TASK_CLUSTER, TASK_FAMILY = "sweephand-tasks", "sweephand-task"
TASK_DEFINITIONS = f"arn:aws:ecs:us-east-1:000000000000:task-definition/{TASK_FAMILY}:*"
"""The tasks that jobs may run on the embedded AWS, once the user has registered them there."""
# Used only between the background process and its starter, if two were started at once and the other was first.
ALREADY_RUNNING = 9


@dataclass(frozen=True)
class Settings:
    """The settings. template: path of template.yaml. port: of the base URL. aws_port: of the emulator, None by default.

    aws_also_on: an address for the emulator in addition to loopback, or None. chosen: parameters of the template.
    """

    folder: StateFolder
    template: Path
    port: int
    aws_port: str | None
    aws_also_on: str | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)


def parameters(base_url: str, chosen: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the template's parameters: jobs may call loopback, even over http. chosen: overrides the defaults."""
    return {
        "AllowedPrivateTargets": "127.0.0.0/8,::1/128",
        "PlainHttpTargets": "allow",
        "TargetRoleArns": TARGET_ROLE,
        "TaskCluster": TASK_CLUSTER,
        "TaskDefinitionArns": TASK_DEFINITIONS,
        "TaskNetwork": "subnet-0123abcd",
        **(chosen or {}),
        "PublicBaseUrl": base_url,
    }


def read(environment: Mapping[str, str]) -> Settings:
    """Reads the settings from the environment. Raises LocalFailure.

    SWEEPHAND_STATE: the state folder. SWEEPHAND_PORT: the port of the base URL, 0 for a free one. SWEEPHAND_AWS_PORT:
    the emulator's port. SWEEPHAND_AWS_ALSO_ON: a second address for the emulator next to loopback, for `sam local` on
    Linux. SWEEPHAND_PARAMETERS: parameters of the template, `Name=value Other='a b'`. SWEEPHAND_TEMPLATE: a template
    to use instead of the project's own.
    """
    port = environment.get("SWEEPHAND_PORT") or str(DEFAULT_PORT)
    if not port.isdigit() or int(port) > 65_535:
        raise LocalFailure(f"SWEEPHAND_PORT={port} is not a port: use 0 to 65535.")
    state = Path(environment.get("SWEEPHAND_STATE") or ".local").absolute()
    if any(place.exists() and not place.is_dir() for place in (state, *state.parents)):
        raise LocalFailure(f"SWEEPHAND_STATE={state} cannot be a folder: there is a file in its path.")
    return Settings(
        folder=StateFolder(state),
        template=Path(environment.get("SWEEPHAND_TEMPLATE") or PROJECT / "template.yaml").absolute(),
        port=int(port),
        aws_port=environment.get("SWEEPHAND_AWS_PORT") or None,
        aws_also_on=_bridge(environment.get("SWEEPHAND_AWS_ALSO_ON") or None),
        chosen=_chosen(environment.get("SWEEPHAND_PARAMETERS") or ""),
    )


def _chosen(text: str) -> dict[str, str]:
    """Reads parameters like a shell. The deploy checks that the template has them."""
    try:
        pairs = [word.partition("=") for word in shlex.split(text)]
    except ValueError as wrong:
        raise LocalFailure(f"SWEEPHAND_PARAMETERS cannot be read: {wrong}.") from None
    for name, sign, _ in pairs:
        if not sign or not name.isalnum():
            raise LocalFailure(f"SWEEPHAND_PARAMETERS: {name} must have the form Name=value.")
        if name in NOT_TO_CHOOSE:
            raise LocalFailure(f"SWEEPHAND_PARAMETERS: {name} is set by the local stack itself.")
    return {name: value for name, _, value in pairs}


def _bridge(address: str | None) -> str | None:
    """Returns the address if it may belong to a container engine's bridge.

    Everyone who reaches the emulator can run code as a function. The unspecified address and public ones are therefore
    refused.
    """
    if address is None:
        return None
    try:
        parsed = ipaddress.IPv4Address(address)
    except ValueError:
        raise LocalFailure(f"SWEEPHAND_AWS_ALSO_ON={address} is not an IPv4 address such as 172.17.0.1.") from None
    if parsed.is_unspecified or parsed.is_loopback or not parsed.is_private:
        raise LocalFailure(f"SWEEPHAND_AWS_ALSO_ON={address} is not the address of a container engine's bridge.")
    return address
