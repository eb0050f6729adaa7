"""A root URL on loopback for an HTTP API that the emulator serves only below a long path.

Forwards method, target, headers and body byte for byte. It refuses only what API Gateway itself refuses before it calls
a function: violations of HTTP/1.1 (400), heads over 10,240 bytes (431), bodies over 10 MB (413). It answers 503 while
the emulator does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Sequence

MAX_HEAD_BYTES = 10_240
MAX_BODY_BYTES = 10_000_000
IDLE_S = 75.0
REQUEST_WITHIN_S = 60.0
ANSWER_WITHIN_S = 30.0  # as API Gateway; no function of the template may take longer to answer a request
# If all workers of a function are busy, each further request makes the emulator start another one, for a second of CPU.
# A burst of 25 took half a minute. If only a few are passed on at once, the others wait but are answered sooner.
AT_ONCE = 4
LINGER_S = 5.0
CHUNK = 65_536

# Headers of a connection, not of the message (RFC 9110, 7.6.1); Host and Content-Length are set again.
HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect"}
)
PER_CONNECTION = HOP_BY_HOP | {b"host", b"content-length"}

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Upstream:
    """The address of the API: host, port and the path of its root (without a slash at the end)."""

    host: str
    port: int
    prefix: str


@dataclass(frozen=True)
class Request:
    method: bytes
    target: bytes
    headers: Headers
    body: bytes
    has_body: bool


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Headers
    body: bytes


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.answer = _own_answer(status, message)


class _UpstreamGone(Exception):
    """The connection to the emulator broke."""


def _own_answer(status: int, message: str) -> Answer:
    body = b'{"message":"%s"}' % message.encode()
    headers = [(b"Content-Type", b"application/json"), (b"Content-Length", str(len(body)).encode())]
    return Answer(status, headers, body)


def path_and_query(target: bytes) -> bytes | None:
    """Returns the target in origin form (`/path?query`), None for forms without a path (RFC 9112, 3.2)."""
    if target.startswith(b"/"):
        return target
    scheme, separator, rest = target.partition(b"://")
    if not separator or scheme.lower() not in {b"http", b"https"}:
        return None
    authority_end = next((index for index, byte in enumerate(rest) if byte in b"/?#"), len(rest))
    path = rest[authority_end:]
    return path if path.startswith(b"/") else b"/" + path


def end_to_end(headers: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Returns the headers without those of a connection, including those that Connection names."""
    named = {
        token.strip().lower() for name, value in headers if name.lower() == b"connection" for token in value.split(b",")
    }
    return [
        (name, value) for name, value in headers if name.lower() not in PER_CONNECTION and name.lower() not in named
    ]


