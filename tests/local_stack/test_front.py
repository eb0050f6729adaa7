"""The front passes requests on as they are, whatever they are, and outlives them."""

from __future__ import annotations

import contextlib
import socket
import threading

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.local.aws.launcher import bind
from sweephand.local.front import AT_ONCE, MAX_BODY_BYTES, Front, Upstream, path_and_query

PREFIX = "/_aws/execute-api/abc/$default"


class Recorder:
    """A server that keeps each request as it stood on the wire and answers with what `answers` says."""

    def __init__(self) -> None:
        self.seen: list[tuple[h11.Request, bytes]] = []
        self.connections = 0
        self.answer = (
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Odd:  a ,b\r\nset-cookie: a\r\nset-cookie: b\r\n\r\nok"
        )
        self.hang_up_after_answer = False
        self.most_at_once = 0
        self._at_once = 0
        self._held: threading.Semaphore | None = None
        self._counting = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        http = h11.Connection(h11.SERVER)
        with connection, contextlib.suppress(OSError, h11.ProtocolError):
            while True:
                head, body = None, b""
                while not isinstance(event := http.next_event(), h11.EndOfMessage):
                    if event is h11.NEED_DATA:
                        http.receive_data(connection.recv(65536))
                    elif isinstance(event, h11.Request):
                        head = event
                    elif isinstance(event, h11.Data):
                        body += bytes(event.data)
                    else:
                        return
                assert head is not None
                self.seen.append((head, body))
                self._wait()
                connection.sendall(self.answer)
                if self.hang_up_after_answer:
                    return
                http = h11.Connection(h11.SERVER)

    def hold(self) -> None:
        """Holds each answer from now on until it is let go."""
        self._held = threading.Semaphore(0)

    def let_one_go(self) -> None:
        assert self._held is not None
        self._held.release()

    def _wait(self) -> None:
        if self._held is None:
            return
        with self._counting:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        self._held.acquire(timeout=30)
        with self._counting:
            self._at_once -= 1

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def recorder():
    recorder = Recorder()
    yield recorder
    recorder.close()


@pytest.fixture
def front(recorder):
    front = Front(bind(0, name="PORT"))
    front.serve(Upstream("127.0.0.1", recorder.port, PREFIX))
    yield front
    front.close()


