"""Makes one guarded HTTP exchange: only to checked addresses, under one deadline, and with a limit on the answer.

httpcore2 speaks HTTP; its network backend connects only to what the guard has checked. There is no cookie jar, proxy,
netrc, redirect or rewritten URL that tenants could share. Each call has its own connection: after Lambda's freeze, an
idle one may be broken, and a POST on it may or may not be lost. Import this module only for the first call (decision
0097).
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
from typing import Any

import certifi
import httpcore2

from sweephand.base.records import dataclass
from sweephand.domain.run import Reason
from sweephand.server.security.guard import Address, CallFailed, Deadline, Outbound, Target, resolve

MAX_BODY = 65_536
_MAX_RECEIVED = 524_288
"""The most bytes of one exchange, including heads, 1xx answers and chunk framing."""
_MAX_READS = 12_288
"""The most reads of one answer. Each costs CPU, whether it finds a chunk, a 1xx answer or nothing new.

They suffice for a chunk every ten milliseconds of the longest call, or for 64 KB in chunks of six bytes.
"""
_PIECE = 65_536
_MAX_ADDRESSES = 6
_NAMES = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUES = re.compile(r"[\t -~]*", re.ASCII)
_TARGET = re.compile(r"[!-~]+", re.ASCII)
_EACH_ANSWER = b"HTTP/1."
"""The beginning of each 1xx answer and of the final one."""
_context_lock = threading.Lock()
# At DEBUG, httpcore2 logs the values of headers.
logging.getLogger("httpcore2").setLevel(logging.INFO)


@dataclass(frozen=True)
class Answer:
    """An answer. body: raw, at most MAX_BODY bytes. failure: why it ended early; None if it is whole or we cut it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    failure: CallFailed | None = None

    def header(self, name: str) -> str | None:
        """Returns the first value. name: in lower case."""
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
    """Sends one request and returns its answer, even if that is a redirect.

    headers: checked, ASCII; Host, Connection and Content-Length are added. with_credentials: some of them are secret.
    ssl_context: one with a client certificate; None for the shared one. Raises only CallFailed, whatever the network or
    the endpoint does.
    """
    if outbound.network is not None:
        answered: Answer = outbound.network(target, method, headers, content)
        return answered
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
    """Returns the process's shared context for these authorities, because creating one takes 16 ms of CPU."""
    with _context_lock:
        return _shared(authorities)


def new_ssl_context(authorities: str | None) -> ssl.SSLContext:
    """Creates a context. authorities: as PEM; None for those of certifi."""
    trusted = {"cafile": certifi.where()} if authorities is None else {"cadata": authorities}
    return ssl.create_default_context(**trusted)  # type: ignore[arg-type]


_shared = functools.lru_cache(maxsize=8)(new_ssl_context)


def _request(
    method: str, target: Target, headers: Sequence[tuple[str, str]], content: bytes | None
) -> httpcore2.Request:
    """Returns the request. Raises CallFailed for a header that would end its line, because its value may be foreign."""
    sent = [("Host", target.host_header), ("Connection", "close"), *headers]
    if content is not None or method in {"POST", "PUT", "PATCH"}:
        sent.append(("Content-Length", str(len(content or b""))))
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
    return CallFailed(Reason.GUARD, "a header contains a character that headers cannot contain")


def _answer(response: httpcore2.Response, stream: _BoundedStream) -> Answer:
    """Reads at most MAX_BODY bytes of the body. Notes the failure if the body ended early and we did not cut it."""
    stream.head_has_come = True
    headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers)
    body, failure = bytearray(), None
    try:
        for piece in response.iter_stream():
            stream.count_reads()
            body += piece
            if len(body) >= MAX_BODY:
                break
    except CallFailed as wrong:
        failure = wrong
    except httpcore2.RemoteProtocolError:
        failure = stream.broken_answer()
    return Answer(response.status, headers, bytes(body[:MAX_BODY]), failure)


class _JudgedAddresses(httpcore2.NetworkBackend):
    """A backend that connects only to the checked addresses, whatever host it is asked for."""

    stream: _BoundedStream

    def __init__(self, host: str, addresses: Sequence[Address], deadline: Deadline) -> None:
        self._host = host
        self._addresses = addresses[:_MAX_ADDRESSES]
        self._deadline = deadline

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore2.NetworkStream:  # noqa: ARG002
        """Returns a stream to the first address that answers. The remaining addresses share the remaining time."""
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
    """A connection with the call's deadline and a limit on what it returns. httpcore2 limits only single reads.

    head_has_come: True once the head is read; then the reader of the body counts its pieces.
    """

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self.head_has_come = False
        self._socket = connection
        self._deadline = deadline
        self._piece: bytes | None = None
        self._received = 0
        self._reads = 0

    def broken_answer(self) -> CallFailed:
        """Returns why an answer cannot be read. httpcore2 has one error for an early end and for invalid bytes."""
        early = self._piece == b""
        why = "the connection ended before the answer did" if early else "what came back is not HTTP"
        return CallFailed(Reason.NO_ANSWER, why)

    def count_reads(self, times: int = 1) -> None:
        """Counts the reads of the answer. Raises CallFailed if it comes in too many pieces."""
        self._reads += times
        if self._reads > _MAX_READS:
            raise CallFailed(Reason.NO_ANSWER, "the answer comes in too many small pieces")

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the deadline rules
        if not self.head_has_come and self._piece:
            # The last piece held only 1xx answers, or the beginning of a head.
            self.count_reads(self._piece.count(_EACH_ANSWER))
        self.count_reads()
        self._arm()
        try:
            piece = self._socket.recv(min(max_bytes, _PIECE))
        except TimeoutError as wrong:
            raise _silence() from wrong
        except ssl.SSLError as wrong:
            # With TLS 1.3, a server refuses the client's certificate only where its answer would begin.
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
                # httpcore2 then reads the answer, because some servers refuse a body before they have read it.
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
        """Limits the next operation of the socket to the remaining time."""
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
