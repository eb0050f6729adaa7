"""One guarded HTTP exchange: to judged addresses only, under one deadline, with a bound on every byte that comes back.

httpcore2 speaks HTTP; the guard is its network backend. There is no cookie jar, redirect, proxy, netrc or rewritten URL
that tenants could share. One connection serves one call: an idle one is half dead after Lambda's freeze, and a POST
that meets it cannot be told from one that was lost. Import this module at the first call only (decision 0097).
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import re
import socket
import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import certifi
import httpcore2

from sweephand.domain.run import Reason
from sweephand.security.guard import Address, CallFailed, Deadline, Outbound, Target, resolve

MAX_BODY = 65_536
_MAX_RECEIVED = 524_288
"""Everything of one exchange: heads, 1xx answers and chunk framing count too."""
_MAX_LOOKS = 12_288
"""How often one answer is looked at: each look costs CPU, whether it finds a chunk, a 1xx answer or no more yet.
Enough for a chunk every ten milliseconds of the longest call, or for 64 KB in chunks of six bytes."""
_PIECE = 65_536
_MAX_ADDRESSES = 6
_NAMES = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUES = re.compile(r"[\t -~]*", re.ASCII)
_TARGET = re.compile(r"[!-~]+", re.ASCII)
_EACH_ANSWER = b"HTTP/1."
"""Each 1xx answer begins with it, and so does the last one."""
_context_lock = threading.Lock()
# At DEBUG, httpcore2 logs the values of headers.
logging.getLogger("httpcore2").setLevel(logging.INFO)


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
    """Sends one request and reads its answer; redirects are answers like others.

    headers: checked, ASCII; Host, Connection and Content-Length are added. with_credentials: some of them are secret.
    ssl_context: one with a client certificate; None for the shared one.
    Raises CallFailed, and nothing else, for whatever a network or an endpoint does.
    """
    addresses = resolve(target, outbound, deadline, with_credentials=with_credentials)
    context = (ssl_context or shared_ssl_context(outbound.authorities)) if target.scheme == "https" else None
    request = _request(method, target, headers, content)
    network = _JudgedAddresses(target.host, addresses, deadline)
    with httpcore2.HTTPConnection(request.url.origin, ssl_context=context, network_backend=network) as connection:
        try:
            response = connection.handle_request(request)
        except httpcore2.LocalProtocolError as wrong:
            raise _unfit() from wrong
        except httpcore2.RemoteProtocolError as wrong:
            raise network.stream.broken_answer() from wrong
        return _answer(response, network.stream)


def shared_ssl_context(authorities: str | None = None) -> ssl.SSLContext:
    """Returns the process's one context for these authorities: making one takes 16 ms of CPU."""
    with _context_lock:
        return _shared(authorities)


def new_ssl_context(authorities: str | None) -> ssl.SSLContext:
    """Makes a context of its own. authorities: as PEM; None for those of certifi."""
    given = {"cafile": certifi.where()} if authorities is None else {"cadata": authorities}
    return ssl.create_default_context(**given)  # type: ignore[arg-type]


_shared = functools.lru_cache(maxsize=8)(new_ssl_context)


def _request(
    method: str, target: Target, headers: Sequence[tuple[str, str]], content: bytes | None
) -> httpcore2.Request:
    """Raises CallFailed where a header would end its line: it may come from outside."""
    sent = [("Host", target.host_header), ("Connection", "close"), *headers, *_length(method, content)]
    names, values = "".join([name for name, _ in sent]), "".join([value for _, value in sent])
    if not (_NAMES.fullmatch(names) and _VALUES.fullmatch(values) and _TARGET.fullmatch(target.target)):
        raise _unfit()
    return httpcore2.Request(
        method,
        httpcore2.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.target),
        headers=[(name, value.strip()) for name, value in sent],
        content=content,
    )


def _unfit() -> CallFailed:
    return CallFailed(Reason.GUARD, "a header holds what none can hold")


def _length(method: str, content: bytes | None) -> list[tuple[str, str]]:
    if content is None:
        return [("Content-Length", "0")] if method in {"POST", "PUT", "PATCH"} else []
    return [("Content-Length", str(len(content)))]