def exchange(front: Front, raw: bytes, *, close: bool = True) -> bytes:
    """Returns all that the front answers to these bytes until it, or we, close."""
    with socket.create_connection(("127.0.0.1", front.port), timeout=60) as connection:
        connection.sendall(raw)
        if close:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(65536):
                answer += part
        return answer


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "target",
    [
        b"/",
        b"//v1//jobs",
        b"/v1/jobs/../../etc/passwd",
        b"/v1/%2e%2e/%2F%00%ff%zz",
        b"/v1/jobs?limit=1&limit=2&x=%E2%82%AC+a%20b&&=",
        b"/v1/jobs?",
        b"/v1/a;b=c/:@!$&'()*+,~|^`{}\"<>\\",
        b"/_ministack/reset",
        b"/v1/" + b"a" * 9_000,
    ],
)
def test_a_request_target_is_forwarded_unchanged(front, recorder, target):
    answer = exchange(front, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")

    assert status_of(answer) == 200
    assert recorder.seen[0][0].target == PREFIX.encode() + target


@pytest.mark.parametrize("method", [b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"BREW", b"get"])
def test_a_method_is_forwarded_unchanged(front, recorder, method):
    assert status_of(exchange(front, method + b" /x HTTP/1.1\r\nHost: x\r\n\r\n")) == 200
    assert recorder.seen[0][0].method == method


def test_headers_keep_their_order_case_and_duplicates(front, recorder):
    exchange(
        front,
        b"GET / HTTP/1.1\r\nHost: evil.execute-api.localhost\r\nX-b: 1\r\nx-A: \xff\xe2 \r\nX-b: 2\r\n"
        b"Authorization: Basic eDp5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nUpgrade: h2c\r\nTE: x\r\n\r\n",
    )

    raw = list(recorder.seen[0][0].headers.raw_items())
    assert raw == [
        (b"Host", f"127.0.0.1:{recorder.port}".encode()),
        (b"X-b", b"1"),
        (b"x-A", b"\xff\xe2"),
        (b"X-b", b"2"),
        (b"Authorization", b"Basic eDp5"),
    ]


def test_the_answer_is_returned_unchanged(front, recorder):
    answer = exchange(front, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    head, body = answer.split(b"\r\n\r\n", 1)
    assert body == b"ok"
    assert b"X-Odd: a ,b\r\nset-cookie: a\r\nset-cookie: b" in head


@pytest.mark.parametrize("size", [0, 1, 300_000, MAX_BODY_BYTES])
def test_a_body_is_forwarded_byte_for_byte(front, recorder, size):
    body = bytes(range(256)) * (size // 256 + 1)
    body = body[:size]

    answer = exchange(front, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size + body)

    assert status_of(answer) == 200
    assert recorder.seen[0][1] == body


def test_a_chunked_body_is_forwarded_with_its_length(front, recorder):
    exchange(
        front, b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    )

    head, body = recorder.seen[0]
    assert body == b"abcde"
    assert (b"content-length", b"5") in list(head.headers)


def test_a_request_without_a_body_gets_no_length(front, recorder):
    exchange(front, b"POST / HTTP/1.1\r\nHost: x\r\n\r\n")

    assert "content-length" not in {name.decode() for name, _ in recorder.seen[0][0].headers}


def test_a_body_over_10_mb_is_refused_and_the_answer_arrives(front, recorder):
    raw = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n" + b"a" * 20_000_000

    answer = exchange(front, raw)

    assert status_of(answer) == 413
    assert recorder.seen == []


@pytest.mark.parametrize("length", [b"10000001", b"10000000000000000000"])
def test_a_body_announced_as_too_long_is_refused_before_it_is_sent(front, recorder, length):
    answer = exchange(front, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + b"\r\n\r\n", close=False)

    assert status_of(answer) == 413
    assert recorder.seen == []


def test_a_burst_is_forwarded_a_few_requests_at_a_time_and_all_are_answered(front, recorder):
    recorder.hold()
    answers = []

    def ask():
        answers.append(status_of(exchange(front, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")))

    threads = [threading.Thread(target=ask) for _ in range(25)]
    for thread in threads:
        thread.start()
    for _ in threads:
        recorder.let_one_go()
    for thread in threads:
        thread.join(timeout=30)

    assert answers == [200] * 25
    assert 1 <= recorder.most_at_once <= AT_ONCE


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /\x80 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"CONNECT evil:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nshort", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"\r\n" * 20 + b"?", 400),
    ],
)
def test_a_malformed_request_is_refused_and_the_next_client_is_served(front, recorder, raw, status):
    assert status_of(exchange(front, raw)) == status
    assert recorder.seen == []
    assert status_of(exchange(front, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) == 200


def test_a_client_that_expects_100_continue_gets_it(front, recorder):
    with socket.create_connection(("127.0.0.1", front.port), timeout=60) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"abc")
        assert b"200 OK" in connection.recv(1000)
    assert recorder.seen[0][1] == b"abc"


def test_one_connection_carries_many_requests_in_order(front, recorder):
    answer = exchange(front, b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(20)))

    assert answer.count(b"HTTP/1.1 200 OK") == 20
    assert [head.target.rsplit(b"/", 1)[1] for head, _ in recorder.seen] == [b"%d" % number for number in range(20)]
    assert recorder.connections == 1


def test_a_request_is_repeated_if_the_emulator_closed_an_idle_connection(front, recorder):
    recorder.hang_up_after_answer = True

    answer = exchange(front, b"GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n")

    assert answer.count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.parametrize("broken", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab", b"nonsense\r\n\r\n"])
def test_a_truncated_answer_becomes_503(front, recorder, broken):
    recorder.answer, recorder.hang_up_after_answer = broken, True

    assert status_of(exchange(front, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) == 503


def test_a_missing_backend_becomes_503(recorder):
    with bind(0, name="PORT") as nobody:
        front = Front(bind(0, name="PORT"))
        front.serve(Upstream("127.0.0.1", nobody.getsockname()[1], PREFIX))
        try:
            assert status_of(exchange(front, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) == 503
        finally:
            front.close()


def test_head_and_204_have_no_body(front, recorder):
    recorder.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n"
    head = exchange(front, b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
    recorder.answer = b"HTTP/1.1 204 No Content\r\n\r\n"
    empty = exchange(front, b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n")

    assert head.endswith(b"content-length: 7\r\n\r\n")
    assert empty == b"HTTP/1.1 204 No Content\r\n\r\n"


def test_an_old_client_without_a_host_header_is_served_and_disconnected(front, recorder):
    answer = exchange(front, b"GET /x HTTP/1.0\r\n\r\n", close=False)

    assert status_of(answer) == 200
    assert answer.endswith(b"ok")


def test_slow_clients_do_not_delay_others(front, recorder):
    with contextlib.ExitStack() as slow:
        for _ in range(50):
            connection = slow.enter_context(socket.create_connection(("127.0.0.1", front.port)))
            connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
        assert status_of(exchange(front, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) == 200


def test_a_client_that_resets_its_connection_disturbs_nobody(front, recorder):
    for _ in range(20):
        connection = socket.create_connection(("127.0.0.1", front.port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.close()

    assert status_of(exchange(front, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) == 200


@settings(max_examples=150, deadline=None)
@given(raw=st.binary(max_size=300))
def test_arbitrary_bytes_close_the_connection_cleanly(any_front, raw):
    answer = exchange(any_front, raw)

    assert answer == b"" or status_of(answer) in {200, 400, 431}


@pytest.fixture(scope="module")
def any_front():
    recorder = Recorder()
    front = Front(bind(0, name="PORT"))
    front.serve(Upstream("127.0.0.1", recorder.port, PREFIX))
    yield front
    front.close()
    recorder.close()


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"/a?b", b"/a?b"),
        (b"http://evil/a?b", b"/a?b"),
        (b"HTTPS://evil", b"/"),
        (b"http://evil?x=/y", b"/?x=/y"),
        (b"*", None),
        (b"evil:443", None),
        (b"ftp://evil/a", None),
    ],
)
def test_only_the_path_of_a_request_target_selects_the_route(target, path):
    assert path_and_query(target) == path
