"""The documentation's site for the demo: built in the background by `make site`, and served on loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sweephand.local.settings import CHECKOUT

BUILT = CHECKOUT / ".cache" / "site"
COMPLETE = BUILT / "llms.txt"
"""The last file that a build writes."""
PORT = 8091
"""The port of the site. If it is in use, the site takes any free port."""
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>Sweephand</title><p>{0}</p></html>"""
BEING_BUILT = "The documentation is being built. This takes about half a minute, once."
NOT_BUILT = "The documentation could not be built: <code>make site</code> says why."


class Site:
    """The served site. `url` is its address."""

    def __init__(self) -> None:
        # At low priority, so that the demo does not slow down; in a session of its own, so that close() ends all of it.
        self._build = subprocess.Popen(
            ["nice", "-n", "15", "make", "--silent", "site"],  # noqa: S607 - of the PATH, as the make that runs this
            cwd=CHECKOUT,
            env={name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL"}},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._server = self._listening()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _listening(self) -> ThreadingHTTPServer:
        build = self._build

        class Pages(SimpleHTTPRequestHandler):
            """Serves the built site; until there is one, a page that reloads itself."""

            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments, directory=str(BUILT))

            def do_GET(self) -> None:
                if COMPLETE.exists():
                    super().do_GET()
                    return
                page = PAGE.format(NOT_BUILT if build.poll() else BEING_BUILT).encode()
                self.send_response(503)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_: object) -> None:
                """Says nothing: the terminal shows the ledger."""

        try:
            return ThreadingHTTPServer(("127.0.0.1", PORT), Pages)
        except OSError:
            return ThreadingHTTPServer(("127.0.0.1", 0), Pages)

    def close(self) -> None:
        """Stops serving, and the build if it has not ended."""
        self._server.shutdown()
        self._server.server_close()
        if self._build.poll() is None:
            os.killpg(self._build.pid, signal.SIGTERM)
        self._build.wait()
