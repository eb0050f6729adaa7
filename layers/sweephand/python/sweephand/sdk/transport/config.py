"""The address of a stack and the credential, from arguments or else from the environment. Nothing is guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from sweephand.sdk.errors import ConfigError

URL, CLIENT_ID, SECRET = "SWEEPHAND_URL", "SWEEPHAND_CLIENT_ID", "SWEEPHAND_SECRET"
PLAIN_HTTP = "SWEEPHAND_PLAIN_HTTP"


@dataclass(frozen=True)
class Access:
    """A stack's address, without a trailing slash, and a credential. aws_endpoint: of a local stack's own AWS."""

    url: str
    client_id: str
    secret: str = field(repr=False)
    aws_endpoint: str | None = None


def access(url: str | None, client_id: str | None, secret: str | None, environment: Mapping[str, str]) -> Access:
    """Returns the stack and the credential to use. Raises ConfigError.

    Both parts of a credential come from one place: a client id given as an argument is never combined with a secret
    from the environment.
    """
    where = "client_id= and secret="
    if client_id is None and secret is None:
        client_id, secret = environment.get(CLIENT_ID), environment.get(SECRET)
        where = f"{CLIENT_ID} and {SECRET}"
    if not client_id or not secret:
        part = "client id" if client_id else "secret" if secret else None
        missing = f"{where} must be given together: only the {part} is set" if part else "the credential is missing"
        raise ConfigError(f"{missing}; give client_id= and secret=, or set {CLIENT_ID} and {SECRET}")
    return Access(_address(url or environment.get(URL), environment), client_id, secret)


def of_local_stack(path: str | Path, tenant: str | None) -> Access:
    """Returns the access to a stack on this machine, from its stack.json. tenant: None for the first one in the file.

    Raises ConfigError.
    """
    try:
        stack = json.loads(Path(path).read_text(encoding="utf-8"))
        tenants = {each["tenant"]: each for each in stack["tenants"]}
        chosen = tenants[tenant or next(iter(tenants))]
        address = _address(stack["baseUrl"], {})
        return Access(address, chosen["clientId"], chosen["secret"], stack.get("awsEndpointUrl"))
    except OSError as error:
        raise ConfigError(f"there is no running local stack: {path} cannot be read ({error.strerror})") from error
    except (ValueError, LookupError, TypeError, StopIteration) as error:
        wanted = "a tenant" if tenant is None else f"the tenant {tenant!r}"
        raise ConfigError(f"{path} does not name {wanted} with an address, a client id and a secret") from error


def check_secure(address: str, environment: Mapping[str, str]) -> None:
    """Raises ConfigError for plain http to another machine, where everybody on the way could read the credential."""
    parts = urlsplit(address)
    if parts.scheme == "https" or _is_loopback(parts.hostname or "") or environment.get(PLAIN_HTTP) == "allow":
        return
    raise ConfigError(
        f"the address must begin with https://, not {parts.scheme}://, because the credential would be readable on its "
        f"way to {parts.hostname}; to send it all the same, set {PLAIN_HTTP}=allow"
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _address(url: str | None, environment: Mapping[str, str]) -> str:
    if not url:
        raise ConfigError(f"the address is missing: give url= or set {URL} to the stack's output ApiUrl")
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for a port out of range
    except ValueError as wrong:
        raise ConfigError(f"the address {url!r} cannot be read: {wrong}") from wrong
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"the address must begin with https:// or http:// and name a host, not {url!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError("the address must have no credential, no query and no fragment")
    check_secure(url, environment)
    return url.rstrip("/").removesuffix("/v1")
