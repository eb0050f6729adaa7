"""The stack and the credential of a command, from its options, the environment or a profile, in this order.

Both parts of a credential come from the same place. If the credential is wrong, no other is tried. A profile is an
entry in a JSON file that only its owner may read; `sweephand login` writes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sweephand.sdk.errors import ConfigError
from sweephand.sdk.transport import config
from sweephand.sdk.transport.config import Access

LOCAL = Path(".local/stack.json")
DEFAULT = "default"
OWNER_ONLY = 0o600


@dataclass(frozen=True)
class Stack:
    """The stack that the user chose. source: where the credential comes from, in words."""

    access: Access
    source: str


class NoCredential(ConfigError):
    """A credential that is missing or incomplete. reason: what is missing. then: what to do."""

    def __init__(self, reason: str, then: str) -> None:
        super().__init__(f"{reason}: {then}")
        self.reason, self.then = reason, then


def profiles_path(environment: Mapping[str, str]) -> Path:
    """Returns the file of the profiles: SWEEPHAND_PROFILES, or else one in the user's configuration folder."""
    if path := environment.get("SWEEPHAND_PROFILES"):
        return Path(path)
    folder = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "sweephand" / "profiles.json"


def find(
    environment: Mapping[str, str],
    *,
    url: str | None = None,
    profile: str | None = None,
    tenant: str | None = None,
    local: bool = False,
) -> Stack:
    """Returns the stack to call. Raises ConfigError."""
    if local:
        if url or profile:
            raise ConfigError("--local excludes --url and --profile")
        return Stack(config.of_local_stack(LOCAL, tenant), str(LOCAL))
    half = [each for each in (config.CLIENT_ID, config.SECRET) if environment.get(each)]
    if profile is None and half:
        if len(half) == 1:
            raise NoCredential(f"only {half[0]} is set", f"set {config.CLIENT_ID} and {config.SECRET}")
        chosen = url or environment.get(config.URL)
        return Stack(_access(chosen, environment[config.CLIENT_ID], environment[config.SECRET]), "the environment")
    path = profiles_path(environment)
    name = profile or environment.get("SWEEPHAND_PROFILE") or DEFAULT
    stored = read(path).get(name)
    if stored is None and profile is None and name == DEFAULT:
        then = f"set {config.CLIENT_ID} and {config.SECRET}, or run `sweephand login`"
        raise NoCredential("the credential is missing", then)
    if stored is None or not (stored.get("clientId") and stored.get("secret")):
        reason = (
            f"{path} has no profile {name!r}" if stored is None else f"the profile {name!r} in {path} is incomplete"
        )
        raise NoCredential(reason, f"run `sweephand login --profile {name}`")
    access = _access(url or stored.get("url"), stored["clientId"], stored["secret"])
    return Stack(access, f"profile {name} of {path}")


def _access(url: str | None, client_id: str, secret: str) -> Access:
    if not url:
        raise ConfigError(f"the address is missing: give --url, or set {config.URL} to the stack's output ApiUrl")
    return config.access(url, client_id, secret, os.environ)


def read(path: Path) -> dict[str, dict[str, str]]:
    """Returns the profiles by name; none without a file. Raises ConfigError, also for a file that others can read."""
    try:
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            raise ConfigError(f"{path} can be read by other users (mode {mode:o}): run `chmod 600 {path}`")
        profiles = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as wrong:
        raise ConfigError(f"{path} cannot be read: {wrong}") from wrong
    if not isinstance(profiles, dict) or not all(isinstance(each, dict) for each in profiles.values()):
        raise ConfigError(f"{path} must contain an object for each profile, with url, clientId and secret")
    return profiles


def write(path: Path, profiles: Mapping[str, Mapping[str, str]]) -> None:
    """Writes all profiles to a file that only its owner can read. A crash leaves either the old or the new file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY), "w", encoding="utf-8") as file:
        json.dump(profiles, file, indent=2)
    new.replace(path)
