"""The outbound guard: the addresses that jobs may call. Checked at creation, and at each call after name resolution.

This module does not connect. outbound.py connects, only to addresses that `resolve` has checked. It uses its own lists
instead of ipaddress.is_global, which takes multicast, NAT64, 6to4 and metadata services of other clouds for global.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from sweephand.base.errors import InvalidRequest
from sweephand.base.lazy import lazy
from sweephand.base.records import dataclass
from sweephand.domain.run import Reason
from sweephand.server.security.token_cache import TokenCache

if TYPE_CHECKING:
    from sweephand.server.security.identity import Identity
    from sweephand.server.security.target_roles import TargetRoles

with lazy():
    from sweephand.server import threads

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAX_URL = 2_048
CREDENTIALS_IN_CLEAR = "credentials never go over plain http to a public address"
_DENIED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "168.63.129.16/32",
        "::/8",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
_GLOBAL_IPV6 = IPv6Network("2000::/3")
"""The assigned part of IPv6 (RFC 4291)."""
_NEVER: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "169.254.0.0/16",
        "192.0.0.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "168.63.129.16/32",
        "::/128",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2002::/16",
        "fd00:ec2::/32",
        "fe80::/10",
        "ff00::/8",
    )
)
"""Networks that no setting can allow: metadata services, "this host", multicast, tunnels into IPv4."""

_LOCALHOST = re.compile(r"(?:.*\.)?localhost", re.ASCII)
_PRIVATE_NAME = re.compile(r"[^.]+|.*\.(?:localdomain|local|internal|home\.arpa)", re.ASCII)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?:#.*)?", re.ASCII)
_UNWANTED = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ufeff\ud800-\udfff]")
_DROPPED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""Characters that UTS 46 removes from a name, or that are displayed as nothing."""
_KEPT_IN_PATH = "%/?:@!$&'()*+,;=-._~[]"
_DEFAULT_PORT = {"http": 80, "https": 443}


@dataclass(frozen=True)
class AwsSettings:
    """The settings for AWS targets. roles: TargetRoleArns, where * stands for any characters.

    The others identify the stack's own resources.

    application_queues: how the names of the queues of applications begin; empty if there are none.
    """

    roles: frozenset[str] = frozenset()
    account: str = ""
    region: str = ""
    stack_name: str = ""
    bus_name: str = ""
    application_queues: str = ""


@dataclass(frozen=True)
class TaskSettings:
    """The parameters Task*. definitions: `family:*` or `family:7`, the ends of the ARNs in TaskDefinitionArns.

    public_ip: True if tasks get a public address, without which they reach nothing from a public subnet.
    """

    cluster: str = ""
    definitions: frozenset[str] = frozenset()
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    public_ip: bool = False
    roles: frozenset[str] = frozenset()


@dataclass(frozen=True)
class GuardSettings:
    """The targets that this stack allows in addition to https at public addresses.

    private: AllowedPrivateTargets. plain_http: PlainHttpTargets. closed_loopback_ports: our own ports, which are never
    allowed (Lambda's runtime API, the endpoint of an embedded AWS). aws: for resources on AWS. The two suffixes end the
    hosts of Azure's queues; those of a local emulator may begin with http:// and end in a port. identity: whether the
    stack has its own identity. tasks: for tasks on ECS.
    """

    private: tuple[Network, ...] = ()
    plain_http: bool = False
    closed_loopback_ports: frozenset[int] = frozenset()
    aws: AwsSettings = field(default_factory=AwsSettings)
    azure_storage_suffix: str = "core.windows.net"
    azure_service_bus_suffix: str = "servicebus.windows.net"
    identity: bool = False
    tasks: TaskSettings = field(default_factory=TaskSettings)


@dataclass(frozen=True)
class Target:
    """The target of a request. host: A-labels without a final dot, or a canonical address. target: path and query."""

    scheme: str
    host: str
    port: int
    target: str
    literal: Address | None = None

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORT[self.scheme] else f"{host}:{self.port}"


