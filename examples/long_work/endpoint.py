"""An endpoint whose work takes longer than a call: it answers 202 at once and reports the result later.

python3 examples/long_work/endpoint.py --port 9000      needs only the standard library, and no credential
"""

from __future__ import annotations

import argparse
import json
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

WAITS_S = (0, 1, 2, 4, 8, 16, 32, 64)
"""The wait before each try to report. If the last one fails, the run ends at its deadline."""


def work(payload: dict[str, Any]) -> dict[str, Any]:
    """Pretends to do long work. Returns the result in the form that Sweephand expects."""
    time.sleep(payload["seconds"])
    if payload["rows"] < 0:
        raise ValueError("rows cannot be negative")
    return {"success": True, "message": f"{payload['rows']} rows"}


def report(url: str, token: str, result: dict[str, Any]) -> None:
    """Sends the result until it is accepted. The token is valid for this run only."""
    headers = {"Content-Type": "application/json", "Sweephand-Callback-Token": token}
    for wait_s in WAITS_S:
        time.sleep(wait_s)
        request = urllib.request.Request(url, json.dumps(result).encode(), headers, method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=30):
                return
        except urllib.error.HTTPError as refused:
            if refused.code < 500 and refused.code != 429:  # the run has ended, or has another result
                print("refused:", refused.read().decode(), flush=True)
                return
        except OSError as error:
            print("not reported yet:", error, flush=True)


def work_and_report(url: str, token: str, payload: dict[str, Any]) -> None:
    try:
        result = work(payload)
    except Exception as error:  # noqa: BLE001 - every failure is reported
        result = {"success": False, "message": f"{type(error).__name__}: {error}"}
    print("reporting", result, flush=True)
    report(url, token, result)


class Endpoint(BaseHTTPRequestHandler):
    """An endpoint that takes the work and answers 202. A real service first puts the work into its own queue."""

    taken: ClassVar[set[str]] = set()

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        run = self.headers["Idempotency-Key"]
        if run not in self.taken:  # a call may come twice for one run
            self.taken.add(run)
            given = self.headers["Sweephand-Callback-Url"], self.headers["Sweephand-Callback-Token"], payload
            threading.Thread(target=work_and_report, args=given).start()
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9000, help="(default 9000)")
    ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Endpoint).serve_forever()