def _answer(response: httpcore2.Response, stream: _BoundedStream) -> Answer:
    """Reads up to MAX_BODY bytes of body, and says why it ended early if that was not our doing."""
    stream.head_has_come = True
    headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers)
    body, failure = bytearray(), None
    try:
        for piece in response.iter_stream():
            stream.look()
            body += piece
            if len(body) >= MAX_BODY:
                break
    except CallFailed as wrong:
        failure = wrong
    except httpcore2.RemoteProtocolError:
        failure = stream.broken_answer()
    return Answer(response.status, headers, bytes(body[:MAX_BODY]), failure)


class _JudgedAddresses(httpcore2.NetworkBackend):
    """Connects to the addresses that the guard has judged, whatever host it is asked for."""

    stream: _BoundedStream

    def __init__(self, host: str, addresses: Sequence[Address], deadline: Deadline) -> None:
        self._host = host
        self._addresses = addresses[:_MAX_ADDRESSES]
        self._deadline = deadline

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore2.NetworkStream:  # noqa: ARG002
        """Returns a stream to the first address that answers; those still to be tried share the time that is left."""
        to = f"{self._host}:{port}"
        message = f"no connection to {to} in time"
        for n, address in enumerate(self._addresses):
            left = self._deadline.left()
            if left <= 0:
                break
            try:
                connection = _connected(address, port, left / (len(self._addresses) - n))
            except TimeoutError:
                message = f"no connection to {to} in time"
            except OSError as wrong:
                message = f"no connection to {to}: {_system_text(wrong)}"
            else:
                self.stream = _BoundedStream(connection, self._deadline)
                return self.stream
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


class _BoundedStream(httpcore2.NetworkStream):
    """A connection under the deadline of its call, with a bound on what it brings. httpcore2 limits single reads only.

    head_has_come: from then on, the reader of the body counts its pieces.
    """

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self.head_has_come = False
        self._socket = connection
        self._deadline = deadline
        self._piece: bytes | None = None
        self._received = 0
        self._looks = 0

    def broken_answer(self) -> CallFailed:
        """Says why an answer cannot be read. httpcore2 has one error for an early end and for nonsense."""
        early = self._piece == b""
        why = "the connection ended before the answer did" if early else "what came back is not HTTP"
        return CallFailed(Reason.NO_ANSWER, why)

    def look(self, times: int = 1) -> None:
        """Counts how often the answer was looked at. Raises CallFailed if it comes in too many pieces."""
        self._looks += times
        if self._looks > _MAX_LOOKS:
            raise CallFailed(Reason.NO_ANSWER, "the answer comes in too many small pieces")

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the deadline rules
        if not self.head_has_come and self._piece:
            # All of it was 1xx answers, or the beginning of a head.
            self.look(self._piece.count(_EACH_ANSWER))
        self.look()
        self._arm()
        try:
            piece = self._socket.recv(min(max_bytes, _PIECE))
        except TimeoutError as wrong:
            raise _silence() from wrong
        except ssl.SSLError as wrong:
            # TLS 1.3: whether a server takes the client's certificate, it says where its answer would begin.
            reason = Reason.NO_ANSWER if self._received else Reason.TLS
            raise CallFailed(reason, f"the TLS connection broke: {_tls_text(wrong)}") from wrong
        except OSError as wrong:
            raise CallFailed(Reason.NO_ANSWER, f"the connection broke: {_system_text(wrong)}") from wrong
        self._piece = piece
        self._received += len(piece)
        if self._received > _MAX_RECEIVED:
            raise CallFailed(Reason.NO_ANSWER, "the answer is too large")
        return piece

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - the deadline rules
        view = memoryview(buffer)
        while view:
            self._arm()
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError as wrong:
                raise _silence() from wrong
            except OSError as wrong:
                # httpcore2 then looks for an answer: some servers refuse a body before they have read it.
                raise httpcore2.WriteError(_system_text(wrong)) from wrong

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the deadline rules
    ) -> httpcore2.NetworkStream:
        try:
            self._socket.settimeout(max(0.001, self._deadline.left()))
            self._socket = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
        except OSError as wrong:
            self.close()
            raise CallFailed(Reason.TLS, f"no TLS connection to {server_hostname}: {_tls_text(wrong)}") from wrong
        return self

    def close(self) -> None:
        self._socket.close()

    def _arm(self) -> None:
        """Gives the socket the time that is left."""
        left = self._deadline.left()
        if left <= 0:
            raise _silence()
        self._socket.settimeout(left)


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