class CallFailed(Exception):
    """A call without an answer. timed_out: the deadline passed after the connection was made."""

    def __init__(self, reason: Reason, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.timed_out = timed_out


@dataclass(frozen=True)
class Deadline:
    """A point on the monotonic clock by which the whole call must be over."""

    at: float
    monotonic: Callable[[], float]

    def left(self) -> float:
        """Returns the remaining seconds; 0 or less after the deadline."""
        return self.at - self.monotonic()


Lookup = Callable[..., Iterable[tuple[Any, ...]]]
"""A function like socket.getaddrinfo."""


@dataclass(frozen=True)
class Outbound:
    """The means of outgoing calls. authorities: trusted certificates as PEM; None for the usual ones.

    tokens: cached credentials for targets. roles: AWS clients that use the roles of jobs; None in functions that call
    no targets. identity: the stack's own; None without one. ecs: makes an ECS client with the function's permissions,
    whose call ends within the given seconds, including its retry; None without tasks. network: answers HTTP requests
    (target, method, headers, content) in place of the network, for tests.
    """

    settings: GuardSettings
    lookup: Lookup = socket.getaddrinfo
    authorities: str | None = None
    tokens: TokenCache = field(default_factory=TokenCache)
    roles: TargetRoles | None = None
    identity: Identity | None = None
    ecs: Callable[[float], Any] | None = None
    network: Callable[[Target, str, Sequence[tuple[str, str]], bytes | None], Any] | None = None


def networks(text: str) -> tuple[Network, ...]:
    """Reads networks separated by commas: `127.0.0.0/8,::1/128`. Raises ValueError with the invalid one."""
    return tuple(ipaddress.ip_network(piece.strip()) for piece in text.split(",") if piece.strip())


def role_arns(text: str) -> frozenset[str]:
    """Reads ARNs separated by commas."""
    return frozenset(filter(None, text.split(",")))


def loopback_ports(endpoints: Iterable[str]) -> frozenset[int]:
    """Returns the ports of our own endpoints (URLs, or host:port) on this machine."""
    split = [urlsplit(text if "://" in text else f"//{text}") for text in endpoints]
    here = [
        url
        for url in split
        if url.hostname and (url.hostname in {"localhost", "::1"} or url.hostname.startswith("127."))
    ]
    return frozenset(url.port or _DEFAULT_PORT.get(url.scheme, 80) for url in here)


def check_url(url: str, settings: GuardSettings) -> Target:
    """Returns the target of a URL. Raises InvalidRequest(None, reason) for URLs that this stack never calls.

    Pure: a name that resolves to a private address passes here and is refused by `resolve`. A fragment is not sent.
    """
    if not 1 <= len(url) <= MAX_URL:
        raise _refused(f"must have 1 to {MAX_URL:,} characters")
    unwanted = _UNWANTED.search(url)
    if unwanted:
        raise _refused("a URL contains no space, control character or backslash", unwanted.start())
    parts = _URL.fullmatch(url)
    scheme = parts["scheme"].lower() if parts else ""
    if not parts or scheme not in _DEFAULT_PORT:
        raise _refused(f"must begin with https:// or http://{_beginning(url)}")
    if scheme == "http" and not settings.plain_http:
        raise _refused(
            "must begin with https://: plain http is not allowed here (the provider's parameter PlainHttpTargets)"
        )
    host, port = _split_authority(parts["authority"], _DEFAULT_PORT[scheme])
    rest = parts["rest"] if parts["rest"].startswith("/") else "/" + parts["rest"]
    target = quote(rest, safe=_KEPT_IN_PATH)
    literal = _literal(host)
    if literal is None:
        host = _checked_name(host, settings)
    else:
        host = str(literal)
        if _within(literal, _NEVER):
            raise _refused(f"{host} is not public and never called: its network is for metadata services and the like")
        if not allowed(literal, settings):
            raise _refused(
                f"{host} is not public: call a public address, or ask the provider of this service to allow this one "
                "(parameter AllowedPrivateTargets)"
            )
        if literal.is_loopback and port in settings.closed_loopback_ports:
            raise _refused(f"port {port} is the service's own")
    return Target(scheme, host, port, target, literal)


def resolve(target: Target, outbound: Outbound, deadline: Deadline, *, with_credentials: bool) -> list[Address]:
    """Returns the checked addresses of a target in the resolver's order, looked up once within the deadline.

    Raises CallFailed with DNS if there is no address in time, and with GUARD if any address must not be called, or not
    with credentials over plain http.
    """
    if target.literal is not None:
        addresses: list[Address] = [target.literal]
    else:
        addresses = _looked_up(target, outbound.lookup, deadline)
    settings = outbound.settings
    for address in addresses:
        # The message does not name the address, because it would reveal the internal network.
        if not allowed(address, settings):
            raise CallFailed(Reason.GUARD, f"{target.host} leads to an address that is not public")
        if address.is_loopback and target.port in settings.closed_loopback_ports:
            raise CallFailed(Reason.GUARD, f"port {target.port} is the service's own")
        if with_credentials and target.scheme == "http" and is_public(address):
            raise CallFailed(Reason.GUARD, CREDENTIALS_IN_CLEAR)
    return addresses


def allowed(address: Address, settings: GuardSettings) -> bool:
    """Returns True for public addresses, and for allowed private ones that are not in _NEVER."""
    address = unwrapped(address)
    return not _within(address, _NEVER) and (is_public(address) or _within(address, settings.private))


def is_public(address: Address) -> bool:
    address = unwrapped(address)
    return not _within(address, _DENIED) and (address.version == 4 or address in _GLOBAL_IPV6)


def unwrapped(address: Address) -> Address:
    """Returns the IPv4 address inside ::ffff:0:0/96, else the address itself."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _within(address: Address, nets: Iterable[Network]) -> bool:
    return any(address.version == net.version and address in net for net in nets)


def _split_authority(authority: str, default_port: int) -> tuple[str, int]:
    if "@" in authority:
        raise _refused(
            'user and password do not belong in a URL: give them in `authentication`, as {"type": "basic", '
            '"username": ..., "password": ...}'
        )
    if authority.startswith("["):
        host, closing, after = authority[1:].partition("]")
        host = f"[{host}]"
        if not closing or (after and not after.startswith(":")):
            raise _refused("has no valid host")
        port = after[1:] if after else None
    else:
        host, colon, after = authority.partition(":")
        port = after if colon else None
    if port is None:
        return host, default_port
    if not _PORT.fullmatch(port) or int(port) > 65_535:
        raise _refused("the port must be 1 to 65,535")
    return host, int(port)


def _literal(host: str) -> Address | None:
    """Returns the address that a host stands for. Refuses forms that only some programs accept (0x7f.1, 127.1)."""
    try:
        if host.startswith("["):
            if "%" in host:
                raise _refused("an address with a zone is not allowed")
            return unwrapped(IPv6Address(host[1:-1]))
        if host.isascii() and _NUMERIC_LABEL.fullmatch(host.removesuffix(".").rpartition(".")[2].lower()):
            return IPv4Address(host)
    except ipaddress.AddressValueError as wrong:
        raise _refused("is neither a name nor an address in its usual form") from wrong
    return None


def _checked_name(host: str, settings: GuardSettings) -> str:
    """Returns a name in A-labels. Raises for names of private networks, unless such a network is allowed."""
    if not host.isascii():
        host = _a_labels(host)
        if _literal(host) is not None:
            raise _refused("is neither a name nor an address in its usual form")
    host = host.lower().removesuffix(".")
    if not 1 <= len(host) <= 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise _refused("has no valid host")
    if "xn--" in host:
        _check_a_labels(host)
    if _LOCALHOST.fullmatch(host):
        wanted = any(net.network_address.is_loopback for net in settings.private)
    elif _PRIVATE_NAME.fullmatch(host):
        wanted = any(not net.network_address.is_loopback for net in settings.private)
    else:
        wanted = True
    if not wanted:
        raise _refused(
            "the name belongs to a private network: only the provider can allow it (parameter AllowedPrivateTargets)"
        )
    return host


def _a_labels(host: str) -> str:
    """Encodes a name as browsers do (UTS 46): circled digits and ideographic full stops become plain ones.

    Refuses characters that UTS 46 removes, so that no name looks like another one.
    """
    unseen = _DROPPED.search(host)
    if unseen:
        raise _refused(f"has no valid host: it holds the invisible character U+{ord(unseen[0]):04X}")
    import idna  # noqa: PLC0415 - its tables take 8 ms, and few names need them

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError) as wrong:
        raise _refused("has no valid host") from wrong


def _check_a_labels(host: str) -> None:
    """Raises for an A-label that does not decode to a name (RFC 5891, 5.4), which no resolver could know."""
    import idna  # noqa: PLC0415 - as above

    try:
        idna.decode(host, strict=True, uts46=False)
    except (idna.IDNAError, UnicodeError) as wrong:
        raise _refused("has no valid host: a label that begins with xn-- does not decode") from wrong


def _looked_up(target: Target, lookup: Lookup, deadline: Deadline) -> list[Address]:
    """Looks up a name in a separate thread, which is abandoned at the deadline: getaddrinfo has no time limit."""
    answers: SimpleQueue[list[Address] | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            rows = lookup(target.host, target.port, type=socket.SOCK_STREAM)
            answers.put([ipaddress.ip_address(str(row[4][0]).partition("%")[0]) for row in rows])
        except (OSError, ValueError) as wrong:
            answers.put(wrong)

    _askers().begin(ask)
    try:
        looked_up = answers.get(timeout=max(0.0, deadline.left()))
    except Empty:
        raise CallFailed(Reason.DNS, f"no address of {target.host} came in time") from None
    if isinstance(looked_up, Exception) or not looked_up:
        raise CallFailed(Reason.DNS, f"{target.host} has no address")
    return list(dict.fromkeys(unwrapped(address) for address in looked_up))


@cache
def _askers() -> threads.Threads:
    return threads.Threads("dns")


def _beginning(url: str) -> str:
    """Returns a URL's scheme or, without one, its host, for a message. The rest, and any credentials, may be secret."""
    scheme, mark, _ = url.partition("://")
    first = f"{scheme}://" if mark and scheme.isalnum() else re.split("[/?#]", url, maxsplit=1)[0]
    return "" if "@" in first or not first else f', not "{first[:60]}"'


def _refused(reason: str, position: int | None = None) -> InvalidRequest:
    return InvalidRequest(None, reason, position=position)
