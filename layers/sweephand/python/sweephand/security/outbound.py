"""One guarded HTTP exchange: to judged addresses only, under one deadline, with a bound on every byte that comes back.

h11, and no HTTP client: no cookie jar, redirects, proxies, netrc or rewritten URL that tenants could share. It only
reads what comes back; what goes out is written here, because h11 takes longer to judge a dozen headers than to read
the answer (decision 0049). One connection a call: an idle one is half dead after Lambda's freeze, and a POST that meets
it cannot be told from one that was lost. Import this module at the first call only.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

import certifi
import h11

from sweephand.domain.run import Reason
from sweephand.security.guard import Address, CallFailed, Deadline, Outbound, Target, resolve

MAX_BODY = 65_536
_MAX_RECEIVED = 524_288
"""Everything of one exchange: heads, 1xx answers and chunk framing count too."""
_MAX_LOOKS = 12_288
"""How often one answer is looked at: each look costs CPU, whether it finds a chunk, a 1xx answer or no more yet.
Enough for a chunk every ten milliseconds of the longest call, or for 64 KB in chunks of six bytes."""
_MAX_HEAD = 102_400
_PIECE = 65_536
_EXACT_S = 0.01
_MAX_ADDRESSES = 6
_NAMES = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUES = re.compile(r"[\t -~]*", re.ASCII)
_TARGET = re.compile(r"[!-~]+", re.ASCII)
_context_lock = threading.Lock()


@dataclass(frozen=True)
class Answer:
    """body: raw, at most MAX_BODY bytes. failure: why it ended too early; None if it is whole or was cut by us."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    failure: CallFailed | None = None

    def header(self, name: str) -> str | None:
        """The first value; name in lower case."""
        return next((value for key, value in self.headers if key == name), None)


def exchange(
    target: Target,
    method: str,
    headers: Sequence[tuple[str, str]],
    content: bytes | None,
    outbound: Outbound,
    deadline: Deadline,
    *,
    with_credentials: bool,
    ssl_context: ssl.SSLContext | None = None,
) -> Answer:
    """Send one request and read its answer; redirects are answers like others.

    headers: checked, ASCII; Host, Connection and Content-Length are added. with_credentials: some of them are secret.
    ssl_context: one with a client certificate; None for the shared one.
    Raises CallFailed, and nothing else, for whatever a network or an endpoint does.
    """
    addresses = resolve(target, outbound, deadline, with_credentials=with_credentials)
    message = _message(method, target, headers, content)
    with closing(_Connection(_opened(target, addresses, deadline), deadline)) as connection:
        if target.scheme == "https":
            connection.start_tls(ssl_context or shared_ssl_context(outbound.authorities), target.host)
        # Some servers refuse a body before they have read it: there may be an answer all the same.
        with suppress(OSError):
            connection.write(message)
        return _read_answer(connection, method)


def shared_ssl_context(authorities: str | None = None) -> ssl.SSLContext:
    """The process's one context for these authorities: making one takes 16 ms of CPU."""
    with _context_lock:
        return _shared(authorities)


def new_ssl_context(authorities: str | None) -> ssl.SSLContext:
    """authorities: as PEM; None for those of certifi."""
    given = {"cafile": certifi.where()} if authorities is None else {"cadata": authorities}
    context = ssl.create_default_context(**given)  # type: ignore[arg-type]
    context.set_alpn_protocols(["http/1.1"])
    return context


_shared = functools.lru_cache(maxsize=8)(new_ssl_context)


def _message(method: str, target: Target, headers: Sequence[tuple[str, str]], content: bytes | None) -> bytes:
    """The request as it is sent. Raises CallFailed where a header would end its line: it may come from outside."""
    sent = [("Host", target.host_header), ("Connection", "close"), *headers, *_length(method, content)]
    names, values = "".join([name for name, _ in sent]), "".join([value for _, value in sent])
    if not (_NAMES.fullmatch(names) and _VALUES.fullmatch(values) and _TARGET.fullmatch(target.target)):
        raise CallFailed(Reason.GUARD, "a header holds what none can hold")
    lines = "".join([f"{name}: {value}\r\n" for name, value in sent])
    return f"{method} {target.target} HTTP/1.1\r\n{lines}\r\n".encode("ascii") + (content or b"")


def _length(method: str, content: bytes | None) -> list[tuple[str, str]]:
    if content is None:
        return [("Content-Length", "0")] if method in {"POST", "PUT", "PATCH"} else []
    return [("Content-Length", str(len(content)))]


@functools.lru_cache(maxsize=16)
def _asked(method: str) -> h11.Request:
    """What h11 must know of a request to read its answer: whether that has a body, and that nothing follows."""
    return h11.Request(method=method, target="/", headers=[("Host", "asked"), ("Connection", "close")])


