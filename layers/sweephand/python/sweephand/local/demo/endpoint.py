"""The demo's endpoint: an HTTP server on loopback that answers at once, on the third attempt, or slowly.

It records when each request arrives. The demo computes the lateness from this clock, not from the service's figures.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import OrderedDict, deque
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2

from sweephand.local.aws.launcher import LOOPBACK
from sweephand.local.folder import read_json, write_private

if TYPE_CHECKING:
    from sweephand.base.sources import Clock
    from sweephand.local.folder import StateFolder

FILE = "demo.json"
KEPT_ARRIVALS = 20_000
KEPT_RUNS = 5_000
FAILURES_OF_FLAKY = 2
SLOW_S = 3.0


class Book:
    """The arrivals in order, and the number of refusals of each run. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrivals: deque[dict[str, Any]] = deque(maxlen=KEPT_ARRIVALS)
        self._count = 0
        self._refusals: OrderedDict[str, int] = OrderedDict()

    def note(self, run_id: str, attempt: int, at_ms: int) -> None:
        with self._lock:
            self._count += 1
            self._arrivals.append({"number": self._count, "runId": run_id, "attempt": attempt, "atMs": at_ms})

    def after(self, number: int) -> list[dict[str, Any]]:
        """Returns the arrivals with a greater number."""
        with self._lock:
            return [arrival for arrival in self._arrivals if arrival["number"] > number]

    def refuses(self, run_id: str) -> bool:
        """Returns True if this request of the run must fail."""
        with self._lock:
            refused = self._refusals.get(run_id, 0)
            if refused >= FAILURES_OF_FLAKY:
                return False
            self._refusals[run_id] = refused + 1
            while len(self._refusals) > KEPT_RUNS:
                self._refusals.popitem(last=False)
            return True


class DemoEndpoint:
    """The endpoint below `url`: POST /sync, /flaky, /slow; GET /arrivals?after=<number>."""

    def __init__(self, clock: Clock, state: str, port: int) -> None:
        """Opens the endpoint. state: its stack's folder. port: 0 for a free one. Raises OSError if it is taken."""
        self.book = Book()

        class Handler(_Handler):
            book = self.book
            owner = state
            time = clock

        self._server = _Server((LOOPBACK, port), Handler)
        self.port = int(self._server.server_address[1])
        self.url = f"http://{LOOPBACK}:{self.port}"
        # Bound but never listening, so that every connection is refused while this process lives.
        self._closed = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._closed.bind((LOOPBACK, 0))
        self.closed_url = f"http://{LOOPBACK}:{self._closed.getsockname()[1]}"
        threading.Thread(target=self._server.serve_forever, name="demo endpoint", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._closed.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores callers that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    book: Book
    owner: str
    time: Clock

    def do_POST(self) -> None:
        at_ms = int(self.time.now().timestamp() * 1000)
        run_id = self.headers.get("Sweephand-Run-Id", "")
        attempt = self.headers.get("Sweephand-Attempt", "")
        self.book.note(run_id, int(attempt) if attempt.isdigit() else 0, at_ms)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/slow":
            self.time.sleep(SLOW_S)
        if self.path == "/flaky" and self.book.refuses(run_id):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"done": False})
        else:
            self._answer(HTTPStatus.OK, {"done": True})

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/arrivals":
            number = parse_qs(address.query).get("after", ["0"])[0]
            self._answer(HTTPStatus.OK, {"items": self.book.after(int(number) if number.isdigit() else 0)})
        elif address.path == "/about":
            self._answer(HTTPStatus.OK, {"demoOf": self.owner})
        else:
            self._answer(HTTPStatus.NOT_FOUND, {})

    def _answer(self, status: HTTPStatus, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Writes nothing: the ledger is the log."""


def standing(folder: StateFolder) -> tuple[str, str] | None:
    """Returns (url, closed url) of the endpoint that another process runs for this stack; None without one."""
    kept = read_json(folder.root / FILE)
    if kept is None:
        return None
    try:
        about = httpx2.get(f"{kept['url']}/about", trust_env=False, timeout=2.0).json()
    except (httpx2.HTTPError, ValueError):
        return None
    return (kept["url"], kept["closedUrl"]) if about == {"demoOf": str(folder.root)} else None


def open_endpoint(folder: StateFolder, clock: Clock) -> DemoEndpoint:
    """Opens an endpoint on the previous port, so that the demo's jobs still reach it, or on a free one."""
    kept = read_json(folder.root / FILE)
    wanted = 0 if kept is None else int(urlsplit(kept["url"]).port or 0)
    try:
        endpoint = DemoEndpoint(clock, str(folder.root), wanted)
    except OSError:
        endpoint = DemoEndpoint(clock, str(folder.root), 0)
    write_private(folder.root / FILE, {"url": endpoint.url, "closedUrl": endpoint.closed_url})
    return endpoint