class _Peer:
    """One TCP connection and its HTTP state."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, role: type[h11.CLIENT | h11.SERVER]
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.http = h11.Connection(role, max_incomplete_event_size=MAX_HEAD_BYTES if role is h11.SERVER else 65_536)

    async def event(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            event = self.http.next_event()
            if event is not h11.NEED_DATA:
                assert not isinstance(event, type) or event is h11.PAUSED
                return event
            if self.http.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
            self.http.receive_data(await self.reader.read(CHUNK))

    async def send(self, *events: h11.Event) -> None:
        self.writer.write(b"".join(self.http.send(event) or b"" for event in events))
        await self.writer.drain()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class _Exchange:
    """A client's connection and its own connection to the emulator, so that clients do not affect each other."""

    def __init__(self, client: _Peer, upstream: Upstream, places: asyncio.Semaphore) -> None:
        self._client = client
        self._upstream = upstream
        self._places = places
        self._backend: _Peer | None = None

    async def run(self) -> None:
        try:
            while await self._one():
                self._client.http.start_next_cycle()
        finally:
            # Close both before waiting, because a cancellation may interrupt a wait.
            peers = [peer for peer in (self._backend, self._client) if peer is not None]
            for peer in peers:
                peer.writer.close()
            for peer in peers:
                await peer.close()

    async def _one(self) -> bool:
        """Answers one request. Returns True if another may follow on this connection."""
        try:
            request = await self._request()
            if request is None:
                return False
            answer = await self._forward(request)
        except _Refused as refused:
            await self._answer(refused.answer, last=True)
            return False
        except h11.RemoteProtocolError as error:
            if self._client.http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                status = error.error_status_hint
                text = "Request Header Fields Too Large" if status == 431 else "Bad Request"
                await self._answer(_own_answer(status, text), last=True)
            return False
        await self._answer(answer)
        return self._client.http.our_state is h11.DONE and self._client.http.their_state is h11.DONE

    async def _request(self) -> Request | None:
        """Returns the next complete request; None if the client has disconnected."""
        async with asyncio.timeout(IDLE_S):
            head = await self._client.event()
        if not isinstance(head, h11.Request):
            return None
        target = path_and_query(head.target)
        if target is None:
            raise _Refused(400, "Bad Request")
        raw = list(head.headers.raw_items())
        if len(head.target) + sum(len(name) + len(value) for name, value in raw) > MAX_HEAD_BYTES:
            raise _Refused(431, "Request Header Fields Too Large")
        if any(name == b"content-length" and int(value) > MAX_BODY_BYTES for name, value in head.headers):
            raise _Refused(413, "Request Entity Too Large")
        has_body = any(name in {b"content-length", b"transfer-encoding"} for name, _ in head.headers)
        parts: list[bytes] = []
        size = 0
        async with asyncio.timeout(REQUEST_WITHIN_S):
            async for part in self._body():
                size += len(part)
                if size > MAX_BODY_BYTES:
                    raise _Refused(413, "Request Entity Too Large")
                parts.append(part)
        return Request(head.method, target, end_to_end(raw), b"".join(parts), has_body)

    async def _body(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self._client.event(), h11.Data):
            yield bytes(event.data)
        if not isinstance(event, h11.EndOfMessage):
            raise h11.RemoteProtocolError("the request ended too early")

    async def _forward(self, request: Request) -> Answer:
        """Returns the emulator's answer. Reconnects once if the emulator has closed an idle connection."""
        kept = self._backend is not None
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S), self._places:
                try:
                    return await self._ask(request)
                except (OSError, _UpstreamGone):
                    await self._leave()
                    if not kept:
                        raise
                    return await self._ask(request)
        except TimeoutError:
            await self._leave()
            return _own_answer(503, "Service Unavailable")
        except (OSError, _UpstreamGone, h11.ProtocolError):
            await self._leave()
            return _own_answer(503, "Service Unavailable")

    async def _ask(self, request: Request) -> Answer:
        if self._backend is None:
            reader, writer = await asyncio.open_connection(self._upstream.host, self._upstream.port)
            self._backend = _Peer(reader, writer, h11.CLIENT)
        backend = self._backend
        headers = [(b"Host", f"{self._upstream.host}:{self._upstream.port}".encode()), *request.headers]
        if request.has_body:
            headers.append((b"Content-Length", str(len(request.body)).encode()))
        target = self._upstream.prefix.encode() + request.target
        try:
            head = h11.Request(method=request.method, target=target, headers=headers)
            await backend.send(head, *([h11.Data(data=request.body)] if request.body else []), h11.EndOfMessage())
            answer = await self._read(backend)
        except h11.RemoteProtocolError as error:
            raise _UpstreamGone from error
        if backend.http.our_state is h11.DONE and backend.http.their_state is h11.DONE:
            backend.http.start_next_cycle()
        else:
            await self._leave()
        return answer

    async def _read(self, backend: _Peer) -> Answer:
        head = await backend.event()
        while isinstance(head, h11.InformationalResponse):
            head = await backend.event()
        if not isinstance(head, h11.Response):
            raise _UpstreamGone
        parts: list[bytes] = []
        while isinstance(event := await backend.event(), h11.Data):
            parts.append(bytes(event.data))
        raw = list(head.headers.raw_items())
        kept = [(name, value) for name, value in raw if name.lower() == b"content-length"]
        return Answer(head.status_code, end_to_end(raw) + kept, b"".join(parts))

    async def _leave(self) -> None:
        backend, self._backend = self._backend, None
        if backend is not None:
            await backend.close()

    async def _answer(self, answer: Answer, *, last: bool = False) -> None:
        """Writes the answer. last: closes the connection after it, even if the request has not fully arrived."""
        headers = list(answer.headers)
        bodiless = answer.status in {204, 304}
        if not bodiless and not any(name.lower() == b"content-length" for name, _ in headers):
            headers.append((b"Content-Length", str(len(answer.body)).encode()))
        if last:
            headers.append((b"Connection", b"close"))
        head = h11.Response(status_code=answer.status, headers=headers, reason=_reason(answer.status))
        body = [h11.Data(data=answer.body)] if answer.body and not bodiless else []
        await self._client.send(head, *body, h11.EndOfMessage())
        if last:
            await self._drain()

    async def _drain(self) -> None:
        """Reads the rest of the request. If we closed at once, the client's system would discard our answer."""
        self._client.writer.write_eof()
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(LINGER_S):
                while await self._client.reader.read(CHUNK):
                    pass


def _reason(status: int) -> bytes:
    from http import HTTPStatus  # noqa: PLC0415

    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""


class Front:
    """A server in its own thread, on a socket that is already bound."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._upstream: Upstream | None = None
        self._places = asyncio.Semaphore(AT_ONCE)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def serve(self, upstream: Upstream) -> None:
        """Starts the server. Returns when it listens."""
        self._upstream = upstream
        self._socket.listen(128)
        listening = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listening,), name="front", daemon=True)
        self._thread.start()
        listening.wait()

    def _run(self, listening: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(listening))
        self._loop.close()

    async def _serve(self, listening: threading.Event) -> None:
        server = await asyncio.start_server(self._connection, sock=self._socket)
        listening.set()
        await self._stop.wait()
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for _ in range(3):  # closed connections still have callbacks in the loop
            await asyncio.sleep(0)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self._upstream is not None
        exchange = _Exchange(_Peer(reader, writer, h11.SERVER), self._upstream, self._places)
        # A client that disconnects, stays silent or is interrupted by our stop ends only its own connection.
        with contextlib.suppress(OSError, TimeoutError, h11.LocalProtocolError, asyncio.CancelledError):
            await exchange.run()

    def close(self) -> None:
        """Stops the server and frees the port."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        else:
            self._loop.close()
        self._socket.close()
