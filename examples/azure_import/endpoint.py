"""A target for jobs that came from Azure: prints each call, and answers 200.

python3 examples/azure_import/endpoint.py [--port 9000]      standard library only; Ctrl-C ends it
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Endpoint(BaseHTTPRequestHandler):
    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        names = ("x-ms-scheduler-jobcollectionid", "x-ms-scheduler-jobid", "x-ms-scheduler-expectedexecutiontime")
        told = [self.headers.get(name) or "-" for name in names]
        print(f"{self.command} {self.path}  {'  '.join(told)}  {body}", flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 - the names are those of http.server

    def log_message(self, *_: object) -> None:
        """Prints nothing: `answer` says more."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000, help="0 takes a free one (default 9000)")
    with ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Endpoint) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    main()
