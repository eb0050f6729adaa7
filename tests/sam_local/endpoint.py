"""The target of a job: an HTTP server of this machine that notes what reaches it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The name of this machine in containers; see samconfig.toml.
HOST = "host.docker.internal"


@dataclass(frozen=True)
class Received:
    path: str
    run_id: str
    body: bytes


class Endpoint:
    """Answers 200 to every POST. url: as a container has to call it."""

    def __init__(self, address: str) -> None:
        received = self.received = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                received.append(Received(self.path, self.headers["Sweephand-Run-Id"], body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                """Writes nothing. The test looks at `received`."""

        self._server = ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{HOST}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
