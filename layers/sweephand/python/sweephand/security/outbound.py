"""One guarded HTTP exchange: to judged addresses only, under one deadline, with a bound on every byte that comes back.

httpcore without httpx: a third of its import time, and no cookie jar, redirects, proxies, netrc or rewritten URL that
two tenants' calls could share. One connection a call: an idle one is half dead after Lambda's freeze, and a POST that
meets it cannot be told from one that was lost. Import this module at the first call only.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import socket
import ssl
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import certifi
import httpcore

from sweephand.domain.run import Reason
from sweephand.security.guard import Address, CallFailed, Deadline, Outbound, Target, resolve

MAX_BODY = 65_536
_MAX_RECEIVED = 524_288
"""Everything of one exchange: heads, 1xx answers and chunk framing count too."""
_MAX_ADDRESSES = 6

# At DEBUG it writes header values.
logging.getLogger("httpcore").setLevel(logging.INFO)
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
    context = (ssl_context or shared_ssl_context(outbound.authorities)) if target.scheme == "https" else None
    request = httpcore.Request(
        method,
        httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.target),
        headers=[("Host", target.host_header), ("Connection", "close"), *headers, *_length(method, content)],
        content=content,
    )
    network = _JudgedAddresses(target.host, addresses, deadline)
    with httpcore.HTTPConnection(request.url.origin, ssl_context=context, network_backend=network) as connection:
        try:
            response = connection.handle_request(request)
        except (httpcore.ProtocolError, httpcore.NetworkError) as wrong:
            raise network.broken_answer() from wrong
        body, failure = _read_body(response, network)
    return Answer(response.status, _texts(response.headers), body, failure)


def shared_ssl_context(authorities: str | None = None) -> ssl.SSLContext:
    """The process's one context for these authorities: making one takes 16 ms of CPU."""
    with _context_lock:
        return _shared(authorities)


def new_ssl_context(authorities: str | None) -> ssl.SSLContext:
    """authorities: as PEM; None for those of certifi."""
    if authorities is not None:
        return ssl.create_default_context(cadata=authorities)
    return ssl.create_default_context(cafile=certifi.where())


_shared = functools.lru_cache(maxsize=8)(new_ssl_context)


def _length(method: str, content: bytes | None) -> list[tuple[str, str]]:
    if content is None:
        return [("Content-Length", "0")] if method in {"POST", "PUT", "PATCH"} else []
    return [("Content-Length", str(len(content)))]


def _read_body(response: httpcore.Response, network: _JudgedAddresses) -> tuple[bytes, CallFailed | None]:
    """Up to MAX_BODY bytes, and why it ended early if that was not our doing."""
    body = bytearray()
    try:
        for chunk in response.iter_stream():
            body += chunk
            if len(body) >= MAX_BODY:
                break
    except CallFailed as wrong:
        return bytes(body[:MAX_BODY]), wrong
    except (httpcore.ProtocolError, httpcore.NetworkError):
        return bytes(body), network.broken_answer()
    return bytes(body[:MAX_BODY]), None


def _texts(headers: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers)


class _JudgedAddresses(httpcore.NetworkBackend):
    """Connects to the addresses that the guard has judged, whatever host it is asked for."""

    def __init__(self, host: str, addresses: Sequence[Address], deadline: Deadline) -> None:
        self._host = host
        self._addresses = addresses[:_MAX_ADDRESSES]
        self._deadline = deadline
        self._stream: _BoundedStream | None = None

    def broken_answer(self) -> CallFailed:
        """What to say of an answer that cannot be read. httpcore has one error for an early end and for nonsense."""
        early = self._stream is not None and self._stream.ended
        return CallFailed(
            Reason.NO_ANSWER, "the connection ended before the answer did" if early else "what came back is not HTTP"
        )

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002 - only judged addresses count
        port: int,
        *_: Any,
        **__: Any,
    ) -> httpcore.NetworkStream:
        """The first address that answers; those still to be tried share the time that is left."""
        message = f"no connection to {self._host}:{port} in time"
        for tried, address in enumerate(self._addresses):
            left = self._deadline.left()
            if left <= 0:
                break
            try:
                connection = _connected(address, port, left / (len(self._addresses) - tried))
            except TimeoutError:
                message = f"no connection to {self._host}:{port} in time"
            except OSError as wrong:
                message = f"no connection to {self._host}:{port}: {_system_text(wrong)}"
            else:
                self._stream = _BoundedStream(connection, self._deadline)
                return self._stream
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


class _BoundedStream(httpcore.NetworkStream):
    """A connection under the deadline of its call, with a bound on what it brings: httpcore limits single reads."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self.ended = False
        self._socket = connection
        self._deadline = deadline
        self._received = 0

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the deadline rules
        self._arm()
        try:
            piece = self._socket.recv(max_bytes)
        except TimeoutError as wrong:
            raise _silence() from wrong
        except ssl.SSLError as wrong:
            # TLS 1.3: whether a server takes the client's certificate, it says where its answer would begin.
            reason = Reason.NO_ANSWER if self._received else Reason.TLS
            raise CallFailed(reason, f"the TLS connection broke: {_tls_text(wrong)}") from wrong
        except OSError as wrong:
            raise CallFailed(Reason.NO_ANSWER, f"the connection broke: {_system_text(wrong)}") from wrong
        self.ended = not piece
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
                # httpcore then looks for an answer: some servers refuse a body before they have read it.
                raise httpcore.WriteError(_system_text(wrong)) from wrong

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the deadline rules
    ) -> httpcore.NetworkStream:
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