def _read_answer(connection: _Connection, method: str) -> Answer:
    """Up to MAX_BODY bytes of body, and why it ended early if that was not our doing."""
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
    http.send(_asked(method))
    http.send(h11.EndOfMessage())
    try:
        event = _next(http, connection)
        while isinstance(event, h11.InformationalResponse):
            event = _next(http, connection)
    except h11.RemoteProtocolError as wrong:
        raise connection.broken_answer() from wrong
    assert isinstance(event, h11.Response)
    headers = tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers])
    body, failure = bytearray(), None
    try:
        while len(body) < MAX_BODY and isinstance(piece := _next(http, connection), h11.Data):
            body += piece.data
    except CallFailed as wrong:
        failure = wrong
    except h11.RemoteProtocolError:
        failure = connection.broken_answer()
    return Answer(event.status_code, headers, bytes(body[:MAX_BODY]), failure)


def _next(http: h11.Connection, connection: _Connection) -> h11.Event | type[h11.PAUSED]:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(connection.read(_PIECE))
        connection.looked()
    connection.looked()
    return event  # type: ignore[return-value]  # no other class of h11's stands for an event


def _opened(target: Target, addresses: Sequence[Address], deadline: Deadline) -> socket.socket:
    """The first of the judged addresses that answers; those still to be tried share the time that is left."""
    to = f"{target.host}:{target.port}"
    tried = addresses[:_MAX_ADDRESSES]
    message = f"no connection to {to} in time"
    for n, address in enumerate(tried):
        left = deadline.left()
        if left <= 0:
            break
        try:
            return _connected(address, target.port, left / (len(tried) - n))
        except TimeoutError:
            message = f"no connection to {to} in time"
        except OSError as wrong:
            message = f"no connection to {to}: {_system_text(wrong)}"
    raise CallFailed(Reason.CONNECT, message)


def _connected(address: Address, port: int, timeout_s: float) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect((str(address), port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        connection.close()
        raise
    return connection


class _Connection:
    """A connection under the deadline of its call, with a bound on what it brings."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._ended = False
        self._socket = connection
        self._deadline = deadline
        self._armed_s = connection.gettimeout() or 0.0
        self._received = 0
        self._looks = 0

    def broken_answer(self) -> CallFailed:
        """What to say of an answer that cannot be read. h11 has one error for an early end and for nonsense."""
        why = "the connection ended before the answer did" if self._ended else "what came back is not HTTP"
        return CallFailed(Reason.NO_ANSWER, why)

    def read(self, most: int) -> bytes:
        self._arm()
        try:
            piece = self._socket.recv(most)
        except TimeoutError as wrong:
            raise _silence() from wrong
        except ssl.SSLError as wrong:
            # TLS 1.3: whether a server takes the client's certificate, it says where its answer would begin.
            reason = Reason.NO_ANSWER if self._received else Reason.TLS
            raise CallFailed(reason, f"the TLS connection broke: {_tls_text(wrong)}") from wrong
        except OSError as wrong:
            raise CallFailed(Reason.NO_ANSWER, f"the connection broke: {_system_text(wrong)}") from wrong
        self._ended = not piece
        self._received += len(piece)
        if self._received > _MAX_RECEIVED:
            raise CallFailed(Reason.NO_ANSWER, "the answer is too large")
        return piece

    def looked(self) -> None:
        """Once more at what came."""
        self._looks += 1
        if self._looks > _MAX_LOOKS:
            raise CallFailed(Reason.NO_ANSWER, "the answer comes in too many small pieces")

    def write(self, message: bytes) -> None:
        """Raises OSError if the other side takes no more, CallFailed if it is too slow."""
        view = memoryview(message)
        while view:
            self._arm()
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError as wrong:
                raise _silence() from wrong

    def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        try:
            self._armed_s = max(0.001, self._deadline.left())
            self._socket.settimeout(self._armed_s)
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        except OSError as wrong:
            raise CallFailed(Reason.TLS, f"no TLS connection to {host}: {_tls_text(wrong)}") from wrong

    def close(self) -> None:
        self._socket.close()

    def _arm(self) -> None:
        """What the socket may wait for at most. To set it is a call of the system, so a hundredth is not corrected."""
        left = self._deadline.left()
        if left <= 0:
            raise _silence()
        if not left <= self._armed_s <= left + _EXACT_S:
            self._socket.settimeout(left)
            self._armed_s = left


def _silence() -> CallFailed:
    return CallFailed(Reason.NO_ANSWER, "no answer in time", timed_out=True)


def _tls_text(wrong: OSError) -> str:
    if isinstance(wrong, ssl.SSLCertVerificationError):
        return f"certificate: {wrong.verify_message}"
    if isinstance(wrong, TimeoutError):
        return "not in time"
    if isinstance(wrong, ssl.SSLError):
        return (wrong.reason or "broken off").replace("_", " ").lower()
    return _system_text(wrong)


def _system_text(wrong: OSError) -> str:
    number = wrong.errno
    return os.strerror(number).lower() if isinstance(number, int) and number in errno.errorcode else "broken off"
