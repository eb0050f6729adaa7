"""What the user may choose about the local stack, and what the stack is told of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sweephand.local.failures import LocalFailure
from sweephand.local.folder import StateFolder

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PORT = 8080
PACKAGE_ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = PACKAGE_ROOT.parents[2]
# Between the background process and its starter only: two started at once, and the other was first.
ALREADY_RUNNING = 9


@dataclass(frozen=True)
class Settings:
    """template: path of template.yaml. port: of the base URL. aws_port: of the emulator, None for the usual one."""

    folder: StateFolder
    template: Path
    port: int
    aws_port: str | None


def parameters(base_url: str) -> dict[str, str]:
    """The template's parameters on a user's machine: jobs may call loopback, and by http."""
    return {
        "AllowedPrivateTargets": "127.0.0.0/8,::1/128",
        "PlainHttpTargets": "allow",
        "PublicBaseUrl": base_url,
    }


def read(environment: Mapping[str, str]) -> Settings:
    """SWEEPHAND_STATE: state folder. SWEEPHAND_PORT: of the base URL, 0 for a free one. SWEEPHAND_AWS_PORT: of the
    emulator. SWEEPHAND_TEMPLATE: another template than the checkout's. Raises LocalFailure."""
    port = environment.get("SWEEPHAND_PORT") or str(DEFAULT_PORT)
    if not port.isdigit() or int(port) > 65_535:
        raise LocalFailure(f"SWEEPHAND_PORT={port} is no port: 0 to 65535.")
    return Settings(
        folder=StateFolder(Path(environment.get("SWEEPHAND_STATE") or CHECKOUT / ".local").absolute()),
        template=Path(environment.get("SWEEPHAND_TEMPLATE") or CHECKOUT / "template.yaml").absolute(),
        port=int(port),
        aws_port=environment.get("SWEEPHAND_AWS_PORT") or None,
    )
