"""The transport over real sockets of this machine."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sweephand.sdk import AsyncSweephand, Retries, Sweephand, TransportError

ONCE = Retries(tries=1, timeout_s=0.2)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.endswith("/slow"):
            self.server.asked.wait(5)
        body = json.dumps({"name": self.path, "id": self.headers["Authorization"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as there:
        there.asked = threading.Event()
        threading.Thread(target=there.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{there.server_port}"
        there.asked.set()
        there.shutdown()


def test_both_clients_speak_http(server):
    async def main():
        async with AsyncSweephand(server, client_id="me", secret="s") as sh:
            return await sh.jobs.get("j-1")

    with Sweephand(server, client_id="me", secret="s") as sh:
        job = sh.jobs.get("j-1")

    assert job == asyncio.run(main())
    assert job.name == "/v1/jobs/j-1"


def test_no_answer_in_time_is_a_timeout_after_sending(server):
    with Sweephand(server, client_id="me", secret="s", retries=ONCE) as sh, pytest.raises(TransportError) as failed:
        sh.jobs.get("slow")

    assert (failed.value.timed_out, failed.value.sent) == (True, True)


def test_a_refused_connection_was_certainly_not_sent():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with Sweephand(url, client_id="me", secret="s", retries=ONCE) as sh, pytest.raises(TransportError) as failed:
            sh.jobs.get("j-1")

    assert (failed.value.timed_out, failed.value.sent) == (False, False)
    assert url in str(failed.value)
