"""An endpoint of your own: answers each call of a job, and prints what it says.

python3 examples/own_endpoint/endpoint.py [--port 9000]      standard library only; Ctrl-C ends it
"""

from __future__ import annotations

import argparse
import json
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Endpoint(BaseHTTPRequestHandler):
    """An endpoint that may be called twice for one run, because a connection can break after the work was done.

    The run's id is the same each time, so it is enough to remember it: here in a set; in a real service, in a row that
    is written together with the work.
    """

    done: set[str]

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "null")
        run_id = self.headers["Idempotency-Key"]
        planned = datetime.fromisoformat(self.headers["Sweephand-Planned-At"])
        late_ms = round((datetime.now(UTC) - planned).total_seconds() * 1000)
        again = run_id in self.done
        self.done.add(run_id)
        print(
            f"planned {planned:%H:%M:%S}  {late_ms} ms late  attempt {self.headers['Sweephand-Attempt']}  {payload}"
            + ("  (done before)" if again else ""),
            flush=True,
        )
        answer = json.dumps({"done": not again}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Writes nothing: the line above says more."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000, help="0 takes a free one (default 9000)")
    Endpoint.done = set()
    with ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Endpoint) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    main()
